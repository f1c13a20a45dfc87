// Whole checkpoints: names, shapes and numbers of what comes out.
#include "tl/model/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "model/convert_tensors.h"
#include "model/saved_models.h"

namespace tl {
namespace {

using namespace test;

std::set<std::string> names_of(const GgufFile& file) {
  std::set<std::string> names;
  for (const GgufTensorInfo& tensor : file.tensors()) names.insert(tensor.name);
  return names;
}

// Rows as a reader of llama wants them, by the definition: pair j of a head has the numbers j and
// j + half of the checkpoint side by side.
std::vector<float> neighbours(const std::vector<float>& in, std::int64_t heads,
                              std::int64_t columns) {
  std::vector<float> out;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t pair = 0; pair < kHead / 2; ++pair) {
      for (const std::int64_t row : {pair, pair + kHead / 2}) {
        const auto from = in.begin() + (head * kHead + row) * columns;
        out.insert(out.end(), from, from + columns);
      }
    }
  }
  return out;
}

TEST(Convert, LlamaHasItsHeadsReordered) {
  SavedModel model("LlamaForCausalLM");
  model.add("model.layers.1.self_attn.q_proj.bias", {kHeads * kHead});
  model.add("model.layers.1.self_attn.k_proj.bias", {kKvHeads * kHead});
  model.add("model.layers.1.self_attn.v_proj.bias", {kKvHeads * kHead});
  model.add("model.layers.0.self_attn.rotary_emb.inv_freq", {8});
  const GgufFile file = model.convert();
  const std::string in = "model.layers.1.", out = "blk.1.";
  EXPECT_EQ(floats(file, out + "attn_q.weight"),
            neighbours(model.values(in + "self_attn.q_proj.weight"), kHeads, kHidden));
  EXPECT_EQ(floats(file, out + "attn_k.weight"),
            neighbours(model.values(in + "self_attn.k_proj.weight"), kKvHeads, kHidden));
  EXPECT_EQ(floats(file, out + "attn_q.bias"),
            neighbours(model.values(in + "self_attn.q_proj.bias"), kHeads, 1));
  EXPECT_EQ(floats(file, out + "attn_k.bias"),
            neighbours(model.values(in + "self_attn.k_proj.bias"), kKvHeads, 1));
  for (const auto& [name, saved] : {std::pair{"attn_v.weight", "self_attn.v_proj.weight"},
                                    std::pair{"attn_v.bias", "self_attn.v_proj.bias"},
                                    std::pair{"attn_output.weight", "self_attn.o_proj.weight"},
                                    std::pair{"attn_norm.weight", "input_layernorm.weight"},
                                    std::pair{"ffn_norm.weight", "post_attention_layernorm.weight"},
                                    std::pair{"ffn_gate.weight", "mlp.gate_proj.weight"},
                                    std::pair{"ffn_up.weight", "mlp.up_proj.weight"},
                                    std::pair{"ffn_down.weight", "mlp.down_proj.weight"}}) {
    EXPECT_EQ(floats(file, out + name), model.values(in + saved)) << name;
  }
  EXPECT_EQ(floats(file, "token_embd.weight"), model.values("model.embed_tokens.weight"));
  EXPECT_EQ(floats(file, "output_norm.weight"), model.values("model.norm.weight"));
  EXPECT_EQ(floats(file, "output.weight"), model.values("lm_head.weight"));
  EXPECT_EQ(file.tensors().size(), 24u);
  EXPECT_EQ(file.tensor(out + "attn_k.weight").shape, (Shape{kKvHeads * kHead, kHidden}));
  EXPECT_EQ(model.result.tensors, 24u);
  EXPECT_EQ(model.result.parameters, file.parameters());
  EXPECT_EQ(model.result.bytes_after, file.tensor_bytes());
  EXPECT_TRUE(model.result.notes.empty());
}

