// What config.json says of a model: its kind, its sizes, and the metadata that GGUF has for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/checkpoint.h"
#include "tl/model/gguf_value.h"

namespace tl::saved {

enum class Family : std::uint8_t { Llama, Qwen2, Qwen3, Gemma2, Gemma3, Phi3 };

struct Architecture {
  std::string_view saved;  // as config.json names it: "LlamaForCausalLM"
  Family family;
  std::string_view name;  // as GGUF names it: "llama"
};

std::span<const Architecture> architectures();

struct ModelConfig {
  std::string file;  // config.json, with its path
  Json json;         // all of it; the text part's keys over the others
  Architecture architecture{};
  std::uint32_t layers = 0, hidden = 0, feed_forward = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::optional<std::uint32_t> vocab;  // tokens; Gemma 3 may leave it out
  bool is_tied = false;                // the embedding is the output too

  // In the order in which they are written; without what depends on the tensors or the vocabulary.
  std::vector<std::pair<std::string, GgufValue>> metadata;
  // Small tensors that come from the config: factors of rope frequencies.
  std::vector<std::pair<std::string, std::vector<float>>> factors;
};

// Throws Unsupported for a kind of model that is not known, with a list of those that are, and
// BadFile for a key that is missing or makes no sense. Things that are left out are told in
// `notes`.
ModelConfig read_config(const Checkpoint& checkpoint, std::vector<std::string>& notes);

}  // namespace tl::saved
