// Conditions and arithmetic of rules, evaluated for one binding of the variables.
#pragma once

#include <cstdint>
#include <functional>

#include "tl/logic/program.h"
#include "tl/logic/symbols.h"

namespace tl::logic {

// Throws LogicError (Value) for what cannot be computed: a division by zero, an overflow, a sum of
// a text and a number.
Constant evaluate(const Symbols& symbols, const Expression& e, const Id* bindings);
bool holds(const Symbols& symbols, const Expression& e, const Id* bindings);
// The id of the value; new numbers become constants.
Id evaluate_id(Symbols& symbols, const Expression& e, const Id* bindings);
// A value for the column of a head: an int becomes a float where floats are wanted. Throws
// LogicError (Type) for what cannot be in it.
Id fitted(Symbols& symbols, Id id, ColumnType::Kind kind);
Id head_id(Symbols& symbols, const HeadTerm& term, const Id* bindings);
Constant add(const Constant& a, const Constant& b);  // of two numbers, or two texts

void for_each_variable(const Expression& e, const std::function<void(std::uint32_t)>& visit);
bool computes(const Expression& e) noexcept;  // can its value be a new constant?

}  // namespace tl::logic
