// Creation, shapes, elementwise math and reductions. Each builtin has a call that is asserted and
// one that fails.
#include <cmath>
#include <limits>
#include <set>

#include "lang/surroundings.h"
#include "tl/ops/table.h"

namespace tl::test {
namespace {

using Op = lang::ast::BinaryOp;

class TensorBuiltins : public LangTest {
 protected:
  static Value sizes(const Shape& shape) {
    return list(std::vector<Value>(shape.begin(), shape.end()));
  }
};
TL_ON_EVERY_DEVICE(TensorBuiltins);

// ---- the table

TEST_P(TensorBuiltins, EveryOpIsABuiltin) {
  for (const OpRow& row : op_table()) {
    const lang::Builtin* builtin = lang::BuiltinTable::instance().find(row.name);
    ASSERT_NE(builtin, nullptr) << row.name;
    EXPECT_FALSE(builtin->help.empty()) << row.name;
    EXPECT_EQ(row.call.parameters.size(), op_defaults(row).size()) << row.name;
  }
}

TEST_P(TensorBuiltins, RowsAreReadFromTheirSignatures) {
  const lang::Builtin* row = lang::BuiltinTable::instance().find("rms_norm");
  ASSERT_EQ(row->parameters.size(), 3u);
  EXPECT_EQ(row->parameters[0].name, "x");
  EXPECT_FALSE(row->parameters[0].optional);
  EXPECT_TRUE(row->parameters[1].default_value.is(Kind::Missing));
  EXPECT_EQ(row->parameters[2].default_value.real(), 1e-6);
  EXPECT_TRUE(lang::BuiltinTable::instance().find("einsum")->variadic);
  std::set<std::string_view> names;
  for (const lang::Builtin* builtin : lang::BuiltinTable::instance().all()) {
    EXPECT_TRUE(names.insert(builtin->name).second) << builtin->name;
    EXPECT_EQ(builtin->help.back(), '.') << builtin->name;
  }
  EXPECT_EQ(lang::BuiltinTable::instance().find("no_such_thing"), nullptr);
}

TEST_P(TensorBuiltins, OpsConvertTheirArguments) {
  EXPECT_EQ(show(call("clamp", {tensor({-1, 5}), 0, 2})), "[0, 2]");
  EXPECT_EQ(show(call("maximum", {list({1, 5}), 3.5})), "[3.5, 5]");
  EXPECT_EQ(show(call("exp2", {3})), "8");
  EXPECT_EQ(show(call("atan2", {0.0, 1.0})), "0");
  EXPECT_EQ(show(call("where", {op(tensor({1, -1}), Op::Greater, 0), 1.0, 0.0})), "[1, 0]");
  EXPECT_EQ(show(call("where", {list({true, false}), tensor({1, 2}), 7})), "[1, 7]");
  EXPECT_EQ(show(call("softmax", {list({0, 0})})), "[0.5, 0.5]");
  EXPECT_EQ(whole(call("one_hot", {list({1, 0}), 3})), "[2, 3] 0 1 0 1 0 0");
  EXPECT_EQ(whole(call("index_select", {counting({2, 3}), 1, list({2, 0})})), "[2, 2] 2 0 5 3");
  EXPECT_EQ(whole(call("index_select", {counting({2, 3}), 0, tensor({1})})), "[1, 3] 3 4 5");
  EXPECT_EQ(show(call("std", {list({1, 1, 1})})), "0");
  EXPECT_EQ(whole(call("var", {counting({2, 2}), 0, 0.0})), "[2] 1 1");
  EXPECT_EQ(show(call("norm", {tensor({3, 4})})), "5");
  EXPECT_EQ(show(call("prod", {list({2, 3, 4})})), "24");
  EXPECT_EQ(show(call("isnan", {tensor({1, NAN})})), "[0, 1]");
  EXPECT_EQ(dtype(call("isnan", {tensor({1})})), "bool");
  EXPECT_EQ(whole(call("tril", {call("ones", {list({2, 2})})})), "[2, 2] 1 0 1 1");
  EXPECT_EQ(whole(call("pad", {tensor({1}), list({1}), 2})), "[4] 0 1 0 0");
  EXPECT_EQ(whole(call("repeat", {tensor({1, 2}), list({2, 1})})), "[2, 2] 1 2 1 2");
  EXPECT_EQ(show(call("outer", {tensor({1, 2}), tensor({3})})), "[3, 6]");
  EXPECT_EQ(show(call("mse_loss", {list({1.0, 2.0}), tensor({1, 4})})), "[2]");
  EXPECT_EQ(show(call("bitwise_and", {typed({6}, {1}, DType::I32), 3})), "[2]");
}

TEST_P(TensorBuiltins, OpsGiveSeveralResultsAsATuple) {
  const Value sorted = call("sort", {tensor({3, 1, 2})});
  ASSERT_TRUE(sorted.is(Kind::Tuple));
  const auto& parts = sorted.as<lang::TupleObject>().values;
  EXPECT_EQ(show(parts[0]), "[1, 2, 3]");
  EXPECT_EQ(show(parts[1]), "[1, 2, 0]");
  EXPECT_EQ(dtype(parts[1]), "i64");
  EXPECT_EQ(show(call("argsort", {tensor({3, 1, 2})})), "[1, 2, 0]");
  const Value best = call("topk", {tensor({3, 1, 2}), 2});
  EXPECT_EQ(show(best), "([3, 2], [0, 2])");
}

TEST_P(TensorBuiltins, OpsPromoteTheirTensors) {
  const Value half = typed({1, 2}, {2}, DType::F16);
  EXPECT_EQ(dtype(call("maximum", {half, tensor({1, 2})})), "f32");
  EXPECT_EQ(dtype(call("exp", {typed({1}, {1}, DType::I32)})), "f32");
  EXPECT_EQ(dtype(call("clamp", {typed({1}, {1}, DType::I32), 0, 0.5})), "f32");
  EXPECT_EQ(dtype(call("neg", {half})), "f16");
  EXPECT_EQ(dtype(call("cat", {list({half, tensor({1})}), 0})), "f32");
}

TEST_P(TensorBuiltins, OpsRefuseWhatTheyCannotUse) {
  expect_runtime_error("clamp() expects", [&] { call("clamp", {"a", 0, 1}); });
  expect_runtime_error("maximum() expects a tensor, got String",
                       [&] { call("maximum", {tensor({1}), "a"}); });
  expect_runtime_error("topk() expects an Integer for 'k', got String",
                       [&] { call("topk", {tensor({1}), "a"}); });
  expect_runtime_error("meshgrid() expects a list of tensors",
                       [&] { call("meshgrid", {tensor({1})}); });
  EXPECT_THROW(call("bitwise_and", {tensor({1}), tensor({1})}), Error);
  EXPECT_THROW(call("softmax", {tensor({1}), 3}), Error);
}

// ---- creation

TEST_P(TensorBuiltins, ConstantsHaveTheShapeAndDType) {
  EXPECT_EQ(whole(call("zeros", {list({2, 2})})), "[2, 2] 0 0 0 0");
  EXPECT_EQ(whole(call("ones", {3})), "[3] 1 1 1");
  EXPECT_EQ(whole(call("ones", {tensor({1, 2})})), "[1, 2] 1 1");
  EXPECT_EQ(dtype(call("zeros", {list({2}), "f16"})), "f16");
  EXPECT_EQ(dtype(call("f16::zeros", {list({2})})), "f16");
  EXPECT_EQ(dtype(call("i64::ones", {list({2})})), "i64");
  EXPECT_EQ(whole(call("full", {list({2}), 7.5})), "[2] 7.5 7.5");
  EXPECT_EQ(whole(call("eye", {2})), "[2, 2] 1 0 0 1");
  EXPECT_EQ(call("zeros", {list({1}), "f32", "cpu"}).tensor().device().text(), "cpu");
  EXPECT_EQ(call("zeros", {list({1})}).tensor().location(), device().location());
  expect_runtime_error("zeros() expects a list of integers for 'shape', got String",
                       [&] { call("zeros", {"a"}); });
  expect_runtime_error("not negative", [&] { call("ones", {list({-1})}); });
  expect_runtime_error("'f17' is no dtype", [&] { call("full", {list({1}), 1, "f17"}); });
  expect_runtime_error("eye() expects an Integer", [&] { call("eye", {"a"}); });
}

TEST_P(TensorBuiltins, Sequences) {
  EXPECT_EQ(show(call("arange", {3})), "[0, 1, 2]");
  EXPECT_EQ(show(call("arange", {2, 5})), "[2, 3, 4]");
  EXPECT_EQ(show(call("arange", {0, 1, 0.25})), "[0, 0.25, 0.5, 0.75]");
  EXPECT_EQ(show(call("arange", {3, 0, -1})), "[3, 2, 1]");
  EXPECT_EQ(dtype(call("i32::arange", {3})), "i32");
  EXPECT_EQ(show(call("linspace", {0, 1, 3})), "[0, 0.5, 1]");
  expect_runtime_error("nothing lies between", [&] { call("arange", {0}); });
  expect_runtime_error("nothing lies between", [&] { call("arange", {0, 3, 0}); });
  expect_runtime_error("linspace() expects", [&] { call("linspace", {0, 1}); });
}

TEST_P(TensorBuiltins, TensorsFromLists) {
  EXPECT_EQ(whole(call("tensor", {list({list({1, 2}), list({3, 4})})})), "[2, 2] 1 2 3 4");
  EXPECT_EQ(whole(call("tensor", {list({1, 2, 3, 4}), list({2, 2})})), "[2, 2] 1 2 3 4");
  EXPECT_EQ(dtype(call("f16::from_array", {list({1})})), "f16");
  EXPECT_EQ(dtype(call("tensor", {list({true})})), "f32");
  EXPECT_EQ(whole(call("f32::from_array", {list({tensor({1, 2}), tensor({3, 4})})})),
            "[2, 2] 1 2 3 4");
  expect_runtime_error("its rows differ",
                       [&] { call("tensor", {list({list({1, 2}), list({3})})}); });
  expect_runtime_error("from_array() expects a tensor, got String",
                       [&] { call("from_array", {"a"}); });
}

TEST_P(TensorBuiltins, RandomNumbersFollowTheSeed) {
  call("seed", {7});
  const Value first = call("rand", {list({4})});
  call("seed", {7});
  EXPECT_EQ(all(call("rand", {list({4})})), all(first));
  for (const double x : lang::list_of_reals(first.tensor())) {
    EXPECT_GE(x, 0);
    EXPECT_LT(x, 1);
  }
  EXPECT_TRUE(call("rand").is(Kind::Float));
  EXPECT_EQ(show(call("shape", {call("randn", {list({2, 3})})})), "[2, 3]");
  EXPECT_EQ(show(call("random_normal", {list({3}), 5.0, 0.0})), "[5, 5, 5]");
  EXPECT_EQ(show(call("random_uniform", {list({2}), 2.0, 2.0})), "[2, 2]");
  EXPECT_EQ(show(call("randint", {3, 4, list({2})})), "[3, 3]");
  EXPECT_EQ(call("randint", {3, 4}).integer(), 3);
  EXPECT_EQ(dtype(call("randint", {0, 9, list({2})})), "i64");
  EXPECT_THROW(call("randint", {4, 3, list({2})}), Error);
  EXPECT_THROW(call("random_normal", {list({2}), 0.0, -1.0}), Error);
  expect_runtime_error("seed() expects an Integer", [&] { call("seed", {"a"}); });
  expect_runtime_error("rand() expects", [&] { call("rand", {"a"}); });
}

TEST_P(TensorBuiltins, MasksAndTables) {
  EXPECT_EQ(whole(call("causal_mask", {2})), "[2, 2] 1 0 1 1");
  EXPECT_EQ(whole(call("padding_mask", {list({1, 3}), 3})), "[2, 3] 1 0 0 1 1 1");
  EXPECT_EQ(dtype(call("padding_mask", {typed({1}, {1}, DType::F16), 2})), "f16");
  expect_near(call("positional_encoding", {2, 2}),
              {0, 1, std::sin(1.0), std::cos(1 / std::pow(10000.0, 0.5))});
  EXPECT_EQ(dtype(call("f16::causal_mask", {2})), "f16");
  expect_runtime_error("causal_mask() expects", [&] { call("causal_mask", {-1}); });
  expect_runtime_error("padding_mask() expects", [&] { call("padding_mask", {list({1}), "a"}); });
  expect_runtime_error("positional_encoding() expects",
                       [&] { call("positional_encoding", {-2, 2}); });
}

TEST_P(TensorBuiltins, CachesHaveRoom) {
  const Value cache = call("Tensor::create_cache", {8, list({2})});
  EXPECT_EQ(show(call("shape", {cache})), "[0, 2]");
  EXPECT_EQ(cache.tensor().memory().bytes(), 8u * 2 * sizeof(float));
  const Value one = call("append", {cache, tensor({1, 2}, {1, 2})});
  EXPECT_EQ(whole(one), "[1, 2] 1 2");
  EXPECT_EQ(whole(cache), "[0, 2] ");
  expect_runtime_error("a number of rows", [&] { call("Tensor::create_cache", {-1, list({2})}); });
}

TEST_P(TensorBuiltins, BuffersHandOutMemoryOfTheirOwn) {
  Value buffer = call("new_tensor_buffer", {64});
  auto* host = static_cast<lang::HostObject*>(buffer.object());
  const auto method = [&](std::string_view name, std::vector<Value> values) {
    lang::Builtin described{name, "", "(...)", "", nullptr};
    lang::Args args(described, values);
    Value result;
    EXPECT_TRUE(host->method(context, name, args, result)) << name;
    return result;
  };
  {
    Value a = method("zeros", {list({4})});
    Value b = method("ones", {list({4})});
    EXPECT_EQ(show(a), "[0, 0, 0, 0]");
    EXPECT_EQ(show(b), "[1, 1, 1, 1]");
    EXPECT_EQ(dtype(a), "f16");
    put(a, {at(0)}, 5);
    EXPECT_EQ(show(a), "[5, 0, 0, 0]");
    EXPECT_EQ(show(b), "[1, 1, 1, 1]");
    method("ones", {list({4}), "f32"});
    expect_runtime_error("Tensor error: Buffer exhausted: requested 64 bytes, available ",
                         [&] { method("zeros", {list({32})}); });
  }
  // All of them are gone: the whole buffer is free again.
  EXPECT_EQ(show(call("shape", {method("zeros", {list({32})})})), "[32]");
  expect_runtime_error("alloc() expects 3 arguments, got 1", [&] { method("alloc", {list({1})}); });
  method("alloc", {list({4}), 2, 2});
  EXPECT_EQ(host->property(context, "used").integer(), 16);
  EXPECT_EQ(show(method("ones", {list({4})})), "[1, 1, 1, 1]");
  EXPECT_EQ(host->property(context, "used").integer(), 16);
  expect_runtime_error("Buffer exhausted", [&] { method("alloc", {list({4}), 20, 2}); });
  expect_runtime_error("new_tensor_buffer() expects", [&] { call("new_tensor_buffer", {-1}); });
}

// ---- shapes

TEST_P(TensorBuiltins, ShapesOfTheSameElements) {
  const Value m = counting({2, 3});
  EXPECT_EQ(show(call("shape", {m})), "[2, 3]");
  EXPECT_EQ(show(call("shape", {list({1, 2})})), "[2]");
  EXPECT_EQ(call("rank", {m}).integer(), 2);
  EXPECT_EQ(call("ndim", {m}).integer(), 2);
  EXPECT_EQ(call("numel", {m}).integer(), 6);
  EXPECT_EQ(call("item", {tensor({2.5f})}).real(), 2.5);
  EXPECT_EQ(whole(call("reshape", {m, list({3, -1})})), "[3, 2] 0 1 2 3 4 5");
  EXPECT_EQ(whole(call("reshape", {m, 6})), "[6] 0 1 2 3 4 5");
  EXPECT_EQ(whole(call("reshape", {m, 3, 2})), "[3, 2] 0 1 2 3 4 5");
  EXPECT_EQ(whole(call("flatten", {m})), "[6] 0 1 2 3 4 5");
  EXPECT_EQ(whole(call("transpose", {m})), "[3, 2] 0 3 1 4 2 5");
  EXPECT_EQ(whole(call("T", {m})), "[3, 2] 0 3 1 4 2 5");
  EXPECT_EQ(whole(call("permute", {m, list({1, 0})})), "[3, 2] 0 3 1 4 2 5");
  EXPECT_EQ(whole(call("broadcast_to", {tensor({1, 2}), list({2, 2})})), "[2, 2] 1 2 1 2");
  EXPECT_EQ(whole(call("narrow", {m, 1, 1, 2})), "[2, 2] 1 2 4 5");
  EXPECT_EQ(whole(call("diagonal", {m})), "[2] 0 4");
  EXPECT_EQ(whole(call("move_dim", {m, 0, 1})), "[3, 2] 0 3 1 4 2 5");
  EXPECT_EQ(whole(call("unfold", {tensor({1, 2, 3}), 0, 2, 1})), "[2, 2] 1 2 2 3");
}

TEST_P(TensorBuiltins, DimensionsOfSizeOne) {
  const Value x = tensor({1, 2}, {1, 2, 1});
  EXPECT_EQ(whole(call("squeeze", {x})), "[2] 1 2");
  EXPECT_EQ(whole(call("squeeze", {x, 0})), "[2, 1] 1 2");
  EXPECT_EQ(whole(call("squeeze", {tensor({5}, {1, 1})})), "[1] 5");
  EXPECT_EQ(whole(call("unsqueeze", {tensor({1, 2}), 0})), "[1, 2] 1 2");
  EXPECT_EQ(whole(call("unsqueeze", {tensor({1, 2}), -1})), "[2, 1] 1 2");
  expect_runtime_error("dimension 1 has size 2", [&] { call("squeeze", {x, 1}); });
  EXPECT_THROW(call("unsqueeze", {x, 9}), Error);
}

TEST_P(TensorBuiltins, ShapesThatDoNotFitAreErrors) {
  const Value m = counting({2, 3});
  EXPECT_THROW(call("reshape", {m, list({4})}), Error);
  EXPECT_THROW(call("permute", {m, list({0, 0})}), Error);
  EXPECT_THROW(call("broadcast_to", {m, list({3})}), Error);
  EXPECT_THROW(call("flatten", {m, 5}), Error);
  expect_runtime_error("transpose() expects a matrix", [&] { call("transpose", {tensor({1})}); });
  expect_runtime_error("item() expects", [&] { call("item", {m}); });
  expect_runtime_error("shape() expects a tensor, got String", [&] { call("shape", {"a"}); });
  expect_runtime_error("at most 8 sizes", [&] { call("reshape", {m, range(0, 9)}); });
}

TEST_P(TensorBuiltins, JoiningAndCutting) {
  const Value m = counting({2, 2});
  EXPECT_EQ(whole(call("concat", {m, m, 1})), "[2, 4] 0 1 0 1 2 3 2 3");
  EXPECT_EQ(whole(call("concat", {list({m, m}), 0})), "[4, 2] 0 1 2 3 0 1 2 3");
  EXPECT_EQ(whole(call("concat", {list({1, 2}), list({3})})), "[3] 1 2 3");
  EXPECT_EQ(whole(call("stack", {list({tensor({1}), tensor({2})})})), "[2, 1] 1 2");
  EXPECT_EQ(whole(call("tile", {tensor({1, 2}), 2})), "[4] 1 2 1 2");
  const Value pieces = call("split", {counting({5}), 2, 0});
  EXPECT_EQ(call("len", {pieces}).integer(), 3);
  EXPECT_EQ(show(get(pieces, {at(2)})), "[4]");
  EXPECT_EQ(show(op(pieces, Op::Add, 1)), "[1, 2]");
  EXPECT_EQ(show(call("shape", {pieces})), "[2]");
  EXPECT_EQ(call("len", {call("chunk", {counting({5}), 2, 0})}).integer(), 2);
  EXPECT_THROW(call("concat", {m, tensor({1, 2, 3}, {1, 3}), 0}), Error);
  expect_runtime_error("concat() expects tensors and one dimension",
                       [&] { call("concat", {m, 0, m}); });
  expect_runtime_error("stack() expects a list", [&] { call("stack", {m}); });
  expect_runtime_error("a size above 0", [&] { call("split", {m, 0}); });
  expect_runtime_error("a count above 0", [&] { call("chunk", {m, 0}); });
}

TEST_P(TensorBuiltins, PlacesByNumber) {
  const Value m = counting({3, 4});
  EXPECT_EQ(show(call("slice", {counting({5}), 1, 3})), "[1, 2]");
  EXPECT_EQ(show(call("slice", {m, 1, 0, 2})), "[4, 5]");
  EXPECT_EQ(show(call("slice", {typed({1, 2, 3}, {3}, DType::F16), 0.0, 2.0})), "[1, 2]");
  EXPECT_EQ(show(call("slice_last", {m, 0})), "[8, 9, 10, 11]");
  EXPECT_EQ(show(call("slice_last", {m, 1})), "[3, 7, 11]");
  EXPECT_EQ(show(call("slice_last", {tensor({1, 2}), 0})), "2");
  EXPECT_EQ(show(call("select", {m, 1, -1})), "[3, 7, 11]");
  expect_runtime_error("is no part of a dimension of 5",
                       [&] { call("slice", {counting({5}), 3, 3}); });
  expect_runtime_error("Index 9 out of bounds for length 3", [&] { call("select", {m, 0, 9}); });
  EXPECT_THROW(call("slice_last", {m, 2}), Error);
}

TEST_P(TensorBuiltins, GatherAndScatter) {
  const Value m = counting({2, 3});
  EXPECT_EQ(whole(call("gather", {m, 1, tensor({2, 0}, {2, 1})})), "[2, 1] 2 3");
  EXPECT_EQ(whole(call("gather", {m, 0, list({1, 1})})), "[2, 3] 3 4 5 3 4 5");
  EXPECT_EQ(whole(call("scatter", {m, 0, list({1}), tensor({7, 8, 9}, {1, 3})})),
            "[2, 3] 0 1 2 7 8 9");
  EXPECT_EQ(whole(call("scatter", {tensor({0, 0, 0}), 0, list({2, 0}), tensor({1, 2})})),
            "[3] 2 0 1");
  EXPECT_EQ(whole(call("scatter", {m, 1, list({0}), 9})), "[2, 3] 9 1 2 9 4 5");
  EXPECT_EQ(all(m), "0 1 2 3 4 5");
  expect_runtime_error("Index 2 out of bounds for length 2",
                       [&] { call("gather", {m, 0, list({2})}); });
  expect_runtime_error("scatter() expects indices", [&] { call("scatter", {m, 0, "a", 1}); });
}

// ---- math

TEST_P(TensorBuiltins, NumbersGiveNumbersAndTensorsTensors) {
  struct Case {
    std::string_view name;
    double at_half;
  };
  for (const auto& [name, wanted] :
       {Case{"exp", std::exp(0.5)}, Case{"log", std::log(0.5)}, Case{"sqrt", std::sqrt(0.5)},
        Case{"sin", std::sin(0.5)}, Case{"cos", std::cos(0.5)}, Case{"tan", std::tan(0.5)},
        Case{"tanh", std::tanh(0.5)}, Case{"sigmoid", 1 / (1 + std::exp(-0.5))}, Case{"relu", 0.5},
        Case{"gelu", 0.345714}, Case{"silu", 0.5 / (1 + std::exp(-0.5))}, Case{"abs", 0.5},
        Case{"log2", -1}, Case{"sqr", 0.25}, Case{"sign", 1}, Case{"log10", std::log10(0.5)},
        Case{"expm1", std::expm1(0.5)}}) {
    const Value number = call(name, {0.5});
    EXPECT_TRUE(number.is(Kind::Float)) << name;
    EXPECT_NEAR(number.real(), wanted, 1e-6) << name;
    expect_near(call(name, {tensor({0.5f, 0.5f})}), {wanted, wanted});
    expect_near(call(name, {list({0.5})}), {wanted});
    expect_runtime_error(join(name, "() expects a tensor, got String"), [&] { call(name, {"a"}); });
  }
}

TEST_P(TensorBuiltins, RoundingANumberGivesAnInteger) {
  EXPECT_EQ(call("floor", {-1.5}).integer(), -2);
  EXPECT_EQ(call("ceil", {1.2}).integer(), 2);
  EXPECT_EQ(call("round", {2.5}).integer(), 3);
  EXPECT_EQ(call("round", {-2.5}).integer(), -3);
  EXPECT_EQ(call("trunc", {-1.7}).integer(), -1);
  EXPECT_EQ(call("floor", {7}).integer(), 7);
  EXPECT_EQ(show(call("round", {tensor({0.5f, 1.4f})})), "[1, 1]");
  expect_runtime_error("floor() of NaN", [&] { call("floor", {std::nan("")}); });
  expect_runtime_error("ceil() expects a tensor, got String", [&] { call("ceil", {"a"}); });
}

TEST_P(TensorBuiltins, OperatorsAreFunctionsToo) {
  EXPECT_EQ(call("add", {1, 2}).integer(), 3);
  EXPECT_EQ(show(call("sub", {tensor({3}), tensor({1})})), "[2]");
  EXPECT_EQ(show(call("mul", {typed({2}, {1}, DType::F16), 0.5})), "[1]");
  EXPECT_EQ(show(call("div", {tensor({3}), 2})), "[1.5]");
  EXPECT_EQ(show(call("pow", {tensor({3}), 2})), "[9]");
  EXPECT_EQ(call("pow", {2, 3}).integer(), 8);
  EXPECT_EQ(show(call("eq", {tensor({1, 2}), 2})), "[0, 1]");
  EXPECT_EQ(show(call("matmul", {list({1, 2}), tensor({3, 4})})), "[11]");
  expect_runtime_error("Division by zero", [&] { call("div", {1, 0}); });
  expect_runtime_error("String * Float", [&] { call("mul", {"a", 2.0}); });
  expect_runtime_error("Integer @ Integer", [&] { call("matmul", {1, 2}); });
}

TEST_P(TensorBuiltins, ReductionsGiveNumbersOrTensors) {
  const Value m = counting({2, 3});
  EXPECT_EQ(call("sum", {m}).real(), 15);
  EXPECT_EQ(call("mean", {m}).real(), 2.5);
  EXPECT_EQ(call("max", {m}).real(), 5);
  EXPECT_EQ(call("min", {m}).real(), 0);
  EXPECT_EQ(whole(call("sum", {m, 0})), "[3] 3 5 7");
  EXPECT_EQ(whole(call("mean", {m, -1, true})), "[2, 1] 1 4");
  EXPECT_EQ(whole(call("max", {m, 1})), "[2] 2 5");
  EXPECT_EQ(whole(call("min", {m, 0})), "[3] 0 1 2");
  EXPECT_EQ(whole(call("sum", {m, list({0, 1})})), "[] 15");
  EXPECT_EQ(call("sum", {list({1, 2, 3})}).real(), 6);
  EXPECT_EQ(call("mean", {list({1, 2})}).real(), 1.5);
  EXPECT_EQ(call("sum", {op(m, Op::Greater, 2)}).real(), 3);
  EXPECT_EQ(call("sum", {typed({1, 2}, {2}, DType::I32)}).integer(), 3);
  const Value many = call("full", {list({1000}), 100.0, "f16"});
  EXPECT_EQ(call("sum", {many}).real(), 100000);
  EXPECT_THROW(call("sum", {m, 2}), Error);
  expect_runtime_error("mean() expects a tensor, got String", [&] { call("mean", {"a"}); });
  EXPECT_THROW(call("max", {call("zeros", {list({0})})}), Error);
}

TEST_P(TensorBuiltins, TheLargerOfTwo) {
  EXPECT_EQ(call("max", {1, 2}).integer(), 2);
  EXPECT_EQ(call("min", {1, 2.5}).real(), 1.0);
  EXPECT_EQ(show(call("max", {tensor({1, 5}), tensor({3, 2})})), "[3, 5]");
  EXPECT_EQ(show(call("max", {tensor({1, 5}), 2.5})), "[2.5, 5]");
  EXPECT_EQ(show(call("min", {2, tensor({1, 5})})), "[1, 2]");
  EXPECT_EQ(call("max", {3}).integer(), 3);
  expect_runtime_error("max() expects a tensor, got String", [&] { call("max", {"a", 1.0}); });
}

TEST_P(TensorBuiltins, PlacesAndJudgements) {
  const Value m = tensor({1, 5, 5, 0, 7, 2}, {2, 3});
  EXPECT_EQ(call("argmax", {m}).integer(), 4);
  EXPECT_EQ(call("argmin", {m}).integer(), 3);
  EXPECT_EQ(whole(call("argmax", {m, 1})), "[2] 1 1");
  EXPECT_EQ(whole(call("argmin", {m, 0, true})), "[1, 3] 1 0 1");
  EXPECT_TRUE(call("any", {m}).boolean());
  EXPECT_FALSE(call("all", {m}).boolean());
  EXPECT_EQ(whole(call("all", {m, 1})), "[2] true false");
  EXPECT_EQ(show(call("dot", {tensor({1, 2}), list({3, 4})})), "[11]");
  EXPECT_THROW(call("dot", {m, m}), Error);
  EXPECT_EQ(show(call("cumsum", {tensor({1, 2, 3})})), "[1, 3, 6]");
  EXPECT_EQ(show(call("cumprod", {tensor({1, 2, 3}), 0})), "[1, 2, 6]");
  EXPECT_THROW(call("argmax", {m, 5}), Error);
  expect_runtime_error("any() expects a tensor, got String", [&] { call("any", {"a"}); });
}

TEST_P(TensorBuiltins, LinearAlgebra) {
  const Value a = tensor({2, 1, 1, 3}, {2, 2});
  EXPECT_NEAR(call("det", {a}).real(), 5, 1e-6);
  EXPECT_EQ(call("determinant", {tensor({1, 2, 2, 4}, {2, 2})}).real(), 0);
  expect_near(call("inverse", {a}), {0.6, -0.2, -0.2, 0.4});
  expect_near(call("solve", {a, tensor({3, 4})}), {1, 1});
  EXPECT_EQ(whole(call("solve", {a, tensor({2, 1, 1, 3}, {2, 2})})), "[2, 2] 1 0 0 1");
  EXPECT_EQ(whole(call("det", {tensor({1, 0, 0, 1, 2, 0, 0, 2}, {2, 2, 2})})), "[2] 1 4");
  EXPECT_THROW(call("solve", {a, tensor({1, 2, 3})}), Error);
  EXPECT_THROW(call("inverse", {counting({2, 3})}), Error);
  EXPECT_THROW(call("det", {tensor({1})}), Error);
}

TEST_P(TensorBuiltins, SingularValues) {
  const Value small = call("svd", {tensor({3, 0, 0, -2}, {2, 2})});
  EXPECT_EQ(show(get(small, {at(1)})), "[3, 2]");
  for (const Shape& shape : {Shape{3, 2}, Shape{2, 3}, Shape{2, 4, 4}, Shape{1, 1}}) {
    const Value x = call("randn", {sizes(shape)});
    const Value parts = call("svd", {x});
    const Value u = get(parts, {at(0)});
    const Value s = call("unsqueeze", {get(parts, {at(1)}), -1});
    const Value vt = get(parts, {at(2)});
    const Value back = op(u, Op::MatrixProduct, op(s, Op::Multiply, vt));
    EXPECT_TRUE(op(back, Op::Approx, x).boolean()) << shape;
    const Value unit = op(call("transpose", {u}), Op::MatrixProduct, u);
    EXPECT_TRUE(op(unit, Op::Approx, call("eye", {s.tensor().dim(-2)})).boolean()) << shape;
  }
  // Of rank 1: the other directions are made up, and still at right angles.
  const Value flat = call("svd", {call("ones", {list({3, 3})})});
  expect_near(get(flat, {at(1)}), {3, 0, 0});
  const Value u = get(flat, {at(0)});
  EXPECT_TRUE(op(op(call("T", {u}), Op::MatrixProduct, u), Op::Approx, call("eye", {3})).boolean());
  EXPECT_THROW(call("svd", {tensor({1})}), Error);
  EXPECT_THROW(call("svd", {tensor({NAN}, {1, 1})}), Error);
}

TEST_P(TensorBuiltins, LongRangesCostNothing) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(call("sum", {range(0, 1'000'000'001)}).real(), 500000000500000000.0);
  EXPECT_EQ(call("max", {range(0, most)}).real(), static_cast<double>(most));
  EXPECT_EQ(call("mean", {range(1, 4)}).real(), 2);
  EXPECT_TRUE(lang::equal(range(0, most), range(0, most)));
  EXPECT_EQ(show(range(-most, most)),
            "[-9223372036854775807, -9223372036854775806, ..., "
            "-1] (len=9223372036854775807)");
  expect_runtime_error("too long to write out", [&] { op(range(0, most), Op::Add, 1); });
  expect_runtime_error("too long to write out", [&] { op(range(0, most), Op::Add, list({"a"})); });
}

TEST_P(TensorBuiltins, SumsOfProductsByIndices) {
  const Value m = counting({2, 3});
  EXPECT_EQ(whole(call("einsum", {"ij->ji", m})), "[3, 2] 0 3 1 4 2 5");
  EXPECT_EQ(whole(call("einsum", {"ij,kj->ik", m, m})), "[2, 2] 5 14 14 50");
  EXPECT_EQ(whole(call("einsum", {"ij->", m})), "[] 15");
  EXPECT_EQ(whole(call("einsum", {"i,i", list({1, 2}), list({3, 4})})), "[] 11");
  EXPECT_THROW(call("einsum", {"ij,jk->ik", m, m}), Error);
  expect_runtime_error("einsum() expects a String", [&] { call("einsum", {m, m}); });
  expect_runtime_error("einsum() expects a tensor", [&] { call("einsum", {"i"}); });
}

// ---- dtypes and devices

TEST_P(TensorBuiltins, ConversionsByName) {
  const Value x = tensor({1.5f, 2});
  EXPECT_EQ(dtype(call("to", {x, "f16"})), "f16");
  EXPECT_EQ(show(call("to", {x, "int32"})), "[1, 2]");
  EXPECT_EQ(call("to", {x, "cpu"}).tensor().location().text(), "cpu");
  EXPECT_EQ(dtype(call("to", {x, "cpu", "f64"})), "f64");
  EXPECT_EQ(show(call("device", {x})), device().text());
  EXPECT_EQ(show(call("device")), device().text());
  EXPECT_EQ(dtype(call("quantize", {counting({32}), "Q4_0"})), "q4_0");
  EXPECT_GE(call("device_count").integer(), 1);
  EXPECT_EQ(call("device_count", {"cpu"}).integer(), 1);
  EXPECT_EQ(show(get(call("devices"), {at(0)})), "cpu");
  EXPECT_FALSE(show(call("device_name")).empty());
  call("synchronize");
  call("set_device", {"cpu"});
  EXPECT_EQ(show(call("device", {call("zeros", {1})})), "cpu");
  expect_runtime_error("'elsewhere' is neither a dtype nor a device",
                       [&] { call("to", {x, "elsewhere"}); });
  expect_runtime_error("device_count() expects", [&] { call("device_count", {"abacus"}); });
  EXPECT_THROW(call("quantize", {x, "q99"}), Error);
}

TEST_P(TensorBuiltins, TensorsOnTwoDevicesMeet) {
  const Value here = tensor({1, 2});
  const Value host = call("to", {here, "cpu"});
  EXPECT_EQ(show(op(here, Op::Add, host)), "[2, 4]");
  EXPECT_EQ(op(host, Op::Add, here).tensor().location(), device().location());
  EXPECT_EQ(show(call("maximum", {host, here})), "[1, 2]");
  EXPECT_EQ(whole(call("concat", {host, here, 0})), "[4] 1 2 1 2");
}

}  // namespace
}  // namespace tl::test
