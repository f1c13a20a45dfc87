// What readers of architectures refuse: each in a sentence that names the key or the tensor.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "model/decoder_files.h"
#include "tl/model/decoder.h"

namespace tl {
namespace {

using test::DecoderFile;

void refused(ErrorKind kind, const DecoderFile& file, const std::string& text) {
  test::expect_error(kind, text, [&] { file.read(); });
}
void damaged(const DecoderFile& file, const std::string& text) {
  refused(ErrorKind::BadFile, file, text);
}
void not_run(const DecoderFile& file, const std::string& text) {
  refused(ErrorKind::Unsupported, file, text);
}
DecoderFile llama() { return DecoderFile("llama"); }

TEST(ArchitectureDamage, AnUnknownOneIsNamedWithThoseThatAreKnown) {
  not_run(DecoderFile("gpt2"),
          "models of the architecture 'gpt2' are not run; known are llama, qwen2, qwen3, gemma2, "
          "gemma3, phi3");
  EXPECT_EQ(decoder_architectures().size(), 6U);
  EXPECT_EQ(decoder_architectures()[0], "llama");
}

TEST(ArchitectureDamage, MissingNumbersAreNamed) {
  for (const char* key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    damaged(llama().without_key(key), join("has no key 'llama.", key, "'"));
  }
}

TEST(ArchitectureDamage, NumbersThatCannotBeAreShown) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  damaged(llama().size("embedding_length", 0), "key 'llama.embedding_length' is 0, and at least 1");
  damaged(llama().key("block_count", std::int32_t{-1}), "key 'llama.block_count' is -1, not in 0");
  damaged(llama().key("embedding_length", std::uint64_t{1} << 40),
          "key 'llama.embedding_length' is 1099511627776, not in 0 to 2147483647");
  damaged(llama().size("block_count", 100),
          "key 'llama.block_count' is 100, more than the file has tensors: 20");
  damaged(llama().key("block_count", "two"), "llama.block_count");
  damaged(llama().size("attention.head_count_kv", 3), "which the heads of keys, 3, do not divide");
  damaged(llama().size("attention.head_count", 6).size("attention.head_count_kv", 3),
          "which 6 heads do not divide, and the file does not say how large a head is");
  damaged(llama().size("rope.dimension_count", 7),
          "is 7, not an even count of a head's 8 elements");
  damaged(llama().size("rope.dimension_count", 10), "is 10, not an even count of a head's 8");
  damaged(llama().number("attention.layer_norm_rms_epsilon", 0), "is 0, not above 0");
  damaged(llama().number("attention.layer_norm_rms_epsilon", kNan), "is nan, not a number");
  damaged(llama().number("rope.freq_base", -1), "key 'llama.rope.freq_base' is -1, not above 0");
  damaged(llama().number("rope.scaling.factor", -2),
          "'llama.rope.scaling.factor' is -2, not above");
  damaged(DecoderFile("gemma2").number("attn_logit_softcapping", 0), "is 0, not above 0");
  const bool list[] = {true};
  damaged(DecoderFile("gemma2").key("attention.sliding_window_pattern",
                                    GgufValue::array(std::span<const bool>(list))),
          "is a list of 1, and there are 2 layers");
}

TEST(ArchitectureDamage, MissingTensorsAreNamed) {
  for (const char* tensor : {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight",
                             "blk.1.attn_k.weight", "blk.1.ffn_down.weight"}) {
    damaged(llama().without(tensor), join("has no tensor '", tensor, "'"));
  }
  damaged(DecoderFile("qwen3").without("blk.1.attn_k_norm.weight"),
          "has no tensor 'blk.1.attn_k_norm.weight'");
  damaged(DecoderFile("gemma2").without("blk.0.post_ffw_norm.weight"),
          "has no tensor 'blk.0.post_ffw_norm.weight'");
  damaged(DecoderFile("phi3").key("rope.scaling.type", "longrope"),
          "has no tensor 'rope_factors_long.weight'");
  damaged(DecoderFile("phi3").tensor("rope_factors_long.weight", {4}),
          "has no tensor 'rope_factors_short.weight'");
}

TEST(ArchitectureDamage, ShapesAreCheckedAgainstTheNumbers) {
  const auto other = [](const DecoderFile& file, const std::string& text) {
    refused(ErrorKind::ShapeMismatch, file, text);
  };
  other(llama().tensor("blk.0.attn_q.weight", {16, 32}),
        "tensor 'blk.0.attn_q.weight' has shape (16, 32), and (32, 32) is needed");
  other(llama().tensor("token_embd.weight", {10, 16}), "has shape (10, 16), and (10, 32)");
  other(llama().tensor("token_embd.weight", {320}), "'token_embd.weight' has shape (320,)");
  other(llama().tensor("output.weight", {9, 32}), "has shape (9, 32), and (10, 32) is needed");
  other(llama().tensor("blk.1.ffn_norm.weight", {33}), "'blk.1.ffn_norm.weight' has shape (33,)");
  other(llama().tensor("blk.1.attn_v.bias", {32}), "'blk.1.attn_v.bias' has shape (32,)");
  other(llama().tensor("rope_freqs.weight", {8}), "'rope_freqs.weight' has shape (8,)");
  other(DecoderFile("qwen3").tensor("blk.0.attn_q_norm.weight", {32}),
        "'blk.0.attn_q_norm.weight' has shape (32,)");
  other(DecoderFile("phi3").tensor("blk.0.attn_qkv.weight", {96, 32}),
        "has shape (96, 32), and (64, 32) is needed");
  other(DecoderFile("phi3").tensor("blk.0.ffn_up.weight", {48, 32}),
        "has shape (48, 32), and (96, 32) is needed");
}

TEST(ArchitectureDamage, TokensAndRowsOfTheEmbeddingAreAsMany) {
  damaged(llama().tensor("token_embd.weight", {11, 32}),
          "key 'tokenizer.ggml.tokens' has 10 tokens, and tensor 'token_embd.weight' has rows for "
          "11");
  damaged(llama().top_key("tokenizer.ggml.tokens", "words"), "tokenizer.ggml.tokens");
}

TEST(ArchitectureDamage, FactorsMustBeAboveZero) {
  for (const float factor : {0.0f, -1.0f, std::numeric_limits<float>::infinity()}) {
    damaged(llama().tensor("rope_freqs.weight", {4}, std::vector<float>{1, factor, 1, 1}),
            "tensor 'rope_freqs.weight' has the factor");
  }
}

TEST(ArchitectureDamage, WhatIsNotRunIsRefused) {
  not_run(llama().size("expert_count", 8),
          "key 'llama.expert_count' is 8, and mixtures of experts are not run");
  EXPECT_NO_THROW(llama().size("expert_count", 0).read());
  not_run(llama().key("attention.causal", false), "positions that see later ones are not run");
  EXPECT_NO_THROW(llama().key("attention.causal", true).read());
  not_run(llama().key("rope.scaling.type", "dynamic"),
          "key 'llama.rope.scaling.type' is dynamic, and scaling of positions is known as none, "
          "linear, yarn, longrope");
  not_run(llama().number("attn_logit_softcapping", 50), "a cap is not known for this architecture");
  not_run(llama().number("final_logit_softcapping", 30), "a cap is not known");
  not_run(llama().number("logit_scale", 0.5f), "scaled logits are not run");
  not_run(llama().number("attention.clamp_kqv", 8), "clamped queries, keys and values");
  not_run(llama().size("pooling_type", 1), "one vector for a text");
  not_run(llama().key("use_parallel_residual", true), "beside the feed-forward part");
  const std::vector<std::int32_t> sections{16, 24, 24, 0}, none{0, 0, 0, 0};
  not_run(llama().key("rope.dimension_sections", GgufValue::array(std::span(sections))),
          "positions of several axes are not run");
  EXPECT_NO_THROW(llama().key("rope.dimension_sections", GgufValue::array(std::span(none))).read());
  not_run(llama().size("attention.key_length_swa", 16), "others have 8");
  not_run(llama().size("attention.sliding_window", 4).number("rope.freq_base_swa", 500),
          "layers with a window that turn otherwise");
  const std::vector<std::uint32_t> heads{4, 2};
  not_run(llama().key("attention.head_count_kv", GgufValue::array(std::span(heads))),
          "key 'llama.attention.head_count_kv' is not the same for all layers");
}

TEST(ArchitectureDamage, TensorsThatNobodyAskedForAreRefused) {
  not_run(llama().tensor("blk.1.attn_q_norm.weight", {8}),
          "tensor 'blk.1.attn_q_norm.weight' is no part of a llama model that is run here");
  not_run(llama().tensor("blk.0.attn_norm.bias", {32}), "'blk.0.attn_norm.bias' is no part");
  not_run(llama().tensor("output.bias", {10}), "'output.bias' is no part");
  not_run(llama().tensor("blk.2.attn_norm.weight", {32}), "'blk.2.attn_norm.weight' is no part");
  not_run(DecoderFile("gemma2")
              .tensor("rope_factors_long.weight", {4})
              .tensor("rope_freqs.weight", {4}),
          "'rope_factors_long.weight' is no part");
  EXPECT_NO_THROW(llama().tensor("blk.0.attn_rot_embd.weight", {4}).read());
}

TEST(ArchitectureDamage, WeightsOfIntegersAreRefused) {
  not_run(llama().tensor("blk.0.attn_q.weight", {32, 32}, QType::I32),
          "tensor 'blk.0.attn_q.weight' is of type I32, and weights that are not floats");
}

TEST(ArchitectureDamage, ADecoderSaysTheSame) {
  const GgufFile file = DecoderFile("gpt2").open();
  test::expect_error(ErrorKind::Unsupported, "known are llama",
                     [&] { const Decoder decoder(file, ModelWeights::load(file, Device::cpu())); });
}

}  // namespace
}  // namespace tl
