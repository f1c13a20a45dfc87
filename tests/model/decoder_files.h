// Model files for the tests of architectures: a good one, to be changed key by key and tensor by
// tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/arch/arch.h"
#include "model/gguf_files.h"
#include "tl/model/gguf_writer.h"

namespace tl::test {

// Two layers; a width of 32, 4 heads of 8, 2 of them for keys and values, 48 in the middle, 10
// tokens.
class DecoderFile {
 public:
  explicit DecoderFile(std::string architecture) : architecture_(std::move(architecture)) {
    keys_.insert_or_assign("general.architecture", GgufValue(architecture_));
    keys_.insert_or_assign(
        "tokenizer.ggml.tokens",
        GgufValue::array(std::span<const std::string>(std::vector<std::string>(10, "word"))));
    size("block_count", 2).size("context_length", 2048).size("embedding_length", 32);
    size("feed_forward_length", 48).size("attention.head_count", 4);
    size("attention.head_count_kv", 2).number("attention.layer_norm_rms_epsilon", 1e-6f);
    tensor("token_embd.weight", {10, 32}).tensor("output_norm.weight", {32});
    layer("attn_norm.weight", {32}).layer("ffn_norm.weight", {32});
    layer("attn_output.weight", {32, 32}).layer("ffn_down.weight", {32, 48});
    if (architecture_ == "phi3") {
      layer("attn_qkv.weight", {64, 32}).layer("ffn_up.weight", {96, 32});
    } else {
      layer("attn_q.weight", {32, 32}).layer("attn_k.weight", {16, 32});
      layer("attn_v.weight", {16, 32}).layer("ffn_gate.weight", {48, 32});
      layer("ffn_up.weight", {48, 32});
    }
    if (architecture_ == "qwen3" || architecture_ == "gemma3") {
      layer("attn_q_norm.weight", {8}).layer("attn_k_norm.weight", {8});
    }
    if (architecture_ == "gemma2" || architecture_ == "gemma3") {
      layer("post_attention_norm.weight", {32}).layer("post_ffw_norm.weight", {32});
    }
  }

  // Keys come without the architecture.
  DecoderFile& key(const std::string& key, const GgufValue& value) {
    keys_.insert_or_assign(architecture_ + "." + key, value);
    return *this;
  }
  DecoderFile& size(const std::string& name, std::uint32_t value) { return key(name, value); }
  DecoderFile& number(const std::string& name, float value) { return key(name, value); }
  DecoderFile& top_key(const std::string& key, const GgufValue& value) {
    keys_.insert_or_assign(key, value);
    return *this;
  }
  DecoderFile& without_key(const std::string& key) {
    keys_.erase(architecture_ + "." + key);
    return *this;
  }
  // Values from 1 on; a tensor that is there already is replaced.
  DecoderFile& tensor(const std::string& name, const Shape& shape, QType type = QType::F32) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < element_count("test", shape); ++i) {
      values.push_back(static_cast<float>(1 + i));
    }
    return tensor(name, shape, std::move(values), type);
  }
  DecoderFile& tensor(const std::string& name, const Shape& shape, std::vector<float> values,
                      QType type = QType::F32) {
    tensors_.insert_or_assign(name, Data{shape, std::move(values), type});
    return *this;
  }
  DecoderFile& layer(const std::string& name, const Shape& shape) {
    return tensor("blk.0." + name, shape).tensor("blk.1." + name, shape);
  }
  DecoderFile& without(const std::string& tensor) {
    tensors_.erase(tensor);
    return *this;
  }

  GgufFile open() const {
    GgufWriter writer;
    for (const auto& [key, value] : keys_) writer.add(key, value);
    for (const auto& [name, data] : tensors_) {
      writer.add_tensor(name, data.shape, data.type, std::as_bytes(std::span(data.values)));
    }
    const Folder folder;  // the file stays mapped
    return GgufFile::open(writer.write(folder.file("m.gguf")).front());
  }
  arch::DecoderModel read(std::int64_t context = 0) const {
    const GgufFile file = open();
    return arch::read_model(file, ModelWeights::load(file, Device::cpu()), context);
  }

 private:
  struct Data {
    Shape shape;
    std::vector<float> values;
    QType type;  // as wide as a float
  };
  std::string architecture_;
  std::map<std::string, GgufValue> keys_;
  std::map<std::string, Data> tensors_;
};

}  // namespace tl::test
