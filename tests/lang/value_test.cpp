#include "lang/value.h"

#include <cmath>
#include <limits>

#include "lang/surroundings.h"

namespace tl::test {
namespace {

using lang::equal;
using lang::make;
using lang::quoted;
using lang::text;
using lang::type_name;

class Values : public LangTest {};
TL_ON_EVERY_DEVICE(Values);

TEST_P(Values, NumbersAreWrittenShortestAndWithoutExponent) {
  EXPECT_EQ(text(Value(42)), "42");
  EXPECT_EQ(text(Value(1.0)), "1");
  EXPECT_EQ(text(Value(0.1)), "0.1");
  EXPECT_EQ(text(Value(-2.5)), "-2.5");
  EXPECT_EQ(text(Value(1e21)), "1000000000000000000000");
  EXPECT_EQ(text(Value(1.5e-7)), "0.00000015");
  EXPECT_EQ(text(Value(123456.75)), "123456.75");
  EXPECT_EQ(text(Value(0.0)), "0");
  EXPECT_EQ(text(Value(std::nan(""))), "NaN");
  EXPECT_EQ(text(Value(std::numeric_limits<double>::infinity())), "inf");
  EXPECT_EQ(text(Value(-std::numeric_limits<double>::infinity())), "-inf");
  EXPECT_EQ(text(Value(true)), "true");
  EXPECT_EQ(text(Value("a\"b")), "a\"b");
  EXPECT_EQ(text(Value()), "void");
}

TEST_P(Values, TensorsShowTheirElementsUpToTen) {
  EXPECT_EQ(text(tensor({1, 2.5f, 0.1f, -3}, {2, 2})), "[1, 2.5, 0.1, -3]");
  EXPECT_EQ(text(tensor({}, {0})), "[]");
  EXPECT_EQ(text(counting({10})), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");
  EXPECT_EQ(text(counting({11})), "Tensor<f32>(shape=[11])");
  EXPECT_EQ(text(counting({3, 4})), "Tensor<f32>(shape=[3, 4])");
  EXPECT_EQ(text(typed({1, 0.5}, {2}, DType::F16)), "[1, 0.5]");
  EXPECT_EQ(text(typed({1, -2}, {2}, DType::I32)), "[1, -2]");
  EXPECT_EQ(text(typed({1, 0}, {2}, DType::Bool)), "[1, 0]");
  EXPECT_EQ(text(tensor({1e10f}, {1})), "[10000000000]");
  EXPECT_EQ(text(call("quantize", {counting({2, 32}), "q8_0"})), "Tensor<q8_0>(shape=[2, 32])");
}

TEST_P(Values, ListsShowTheirElementsUpToTen) {
  EXPECT_EQ(text(list({1, 2})), "[1, 2]");
  EXPECT_EQ(text(list({1.0, 2.5})), "[1.0, 2.5]");
  EXPECT_EQ(text(list({1, 2.5})), "[1.0, 2.5]");
  EXPECT_EQ(text(list({1e-6, 1e16, 1e-5, 1.5e-9})), "[1e-6, 1e16, 0.00001, 1.5e-9]");
  EXPECT_EQ(text(list({"a", "b\n"})), "[\"a\", \"b\\n\"]");
  EXPECT_EQ(text(list({true, false})), "[true, false]");
  EXPECT_EQ(text(list({})), "[]");
  EXPECT_EQ(text(range(0, 3)), "[0, 1, 2]");
  EXPECT_EQ(text(range(5, 5)), "[]");
  EXPECT_EQ(text(range(0, 11)), "[0, 1, ..., 10] (len=11)");
  EXPECT_EQ(text(tokens({1, 15043})), "[1, 15043]");
}

TEST_P(Values, RowsOfEqualLengthLookLikeATensor) {
  EXPECT_EQ(text(list({list({1, 2}), list({3, 4})})), "[1, 2, 3, 4]");
  EXPECT_EQ(text(list({list({1.5, 2.0}), list({3.0, 4.0})})), "[1.5, 2, 3, 4]");
  std::vector<Value> rows(4, list({1, 2, 3}));
  EXPECT_EQ(text(list(rows)), "Tensor<f32>(shape=[4, 3])");
  EXPECT_EQ(text(list({list({1}), list({2, 3})})), "[[1], [2, 3]]");
  EXPECT_EQ(text(list({list({"a"}), list({"b"})})), "[[\"a\"], [\"b\"]]");
}

TEST_P(Values, OtherKindsHaveTexts) {
  EXPECT_EQ(text(tuple({1, 2})), "(1, 2)");
  EXPECT_EQ(text(tuple({"a"})), "(\"a\",)");
  EXPECT_EQ(text(make<lang::TypeObject>("Person")), "<Type: Person>");
  Value map = make<lang::MapObject>();
  map.mutate<lang::MapObject>().slot("a") = 1;
  map.mutate<lang::MapObject>().slot(2) = list({1.0});
  EXPECT_EQ(text(map), "{\"a\": 1, 2: [1.0]}");
  Value vec = make<lang::VecObject>(Kind::Int);
  static_cast<lang::VecObject*>(vec.object())->values = {1, 2};
  EXPECT_EQ(text(vec), "Vec[1, 2]");
  EXPECT_EQ(quoted(Value("x")), "\"x\"");
  EXPECT_EQ(quoted(Value(2.0)), "2.0");
  EXPECT_EQ(text(call("new_tensor_buffer", {1 << 21})), "TensorBuffer(capacity=2MB, used=0MB)");
}

TEST_P(Values, KindsHaveNames) {
  EXPECT_EQ(type_name(Value(1)), "Integer");
  EXPECT_EQ(type_name(Value(1.0)), "Float");
  EXPECT_EQ(type_name(Value(true)), "Boolean");
  EXPECT_EQ(type_name(Value("")), "String");
  EXPECT_EQ(type_name(tensor({1})), "Tensor");
  EXPECT_EQ(type_name(list({})), "List");
  EXPECT_EQ(type_name(make<lang::VecObject>(Kind::Float)), "FloatVec");
  EXPECT_EQ(type_name(Value()), "Void");
}

TEST_P(Values, EqualMeansSameKindAndSameContents) {
  EXPECT_TRUE(equal(1, 1));
  EXPECT_FALSE(equal(1, 1.0));
  EXPECT_TRUE(lang::loosely_equal(1, 1.0));
  EXPECT_FALSE(equal(std::nan(""), std::nan("")));
  EXPECT_TRUE(equal(list({1, "a"}), list({1, "a"})));
  EXPECT_FALSE(equal(list({1}), list({1, 2})));
  EXPECT_TRUE(equal(range(0, 3), list({0, 1, 2})));
  EXPECT_FALSE(equal(list({1}), list({1.0})));
  EXPECT_TRUE(equal(tuple({1}), tuple({1})));
  EXPECT_FALSE(equal(tuple({1}), list({1})));
  EXPECT_FALSE(equal("1", 1));
}

TEST_P(Values, TensorsAreEqualByShapeAndElements) {
  EXPECT_TRUE(equal(tensor({1, 2}), tensor({1, 2})));
  EXPECT_FALSE(equal(tensor({1, 2}), tensor({1, 2}, {2, 1})));
  EXPECT_FALSE(equal(tensor({1, 2}), tensor({1, 3})));
  EXPECT_TRUE(equal(tensor({1, 2}), list({1.0, 2.0})));
  EXPECT_TRUE(equal(list({list({1, 2})}), tensor({1, 2}, {1, 2})));
  EXPECT_FALSE(equal(tensor({1, 2}), list({"a", "b"})));
  EXPECT_FALSE(equal(tensor({1}), 1.0));
  EXPECT_TRUE(equal(typed({1, 2}, {2}, DType::F16), tensor({1, 2})));
}

TEST_P(Values, MapsKeepTheirOrderHoweverManyEntries) {
  Value value = make<lang::MapObject>();
  auto& map = value.mutate<lang::MapObject>();
  for (int i = 0; i < 1000; ++i) map.slot(join("key", i)) = i;
  for (int i = 0; i < 1000; i += 7) EXPECT_TRUE(map.remove(Value(join("key", i))));
  EXPECT_FALSE(map.remove("key0"));
  for (int i = 0; i < 1000; ++i) {
    const Value* found = map.find(Value(join("key", i)));
    ASSERT_EQ(found == nullptr, i % 7 == 0) << i;
    if (found != nullptr) {
      EXPECT_EQ(found->integer(), i);
    }
  }
  EXPECT_EQ(map.entries.front().key.string(), "key1");
  map.slot(5) = "integer";
  map.slot(true) = "boolean";
  EXPECT_EQ(map.find(5)->string(), "integer");
  EXPECT_EQ(map.find(true)->string(), "boolean");
  EXPECT_EQ(map.find(1.5), nullptr);
  expect_runtime_error("A map's key must be", [&] { map.slot(1.5); });
}

TEST_P(Values, WritingDetaches) {
  Value a = list({1, 2});
  Value b = a;
  b.mutate<lang::ListObject>().values[0] = 9;
  EXPECT_EQ(text(a), "[1, 2]");
  EXPECT_EQ(text(b), "[9, 2]");
}

TEST_P(Values, NestingUsesUpNoStack) {
  Value deep = list({});
  for (int i = 0; i < 1'000'000; ++i) deep = list({deep});
  EXPECT_LT(text(deep).size(), 1000u);
  expect_runtime_error("nested too deeply", [&] { equal(deep, list({deep})); });
  deep = Value();
  EXPECT_TRUE(deep.is(Kind::Void));
}

TEST_P(Values, APlainQuantisedTensorIsATensor) {
  const QTensor plain =
      QTensor::quantize(lang::to_tensor(context, "test", counting({2, 3})), QType::F16);
  const Value value(plain);
  EXPECT_TRUE(value.is(Kind::Tensor));
  EXPECT_EQ(dtype(value), "f16");
  EXPECT_EQ(all(value), "0 1 2 3 4 5");
}

}  // namespace
}  // namespace tl::test
