#include "ops/cpu/scan.h"

#include <algorithm>
#include <type_traits>

#include "ops/cpu/walk.h"

namespace tl::cpu {

namespace {

using kernels::Index;

// f32 lines add up in f64: one addition follows the other, so nothing else keeps the error small.
template <class T>
using Total = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

template <class T, bool kProduct>
Total<T> join(Total<T> a, T x) {
  using N = Total<T>;
  const N value = std::is_integral_v<T> ? static_cast<N>(x) : static_cast<N>(convert<double>(x));
  return kProduct ? a * value : a + value;
}

// Lines that are taken side by side.
constexpr Index kLines = 64;

template <class T, bool kProduct>
void scan_lines(const ops::ScanPlan& plan, const T* in, T* out) {
  using N = Total<T>;
  const Index lines = plan.lines.count, count = plan.count;
  const Index in_step = plan.in_step, out_step = plan.out_step;
  // Runs of lines along the innermost dimension lie evenly apart.
  const Index inner = static_cast<Index>(plan.lines.dim[0].size);
  const Index in_apart = plan.lines.stride[0][0], out_apart = plan.lines.stride[1][0];
  const bool together = out_step != 1 && inner > 1;
  const Index tile = together ? std::min(inner, kLines) : 1;
  const Index tiles_per_run = (inner + tile - 1) / tile;
  const Index tiles = together ? lines / inner * tiles_per_run : lines;
  const Index grain = std::max<Index>(kGrain / (tile * count), 1);
  ThreadPool::shared().parallel_for(0, tiles, grain, [&](Index first, Index last) {
    for (Index t = first; t < last; ++t) {
      const Index column = together ? t % tiles_per_run * tile : 0;
      const auto at = offsets(plan.lines, together ? t / tiles_per_run * inner + column : t);
      const T* x = in + at.at[0];
      T* y = out + at.at[1];
      if (!together) {
        N total = kProduct ? 1 : 0;
        for (Index i = 0; i < count; ++i) {
          total = join<T, kProduct>(total, x[i * in_step]);
          y[i * out_step] = convert<T>(total);
        }
        continue;
      }
      const Index width = std::min(tile, inner - column);
      N total[kLines];
      std::fill(total, total + width, kProduct ? 1 : 0);
      for (Index i = 0; i < count; ++i) {
        const T* row = x + i * in_step;
        T* to = y + i * out_step;
        for (Index c = 0; c < width; ++c) {
          total[c] = join<T, kProduct>(total[c], row[c * in_apart]);
          to[c * out_apart] = convert<T>(total[c]);
        }
      }
    }
  });
}

}  // namespace

void scan(const ops::ScanPlan& plan, const Tensor& x, Tensor& out) {
  const Stream stream = out.device().stream();
  visit_dtype("scan", x.dtype(), [&]<class T> {
    if constexpr (!std::is_same_v<T, bool>) {
      const T* in = x.read<T>(stream);
      T* to = out.write<T>(stream);
      if (plan.op == ScanOp::Prod) {
        scan_lines<T, true>(plan, in, to);
      } else {
        scan_lines<T, false>(plan, in, to);
      }
    }
  });
}

}  // namespace tl::cpu
