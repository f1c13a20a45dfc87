// The numbers and tensors that each architecture's reader takes from a file.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/decoder_files.h"

namespace tl {
namespace {

using arch::DecoderModel;
using test::DecoderFile;

std::vector<std::int64_t> windows(const DecoderConfig& config) {
  std::vector<std::int64_t> out;
  for (const LayerAttention& layer : config.attention) out.push_back(layer.window);
  return out;
}

void expect_close(const std::vector<double>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i] / expected[i], 1, 1e-7) << "at " << i;  // of keys in f32
  }
}

using Sizes = std::vector<std::int64_t>;

TEST(Architecture, LlamaHasTheSizesOfItsKeys) {
  const DecoderModel model = DecoderFile("llama").tensor("output.weight", {10, 32}).read();
  const DecoderConfig& config = model.config;
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ((Sizes{config.layers, config.width, config.heads, config.kv_heads, config.key_size,
                   config.value_size, config.hidden, config.vocabulary, config.context,
                   config.rope_size}),
            (Sizes{2, 32, 4, 2, 8, 8, 48, 10, 2048, 8}));
  EXPECT_FLOAT_EQ(static_cast<float>(config.norm_epsilon), 1e-6f);
  EXPECT_DOUBLE_EQ(config.attention_scale, 1 / std::sqrt(8.0));
  EXPECT_EQ(config.embedding_scale, 1);
  EXPECT_EQ(config.attention_softcap, 0);
  EXPECT_EQ(config.output_softcap, 0);
  EXPECT_EQ(config.activation, GatedActivation::Silu);
  EXPECT_EQ(config.rope_pairs, RopePairs::Neighbours);
  EXPECT_EQ(windows(config), (Sizes{0, 0}));
  ASSERT_EQ(config.ropes.size(), 1U);
  expect_close(config.ropes[0].radians, {1, 0.1, 0.01, 0.001});
  EXPECT_EQ(config.ropes[0].magnitude, 1);
  ASSERT_EQ(model.layers.size(), 2U);
  EXPECT_EQ(model.layers[1].down.weight.shape(), (Shape{32, 48}));
  EXPECT_FALSE(model.layers[0].query.bias || model.layers[0].query_norm ||
               model.layers[0].attention_output_norm);
  EXPECT_FALSE(model.output.shares_memory_with(model.embedding));
}

TEST(Architecture, TheEmbeddingServesAsOutputWhereThereIsNone) {
  const DecoderModel model = DecoderFile("llama").read();
  EXPECT_TRUE(model.output.shares_memory_with(model.embedding));
  EXPECT_EQ(model.output.shape(), (Shape{10, 32}));
}

TEST(Architecture, HeadsMayHaveASizeOfTheirOwn) {
  DecoderFile file("llama");
  file.size("attention.key_length", 6).size("attention.value_length", 10);
  file.layer("attn_q.weight", {24, 32}).layer("attn_k.weight", {12, 32});
  file.layer("attn_v.weight", {20, 32}).layer("attn_output.weight", {32, 40});
  const DecoderConfig config = file.size("rope.dimension_count", 4).read().config;
  EXPECT_EQ((Sizes{config.key_size, config.value_size, config.rope_size}), (Sizes{6, 10, 4}));
  EXPECT_DOUBLE_EQ(config.attention_scale, 1 / std::sqrt(6.0));
  expect_close(config.ropes[0].radians, {1, 0.01});
}

TEST(Architecture, BiasesAreTakenWhereTheyAre) {
  DecoderFile file("llama");
  file.layer("attn_q.bias", {32}).layer("attn_output.bias", {32}).layer("ffn_up.bias", {48});
  const DecoderModel model = file.read();
  ASSERT_TRUE(model.layers[1].query.bias);
  EXPECT_EQ(model.layers[1].query.bias->to_vector<float>()[31], 32);
  EXPECT_TRUE(model.layers[0].output.bias && model.layers[0].up.bias);
  EXPECT_FALSE(model.layers[0].key.bias || model.layers[0].gate.bias);
}

TEST(Architecture, ScaleOfAttentionMayBeGiven) {
  EXPECT_DOUBLE_EQ(
      DecoderFile("llama").number("attention.scale", 0.25f).read().config.attention_scale, 0.25);
  EXPECT_DOUBLE_EQ(DecoderFile("llama").number("attention.scale", 0).read().config.attention_scale,
                   1 / std::sqrt(8.0));
}

