#include "lang/builtins/text.h"

#include "library_context.h"

namespace tl::lang::test {

TEST(Texts, CountInCharacters) {
  EXPECT_EQ(shown("string_length", {"grün 😀"}), "6");
  EXPECT_EQ(shown("string_substring", {"grün 😀!", 2, 4}), "\"ün 😀\"");
  EXPECT_EQ(shown("string_substring", {"abc", 2, 9}), "\"c\"");
  EXPECT_EQ(shown("string_substring", {"abc", 9, 1}), "\"\"");
  EXPECT_EQ(shown("chars", {"aä"}), "[\"a\", \"ä\"]");
  EXPECT_EQ(shown("find", {"grün ün", "ün"}), "2");
  EXPECT_EQ(shown("find", {"grün ün", "ün", 3}), "5");
  EXPECT_EQ(shown("find", {"abc", "x"}), "-1");
  EXPECT_EQ(shown("string_length", {"\xff\xc3"}), "2");  // bytes that are no characters
  fails("a place from 0", "string_substring", {"abc", -1, 1});
  fails("string_length() expects a String", "string_length", {5});
  fails("chars() expects a String", "chars", {5});
  fails("find() expects a String", "find", {"a", 5});
}

TEST(Texts, PartsAndEnds) {
  EXPECT_EQ(shown("join", {list({"a", 1, true}), ", "}), "\"a, 1, true\"");
  EXPECT_EQ(shown("join", {", ", list({"a", "b"})}), "\"a, b\"");
  EXPECT_EQ(shown("join", {list({"a", "b"})}), "\"ab\"");
  EXPECT_EQ(shown("replace", {"aXbX", "X", "--"}), "\"a--b--\"");
  EXPECT_EQ(shown("upper", {"grün αω zя"}), "\"GRÜN ΑΩ ZЯ\"");
  EXPECT_EQ(shown("lower", {"GRÜN ΑΩ ŽЯ×"}), "\"grün αω žя×\"");
  EXPECT_EQ(shown("trim", {"  a b\n"}), "\"a b\"");
  EXPECT_EQ(shown("trim", {"--a-", "-"}), "\"a\"");
  EXPECT_EQ(shown("starts_with", {"abc", "ab"}), "true");
  EXPECT_EQ(shown("ends_with", {"abc", "ab"}), "false");
  EXPECT_EQ(shown("repeat", {"ab", 3}), "\"ababab\"");
  EXPECT_EQ(shown("repeat", {list({1, 2}), 2}), "[1, 2, 1, 2]");
  EXPECT_EQ(run("repeat", {tensor({1, 2}, {2}), 2}).tensor().count(), 4);
  EXPECT_EQ(shown("lines", {"a\r\nb\n\nc"}), "[\"a\", \"b\", \"\", \"c\"]");
  fails("not empty", "replace", {"a", "", "b"});
  fails("too many", "repeat", {"abc", std::int64_t{1} << 40});
  fails("too many", "repeat", {list({1}), std::int64_t{1} << 40});
  fails("join() expects a String", "join", {list({"a", "b"}), 5});
  for (const char* name : {"upper", "lower", "trim", "lines"}) {
    fails("expects a String", name, {5});
  }
  fails("expects a String", "starts_with", {"a", 5});
  fails("expects a String", "ends_with", {5, "a"});
}

TEST(Texts, AreSplit) {
  const auto split = [](std::initializer_list<Value> values) { return shown("split", values); };
  EXPECT_EQ(split({"a,b,,c", ","}), "[\"a\", \"b\", \"\", \"c\"]");
  EXPECT_EQ(split({"a,b,c", ",", 1}), "[\"a\", \"b,c\"]");
  EXPECT_EQ(split({" a  b\n"}), "[\"a\", \"b\"]");
  EXPECT_EQ(split({" a  b c", Value::missing(), 1}), "[\"a\", \"b c\"]");
  EXPECT_EQ(split({"", ","}), "[\"\"]");
  fails("not empty", [&] { split({"a", ""}); });
}

TEST(Texts, AreNumbers) {
  EXPECT_EQ(shown("parse_int", {" 42 "}), "42");
  EXPECT_EQ(shown("parse_int", {"-ff", 16}), "-255");
  EXPECT_EQ(text(run("parse_float", {"2.5e1"})), "25");
  EXPECT_EQ(text(run("parse_float", {"-1e400"})), "-inf");
  EXPECT_EQ(text(run("parse_float", {"1e-400"})), "0");
  EXPECT_EQ(shown("to_int", {3.9}), "3");
  EXPECT_EQ(shown("to_int", {-3.9}), "-3");
  EXPECT_EQ(shown("to_int", {"3.9"}), "3");
  EXPECT_EQ(shown("to_int", {"12"}), "12");
  EXPECT_EQ(shown("to_int", {true}), "1");
  EXPECT_EQ(shown("to_int", {tensor({4.5}, {1})}), "4");
  EXPECT_EQ(text(run("to_float", {"0.5"})), "0.5");
  EXPECT_EQ(run("to_float", {3}).kind(), Kind::Float);
  EXPECT_EQ(shown("ord", {"ä"}), "228");
  EXPECT_EQ(shown("chr", {0x1F600}), "\"😀\"");
  EXPECT_EQ(shown("str", {list({1, 2})}), "\"[1, 2]\"");
  EXPECT_EQ(shown("str", {2.0}), "\"2\"");
  fails("\"4x\" is not an integer", "parse_int", {"4x"});
  fails("is not an integer", "parse_int", {"99999999999999999999"});
  fails("a base from 2 to 36", "parse_int", {"1", 1});
  fails("\"x\" is not a number", "parse_float", {"x"});
  fails("is not a number", "to_float", {""});
  fails("is not an integer", "to_int", {"six"});
  fails("is not a number", "to_int", {"1.x"});
  fails("one character", "ord", {"ab"});
  fails("a code point", "chr", {0xD800});
}

TEST(Texts, AreFormatted) {
  EXPECT_EQ(shown("format", {"{} and {}", 1, "b"}), "\"1 and b\"");
  EXPECT_EQ(shown("format", {"{1}{0}{1}", "a", "b"}), "\"bab\"");
  EXPECT_EQ(shown("format", {"{x}: {y:.2f}", map({{"x", "p"}, {"y", 1.0}})}), "\"p: 1.00\"");
  EXPECT_EQ(shown("format", {"{{{}}}", 5}), "\"{5}\"");
  EXPECT_EQ(shown("format", {"[{:>6}] [{:<6}] [{:^6}] [{:*^6}]", "ab", "ab", "ab", "ab"}),
            "\"[    ab] [ab    ] [  ab  ] [**ab**]\"");
  EXPECT_EQ(shown("format", {"[{:6}] [{:6}] [{:06}]", 42, 1.5, 42}),
            "\"[    42] [   1.5] [000042]\"");
  EXPECT_EQ(shown("format", {"{:.3f} {:.2} {:e} {:x} {:+}", 2.0 / 3, 3, 1500.0, 255, 7}),
            "\"0.667 3.00 1.500000e+03 ff +7\"");
  EXPECT_EQ(shown("format", {"{:.2}", "abc"}), "\"ab\"");
  EXPECT_EQ(shown("format", {"{:>9}", list({1, 2})}), "\"   [1, 2]\"");
  EXPECT_EQ(shown("format", {"plain"}), "\"plain\"");
  fails("Not enough arguments for format string", "format", {"{} {}", 1});
  fails("Not enough arguments for format string", "format", {"{3}", 1});
  fails("no map among the values has the key 'x'", "format", {"{x}", 1});
  fails("'{' without '}'", "format", {"{", 1});
  fails("'}' without '{'", "format", {"a } b", 1});
  fails("does not go with \"abc\"", "format", {"{:d}", "abc"});
  fails("does not go with 1.5", "format", {"{:x}", 1.5});
  fails("above 10000", "format", {"{:999999999}", 1});
  fails("above 10000", "format", {"{:.99999999999999}", 1.0});
  fails("it is not [align]", "format", {"{:5!!}", 1});
}

}  // namespace tl::lang::test
