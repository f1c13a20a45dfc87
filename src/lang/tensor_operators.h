// Operators where an operand is a tensor, and what declared tensors are filled with.
#pragma once

#include "lang/operators.h"

namespace tl::lang {

// How far apart two numbers may be that are ≈: relative to the larger, absolute below 1.
inline constexpr double kApproxNumbers = 1e-6;
inline constexpr double kApproxTensors = 1e-5;  // after a few operations in f32

// One operand is a tensor or stands for one, the other too or is a number or truth value.
Value tensor_binary(Context& context, ast::BinaryOp op, const Value& left, const Value& right);

// What zeros(), ones(), rand() and the like give without a shape: they take that of the tensor they
// are the first value of.
struct Initializer : HostObject {
  virtual tl::Tensor make(const Shape& shape, DType dtype, const Device& device) const = 0;
  std::string_view type_name() const override { return "Initializer"; }
  std::string text() const override { return "<Initializer>"; }
};

}  // namespace tl::lang
