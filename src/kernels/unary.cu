// Module UNARY: functions of one element. See gpu_elementwise.h for how elements are read and
// functors.h for what is done to them. 256 threads per block, any grid. `p` is the parameter of the
// ops that have one.
#include "gpu.h"
#include "gpu_elementwise.h"

using tl::UnaryOp;

template <UnaryOp kOp, class T>
GPU_INLINE void unary(const T* in, T* out, const Strided<1>& at, const Reading& how,
                      ComputeOf<T> p) {
  await_earlier();
  constexpr bool kStraight = tl::kernels::goes_straight(kOp, sizeof(T));
  map_one<tl::kernels::weight(kOp, sizeof(ComputeOf<T>) == 8), kStraight>(
      in, out, at, how,
      [&](T x) { return convert<T>(tl::functors::unary<kOp>(convert<ComputeOf<T>>(x), p)); });
}

template <UnaryOp kOp, class T>
GPU_INLINE void unary_flag(const T* in, Bits8* out, const Strided<1>& at, const Reading& how) {
  await_earlier();
  map_one<tl::kernels::weight(kOp, sizeof(ComputeOf<T>) == 8)>(in, out, at, how, [&](T x) {
    const bool flag = tl::functors::unary_flag<kOp>(convert<ComputeOf<T>>(x));
    return static_cast<Bits8>(flag ? 1 : 0);
  });
}

GPU_KERNEL void uneg_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}
GPU_KERNEL void uneg_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}
GPU_KERNEL void uneg_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}
GPU_KERNEL void uneg_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}
GPU_KERNEL void uneg_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}

GPU_KERNEL void uabs_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}
GPU_KERNEL void uabs_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}
GPU_KERNEL void uabs_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}
GPU_KERNEL void uabs_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}
GPU_KERNEL void uabs_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}

GPU_KERNEL void usqr_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}
GPU_KERNEL void usqr_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}
GPU_KERNEL void usqr_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}
GPU_KERNEL void usqr_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}
GPU_KERNEL void usqr_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}

GPU_KERNEL void usign_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}
GPU_KERNEL void usign_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}
GPU_KERNEL void usign_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}
GPU_KERNEL void usign_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}
GPU_KERNEL void usign_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}

GPU_KERNEL void urelu_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}
GPU_KERNEL void urelu_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}
GPU_KERNEL void urelu_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}
GPU_KERNEL void urelu_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}
GPU_KERNEL void urelu_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}

GPU_KERNEL void urecip_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Recip>(in, out, at, how, p);
}
GPU_KERNEL void urecip_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Recip>(in, out, at, how, p);
}
GPU_KERNEL void urecip_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Recip>(in, out, at, how, p);
}
GPU_KERNEL void urecip_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Recip>(in, out, at, how, p);
}
GPU_KERNEL void urecip_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Recip>(in, out, at, how, p);
}

GPU_KERNEL void uexp_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Exp>(in, out, at, how, p);
}
GPU_KERNEL void uexp_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Exp>(in, out, at, how, p);
}
GPU_KERNEL void uexp_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Exp>(in, out, at, how, p);
}
GPU_KERNEL void uexp_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Exp>(in, out, at, how, p);
}
GPU_KERNEL void uexp_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Exp>(in, out, at, how, p);
}

GPU_KERNEL void uexp2_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Exp2>(in, out, at, how, p);
}
GPU_KERNEL void uexp2_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Exp2>(in, out, at, how, p);
}
GPU_KERNEL void uexp2_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Exp2>(in, out, at, how, p);
}
GPU_KERNEL void uexp2_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Exp2>(in, out, at, how, p);
}
GPU_KERNEL void uexp2_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Exp2>(in, out, at, how, p);
}

GPU_KERNEL void uexpm1_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Expm1>(in, out, at, how, p);
}
GPU_KERNEL void uexpm1_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Expm1>(in, out, at, how, p);
}
GPU_KERNEL void uexpm1_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Expm1>(in, out, at, how, p);
}
GPU_KERNEL void uexpm1_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Expm1>(in, out, at, how, p);
}
GPU_KERNEL void uexpm1_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Expm1>(in, out, at, how, p);
}

