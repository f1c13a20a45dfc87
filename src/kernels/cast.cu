// Module CAST: every dtype to every dtype, by the rules of tl/base/float_bits.h.
//
// A contiguous input is read and written in vectors whose wider side fills 16 bytes; any other
// layout goes element by element through its strides. The output is always contiguous. 256 threads
// per block, any grid.
#include "gpu.h"

template <class From, class To>
GPU_INLINE void cast(const From* in, To* out, const Strided<1>& at) {
  await_earlier();
  constexpr int kWider = sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To);
  constexpr int kEach = 16 / kWider;
  // A view may start anywhere; then there are no whole vectors and everything is remainder.
  const bool whole = at.contiguous && is_vec_aligned<kEach>(in) && is_vec_aligned<kEach>(out);
  const Index vectors = whole ? at.count / kEach : 0;
  grid_stride(vectors, [&](Index i) {
    const Vec<From, kEach> from = load_vec<kEach>(in + i * kEach);
    Vec<To, kEach> to;
    for (int k = 0; k < kEach; ++k) to.set(k, convert<To>(from.get(k)));
    store_vec(out + i * kEach, to);
  });
  const Index done = vectors * kEach;
  grid_stride(at.count - done, [&](Index i) {
    out[done + i] = convert<To>(in[at.contiguous ? done + i : offset(at, i)]);
  });
}

GPU_KERNEL void cast_u8_u8(const Bits8* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_u32(const Bits8* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_i16(const Bits8* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_i32(const Bits8* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_i64(const Bits8* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_f8e4m3(const Bits8* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_f16(const Bits8* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_bf16(const Bits8* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_f32(const Bits8* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_f64(const Bits8* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u8_bool(const Bits8* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_u32_u8(const Bits32* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_u32(const Bits32* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_i16(const Bits32* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_i32(const Bits32* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_i64(const Bits32* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_f8e4m3(const Bits32* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_f16(const Bits32* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_bf16(const Bits32* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_f32(const Bits32* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_f64(const Bits32* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_u32_bool(const Bits32* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_i16_u8(const short* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_u32(const short* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_i16(const short* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_i32(const short* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_i64(const short* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_f8e4m3(const short* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_f16(const short* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_bf16(const short* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_f32(const short* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_f64(const short* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i16_bool(const short* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_i32_u8(const int* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_u32(const int* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_i16(const int* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_i32(const int* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_i64(const int* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_f8e4m3(const int* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_f16(const int* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_bf16(const int* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_f32(const int* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_f64(const int* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i32_bool(const int* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_i64_u8(const Index* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_u32(const Index* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_i16(const Index* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_i32(const Index* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_i64(const Index* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_f8e4m3(const Index* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_f16(const Index* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_bf16(const Index* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_f32(const Index* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_f64(const Index* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_i64_bool(const Index* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_f8e4m3_u8(const Float8* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f8e4m3_u32(const Float8* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f8e4m3_i16(const Float8* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f8e4m3_i32(const Float8* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f8e4m3_i64(const Float8* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f8e4m3_f8e4m3(const Float8* in, Float8* out, Strided<1> at) {
  cast(in, out, at);
}
GPU_KERNEL void cast_f8e4m3_f16(const Float8* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f8e4m3_bf16(const Float8* in, BFloat16* out, Strided<1> at) {
  cast(in, out, at);
}
GPU_KERNEL void cast_f8e4m3_f32(const Float8* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f8e4m3_f64(const Float8* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f8e4m3_bool(const Float8* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_f16_u8(const Half* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_u32(const Half* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_i16(const Half* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_i32(const Half* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_i64(const Half* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_f8e4m3(const Half* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_f16(const Half* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_bf16(const Half* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_f32(const Half* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_f64(const Half* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f16_bool(const Half* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_bf16_u8(const BFloat16* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bf16_u32(const BFloat16* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bf16_i16(const BFloat16* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bf16_i32(const BFloat16* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bf16_i64(const BFloat16* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bf16_f8e4m3(const BFloat16* in, Float8* out, Strided<1> at) {
  cast(in, out, at);
}
GPU_KERNEL void cast_bf16_f16(const BFloat16* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bf16_bf16(const BFloat16* in, BFloat16* out, Strided<1> at) {
  cast(in, out, at);
}
GPU_KERNEL void cast_bf16_f32(const BFloat16* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bf16_f64(const BFloat16* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bf16_bool(const BFloat16* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_f32_u8(const float* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_u32(const float* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_i16(const float* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_i32(const float* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_i64(const float* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_f8e4m3(const float* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_f16(const float* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_bf16(const float* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_f32(const float* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_f64(const float* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f32_bool(const float* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_f64_u8(const double* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_u32(const double* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_i16(const double* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_i32(const double* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_i64(const double* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_f8e4m3(const double* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_f16(const double* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_bf16(const double* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_f32(const double* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_f64(const double* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_f64_bool(const double* in, Bool* out, Strided<1> at) { cast(in, out, at); }

GPU_KERNEL void cast_bool_u8(const Bool* in, Bits8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_u32(const Bool* in, Bits32* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_i16(const Bool* in, short* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_i32(const Bool* in, int* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_i64(const Bool* in, Index* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_f8e4m3(const Bool* in, Float8* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_f16(const Bool* in, Half* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_bf16(const Bool* in, BFloat16* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_f32(const Bool* in, float* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_f64(const Bool* in, double* out, Strided<1> at) { cast(in, out, at); }
GPU_KERNEL void cast_bool_bool(const Bool* in, Bool* out, Strided<1> at) { cast(in, out, at); }
