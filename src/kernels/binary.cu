// Module BINARY: functions of two elements, either of which may be a number passed by value. See
// gpu_elementwise.h for how elements are read and functors.h for what is done to them. 256 threads
// per block, any grid.
#include "gpu.h"
#include "gpu_elementwise.h"

using tl::BinaryOp;

template <BinaryOp kOp, class T>
GPU_INLINE void binary(const T* a, const T* b, T* out, const Strided<2>& at, const Reading& how,
                       T value) {
  await_earlier();
  map_two<tl::kernels::weight(kOp, tl::functors::kIsReal<ComputeOf<T>>)>(
      a, b, out, at, how, value, [](T x, T y) {
        using C = ComputeOf<T>;
        return convert<T>(tl::functors::binary<kOp>(convert<C>(x), convert<C>(y)));
      });
}

template <BinaryOp kOp, class T>
GPU_INLINE void binary_flag(const T* a, const T* b, Bits8* out, const Strided<2>& at,
                            const Reading& how, T value) {
  await_earlier();
  map_two<tl::kernels::weight(kOp, tl::functors::kIsReal<ComputeOf<T>>)>(
      a, b, out, at, how, value, [](T x, T y) {
        using C = ComputeOf<T>;
        const bool flag = tl::functors::binary_flag<kOp>(convert<C>(x), convert<C>(y));
        return static_cast<Bits8>(flag ? 1 : 0);
      });
}

GPU_KERNEL void badd_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                        Bits8 value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at, Reading how,
                         Bits32 value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                         short value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                         int value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                         Index value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                            Reading how, Float8 value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                         Half value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                          Reading how, BFloat16 value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                         float value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}
GPU_KERNEL void badd_f64(const double* a, const double* b, double* out, Strided<2> at, Reading how,
                         double value) {
  binary<BinaryOp::Add>(a, b, out, at, how, value);
}

GPU_KERNEL void bsub_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                        Bits8 value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at, Reading how,
                         Bits32 value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                         short value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                         int value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                         Index value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                            Reading how, Float8 value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                         Half value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                          Reading how, BFloat16 value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                         float value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}
GPU_KERNEL void bsub_f64(const double* a, const double* b, double* out, Strided<2> at, Reading how,
                         double value) {
  binary<BinaryOp::Sub>(a, b, out, at, how, value);
}

GPU_KERNEL void bmul_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                        Bits8 value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at, Reading how,
                         Bits32 value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                         short value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                         int value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                         Index value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                            Reading how, Float8 value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                         Half value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                          Reading how, BFloat16 value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                         float value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}
GPU_KERNEL void bmul_f64(const double* a, const double* b, double* out, Strided<2> at, Reading how,
                         double value) {
  binary<BinaryOp::Mul>(a, b, out, at, how, value);
}

GPU_KERNEL void bdiv_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                        Bits8 value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at, Reading how,
                         Bits32 value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                         short value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                         int value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                         Index value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                            Reading how, Float8 value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                         Half value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                          Reading how, BFloat16 value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                         float value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}
GPU_KERNEL void bdiv_f64(const double* a, const double* b, double* out, Strided<2> at, Reading how,
                         double value) {
  binary<BinaryOp::Div>(a, b, out, at, how, value);
}

GPU_KERNEL void bmaximum_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                            Bits8 value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at,
                             Reading how, Bits32 value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                             short value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                             int value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                             Index value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                                Reading how, Float8 value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                             Half value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                              Reading how, BFloat16 value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                             float value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}
GPU_KERNEL void bmaximum_f64(const double* a, const double* b, double* out, Strided<2> at,
                             Reading how, double value) {
  binary<BinaryOp::Maximum>(a, b, out, at, how, value);
}

GPU_KERNEL void bminimum_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                            Bits8 value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at,
                             Reading how, Bits32 value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                             short value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                             int value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                             Index value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                                Reading how, Float8 value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                             Half value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                              Reading how, BFloat16 value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                             float value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}
GPU_KERNEL void bminimum_f64(const double* a, const double* b, double* out, Strided<2> at,
                             Reading how, double value) {
  binary<BinaryOp::Minimum>(a, b, out, at, how, value);
}