TEST(Convert, QwenKeepsTheOrderOfItsHeads) {
  for (const std::string architecture : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    SavedModel model(architecture);
    model.add("model.layers.0.self_attn.q_proj.bias", {kHeads * kHead});
    const GgufFile file = model.convert();
    EXPECT_EQ(file.architecture(), architecture.starts_with("Qwen2") ? "qwen2" : "qwen3");
    EXPECT_EQ(floats(file, "blk.0.attn_q.weight"),
              model.values("model.layers.0.self_attn.q_proj.weight"));
    EXPECT_EQ(floats(file, "blk.0.attn_q.bias"),
              model.values("model.layers.0.self_attn.q_proj.bias"));
    EXPECT_EQ(floats(file, "blk.0.attn_k.weight"),
              model.values("model.layers.0.self_attn.k_proj.weight"));
    EXPECT_EQ(names_of(file).contains("blk.1.attn_k_norm.weight"), architecture[4] == '3');
  }
}

TEST(Convert, GemmaNormsHaveTheirOneAdded) {
  for (const std::string architecture : {"Gemma2ForCausalLM", "Gemma3ForCausalLM"}) {
    const SavedModel model(architecture, QType::BF16);
    const GgufFile file = model.convert();
    const auto one_more = [&](const std::string& name) {
      std::vector<float> values = model.values(name);
      for (float& value : values) value += 1;
      return values;
    };
    const std::string in = "model.layers.0.", out = "blk.0.";
    for (const auto& [name, saved] :
         {std::pair{"attn_norm.weight", "input_layernorm.weight"},
          std::pair{"post_attention_norm.weight", "post_attention_layernorm.weight"},
          std::pair{"ffn_norm.weight", "pre_feedforward_layernorm.weight"},
          std::pair{"post_ffw_norm.weight", "post_feedforward_layernorm.weight"}}) {
      EXPECT_EQ(floats(file, out + name), one_more(in + saved)) << name;
    }
    EXPECT_EQ(floats(file, "output_norm.weight"), one_more("model.norm.weight"));
    EXPECT_EQ(floats(file, out + "attn_q.weight"), model.values(in + "self_attn.q_proj.weight"));
    EXPECT_EQ(file.find("output.weight"), nullptr);
    if (architecture.starts_with("Gemma3")) {
      EXPECT_EQ(floats(file, out + "attn_q_norm.weight"), one_more(in + "self_attn.q_norm.weight"));
    }
  }
}

TEST(Convert, TheTextPartOfAModelThatSeesIsFound) {
  for (const std::string prefix : {"language_model.model.", "model.language_model."}) {
    SavedModel model("Gemma3ForConditionalGeneration", QType::BF16);
    Json text;
    for (const auto* key : {"hidden_size", "intermediate_size", "num_attention_heads", "head_dim",
                            "num_key_value_heads", "num_hidden_layers", "sliding_window"}) {
      text[key] = model.config[key];
    }
    model.config = {{"architectures", {"Gemma3ForConditionalGeneration"}}, {"text_config", text}};
    NamedTensors renamed;
    for (const auto& [name, tensor] : model.tensors) {
      renamed.emplace(prefix + name.substr(std::string("model.").size()), tensor);
    }
    model.tensors = renamed;
    model.add("vision_tower.vision_model.x.weight", {2, 2});
    model.add("model.multi_modal_projector.y", {2});
    const GgufFile file = model.convert();
    EXPECT_EQ(file.tensors().size(), 28u);
    // What the file leaves out has the values of the library that reads it.
    EXPECT_EQ(file.get<std::uint32_t>("gemma3.context_length"), 131072u);
    EXPECT_EQ(file.get<float>("gemma3.rope.freq_base"), 1e6f);
    EXPECT_EQ(file.get<float>("gemma3.rope.freq_base_swa"), 1e4f);
    EXPECT_EQ(file.get<float>("gemma3.attention.layer_norm_rms_epsilon"), 1e-6f);
    EXPECT_EQ(file.value("tokenizer.ggml.tokens").count(), static_cast<std::uint64_t>(kVocab));
  }
}

