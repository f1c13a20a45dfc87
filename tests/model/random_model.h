// A decoder of the llama architecture with random weights and a vocabulary of bytes and a few
// words, small enough to be made for every test. What it says is nonsense, but it says it firmly:
// the best token is mostly well ahead of the second.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/gguf_files.h"
#include "model/vocabularies.h"
#include "tl/model/gguf_writer.h"
#include "tl/quant/qtensor.h"

namespace tl::test {

struct RandomModel {
  std::int64_t layers = 2;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t hidden = 160;
  std::int64_t vocabulary = 288;
  std::int64_t context = 128;
  QType type = QType::Q8_0;
  std::string leave_out = {};  // a tensor
  std::string chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
};

inline std::string write_random_model(const std::string& path, const RandomModel& shape = {}) {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("general.name", "random");
  const auto number = [&](const std::string& key, std::int64_t value) {
    writer.add("llama." + key, static_cast<std::uint32_t>(value));
  };
  number("block_count", shape.layers);
  number("context_length", shape.context);
  number("embedding_length", shape.width);
  number("feed_forward_length", shape.hidden);
  number("attention.head_count", shape.heads);
  number("attention.head_count_kv", shape.kv_heads);
  number("rope.dimension_count", shape.width / shape.heads);
  writer.add("llama.rope.freq_base", 10000.0F);
  writer.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);

  std::vector<Entry> words = with_bytes({{"\u2581", -1}});
  for (int i = 0; std::ssize(words) < shape.vocabulary; ++i) {
    words.push_back({join("\u2581w", i), static_cast<float>(-2 - i)});
  }
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<std::int32_t> kinds;
  for (const Entry& each : words) {
    texts.push_back(each.text);
    scores.push_back(each.score);
    kinds.push_back(each.kind);
  }
  writer.add("tokenizer.ggml.model", "llama");
  writer.add("tokenizer.ggml.tokens", GgufValue::array(std::span<const std::string>(texts)));
  writer.add("tokenizer.ggml.scores", GgufValue::array(std::span<const float>(scores)));
  writer.add("tokenizer.ggml.token_type", GgufValue::array(std::span<const std::int32_t>(kinds)));
  writer.add("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  writer.add("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  if (!shape.chat_template.empty()) {
    writer.add("tokenizer.chat_template", shape.chat_template);
  }

  std::vector<std::vector<std::byte>> keep;
  keep.reserve(static_cast<std::size_t>(9 * shape.layers + 3));
  std::uint64_t seed = 7;
  const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns,
                          double gain) {
    if (name == shape.leave_out) return;
    std::mt19937_64 random(++seed);
    std::normal_distribution<float> normal(
        0, static_cast<float>(gain / std::sqrt(static_cast<double>(columns))));
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    for (float& value : values) value = normal(random);
    const QTensor stored = QTensor::quantize(Tensor::from(values, {rows, columns}), shape.type);
    keep.push_back(stored.to_blocks());
    writer.add_tensor(name, {rows, columns}, shape.type, keep.back());
  };
  const auto ones = [&](const std::string& name) {
    if (name == shape.leave_out) return;
    const std::vector<float> values(static_cast<std::size_t>(shape.width), 1.0F);
    keep.emplace_back(values.size() * sizeof(float));
    std::copy_n(reinterpret_cast<const std::byte*>(values.data()), keep.back().size(),
                keep.back().data());
    writer.add_tensor(name, {shape.width}, QType::F32, keep.back());
  };
  const std::int64_t kv = shape.width / shape.heads * shape.kv_heads;
  matrix("token_embd.weight", shape.vocabulary, shape.width, 1);
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string at = join("blk.", i, ".");
    ones(at + "attn_norm.weight");
    matrix(at + "attn_q.weight", shape.width, shape.width, 1.5);
    matrix(at + "attn_k.weight", kv, shape.width, 1.5);
    matrix(at + "attn_v.weight", kv, shape.width, 1);
    matrix(at + "attn_output.weight", shape.width, shape.width, 1);
    ones(at + "ffn_norm.weight");
    matrix(at + "ffn_gate.weight", shape.hidden, shape.width, 1.5);
    matrix(at + "ffn_up.weight", shape.hidden, shape.width, 1.5);
    matrix(at + "ffn_down.weight", shape.width, shape.hidden, 1);
  }
  ones("output_norm.weight");
  matrix("output.weight", shape.vocabulary, shape.width, 4);
  return writer.write(path).front();
}

}  // namespace tl::test
