#include "ops/cpu/row_grad.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "ops/cpu/index.h"
#include "tl/base/thread_pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/row_grad.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

inline constexpr std::int64_t kGrain = 8192;  // elements worth a thread

template <class F>
void in_parallel(std::int64_t count, std::int64_t work, const F& f) {
  ThreadPool::shared().parallel_for(
      0, count, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, work)), f);
}

// A row in the type that it is computed in: itself, or widened into `room`.
template <class T>
const Wide<T>* wide_row(const T* row, std::int64_t n, std::vector<Wide<T>>& room) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    return row;
  } else {
    room.resize(static_cast<std::size_t>(n));
    widen_row(row, 1, n, room.data());
    return room.data();
  }
}

// f(i) gives the vectors of some sums for the elements from i on, and 0 for those from `end` on.
template <int kSums, class T, class F>
HWY_INLINE void sum_blocks(std::int64_t n, double (&totals)[kSums], const F& f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN T room[kSums][hn::MaxLanes(d)];
  for (double& total : totals) total = 0;
  for (std::int64_t block = 0; block < n; block += kSumBlock) {
    const std::int64_t end = std::min(n, block + kSumBlock);
    for (auto& sums : room) hn::Store(hn::Zero(d), d, sums);
    for (std::int64_t i = block; i < end; i += lanes) f(d, i, end - i, room);
    for (int s = 0; s < kSums; ++s) {
      totals[s] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Load(d, room[s]))));
    }
  }
}

template <class D>
HWY_INLINE void add_to(D d, hn::TFromD<D>* sum, hn::VFromD<D> v) {
  hn::Store(hn::Add(hn::Load(d, sum), v), d, sum);
}

// to = y (g - sum(g y)), or g - exp(y) sum(g)
template <class W>
void softmax_row_gradient(const W* y, const W* g, W* to, std::int64_t n, bool logarithm) {
  double total[1];
  sum_blocks<1, W>(n, total, [&](auto d, std::int64_t i, std::int64_t left, auto& sums) {
    auto v = load_some(d, g + i, left, W(0));
    if (!logarithm) v = hn::Mul(v, load_some(d, y + i, left, W(0)));
    add_to(d, sums[0], v);
  });
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto sum = hn::Set(d, static_cast<W>(total[0]));
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto v = load_some(d, y + i, n - i, W(0)), with = load_some(d, g + i, n - i, W(0));
    store_some(d,
               logarithm ? hn::Sub(with, hn::Mul(exp(d, v), sum)) : hn::Mul(v, hn::Sub(with, sum)),
               to + i, n - i);
  }
}

void softmax_gradient_rows(const Tensor& y, const Tensor& g, Tensor& out, bool logarithm) {
  const Stream stream = out.device().stream();
  const std::int64_t n = y.dim(-1);
  visit_float("softmax", y.dtype(), [&]<class T> {
    const T *of = y.read<T>(stream), *with = g.read<T>(stream);
    T* to = out.write<T>(stream);
    in_parallel(y.count() / n, n, [&](std::int64_t first, std::int64_t last) {
      std::vector<Wide<T>> room, other, result;
      for (std::int64_t row = first; row < last; ++row) {
        const Wide<T>* values = wide_row(of + row * n, n, room);
        const Wide<T>* gradient = wide_row(with + row * n, n, other);
        if constexpr (std::is_same_v<T, Wide<T>>) {
          softmax_row_gradient(values, gradient, to + row * n, n, logarithm);
        } else {
          result.resize(static_cast<std::size_t>(n));
          softmax_row_gradient(values, gradient, result.data(), n, logarithm);
          narrow_row(result.data(), n, to + row * n, 1);
        }
      }
    });
  });
}

// to = (exp(x - most) scale - share) g
template <class W>
void cross_entropy_row_gradient(const W* x, W* to, std::int64_t n, W most, W scale, W share, W g) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, most), by = hn::Set(d, scale);
  const auto off = hn::Set(d, share), with = hn::Set(d, g);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto e = exp(d, hn::Sub(load_some(d, x + i, n - i, most), shift));
    store_some(d, hn::Mul(hn::MulSub(e, by, off), with), to + i, n - i);
  }
}

