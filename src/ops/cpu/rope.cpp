#include "ops/cpu/rope.h"

#include <type_traits>
#include <vector>

#include "ops/cpu/index.h"
#include "ops/cpu/row_walk.h"

namespace tl::cpu {

namespace {

// One head's elements at one position; c and s have r / 2 entries.
template <class T, class W>
void rotate(const T* x, std::int64_t x_step, T* y, std::int64_t y_step, std::int64_t d,
            std::int64_t r, bool interleaved, const W* c, const W* s) {
  const std::int64_t half = r / 2;
  const std::int64_t apart = interleaved ? 1 : half, next = interleaved ? 2 : 1;
  if (x_step == 1 && y_step == 1) {  // the common case, which the compiler vectorises
    for (std::int64_t i = 0; i < half; ++i) {
      const W a = convert<W>(x[i * next]), b = convert<W>(x[i * next + apart]);
      y[i * next] = convert<T>(a * c[i] - b * s[i]);
      y[i * next + apart] = convert<T>(a * s[i] + b * c[i]);
    }
  } else {
    for (std::int64_t i = 0; i < half; ++i) {
      const std::int64_t first = i * next, second = first + apart;
      const W a = convert<W>(x[first * x_step]), b = convert<W>(x[second * x_step]);
      y[first * y_step] = convert<T>(a * c[i] - b * s[i]);
      y[second * y_step] = convert<T>(a * s[i] + b * c[i]);
    }
  }
  for (std::int64_t i = r; i < d; ++i) y[i * y_step] = x[i * x_step];
}

}  // namespace

void rope(const Tensor& in, Tensor& out, const ops::RopeArguments& arguments) {
  const Stream stream = out.device().stream();
  const Shape& shape = arguments.in.shape();  // (b, h, t, d)
  const std::int64_t heads = shape[1], length = shape[2], d = shape[3];
  const std::int64_t half = arguments.rotated / 2;
  const Tensor* positions = arguments.positions;
  // The row of the tables for each (b, t), or for each t.
  std::vector<std::int64_t> rows;
  bool row_per_batch = arguments.batch_rows != 0;
  if (positions != nullptr) {
    row_per_batch = positions->rank() == 2;
    visit_index(positions->dtype(), [&]<class Id> {
      const Id* ids = positions->read<Id>(stream);
      for (std::int64_t i = 0; i < positions->count(); ++i) {
        rows.push_back(checked_index(arguments.op, ids, i, arguments.cosines->dim(0)));
      }
    });
  }
  visit_float(arguments.op, in.dtype(), [&]<class T> {
    using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* x = in.read<T>(stream);
    const T* cosines = arguments.cosines->read<T>(stream);
    const T* sines = arguments.sines->read<T>(stream);
    T* y = out.write<T>(stream);
    const ops::RowLayout walk = ops::row_layout(arguments.in, arguments.out, 3);
    for_rows(walk, d, [&] {
      std::vector<W> c(static_cast<std::size_t>(half)), s(c.size());
      return [&, c, s](std::int64_t row, std::int64_t from, std::int64_t to) mutable {
        const std::int64_t t = row % length, b = row / (heads * length);
        std::int64_t entry = row_per_batch ? b * length + t : t;
        if (positions != nullptr) entry = rows[static_cast<std::size_t>(entry)];
        for (std::size_t i = 0; i < c.size(); ++i) {
          const std::int64_t at = entry * half + static_cast<std::int64_t>(i);
          c[i] = entry == kNothing ? W(0) : convert<W>(cosines[at]);
          const W sine = entry == kNothing ? W(0) : convert<W>(sines[at]);
          s[i] = arguments.back ? -sine : sine;
        }
        rotate(x + from, walk.in_step, y + to, walk.out_step, d, arguments.rotated,
               arguments.interleaved, c.data(), s.data());
      };
    });
  });
}

}  // namespace tl::cpu
