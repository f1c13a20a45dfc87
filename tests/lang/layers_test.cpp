// Layers of neural networks, each with a call that is asserted and one that fails.
#include <cmath>

#include "lang/surroundings.h"

namespace tl::test {
namespace {

using Op = lang::ast::BinaryOp;

class Layers : public LangTest {
 protected:
  bool near(const Value& a, const Value& b) { return op(a, Op::Approx, b).boolean(); }
};
TL_ON_EVERY_DEVICE(Layers);

TEST_P(Layers, LinearMultipliesByTheTransposedWeight) {
  const Value x = counting({2, 3});
  const Value w = tensor({1, 0, 0, 0, 1, 1}, {2, 3});
  EXPECT_EQ(whole(call("linear", {x, w})), "[2, 2] 0 3 3 9");
  EXPECT_EQ(whole(call("linear", {x, w, list({10, 20})})), "[2, 2] 10 23 13 29");
  EXPECT_EQ(whole(call("linear", {x, w, counting({2, 2})})), "[2, 2] 0 4 5 12");
  EXPECT_EQ(whole(call("linear", {tensor({1, 1, 1}), w})), "[2] 1 2");
  const Value half = call("to", {w, "f16"});
  EXPECT_EQ(whole(call("linear", {x, half})), "[2, 2] 0 3 3 9");
  EXPECT_EQ(dtype(call("linear", {x, half})), "f32");
  EXPECT_EQ(whole(call("linear", {x, get(half, {cut(1, 2)})})), "[2, 1] 3 9");
  EXPECT_EQ(dtype(call("linear", {call("to", {x, "f16"}), w})), "f32");
  EXPECT_THROW(call("linear", {x, counting({2, 2})}), Error);
  expect_runtime_error("linear() expects a tensor, got String", [&] { call("linear", {x, "w"}); });
}

TEST_P(Layers, QuantisedWeightsStayQuantised) {
  const Value plain = call("randn", {list({4, 32})});
  const Value weight = call("quantize", {plain, "q8_0"});
  const Value x = call("randn", {list({2, 32})});
  const Value wanted = call("linear", {x, call("dequantize", {weight})});
  const Value got = call("linear", {x, weight, call("zeros", {4})});
  const Value error = call("max", {call("abs", {op(got, Op::Subtract, wanted)})});
  EXPECT_LT(error.real(), 0.2);
  EXPECT_EQ(show(call("shape", {got})), "[2, 4]");
  const Value rows = call("embedding", {weight, list({3, 0})});
  EXPECT_TRUE(near(rows, get(call("dequantize", {weight}), {at(list({3, 0}))})));
}

// A layer of Llama for one token is five phases of the decoder's kernel: at most as many launches.
TEST_P(Layers, RowsOfADecoderAreLaunchedTogether) {
  if (device().is_cpu()) GTEST_SKIP() << "the CPU launches no kernels";
  const auto weight = [&](int rows, int columns) {
    return call("quantize", {call("randn", {list({rows, columns})}), "q8_0"});
  };
  const Value x = call("randn", {list({1, 64})}), norm = call("ones", {list({64})});
  const Value q = weight(64, 64), k = weight(32, 64), v = weight(32, 64), out = weight(64, 64);
  const Value gate = weight(96, 64), up = weight(96, 64), down = weight(64, 96);
  const auto layer = [&](const Value& cache) {
    const Value h = call("rms_norm", {x, norm});
    const auto heads = [&](const Value& w, int count) {
      return call("reshape", {call("linear", {h, w}), list({1, count, 16})});
    };
    const Value found =
        call("cached_attention", {cache, 0, heads(q, 4), heads(k, 2), heads(v, 2), 10000.0});
    const Value seen = call("linear", {call("reshape", {found, list({1, 64})}), out});
    return op(x, Op::Add, seen);
  };
  const auto forward = [&](const Value& y) {
    const Value h = call("rms_norm", {y, norm});
    const Value gated =
        op(call("silu", {call("linear", {h, gate})}), Op::Multiply, call("linear", {h, up}));
    return op(y, Op::Add, call("linear", {gated, down}));
  };
  const Value cache = call("KVCache::new_f32", {1});
  call("sum", {forward(layer(cache))});  // makes tables, and room in the cache
  const auto launches = [&] { return device().driver_calls().launches; };
  const std::uint64_t before = launches();
  const Value y = forward(layer(cache));
  device().synchronize();
  EXPECT_LE(launches() - before, 5u);
  EXPECT_EQ(show(call("shape", {y})), "[1, 64]");
}

TEST_P(Layers, EmbeddingTakesEveryKindOfIds) {
  const Value table = counting({3, 2});
  EXPECT_EQ(whole(call("embedding", {table, tokens({2, 0})})), "[2, 2] 4 5 0 1");
  EXPECT_EQ(whole(call("embedding", {table, 1})), "[1, 2] 2 3");
  EXPECT_EQ(whole(call("embedding", {table, list({list({0}), list({1})})})), "[2, 1, 2] 0 1 2 3");
  EXPECT_EQ(whole(call("embedding", {table, tensor({1})})), "[1, 2] 2 3");
  expect_runtime_error("Index 3 out of bounds for length 3",
                       [&] { call("embedding", {table, tokens({3})}); });
  expect_runtime_error("embedding() expects indices", [&] { call("embedding", {table, "a"}); });
  expect_runtime_error("a table of rank 2", [&] { call("embedding", {tensor({1}), 0}); });
}

TEST_P(Layers, Norms) {
  const Value x = tensor({3, 4}, {1, 2});
  const double scale = 1 / std::sqrt(12.5 + 1e-6);
  expect_near(call("rms_norm", {x, tensor({1, 2})}), {3 * scale, 8 * scale});
  expect_near(call("rms_norm", {x, list({1, 1}), 1e-5}), {3 * scale, 4 * scale});
  const Value square = counting({2, 2});
  expect_near(call("rms_norm", {square, call("ones", {list({2, 2})})}),
              {0, 1 / std::sqrt(3.5), 2 / std::sqrt(3.5), 3 / std::sqrt(3.5)});
  expect_near(call("layer_norm", {x}), {-1, 1}, 1e-3);
  expect_near(call("layer_norm", {x, list({2}), 1e-5}), {-1, 1}, 1e-3);
  expect_near(call("layer_norm", {x, tensor({2, 2}), tensor({1, 1})}), {-1, 3}, 1e-3);
  EXPECT_THROW(call("rms_norm", {x, tensor({1, 2, 3})}), Error);
  expect_runtime_error("a weight of rank",
                       [&] { call("rms_norm", {tensor({1}), call("ones", {list({1, 1})})}); });
  expect_runtime_error("layer_norm() expects a tensor", [&] { call("layer_norm", {"a"}); });
}

TEST_P(Layers, BatchNormByFeature) {
  const Value x = tensor({1, 10, 3, 30}, {2, 2});
  expect_near(call("batch_norm", {x, tensor({1, 2}), tensor({0, 1})}), {-1, -1, 1, 3}, 1e-4);
  expect_near(
      call("batch_norm", {x, list({1, 1}), list({0, 0}), 0.0, list({1, 10}), list({1, 100})}),
      {0, 0, 2, 2});
  expect_runtime_error("rank 2 or more", [&] { call("batch_norm", {tensor({1})}); });
}

TEST_P(Layers, DropoutWorksInTrainingOnly) {
  const Value x = call("ones", {list({1000})});
  EXPECT_EQ(call("sum", {call("dropout", {x, 0.5, false})}).real(), 1000);
  EXPECT_EQ(call("sum", {call("dropout", {x, 0.5})}).real(), 1000);
  context.training = true;
  const Value dropped = call("dropout", {x, 0.5});
  EXPECT_EQ(call("max", {dropped}).real(), 2);
  EXPECT_NEAR(call("mean", {dropped}).real(), 1, 0.2);
  expect_runtime_error("dropout() expects a probability", [&] { call("dropout", {x, 1.5}); });
}

TEST_P(Layers, MasksHideScores) {
  const Value scores = tensor({1, 2, 3, 4}, {2, 2});
  const Value masked = call("apply_attention_mask", {scores, call("causal_mask", {2})});
  expect_near(call("softmax", {masked, -1}), {1, 0, 1 / (1 + std::exp(1)), 1 / (1 + std::exp(-1))});
  const Value half = call("apply_mask", {call("to", {scores, "f16"}), list({1, 0})});
  EXPECT_EQ(all(half), "1 -65504 3 -65504");
  EXPECT_EQ(show(call("combine_masks", {tensor({1, 1, 0}), tensor({1, 0, 0})})), "[1, 0, 0]");
  EXPECT_THROW(call("apply_attention_mask", {scores, tensor({1, 0, 1})}), Error);
  expect_runtime_error("apply_mask() expects a tensor", [&] { call("apply_mask", {scores, "a"}); });
  expect_runtime_error("String * String", [&] { call("combine_masks", {"a", "b"}); });
}

TEST_P(Layers, RopeTurnsNeighbours) {
  const Value x = tensor({1, 0, 1, 0}, {2, 1, 2});  // (length 2, 1 head, 2)
  expect_near(call("rope", {x}), {1, 0, std::cos(1), std::sin(1)});
  expect_near(call("rope", {x, 3}), {std::cos(3), std::sin(3), std::cos(4), std::sin(4)});
  const Value wide = tensor({1, 0, 1, 0}, {1, 1, 4});
  expect_near(call("rope", {wide, 2, 100.0}),
              {std::cos(2), std::sin(2), std::cos(0.2), std::sin(0.2)});
  expect_near(call("rope", {wide, 2, 100.0, true}),
              {std::cos(2) - std::sin(2), 0, std::sin(2) + std::cos(2), 0});
  expect_near(call("rope", {call("zeros", {list({1, 300, 1, 4})}), 300}),
              std::vector<double>(1200, 0));
  expect_runtime_error("rope() expects a tensor of shape", [&] { call("rope", {tensor({1, 2})}); });
  expect_runtime_error("rope() expects positions", [&] { call("rope", {x, -1}); });
  expect_runtime_error("a base above 0", [&] { call("rope", {x, 0, -1.0}); });
}

TEST_P(Layers, RopeWithTablesIsTheSame) {
  const Value x = call("randn", {list({3, 2, 4})});
  const Value cosines = call("precompute_rope_cos", {4, 8});
  const Value sines = call("precompute_rope_sin", {4, 8});
  EXPECT_EQ(show(call("shape", {cosines})), "[8, 4]");
  EXPECT_EQ(get(cosines, {at(1), at(0)}).real(), get(cosines, {at(1), at(1)}).real());
  EXPECT_TRUE(near(call("rope", {x, cosines, sines}), call("rope", {x})));
  expect_runtime_error("expected tables of shape",
                       [&] { call("rope", {x, tensor({1}), tensor({1})}); });
  expect_runtime_error("an even size", [&] { call("precompute_rope_cos", {3, 8}); });
  expect_runtime_error("a number of positions", [&] { call("precompute_rope_sin", {4, -1}); });
}

// Two heads over one key head, written out.
TEST_P(Layers, AttentionOverACacheIsByHeads) {
  const Value q = call("randn", {list({1, 4})});
  const Value k = call("randn", {list({3, 2})});
  const Value v = call("randn", {list({3, 2})});
  const Value w = call("eye", {4});
  const Value got = call("attention_with_cache", {q, k, v, w, 2});
  EXPECT_EQ(show(call("shape", {got})), "[1, 4]");
  const Value turned = call("rope", {call("reshape", {q, list({1, 2, 2})}), 2});
  for (int head = 0; head < 2; ++head) {
    const Value query = get(turned, {at(0), at(head)});
    Value scores = op(k, Op::MatrixProduct, query);
    scores = call("softmax", {op(scores, Op::Divide, std::sqrt(2.0))});
    const Value wanted = op(scores, Op::MatrixProduct, v);
    EXPECT_TRUE(near(get(got, {at(0), cut(2 * head, 2 * head + 2)}), wanted));
  }
  expect_runtime_error("say `heads`", [&] { call("attention_with_cache", {q, k, v, w}); });
  expect_runtime_error("of rank 2",
                       [&] { call("attention_with_cache", {tensor({1}), k, v, w, 2}); });
  expect_runtime_error("Shape mismatch",
                       [&] { call("attention_with_cache", {q, k, tensor({1, 2}, {1, 2}), w, 2}); });
}

TEST_P(Layers, FusedLayers) {
  const Value x = tensor({-1, 2});
  EXPECT_EQ(show(call("fused_add_relu", {x, list({0.5, 0.5})})), "[0, 2.5]");
  EXPECT_EQ(show(call("fused_mul_relu", {x, tensor({2, 2})})), "[0, 4]");
  EXPECT_EQ(show(call("fused_affine", {x, tensor({2, 3}), tensor({1, 1})})), "[-1, 7]");
  const Value row = tensor({1, 2}, {1, 2});
  const Value w = tensor({1, 0, 0, 1}, {2, 2});
  EXPECT_TRUE(near(call("fused_gelu_linear", {row, w, tensor({1, 1}, {1, 2})}),
                   op(call("gelu", {row}), Op::Add, 1)));
  EXPECT_THROW(call("fused_add_relu", {x, tensor({1, 2, 3})}), Error);
  EXPECT_THROW(call("fused_mul_relu", {x, tensor({1, 2, 3})}), Error);
  EXPECT_THROW(call("fused_affine", {x, tensor({1, 2, 3}), x}), Error);
  EXPECT_THROW(call("fused_gelu_linear", {row, tensor({1, 2, 3}), x}), Error);
}

TEST_P(Layers, AttentionOfTheTableTakesMasks) {
  const Value q = call("ones", {list({1, 1, 2, 2})});
  const Value v = tensor({1, 2, 3, 4}, {1, 1, 2, 2});
  const Value open = call("attention", {q, q, v});
  expect_near(open, {2, 3, 2, 3});
  const Value causal = call("attention", {q, q, v, op(call("causal_mask", {2}), Op::Greater, 0)});
  expect_near(causal, {1, 2, 2, 3});
  expect_near(call("attention", {q, q, v, Value::missing(), true}), {1, 2, 2, 3});
}

}  // namespace
}  // namespace tl::test
