// Sines and cosines of rotary embeddings, which every layer of every step asks for again.
#pragma once

#include <map>
#include <tuple>
#include <utility>

#include "lang/builtin.h"

namespace tl::lang {

// What builtins keep between calls; it belongs to a context and goes with it.
struct TensorCache {
  struct Tables {
    tl::Tensor cosines, sines;  // (positions, d / 2)
  };
  // By place, pairs, base and dtype.
  std::map<std::tuple<DeviceKind, int, std::int64_t, double, DType>, Tables> rope;
};

// Rows `offset` to `offset + length` of the tables for heads of d elements: the angle of pair i at
// position p is p base^(-2 i / d).
TensorCache::Tables rope_tables(Context& context, const Device& device, std::int64_t d, double base,
                                DType dtype, std::int64_t offset, std::int64_t length);

// Rotary embedding of x (..., length, heads, d): elements 2i and 2i + 1 turn together, or i and
// i + d / 2 with `halves`. Row p of the length is at position offset + p.
tl::Tensor turned(Context& context, const tl::Tensor& x, std::int64_t offset, double base,
                  bool halves);

}  // namespace tl::lang
