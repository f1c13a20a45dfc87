// Pooling on the CPU, compiled for every instruction set that Highway knows.
//
// Narrow windows are folded row by row: one tap of the window at a time, along the whole row of the
// output, so that the innermost loop is vectorised. Wide ones and those of adaptive pooling are
// folded one after another, along the input.
#include "ops/cpu/pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/cpu/copy.h"
#include "tl/base/thread_pool.h"
#include "tl/ops/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/pool.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

using ops::Pooling;
using ops::PoolingAxis;

// The part of a window that lies inside the input, and the number an average divides by.
struct Span {
  std::int64_t first;
  std::int64_t last;
  std::int64_t size;
};

inline Span span_of(const PoolingAxis& axis, bool count_include_pad, std::int64_t o) {
  if (axis.kernel == 0) {
    const std::int64_t first = o * axis.in / axis.out;
    const std::int64_t last = ((o + 1) * axis.in + axis.out - 1) / axis.out;
    return {first, last, last - first};
  }
  const std::int64_t start = o * axis.stride - axis.padding;
  const std::int64_t first = std::max<std::int64_t>(start, 0);
  const std::int64_t last = std::min(start + axis.kernel, axis.in);
  return {first, last, count_include_pad ? axis.kernel : last - first};
}

// Sums in f64, so that large windows lose nothing; a few elements in T first, which is faster.
template <class T>
struct Mean {
  using Value = double;
  using Part = T;
  static constexpr Value kStart = 0;
  template <class V>
  static V fold(V sum, V x) {
    return sum + x;
  }
  static T finish(Value sum, std::int64_t size) {
    return static_cast<T>(sum / static_cast<double>(size));
  }
};

template <class T>
struct Maximum {
  using Value = T;
  using Part = T;
  using Limits = std::numeric_limits<T>;
  static constexpr Value kStart = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  static Value fold(Value a, Value b) { return a > b || a != a ? a : b; }  // NaN wins
  static T finish(Value value, std::int64_t /*size*/) { return value; }
};

constexpr std::int64_t kStretch = 256;
constexpr std::int64_t kWide = 16;  // a window with this many columns is folded by itself

// One row of the output from narrow windows.
template <class T, class Op>
void fold_row(const PoolingAxis& axis, bool count_include_pad, const Span& rows, const T* x,
              std::int64_t row_length, T* y) {
  using Value = typename Op::Value;
  std::array<Value, kStretch> values{};
  for (std::int64_t first = 0; first < axis.out; first += kStretch) {
    const std::int64_t last = std::min(first + kStretch, axis.out);
    std::fill_n(values.begin(), last - first, Op::kStart);
    for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
      const std::int64_t shift = tap - axis.padding;  // in = o * stride + shift
      std::int64_t from = first;
      while (from < last && from * axis.stride + shift < 0) ++from;
      std::int64_t to = last;
      while (to > from && (to - 1) * axis.stride + shift >= axis.in) --to;
      Value* const v = values.data() + (from - first);
      const std::int64_t count = to - from;
      for (std::int64_t row = rows.first; row < rows.last; ++row) {
        const T* const from_row = x + row * row_length + from * axis.stride + shift;
        if (axis.stride == 1) {
          for (std::int64_t i = 0; i < count; ++i)
            v[i] = Op::fold(v[i], static_cast<Value>(from_row[i]));
        } else if (axis.stride == 2) {
          for (std::int64_t i = 0; i < count; ++i)
            v[i] = Op::fold(v[i], static_cast<Value>(from_row[2 * i]));
        } else {
          for (std::int64_t i = 0; i < count; ++i)
            v[i] = Op::fold(v[i], static_cast<Value>(from_row[i * axis.stride]));
        }
      }
    }
    if (count_include_pad || axis.padding == 0) {
      const std::int64_t size = rows.size * axis.kernel;
      for (std::int64_t o = first; o < last; ++o) {
        y[o] = Op::finish(values[static_cast<std::size_t>(o - first)], size);
      }
    } else {
      for (std::int64_t o = first; o < last; ++o) {
        const std::int64_t size = rows.size * span_of(axis, false, o).size;
        y[o] = Op::finish(values[static_cast<std::size_t>(o - first)], size);
      }
    }
  }
}

// A run of elements side by side.
template <class T, class Op>
typename Op::Value fold_run(typename Op::Value value, const T* x, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  constexpr std::int64_t kPart = 64 * kLanes;  // elements folded in Part
  while (count >= kLanes) {
    std::array<typename Op::Part, kLanes> lanes{};
    lanes.fill(static_cast<typename Op::Part>(Op::kStart));
    const std::int64_t here = std::min(count, kPart) / kLanes * kLanes;
    for (std::int64_t i = 0; i < here; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) {
        auto& lane = lanes[static_cast<std::size_t>(j)];
        lane = Op::fold(lane, x[i + j]);
      }
    }
    for (const auto lane : lanes) value = Op::fold(value, static_cast<typename Op::Value>(lane));
    x += here;
    count -= here;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    value = Op::fold(value, static_cast<typename Op::Value>(x[i]));
  }
  return value;
}

