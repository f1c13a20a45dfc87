// Qwen 1.5, 2 and 2.5: queries, keys and values have biases.
#include <utility>

#include "model/arch/reader.h"

namespace tl::arch {

DecoderModel read_qwen2(Reader& reader) {
  DecoderConfig config = reader.config();
  config.rope_pairs = RopePairs::Halves;
  reader.set_windows(config, {});
  return reader.model(std::move(config), {});
}

}  // namespace tl::arch
