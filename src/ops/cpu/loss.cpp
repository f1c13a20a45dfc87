#include "ops/cpu/loss.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ops/cpu/index.h"
#include "ops/cpu/row_walk.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/loss.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

// The largest of a row (any number where there is a NaN: the sum shows it) and the sum of
// exp(x - most).
template <class W>
std::pair<W, double> soft_sum(const W* x, std::int64_t n) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr W kLeast = -std::numeric_limits<W>::infinity();
  auto largest = hn::Set(d, kLeast);
  for (std::int64_t i = 0; i < n; i += lanes) {
    largest = hn::Max(largest, load_some(d, x + i, n - i, kLeast));
  }
  const W most = hn::GetLane(hn::MaxOfLanes(d, largest));
  const auto shift = hn::Set(d, most);
  double total = 0;
  for (std::int64_t block = 0; block < n; block += kSumBlock) {
    const std::int64_t end = std::min(n, block + kSumBlock);
    auto sum = hn::Zero(d);
    for (std::int64_t i = block; i < end; i += lanes) {
      sum = hn::Add(sum, exp(d, hn::Sub(load_some(d, x + i, end - i, kLeast), shift)));
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return {most, total};
}

template <class T>
void cross_entropy_of(const Tensor& logits, const std::vector<std::int64_t>& targets,
                      Tensor& losses, Tensor& counted,
                      const ops::CrossEntropyArguments& arguments) {
  using W = Wide<T>;
  const Stream stream = losses.device().stream();
  const T* x = logits.read<T>(stream);
  W* loss = losses.write<W>(stream);
  W* count = counted.write<W>(stream);
  W* kept = arguments.kept == nullptr ? nullptr : arguments.kept->write<W>(stream);
  const double smoothing = arguments.smoothing;
  const ops::RowLayout rows = ops::row_layout(logits.layout(), logits.layout(), 1);
  for_rows(rows, rows.n, [&] {
    std::vector<W> room(static_cast<std::size_t>(rows.n));
    return [&, room = std::move(room)](std::int64_t row, std::int64_t from, std::int64_t) mutable {
      const std::int64_t target = targets[static_cast<std::size_t>(row)];
      loss[row] = count[row] = W(0);
      if (target == kNothing) return;
      widen_row(x + from, rows.in_step, rows.n, room.data());
      const auto [most, sum] = soft_sum(room.data(), rows.n);
      const double all = std::log(sum);
      double result = all - (room[static_cast<std::size_t>(target)] - most);
      if (smoothing != 0) {
        const double mean = sum_row<false>(room.data(), rows.n, most) / static_cast<double>(rows.n);
        result = (1 - smoothing) * result + smoothing * (all - mean);
      }
      loss[row] = static_cast<W>(result);
      if (kept != nullptr) {
        kept[row] = most;
        kept[rows.rows + row] = static_cast<W>(sum);
      }
      count[row] = W(1);
    };
  });
}

void cross_entropy_rows(const Tensor& logits, const std::vector<std::int64_t>& targets,
                        Tensor& losses, Tensor& counted,
                        const ops::CrossEntropyArguments& arguments) {
  visit_float("cross_entropy", logits.dtype(),
              [&]<class T> { cross_entropy_of<T>(logits, targets, losses, counted, arguments); });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(cross_entropy_rows);

void cross_entropy(const Tensor& logits, const Tensor& targets, Tensor& losses, Tensor& counted,
                   const ops::CrossEntropyArguments& arguments) {
  std::vector<std::int64_t> classes;
  classes.reserve(static_cast<std::size_t>(targets.count()));
  visit_index(targets.dtype(), [&]<class Id> {
    const Id* ids = targets.read<Id>(targets.device().stream());
    for (std::int64_t i = 0; i < targets.count(); ++i) {
      const bool ignored =
          arguments.ignore_index.has_value() && std::cmp_equal(ids[i], *arguments.ignore_index);
      classes.push_back(ignored ? kNothing
                                : checked_index("cross_entropy", ids, i, logits.shape()[1]));
    }
  });
  HWY_DYNAMIC_DISPATCH(cross_entropy_rows)(logits, classes, losses, counted, arguments);
}

void total(const Tensor& losses, const Tensor& counted, Tensor& out, bool mean) {
  const Stream stream = out.device().stream();
  visit_float("cross_entropy", losses.dtype(), [&]<class W> {
    const W* loss = losses.read<W>(stream);
    const W* count = counted.read<W>(stream);
    double sum = 0, rows = 0;
    for (std::int64_t i = 0; i < losses.count(); ++i) {
      sum += static_cast<double>(loss[i]);
      rows += static_cast<double>(count[i]);
    }
    visit_float("cross_entropy", out.dtype(),
                [&]<class T> { *out.write<T>(stream) = convert<T>(mean ? sum / rows : sum); });
  });
}

}  // namespace tl::cpu
#endif