TEST(Architecture, ListsOfEqualSizesAreOneSize) {
  const std::vector<std::uint32_t> heads{4, 4};
  const DecoderFile file =
      DecoderFile("llama").key("attention.head_count", GgufValue::array(std::span(heads)));
  EXPECT_EQ(file.read().config.heads, 4);
}

TEST(Architecture, MistralHasItsWindowInAllLayers) {
  EXPECT_EQ(windows(DecoderFile("llama").size("attention.sliding_window", 5).read().config),
            (Sizes{5, 5}));
  EXPECT_EQ(windows(DecoderFile("llama").size("attention.sliding_window", 0).read().config),
            (Sizes{0, 0}));
}

TEST(Architecture, WindowsFollowAPatternThatIsGiven) {
  DecoderFile file("qwen2");
  file.size("attention.sliding_window", 5);
  EXPECT_EQ(windows(file.size("attention.sliding_window_pattern", 2).read().config), (Sizes{5, 0}));
  EXPECT_EQ(windows(file.size("attention.sliding_window_pattern", 1).read().config), (Sizes{0, 0}));
  const bool list[] = {false, true};
  file.key("attention.sliding_window_pattern", GgufValue::array(std::span<const bool>(list)));
  EXPECT_EQ(windows(file.read().config), (Sizes{0, 5}));
}

TEST(Architecture, Qwen2HasBiasesAndTurnsHalves) {
  DecoderFile file("qwen2");
  file.layer("attn_q.bias", {32}).layer("attn_k.bias", {16}).layer("attn_v.bias", {16});
  const DecoderModel model = file.number("rope.freq_base", 1e6f).read();
  EXPECT_EQ(model.config.rope_pairs, RopePairs::Halves);
  EXPECT_TRUE(model.layers[0].query.bias && model.layers[0].key.bias && model.layers[0].value.bias);
  expect_close(model.config.ropes[0].radians,
               {1, std::pow(1e6, -0.25), 1e-3, std::pow(1e6, -0.75)});
}

TEST(Architecture, Qwen3NormsItsHeads) {
  const DecoderModel model = DecoderFile("qwen3").read();
  EXPECT_EQ(model.config.rope_pairs, RopePairs::Halves);
  ASSERT_TRUE(model.layers[1].query_norm && model.layers[1].key_norm);
  EXPECT_EQ(model.layers[1].key_norm->shape(), Shape{8});
  EXPECT_FALSE(model.layers[1].attention_output_norm);
}

TEST(Architecture, Gemma2HasCapsNormsAndAlternatingWindows) {
  const DecoderModel early = DecoderFile("gemma2").read();
  EXPECT_EQ(early.config.attention_softcap, 50);
  EXPECT_EQ(early.config.output_softcap, 30);
  EXPECT_EQ(windows(early.config), (Sizes{4096, 0}));
  EXPECT_DOUBLE_EQ(early.config.embedding_scale, std::sqrt(32.0));
  EXPECT_EQ(early.config.activation, GatedActivation::GeluTanh);
  EXPECT_TRUE(early.layers[0].attention_output_norm && early.layers[0].feed_forward_output_norm);
  const DecoderConfig config = DecoderFile("gemma2")
                                   .number("attn_logit_softcapping", 7)
                                   .number("final_logit_softcapping", 9)
                                   .size("attention.sliding_window", 6)
                                   .read()
                                   .config;
  EXPECT_EQ(config.attention_softcap, 7);
  EXPECT_EQ(config.output_softcap, 9);
  EXPECT_EQ(windows(config), (Sizes{6, 0}));
  EXPECT_DOUBLE_EQ(config.attention_scale, 1 / std::sqrt(8.0));
}

// A model of one repeated layer, with heads of 4 of the 8 that the width would give.
DecoderFile many_layers(const std::string& architecture, std::uint32_t layers) {
  DecoderFile file(architecture);
  file.size("block_count", layers).size("attention.key_length", 4);
  file.size("attention.value_length", 4);
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::string block = join("blk.", i, '.');
    for (const char* norm : {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"}) {
      file.tensor(block + norm + ".weight", {32});
    }
    if (architecture == "gemma3") {
      file.tensor(block + "attn_q_norm.weight", {4}).tensor(block + "attn_k_norm.weight", {4});
    }
    file.tensor(block + "attn_q.weight", {16, 32}).tensor(block + "attn_k.weight", {8, 32});
    file.tensor(block + "attn_v.weight", {8, 32}).tensor(block + "attn_output.weight", {32, 16});
    file.tensor(block + "ffn_gate.weight", {48, 32}).tensor(block + "ffn_up.weight", {48, 32});
    file.tensor(block + "ffn_down.weight", {32, 48});
  }
  return file;
}

