// What the two implementations of indexing get: operands checked and laid over one shape.
#pragma once

#include <string_view>

#include "tl/tensor/tensor.h"

namespace tl::ops {

// out[i] = x[offset of i by x_strides + ids[offset of i by ids_strides] * step], over the shape of
// the result.
struct Pick {
  Tensor x;
  Dims x_strides;  // 0 for the indexed dimension
  std::int64_t step;
  std::int64_t size;  // of the indexed dimension
  Tensor ids;
  Dims ids_strides;
  std::string_view op;  // a literal
};

// out[offset of i by out_strides + ids[i] * step] = or += src[i], over the shape of ids and src,
// which is equal.
struct Place {
  Tensor ids;
  Tensor src;
  Dims out_strides;  // 0 for the indexed dimension
  std::int64_t step;
  std::int64_t size;  // of the indexed dimension
  int dim;
  std::string_view op;  // a literal
  // Is the result thrown away when an index is bad? Then the CPU need not look at all of them
  // before it writes.
  bool is_fresh = false;

  const Shape& shape() const { return ids.shape(); }
  std::int64_t length() const { return ids.shape()[dim]; }  // along the dimension
  std::int64_t lines() const { return ids.count() / length(); }
  // Are the indices the same for all lines, as in index_add?
  bool is_uniform() const {
    for (int d = 0; d < ids.rank(); ++d) {
      if (d != dim && ids.strides()[d] != 0 && ids.shape()[d] > 1) return false;
    }
    return true;
  }
};

inline Dims without(const Dims& dims, int at) {
  Dims rest = dims;
  rest.erase(at);
  return rest;
}

}  // namespace tl::ops