void cross_entropy_gradient_rows(const ops::CrossEntropyGradient& arguments,
                                 const std::vector<std::int64_t>& targets, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::int64_t rows = out.dim(0), n = out.dim(1);
  const std::int64_t row_step = arguments.logits.strides()[0], step = arguments.logits.strides()[1];
  const double smoothing = arguments.smoothing;
  visit_float("cross_entropy", out.dtype(), [&]<class T> {
    using W = Wide<T>;
    const T* x = arguments.logits.read<T>(stream);
    const W *g = arguments.g.read<W>(stream), *kept = arguments.kept.read<W>(stream);
    T* to = out.write<T>(stream);
    const auto share = static_cast<W>(smoothing / static_cast<double>(n));
    in_parallel(rows, n, [&](std::int64_t first, std::int64_t last) {
      std::vector<W> room(static_cast<std::size_t>(n));
      for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t target = targets[static_cast<std::size_t>(row)];
        if (target < 0) {
          std::fill_n(to + row * n, n, convert<T>(W(0)));
          continue;
        }
        const W most = kept[row], scale = W(1) / kept[rows + row];
        W* result = room.data();
        const W* from = room.data();
        if constexpr (std::is_same_v<T, W>) {
          result = to + row * n;
          if (step == 1) from = x + row * row_step;
        }
        if (from == room.data()) widen_row(x + row * row_step, step, n, room.data());
        const W at_target = std::exp(from[target] - most) * scale - share;
        cross_entropy_row_gradient(from, result, n, most, scale, share, g[row]);
        result[target] = (at_target - static_cast<W>(1 - smoothing)) * g[row];
        if constexpr (!std::is_same_v<T, W>) narrow_row(result, n, to + row * n, 1);
      }
    });
  });
}

// What a row was shifted and scaled by.
template <class W>
struct Statistics {
  W mean, scale;
};

// to = (g w - shift - (x - mean) slope) scale, where the two take off what moves the statistics.
template <class W>
Statistics<W> norm_row_gradient(const W* x, const W* g, const W* weight, W* to, std::int64_t n,
                                double epsilon, bool centered) {
  const auto count = static_cast<double>(n);
  const W mean = centered ? static_cast<W>(sum_row<false>(x, n, W(0)) / count) : W(0);
  const hn::ScalableTag<W> d;
  const auto away = hn::Set(d, mean);
  const auto weighted = [&](std::int64_t i, std::int64_t left) {
    const auto v = load_some(d, g + i, left, W(0));
    return weight == nullptr ? v : hn::Mul(v, load_some(d, weight + i, left, W(0)));
  };
  double totals[3];
  sum_blocks<3, W>(n, totals, [&](auto, std::int64_t i, std::int64_t left, auto& sums) {
    const auto off = hn::Sub(load_some(d, x + i, left, mean), away), v = weighted(i, left);
    add_to(d, sums[0], hn::Mul(off, off));
    add_to(d, sums[1], v);
    add_to(d, sums[2], hn::Mul(v, off));
  });
  const double scale = 1 / std::sqrt(totals[0] / count + epsilon);
  const auto by = hn::Set(d, static_cast<W>(scale));
  const auto shift = hn::Set(d, centered ? static_cast<W>(totals[1] / count) : W(0));
  const auto slope = hn::Set(d, static_cast<W>(totals[2] / count * scale * scale));
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto off = hn::Sub(load_some(d, x + i, n - i, mean), away);
    const auto rest = hn::Sub(hn::Sub(weighted(i, n - i), shift), hn::Mul(off, slope));
    store_some(d, hn::Mul(rest, by), to + i, n - i);
  }
  return {mean, static_cast<W>(scale)};
}

void norm_gradient_rows(const ops::NormGradientArguments& arguments, Tensor& out, Tensor& means,
                        Tensor& scales) {
  const Stream stream = out.device().stream();
  const std::int64_t rows = out.dim(0), n = out.dim(1);
  visit_float("norm", out.dtype(), [&]<class T> {
    using W = Wide<T>;
    const T *x = arguments.x->read<T>(stream), *g = arguments.g->read<T>(stream);
    std::vector<W> weights;
    const W* weight = arguments.weight == nullptr
                          ? nullptr
                          : wide_row(arguments.weight->read<T>(stream), n, weights);
    T* to = out.write<T>(stream);
    W *mean = means.write<W>(stream), *scale = scales.write<W>(stream);
    in_parallel(rows, n, [&](std::int64_t first, std::int64_t last) {
      std::vector<W> room, other, result;
      for (std::int64_t row = first; row < last; ++row) {
        const W* values = wide_row(x + row * n, n, room);
        const W* gradient = wide_row(g + row * n, n, other);
        Statistics<W> found{};
        if constexpr (std::is_same_v<T, W>) {
          found = norm_row_gradient(values, gradient, weight, to + row * n, n, arguments.epsilon,
                                    arguments.centered);
        } else {
          result.resize(static_cast<std::size_t>(n));
          found = norm_row_gradient(values, gradient, weight, result.data(), n, arguments.epsilon,
                                    arguments.centered);
          narrow_row(result.data(), n, to + row * n, 1);
        }
        mean[row] = found.mean;
        scale[row] = found.scale;
      }
    });
  });
}