GPU_KERNEL void ulog_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log>(in, out, at, how, p);
}
GPU_KERNEL void ulog_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log>(in, out, at, how, p);
}
GPU_KERNEL void ulog_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log>(in, out, at, how, p);
}
GPU_KERNEL void ulog_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log>(in, out, at, how, p);
}
GPU_KERNEL void ulog_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Log>(in, out, at, how, p);
}

GPU_KERNEL void ulog2_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log2>(in, out, at, how, p);
}
GPU_KERNEL void ulog2_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log2>(in, out, at, how, p);
}
GPU_KERNEL void ulog2_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log2>(in, out, at, how, p);
}
GPU_KERNEL void ulog2_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log2>(in, out, at, how, p);
}
GPU_KERNEL void ulog2_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Log2>(in, out, at, how, p);
}

GPU_KERNEL void ulog10_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log10>(in, out, at, how, p);
}
GPU_KERNEL void ulog10_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log10>(in, out, at, how, p);
}
GPU_KERNEL void ulog10_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Log10>(in, out, at, how, p);
}
GPU_KERNEL void ulog10_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log10>(in, out, at, how, p);
}
GPU_KERNEL void ulog10_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Log10>(in, out, at, how, p);
}

GPU_KERNEL void ulog1p_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log1p>(in, out, at, how, p);
}
GPU_KERNEL void ulog1p_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log1p>(in, out, at, how, p);
}
GPU_KERNEL void ulog1p_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Log1p>(in, out, at, how, p);
}
GPU_KERNEL void ulog1p_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Log1p>(in, out, at, how, p);
}
GPU_KERNEL void ulog1p_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Log1p>(in, out, at, how, p);
}

GPU_KERNEL void usin_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sin>(in, out, at, how, p);
}
GPU_KERNEL void usin_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sin>(in, out, at, how, p);
}
GPU_KERNEL void usin_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sin>(in, out, at, how, p);
}
GPU_KERNEL void usin_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sin>(in, out, at, how, p);
}
GPU_KERNEL void usin_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Sin>(in, out, at, how, p);
}

GPU_KERNEL void ucos_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Cos>(in, out, at, how, p);
}
GPU_KERNEL void ucos_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Cos>(in, out, at, how, p);
}
GPU_KERNEL void ucos_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Cos>(in, out, at, how, p);
}
GPU_KERNEL void ucos_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Cos>(in, out, at, how, p);
}
GPU_KERNEL void ucos_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Cos>(in, out, at, how, p);
}

GPU_KERNEL void utan_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Tan>(in, out, at, how, p);
}
GPU_KERNEL void utan_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Tan>(in, out, at, how, p);
}
GPU_KERNEL void utan_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Tan>(in, out, at, how, p);
}
GPU_KERNEL void utan_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Tan>(in, out, at, how, p);
}
GPU_KERNEL void utan_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Tan>(in, out, at, how, p);
}

GPU_KERNEL void utanh_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Tanh>(in, out, at, how, p);
}
GPU_KERNEL void utanh_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Tanh>(in, out, at, how, p);
}
GPU_KERNEL void utanh_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Tanh>(in, out, at, how, p);
}
GPU_KERNEL void utanh_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Tanh>(in, out, at, how, p);
}
GPU_KERNEL void utanh_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Tanh>(in, out, at, how, p);
}

GPU_KERNEL void usinh_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sinh>(in, out, at, how, p);
}
GPU_KERNEL void usinh_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sinh>(in, out, at, how, p);
}
GPU_KERNEL void usinh_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sinh>(in, out, at, how, p);
}
GPU_KERNEL void usinh_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sinh>(in, out, at, how, p);
}
GPU_KERNEL void usinh_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Sinh>(in, out, at, how, p);
}

