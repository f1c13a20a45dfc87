#include "tl/tensor/dims.h"

#include <limits>
#include <ostream>

#include "tl/base/error.h"

namespace tl {

void Dims::throw_too_long(std::size_t size) {
  throw Error(ErrorKind::BadArgument, "shape", size, " dimensions; tensors have at most ", kMax);
}

std::string Dims::text() const {
  std::string out = "(";
  for (int i = 0; i < size_; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string((*this)[i]);
  }
  out += size_ == 1 ? ",)" : ")";
  return out;
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << dims.text(); }

std::int64_t element_count(std::string_view op, const Shape& shape) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t count = 1;
  bool none = false;
  for (const std::int64_t size : shape) {
    if (size < 0) {
      throw Error(ErrorKind::BadArgument, op, "shape ", shape, " has a negative size");
    }
    none = none || size == 0;
  }
  if (none) return 0;
  for (const std::int64_t size : shape) {
    if (count > kMost / size) {
      throw Error(ErrorKind::Overflow, op, "shape ", shape, " has more than 2^63 elements");
    }
    count *= size;
  }
  return count;
}

int normalize_dim(std::string_view op, std::int64_t dim, const Shape& shape) {
  const std::int64_t rank = shape.size();
  if (dim < -rank || dim >= rank) {
    throw Error(ErrorKind::BadArgument, op, "dim ", dim, " is outside shape ", shape);
  }
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

int normalize_insertion(std::string_view op, std::int64_t dim, const Shape& shape) {
  const std::int64_t places = shape.size() + 1;
  if (dim < -places || dim >= places) {
    throw Error(ErrorKind::BadArgument, op, "no dimension can be inserted at ", dim, " of shape ",
                shape);
  }
  return static_cast<int>(dim < 0 ? dim + places : dim);
}

Dims normalize_dims(std::string_view op, const Dims& dims, const Shape& shape) {
  Dims result;
  for (const std::int64_t dim : dims) result.push_back(normalize_dim(op, dim, shape));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    throw Error(ErrorKind::BadArgument, op, "dims ", dims, " name a dimension of shape ", shape,
                " twice");
  }
  return result;
}

Dims all_dims(int rank) {
  Dims dims;
  for (int d = 0; d < rank; ++d) dims.push_back(d);
  return dims;
}

Shape fill_hole(std::string_view op, const Shape& shape, std::int64_t count) {
  int hole = -1;
  Shape filled = shape;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] != -1) continue;
    if (hole >= 0)
      throw Error(ErrorKind::BadArgument, op, "shape ", shape, " leaves two sizes open");
    hole = d;
    filled[d] = 1;
  }
  const std::int64_t others = element_count(op, filled);
  if (hole >= 0) {
    if (others == 0 || count % others != 0) {
      throw Error(ErrorKind::ShapeMismatch, op, "no size in place of -1 gives shape ", shape, " ",
                  count, " elements");
    }
    filled[hole] = count / others;
  } else if (others != count) {
    throw Error(ErrorKind::ShapeMismatch, op, "shape ", shape, " has ", others,
                " elements, and there are ", count);
  }
  return filled;
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const int lead = longer.size() - shorter.size();
  for (int d = 0; d < shorter.size(); ++d) {
    const std::int64_t x = longer[lead + d], y = shorter[d];
    if (x != y && x != 1 && y != 1) {
      throw Error(ErrorKind::ShapeMismatch, op, "shapes ", a, " and ", b, " do not broadcast");
    }
    result[lead + d] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace tl
