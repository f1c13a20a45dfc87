// What operators, brackets and conversions do with values whose kinds are known at run time. The
// interpreter does the common scalar cases itself and comes here for all others.
#pragma once

#include <optional>
#include <span>

#include "lang/ast.h"
#include "lang/builtin.h"
#include "lang/value.h"

namespace tl::lang {

Value binary(Context& context, ast::BinaryOp op, const Value& a, const Value& b);
Value unary(Context& context, ast::UnaryOp op, const Value& a);
Value cast(const Value& value, bool to_integer);  // as int, as float
// A condition: Bool, or a tensor of one element. `what` is "if", "while", ...
bool truth(const Value& value, std::string_view what);

// One place between brackets.
struct IndexArg {
  bool is_slice = false;
  Value index;              // not a slice
  Value start, stop, step;  // Missing where nothing is written
};
Value index(Context& context, const Value& base, std::span<const IndexArg> at);
// base[at] = value. The base is the variable's own value.
void assign_index(Context& context, Value& base, std::span<const IndexArg> at, const Value& value);
// The element itself, for a place inside it: a list's or a map's. Throws for others.
Value& element(Value& base, const IndexArg& at);

// A declared tensor: `tensor x: float16[2, 3] = value`. Converted to the dtype, reshaped when the
// count allows; no value: zeros. `shape` has -1 for sizes that are not said.
Value declared_tensor(Context& context, std::string_view name, DType dtype, const Dims& shape,
                      const Value* value);

// Going through a value: what `for` does. Made once, then next() until it is false.
class Iterator : public Object {
 public:
  static Value over(Context& context, const Value& value);  // throws when it cannot be gone through
  virtual bool next(Value& element) = 0;

 protected:
  Iterator() : Object(Kind::Host) {}
};

}  // namespace tl::lang
