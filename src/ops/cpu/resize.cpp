// Resizing on the CPU, compiled for every instruction set that Highway knows. Where each column
// comes from is worked out once; the rows of all planes are then shared by the threads.
#include "ops/cpu/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/cpu/copy.h"
#include "tl/base/thread_pool.h"
#include "tl/ops/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/resize.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

using ops::Resizing;
using ops::ResizingAxis;

// Calls f(plane, first row, last row) for stretches of rows of the output.
template <class F>
void by_rows(const Resizing& resizing, std::int64_t planes, const F& f) {
  const std::int64_t height = resizing[0].out;
  constexpr std::int64_t kWorth = 16384;  // elements worth a thread
  const std::int64_t grain = std::max<std::int64_t>(1, kWorth / resizing[1].out);
  ThreadPool::shared().parallel_for(
      0, planes * height, grain, [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
          const std::int64_t plane = begin / height;
          const std::int64_t last = std::min(end, (plane + 1) * height);
          f(plane, begin - plane * height, last - plane * height);
          begin = last;
        }
      });
}

template <class T>
void nearest(const Resizing& resizing, const T* x, T* y, std::int64_t planes) {
  const auto& [height, width] = resizing;
  std::vector<std::int32_t> columns(static_cast<std::size_t>(width.out));
  for (std::int64_t o = 0; o < width.out; ++o) {
    columns[static_cast<std::size_t>(o)] = static_cast<std::int32_t>(o * width.in / width.out);
  }
  by_rows(resizing, planes, [&](std::int64_t plane, std::int64_t first, std::int64_t last) {
    std::int64_t before = -1;  // the row that the last one was made from
    T* to = y + (plane * height.out + first) * width.out;
    for (std::int64_t row = first; row < last; ++row, to += width.out) {
      const std::int64_t source = row * height.in / height.out;
      if (source == before) {
        std::memcpy(to, to - width.out, static_cast<std::size_t>(width.out) * sizeof(T));
        continue;
      }
      before = source;
      const T* from = x + (plane * height.in + source) * width.in;
      for (std::int64_t o = 0; o < width.out; ++o) {
        to[o] = from[columns[static_cast<std::size_t>(o)]];
      }
    }
  });
}

// The two places between which an output lies, and how far towards the second.
struct Between {
  std::int32_t first;
  std::int32_t second;
  double part;
};

inline Between between(const ResizingAxis& axis, std::int64_t o) {
  const double at = std::max(std::fma(axis.scale, static_cast<double>(o), axis.shift), 0.0);
  const auto end = static_cast<double>(axis.in - 1);
  const double first = std::floor(std::min(at, end));
  return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(std::min(first + 1, end)),
          std::min(at - first, 1.0)};
}

template <class T>
void bilinear(const Resizing& resizing, const T* x, T* y, std::int64_t planes) {
  const auto& [height, width] = resizing;
  const auto out = static_cast<std::size_t>(width.out);
  const auto in = static_cast<std::size_t>(width.in);
  std::vector<std::int32_t> left(out), right(out);
  std::vector<T> part(out);
  for (std::size_t o = 0; o < out; ++o) {
    const Between here = between(width, static_cast<std::int64_t>(o));
    left[o] = here.first;
    right[o] = here.second;
    part[o] = static_cast<T>(here.part);
  }
  by_rows(resizing, planes, [&](std::int64_t plane, std::int64_t first, std::int64_t last) {
    std::vector<T> mixed(in);  // two rows of the input become one
    const T* from = x + plane * height.in * width.in;
    T* to = y + (plane * height.out + first) * width.out;
    for (std::int64_t row = first; row < last; ++row, to += width.out) {
      const Between here = between(height, row);
      const T* top = from + here.first * width.in;
      const T* bottom = from + here.second * width.in;
      const T down = static_cast<T>(here.part), up = T(1) - down;
      T* const m = mixed.data();
      for (std::size_t i = 0; i < in; ++i) m[i] = top[i] * up + bottom[i] * down;
      const std::int32_t* const l = left.data();
      const std::int32_t* const r = right.data();
      const T* const p = part.data();
      for (std::size_t o = 0; o < out; ++o) to[o] = m[l[o]] * (T(1) - p[o]) + m[r[o]] * p[o];
    }
  });
}

void nearest_any(const Resizing& resizing, const Tensor& x, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::int64_t planes = x.shape()[0] * x.shape()[1];
  const auto with = [&]<class T>() {
    nearest(resizing, x.read<T>(stream), out.write<T>(stream), planes);
  };
  switch (size_of(x.dtype())) {
    case 1:
      return with.template operator()<std::uint8_t>();
    case 2:
      return with.template operator()<std::uint16_t>();
    case 4:
      return with.template operator()<std::uint32_t>();
    default:
      return with.template operator()<std::uint64_t>();
  }
}

void bilinear_any(const Resizing& resizing, const Tensor& x, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::int64_t planes = x.shape()[0] * x.shape()[1];
  if (x.dtype() == DType::F64) {
    bilinear(resizing, x.read<double>(stream), out.write<double>(stream), planes);
  } else {
    bilinear(resizing, x.read<float>(stream), out.write<float>(stream), planes);
  }
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tl::cpu {

HWY_EXPORT(nearest_any);
HWY_EXPORT(bilinear_any);

void resize_nearest(const ops::Resizing& resizing, const Tensor& x, Tensor& out) {
  HWY_DYNAMIC_DISPATCH(nearest_any)(resizing, contiguous(x), out);
}

void resize_bilinear(const ops::Resizing& resizing, const Tensor& x, Tensor& out) {
  if (x.dtype() == DType::F32 || x.dtype() == DType::F64) {
    HWY_DYNAMIC_DISPATCH(bilinear_any)(resizing, contiguous(x), out);
    return;
  }
  Tensor wide = Tensor::uninitialized(out.shape(), DType::F32, out.device());
  HWY_DYNAMIC_DISPATCH(bilinear_any)(resizing, contiguous(to_dtype(x, DType::F32)), wide);
  cast(wide, out);
}

}  // namespace tl::cpu

#endif