GPU_KERNEL void ucosh_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Cosh>(in, out, at, how, p);
}
GPU_KERNEL void ucosh_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Cosh>(in, out, at, how, p);
}
GPU_KERNEL void ucosh_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Cosh>(in, out, at, how, p);
}
GPU_KERNEL void ucosh_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Cosh>(in, out, at, how, p);
}
GPU_KERNEL void ucosh_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Cosh>(in, out, at, how, p);
}

GPU_KERNEL void uasin_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Asin>(in, out, at, how, p);
}
GPU_KERNEL void uasin_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Asin>(in, out, at, how, p);
}
GPU_KERNEL void uasin_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Asin>(in, out, at, how, p);
}
GPU_KERNEL void uasin_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Asin>(in, out, at, how, p);
}
GPU_KERNEL void uasin_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Asin>(in, out, at, how, p);
}

GPU_KERNEL void uacos_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Acos>(in, out, at, how, p);
}
GPU_KERNEL void uacos_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Acos>(in, out, at, how, p);
}
GPU_KERNEL void uacos_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Acos>(in, out, at, how, p);
}
GPU_KERNEL void uacos_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Acos>(in, out, at, how, p);
}
GPU_KERNEL void uacos_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Acos>(in, out, at, how, p);
}

GPU_KERNEL void uatan_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Atan>(in, out, at, how, p);
}
GPU_KERNEL void uatan_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Atan>(in, out, at, how, p);
}
GPU_KERNEL void uatan_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Atan>(in, out, at, how, p);
}
GPU_KERNEL void uatan_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Atan>(in, out, at, how, p);
}
GPU_KERNEL void uatan_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Atan>(in, out, at, how, p);
}

GPU_KERNEL void uerf_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Erf>(in, out, at, how, p);
}
GPU_KERNEL void uerf_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Erf>(in, out, at, how, p);
}
GPU_KERNEL void uerf_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Erf>(in, out, at, how, p);
}
GPU_KERNEL void uerf_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Erf>(in, out, at, how, p);
}
GPU_KERNEL void uerf_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Erf>(in, out, at, how, p);
}

GPU_KERNEL void uerfc_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Erfc>(in, out, at, how, p);
}
GPU_KERNEL void uerfc_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Erfc>(in, out, at, how, p);
}
GPU_KERNEL void uerfc_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Erfc>(in, out, at, how, p);
}
GPU_KERNEL void uerfc_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Erfc>(in, out, at, how, p);
}
GPU_KERNEL void uerfc_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Erfc>(in, out, at, how, p);
}

GPU_KERNEL void unormcdf_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how,
                                float p) {
  unary<UnaryOp::Normcdf>(in, out, at, how, p);
}
GPU_KERNEL void unormcdf_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Normcdf>(in, out, at, how, p);
}
GPU_KERNEL void unormcdf_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                              float p) {
  unary<UnaryOp::Normcdf>(in, out, at, how, p);
}
GPU_KERNEL void unormcdf_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Normcdf>(in, out, at, how, p);
}
GPU_KERNEL void unormcdf_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Normcdf>(in, out, at, how, p);
}

GPU_KERNEL void usqrt_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sqrt>(in, out, at, how, p);
}
GPU_KERNEL void usqrt_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sqrt>(in, out, at, how, p);
}
GPU_KERNEL void usqrt_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sqrt>(in, out, at, how, p);
}
GPU_KERNEL void usqrt_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sqrt>(in, out, at, how, p);
}
GPU_KERNEL void usqrt_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Sqrt>(in, out, at, how, p);
}

GPU_KERNEL void ursqrt_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Rsqrt>(in, out, at, how, p);
}
GPU_KERNEL void ursqrt_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Rsqrt>(in, out, at, how, p);
}
GPU_KERNEL void ursqrt_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Rsqrt>(in, out, at, how, p);
}
GPU_KERNEL void ursqrt_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Rsqrt>(in, out, at, how, p);
}
GPU_KERNEL void ursqrt_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Rsqrt>(in, out, at, how, p);
}

