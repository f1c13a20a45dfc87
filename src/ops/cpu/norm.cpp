#include "ops/cpu/norm.h"

#include <cmath>
#include <utility>
#include <vector>

#include "ops/cpu/row_walk.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/norm.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

// y = (x - mean) * scale
template <class T>
HWY_INLINE void shift_and_scale(const T* x, T* y, std::int64_t n, T mean, T scale) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto away = hn::Set(d, mean), by = hn::Set(d, scale);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto v = load_some(d, x + i, n - i, T(0));
    store_some(d, hn::Mul(hn::Sub(v, away), by), y + i, n - i);
  }
}

// y = (x - mean) * scale * weight + bias, element by element
template <class T>
HWY_INLINE void normalize(const T* x, T* y, std::int64_t n, T mean, T scale, const T* weight,
                          const T* bias) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto away = hn::Set(d, mean), by = hn::Set(d, scale);
  for (std::int64_t i = 0; i < n; i += lanes) {
    auto v = hn::Mul(hn::Sub(load_some(d, x + i, n - i, T(0)), away), by);
    if (weight != nullptr) v = hn::Mul(v, load_some(d, weight + i, n - i, T(0)));
    if (bias != nullptr) v = hn::Add(v, load_some(d, bias + i, n - i, T(0)));
    store_some(d, v, y + i, n - i);
  }
}

// Weight and bias as they are computed with.
template <class T>
std::vector<Wide<T>> widened(const Tensor* tensor, const Stream& stream) {
  if (tensor == nullptr) return {};
  std::vector<Wide<T>> values(static_cast<std::size_t>(tensor->count()));
  widen_row(tensor->read<T>(stream), 1, tensor->count(), values.data());
  return values;
}

template <class W>
const W* data_or_null(const std::vector<W>& values) {
  return values.empty() ? nullptr : values.data();
}

// One row of wide numbers; x and y may be the same.
template <class W>
void norm_row(const W* x, W* y, std::int64_t n, std::int64_t row,
              const ops::NormArguments& arguments, const W* weight, const W* bias) {
  const auto count = static_cast<double>(n);
  const W mean = arguments.centered ? static_cast<W>(sum_row<false>(x, n, W(0)) / count) : W(0);
  const double squares = sum_row<true>(x, n, mean) / count;
  const W scale = static_cast<W>(1 / std::sqrt(squares + arguments.epsilon));
  const std::int64_t first = row % arguments.period * arguments.channels;
  if (arguments.inner == 1) {
    normalize(x, y, n, mean, scale, weight == nullptr ? nullptr : weight + first,
              bias == nullptr ? nullptr : bias + first);
    return;
  }
  for (std::int64_t c = 0; c < n / arguments.inner; ++c) {
    const W by = weight == nullptr ? scale : scale * weight[first + c];
    const W* from = x + c * arguments.inner;
    W* to = y + c * arguments.inner;
    shift_and_scale(from, to, arguments.inner, mean, by);
    if (bias == nullptr) continue;
    for (std::int64_t i = 0; i < arguments.inner; ++i) to[i] += bias[first + c];
  }
}

template <class T>
void norm_of(const Tensor& in, Tensor& out, const ops::NormArguments& arguments) {
  const Stream stream = out.device().stream();
  const ops::RowLayout rows = ops::row_layout(in.layout(), out.layout(), in.rank() - 1);
  const auto weights = widened<T>(arguments.weight, stream);
  const auto biases = widened<T>(arguments.bias, stream);
  const Wide<T>* weight = data_or_null(weights);
  const Wide<T>* bias = data_or_null(biases);
  const T* x = in.read<T>(stream);
  T* y = out.write<T>(stream);
  for_rows(rows, rows.n, [&] {
    std::vector<Wide<T>> room;
    if (!std::is_same_v<T, Wide<T>> || rows.in_step != 1) {
      room.resize(static_cast<std::size_t>(rows.n));
    }
    return [&rows, &arguments, x, y, weight, bias, room = std::move(room)](
               std::int64_t row, std::int64_t from, std::int64_t to) mutable {
      if constexpr (std::is_same_v<T, Wide<T>>) {
        const T* start = x + from;
        if (rows.in_step != 1) {
          widen_row(start, rows.in_step, rows.n, room.data());
          start = room.data();
        }
        norm_row(start, y + to, rows.n, row, arguments, weight, bias);
      } else {
        widen_row(x + from, rows.in_step, rows.n, room.data());
        norm_row(room.data(), room.data(), rows.n, row, arguments, weight, bias);
        narrow_row(room.data(), rows.n, y + to, 1);
      }
    };
  });
}

void norm_rows(const Tensor& in, Tensor& out, const ops::NormArguments& arguments) {
  visit_float("norm", in.dtype(), [&]<class T> { norm_of<T>(in, out, arguments); });
}

template <class T>
void batch_norm_of(const Tensor& in, Tensor& out, const ops::BatchNormArguments& arguments) {
  using W = Wide<T>;
  const Stream stream = out.device().stream();
  const std::int64_t channels = in.shape()[1], last = in.rank() - 1;
  const auto means = widened<T>(arguments.mean, stream);
  auto scales = widened<T>(arguments.variance, stream);
  const auto weights = widened<T>(arguments.weight, stream);
  const auto biases = widened<T>(arguments.bias, stream);
  for (std::size_t c = 0; c < scales.size(); ++c) {
    scales[c] = W(1) / std::sqrt(scales[c] + static_cast<W>(arguments.epsilon));
    if (!weights.empty()) scales[c] *= weights[c];
  }
  const T* x = in.read<T>(stream);
  T* y = out.write<T>(stream);
  // (b, c): each row is the whole vector of channels; else each row lies within one channel.
  const bool across = last == 1;
  const ops::RowLayout rows = ops::row_layout(in.layout(), out.layout(), static_cast<int>(last));
  std::int64_t per_channel = 1;  // rows in a channel
  for (int d = 2; d < last; ++d) per_channel *= in.shape()[d];
  for_rows(rows, rows.n, [&] {
    std::vector<W> room(static_cast<std::size_t>(rows.n));
    return
        [&, room = std::move(room)](std::int64_t row, std::int64_t from, std::int64_t to) mutable {
          widen_row(x + from, rows.in_step, rows.n, room.data());
          if (across) {
            for (std::size_t c = 0; c < room.size(); ++c) {
              room[c] = (room[c] - means[c]) * scales[c] + (biases.empty() ? W(0) : biases[c]);
            }
          } else {
            const auto c = static_cast<std::size_t>(row / per_channel % channels);
            shift_and_scale(room.data(), room.data(), rows.n, means[c], scales[c]);
            if (!biases.empty()) {
              for (W& value : room) value += biases[c];
            }
          }
          narrow_row(room.data(), rows.n, y + to, 1);
        };
  });
}

void batch_norm_rows(const Tensor& in, Tensor& out, const ops::BatchNormArguments& arguments) {
  visit_float("batch_norm", in.dtype(), [&]<class T> { batch_norm_of<T>(in, out, arguments); });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(norm_rows);
HWY_EXPORT(batch_norm_rows);

void norm(const Tensor& in, Tensor& out, const ops::NormArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(norm_rows)(in, out, arguments);
}

void batch_norm(const Tensor& in, Tensor& out, const ops::BatchNormArguments& arguments) {
  HWY_DYNAMIC_DISPATCH(batch_norm_rows)(in, out, arguments);
}

}  // namespace tl::cpu
#endif