TEST(Architecture, TheLargestGemmasAreScaledByTheirWidth) {
  EXPECT_DOUBLE_EQ(many_layers("gemma2", 42).read().config.attention_scale, 0.5);
  EXPECT_DOUBLE_EQ(many_layers("gemma2", 46).read().config.attention_scale, 1 / std::sqrt(8.0));
  EXPECT_DOUBLE_EQ(many_layers("gemma3", 46).read().config.attention_scale, 0.5);
  EXPECT_DOUBLE_EQ(many_layers("gemma3", 62).read().config.attention_scale, 1 / std::sqrt(8.0));
  EXPECT_DOUBLE_EQ(
      many_layers("gemma3", 62).number("attention.scale", 0.125f).read().config.attention_scale,
      0.125);
}

TEST(Architecture, Gemma3TurnsOtherwiseInLayersWithAWindow) {
  DecoderFile file = many_layers("gemma3", 7);
  file.size("attention.sliding_window", 6).number("rope.freq_base", 1e6f);
  file.key("rope.scaling.type", "linear").number("rope.scaling.factor", 8);
  const DecoderConfig config = file.read().config;
  EXPECT_EQ(windows(config), (Sizes{6, 6, 6, 6, 6, 0, 6}));
  ASSERT_EQ(config.ropes.size(), 2U);
  EXPECT_EQ(config.attention[5].rope, 0);
  EXPECT_EQ(config.attention[6].rope, 1);
  expect_close(config.ropes[0].radians, {1 / 8.0, 1e-3 / 8});
  expect_close(config.ropes[1].radians, {1, 1e-2});
  EXPECT_EQ(config.attention_softcap, 0);
  EXPECT_EQ(config.output_softcap, 0);
  EXPECT_DOUBLE_EQ(config.embedding_scale, std::sqrt(32.0));
  EXPECT_EQ(file.number("final_logit_softcapping", 30).read().config.output_softcap, 30);
}

TEST(Architecture, Gemma3WithoutAWindowSeesAll) {
  EXPECT_EQ(windows(DecoderFile("gemma3").read().config), (Sizes{0, 0}));
}

TEST(Architecture, Phi3SharesItsMergedMatrices) {
  const DecoderFile file = DecoderFile("phi3").size("attention.sliding_window", 7);
  const DecoderModel model = file.read();
  EXPECT_EQ(windows(model.config), (Sizes{7, 7}));
  EXPECT_EQ(model.config.rope_pairs, RopePairs::Halves);
  const arch::DecoderLayer& layer = model.layers[1];
  EXPECT_EQ(layer.query.weight.shape(), (Shape{32, 32}));
  EXPECT_EQ(layer.key.weight.shape(), (Shape{16, 32}));
  EXPECT_EQ(layer.value.weight.shape(), (Shape{16, 32}));
  EXPECT_EQ(layer.gate.weight.shape(), (Shape{48, 32}));
  EXPECT_EQ(layer.up.weight.shape(), (Shape{48, 32}));
  EXPECT_TRUE(layer.key.weight.shares_memory_with(layer.query.weight));
  EXPECT_TRUE(layer.up.weight.shares_memory_with(layer.gate.weight));
  // Values count from 1: the first of each part says where it begins.
  const auto first = [](const QTensor& part) { return part.dequantize().to_vector<float>()[0]; };
  EXPECT_EQ(first(layer.query.weight), 1);
  EXPECT_EQ(first(layer.key.weight), 1 + 32 * 32);
  EXPECT_EQ(first(layer.value.weight), 1 + 48 * 32);
  EXPECT_EQ(first(layer.gate.weight), 1);
  EXPECT_EQ(first(layer.up.weight), 1 + 48 * 32);
}

TEST(Architecture, MergedBiasesAreSplitToo) {
  const DecoderModel model = DecoderFile("phi3").layer("attn_qkv.bias", {64}).read();
  ASSERT_TRUE(model.layers[0].value.bias);
  EXPECT_EQ(model.layers[0].key.bias->to_vector<float>()[0], 33);
  EXPECT_EQ(model.layers[0].value.bias->to_vector<float>()[15], 64);
}

// ---- how heads turn