GPU_KERNEL void ufloor_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Floor>(in, out, at, how, p);
}
GPU_KERNEL void ufloor_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Floor>(in, out, at, how, p);
}
GPU_KERNEL void ufloor_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Floor>(in, out, at, how, p);
}
GPU_KERNEL void ufloor_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Floor>(in, out, at, how, p);
}
GPU_KERNEL void ufloor_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Floor>(in, out, at, how, p);
}

GPU_KERNEL void uceil_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Ceil>(in, out, at, how, p);
}
GPU_KERNEL void uceil_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Ceil>(in, out, at, how, p);
}
GPU_KERNEL void uceil_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Ceil>(in, out, at, how, p);
}
GPU_KERNEL void uceil_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Ceil>(in, out, at, how, p);
}
GPU_KERNEL void uceil_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Ceil>(in, out, at, how, p);
}

GPU_KERNEL void utrunc_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Trunc>(in, out, at, how, p);
}
GPU_KERNEL void utrunc_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Trunc>(in, out, at, how, p);
}
GPU_KERNEL void utrunc_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Trunc>(in, out, at, how, p);
}
GPU_KERNEL void utrunc_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Trunc>(in, out, at, how, p);
}
GPU_KERNEL void utrunc_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Trunc>(in, out, at, how, p);
}

GPU_KERNEL void uround_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Round>(in, out, at, how, p);
}
GPU_KERNEL void uround_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Round>(in, out, at, how, p);
}
GPU_KERNEL void uround_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Round>(in, out, at, how, p);
}
GPU_KERNEL void uround_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Round>(in, out, at, how, p);
}
GPU_KERNEL void uround_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Round>(in, out, at, how, p);
}

GPU_KERNEL void uround_even_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how,
                                   float p) {
  unary<UnaryOp::RoundEven>(in, out, at, how, p);
}
GPU_KERNEL void uround_even_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::RoundEven>(in, out, at, how, p);
}
GPU_KERNEL void uround_even_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                                 float p) {
  unary<UnaryOp::RoundEven>(in, out, at, how, p);
}
GPU_KERNEL void uround_even_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::RoundEven>(in, out, at, how, p);
}
GPU_KERNEL void uround_even_f64(const double* in, double* out, Strided<1> at, Reading how,
                                double p) {
  unary<UnaryOp::RoundEven>(in, out, at, how, p);
}

GPU_KERNEL void ugelu_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Gelu>(in, out, at, how, p);
}
GPU_KERNEL void ugelu_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Gelu>(in, out, at, how, p);
}
GPU_KERNEL void ugelu_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Gelu>(in, out, at, how, p);
}
GPU_KERNEL void ugelu_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Gelu>(in, out, at, how, p);
}
GPU_KERNEL void ugelu_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Gelu>(in, out, at, how, p);
}

GPU_KERNEL void ugelu_erf_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how,
                                 float p) {
  unary<UnaryOp::GeluErf>(in, out, at, how, p);
}
GPU_KERNEL void ugelu_erf_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::GeluErf>(in, out, at, how, p);
}
GPU_KERNEL void ugelu_erf_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                               float p) {
  unary<UnaryOp::GeluErf>(in, out, at, how, p);
}
GPU_KERNEL void ugelu_erf_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::GeluErf>(in, out, at, how, p);
}
GPU_KERNEL void ugelu_erf_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::GeluErf>(in, out, at, how, p);
}

GPU_KERNEL void urelu6_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Relu6>(in, out, at, how, p);
}
GPU_KERNEL void urelu6_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Relu6>(in, out, at, how, p);
}
GPU_KERNEL void urelu6_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                            float p) {
  unary<UnaryOp::Relu6>(in, out, at, how, p);
}
GPU_KERNEL void urelu6_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Relu6>(in, out, at, how, p);
}
GPU_KERNEL void urelu6_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Relu6>(in, out, at, how, p);
}

