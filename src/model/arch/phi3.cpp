// Phi 3, 3.5 and 4: queries, keys and values are one matrix in the file, and so are the two halves
// of the feed-forward part.
#include <utility>

#include "model/arch/reader.h"

namespace tl::arch {

DecoderModel read_phi3(Reader& reader) {
  DecoderConfig config = reader.config();
  config.rope_pairs = RopePairs::Halves;
  reader.set_windows(config, {});
  return reader.model(std::move(config), {.gate_is_in_up = true});
}

}  // namespace tl::arch
