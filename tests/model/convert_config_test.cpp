// config.json: which keys come out, and what is refused.
#include "model/convert_config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/saved_models.h"

namespace tl {
namespace {

using namespace test;

TEST(ConvertConfig, LlamaHasTheKeysThatReadersLookFor) {
  SavedModel model("LlamaForCausalLM");
  model.config["rope_theta"] = 500000;
  const GgufFile file = model.convert();
  EXPECT_EQ(file.architecture(), "llama");
  EXPECT_EQ(file.get<std::string>("general.type"), "model");
  EXPECT_EQ(file.get<std::uint32_t>("general.quantization_version"), 2u);
  const std::vector<std::pair<std::string, std::uint32_t>> whole = {
      {"block_count", 2},          {"context_length", 4096},    {"embedding_length", 64},
      {"feed_forward_length", 96}, {"attention.head_count", 4}, {"attention.head_count_kv", 2},
      {"vocab_size", 12},          {"rope.dimension_count", 16}};
  for (const auto& [key, value] : whole) {
    EXPECT_EQ(file.value("llama." + key), GgufValue(value)) << key;  // of the type u32
  }
  EXPECT_EQ(file.value("llama.attention.layer_norm_rms_epsilon"), GgufValue(1e-5f));
  EXPECT_EQ(file.value("llama.rope.freq_base"), GgufValue(500000.0f));
  EXPECT_EQ(file.find_value("llama.attention.key_length"), nullptr);
  EXPECT_EQ(file.find_value("llama.rope.scaling.type"), nullptr);
}

TEST(ConvertConfig, HeadsMayBeOfAnySize) {
  SavedModel model("LlamaForCausalLM");
  model.config["head_dim"] = 32;
  model.config["num_attention_heads"] = 2;
  model.config["num_key_value_heads"] = 1;
  const GgufFile file = model.convert();
  EXPECT_EQ(file.get<std::uint32_t>("llama.attention.key_length"), 32u);
  EXPECT_EQ(file.get<std::uint32_t>("llama.attention.value_length"), 32u);
  EXPECT_EQ(file.get<std::uint32_t>("llama.rope.dimension_count"), 32u);
}

TEST(ConvertConfig, OldFilesLeaveOutWhatWasUsual) {
  SavedModel model("MistralForCausalLM");
  model.config.erase("rope_theta");
  model.config.erase("num_key_value_heads");
  model.config["head_dim"] = nullptr;
  for (int i = 0; i < 2; ++i) {
    const std::string at = join("model.layers.", i, ".self_attn.");
    model.add(at + "k_proj.weight", {kHidden, kHidden});
    model.add(at + "v_proj.weight", {kHidden, kHidden});
  }
  const GgufFile file = model.convert();
  EXPECT_EQ(file.get<std::uint32_t>("llama.attention.head_count_kv"), 4u);
  EXPECT_EQ(file.get<float>("llama.rope.freq_base"), 1e4f);
}

TEST(ConvertConfig, PositionsScaledByAFactor) {
  SavedModel model("Qwen2ForCausalLM");
  model.config["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
  GgufFile file = model.convert();
  EXPECT_EQ(file.get<std::string>("qwen2.rope.scaling.type"), "linear");
  EXPECT_EQ(file.get<float>("qwen2.rope.scaling.factor"), 4.0f);

  model.config["rope_scaling"] = {
      {"rope_type", "yarn"},      {"factor", 4.0},      {"original_max_position_embeddings", 1024},
      {"beta_fast", 32},          {"attn_factor", 1.5}, {"beta_slow", 1},
      {"extrapolation_factor", 2}};
  file = model.convert();
  EXPECT_EQ(file.get<std::string>("qwen2.rope.scaling.type"), "yarn");
  EXPECT_EQ(file.get<std::uint32_t>("qwen2.rope.scaling.original_context_length"), 1024u);
  EXPECT_EQ(file.get<float>("qwen2.rope.scaling.yarn_beta_fast"), 32.0f);
  EXPECT_EQ(file.get<float>("qwen2.rope.scaling.yarn_beta_slow"), 1.0f);
  EXPECT_EQ(file.get<float>("qwen2.rope.scaling.yarn_attn_factor"), 1.5f);
  EXPECT_EQ(file.get<float>("qwen2.rope.scaling.yarn_ext_factor"), 2.0f);
}

TEST(ConvertConfig, Llama3HasFactorsForItsFrequencies) {
  SavedModel model("LlamaForCausalLM");
  model.config["rope_theta"] = 500000.0;
  model.config["rope_scaling"] = {{"rope_type", "llama3"},
                                  {"factor", 8.0},
                                  {"low_freq_factor", 1.0},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 64}};
  const GgufFile file = model.convert();
  const std::vector<float> factors = floats(file, "rope_freqs.weight");
  ASSERT_EQ(factors.size(), 8u);
  // Waves of 6.28, 32.4 and 167 positions: short, between 16 and 64, long.
  EXPECT_EQ(factors[0], 1.0f);
  const double wave = 2 * 3.14159265358979 * std::pow(500000.0, 1.0 / 8);
  const double smooth = (64 / wave - 1) / 3;
  EXPECT_NEAR(factors[1], 1 / ((1 - smooth) / 8 + smooth), 1e-5);
  for (std::size_t i = 2; i < 8; ++i) EXPECT_EQ(factors[i], 8.0f);
  EXPECT_EQ(file.find_value("llama.rope.scaling.type"), nullptr);
}

TEST(ConvertConfig, NewerFilesHaveOneObjectForPositions) {
  SavedModel model("Gemma3ForCausalLM");
  model.config.erase("rope_theta");
  model.config["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 5000.0}}}};
  const GgufFile file = model.convert();
  EXPECT_EQ(file.get<float>("gemma3.rope.freq_base"), 2e6f);
  EXPECT_EQ(file.get<float>("gemma3.rope.freq_base_swa"), 5000.0f);
  EXPECT_EQ(file.get<float>("gemma3.rope.scaling.factor"), 8.0f);
}

TEST(ConvertConfig, GemmaHasItsWindowAndItsCaps) {
  SavedModel two("Gemma2ForCausalLM");
  const GgufFile second = two.convert();
  EXPECT_EQ(second.get<std::uint32_t>("gemma2.attention.sliding_window"), 512u);
  EXPECT_EQ(second.get<float>("gemma2.attn_logit_softcapping"), 50.0f);
  EXPECT_EQ(second.get<float>("gemma2.final_logit_softcapping"), 30.0f);
  EXPECT_EQ(second.get<std::uint32_t>("gemma2.attention.key_length"), 16u);
  EXPECT_EQ(second.find_value("gemma2.rope.freq_base"), nullptr);

  SavedModel three("Gemma3ForCausalLM");
  three.config["final_logit_softcapping"] = 20;
  three.config["sliding_window_pattern"] = 1;
  const GgufFile third = three.convert();
  EXPECT_EQ(third.get<float>("gemma3.final_logit_softcapping"), 20.0f);
  EXPECT_EQ(third.find_value("gemma3.attention.sliding_window"), nullptr);
}

TEST(ConvertConfig, Phi3HasFactorsForShortAndLongTexts) {
  SavedModel model("Phi3ForCausalLM");
  model.config["partial_rotary_factor"] = 0.5;
  model.config["rope_scaling"] = {{"type", "longrope"},
                                  {"long_factor", {1.0, 2.0, 3.0, 4.5}},
                                  {"short_factor", {1.0, 1.0, 1.0, 1.5}}};
  const GgufFile file = model.convert();
  EXPECT_EQ(file.get<std::uint32_t>("phi3.rope.dimension_count"), 8u);
  EXPECT_EQ(file.get<std::uint32_t>("phi3.rope.scaling.original_context_length"), 1024u);
  EXPECT_EQ(file.get<std::uint32_t>("phi3.attention.sliding_window"), 0u);
  EXPECT_FLOAT_EQ(file.get<float>("phi3.rope.scaling.attn_factor"), std::sqrt(1.2f));
  EXPECT_EQ(floats(file, "rope_factors_long.weight"), (std::vector<float>{1, 2, 3, 4.5}));
  EXPECT_EQ(floats(file, "rope_factors_short.weight"), (std::vector<float>{1, 1, 1, 1.5}));

  model.config["rope_scaling"]["short_factor"] = {1.0};
  model.expect_refused(ErrorKind::BadFile, "key 'short_factor' has 1 factors, and 8 numbers");
  model.config["rope_scaling"].erase("short_factor");
  model.expect_refused(ErrorKind::BadFile, "rope_scaling: there is no key 'short_factor'");
  model.config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  model.expect_refused(ErrorKind::Unsupported, "type 'linear' is not known for phi3");
  model.config["partial_rotary_factor"] = 0.45;
  model.expect_refused(ErrorKind::BadFile, "of a head 7 numbers would be rotated");
  model.config["partial_rotary_factor"] = 1.5;
  model.expect_refused(ErrorKind::BadFile, "key 'partial_rotary_factor' is 1.5, not in 0 to 1");
  model.config["partial_rotary_factor"] = 0.5;
  model.config.erase("rope_scaling");
  model.config.erase("original_max_position_embeddings");
  model.expect_refused(ErrorKind::BadFile, "no key 'original_max_position_embeddings'");
}

TEST(ConvertConfig, ANameComesFromTheCommandTheFileOrTheFolder) {
  SavedModel model("LlamaForCausalLM");
  model.config["_name_or_path"] = "some-org/tiny-llama-v1.1-7b-Chat";
  EXPECT_EQ(model.convert().get<std::string>("general.name"), "Tiny Llama v1.1 7b Chat");
  EXPECT_EQ(model.convert({.name = "x y"}).get<std::string>("general.name"), "x y");
  model.config["_name_or_path"] = "/home/someone/model";
  EXPECT_TRUE(model.convert().get<std::string>("general.name").starts_with("Tallow Gguf"));
  EXPECT_EQ(model.convert().get<std::string>("general.size_label"), "63K");
}

TEST(ConvertConfig, AdviceOnSamplingIsKept) {
  SavedModel model("LlamaForCausalLM");
  save(model.file("generation_config.json"),
       R"({"temperature": 0.6, "top_k": 40, "top_p": 0.9, "eos_token_id": [1, 2], "min_p": null})");
  const GgufFile file = model.convert();
  EXPECT_EQ(file.value("general.sampling.temp"), GgufValue(0.6f));
  EXPECT_EQ(file.value("general.sampling.top_k"), GgufValue(std::int32_t{40}));
  EXPECT_EQ(file.value("general.sampling.top_p"), GgufValue(0.9f));
  EXPECT_EQ(file.find_value("general.sampling.min_p"), nullptr);
  save(model.file("generation_config.json"), "{nonsense");
  model.convert();
  ASSERT_EQ(model.result.notes.size(), 1u);
  EXPECT_NE(model.result.notes[0].find("generation_config.json: is no JSON near byte 3"),
            std::string::npos)
      << model.result.notes[0];
}

TEST(ConvertConfig, WhatIsLeftOutIsTold) {
  SavedModel model("MistralForCausalLM");
  model.config["sliding_window"] = 4096;
  model.config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2}};
  model.convert();
  ASSERT_EQ(model.result.notes.size(), 2u);
  EXPECT_NE(model.result.notes[0].find("type 'dynamic' is left out"), std::string::npos);
  EXPECT_NE(model.result.notes[1].find("sliding window of 4096 tokens is left out"),
            std::string::npos);
}

TEST(ConvertConfig, MissingKeysAreNamed) {
  for (const std::string key :
       {"hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers",
        "vocab_size", "max_position_embeddings", "rms_norm_eps"}) {
    SavedModel model("LlamaForCausalLM");
    model.config.erase(key);
    model.expect_refused(ErrorKind::BadFile, "config.json: there is no key '" + key + "'");
  }
  for (const std::string key : {"head_dim", "sliding_window", "attn_logit_softcapping"}) {
    SavedModel model("Gemma2ForCausalLM");
    model.config.erase(key);
    model.expect_refused(ErrorKind::BadFile, "config.json: there is no key '" + key + "'");
  }
}

TEST(ConvertConfig, BadValuesAreNamed) {
  const auto refuse = [](const std::string& key, const Json& value, const std::string& text,
                         ErrorKind kind = ErrorKind::BadFile) {
    SavedModel model("LlamaForCausalLM");
    model.config[key] = value;
    model.expect_refused(kind, text);
  };
  refuse("hidden_size", "64", "key 'hidden_size' is \"64\", not a whole number");
  refuse("hidden_size", 64.5, "key 'hidden_size' is 64.5, not a whole number");
  refuse("hidden_size", -64, "key 'hidden_size' is -64, not a whole number");
  refuse("hidden_size", 1ull << 40, "not a whole number of 32 bits");
  refuse("hidden_size", 66, "hidden_size is 66, which num_attention_heads, 4, does not divide");
  refuse("num_attention_heads", 0, "key 'num_attention_heads' is 0");
  refuse("num_key_value_heads", 3, "which num_key_value_heads, 3, does not divide");
  refuse("head_dim", 4000000000u, "4 heads of 4000000000 numbers are more than 1073741824");
  refuse("rope_theta", -1, "the base of rotation is -1, not above 0");
  refuse("head_dim", 15, "a head has 15 numbers, an odd count");
  refuse("num_hidden_layers", Json::array({2}), "is an array of 1, not a whole number");
  refuse("rms_norm_eps", 0, "key 'rms_norm_eps' is 0, not above 0");
  refuse("rms_norm_eps", 1e300, "not a number that F32 holds");
  refuse("rope_theta", "much", "key 'rope_theta' is \"much\", not a number");
  refuse("tie_word_embeddings", 1, "key 'tie_word_embeddings' is 1, not true or false");
  refuse("rope_scaling", 4, "config.json: rope_scaling: is 4, not an object");
  refuse("rope_scaling", {{"type", "linear"}}, "rope_scaling: there is no key 'factor'");
  refuse("rope_scaling", {{"type", "linear"}, {"factor", -1}}, "key 'factor' is -1, not above 0");
  refuse("rope_scaling", {{"type", "yarn"}, {"factor", 2}},
         "there is no key 'original_max_position_embeddings'");
  refuse("rope_scaling", {{"type", "llama3"}, {"low_freq_factor", 2}, {"high_freq_factor", 2}},
         "low_freq_factor and high_freq_factor are both 2");
  refuse("rope_scaling", {{"type", "longrope"}}, "type 'longrope' is not known for llama",
         ErrorKind::Unsupported);
  refuse("quantization_config", {{"quant_method", "gptq"}},
         "the weights are quantised (quant_method \"gptq\")", ErrorKind::Unsupported);
  refuse("text_config", "no", "config.json: text_config: is \"no\", not an object");
  SavedModel gemma("Gemma3ForCausalLM");
  gemma.config["attn_logit_softcapping"] = 50;
  gemma.expect_refused(ErrorKind::Unsupported, "attn_logit_softcapping is set");
  SavedModel untied("Gemma2ForCausalLM");
  untied.config["tie_word_embeddings"] = false;
  untied.expect_refused(ErrorKind::Unsupported, "gemma2 has no output of its own");
}

TEST(ConvertConfig, UnknownArchitecturesListTheKnown) {
  SavedModel model("LlamaForCausalLM");
  model.config["architectures"] = {"MambaForCausalLM"};
  model.expect_refused(ErrorKind::Unsupported,
                       "architecture 'MambaForCausalLM' cannot be converted; known are "
                       "LlamaForCausalLM, ");
  model.config["architectures"] = Json::array();
  model.expect_refused(ErrorKind::BadFile, "key 'architectures' is an array of 0");
  model.config.erase("architectures");
  model.expect_refused(ErrorKind::BadFile, "key 'architectures' is not there");
  EXPECT_EQ(convertible_architectures().size(), 9u);
  EXPECT_EQ(convertible_architectures().front(), "LlamaForCausalLM");
}

}  // namespace
}  // namespace tl
