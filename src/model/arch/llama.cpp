// Llama 1 to 3 and Mistral, and what else was given the same form.
#include <utility>

#include "model/arch/reader.h"

namespace tl::arch {

DecoderModel read_llama(Reader& reader) {
  DecoderConfig config = reader.config();
  config.rope_pairs = RopePairs::Neighbours;
  // Mistral's first model saw 4096 positions in every layer.
  reader.set_windows(config, {});
  return reader.model(std::move(config), {});
}

}  // namespace tl::arch
