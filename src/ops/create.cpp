#include "tl/ops/create.h"

#include <cmath>
#include <limits>

#include "ops/check.h"
#include "ops/cpu/create.h"
#include "ops/gpu/create.h"
#include "ops/rows.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"

namespace tl {

namespace {

// The number of elements of an arange.
std::int64_t length(Scalar start, Scalar end, Scalar step, DType dtype) {
  if (is_int(dtype)) {
    for (const Scalar number : {start, end, step}) {
      if (!number.is_integral()) {
        throw Error(ErrorKind::BadArgument, "arange", number,
                    " is not a whole number, and the dtype is ", dtype);
      }
    }
    const std::int64_t from = start.integer(), to = end.integer(), by = step.integer();
    if (by == 0) throw Error(ErrorKind::BadArgument, "arange", "the step is 0");
    if (by > 0 ? from >= to : from <= to) return 0;
    // In unsigned numbers, where neither the distance nor the step can overflow.
    const auto a = static_cast<std::uint64_t>(from), b = static_cast<std::uint64_t>(to);
    const std::uint64_t distance = by > 0 ? b - a : a - b;
    const std::uint64_t each =
        by > 0 ? static_cast<std::uint64_t>(by) : 0 - static_cast<std::uint64_t>(by);
    const std::uint64_t count = (distance - 1) / each + 1;
    if (count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw Error(ErrorKind::Overflow, "arange", count, " elements");
    }
    return static_cast<std::int64_t>(count);
  }
  const double by = step.real(), distance = end.real() - start.real();
  if (by == 0) throw Error(ErrorKind::BadArgument, "arange", "the step is 0");
  if (!std::isfinite(by) || !std::isfinite(distance) || !std::isfinite(start.real())) {
    throw Error(ErrorKind::BadArgument, "arange", "from ", start, " to ", end, " by ", step);
  }
  const double count = std::ceil(distance / by);
  if (count > 0x1p62) throw Error(ErrorKind::Overflow, "arange", count, " elements");
  return count > 0 ? static_cast<std::int64_t>(count) : 0;
}

Tensor make_band(std::int64_t n, DType dtype, const Device& device, std::int64_t low,
                 std::int64_t high) {
  Tensor out = Tensor::uninitialized({n, n}, dtype, device);
  if (out.empty()) return out;
  if (device.is_cpu()) {
    cpu::band(nullptr, out, low, high, 1);
  } else {
    gpu::band(nullptr, out, low, high, 1);
  }
  return out;
}

Tensor keep_band(std::string_view op, const Tensor& x, std::int64_t low, std::int64_t high) {
  if (x.rank() < 2) {
    throw Error(ErrorKind::BadArgument, op, "shape ", x.shape(), " has fewer than two dimensions");
  }
  Tensor out = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  if (out.empty()) return out;
  if (out.location().is_cpu()) {
    cpu::band(&x, out, low, high, 0);
  } else {
    gpu::band(&x, out, low, high, 0);
  }
  return out;
}

constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

}  // namespace

Tensor full(const Shape& shape, Scalar value, DType dtype, const Device& device) {
  ops::expect_whole("full", value, dtype);
  Tensor out = Tensor::uninitialized(shape, dtype, device);
  fill(out, value);
  return out;
}
Tensor ones(const Shape& shape, DType dtype, const Device& device) {
  return full(shape, 1, dtype, device);
}
Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.shape(), x.dtype(), x.device()); }
Tensor ones_like(const Tensor& x) { return full(x.shape(), 1, x.dtype(), x.device()); }
Tensor full_like(const Tensor& x, Scalar value) {
  return full(x.shape(), value, x.dtype(), x.device());
}

Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype, const Device& device) {
  if (dtype == DType::Bool) {
    throw Error(ErrorKind::Unsupported, "arange", "makes numbers, not ", dtype);
  }
  Tensor out = Tensor::uninitialized({length(start, end, step, dtype)}, dtype, device);
  if (out.empty()) return out;
  if (device.is_cpu()) {
    cpu::arange(out, start, step);
  } else {
    gpu::arange(out, start, step);
  }
  return out;
}