GPU_KERNEL void uleaky_relu_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how,
                                   float p) {
  unary<UnaryOp::LeakyRelu>(in, out, at, how, p);
}
GPU_KERNEL void uleaky_relu_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::LeakyRelu>(in, out, at, how, p);
}
GPU_KERNEL void uleaky_relu_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                                 float p) {
  unary<UnaryOp::LeakyRelu>(in, out, at, how, p);
}
GPU_KERNEL void uleaky_relu_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::LeakyRelu>(in, out, at, how, p);
}
GPU_KERNEL void uleaky_relu_f64(const double* in, double* out, Strided<1> at, Reading how,
                                double p) {
  unary<UnaryOp::LeakyRelu>(in, out, at, how, p);
}

GPU_KERNEL void usilu_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Silu>(in, out, at, how, p);
}
GPU_KERNEL void usilu_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Silu>(in, out, at, how, p);
}
GPU_KERNEL void usilu_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Silu>(in, out, at, how, p);
}
GPU_KERNEL void usilu_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Silu>(in, out, at, how, p);
}
GPU_KERNEL void usilu_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Silu>(in, out, at, how, p);
}

GPU_KERNEL void umish_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Mish>(in, out, at, how, p);
}
GPU_KERNEL void umish_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Mish>(in, out, at, how, p);
}
GPU_KERNEL void umish_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Mish>(in, out, at, how, p);
}
GPU_KERNEL void umish_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Mish>(in, out, at, how, p);
}
GPU_KERNEL void umish_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Mish>(in, out, at, how, p);
}

GPU_KERNEL void usigmoid_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how,
                                float p) {
  unary<UnaryOp::Sigmoid>(in, out, at, how, p);
}
GPU_KERNEL void usigmoid_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sigmoid>(in, out, at, how, p);
}
GPU_KERNEL void usigmoid_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                              float p) {
  unary<UnaryOp::Sigmoid>(in, out, at, how, p);
}
GPU_KERNEL void usigmoid_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Sigmoid>(in, out, at, how, p);
}
GPU_KERNEL void usigmoid_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Sigmoid>(in, out, at, how, p);
}

GPU_KERNEL void uhard_sigmoid_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how,
                                     float p) {
  unary<UnaryOp::HardSigmoid>(in, out, at, how, p);
}
GPU_KERNEL void uhard_sigmoid_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::HardSigmoid>(in, out, at, how, p);
}
GPU_KERNEL void uhard_sigmoid_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                                   float p) {
  unary<UnaryOp::HardSigmoid>(in, out, at, how, p);
}
GPU_KERNEL void uhard_sigmoid_f32(const float* in, float* out, Strided<1> at, Reading how,
                                  float p) {
  unary<UnaryOp::HardSigmoid>(in, out, at, how, p);
}
GPU_KERNEL void uhard_sigmoid_f64(const double* in, double* out, Strided<1> at, Reading how,
                                  double p) {
  unary<UnaryOp::HardSigmoid>(in, out, at, how, p);
}

GPU_KERNEL void uhard_swish_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how,
                                   float p) {
  unary<UnaryOp::HardSwish>(in, out, at, how, p);
}
GPU_KERNEL void uhard_swish_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::HardSwish>(in, out, at, how, p);
}
GPU_KERNEL void uhard_swish_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                                 float p) {
  unary<UnaryOp::HardSwish>(in, out, at, how, p);
}
GPU_KERNEL void uhard_swish_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::HardSwish>(in, out, at, how, p);
}
GPU_KERNEL void uhard_swish_f64(const double* in, double* out, Strided<1> at, Reading how,
                                double p) {
  unary<UnaryOp::HardSwish>(in, out, at, how, p);
}

