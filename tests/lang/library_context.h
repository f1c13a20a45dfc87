// Calls builtins as a program would, without one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "lang/builtin.h"
#include "lang/builtins/library.h"
#include "lang/value.h"
#include "model/gguf_files.h"

namespace tl::lang::test {

using tl::test::contents;
using tl::test::data_folder;
using tl::test::Folder;
using tl::test::save;

class TestContext : public Context {
 public:
  TestContext() {
    out = &output;
    in = &input;
  }

  Value call(const Value& function, std::span<const Value> given) override {
    const Builtin* builtin = function.as<FunctionObject>().builtin;
    std::vector<Value> values(given.begin(), given.end());
    Args args(*builtin, values);
    return builtin->call(*this, args);
  }
  void check_interrupt() override {
    if (interrupted) throw RuntimeError("interrupted");
  }

  std::string printed() {  // since the last question
    std::string text = output.str();
    output.str("");
    return text;
  }

  std::ostringstream output;
  std::istringstream input;
  bool interrupted = false;
};

inline TestContext& context() {
  static TestContext context;
  return context;
}

// A builtin by its name; what is left out takes its default.
inline Value run(std::string_view name, std::initializer_list<Value> arguments) {
  return call_builtin(context(), name, std::span(arguments.begin(), arguments.size()));
}
inline std::string shown(std::string_view name, std::initializer_list<Value> arguments) {
  return quoted(run(name, arguments));
}
// A method of a host object that is no builtin.
inline Value method(const Value& object, std::string_view name, std::vector<Value> arguments) {
  static const Builtin kMethod{"method", "", "()", "", nullptr};
  Args args(kMethod, arguments);
  Value result;
  const bool found =
      static_cast<HostObject&>(*object.object()).method(context(), name, args, result);
  EXPECT_TRUE(found) << name;
  return result;
}

inline Value list(std::initializer_list<Value> values) {
  return make<ListObject>(std::vector<Value>(values));
}
inline Value map(std::initializer_list<std::pair<Value, Value>> entries) {
  const Value out = make<MapObject>();
  for (const auto& [key, value] : entries) {
    static_cast<MapObject&>(*out.object()).slot(key) = value;
  }
  return out;
}
inline Value tensor(std::vector<float> values, const Shape& shape) {
  return tl::Tensor::from(values, shape);
}
inline std::vector<float> floats(const Value& value) { return value.tensor().to_vector<float>(); }

// A function value; the rows live as long as the program.
inline Value function(BuiltinCall call) {
  static std::vector<std::unique_ptr<Builtin>> rows;
  rows.push_back(std::make_unique<Builtin>(Builtin{"f", "", "(...values)", "", call}));
  return make<FunctionObject>(rows.back().get());
}

template <class F>
void fails(const std::string& text, const F& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << text;
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
        << "expected: " << text << "\n  actual: " << error.what();
  }
}
inline void fails(const std::string& text, std::string_view name,
                  std::initializer_list<Value> arguments) {
  fails(text, [&] { run(name, arguments); });
}

}  // namespace tl::lang::test
