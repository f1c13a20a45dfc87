// Values as tensors, and tensors that go together: what operators and builtins do to their operands
// before the library sees them.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lang/builtin.h"
#include "lang/value.h"

namespace tl::lang {

// The dtype of a result of both. Integers give way to floats, f16 and bf16 together to f32; Bool
// gives way to everything.
DType promote(DType a, DType b) noexcept;

// Lists, tuples, ranges, tokens and vectors: what a program may write where a list is wanted.
bool is_list_like(const Value& value) noexcept;
std::size_t list_size(const Value& list) noexcept;  // of one of these
Value list_item(const Value& list, std::size_t i);  // of one of these
// All of them; throws for a range that is too long to write out.
std::vector<Value> list_values(const Value& list);
bool is_number_list(const Value& value) noexcept;  // nested or not; not empty, not truth values
bool has_floats(const Value& value) noexcept;      // in a list of numbers

// What split() gives: a list of tensors that stands for the first where a tensor is wanted.
struct PiecesObject final : ListObject {
  using ListObject::ListObject;
};
bool is_pieces(const Value& value) noexcept;

// The device for work on both: the one new tensors go to where it is one of them, else the first's.
Device common_device(const Context& context, const tl::Tensor& a, const tl::Tensor& b);
// Each tensor on one device and of one dtype. Nothing moves that is right already.
void bring_together(const Context& context, std::span<tl::Tensor* const> tensors);

// to_tensor() where a program asks for the dtype: fractions are cut off for integers.
tl::Tensor converted(const Context& context, std::string_view who, const Value& value, DType dtype);
// Integers (i64, or the integer dtype it has) for use as indices: floats are truncated.
tl::Tensor index_tensor(const Context& context, std::string_view who, const Value& value);
// Something with truth values: floats become bool.
tl::Tensor mask_tensor(const Context& context, std::string_view who, const Value& value);

// The number in an Int, Float, Bool or one-element tensor; nothing for other values.
std::optional<double> real_in(const Value& value);
// The same as an integer, truncated toward zero; Floats that 64 bits do not hold saturate.
std::optional<std::int64_t> integer_in(const Value& value);
std::int64_t saturated(double number) noexcept;
// All elements, on the host.
std::vector<double> list_of_reals(const tl::Tensor& x);

}  // namespace tl::lang
