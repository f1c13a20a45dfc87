#include "ops/cpu/create.h"

#include "kernels/random_numbers.h"
#include "ops/cpu/walk.h"

namespace tl::cpu {

void arange(Tensor& out, Scalar start, Scalar step) {
  const Stream stream = out.device().stream();
  visit_dtype("arange", out.dtype(), [&]<class T> {
    T* to = out.write<T>(stream);
    ThreadPool::shared().parallel_for(
        0, out.count(), kGrain, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) {
            if constexpr (std::is_integral_v<T>) {
              const auto value =
                  static_cast<std::uint64_t>(start.integer()) +
                  static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step.integer());
              to[i] = static_cast<T>(value);
            } else {
              to[i] = convert<T>(random::step_from(start.real(), step.real(), i));
            }
          }
        });
  });
}

void linspace(Tensor& out, double start, double end) {
  const Stream stream = out.device().stream();
  const std::int64_t count = out.count();
  const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
  visit_float("linspace", out.dtype(), [&]<class T> {
    T* to = out.write<T>(stream);
    ThreadPool::shared().parallel_for(0, count, kGrain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        to[i] = convert<T>(random::between(start, end, step, i, count));
      }
    });
  });
}

void band(const Tensor* in, Tensor& out, std::int64_t low, std::int64_t high, Scalar value) {
  const Stream stream = out.device().stream();
  const std::int64_t rows = out.dim(-2), cols = out.dim(-1);
  visit_dtype("band", out.dtype(), [&]<class T> {
    const T* from = in != nullptr ? in->read<T>(stream) : nullptr;
    const T element = value.to<T>();
    T* to = out.write<T>(stream);
    const Dims& strides = in != nullptr ? in->strides() : out.strides();
    walk<2>(
        out.shape(), {&strides, &out.strides()},
        [&](std::int64_t count, const auto& at, const auto& step) {
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t position = at[1] + i;
            const std::int64_t line = position / cols;
            const std::int64_t diagonal = position - line * cols - line % rows;
            const bool inside = diagonal >= low && diagonal <= high;
            to[position] = !inside ? T{} : from != nullptr ? from[at[0] + i * step[0]] : element;
          }
        });
  });
}

}  // namespace tl::cpu
