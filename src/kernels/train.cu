// Module TRAIN: steps of optimisers, and gradients through activations: the slope at x times what
// comes from behind. All operands lie without gaps. 256 threads per block, any grid.
#include "gpu.h"
#include "gpu_elementwise.h"
#include "train_math.h"

using tl::training::AdamNumbers;

template <class C>
GPU_INLINE void adam(C* parameter, const C* gradient, C* first, C* second, C* largest, Index count,
                     const AdamNumbers<C>& numbers) {
  await_earlier();
  const bool amsgrad = largest != nullptr;
  grid_stride(count, [&](Index i) {
    const auto moved =
        tl::training::adam<C>({parameter[i], first[i], second[i], amsgrad ? largest[i] : C(0)},
                              gradient[i], amsgrad, numbers);
    parameter[i] = moved.parameter;
    first[i] = moved.first;
    second[i] = moved.second;
    if (amsgrad) largest[i] = moved.largest;
  });
}

template <class T, class F>
GPU_INLINE void slope(const T* in, const T* gradient, T* out, Index count, F&& function) {
  await_earlier();
  using C = ComputeOf<T>;
  grid_stride(count, [&](Index i) {
    const C g = convert<C>(gradient[i]);
    out[i] = convert<T>(tl::elementary::mul(g, function(convert<C>(in[i]))));
  });
}

GPU_KERNEL void adam_f32(float* parameter, const float* gradient, float* first, float* second,
                         float* largest, Index count, AdamNumbers<float> numbers) {
  adam(parameter, gradient, first, second, largest, count, numbers);
}
GPU_KERNEL void adam_f64(double* parameter, const double* gradient, double* first, double* second,
                         double* largest, Index count, AdamNumbers<double> numbers) {
  adam(parameter, gradient, first, second, largest, count, numbers);
}

GPU_KERNEL void slope_gelu_f16(const Half* in, const Half* gradient, Half* out, Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::gelu_slope(x); });
}
GPU_KERNEL void slope_gelu_bf16(const BFloat16* in, const BFloat16* gradient, BFloat16* out,
                                Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::gelu_slope(x); });
}
GPU_KERNEL void slope_gelu_f32(const float* in, const float* gradient, float* out, Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::gelu_slope(x); });
}
GPU_KERNEL void slope_gelu_f64(const double* in, const double* gradient, double* out, Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::gelu_slope(x); });
}

GPU_KERNEL void slope_gelu_erf_f16(const Half* in, const Half* gradient, Half* out, Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::gelu_erf_slope(x); });
}
GPU_KERNEL void slope_gelu_erf_bf16(const BFloat16* in, const BFloat16* gradient, BFloat16* out,
                                    Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::gelu_erf_slope(x); });
}
GPU_KERNEL void slope_gelu_erf_f32(const float* in, const float* gradient, float* out,
                                   Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::gelu_erf_slope(x); });
}
GPU_KERNEL void slope_gelu_erf_f64(const double* in, const double* gradient, double* out,
                                   Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::gelu_erf_slope(x); });
}

GPU_KERNEL void slope_silu_f16(const Half* in, const Half* gradient, Half* out, Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::silu_slope(x); });
}
GPU_KERNEL void slope_silu_bf16(const BFloat16* in, const BFloat16* gradient, BFloat16* out,
                                Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::silu_slope(x); });
}
GPU_KERNEL void slope_silu_f32(const float* in, const float* gradient, float* out, Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::silu_slope(x); });
}
GPU_KERNEL void slope_silu_f64(const double* in, const double* gradient, double* out, Index count) {
  slope(in, gradient, out, count, [](auto x) { return tl::training::silu_slope(x); });
}