GPU_KERNEL void bpow_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                        Bits8 value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at, Reading how,
                         Bits32 value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                         short value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                         int value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                         Index value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                            Reading how, Float8 value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                         Half value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                          Reading how, BFloat16 value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                         float value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}
GPU_KERNEL void bpow_f64(const double* a, const double* b, double* out, Strided<2> at, Reading how,
                         double value) {
  binary<BinaryOp::Pow>(a, b, out, at, how, value);
}

GPU_KERNEL void brem_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                        Bits8 value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at, Reading how,
                         Bits32 value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                         short value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                         int value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                         Index value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                            Reading how, Float8 value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                         Half value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                          Reading how, BFloat16 value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                         float value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}
GPU_KERNEL void brem_f64(const double* a, const double* b, double* out, Strided<2> at, Reading how,
                         double value) {
  binary<BinaryOp::Rem>(a, b, out, at, how, value);
}

GPU_KERNEL void bfmod_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                         Bits8 value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at, Reading how,
                          Bits32 value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_i16(const short* a, const short* b, short* out, Strided<2> at, Reading how,
                          short value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                          int value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_i64(const Index* a, const Index* b, Index* out, Strided<2> at, Reading how,
                          Index value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                             Reading how, Float8 value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                          Half value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                           Reading how, BFloat16 value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                          float value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}
GPU_KERNEL void bfmod_f64(const double* a, const double* b, double* out, Strided<2> at, Reading how,
                          double value) {
  binary<BinaryOp::Fmod>(a, b, out, at, how, value);
}

GPU_KERNEL void bfloor_div_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                              Reading how, Bits8 value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at,
                               Reading how, Bits32 value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_i16(const short* a, const short* b, short* out, Strided<2> at,
                               Reading how, short value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                               int value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_i64(const Index* a, const Index* b, Index* out, Strided<2> at,
                               Reading how, Index value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                                  Reading how, Float8 value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                               Half value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                                Reading how, BFloat16 value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_f32(const float* a, const float* b, float* out, Strided<2> at,
                               Reading how, float value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}
GPU_KERNEL void bfloor_div_f64(const double* a, const double* b, double* out, Strided<2> at,
                               Reading how, double value) {
  binary<BinaryOp::FloorDiv>(a, b, out, at, how, value);
}

GPU_KERNEL void batan2_f8e4m3(const Float8* a, const Float8* b, Float8* out, Strided<2> at,
                              Reading how, Float8 value) {
  binary<BinaryOp::Atan2>(a, b, out, at, how, value);
}
GPU_KERNEL void batan2_f16(const Half* a, const Half* b, Half* out, Strided<2> at, Reading how,
                           Half value) {
  binary<BinaryOp::Atan2>(a, b, out, at, how, value);
}
GPU_KERNEL void batan2_bf16(const BFloat16* a, const BFloat16* b, BFloat16* out, Strided<2> at,
                            Reading how, BFloat16 value) {
  binary<BinaryOp::Atan2>(a, b, out, at, how, value);
}
GPU_KERNEL void batan2_f32(const float* a, const float* b, float* out, Strided<2> at, Reading how,
                           float value) {
  binary<BinaryOp::Atan2>(a, b, out, at, how, value);
}
GPU_KERNEL void batan2_f64(const double* a, const double* b, double* out, Strided<2> at,
                           Reading how, double value) {
  binary<BinaryOp::Atan2>(a, b, out, at, how, value);
}

GPU_KERNEL void bbitwise_and_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                                Reading how, Bits8 value) {
  binary<BinaryOp::BitwiseAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_and_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at,
                                 Reading how, Bits32 value) {
  binary<BinaryOp::BitwiseAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_and_i16(const short* a, const short* b, short* out, Strided<2> at,
                                 Reading how, short value) {
  binary<BinaryOp::BitwiseAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_and_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                                 int value) {
  binary<BinaryOp::BitwiseAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_and_i64(const Index* a, const Index* b, Index* out, Strided<2> at,
                                 Reading how, Index value) {
  binary<BinaryOp::BitwiseAnd>(a, b, out, at, how, value);
}

GPU_KERNEL void bbitwise_or_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                               Reading how, Bits8 value) {
  binary<BinaryOp::BitwiseOr>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_or_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at,
                                Reading how, Bits32 value) {
  binary<BinaryOp::BitwiseOr>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_or_i16(const short* a, const short* b, short* out, Strided<2> at,
                                Reading how, short value) {
  binary<BinaryOp::BitwiseOr>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_or_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                                int value) {
  binary<BinaryOp::BitwiseOr>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_or_i64(const Index* a, const Index* b, Index* out, Strided<2> at,
                                Reading how, Index value) {
  binary<BinaryOp::BitwiseOr>(a, b, out, at, how, value);
}

GPU_KERNEL void bbitwise_xor_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                                Reading how, Bits8 value) {
  binary<BinaryOp::BitwiseXor>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_xor_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at,
                                 Reading how, Bits32 value) {
  binary<BinaryOp::BitwiseXor>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_xor_i16(const short* a, const short* b, short* out, Strided<2> at,
                                 Reading how, short value) {
  binary<BinaryOp::BitwiseXor>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_xor_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                                 int value) {
  binary<BinaryOp::BitwiseXor>(a, b, out, at, how, value);
}
GPU_KERNEL void bbitwise_xor_i64(const Index* a, const Index* b, Index* out, Strided<2> at,
                                 Reading how, Index value) {
  binary<BinaryOp::BitwiseXor>(a, b, out, at, how, value);
}

GPU_KERNEL void bshift_left_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                               Reading how, Bits8 value) {
  binary<BinaryOp::ShiftLeft>(a, b, out, at, how, value);
}
GPU_KERNEL void bshift_left_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at,
                                Reading how, Bits32 value) {
  binary<BinaryOp::ShiftLeft>(a, b, out, at, how, value);
}
GPU_KERNEL void bshift_left_i16(const short* a, const short* b, short* out, Strided<2> at,
                                Reading how, short value) {
  binary<BinaryOp::ShiftLeft>(a, b, out, at, how, value);
}
GPU_KERNEL void bshift_left_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                                int value) {
  binary<BinaryOp::ShiftLeft>(a, b, out, at, how, value);
}
GPU_KERNEL void bshift_left_i64(const Index* a, const Index* b, Index* out, Strided<2> at,
                                Reading how, Index value) {
  binary<BinaryOp::ShiftLeft>(a, b, out, at, how, value);
}

GPU_KERNEL void bshift_right_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                                Reading how, Bits8 value) {
  binary<BinaryOp::ShiftRight>(a, b, out, at, how, value);
}
GPU_KERNEL void bshift_right_u32(const Bits32* a, const Bits32* b, Bits32* out, Strided<2> at,
                                 Reading how, Bits32 value) {
  binary<BinaryOp::ShiftRight>(a, b, out, at, how, value);
}
GPU_KERNEL void bshift_right_i16(const short* a, const short* b, short* out, Strided<2> at,
                                 Reading how, short value) {
  binary<BinaryOp::ShiftRight>(a, b, out, at, how, value);
}
GPU_KERNEL void bshift_right_i32(const int* a, const int* b, int* out, Strided<2> at, Reading how,
                                 int value) {
  binary<BinaryOp::ShiftRight>(a, b, out, at, how, value);
}
GPU_KERNEL void bshift_right_i64(const Index* a, const Index* b, Index* out, Strided<2> at,
                                 Reading how, Index value) {
  binary<BinaryOp::ShiftRight>(a, b, out, at, how, value);
}

GPU_KERNEL void blogical_and_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                                Reading how, Bits8 value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_u32(const Bits32* a, const Bits32* b, Bits8* out, Strided<2> at,
                                 Reading how, Bits32 value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_i16(const short* a, const short* b, Bits8* out, Strided<2> at,
                                 Reading how, short value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_i32(const int* a, const int* b, Bits8* out, Strided<2> at, Reading how,
                                 int value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_i64(const Index* a, const Index* b, Bits8* out, Strided<2> at,
                                 Reading how, Index value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_f8e4m3(const Float8* a, const Float8* b, Bits8* out, Strided<2> at,
                                    Reading how, Float8 value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_f16(const Half* a, const Half* b, Bits8* out, Strided<2> at,
                                 Reading how, Half value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_bf16(const BFloat16* a, const BFloat16* b, Bits8* out, Strided<2> at,
                                  Reading how, BFloat16 value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_f32(const float* a, const float* b, Bits8* out, Strided<2> at,
                                 Reading how, float value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_and_f64(const double* a, const double* b, Bits8* out, Strided<2> at,
                                 Reading how, double value) {
  binary_flag<BinaryOp::LogicalAnd>(a, b, out, at, how, value);
}

GPU_KERNEL void blogical_or_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                               Reading how, Bits8 value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_u32(const Bits32* a, const Bits32* b, Bits8* out, Strided<2> at,
                                Reading how, Bits32 value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_i16(const short* a, const short* b, Bits8* out, Strided<2> at,
                                Reading how, short value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_i32(const int* a, const int* b, Bits8* out, Strided<2> at, Reading how,
                                int value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_i64(const Index* a, const Index* b, Bits8* out, Strided<2> at,
                                Reading how, Index value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_f8e4m3(const Float8* a, const Float8* b, Bits8* out, Strided<2> at,
                                   Reading how, Float8 value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_f16(const Half* a, const Half* b, Bits8* out, Strided<2> at,
                                Reading how, Half value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_bf16(const BFloat16* a, const BFloat16* b, Bits8* out, Strided<2> at,
                                 Reading how, BFloat16 value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_f32(const float* a, const float* b, Bits8* out, Strided<2> at,
                                Reading how, float value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_or_f64(const double* a, const double* b, Bits8* out, Strided<2> at,
                                Reading how, double value) {
  binary_flag<BinaryOp::LogicalOr>(a, b, out, at, how, value);
}

GPU_KERNEL void blogical_xor_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at,
                                Reading how, Bits8 value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_u32(const Bits32* a, const Bits32* b, Bits8* out, Strided<2> at,
                                 Reading how, Bits32 value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_i16(const short* a, const short* b, Bits8* out, Strided<2> at,
                                 Reading how, short value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_i32(const int* a, const int* b, Bits8* out, Strided<2> at, Reading how,
                                 int value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_i64(const Index* a, const Index* b, Bits8* out, Strided<2> at,
                                 Reading how, Index value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_f8e4m3(const Float8* a, const Float8* b, Bits8* out, Strided<2> at,
                                    Reading how, Float8 value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_f16(const Half* a, const Half* b, Bits8* out, Strided<2> at,
                                 Reading how, Half value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_bf16(const BFloat16* a, const BFloat16* b, Bits8* out, Strided<2> at,
                                  Reading how, BFloat16 value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_f32(const float* a, const float* b, Bits8* out, Strided<2> at,
                                 Reading how, float value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}
GPU_KERNEL void blogical_xor_f64(const double* a, const double* b, Bits8* out, Strided<2> at,
                                 Reading how, double value) {
  binary_flag<BinaryOp::LogicalXor>(a, b, out, at, how, value);
}

GPU_KERNEL void eq_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                      Bits8 value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_u32(const Bits32* a, const Bits32* b, Bits8* out, Strided<2> at, Reading how,
                       Bits32 value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_i16(const short* a, const short* b, Bits8* out, Strided<2> at, Reading how,
                       short value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_i32(const int* a, const int* b, Bits8* out, Strided<2> at, Reading how,
                       int value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_i64(const Index* a, const Index* b, Bits8* out, Strided<2> at, Reading how,
                       Index value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_f8e4m3(const Float8* a, const Float8* b, Bits8* out, Strided<2> at, Reading how,
                          Float8 value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_f16(const Half* a, const Half* b, Bits8* out, Strided<2> at, Reading how,
                       Half value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_bf16(const BFloat16* a, const BFloat16* b, Bits8* out, Strided<2> at,
                        Reading how, BFloat16 value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_f32(const float* a, const float* b, Bits8* out, Strided<2> at, Reading how,
                       float value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}
GPU_KERNEL void eq_f64(const double* a, const double* b, Bits8* out, Strided<2> at, Reading how,
                       double value) {
  binary_flag<BinaryOp::Eq>(a, b, out, at, how, value);
}

GPU_KERNEL void ne_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                      Bits8 value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_u32(const Bits32* a, const Bits32* b, Bits8* out, Strided<2> at, Reading how,
                       Bits32 value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_i16(const short* a, const short* b, Bits8* out, Strided<2> at, Reading how,
                       short value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_i32(const int* a, const int* b, Bits8* out, Strided<2> at, Reading how,
                       int value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_i64(const Index* a, const Index* b, Bits8* out, Strided<2> at, Reading how,
                       Index value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_f8e4m3(const Float8* a, const Float8* b, Bits8* out, Strided<2> at, Reading how,
                          Float8 value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_f16(const Half* a, const Half* b, Bits8* out, Strided<2> at, Reading how,
                       Half value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_bf16(const BFloat16* a, const BFloat16* b, Bits8* out, Strided<2> at,
                        Reading how, BFloat16 value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_f32(const float* a, const float* b, Bits8* out, Strided<2> at, Reading how,
                       float value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}
GPU_KERNEL void ne_f64(const double* a, const double* b, Bits8* out, Strided<2> at, Reading how,
                       double value) {
  binary_flag<BinaryOp::Ne>(a, b, out, at, how, value);
}

GPU_KERNEL void lt_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                      Bits8 value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_u32(const Bits32* a, const Bits32* b, Bits8* out, Strided<2> at, Reading how,
                       Bits32 value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_i16(const short* a, const short* b, Bits8* out, Strided<2> at, Reading how,
                       short value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_i32(const int* a, const int* b, Bits8* out, Strided<2> at, Reading how,
                       int value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_i64(const Index* a, const Index* b, Bits8* out, Strided<2> at, Reading how,
                       Index value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_f8e4m3(const Float8* a, const Float8* b, Bits8* out, Strided<2> at, Reading how,
                          Float8 value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_f16(const Half* a, const Half* b, Bits8* out, Strided<2> at, Reading how,
                       Half value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_bf16(const BFloat16* a, const BFloat16* b, Bits8* out, Strided<2> at,
                        Reading how, BFloat16 value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_f32(const float* a, const float* b, Bits8* out, Strided<2> at, Reading how,
                       float value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}
GPU_KERNEL void lt_f64(const double* a, const double* b, Bits8* out, Strided<2> at, Reading how,
                       double value) {
  binary_flag<BinaryOp::Lt>(a, b, out, at, how, value);
}

GPU_KERNEL void le_u8(const Bits8* a, const Bits8* b, Bits8* out, Strided<2> at, Reading how,
                      Bits8 value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_u32(const Bits32* a, const Bits32* b, Bits8* out, Strided<2> at, Reading how,
                       Bits32 value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_i16(const short* a, const short* b, Bits8* out, Strided<2> at, Reading how,
                       short value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_i32(const int* a, const int* b, Bits8* out, Strided<2> at, Reading how,
                       int value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_i64(const Index* a, const Index* b, Bits8* out, Strided<2> at, Reading how,
                       Index value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_f8e4m3(const Float8* a, const Float8* b, Bits8* out, Strided<2> at, Reading how,
                          Float8 value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_f16(const Half* a, const Half* b, Bits8* out, Strided<2> at, Reading how,
                       Half value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_bf16(const BFloat16* a, const BFloat16* b, Bits8* out, Strided<2> at,
                        Reading how, BFloat16 value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_f32(const float* a, const float* b, Bits8* out, Strided<2> at, Reading how,
                       float value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
GPU_KERNEL void le_f64(const double* a, const double* b, Bits8* out, Strided<2> at, Reading how,
                       double value) {
  binary_flag<BinaryOp::Le>(a, b, out, at, how, value);
}
