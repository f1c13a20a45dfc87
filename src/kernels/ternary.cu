// Module TERNARY: the choice between two elements by a third. By element sizes, since a choice
// moves elements unchanged: where_<size of the condition>_<size of the values>. Either value may be
// a number passed by value. 256 threads per block, any grid.
#include "gpu.h"
#include "gpu_elementwise.h"

template <class M, class T>
GPU_INLINE void where(const M* condition, const T* yes, const T* no, T* out, const Strided<3>& at,
                      const Reading& how, T yes_value, T no_value) {
  await_earlier();
  constexpr int kEach = vector_width(Weight::Light, sizeof(T) > sizeof(M) ? sizeof(T) : sizeof(M));
  walk_groups<kEach>(at, how, [&](const Group<3>& group) {
    const Vec<M, kEach> m = fetch<kEach>(at, how, group, 0, condition, M{});
    const Vec<T, kEach> x = fetch<kEach>(at, how, group, 1, yes, yes_value);
    const Vec<T, kEach> y = fetch<kEach>(at, how, group, 2, no, no_value);
    Vec<T, kEach> z;
    GPU_UNROLLED
    for (int j = 0; j < kEach; ++j) z.set(j, m.get(j) != 0 ? x.get(j) : y.get(j));
    put(group, out, z);
  });
}

GPU_KERNEL void where_1_1(const Bits8* condition, const Bits8* yes, const Bits8* no, Bits8* out,
                          Strided<3> at, Reading how, Bits8 yes_value, Bits8 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_1_2(const Bits8* condition, const Bits16* yes, const Bits16* no, Bits16* out,
                          Strided<3> at, Reading how, Bits16 yes_value, Bits16 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_1_4(const Bits8* condition, const Bits32* yes, const Bits32* no, Bits32* out,
                          Strided<3> at, Reading how, Bits32 yes_value, Bits32 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_1_8(const Bits8* condition, const Bits64* yes, const Bits64* no, Bits64* out,
                          Strided<3> at, Reading how, Bits64 yes_value, Bits64 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}

GPU_KERNEL void where_2_1(const Bits16* condition, const Bits8* yes, const Bits8* no, Bits8* out,
                          Strided<3> at, Reading how, Bits8 yes_value, Bits8 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_2_2(const Bits16* condition, const Bits16* yes, const Bits16* no, Bits16* out,
                          Strided<3> at, Reading how, Bits16 yes_value, Bits16 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_2_4(const Bits16* condition, const Bits32* yes, const Bits32* no, Bits32* out,
                          Strided<3> at, Reading how, Bits32 yes_value, Bits32 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_2_8(const Bits16* condition, const Bits64* yes, const Bits64* no, Bits64* out,
                          Strided<3> at, Reading how, Bits64 yes_value, Bits64 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}

GPU_KERNEL void where_4_1(const Bits32* condition, const Bits8* yes, const Bits8* no, Bits8* out,
                          Strided<3> at, Reading how, Bits8 yes_value, Bits8 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_4_2(const Bits32* condition, const Bits16* yes, const Bits16* no, Bits16* out,
                          Strided<3> at, Reading how, Bits16 yes_value, Bits16 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_4_4(const Bits32* condition, const Bits32* yes, const Bits32* no, Bits32* out,
                          Strided<3> at, Reading how, Bits32 yes_value, Bits32 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_4_8(const Bits32* condition, const Bits64* yes, const Bits64* no, Bits64* out,
                          Strided<3> at, Reading how, Bits64 yes_value, Bits64 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}

GPU_KERNEL void where_8_1(const Bits64* condition, const Bits8* yes, const Bits8* no, Bits8* out,
                          Strided<3> at, Reading how, Bits8 yes_value, Bits8 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_8_2(const Bits64* condition, const Bits16* yes, const Bits16* no, Bits16* out,
                          Strided<3> at, Reading how, Bits16 yes_value, Bits16 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_8_4(const Bits64* condition, const Bits32* yes, const Bits32* no, Bits32* out,
                          Strided<3> at, Reading how, Bits32 yes_value, Bits32 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
GPU_KERNEL void where_8_8(const Bits64* condition, const Bits64* yes, const Bits64* no, Bits64* out,
                          Strided<3> at, Reading how, Bits64 yes_value, Bits64 no_value) {
  where(condition, yes, no, out, at, how, yes_value, no_value);
}
