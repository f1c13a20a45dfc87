// Module TERNARY: the choice between two elements by a third. By element sizes, since a choice
// moves elements unchanged: where_<size of the condition>_<size of the values>. Either value may be
// a number passed by value. 256 threads per block, any grid.
#include "gpu.h"
#include "gpu_elementwise.h"

template <class M, class T>
GPU_INLINE void where(const M* condition, const T* yes, const T* no, T* out, const Strided<3>& at,
                      const Reading& how, T yes_value, T no_value) {
  constexpr int kWider = sizeof(T) > sizeof(M) ? sizeof(T) : sizeof(M);
  constexpr int kEach = vector_width(Weight::Light, kWider);
  const auto vec_of = [&](Access access, const T* p, T value) {
    return access == Access::Value ? splat<T, kEach>(value) : read_vec<T, kEach>(access, p);
  };
  walk_tiles<1>(
      0, how.vectors, [](Index, int) {},
      [&](Index i, int) {
        const Offsets<3> from = places<kEach>(at, how, i);
        const Vec<M, kEach> m = read_vec<M, kEach>(how.access[0], condition + from.at[0]);
        const Vec<T, kEach> x = vec_of(how.access[1], yes + from.at[1], yes_value);
        const Vec<T, kEach> y = vec_of(how.access[2], no + from.at[2], no_value);
        Vec<T, kEach> z;
        for (int j = 0; j < kEach; ++j) z.set(j, m.get(j) != 0 ? x.get(j) : y.get(j));
        store_vec(out + i * kEach, z);
      });
  constexpr int kFlight = 2;
  M m[kFlight] = {};
  T x[kFlight] = {}, y[kFlight] = {};
  walk_tiles<kFlight>(
      how.vectors * kEach, how.count,
      [&](Index i, int k) {
        const Offsets<3> from = places<1>(at, how, i);
        m[k] = condition[from.at[0]];
        x[k] = how.access[1] == Access::Value ? yes_value : yes[from.at[1]];
        y[k] = how.access[2] == Access::Value ? no_value : no[from.at[2]];
      },
      [&](Index i, int k) { out[i] = m[k] != 0 ? x[k] : y[k]; });
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