TEST(Convert, RowsOfGemma3BeyondTheVocabularyAreLeftOut) {
  SavedModel model("Gemma3ForCausalLM");
  model.add("model.embed_tokens.weight", {kVocab + 3, kHidden});
  const GgufFile file = model.convert();
  std::vector<float> rows = model.values("model.embed_tokens.weight");
  rows.resize(kVocab * kHidden);
  EXPECT_EQ(floats(file, "token_embd.weight"), rows);
}

TEST(Convert, Phi3StaysFused) {
  const SavedModel model("Phi3ForCausalLM");
  const GgufFile file = model.convert();
  EXPECT_EQ(floats(file, "blk.0.attn_qkv.weight"),
            model.values("model.layers.0.self_attn.qkv_proj.weight"));
  EXPECT_EQ(floats(file, "blk.1.ffn_up.weight"),
            model.values("model.layers.1.mlp.gate_up_proj.weight"));
  EXPECT_EQ(file.tensor("blk.0.ffn_up.weight").shape, (Shape{2 * kFeedForward, kHidden}));
  EXPECT_EQ(file.find("blk.0.ffn_gate.weight"), nullptr);
}

TEST(Convert, ATiedOutputIsNotWritten) {
  SavedModel model("LlamaForCausalLM");
  model.config["tie_word_embeddings"] = true;
  EXPECT_EQ(model.convert().find("output.weight"), nullptr);  // though the file has one
  model.tensors.erase("lm_head.weight");
  EXPECT_EQ(model.convert().find("output.weight"), nullptr);
  model.config["tie_word_embeddings"] = false;
  model.expect_refused(ErrorKind::BadFile, "tensor 'lm_head.weight' is in none of the 1");
}

TEST(Convert, TypesAreThoseOfTheRecipe) {
  SavedModel model("LlamaForCausalLM", QType::BF16);
  for (const auto& [asked, type, code] :
       {std::tuple{"auto", QType::BF16, 32u}, std::tuple{"f16", QType::F16, 1u},
        std::tuple{"F32", QType::F32, 0u}, std::tuple{"q8_0", QType::Q8_0, 7u},
        std::tuple{"Q4_0", QType::Q4_0, 2u}}) {
    const GgufFile file = model.convert({.type = asked});
    EXPECT_EQ(file.tensor("blk.0.ffn_up.weight").known_type(), type) << asked;
    EXPECT_EQ(file.tensor("blk.0.attn_norm.weight").known_type(), QType::F32);
    EXPECT_EQ(file.get<std::uint32_t>("general.file_type"), code);
    const QTensor expected = QTensor::quantize(
        Tensor::from(model.values("model.layers.0.mlp.up_proj.weight"), {kFeedForward, kHidden}),
        type);
    const auto bytes = file.bytes(file.tensor("blk.0.ffn_up.weight"));
    EXPECT_EQ(std::vector(bytes.begin(), bytes.end()), expected.to_blocks()) << asked;
  }
  EXPECT_EQ(SavedModel("LlamaForCausalLM", QType::F16).convert({}).get<int>("general.file_type"),
            1);
  EXPECT_EQ(SavedModel("LlamaForCausalLM", QType::F32).convert({}).get<int>("general.file_type"),
            1);
  // Rows of 64 are no whole blocks of 256.
  EXPECT_EQ(model.convert({.type = "Q4_K_M"}).tensor("blk.0.ffn_up.weight").known_type(),
            QType::Q5_0);
  expect_error(ErrorKind::BadArgument, "there is no recipe 'Q9'",
               [&] { model.convert({.type = "Q9"}); });
}

