// What a decoder's file says about it: sizes, scales and the form of each layer. Every number comes
// from the file's metadata (src/model/arch has a reader for each architecture).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tl {

enum class GatedActivation : std::uint8_t { Silu, GeluTanh };

// Which elements of a head turn together: 2i and 2i + 1, or i and i + half of what turns.
enum class RopePairs : std::uint8_t { Neighbours, Halves };

// How fast the pairs of a head turn. Element i is the angle in radians from one position to the
// next; cosines and sines are multiplied by `magnitude`.
struct RopeFrequencies {
  std::vector<double> radians;  // rope_size / 2 of them
  double magnitude = 1;
};

struct LayerAttention {
  std::int64_t window = 0;  // a position sees itself and window - 1 before it; 0: all
  int rope = 0;             // place in DecoderConfig::ropes
};

struct DecoderConfig {
  std::string architecture;  // "llama"
  std::int64_t layers = 0;
  std::int64_t width = 0;  // of the residual stream
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t key_size = 0;    // of a head's queries and keys
  std::int64_t value_size = 0;  // of a head's values
  std::int64_t hidden = 0;      // of the feed-forward part
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;  // positions it was trained for
  double norm_epsilon = 1e-5;
  double embedding_scale = 1;
  double attention_scale = 1;
  double attention_softcap = 0;  // scores become softcap * tanh(score / softcap); 0: as they are
  double output_softcap = 0;     // the same for logits
  GatedActivation activation = GatedActivation::Silu;
  RopePairs rope_pairs = RopePairs::Neighbours;
  std::int64_t rope_size = 0;  // elements of a head that turn, from the first
  std::vector<RopeFrequencies> ropes;
  std::vector<LayerAttention> attention;  // one for each layer
};

// What general.architecture may be for a model that is run here: "llama", "qwen2".
std::span<const std::string_view> decoder_architectures();

}  // namespace tl