template <class T, class Op>
T fold_window(const Span& rows, const Span& columns, const T* x, std::int64_t row_length) {
  using Value = typename Op::Value;
  constexpr std::int64_t kLanes = 16;
  constexpr std::int64_t kLong = 8 * kLanes;
  const std::int64_t wide = columns.last - columns.first;
  Value value = Op::kStart;
  if (wide == row_length) {  // whole rows are one run
    value = fold_run<T, Op>(value, x + rows.first * row_length, (rows.last - rows.first) * wide);
  } else if (wide >= kLong) {
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      value = fold_run<T, Op>(value, x + row * row_length + columns.first, wide);
    }
  } else {  // lanes are kept from row to row
    std::array<Value, kLanes> lanes{};
    lanes.fill(Op::kStart);
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      const T* from = x + row * row_length + columns.first;
      for (std::int64_t i = 0; i < wide; i += kLanes) {
        const std::int64_t here = std::min(kLanes, wide - i);
        for (std::int64_t j = 0; j < here; ++j) {
          auto& lane = lanes[static_cast<std::size_t>(j)];
          lane = Op::fold(lane, static_cast<Value>(from[i + j]));
        }
      }
    }
    for (const Value lane : lanes) value = Op::fold(value, lane);
  }
  return Op::finish(value, rows.size * columns.size);
}

template <class T, class Op>
void pool(const Pooling& pooling, const T* x, T* y, std::int64_t planes) {
  const auto& [height, width] = pooling.axes;
  const bool padded = pooling.count_include_pad;
  const bool wide = width.kernel == 0 || width.kernel >= kWide;
  const std::int64_t rows_each = height.kernel == 0 ? height.in / height.out + 1 : height.kernel;
  constexpr std::int64_t kWorth = 32768;  // elements worth a thread
  const std::int64_t grain = std::max<std::int64_t>(1, kWorth / (rows_each * width.in));
  ThreadPool::shared().parallel_for(
      0, planes * height.out, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const std::int64_t plane = r / height.out;
          const Span rows = span_of(height, padded, r % height.out);
          const T* from = x + plane * height.in * width.in;
          T* to = y + r * width.out;
          if (!wide) {
            fold_row<T, Op>(width, padded, rows, from, width.in, to);
            continue;
          }
          for (std::int64_t o = 0; o < width.out; ++o) {
            to[o] = fold_window<T, Op>(rows, span_of(width, padded, o), from, width.in);
          }
        }
      });
}

void avg_pool_any(const Pooling& pooling, const Tensor& x, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::int64_t planes = x.shape()[0] * x.shape()[1];
  if (x.dtype() == DType::F64) {
    pool<double, Mean<double>>(pooling, x.read<double>(stream), out.write<double>(stream), planes);
  } else {
    pool<float, Mean<float>>(pooling, x.read<float>(stream), out.write<float>(stream), planes);
  }
}

void max_pool_any(const Pooling& pooling, const Tensor& x, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::int64_t planes = x.shape()[0] * x.shape()[1];
  visit_dtype("max_pool", x.dtype(), [&]<class T> {
    if constexpr (!kIsSmallFloat<T> && !std::is_same_v<T, bool>) {
      pool<T, Maximum<T>>(pooling, x.read<T>(stream), out.write<T>(stream), planes);
    }
  });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tl::cpu {

HWY_EXPORT(avg_pool_any);
HWY_EXPORT(max_pool_any);

namespace {

bool is_small_float(DType dtype) { return is_float(dtype) && size_of(dtype) < sizeof(float); }

// Small floats go through f32, which holds them exactly.
template <class Pool>
void through_f32(const Tensor& x, Tensor& out, Pool&& pool) {
  Tensor wide = Tensor::uninitialized(out.shape(), DType::F32, out.device());
  pool(contiguous(to_dtype(x, DType::F32)), wide);
  cast(wide, out);
}

}  // namespace

void avg_pool(const ops::Pooling& pooling, const Tensor& x, Tensor& out) {
  const auto pool = [&](const Tensor& from, Tensor& to) {
    HWY_DYNAMIC_DISPATCH(avg_pool_any)(pooling, from, to);
  };
  is_small_float(x.dtype()) ? through_f32(x, out, pool) : pool(contiguous(x), out);
}

void max_pool(const ops::Pooling& pooling, const Tensor& x, Tensor& out) {
  const auto pool = [&](const Tensor& from, Tensor& to) {
    HWY_DYNAMIC_DISPATCH(max_pool_any)(pooling, from, to);
  };
  is_small_float(x.dtype()) ? through_f32(x, out, pool) : pool(contiguous(x), out);
}

}  // namespace tl::cpu

#endif