TEST(Convert, NumbersThatF16CannotHoldAreNotMadeInfinite) {
  for (const QType type : {QType::F32, QType::BF16}) {
    SavedModel model("LlamaForCausalLM", type);
    std::vector<float> values = model.values("model.layers.1.mlp.up_proj.weight");
    values[77] = -70144.0f;
    model.set("model.layers.1.mlp.up_proj.weight", {kFeedForward, kHidden}, values);
    const std::string folder = model.write();
    expect_error(ErrorKind::Overflow, "'model.layers.1.mlp.up_proj.weight' has the number -70144",
                 [&] { convert_checkpoint({folder}, model.file("out.gguf"), {.type = "F16"}); });
    EXPECT_FALSE(fs::exists(model.file("out.gguf")));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 3);
    EXPECT_EQ(model.convert({.type = "BF16"}).tensors().size(), 21u);
  }
}

TEST(Convert, ProgressDryRunPartsAndVocabulary) {
  const SavedModel model("LlamaForCausalLM", QType::BF16);
  std::vector<std::string> seen;
  ConvertOptions options;
  options.progress = [&](std::size_t index, std::size_t count, std::string_view tensor, QType from,
                         QType to) {
    EXPECT_EQ(index, seen.size());
    EXPECT_EQ(count, 21u);
    EXPECT_EQ(from, QType::BF16);
    EXPECT_EQ(to, tensor.ends_with("norm.weight") ? QType::F32 : QType::BF16);
    seen.emplace_back(tensor);
  };
  const GgufFile converted = model.convert(options);
  EXPECT_EQ(seen.size(), converted.tensors().size());

  const std::string folder = model.write();
  const ConvertResult dry = convert_checkpoint({folder}, model.file("dry.gguf"), {.dry_run = true});
  EXPECT_EQ(dry.bytes_after, model.result.bytes_after);
  EXPECT_FALSE(fs::exists(model.file("dry.gguf")));

  ConvertOptions split;
  split.max_part_tensors = 10;
  const ConvertResult parts = convert_checkpoint({folder}, model.file("p-{ftype}.gguf"), split);
  ASSERT_EQ(parts.paths.size(), 3u);
  EXPECT_EQ(parts.paths[0], model.file("p-bf16-00001-of-00003.gguf"));
  EXPECT_EQ(GgufFile::open(parts.paths[1]).tensors().size(), 21u);

  fs::remove(model.file("model.safetensors"));
  const ConvertResult words =
      convert_checkpoint({folder}, model.file("v.gguf"), {.vocab_only = true});
  EXPECT_EQ(words.tokens, static_cast<std::size_t>(kVocab));
  const GgufFile file = GgufFile::open(model.file("v.gguf"));
  EXPECT_EQ(file.tensors().size(), 0u);
  EXPECT_EQ(file.value("tokenizer.ggml.tokens").count(), static_cast<std::uint64_t>(kVocab));
}

TEST(Convert, TensorsThatDoNotFitAreNamed) {
  const std::string up = "model.layers.1.mlp.up_proj.weight";
  SavedModel missing("LlamaForCausalLM");
  missing.tensors.erase(up);
  missing.expect_refused(ErrorKind::BadFile,
                         "tensor '" + up + "' is in none of the 1 weight files");

  SavedModel shape("LlamaForCausalLM");
  shape.add(up, {kFeedForward, kHidden + 1});
  shape.expect_refused(ErrorKind::BadFile, "tensor '" + up + "' has the shape (96, 65), and ");

  SavedModel vocabulary("LlamaForCausalLM");
  vocabulary.config["vocab_size"] = kVocab + 1;
  vocabulary.expect_refused(ErrorKind::BadFile,
                            "'model.embed_tokens.weight' has the shape (12, 64)");

  SavedModel unknown("LlamaForCausalLM");
  unknown.add("model.layers.0.self_attn.q_norm.weight", {kHead});
  unknown.expect_refused(ErrorKind::BadFile,
                         "tensor 'model.layers.0.self_attn.q_norm.weight' is none of a model of "
                         "the architecture LlamaForCausalLM with 2 layers");

  SavedModel layers("Qwen2ForCausalLM");
  layers.config["num_hidden_layers"] = 1;
  layers.expect_refused(ErrorKind::BadFile, "tensor 'model.layers.1.");

  SavedModel twice("Gemma3ForCausalLM");
  twice.add("model.language_model.norm.weight", {kHidden});
  twice.expect_refused(ErrorKind::BadFile, "are the same part of the model");

  SavedModel type("LlamaForCausalLM");
  type.tensors.insert_or_assign(
      up, Tensor::from(std::vector<std::uint8_t>(kFeedForward * kHidden), {kFeedForward, kHidden}));
  type.expect_refused(ErrorKind::Unsupported, "tensor '" + up + "' is of U8; F32, F16 and BF16");
}

