// A running program's surroundings for tests of values, operators and builtins: no program, but a
// context whose tensors are on the device under test, and short ways to write values and calls.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "lang/builtin.h"
#include "lang/convert.h"
#include "lang/operators.h"
#include "lang/value.h"
#include "support/on_every_device.h"

namespace tl::test {

using lang::Kind;
using lang::Value;

class TestContext : public lang::Context {
 public:
  explicit TestContext(const Device& where) {
    device = where;
    out = &output;
  }
  Value call(const Value&, std::span<const Value>) override {
    throw lang::RuntimeError("there is no program");
  }
  void check_interrupt() override {}

  std::ostringstream output;
};

inline Value list(std::vector<Value> values) {
  return lang::make<lang::ListObject>(std::move(values));
}
inline Value tuple(std::vector<Value> values) {
  return lang::make<lang::TupleObject>(std::move(values));
}
inline Value range(std::int64_t first, std::int64_t last) {
  return lang::make<lang::RangeObject>(first, last);
}
inline Value tokens(std::vector<std::int32_t> ids) {
  return lang::make<lang::TokensObject>(std::move(ids));
}

inline lang::IndexArg at(Value index) {
  lang::IndexArg arg;
  arg.index = std::move(index);
  return arg;
}
inline lang::IndexArg cut(Value start = Value::missing(), Value stop = Value::missing(),
                          Value step = Value::missing()) {
  lang::IndexArg arg;
  arg.is_slice = true;
  arg.start = std::move(start);
  arg.stop = std::move(stop);
  arg.step = std::move(step);
  return arg;
}

// What the language itself throws: the text its message must contain.
inline void expect_runtime_error(const std::string& text, const std::function<void()>& action) {
  try {
    action();
  } catch (const lang::RuntimeError& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
        << "message: " << error.what() << "\nexpected to contain: " << text;
    return;
  } catch (const std::exception& error) {
    FAIL() << "not a RuntimeError: " << error.what() << "\nexpected: " << text;
  }
  FAIL() << "nothing was thrown; expected: " << text;
}

class LangTest : public OnEveryDevice {
 protected:
  LangTest() : context(device()) {}

  Value tensor(std::vector<float> values, const Shape& shape) {
    return Tensor::from(values, shape, device());
  }
  Value tensor(std::vector<float> values) {
    const auto size = static_cast<std::int64_t>(values.size());
    return tensor(std::move(values), {size});
  }
  Value typed(std::vector<double> values, const Shape& shape, DType dtype) {
    std::vector<Value> items(values.begin(), values.end());
    const Tensor flat = lang::to_tensor(context, "test", list(std::move(items)), dtype);
    return flat.view(shape);
  }
  Value counting(const Shape& shape) {  // 0, 1, 2, ...
    std::vector<float> values(static_cast<std::size_t>(element_count("counting", shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return tensor(std::move(values), shape);
  }

  // A call as a program makes it: positions from the first, defaults for the others.
  Value call(std::string_view name, std::vector<Value> values = {}) {
    const lang::Builtin* builtin = lang::BuiltinTable::instance().find(name);
    if (builtin == nullptr) throw lang::RuntimeError(join("no builtin ", name));
    const std::size_t fixed = builtin->parameters.size() - (builtin->variadic ? 1 : 0);
    if (values.size() > fixed && !builtin->variadic) {
      throw lang::RuntimeError(
          join(name, "() expects ", builtin->signature, ", got ", values.size()));
    }
    for (std::size_t i = values.size(); i < fixed; ++i) {
      if (!builtin->parameters[i].optional) {
        throw lang::RuntimeError(join(name, "() expects ", builtin->signature, ", got ", i));
      }
      values.push_back(builtin->parameters[i].default_value);
    }
    lang::Args args(*builtin, values);
    return builtin->call(context, args);
  }

  Value op(const Value& a, lang::ast::BinaryOp kind, const Value& b) {
    return lang::binary(context, kind, a, b);
  }
  Value get(const Value& base, std::vector<lang::IndexArg> places) {
    return lang::index(context, base, places);
  }
  void put(Value& base, std::vector<lang::IndexArg> places, const Value& value) {
    lang::assign_index(context, base, places, value);
  }

  // What print shows, which is how values are compared here; more than ten elements one by one.
  std::string show(const Value& value) { return lang::text(value); }
  std::string all(const Value& value) {
    std::string out;
    Value iterator = lang::Iterator::over(context, value);
    Value element;
    while (static_cast<lang::Iterator*>(iterator.object())->next(element)) {
      out += (out.empty() ? "" : " ") + lang::text(element);
    }
    return out;
  }
  // The shape, then the elements.
  std::string whole(const Value& value) {
    return join(value.is_tensor() ? lang::text(call("shape", {value})) : "", " ", all(value));
  }
  // Elements within a bound of these.
  void expect_near(const Value& value, const std::vector<double>& wanted, double bound = 1e-5) {
    Value iterator = lang::Iterator::over(context, value);
    Value element;
    std::size_t i = 0;
    while (static_cast<lang::Iterator*>(iterator.object())->next(element)) {
      ASSERT_LT(i, wanted.size());
      EXPECT_NEAR(element.number(), wanted[i], bound) << "element " << i;
      ++i;
    }
    EXPECT_EQ(i, wanted.size());
  }
  std::string dtype(const Value& value) { return lang::text(call("dtype", {value})); }

  TestContext context;
};

}  // namespace tl::test
