#include "lang/operators.h"

#include <cmath>
#include <limits>

#include "lang/surroundings.h"

namespace tl::test {
namespace {

using Op = lang::ast::BinaryOp;
using lang::ast::UnaryOp;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

class Operators : public LangTest {
 protected:
  Value minus(const Value& a) { return lang::unary(context, UnaryOp::Negate, a); }
  Value negated(const Value& a) { return lang::unary(context, UnaryOp::Not, a); }
  Value inverse(const Value& a) { return lang::unary(context, UnaryOp::Inverse, a); }
};
TL_ON_EVERY_DEVICE(Operators);

TEST_P(Operators, IntegersStayIntegers) {
  EXPECT_EQ(op(7, Op::Add, 2).integer(), 9);
  EXPECT_EQ(op(7, Op::Divide, 2).integer(), 3);
  EXPECT_EQ(op(-7, Op::Divide, 2).integer(), -3);
  EXPECT_EQ(op(-7, Op::Remainder, 2).integer(), -1);
  EXPECT_EQ(op(2, Op::Power, 10).integer(), 1024);
  EXPECT_EQ(op(0, Op::Power, 0).integer(), 1);
  EXPECT_EQ(op(2, Op::Power, -1).real(), 0.5);
  EXPECT_EQ(op(kLeast, Op::Remainder, -1).integer(), 0);
}

TEST_P(Operators, IntegersDoNotWrap) {
  expect_runtime_error("Integer overflow: 9223372036854775807 + 1", [&] { op(kMost, Op::Add, 1); });
  expect_runtime_error("Integer overflow: -9223372036854775808 - 1",
                       [&] { op(kLeast, Op::Subtract, 1); });
  expect_runtime_error("Integer overflow", [&] { op(kMost, Op::Multiply, 2); });
  expect_runtime_error("Integer overflow", [&] { op(kLeast, Op::Divide, -1); });
  expect_runtime_error("Integer overflow: 10 ** 19", [&] { op(10, Op::Power, 19); });
  expect_runtime_error("Integer overflow", [&] { minus(kLeast); });
}

TEST_P(Operators, FloatsMixWithIntegers) {
  EXPECT_EQ(op(1, Op::Add, 0.5).real(), 1.5);
  EXPECT_EQ(op(7.5, Op::Remainder, 2).real(), 1.5);
  EXPECT_EQ(op(2.0, Op::Power, 3).real(), 8.0);
  EXPECT_TRUE(op(1, Op::Equal, 1.0).boolean());
  EXPECT_TRUE(op(1, Op::Less, 1.5).boolean());
  EXPECT_TRUE(op(std::nan(""), Op::NotEqual, std::nan("")).boolean());
  EXPECT_TRUE(op(1.0, Op::Approx, 1.0 + 1e-9).boolean());
  EXPECT_FALSE(op(1.0, Op::Approx, 1.1).boolean());
}

TEST_P(Operators, DivisionByZeroIsAnError) {
  for (const Op divide : {Op::Divide, Op::Remainder}) {
    expect_runtime_error("Division by zero", [&] { op(1, divide, 0); });
    expect_runtime_error("Division by zero", [&] { op(1.0, divide, 0.0); });
    expect_runtime_error("Division by zero", [&] { op(tensor({1, 2}), divide, 0); });
  }
}

TEST_P(Operators, StringsAddRepeatAndCompare) {
  EXPECT_EQ(op("a", Op::Add, "b").string(), "ab");
  EXPECT_EQ(op("=", Op::Multiply, 3).string(), "===");
  EXPECT_EQ(op(2, Op::Multiply, "ab").string(), "abab");
  EXPECT_EQ(op("x", Op::Multiply, -1).string(), "");
  EXPECT_TRUE(op("a", Op::Less, "b").boolean());
  EXPECT_TRUE(op("é", Op::Greater, "z").boolean());
  expect_runtime_error("too long", [&] { op("ab", Op::Multiply, kMost); });
  expect_runtime_error("String - String", [&] { op("a", Op::Subtract, "b"); });
}

TEST_P(Operators, OtherKindsAreRefusedByName) {
  expect_runtime_error(
      "Runtime type error: Binary operation requires compatible types: Tensor + String",
      [&] { op(tensor({1}), Op::Add, "a"); });
  expect_runtime_error("Integer + String", [&] { op(1, Op::Add, "a"); });
  expect_runtime_error("Boolean + Boolean", [&] { op(true, Op::Add, true); });
  expect_runtime_error("Void == Integer", [&] { op(Value(), Op::Equal, 1); });
  expect_runtime_error("Float @ Tensor", [&] { op(2.0, Op::MatrixProduct, tensor({1})); });
  expect_runtime_error("-String", [&] { minus("a"); });
  expect_runtime_error("!Integer", [&] { negated(1); });
  expect_runtime_error("inv String", [&] { inverse("a"); });
}

TEST_P(Operators, BooleansCombine) {
  EXPECT_TRUE(op(true, Op::And, true).boolean());
  EXPECT_TRUE(op(false, Op::Or, true).boolean());
  EXPECT_TRUE(op(true, Op::NotEqual, false).boolean());
  EXPECT_FALSE(negated(true).boolean());
}

TEST_P(Operators, TensorsBroadcast) {
  EXPECT_EQ(whole(op(counting({2, 2}), Op::Add, tensor({10, 20}))), "[2, 2] 10 21 12 23");
  EXPECT_EQ(whole(op(tensor({1, 2}, {2, 1}), Op::Multiply, tensor({3, 4}, {1, 2}))),
            "[2, 2] 3 4 6 8");
  expect_error(ErrorKind::ShapeMismatch, "add",
               [&] { op(tensor({1, 2}), Op::Add, tensor({1, 2, 3})); });
}

TEST_P(Operators, TensorsTakeNumbersOnEitherSide) {
  EXPECT_EQ(show(op(tensor({1, 2}), Op::Add, 1)), "[2, 3]");
  EXPECT_EQ(show(op(1, Op::Subtract, tensor({1, 2}))), "[0, -1]");
  EXPECT_EQ(show(op(1.0, Op::Divide, tensor({2, 4}))), "[0.5, 0.25]");
  EXPECT_EQ(show(op(tensor({1, 2, 3}), Op::Power, 2)), "[1, 4, 9]");
  EXPECT_EQ(show(op(2, Op::Power, tensor({1, 2, 3}))), "[2, 4, 8]");
  EXPECT_EQ(show(op(tensor({5, -5}), Op::Remainder, 3)), "[2, -2]");
  EXPECT_EQ(show(minus(tensor({1, -2}))), "[-1, 2]");
  EXPECT_EQ(dtype(op(typed({1, 2}, {2}, DType::F16), Op::Multiply, 0.5)), "f16");
}

TEST_P(Operators, DTypesArePromoted) {
  const auto result = [&](DType a, DType b) {
    return dtype(op(typed({1, 2}, {2}, a), Op::Add, typed({1, 2}, {2}, b)));
  };
  EXPECT_EQ(result(DType::F16, DType::F32), "f32");
  EXPECT_EQ(result(DType::F16, DType::BF16), "f32");
  EXPECT_EQ(result(DType::I64, DType::F16), "f16");
  EXPECT_EQ(result(DType::I32, DType::I64), "i64");
  EXPECT_EQ(result(DType::U8, DType::I16), "i16");
  EXPECT_EQ(result(DType::U32, DType::I32), "i64");
  EXPECT_EQ(result(DType::Bool, DType::I32), "i32");
  EXPECT_EQ(result(DType::Bool, DType::Bool), "f32");
  EXPECT_EQ(result(DType::F64, DType::F32), "f64");
  const Value integers = typed({1, 2}, {2}, DType::I32);
  EXPECT_EQ(dtype(op(integers, Op::Multiply, 2)), "i32");
  EXPECT_EQ(dtype(op(integers, Op::Multiply, 0.5)), "f32");
  EXPECT_EQ(show(op(integers, Op::Multiply, 0.5)), "[0.5, 1]");
  EXPECT_EQ(show(op(integers, Op::Power, -1)), "[1, 0.5]");
}

TEST_P(Operators, ListsStandForTensors) {
  EXPECT_EQ(show(op(list({1.0}), Op::Add, list({2.0}))), "[3]");
  EXPECT_EQ(show(op(list({1, 2}), Op::Multiply, 2)), "[2, 4]");
  EXPECT_EQ(dtype(op(list({1, 2}), Op::Add, typed({1, 2}, {2}, DType::F16))), "f16");
  EXPECT_EQ(dtype(op(list({1, 2}), Op::Add, typed({1, 2}, {2}, DType::I32))), "i32");
  EXPECT_EQ(show(op(list({0.5, 2.0}), Op::Add, typed({1, 2}, {2}, DType::I32))), "[1.5, 4]");
  EXPECT_EQ(show(op(list({list({1, 2})}), Op::Add, list({10, 20}))), "[11, 22]");
  EXPECT_EQ(show(minus(list({1, 2}))), "[-1, -2]");
  expect_runtime_error("its rows differ", [&] { op(list({list({1, 2}), list({3})}), Op::Add, 1); });
}

TEST_P(Operators, OtherListsAreJoined) {
  EXPECT_EQ(show(op(list({"a"}), Op::Add, list({"b", "c"}))), "[\"a\", \"b\", \"c\"]");
  EXPECT_EQ(show(op(list({}), Op::Add, list({1, 2}))), "[1, 2]");
  EXPECT_EQ(list({tensor({1})}).as<lang::ListObject>().values.size(), 1u);
  const Value both = op(list({tensor({1})}), Op::Add, list({tensor({2})}));
  EXPECT_EQ(both.as<lang::ListObject>().values.size(), 2u);
  EXPECT_TRUE(op(list({1, 2}), Op::Equal, list({1.0, 2.0})).boolean());
  EXPECT_TRUE(op(list({1, 2}), Op::NotEqual, list({1, 3})).boolean());
  EXPECT_TRUE(op(tuple({1, "a"}), Op::Equal, tuple({1, "a"})).boolean());
}

TEST_P(Operators, ComparisonsGiveTruthValues) {
  const Value mask = op(tensor({1, 2, 3}), Op::Greater, 1.5);
  EXPECT_EQ(dtype(mask), "bool");
  EXPECT_EQ(show(mask), "[0, 1, 1]");
  EXPECT_EQ(show(op(tensor({1, 2}), Op::Equal, tensor({1, 3}))), "[1, 0]");
  EXPECT_EQ(show(op(2, Op::LessEqual, tensor({1, 2, 3}))), "[0, 1, 1]");
  EXPECT_EQ(show(op(mask, Op::Multiply, tensor({5, 6, 7}))), "[0, 6, 7]");
  EXPECT_EQ(show(op(mask, Op::Add, mask)), "[0, 2, 2]");
  EXPECT_EQ(show(op(mask, Op::And, op(tensor({1, 2, 3}), Op::Less, 3))), "[0, 1, 0]");
  EXPECT_EQ(show(op(mask, Op::Or, true)), "[1, 1, 1]");
  EXPECT_EQ(show(negated(mask)), "[1, 0, 0]");
  EXPECT_EQ(show(op(typed({1, 2}, {2}, DType::I32), Op::Less, 1.5)), "[1, 0]");
}

TEST_P(Operators, ApproximatelyEqualIsOneTruthValue) {
  EXPECT_TRUE(op(tensor({1, 2}), Op::Approx, tensor({1.000001f, 2})).boolean());
  EXPECT_FALSE(op(tensor({1, 2}), Op::Approx, tensor({1.1f, 2})).boolean());
  EXPECT_TRUE(op(tensor({0, 0}), Op::Approx, 0).boolean());
}

TEST_P(Operators, MatrixProductsOfEveryRank) {
  const Value a = counting({2, 3});
  EXPECT_EQ(whole(op(a, Op::MatrixProduct, counting({3, 2}))), "[2, 2] 10 13 28 40");
  EXPECT_EQ(whole(op(a, Op::MatrixProduct, tensor({1, 1, 1}))), "[2] 3 12");
  EXPECT_EQ(whole(op(tensor({1, 1}), Op::MatrixProduct, a)), "[3] 3 5 7");
  EXPECT_EQ(whole(op(tensor({1, 2}), Op::MatrixProduct, tensor({3, 4}))), "[] 11");
  EXPECT_EQ(whole(op(counting({2, 1, 2}), Op::MatrixProduct, counting({2, 1}))), "[2, 1, 1] 1 3");
  EXPECT_EQ(whole(op(list({list({1, 2})}), Op::MatrixProduct, list({3, 4}))), "[1] 11");
  EXPECT_EQ(dtype(op(a, Op::MatrixProduct, typed({1, 1, 1}, {3}, DType::F16))), "f32");
  expect_error(ErrorKind::ShapeMismatch, "matmul", [&] { op(a, Op::MatrixProduct, a); });
}

TEST_P(Operators, QuantisedMatricesMultiply) {
  const Value weight = call("quantize", {counting({2, 32}), "q8_0"});
  const Value plain = call("dequantize", {weight});
  const Value x = call("full", {list({32}), 0.5});
  const Value wanted = op(plain, Op::MatrixProduct, x);
  Value got = op(weight, Op::MatrixProduct, x);
  // On the CPU x is rounded to bytes.
  expect_near(got, lang::list_of_reals(wanted.tensor()), 0.5);
  const Value columns = call("full", {list({32, 3}), 0.5});
  got = op(weight, Op::MatrixProduct, columns);
  EXPECT_EQ(show(call("shape", {got})), "[2, 3]");
  const Value row = call("full", {list({1, 2}), 1.0});
  EXPECT_TRUE(op(op(row, Op::MatrixProduct, weight), Op::Approx, op(row, Op::MatrixProduct, plain))
                  .boolean());
}

TEST_P(Operators, OuterProducts) {
  EXPECT_EQ(whole(op(tensor({1, 2}), Op::Outer, tensor({3, 4, 5}))), "[2, 3] 3 4 5 6 8 10");
  EXPECT_EQ(show(call("shape", {op(counting({2, 3}), Op::Outer, counting({4}))})), "[2, 3, 4]");
  EXPECT_EQ(op(2, Op::Outer, 3).integer(), 6);
}

TEST_P(Operators, InversesOfMatrices) {
  EXPECT_EQ(whole(inverse(tensor({2, 0, 0, 4}, {2, 2}))), "[2, 2] 0.5 0 0 0.25");
  EXPECT_EQ(whole(inverse(tensor({0, 1, 2, 0}, {2, 2}))), "[2, 2] 0 0.5 1 0");
  EXPECT_EQ(inverse(4.0).real(), 0.25);
  expect_error(ErrorKind::BadArgument, "inv: the matrix is singular",
               [&] { inverse(tensor({1, 2, 2, 4}, {2, 2})); });
  expect_error(ErrorKind::ShapeMismatch, "square", [&] { inverse(counting({2, 3})); });
}

TEST_P(Operators, CastsTruncateAndSaturate) {
  EXPECT_EQ(lang::cast(2.9, true).integer(), 2);
  EXPECT_EQ(lang::cast(-2.9, true).integer(), -2);
  EXPECT_EQ(lang::cast(1e300, true).integer(), kMost);
  EXPECT_EQ(lang::cast(std::nan(""), true).integer(), 0);
  EXPECT_EQ(lang::cast(true, true).integer(), 1);
  EXPECT_EQ(lang::cast(3, false).real(), 3.0);
  EXPECT_EQ(lang::cast(tensor({2.5f}), false).real(), 2.5);
  expect_runtime_error("Cannot cast String to int", [&] { lang::cast("1", true); });
  expect_runtime_error("Cannot cast Tensor to float", [&] { lang::cast(tensor({1, 2}), false); });
}

TEST_P(Operators, ConditionsAreTruthValues) {
  EXPECT_TRUE(lang::truth(true, "if"));
  EXPECT_TRUE(lang::truth(op(tensor({2}), Op::Greater, 1), "if"));
  expect_runtime_error("The condition of while must be a Boolean, got Integer",
                       [&] { lang::truth(1, "while"); });
  expect_runtime_error("2 elements", [&] { lang::truth(tensor({1, 2}), "if"); });
}

TEST_P(Operators, DeclaredTensorsTakeTheirTypeAndShape) {
  const auto declared = [&](DType dtype, const Dims& shape, const Value* value) {
    return lang::declared_tensor(context, "x", dtype, shape, value);
  };
  EXPECT_EQ(whole(declared(DType::F32, {2}, nullptr)), "[2] 0 0");
  const Value six = list({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(whole(declared(DType::F16, {2, 3}, &six)), "[2, 3] 1 2 3 4 5 6");
  EXPECT_EQ(dtype(declared(DType::F16, {2, 3}, &six)), "f16");
  EXPECT_EQ(whole(declared(DType::I64, {-1, 2}, &six)), "[3, 2] 1 2 3 4 5 6");
  const Value number = 0.5;
  EXPECT_EQ(whole(declared(DType::F32, {2}, &number)), "[2] 0.5 0.5");
  const Value zeros = call("zeros");
  EXPECT_EQ(whole(declared(DType::F32, {3}, &zeros)), "[3] 0 0 0");
  const Value normal = call("random_normal", {0.0, 0.02});
  EXPECT_EQ(show(call("shape", {declared(DType::F16, {3, 4}, &normal)})), "[3, 4]");
  const Value two = list({1, 2});
  expect_runtime_error("Tensor error: Shape mismatch: expected [3], got [2]",
                       [&] { declared(DType::F32, {3}, &two); });
  expect_runtime_error("needs a size for every dimension",
                       [&] { declared(DType::F32, {-1}, nullptr); });
  const Value text = "a";
  expect_runtime_error("Tensor 'x' expects a tensor, got String",
                       [&] { declared(DType::F32, {1}, &text); });
}

TEST_P(Operators, LoopsGoThroughEverything) {
  EXPECT_EQ(all(counting({2, 2})), "0 1 2 3");
  EXPECT_EQ(all(typed({1, 0}, {2}, DType::Bool)), "true false");
  EXPECT_EQ(all(typed({3, 4}, {2}, DType::I32)), "3 4");
  EXPECT_EQ(all(list({1.5, 2.5})), "1.5 2.5");
  EXPECT_EQ(all(range(2, 5)), "2 3 4");
  EXPECT_EQ(all("añ€"), "a ñ €");
  EXPECT_EQ(all(tokens({7, 8})), "7 8");
  EXPECT_EQ(all(tuple({1, "b"})), "1 b");
  Value map = lang::make<lang::MapObject>();
  map.mutate<lang::MapObject>().slot("a") = 1;
  EXPECT_EQ(all(map), "(\"a\", 1)");
  expect_runtime_error("Integer cannot be iterated over", [&] { all(3); });
}

}  // namespace
}  // namespace tl::test