GPU_KERNEL void usoftplus_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how,
                                 float p) {
  unary<UnaryOp::Softplus>(in, out, at, how, p);
}
GPU_KERNEL void usoftplus_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Softplus>(in, out, at, how, p);
}
GPU_KERNEL void usoftplus_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how,
                               float p) {
  unary<UnaryOp::Softplus>(in, out, at, how, p);
}
GPU_KERNEL void usoftplus_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Softplus>(in, out, at, how, p);
}
GPU_KERNEL void usoftplus_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Softplus>(in, out, at, how, p);
}

GPU_KERNEL void uselu_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Selu>(in, out, at, how, p);
}
GPU_KERNEL void uselu_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Selu>(in, out, at, how, p);
}
GPU_KERNEL void uselu_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Selu>(in, out, at, how, p);
}
GPU_KERNEL void uselu_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Selu>(in, out, at, how, p);
}
GPU_KERNEL void uselu_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Selu>(in, out, at, how, p);
}

GPU_KERNEL void uelu_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Elu>(in, out, at, how, p);
}
GPU_KERNEL void uelu_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Elu>(in, out, at, how, p);
}
GPU_KERNEL void uelu_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Elu>(in, out, at, how, p);
}
GPU_KERNEL void uelu_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Elu>(in, out, at, how, p);
}
GPU_KERNEL void uelu_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Elu>(in, out, at, how, p);
}

GPU_KERNEL void upowf_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Powf>(in, out, at, how, p);
}
GPU_KERNEL void upowf_f16(const Half* in, Half* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Powf>(in, out, at, how, p);
}
GPU_KERNEL void upowf_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Powf>(in, out, at, how, p);
}
GPU_KERNEL void upowf_f32(const float* in, float* out, Strided<1> at, Reading how, float p) {
  unary<UnaryOp::Powf>(in, out, at, how, p);
}
GPU_KERNEL void upowf_f64(const double* in, double* out, Strided<1> at, Reading how, double p) {
  unary<UnaryOp::Powf>(in, out, at, how, p);
}

GPU_KERNEL void uisnan_f8e4m3(const Float8* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsNan>(in, out, at, how);
}
GPU_KERNEL void uisnan_f16(const Half* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsNan>(in, out, at, how);
}
GPU_KERNEL void uisnan_bf16(const BFloat16* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsNan>(in, out, at, how);
}
GPU_KERNEL void uisnan_f32(const float* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsNan>(in, out, at, how);
}
GPU_KERNEL void uisnan_f64(const double* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsNan>(in, out, at, how);
}

GPU_KERNEL void uisinf_f8e4m3(const Float8* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsInf>(in, out, at, how);
}
GPU_KERNEL void uisinf_f16(const Half* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsInf>(in, out, at, how);
}
GPU_KERNEL void uisinf_bf16(const BFloat16* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsInf>(in, out, at, how);
}
GPU_KERNEL void uisinf_f32(const float* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsInf>(in, out, at, how);
}
GPU_KERNEL void uisinf_f64(const double* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsInf>(in, out, at, how);
}

GPU_KERNEL void uisfinite_f8e4m3(const Float8* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsFinite>(in, out, at, how);
}
GPU_KERNEL void uisfinite_f16(const Half* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsFinite>(in, out, at, how);
}
GPU_KERNEL void uisfinite_bf16(const BFloat16* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsFinite>(in, out, at, how);
}
GPU_KERNEL void uisfinite_f32(const float* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsFinite>(in, out, at, how);
}
GPU_KERNEL void uisfinite_f64(const double* in, Bits8* out, Strided<1> at, Reading how) {
  unary_flag<UnaryOp::IsFinite>(in, out, at, how);
}

GPU_KERNEL void uneg_u8(const Bits8* in, Bits8* out, Strided<1> at, Reading how, Bits8 p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}
GPU_KERNEL void uneg_u32(const Bits32* in, Bits32* out, Strided<1> at, Reading how, Bits32 p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}
GPU_KERNEL void uneg_i16(const short* in, short* out, Strided<1> at, Reading how, short p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}
GPU_KERNEL void uneg_i32(const int* in, int* out, Strided<1> at, Reading how, int p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}
GPU_KERNEL void uneg_i64(const Index* in, Index* out, Strided<1> at, Reading how, Index p) {
  unary<UnaryOp::Neg>(in, out, at, how, p);
}