Tensor linspace(double start, double end, std::int64_t count, DType dtype, const Device& device) {
  if (!is_float(dtype)) {
    throw Error(ErrorKind::Unsupported, "linspace", "makes floats, not ", dtype);
  }
  if (count < 0) throw Error(ErrorKind::BadArgument, "linspace", "a count of ", count);
  if (!std::isfinite(start) || !std::isfinite(end) || !std::isfinite(end - start)) {
    throw Error(ErrorKind::BadArgument, "linspace", "from ", start, " to ", end);
  }
  Tensor out = Tensor::uninitialized({count}, dtype, device);
  if (out.empty()) return out;
  if (device.is_cpu()) {
    cpu::linspace(out, start, end);
  } else {
    gpu::linspace(out, start, end);
  }
  return out;
}

Tensor eye(std::int64_t n, DType dtype, const Device& device) {
  return make_band(n, dtype, device, 0, 0);
}
Tensor tril2(std::int64_t n, DType dtype, const Device& device) {
  return make_band(n, dtype, device, -kFar, 0);
}
Tensor triu2(std::int64_t n, DType dtype, const Device& device) {
  return make_band(n, dtype, device, 0, kFar);
}
Tensor tril(const Tensor& x, std::int64_t diagonal) {
  Tensor out = keep_band("tril", x, -kFar, diagonal);
  if (has_history(x)) add_history(out, "tril", {x}, {diagonal});
  return out;
}
Tensor triu(const Tensor& x, std::int64_t diagonal) {
  Tensor out = keep_band("triu", x, diagonal, kFar);
  if (has_history(x)) add_history(out, "triu", {x}, {diagonal});
  return out;
}

Tensor one_hot(const Tensor& ids, std::int64_t depth, DType dtype, Scalar on, Scalar off) {
  if (depth < 0) throw Error(ErrorKind::BadArgument, "one_hot", "a depth of ", depth);
  ops::expect_index_dtype("one_hot", ids);
  for (const Scalar number : {on, off}) ops::expect_whole("one_hot", number, dtype);
  Shape shape = ids.shape();
  shape.push_back(depth);
  return scatter(full(shape, off, dtype, ids.device()), -1, ids.unsqueeze(-1), on);
}

namespace ops {

std::span<const OpRow> create_rows() {
  static constexpr OpRow kRows[] = {
      {"full", "create", "(shape, value, dtype, device)", kAnySet, "One number everywhere.",
       call<&full>},
      {"ones", "create", "(shape, dtype, device)", kAnySet, "Ones.", call<&ones>},
      {"zeros_like", "create", "(x)", kAnySet, "Zeros with the shape, dtype and device of x.",
       call<&zeros_like>},
      {"ones_like", "create", "(x)", kAnySet, "Ones with the shape, dtype and device of x.",
       call<&ones_like>},
      {"full_like", "create", "(x, value)", kAnySet,
       "One number with the shape, dtype and device of x.", call<&full_like>},
      {"arange", "create", "(start, end, step, dtype, device)", kNumberSet,
       "start, start + step, ... below end.",
       call<static_cast<Tensor (*)(Scalar, Scalar, Scalar, DType, const Device&)>(&arange)>},
      {"linspace", "create", "(start, end, count, dtype, device)", kFloatSet,
       "Numbers at equal distances, both ends included.", call<&linspace>},
      {"eye", "create", "(n, dtype, device)", kAnySet, "1 on the diagonal.", call<&eye>},
      {"tril2", "create", "(n, dtype, device)", kAnySet, "1 on and below the diagonal.",
       call<&tril2>},
      {"triu2", "create", "(n, dtype, device)", kAnySet, "1 on and above the diagonal.",
       call<&triu2>},
      {"tril", "create", "(x, diagonal = 0)", kAnySet, "Matrices with 0 above a diagonal.",
       call<&tril>},
      {"triu", "create", "(x, diagonal = 0)", kAnySet, "Matrices with 0 below a diagonal.",
       call<&triu>},
      {"one_hot", "create", "(ids, depth, dtype, on = 1, off = 0)", kIntSet,
       "A row for each index that is on at it.", call<&one_hot>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
