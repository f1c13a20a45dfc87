// Qwen 3: every head's queries and keys are normed before they turn.
#include <utility>

#include "model/arch/reader.h"

namespace tl::arch {

DecoderModel read_qwen3(Reader& reader) {
  DecoderConfig config = reader.config();
  config.rope_pairs = RopePairs::Halves;
  reader.set_windows(config, {});
  return reader.model(std::move(config), {.has_head_norms = true});
}

}  // namespace tl::arch