GPU_KERNEL void uabs_u8(const Bits8* in, Bits8* out, Strided<1> at, Reading how, Bits8 p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}
GPU_KERNEL void uabs_u32(const Bits32* in, Bits32* out, Strided<1> at, Reading how, Bits32 p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}
GPU_KERNEL void uabs_i16(const short* in, short* out, Strided<1> at, Reading how, short p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}
GPU_KERNEL void uabs_i32(const int* in, int* out, Strided<1> at, Reading how, int p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}
GPU_KERNEL void uabs_i64(const Index* in, Index* out, Strided<1> at, Reading how, Index p) {
  unary<UnaryOp::Abs>(in, out, at, how, p);
}

GPU_KERNEL void usqr_u8(const Bits8* in, Bits8* out, Strided<1> at, Reading how, Bits8 p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}
GPU_KERNEL void usqr_u32(const Bits32* in, Bits32* out, Strided<1> at, Reading how, Bits32 p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}
GPU_KERNEL void usqr_i16(const short* in, short* out, Strided<1> at, Reading how, short p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}
GPU_KERNEL void usqr_i32(const int* in, int* out, Strided<1> at, Reading how, int p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}
GPU_KERNEL void usqr_i64(const Index* in, Index* out, Strided<1> at, Reading how, Index p) {
  unary<UnaryOp::Sqr>(in, out, at, how, p);
}

GPU_KERNEL void usign_u8(const Bits8* in, Bits8* out, Strided<1> at, Reading how, Bits8 p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}
GPU_KERNEL void usign_u32(const Bits32* in, Bits32* out, Strided<1> at, Reading how, Bits32 p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}
GPU_KERNEL void usign_i16(const short* in, short* out, Strided<1> at, Reading how, short p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}
GPU_KERNEL void usign_i32(const int* in, int* out, Strided<1> at, Reading how, int p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}
GPU_KERNEL void usign_i64(const Index* in, Index* out, Strided<1> at, Reading how, Index p) {
  unary<UnaryOp::Sign>(in, out, at, how, p);
}

GPU_KERNEL void urelu_u8(const Bits8* in, Bits8* out, Strided<1> at, Reading how, Bits8 p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}
GPU_KERNEL void urelu_u32(const Bits32* in, Bits32* out, Strided<1> at, Reading how, Bits32 p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}
GPU_KERNEL void urelu_i16(const short* in, short* out, Strided<1> at, Reading how, short p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}
GPU_KERNEL void urelu_i32(const int* in, int* out, Strided<1> at, Reading how, int p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}
GPU_KERNEL void urelu_i64(const Index* in, Index* out, Strided<1> at, Reading how, Index p) {
  unary<UnaryOp::Relu>(in, out, at, how, p);
}

GPU_KERNEL void ubitwise_not_u8(const Bits8* in, Bits8* out, Strided<1> at, Reading how, Bits8 p) {
  unary<UnaryOp::BitwiseNot>(in, out, at, how, p);
}
GPU_KERNEL void ubitwise_not_u32(const Bits32* in, Bits32* out, Strided<1> at, Reading how,
                                 Bits32 p) {
  unary<UnaryOp::BitwiseNot>(in, out, at, how, p);
}
GPU_KERNEL void ubitwise_not_i16(const short* in, short* out, Strided<1> at, Reading how, short p) {
  unary<UnaryOp::BitwiseNot>(in, out, at, how, p);
}
GPU_KERNEL void ubitwise_not_i32(const int* in, int* out, Strided<1> at, Reading how, int p) {
  unary<UnaryOp::BitwiseNot>(in, out, at, how, p);
}
GPU_KERNEL void ubitwise_not_i64(const Index* in, Index* out, Strided<1> at, Reading how, Index p) {
  unary<UnaryOp::BitwiseNot>(in, out, at, how, p);
}