// weights += g (x - mean) scale, biases += g
template <class W>
void add_row(const W* x, const W* g, std::int64_t n, W mean, W scale, W* weights, W* biases) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto away = hn::Set(d, mean), by = hn::Set(d, scale);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const std::int64_t left = n - i;
    const auto v = load_some(d, g + i, left, W(0));
    const auto normed = hn::Mul(hn::Sub(load_some(d, x + i, left, W(0)), away), by);
    store_some(d, hn::MulAdd(v, normed, load_some(d, weights + i, left, W(0))), weights + i, left);
    store_some(d, hn::Add(v, load_some(d, biases + i, left, W(0))), biases + i, left);
  }
}

void norm_weight_gradient_rows(const ops::NormWeightArguments& arguments, Tensor& weights,
                               Tensor& biases) {
  const Stream stream = weights.device().stream();
  const std::int64_t rows = arguments.x->dim(0), n = arguments.x->dim(1), each = arguments.each;
  visit_float("norm", arguments.x->dtype(), [&]<class T> {
    using W = Wide<T>;
    const T *x = arguments.x->read<T>(stream), *g = arguments.g->read<T>(stream);
    const W *means = arguments.means->read<W>(stream), *scales = arguments.scales->read<W>(stream);
    W *weight = weights.write<W>(stream), *bias = biases.write<W>(stream);
    in_parallel(weights.dim(0), n * each, [&](std::int64_t first, std::int64_t last) {
      std::vector<W> room, other;
      for (std::int64_t part = first; part < last; ++part) {
        std::fill_n(weight + part * n, n, W(0));
        std::fill_n(bias + part * n, n, W(0));
        for (std::int64_t row = part * each; row < std::min(rows, (part + 1) * each); ++row) {
          add_row(wide_row(x + row * n, n, room), wide_row(g + row * n, n, other), n, means[row],
                  scales[row], weight + part * n, bias + part * n);
        }
      }
    });
  });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(softmax_gradient_rows);
HWY_EXPORT(cross_entropy_gradient_rows);
HWY_EXPORT(norm_gradient_rows);
HWY_EXPORT(norm_weight_gradient_rows);

void softmax_gradient(const Tensor& y, const Tensor& g, Tensor& out, bool logarithm) {
  HWY_DYNAMIC_DISPATCH(softmax_gradient_rows)(y, g, out, logarithm);
}

void cross_entropy_gradient(const ops::CrossEntropyGradient& arguments, Tensor& out) {
  const Stream stream = out.device().stream();
  std::vector<std::int64_t> targets(static_cast<std::size_t>(out.dim(0)), kNothing);
  visit_float("cross_entropy", arguments.counted.dtype(), [&]<class W> {
    const W* counted = arguments.counted.read<W>(stream);
    visit_index(arguments.ids.dtype(), [&]<class Id> {
      const Id* ids = arguments.ids.read<Id>(stream);
      for (std::size_t i = 0; i < targets.size(); ++i) {
        if (convert<double>(counted[i]) != 0) targets[i] = static_cast<std::int64_t>(ids[i]);
      }
    });
  });
  HWY_DYNAMIC_DISPATCH(cross_entropy_gradient_rows)(arguments, targets, out);
}

void norm_gradient(const ops::NormGradientArguments& arguments, Tensor& out, Tensor& means,
                   Tensor& scales) {
  HWY_DYNAMIC_DISPATCH(norm_gradient_rows)(arguments, out, means, scales);
}

void norm_weight_gradient(const ops::NormWeightArguments& arguments, Tensor& weights,
                          Tensor& biases) {
  HWY_DYNAMIC_DISPATCH(norm_weight_gradient_rows)(arguments, weights, biases);
}

}  // namespace tl::cpu
#endif