DecoderFile with_large_heads(const std::string& architecture = "llama") {
  DecoderFile file(architecture);
  file.size("attention.head_count", 2).size("attention.head_count_kv", 1);
  return file;
}

TEST(Rope, LinearScalingDividesAllAngles) {
  const std::vector<double> quarter{0.25, 0.025, 0.0025, 0.00025};
  const auto radians = [](DecoderFile& file) { return file.read().config.ropes[0].radians; };
  DecoderFile file("llama");
  expect_close(radians(file.number("rope.scaling.factor", 4)), quarter);
  expect_close(radians(file.key("rope.scaling.type", "linear")), quarter);
  expect_close(radians(file.key("rope.scaling.type", "none")), {1, 0.1, 0.01, 0.001});
  DecoderFile old("llama");
  expect_close(radians(old.number("rope.scale_linear", 4)), quarter);
  expect_close(radians(old.number("rope.scale_linear", 0)), {1, 0.1, 0.01, 0.001});
}

// The values are those of the formulas in the paper (arXiv 2309.00071), computed apart.
TEST(Rope, YarnKeepsWhatTurnsOften) {
  DecoderFile file = with_large_heads();
  file.key("rope.scaling.type", "yarn").number("rope.scaling.factor", 4);
  const RopeFrequencies usual = file.read().config.ropes[0];
  expect_close(usual.radians, {1.0, 0.31622776601683794, 0.1, 0.02569350598886808, 0.00625,
                               0.001383496476323666, 0.00025, 7.905694150420948e-05});
  EXPECT_NEAR(usual.magnitude, 1.138629436111989, 1e-12);
  file.number("rope.scaling.yarn_beta_fast", 8).number("rope.scaling.yarn_beta_slow", 2);
  expect_close(file.read().config.ropes[0].radians,
               {1.0, 0.31622776601683794, 0.1, 0.03162277660168379, 0.00625, 0.0007905694150420948,
                0.00025, 7.905694150420948e-05});
  // The original context moves the range: at 2048 * 10000^(1/4) by two pairs.
  file.number("rope.scaling.yarn_beta_fast", 32).number("rope.scaling.yarn_beta_slow", 1);
  file.size("rope.scaling.original_context_length", 20480);
  expect_close(file.read().config.ropes[0].radians,
               {1.0, 0.31622776601683794, 0.1, 0.03162277660168379, 0.01, 0.00256935059888680812,
                0.000625, 0.00013834964763236661});
}

TEST(Rope, YarnWithoutExtrapolationIsLinear) {
  DecoderFile file("llama");
  file.key("rope.scaling.type", "yarn").number("rope.scaling.factor", 4);
  const RopeFrequencies rope =
      file.number("rope.scaling.yarn_ext_factor", 0).read().config.ropes[0];
  expect_close(rope.radians, {0.25, 0.025, 0.0025, 0.00025});
  EXPECT_EQ(rope.magnitude, 1);
  file.number("rope.scaling.attn_factor", 1.5f);
  EXPECT_EQ(file.read().config.ropes[0].magnitude, 1.5);
  file.number("rope.scaling.yarn_ext_factor", -1);  // which stands for none given
  EXPECT_NEAR(file.read().config.ropes[0].magnitude, 1.5 * (1 + 0.1 * std::log(4)), 1e-12);
}

TEST(Rope, FactorsOfLlama3DivideEachAngle) {
  DecoderFile file("llama");
  file.tensor("rope_freqs.weight", {4}, std::vector<float>{1, 2, 4, 8});
  expect_close(file.read().config.ropes[0].radians, {1, 0.05, 0.0025, 0.000125});
}

TEST(Rope, LongFactorsAreForLongContexts) {
  DecoderFile file("phi3");
  file.size("rope.scaling.original_context_length", 512).number("rope.scaling.attn_factor", 1.25f);
  file.tensor("rope_factors_long.weight", {4}, std::vector<float>{2, 2, 4, 4});
  file.tensor("rope_factors_short.weight", {4}, std::vector<float>{1, 1, 1, 2});
  const std::vector<double> far{0.5, 0.05, 0.0025, 0.00025}, near{1, 0.1, 0.01, 0.0005};
  expect_close(file.read().config.ropes[0].radians, far);  // trained for 2048
  expect_close(file.read(513).config.ropes[0].radians, far);
  expect_close(file.read(512).config.ropes[0].radians, near);
  EXPECT_EQ(file.read(512).config.ropes[0].magnitude, 1.25);
}

}  // namespace
}  // namespace tl
