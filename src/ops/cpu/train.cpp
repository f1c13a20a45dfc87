#include "ops/cpu/train.h"

#include "ops/cpu/targets.h"
#include "tl/base/thread_pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/train.cpp"
#include <hwy/foreach_target.h>  // this file once more for each instruction set
#include <hwy/highway.h>

#include "kernels/train_math.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

template <class C>
struct AdamRun {
  C* HWY_RESTRICT parameter;
  const C* HWY_RESTRICT gradient;
  C* HWY_RESTRICT first;
  C* HWY_RESTRICT second;
  C* HWY_RESTRICT largest;
};

template <class C>
void adam_run(const AdamRun<C>& r, std::int64_t from, std::int64_t to,
              const training::AdamNumbers<C>& n) {
  if (r.largest == nullptr) {
    for (std::int64_t i = from; i < to; ++i) {
      const auto moved = training::adam<C>({r.parameter[i], r.first[i], r.second[i], C(0)},
                                           r.gradient[i], false, n);
      r.parameter[i] = moved.parameter;
      r.first[i] = moved.first;
      r.second[i] = moved.second;
    }
    return;
  }
  for (std::int64_t i = from; i < to; ++i) {
    const auto moved = training::adam<C>({r.parameter[i], r.first[i], r.second[i], r.largest[i]},
                                         r.gradient[i], true, n);
    r.parameter[i] = moved.parameter;
    r.first[i] = moved.first;
    r.second[i] = moved.second;
    r.largest[i] = moved.largest;
  }
}

constexpr std::int64_t kGrain = 1 << 14;

template <class C>
void adam_all(const AdamRun<C>& r, std::int64_t count, const training::AdamNumbers<C>& n) {
  ThreadPool::shared().parallel_for(
      0, count, kGrain, [&](std::int64_t from, std::int64_t to) { adam_run(r, from, to, n); });
}

void adam_tensors(Tensor& parameter, const Tensor& gradient, Tensor& first, Tensor& second,
                  Tensor* largest, const training::AdamNumbers<double>& numbers) {
  const Stream stream = parameter.device().stream();
  const auto run = [&]<class C>(C) {
    const C* g = gradient.read<C>(stream);
    adam_all<C>({parameter.update<C>(stream), g, first.update<C>(stream), second.update<C>(stream),
                 largest == nullptr ? nullptr : largest->update<C>(stream)},
                parameter.count(), ops::numbers_as<C>(numbers));
  };
  if (parameter.dtype() == DType::F64) {
    run(double{});
  } else {
    run(float{});
  }
}

template <SlopeOf kFunction, class C>
C slope_at(C x) {
  if constexpr (kFunction == SlopeOf::Gelu) {
    return training::gelu_slope(x);
  } else if constexpr (kFunction == SlopeOf::GeluErf) {
    return training::gelu_erf_slope(x);
  } else {
    return training::silu_slope(x);
  }
}

template <SlopeOf kFunction, class T>
void slope_all(const Tensor& x, const Tensor& gradient, Tensor& out) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Stream stream = out.device().stream();
  const T* HWY_RESTRICT in = x.read<T>(stream);
  const T* HWY_RESTRICT g = gradient.read<T>(stream);
  T* HWY_RESTRICT to = out.write<T>(stream);
  ThreadPool::shared().parallel_for(0, x.count(), kGrain, [=](std::int64_t from, std::int64_t end) {
    for (std::int64_t i = from; i < end; ++i) {
      to[i] = convert<T>(convert<C>(g[i]) * slope_at<kFunction>(convert<C>(in[i])));
    }
  });
}

template <SlopeOf kFunction>
void slope_of(const Tensor& x, const Tensor& gradient, Tensor& out) {
  switch (x.dtype()) {
    case DType::F16:
      return slope_all<kFunction, half>(x, gradient, out);
    case DType::BF16:
      return slope_all<kFunction, bfloat16>(x, gradient, out);
    case DType::F64:
      return slope_all<kFunction, double>(x, gradient, out);
    default:
      return slope_all<kFunction, float>(x, gradient, out);
  }
}

void slope_tensors(SlopeOf function, const Tensor& x, const Tensor& gradient, Tensor& out) {
  switch (function) {
    case SlopeOf::Gelu:
      return slope_of<SlopeOf::Gelu>(x, gradient, out);
    case SlopeOf::GeluErf:
      return slope_of<SlopeOf::GeluErf>(x, gradient, out);
    case SlopeOf::Silu:
      return slope_of<SlopeOf::Silu>(x, gradient, out);
  }
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(adam_tensors);
HWY_EXPORT(slope_tensors);

void slope(SlopeOf function, const Tensor& x, const Tensor& gradient, Tensor& out) {
  HWY_DYNAMIC_DISPATCH(slope_tensors)(function, x, gradient, out);
}

void adam(Tensor& parameter, const Tensor& gradient, Tensor& first, Tensor& second, Tensor* largest,
          const training::AdamNumbers<double>& numbers) {
  HWY_DYNAMIC_DISPATCH(adam_tensors)(parameter, gradient, first, second, largest, numbers);
}

}  // namespace tl::cpu
#endif
