// What the tests of conversion share: small checkpoints with made-up weights, as Hugging Face's
// libraries save them, and SentencePiece models made byte by byte.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_files.h"
#include "tl/model/convert.h"
#include "tl/model/gguf.h"
#include "tl/quant/qtensor.h"
#include "tl/tensor/safetensors.h"

namespace tl::test {

using Json = nlohmann::json;

// ---- protocol buffers

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number_field(unsigned field, std::uint64_t value) {
  return varint(field * 8) + varint(value);
}
inline std::string bytes_field(unsigned field, std::string_view bytes) {
  return varint(field * 8 + 2) + varint(bytes.size()) + std::string(bytes);
}
inline std::string float_field(unsigned field, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return varint(field * 8 + 5) + std::string(reinterpret_cast<const char*>(&bits), 4);
}
inline std::string piece_field(std::string_view text, float score, unsigned type) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) + number_field(3, type));
}
// The parts about training (merged pairs) and normalizing (spaces are kept, one goes first).
inline std::string usual_specs() {
  return bytes_field(2, number_field(3, 2)) + bytes_field(3, number_field(4, 0));
}

// ---- checkpoints

constexpr std::int64_t kHidden = 64, kFeedForward = 96, kHeads = 4, kKvHeads = 2, kHead = 16,
                       kVocab = 12;

// Numbers that differ from each other and from tensor to tensor, and that BF16 holds.
inline std::vector<float> made_up(std::int64_t count, int seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = std::sin(static_cast<float>(i) * 0.37f + static_cast<float>(seed));
    values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000u);
  }
  return values;
}

class SavedModel {
 public:
  explicit SavedModel(const std::string& architecture, QType stored = QType::F32) : type(stored) {
    config = {{"architectures", {architecture}},
              {"hidden_size", kHidden},
              {"intermediate_size", kFeedForward},
              {"num_attention_heads", kHeads},
              {"num_key_value_heads", kKvHeads},
              {"num_hidden_layers", 2},
              {"vocab_size", kVocab},
              {"max_position_embeddings", 4096},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0}};
    const bool is_gemma = architecture.starts_with("Gemma");
    const bool is_phi = architecture.starts_with("Phi");
    const bool has_head_norms =
        architecture.starts_with("Qwen3") || architecture.starts_with("Gemma3");
    if (has_head_norms || is_gemma) config["head_dim"] = kHead;
    if (is_gemma) config["sliding_window"] = 512;
    if (architecture.starts_with("Gemma2")) {
      config["attn_logit_softcapping"] = 50.0;
      config["final_logit_softcapping"] = 30.0;
    }
    if (is_phi) config["original_max_position_embeddings"] = 1024;
    add("model.embed_tokens.weight", {kVocab, kHidden});
    for (int i = 0; i < 2; ++i) {
      const std::string at = join("model.layers.", i, ".");
      add(at + "input_layernorm.weight", {kHidden});
      add(at + "post_attention_layernorm.weight", {kHidden});
      add(at + "self_attn.o_proj.weight", {kHidden, kHeads * kHead});
      add(at + "mlp.down_proj.weight", {kHidden, kFeedForward});
      if (is_phi) {
        add(at + "self_attn.qkv_proj.weight", {(kHeads + 2 * kKvHeads) * kHead, kHidden});
        add(at + "mlp.gate_up_proj.weight", {2 * kFeedForward, kHidden});
      } else {
        add(at + "self_attn.q_proj.weight", {kHeads * kHead, kHidden});
        add(at + "self_attn.k_proj.weight", {kKvHeads * kHead, kHidden});
        add(at + "self_attn.v_proj.weight", {kKvHeads * kHead, kHidden});
        add(at + "mlp.gate_proj.weight", {kFeedForward, kHidden});
        add(at + "mlp.up_proj.weight", {kFeedForward, kHidden});
      }
      if (has_head_norms) {
        add(at + "self_attn.q_norm.weight", {kHead});
        add(at + "self_attn.k_norm.weight", {kHead});
      }
      if (is_gemma) {
        add(at + "pre_feedforward_layernorm.weight", {kHidden});
        add(at + "post_feedforward_layernorm.weight", {kHidden});
      }
    }
    add("model.norm.weight", {kHidden});
    if (!is_gemma) add("lm_head.weight", {kVocab, kHidden});

    tokenizer = {{"model",
                  {{"type", "BPE"},
                   {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"abc", 4}}},
                   {"merges", {"a b", "ab c"}}}},
                 {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                 {"added_tokens",
                  {{{"id", 5}, {"content", "<s>"}, {"special", true}},
                   {{"id", 6}, {"content", "</s>"}, {"special", true}},
                   {{"id", 7}, {"content", "<tool>"}, {"special", false}}}}};
  }

  void add(const std::string& name, const Shape& shape) {
    set(name, shape, made_up(element_count("test", shape), static_cast<int>(tensors.size())));
  }
  void set(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    const QTensor stored = QTensor::quantize(Tensor::from(values, shape), type);
    tensors.insert_or_assign(name,
                             Tensor::from_bytes(stored.to_blocks(), *plain_dtype(type), shape));
    values_.insert_or_assign(name, stored.dequantize().to_vector<float>());
  }
  // As they are stored.
  const std::vector<float>& values(const std::string& name) const { return values_.at(name); }

  // Writes all of it and returns the folder.
  std::string write() const {
    save(file("config.json"), config.dump());
    if (!tokenizer.is_null()) save(file("tokenizer.json"), tokenizer.dump());
    if (!tokenizer_config.is_null()) {
      save(file("tokenizer_config.json"), tokenizer_config.dump());
    }
    if (!pieces.empty()) save(file("tokenizer.model"), pieces);
    write_safetensors(file("model.safetensors"), tensors);
    return folder_.path();
  }
  GgufFile convert(const ConvertOptions& options = {.type = "F32"}) const {
    result = convert_checkpoint({write()}, file("out.gguf"), options);
    return GgufFile::open(file("out.gguf"));
  }
  void expect_refused(ErrorKind kind, const std::string& text) const {
    const std::string folder = write();
    fs::remove(file("out.gguf"));  // of an earlier conversion
    expect_error(kind, text, [&] { convert_checkpoint({folder}, file("out.gguf")); });
    for (const auto& entry : fs::directory_iterator(folder)) {
      EXPECT_EQ(entry.path().filename().string().find("out.gguf"), std::string::npos);
    }
  }
  std::string file(const std::string& name) const { return folder_.file(name); }

  QType type;
  Json config, tokenizer, tokenizer_config;
  std::string pieces;  // tokenizer.model
  NamedTensors tensors;
  mutable ConvertResult result;

 private:
  std::map<std::string, std::vector<float>> values_;
  Folder folder_;
};

inline std::vector<float> floats(const GgufFile& file, std::string_view name) {
  const GgufTensorInfo& info = file.tensor(name);
  EXPECT_EQ(info.known_type(), QType::F32) << name;
  const auto bytes = file.bytes(info);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace tl::test
