#include "model/arch/gemma.h"

#include <cmath>
#include <utility>

namespace tl::arch {

DecoderConfig gemma_config(Reader& reader, std::int64_t layers_of_largest) {
  DecoderConfig config = reader.config();
  config.rope_pairs = RopePairs::Halves;
  config.activation = GatedActivation::GeluTanh;
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  const bool says_scale = reader.number_if("attention.scale").value_or(0) != 0;
  if (config.layers == layers_of_largest && !says_scale) {
    config.attention_scale =
        std::sqrt(static_cast<double>(config.heads) / static_cast<double>(config.width));
  }
  return config;
}

void add_window_rope(DecoderConfig& config, RopeFrequencies rope) {
  config.ropes.push_back(std::move(rope));
  for (LayerAttention& layer : config.attention) {
    if (layer.window != 0) layer.rope = 1;
  }
}

}  // namespace tl::arch
