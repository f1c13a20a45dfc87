#include "ops/cpu/softmax.h"

#include <cmath>
#include <limits>
#include <vector>

#include "ops/cpu/aligned.h"
#include "ops/cpu/row_walk.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/softmax.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

// The largest element; where there is a NaN, any number: the sum shows it.
template <class T>
HWY_INLINE T row_max(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr T kLeast = -std::numeric_limits<T>::infinity();
  auto a = hn::Set(d, kLeast), b = a;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Max(a, hn::LoadU(d, x + i));
    b = hn::Max(b, hn::LoadU(d, x + i + lanes));
  }
  for (; i < n; i += lanes) a = hn::Max(a, load_some(d, x + i, n - i, kLeast));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
}

// x and y may be the same row.
template <class T>
void softmax_row(const T* x, T* y, std::int64_t n, bool logarithm) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T most = row_max(x, n);
  const auto shift = hn::Set(d, most);
  double total = 0;
  for (std::int64_t block = 0; block < n; block += kSumBlock) {
    const std::int64_t end = std::min(n, block + kSumBlock);
    auto sum = hn::Zero(d);
    for (std::int64_t i = block; i < end; i += lanes) {
      const auto v = load_some(d, x + i, end - i, -std::numeric_limits<T>::infinity());
      const auto e = exp(d, hn::Sub(v, shift));
      sum = hn::Add(sum, e);
      if (!logarithm) store_some(d, e, y + i, end - i);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  const auto by = hn::Set(d, static_cast<T>(logarithm ? std::log(total) : 1 / total));
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto v = load_some(d, (logarithm ? x : y) + i, n - i, T(0));
    store_some(d, logarithm ? hn::Sub(hn::Sub(v, shift), by) : hn::Mul(v, by), y + i, n - i);
  }
}

// `width` rows side by side in a (n, width) buffer, width a multiple of the lanes; in place.
template <class T>
void softmax_columns(T* x, std::int64_t n, std::int64_t width, bool logarithm) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < width; c += lanes) {
    auto most = hn::Set(d, -std::numeric_limits<T>::infinity());
    for (std::int64_t i = 0; i < n; ++i) most = hn::Max(most, hn::Load(d, x + i * width + c));
    // Compensated: the rows may be long, and there is no wider lane to add them in.
    auto sum = hn::Zero(d), lost = hn::Zero(d);
    for (std::int64_t i = 0; i < n; ++i) {
      T* at = x + i * width + c;
      const auto v = hn::Sub(hn::Load(d, at), most);
      const auto e = exp(d, v);
      hn::Store(logarithm ? v : e, d, at);
      const auto add = hn::Sub(e, lost);
      const auto next = hn::Add(sum, add);
      lost = hn::Sub(hn::Sub(next, sum), add);
      sum = next;
    }
    HWY_ALIGN T by[hn::MaxLanes(d)];
    hn::Store(sum, d, by);
    for (std::int64_t j = 0; j < lanes; ++j) by[j] = logarithm ? std::log(by[j]) : T(1) / by[j];
    const auto scale = hn::Load(d, by);
    for (std::int64_t i = 0; i < n; ++i) {
      T* at = x + i * width + c;
      const auto v = hn::Load(d, at);
      hn::Store(logarithm ? hn::Sub(v, scale) : hn::Mul(v, scale), d, at);
    }
  }
}

template <class T>
void softmax_along_rows(const T* in, T* out, const ops::RowLayout& rows, bool logarithm) {
  for_rows(rows, rows.n, [&] {
    std::vector<Wide<T>> room;
    if (!std::is_same_v<T, Wide<T>> || rows.in_step != 1) {
      room.resize(static_cast<std::size_t>(rows.n));
    }
    return [&rows, in, out, logarithm, room = std::move(room)](std::int64_t, std::int64_t from,
                                                               std::int64_t to) mutable {
      if constexpr (std::is_same_v<T, Wide<T>>) {
        const T* row = in + from;
        if (rows.in_step != 1) {
          widen_row(row, rows.in_step, rows.n, room.data());
          row = room.data();
        }
        softmax_row(row, out + to, rows.n, logarithm);
      } else {
        widen_row(in + from, rows.in_step, rows.n, room.data());
        softmax_row(room.data(), room.data(), rows.n, logarithm);
        narrow_row(room.data(), rows.n, out + to, 1);
      }
    };
  });
}

// Rows taken side by side.
inline constexpr std::int64_t kWidth = 32;

// The dimension is not the last: neighbouring rows lie together, and are taken side by side. The
// last of `rows.outer` is the dimension along which they do.
template <class T>
void softmax_along_columns(const T* in, T* out, const ops::RowLayout& rows, bool logarithm) {
  const std::int64_t inner = rows.outer.back(), in_inner = rows.in_strides.back();
  const std::int64_t pieces = (inner + kWidth - 1) / kWidth;
  ops::RowLayout blocks = rows;  // of kWidth rows
  blocks.outer[blocks.outer.size() - 1] = pieces;
  blocks.in_strides[blocks.outer.size() - 1] *= kWidth;
  blocks.out_strides[blocks.outer.size() - 1] *= kWidth;
  blocks.rows = rows.rows / inner * pieces;
  for_rows(blocks, rows.n * std::min(inner, kWidth), [&] {
    auto room = aligned<Wide<T>>(static_cast<std::size_t>(rows.n * kWidth));
    return [&rows, in, out, logarithm, inner, in_inner, pieces, room = std::move(room)](
               std::int64_t block, std::int64_t from, std::int64_t to) {
      const std::int64_t width = std::min(kWidth, inner - block % pieces * kWidth);
      Wide<T>* x = room.get();
      for (std::int64_t i = 0; i < rows.n; ++i) {
        widen_row(in + from + i * rows.in_step, in_inner, width, x + i * kWidth);
        std::fill(x + i * kWidth + width, x + (i + 1) * kWidth, Wide<T>(0));
      }
      softmax_columns(x, rows.n, kWidth, logarithm);
      for (std::int64_t i = 0; i < rows.n; ++i) {
        narrow_row(x + i * kWidth, width, out + to + i * rows.out_step, 1);
      }
    };
  });
}

void softmax_rows(const Tensor& in, Tensor& out, int dim, bool logarithm) {
  const Stream stream = out.device().stream();
  const ops::RowLayout rows = ops::row_layout(in.layout(), out.layout(), dim);
  visit_float("softmax", in.dtype(), [&]<class T> {
    const T* from = in.read<T>(stream);
    T* to = out.write<T>(stream);
    if (rows.out_step == 1) {
      softmax_along_rows(from, to, rows, logarithm);
    } else {
      softmax_along_columns(from, to, rows, logarithm);
    }
  });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(softmax_rows);

void softmax(const Tensor& in, Tensor& out, int dim, bool logarithm) {
  HWY_DYNAMIC_DISPATCH(softmax_rows)(in, out, dim, logarithm);
}

}  // namespace tl::cpu
#endif
