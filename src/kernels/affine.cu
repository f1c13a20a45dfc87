// Module AFFINE: one operand and two numbers: x m + a, and x held between two bounds. See
// gpu_elementwise.h for how elements are read. 256 threads per block, any grid.
#include "gpu.h"
#include "gpu_elementwise.h"

template <class T>
GPU_INLINE void affine(const T* in, T* out, const Strided<1>& at, const Reading& how,
                       ComputeOf<T> m, ComputeOf<T> a) {
  await_earlier();
  map_one<Weight::Light>(in, out, at, how, [&](T x) {
    return convert<T>(tl::functors::affine(convert<ComputeOf<T>>(x), m, a));
  });
}

template <class T>
GPU_INLINE void clamp(const T* in, T* out, const Strided<1>& at, const Reading& how,
                      ComputeOf<T> low, ComputeOf<T> high) {
  await_earlier();
  map_one<Weight::Light>(in, out, at, how, [&](T x) {
    return convert<T>(tl::functors::clamp(convert<ComputeOf<T>>(x), low, high));
  });
}

GPU_KERNEL void affine_u8(const Bits8* in, Bits8* out, Strided<1> at, Reading how, Bits8 m,
                          Bits8 a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_u32(const Bits32* in, Bits32* out, Strided<1> at, Reading how, Bits32 m,
                           Bits32 a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_i16(const short* in, short* out, Strided<1> at, Reading how, short m,
                           short a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_i32(const int* in, int* out, Strided<1> at, Reading how, int m, int a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_i64(const Index* in, Index* out, Strided<1> at, Reading how, Index m,
                           Index a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float m,
                              float a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_f16(const Half* in, Half* out, Strided<1> at, Reading how, float m,
                           float a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float m,
                            float a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_f32(const float* in, float* out, Strided<1> at, Reading how, float m,
                           float a) {
  affine(in, out, at, how, m, a);
}
GPU_KERNEL void affine_f64(const double* in, double* out, Strided<1> at, Reading how, double m,
                           double a) {
  affine(in, out, at, how, m, a);
}

GPU_KERNEL void clamp_u8(const Bits8* in, Bits8* out, Strided<1> at, Reading how, Bits8 low,
                         Bits8 high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_u32(const Bits32* in, Bits32* out, Strided<1> at, Reading how, Bits32 low,
                          Bits32 high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_i16(const short* in, short* out, Strided<1> at, Reading how, short low,
                          short high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_i32(const int* in, int* out, Strided<1> at, Reading how, int low, int high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_i64(const Index* in, Index* out, Strided<1> at, Reading how, Index low,
                          Index high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float low,
                             float high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_f16(const Half* in, Half* out, Strided<1> at, Reading how, float low,
                          float high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float low,
                           float high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_f32(const float* in, float* out, Strided<1> at, Reading how, float low,
                          float high) {
  clamp(in, out, at, how, low, high);
}
GPU_KERNEL void clamp_f64(const double* in, double* out, Strided<1> at, Reading how, double low,
                          double high) {
  clamp(in, out, at, how, low, high);
}
