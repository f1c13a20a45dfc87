#include <limits>

#include "lang/surroundings.h"

namespace tl::test {
namespace {

using Op = lang::ast::BinaryOp;

class Index : public LangTest {};
TL_ON_EVERY_DEVICE(Index);

TEST_P(Index, AFullIndexGivesANumber) {
  const Value m = counting({2, 3});
  EXPECT_EQ(get(m, {at(1), at(2)}).real(), 5);
  EXPECT_EQ(get(m, {at(-1), at(-3)}).real(), 3);
  EXPECT_EQ(get(m, {at(1.9), at(0)}).real(), 3);
  EXPECT_EQ(get(typed({7}, {1}, DType::I32), {at(0)}).integer(), 7);
  EXPECT_TRUE(get(typed({1}, {1}, DType::Bool), {at(0)}).boolean());
  EXPECT_EQ(get(m, {at(call("argmax", {tensor({1, 5})})), at(0)}).real(), 3);
}

TEST_P(Index, FewerIndicesAndSlicesGiveParts) {
  const Value m = counting({3, 4});
  EXPECT_EQ(whole(get(m, {at(1)})), "[4] 4 5 6 7");
  EXPECT_EQ(whole(get(m, {cut(), at(1)})), "[3] 1 5 9");
  EXPECT_EQ(whole(get(m, {cut(1), cut(0, 2)})), "[2, 2] 4 5 8 9");
  EXPECT_EQ(whole(get(m, {at(0), cut(0, 4, 2)})), "[2] 0 2");
  EXPECT_EQ(whole(get(m, {at(0), cut(-2)})), "[2] 2 3");
  EXPECT_EQ(whole(get(m, {at(0), cut(1, 100)})), "[3] 1 2 3");
  EXPECT_EQ(whole(get(m, {cut(2, 1)})), "[0, 4] ");
}

TEST_P(Index, SlicesMayGoBackwards) {
  const Value v = counting({5});
  const Value none = Value::missing();
  EXPECT_EQ(whole(get(v, {cut(none, none, -1)})), "[5] 4 3 2 1 0");
  EXPECT_EQ(whole(get(v, {cut(3, 0, -2)})), "[2] 3 1");
  EXPECT_EQ(whole(get(counting({2, 3}), {cut(none, none, -1), cut(none, none, -1)})),
            "[2, 3] 5 4 3 2 1 0");
  EXPECT_EQ(whole(get(v, {cut(none, none, std::numeric_limits<std::int64_t>::min())})), "[1] 4");
  expect_runtime_error("step of 0", [&] { get(v, {cut(none, none, 0)}); });
}

TEST_P(Index, ListsAndTensorsOfIntegersPick) {
  const Value m = counting({3, 2});
  EXPECT_EQ(whole(get(m, {at(list({2, 0, -1}))})), "[3, 2] 4 5 0 1 4 5");
  EXPECT_EQ(whole(get(m, {at(typed({1, -1}, {2}, DType::I64))})), "[2, 2] 2 3 4 5");
  EXPECT_EQ(whole(get(m, {at(tensor({1, 0}))})), "[2, 2] 2 3 0 1");
  EXPECT_EQ(whole(get(m, {cut(), at(list({1}))})), "[3, 1] 1 3 5");
  EXPECT_EQ(whole(get(m, {at(list({list({0, 1}), list({1, 2})}))})), "[2, 2, 2] 0 1 2 3 2 3 4 5");
  EXPECT_EQ(whole(get(m, {at(range(0, 2)), at(0)})), "[2] 0 2");
  expect_runtime_error("Index 3 out of bounds for length 3", [&] { get(m, {at(list({3}))}); });
}

TEST_P(Index, MasksSelect) {
  const Value m = counting({2, 3});
  EXPECT_EQ(whole(get(m, {at(op(m, Op::Greater, 2))})), "[3] 3 4 5");
  EXPECT_EQ(whole(get(m, {at(list({false, true}))})), "[1, 3] 3 4 5");
  EXPECT_EQ(whole(get(m, {cut(), at(list({true, false, true}))})), "[2, 2] 0 2 3 5");
  EXPECT_EQ(whole(get(tensor({5, 6, 7}), {at(list({true, false, true}))})), "[2] 5 7");
  expect_runtime_error("a mask of shape", [&] { get(m, {at(list({true}))}); });
}

TEST_P(Index, OutsideIsAnErrorThatNamesBoth) {
  const Value m = counting({2, 3});
  expect_runtime_error("Index 2 out of bounds for length 2", [&] { get(m, {at(2)}); });
  expect_runtime_error("Index -4 out of bounds for length 3", [&] { get(m, {at(0), at(-4)}); });
  expect_runtime_error("3 indices for a tensor of 2 dimensions",
                       [&] { get(m, {at(0), at(0), at(0)}); });
  expect_runtime_error("cannot be indexed by String", [&] { get(m, {at("a")}); });
  expect_runtime_error("Index 5 out of bounds for length 2", [&] { get(list({1, 2}), {at(5)}); });
  expect_runtime_error("Integer cannot be indexed", [&] { get(3, {at(0)}); });
  expect_runtime_error("Index 9 out of bounds for length 3", [&] { get("abc", {at(9)}); });
}

TEST_P(Index, EveryListKindIsIndexable) {
  EXPECT_EQ(get(list({"a", "b"}), {at(-1)}).string(), "b");
  EXPECT_EQ(show(get(list({1, 2, 3}), {cut(1)})), "[2, 3]");
  EXPECT_EQ(show(get(list({"a", "b", "c"}), {cut(Value::missing(), Value::missing(), -1)})),
            "[\"c\", \"b\", \"a\"]");
  EXPECT_EQ(show(get(list({"a", "b", "c"}), {at(list({2, 0}))})), "[\"c\", \"a\"]");
  EXPECT_EQ(get(range(3, 9), {at(2)}).integer(), 5);
  EXPECT_EQ(show(get(range(3, 9), {cut(1, 3)})), "[4, 5]");
  EXPECT_EQ(get(tokens({7, 8, 9}), {at(1)}).integer(), 8);
  EXPECT_EQ(show(get(tokens({7, 8, 9}), {cut(0, 2)})), "[7, 8]");
  EXPECT_EQ(show(get(tuple({1, "x"}), {at(1)})), "x");
  EXPECT_EQ(get("añ€", {at(1)}).string(), "ñ");
  EXPECT_EQ(get("añ€", {cut(1)}).string(), "ñ€");
  const Value matrix = list({list({1, 2}), list({3, 4})});
  EXPECT_EQ(get(matrix, {at(1), at(0)}).integer(), 3);
  EXPECT_EQ(whole(get(matrix, {cut(), at(1)})), "[2] 2 4");
}

TEST_P(Index, MapsAreIndexedByKey) {
  Value map = lang::make<lang::MapObject>();
  put(map, {at("a")}, list({1, 2}));
  put(map, {at(3)}, "three");
  EXPECT_EQ(get(map, {at(3)}).string(), "three");
  EXPECT_EQ(get(map, {at("a"), at(1)}).integer(), 2);
  put(map, {at("a"), at(1)}, 9);
  EXPECT_EQ(show(map), "{\"a\": [1, 9], 3: \"three\"}");
  expect_runtime_error("Key \"b\" not found in map", [&] { get(map, {at("b")}); });
  expect_runtime_error("A map's key must be", [&] { put(map, {at(1.5)}, 1); });
}

TEST_P(Index, QuantisedRowsAreExpanded) {
  const Value plain = counting({3, 32});
  const Value weight = call("quantize", {plain, "q8_0"});
  const Value row = get(weight, {at(1)});
  EXPECT_EQ(show(call("shape", {row})), "[32]");
  EXPECT_NEAR(get(weight, {at(1), at(0)}).real(), 32, 0.5);
  EXPECT_EQ(show(call("shape", {get(weight, {cut(1, 3), cut(0, 2)})})), "[2, 2]");
  EXPECT_EQ(show(call("shape", {get(weight, {cut(), at(0)})})), "[3]");
}

// ---- writing

TEST_P(Index, TensorsAreWrittenInPartsAndOthersKeepTheirs) {
  Value m = counting({2, 3});
  const Value before = m;
  put(m, {at(0), at(1)}, 9.5);
  EXPECT_EQ(all(m), "0 9.5 2 3 4 5");
  put(m, {at(1)}, 7);
  EXPECT_EQ(all(m), "0 9.5 2 7 7 7");
  put(m, {cut(), at(0)}, list({-1, -2}));
  EXPECT_EQ(all(m), "-1 9.5 2 -2 7 7");
  put(m, {at(1), cut(0, 3, 2)}, tensor({1, 2}));
  EXPECT_EQ(all(m), "-1 9.5 2 1 7 2");
  put(m, {at(0), cut(Value::missing(), Value::missing(), -1)}, list({1, 2, 3}));
  EXPECT_EQ(all(m), "3 2 1 1 7 2");
  EXPECT_EQ(all(before), "0 1 2 3 4 5");
  put(m, {cut()}, before);
  EXPECT_EQ(all(m), "0 1 2 3 4 5");
}

TEST_P(Index, ListsAndMasksSayWhereToWrite) {
  Value m = counting({3, 2});
  put(m, {at(list({0, -1}))}, 9);
  EXPECT_EQ(all(m), "9 9 2 3 9 9");
  put(m, {at(op(m, Op::Equal, 9))}, 0);
  EXPECT_EQ(all(m), "0 0 2 3 0 0");
  put(m, {at(op(m, Op::Greater, 0))}, list({5, 6}));
  EXPECT_EQ(all(m), "0 0 5 6 0 0");
  put(m, {at(list({true, false, false}))}, tensor({1, 2}));
  EXPECT_EQ(all(m), "1 2 5 6 0 0");
  expect_runtime_error("3 values for 4 elements",
                       [&] { put(m, {at(op(m, Op::Greater, 0))}, list({1, 2, 3})); });
}

TEST_P(Index, BadWritesAreErrors) {
  Value m = counting({2, 3});
  expect_runtime_error("Index 2 out of bounds for length 2", [&] { put(m, {at(2)}, 1); });
  expect_runtime_error("expects a tensor, got String", [&] { put(m, {at(0)}, "a"); });
  EXPECT_THROW(put(m, {at(0)}, list({1, 2})), Error);
  Value integers = typed({1, 2}, {2}, DType::I32);
  EXPECT_THROW(put(integers, {at(0)}, 1.5), Error);
  Value text = "abc";
  expect_runtime_error("An element of String cannot be assigned", [&] { put(text, {at(0)}, "x"); });
  EXPECT_EQ(all(m), "0 1 2 3 4 5");
}

TEST_P(Index, ListsAreWritten) {
  Value xs = list({1, 2, 3});
  const Value before = xs;
  put(xs, {at(-1)}, "c");
  EXPECT_EQ(show(xs), "[1, 2, \"c\"]");
  put(xs, {cut(0, 2)}, list({7, 8, 9}));
  EXPECT_EQ(show(xs), "[7, 8, 9, \"c\"]");
  put(xs, {cut(0, 4, 2)}, list({0, 0}));
  EXPECT_EQ(show(xs), "[0, 8, 0, \"c\"]");
  EXPECT_EQ(show(before), "[1, 2, 3]");
  Value matrix = list({list({1, 2}), list({3, 4})});
  put(matrix, {at(0), at(1)}, 9);
  EXPECT_EQ(show(matrix), "[1, 9, 3, 4]");
  put(matrix, {cut(), at(0)}, 0);
  EXPECT_EQ(show(matrix), "[0, 9, 0, 4]");
  Value numbers = range(0, 3);
  put(numbers, {at(1)}, 5);
  EXPECT_EQ(show(numbers), "[0, 5, 2]");
  Value ids = tokens({1, 2});
  put(ids, {at(0)}, 9);
  EXPECT_EQ(show(ids), "[9, 2]");
  expect_runtime_error("2 values for 1 places", [&] { put(xs, {cut(0, 2, 2)}, list({1, 2})); });
  expect_runtime_error("takes a List", [&] { put(xs, {cut(0, 2)}, 1); });
}

TEST_P(Index, VectorsAreSharedAndTyped) {
  Value vec = lang::make<lang::VecObject>(Kind::Float);
  static_cast<lang::VecObject*>(vec.object())->values = {1.0, 2.0};
  const Value other = vec;
  put(vec, {at(0)}, 5);
  EXPECT_EQ(show(other), "Vec[5.0, 2.0]");
  expect_runtime_error("An element of FloatVec cannot be String", [&] { put(vec, {at(0)}, "a"); });
}

}  // namespace
}  // namespace tl::test
