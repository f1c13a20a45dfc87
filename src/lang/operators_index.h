// Places in values: what brackets mean before anything is read or written.
#pragma once

#include <cstdint>
#include <string_view>

#include "lang/operators.h"

namespace tl::lang {

// The integer of an index, counted from the end when it is negative; throws when it is outside.
std::int64_t index_of(const Value& index, std::int64_t length);
// A whole number between brackets: Int, Float, or a tensor of one element.
bool is_whole_index(const Value& index) noexcept;

// start, start + step, ...: `count` places of a dimension. As in NumPy bounds outside are cut.
struct Slice {
  std::int64_t start = 0;
  std::int64_t step = 1;  // may be negative
  std::int64_t count = 0;
  std::int64_t lowest() const noexcept { return step > 0 ? start : start + (count - 1) * step; }
};
Slice slice_of(const IndexArg& at, std::int64_t length);

// t[...] of tensors.
Value index_tensor_at(Context& context, const tl::Tensor& x, std::span<const IndexArg> at);
Value index_quantised(Context& context, const tl::QTensor& x, std::span<const IndexArg> at);
void assign_tensor_at(Context& context, tl::Tensor& x, std::span<const IndexArg> at,
                      const Value& value);

}  // namespace tl::lang
