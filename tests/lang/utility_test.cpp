#include "lang/builtins/utility.h"

#include <chrono>
#include <cstdlib>

#include "library_context.h"

namespace tl::lang::test {

namespace {

std::string printed(std::initializer_list<Value> values) {
  run("print", values);
  return context().printed();
}

}  // namespace

TEST(Print, FollowsTheThreeRules) {
  EXPECT_EQ(printed({}), "\n");
  EXPECT_EQ(printed({"a", 1, 2.5, true}), "a 1 2.5 true\n");
  EXPECT_EQ(printed({"x = {}, y = {}", 1, "two"}), "x = 1, y = two\n");
  EXPECT_EQ(printed({"x = {}", 1, 2, 3}), "x = 1\n");
  EXPECT_EQ(printed({"{}"}), "{}\n");
  EXPECT_EQ(printed({"{:.2f}|{:>4}", 1.0, 7}), "1.00|   7\n");
  EXPECT_EQ(printed({"{a} {{}", 1}), "{a} {1\n");
  EXPECT_EQ(printed({"{:", 1}), "{: 1\n");
  fails("Not enough arguments for format string", "print", {"{} {}", 1});
  fails("does not go with", "print", {"{:d}", "x"});
}

TEST(Utilities, ReadLinesAndTheEnvironment) {
  context().input = std::istringstream("hello  \r\n\nlast");
  EXPECT_EQ(shown("input", {"name? "}), "\"hello\"");
  EXPECT_EQ(context().printed(), "name? ");
  EXPECT_EQ(shown("input", {}), "\"\"");
  EXPECT_EQ(shown("input", {}), "\"last\"");
  EXPECT_EQ(shown("input", {}), "\"\"");  // the end

  setenv("TL_TEST_VARIABLE", "value", 1);
  EXPECT_EQ(shown("env", {"TL_TEST_VARIABLE"}), "\"value\"");
  EXPECT_EQ(shown("env", {"TL_NO_SUCH_VARIABLE", "other"}), "\"other\"");
  fails("Environment variable 'TL_NO_SUCH_VARIABLE' not found", "env", {"TL_NO_SUCH_VARIABLE"});
  fails("env() expects a String", "env", {5});

  context().arguments = {"a", "b"};
  EXPECT_EQ(shown("args", {}), "[\"a\", \"b\"]");
}

TEST(Assertions, RaiseErrorsThatShowBoth) {
  run("assert", {true});
  fails("assertion failed: the condition is false", "assert", {false});
  fails("assertion failed: too small", "assert", {false, "too small"});
  fails("assert", "assert", {"text"});

  run("assert_eq", {list({1, 2}), list({1, 2})});
  run("assert_eq", {tensor({1, 2}, {2}), tensor({1, 2}, {2})});
  run("assert_eq", {tensor({1, 2}, {2}), list({1.0, 2.0})});
  fails("assertion failed: left is \"a\", right is \"b\"", "assert_eq", {"a", "b"});
  fails("left is 1, right is 1.0 (Integer and Float)", "assert_eq", {1, 1.0});
  fails("assertion failed: left is [1, 2], right is [1, 3]", "assert_eq",
        {tensor({1, 2}, {2}), tensor({1, 3}, {2})});
  fails("assertion failed: why", "assert_eq", {1, 2, "why"});

  run("assert_about_eq", {1.0, 1.0 + 1e-9});
  run("assert_about_eq", {1, 1.05, 0.1});
  run("assert_about_eq", {tensor({1, 2}, {2}), list({1.0, 2.0})});
  fails("0.5 apart; the bound is 0.1", "assert_about_eq", {1.0, 1.5, 0.1});
  fails("element 1 is 2 and 3", "assert_about_eq", {tensor({1, 2}, {2}), tensor({1, 3}, {2}), 0.1});
  fails("shapes [2] and [1, 2]", "assert_about_eq",
        {tensor({1, 2}, {2}), tensor({1, 2}, {1, 2}), 0.1});
  fails("NaN", "assert_about_eq", {std::nan(""), 1.0, 0.1});
}

TEST(Utilities, TellKindsTimeAndMemory) {
  EXPECT_EQ(shown("type", {1}), "\"Integer\"");
  EXPECT_EQ(shown("type", {run("KVCache::new", {1})}), "\"KVCache\"");
  const double before = run("time", {}).real();
  run("sleep", {0.03});
  const double after = run("time", {}).real();
  EXPECT_GE(after - before, 0.02);
  EXPECT_GT(before, 1.6e9);
  fails("seconds from 0", "sleep", {-1});
  context().interrupted = true;
  fails("interrupted", "sleep", {60});
  context().interrupted = false;

  const std::int64_t live = run("memory_live", {}).integer();
  const Value held = tl::Tensor::zeros({1000}, DType::F32);
  EXPECT_EQ(run("memory_live", {}).integer() - live, 4000);
  const Value report = run("memory_report", {});
  EXPECT_EQ(shown("get", {report, "device"}), "\"cpu\"");
  EXPECT_EQ(run("get", {report, "live_bytes"}).integer(), live + 4000);
  EXPECT_TRUE(run("cleanup", {"x"}).is(Kind::Void));
  EXPECT_LE(run("get", {run("memory_report", {}), "reserved_bytes"}).integer(),
            run("get", {report, "reserved_bytes"}).integer());
}

TEST(Utilities, HelpKnowsEveryBuiltin) {
  run("help", {"get_tensor"});
  EXPECT_EQ(context().printed(),
            "get_tensor(model, name)\n  A tensor of a model by its full name.\n");
  run("help", {});
  EXPECT_NE(context().printed().find(" functions"), std::string::npos);
  fails("did you mean 'get_tensor'?", "help", {"get_tensr"});
  run("help", {make<FunctionObject>(BuiltinTable::instance().find("len"))});
  EXPECT_EQ(context().printed().substr(0, 7), "len(x)\n");
  for (const Builtin* row : BuiltinTable::instance().all()) {
    EXPECT_FALSE(row->help.empty()) << row->name;
    EXPECT_TRUE(row->help.ends_with('.')) << row->name;
    EXPECT_FALSE(row->section.empty()) << row->name;
  }
}

}  // namespace tl::lang::test