// The way back: what a converter reorders, in the order of a checkpoint.
std::vector<float> halves(const std::vector<float>& in, std::int64_t head_dim,
                          std::int64_t columns) {
  std::vector<float> out(in.size());
  const auto rows = static_cast<std::int64_t>(in.size()) / columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t inside = row % head_dim;
    const std::int64_t to = row - inside + (inside % 2) * (head_dim / 2) + inside / 2;
    std::copy_n(in.begin() + row * columns, columns, out.begin() + to * columns);
  }
  return out;
}

TEST(Convert, AModelOfOthersComesBackBitForBit) {
  if (data_folder().empty()) GTEST_SKIP() << "no shared/data/gguf near the sources";
  for (const auto& [name, type] : {std::pair{"f32", QType::F32}, std::pair{"f16", QType::F16}}) {
    const GgufFile original =
        GgufFile::open((data_folder() / join("tiny-llama-", name, ".gguf")).string());
    SavedModel model("LlamaForCausalLM", type);
    model.tensors.clear();
    model.config.update({{"hidden_size", 256},
                         {"intermediate_size", 512},
                         {"num_attention_heads", 8},
                         {"num_key_value_heads", 2},
                         {"vocab_size", 512},
                         {"max_position_embeddings", 2048}});
    const std::map<std::string, std::string> parts = {
        {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
        {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
        {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
        {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
        {"ffn_down", "mlp.down_proj"}};
    for (const GgufTensorInfo& tensor : original.tensors()) {
      std::string saved = tensor.name == "token_embd.weight"    ? "model.embed_tokens.weight"
                          : tensor.name == "output_norm.weight" ? "model.norm.weight"
                                                                : "lm_head.weight";
      if (tensor.name.starts_with("blk.")) {
        const std::string part = tensor.name.substr(6, tensor.name.size() - 6 - 7);
        saved = join("model.layers.", tensor.name[4], ".", parts.at(part), ".weight");
      }
      std::vector<float> values =
          QTensor::from_blocks(original.bytes(tensor), tensor.known_type(), tensor.shape)
              .dequantize()
              .to_vector<float>();
      const bool reordered =
          saved.find("q_proj") != std::string::npos || saved.find("k_proj") != std::string::npos;
      if (reordered) values = halves(values, 32, 256);
      // Norms are F32 in both, and F16 would lose bits of them.
      model.type = tensor.known_type();
      model.set(saved, tensor.shape, values);
    }
    const GgufFile file = model.convert({.type = name});
    ASSERT_EQ(names_of(file), names_of(original));
    for (const GgufTensorInfo& tensor : original.tensors()) {
      const GgufTensorInfo& mine = file.tensor(tensor.name);
      EXPECT_EQ(mine.known_type(), tensor.known_type());
      EXPECT_EQ(mine.shape, tensor.shape);
      const auto a = file.bytes(mine), b = original.bytes(tensor);
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << tensor.name;
    }
    for (const GgufEntry& entry : original.metadata()) {
      if (!entry.key.starts_with("llama.")) continue;
      EXPECT_EQ(file.value(entry.key), entry.value) << entry.key;
    }
  }
}

}  // namespace
}  // namespace tl
