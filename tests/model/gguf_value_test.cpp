// Values of GGUF files: integers widen, and what does not fit is refused.
#include "tl/model/gguf_value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/gguf_files.h"

namespace tl {
namespace {

using namespace test;

template <class T>
void expect_widened(T stored) {
  const GgufValue value(stored);
  EXPECT_EQ(value.to<std::uint8_t>(), 3);
  EXPECT_EQ(value.to<std::int8_t>(), 3);
  EXPECT_EQ(value.to<std::uint16_t>(), 3);
  EXPECT_EQ(value.to<std::int16_t>(), 3);
  EXPECT_EQ(value.to<std::uint32_t>(), 3u);
  EXPECT_EQ(value.to<std::int32_t>(), 3);
  EXPECT_EQ(value.to<std::uint64_t>(), 3u);
  EXPECT_EQ(value.to<std::int64_t>(), 3);
  const std::array<T, 2> numbers{3, 4};
  const GgufValue array = GgufValue::array(std::span<const T>(numbers));
  EXPECT_EQ(array.to_vector<std::uint32_t>(), (std::vector<std::uint32_t>{3, 4}));
  EXPECT_EQ(array.to_vector<std::int8_t>(), (std::vector<std::int8_t>{3, 4}));
  EXPECT_EQ(array.to_vector<std::uint64_t>(), (std::vector<std::uint64_t>{3, 4}));
}

TEST(GgufValue, AnyIntegerReadsAsAnyThatHoldsIt) {
  expect_widened<std::uint8_t>(3);
  expect_widened<std::int8_t>(3);
  expect_widened<std::uint16_t>(3);
  expect_widened<std::int16_t>(3);
  expect_widened<std::uint32_t>(3);
  expect_widened<std::int32_t>(3);
  expect_widened<std::uint64_t>(3);
  expect_widened<std::int64_t>(3);
}

TEST(GgufValue, WhatDoesNotFitIsRefusedWithKeyTypeAndValue) {
  const auto file = Raw()
                        .start(0, 5)
                        .key("a.count", GgufType::I32)
                        .number<std::int32_t>(-1)
                        .key("b.big", GgufType::U64)
                        .u64(~0ull)
                        .key("c.text", GgufType::String)
                        .string("seven")
                        .key("d.list", GgufType::Array)
                        .u32(5)
                        .length(2)
                        .number<std::int32_t>(1)
                        .number<std::int32_t>(-300)
                        .key("e.real", GgufType::F64)
                        .number(1e300);
  const GgufFile gguf = file.open();
  const auto fails = [&](const std::string& text, auto action) {
    expect_error(ErrorKind::BadFile, text, action);
  };
  fails("f: key 'a.count' is the i32 -1, which no u32 holds",
        [&] { gguf.get<std::uint32_t>("a.count"); });
  fails("f: key 'b.big' is the u64 18446744073709551615, which no i64 holds",
        [&] { gguf.get<std::int64_t>("b.big"); });
  fails("f: key 'a.count' is the i32 -1, not a float", [&] { gguf.get<float>("a.count"); });
  fails("f: key 'a.count' is the i32 -1, not a bool", [&] { gguf.get<bool>("a.count"); });
  fails("f: key 'a.count' is the i32 -1, not a string", [&] { gguf.get<std::string>("a.count"); });
  fails("f: key 'a.count' is the i32 -1, not an array", [&] { gguf.value("a.count").count(); });
  fails("f: key 'c.text' is the string 'seven', not an integer",
        [&] { gguf.get_or<std::int32_t>("c.text", 1); });
  fails("f: key 'd.list' is an array of 2 i32, not an integer",
        [&] { gguf.get<std::int32_t>("d.list"); });
  fails("f: key 'd.list' has the i32 -300 as element 1, which no i8 holds",
        [&] { gguf.value("d.list").to_vector<std::int8_t>(); });
  fails("f: key 'd.list' is an array of 2 i32, and its elements are not a float",
        [&] { gguf.value("d.list").to_vector<float>(); });
  fails("f: key 'd.list' is an array of 2 i32, not of strings",
        [&] { gguf.value("d.list").to_vector<std::string_view>(); });
  fails("f: key 'e.real' is the f64 1e+300, which no f32 holds",
        [&] { gguf.get<float>("e.real"); });
  fails("f: has no key 'nothing'", [&] { gguf.get<float>("nothing"); });
  fails("f: has no tensor 'nothing'", [&] { gguf.tensor("nothing"); });
  EXPECT_EQ(gguf.find("nothing"), nullptr);
  EXPECT_EQ(gguf.get_or<std::int32_t>("nothing", 7), 7);
  EXPECT_EQ(gguf.get_or<std::int32_t>("a.count", 7), -1);
  EXPECT_EQ(gguf.get_if<float>("nothing"), std::nullopt);
}

TEST(GgufValue, FloatsReadAsEitherWidth) {
  EXPECT_EQ(GgufValue(0.5f).to<double>(), 0.5);
  EXPECT_EQ(GgufValue(0.1).to<float>(), 0.1f);
  EXPECT_TRUE(std::isnan(GgufValue(std::nan("")).to<float>()));
  EXPECT_TRUE(std::isinf(GgufValue(-std::numeric_limits<double>::infinity()).to<float>()));
  const std::array<double, 2> numbers{1.5, -2};
  EXPECT_EQ(GgufValue::array(std::span<const double>(numbers)).to_vector<float>(),
            (std::vector<float>{1.5f, -2}));
}

TEST(GgufValue, NothingReadsAsSomethingItIsNot) {
  EXPECT_THROW(GgufValue(true).to<int>(), Error);
  EXPECT_THROW(GgufValue(true).to<float>(), Error);
  EXPECT_THROW(GgufValue(1.0f).to<int>(), Error);
  EXPECT_THROW(GgufValue("1").to<int>(), Error);
  EXPECT_THROW(GgufValue(std::uint8_t{1}).to<bool>(), Error);
  EXPECT_THROW(GgufValue("x").items(), Error);
  EXPECT_TRUE(GgufValue(true).to<bool>());
  EXPECT_EQ(GgufValue(std::string("x\0y", 3)).to<std::string>(), std::string("x\0y", 3));
}

TEST(GgufValue, ArraysOfDifferentTypesAreRefused) {
  const std::vector<GgufValue> mixed{GgufValue(1), GgufValue(2.0f)};
  expect_error(ErrorKind::BadArgument, "gguf: element 1 of an array of i32 is of f32",
               [&] { GgufValue::array(GgufType::I32, mixed); });
  GgufValue deep = GgufValue::array(GgufType::U8, {});
  for (int depth = 1; depth < GgufValue::kMostNesting; ++depth) {
    deep = GgufValue::array(GgufType::Array, std::vector{deep});
  }
  expect_error(ErrorKind::BadArgument, "nested deeper than 64",
               [&] { GgufValue::array(GgufType::Array, std::vector{deep}); });
}

TEST(GgufValue, ShowsNumbersInTheFewestDigits) {
  EXPECT_EQ(GgufValue(1e-5f).text(), "1e-05");
  EXPECT_EQ(GgufValue(0.1).text(), "0.1");
  EXPECT_EQ(GgufValue(std::int8_t{-7}).text(), "-7");
  EXPECT_EQ(GgufValue(std::uint8_t{200}).text(), "200");
  EXPECT_EQ(GgufValue(true).text(), "true");
  EXPECT_EQ(GgufValue("a b").text(), "a b");
  EXPECT_EQ(GgufValue::array(GgufType::String, {}).text(), "array of 0 string");
}

TEST(GgufValue, CopiesKeepTheBytesOfTheirArrayAlive) {
  std::vector<GgufValue> items;
  {
    const std::vector<std::string> texts{"first text", "second text"};
    items = GgufValue::array(texts).items();
  }
  EXPECT_EQ(items[1].to<std::string_view>(), "second text");
  EXPECT_EQ(items, (std::vector<GgufValue>{"first text", "second text"}));
}

}  // namespace
}  // namespace tl
