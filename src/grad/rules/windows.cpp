#include "grad/rules/windows.h"

#include <algorithm>

#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/join.h"

namespace tl::grad {

Tensor padded(const Tensor& x, int dim, std::int64_t before, std::int64_t after, Scalar value) {
  if (before == 0 && after == 0) return x;
  Dims left = Dims::repeated(x.rank(), 0), right = left;
  left[dim] = before;
  right[dim] = after;
  return pad(x, left, right, value);
}

namespace {

// (..., n, ..., k), k <= step, as one dimension of n * step elements.
Tensor side_by_side(const Tensor& parts, int dim, std::int64_t step) {
  const Tensor whole = padded(parts, parts.rank() - 1, 0, step - parts.dim(-1));
  Shape shape = parts.shape();
  shape[dim] *= step;
  shape.erase(shape.size() - 1);
  return reshape(whole.move_dim(-1, dim + 1), shape);
}

}  // namespace

// Windows are cut into parts of `step` elements. The first parts of all windows lie side by side
// without touching; so do the second ones, one step further, and so on.
Tensor fold(const Tensor& windows, int dim, std::int64_t step, std::int64_t size) {
  const std::int64_t width = windows.dim(-1), count = windows.dim(dim);
  if (count == 1) step = width;  // a window alone may have any step, even a huge one
  const std::int64_t parts = (width + step - 1) / step;
  Tensor total;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t start = i * step;
    const Tensor part =
        side_by_side(windows.narrow(-1, start, std::min(step, width - start)), dim, step);
    const Tensor placed = padded(part, dim, start, (parts - 1 - i) * step);
    total = i == 0 ? placed : add(total, placed);
  }
  const std::int64_t length = total.dim(dim);
  return length > size ? total.narrow(dim, 0, size) : padded(total, dim, 0, size - length);
}

Tensor widened(const Tensor& x) {
  return size_of(x.dtype()) < sizeof(float) ? to_dtype(x, DType::F32) : x;
}

}  // namespace tl::grad
