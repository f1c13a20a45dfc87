// Gemma 2: every other layer has a window; scores and logits are capped; what attention and the
// feed-forward part give is normed.
#include <utility>

#include "model/arch/gemma.h"

namespace tl::arch {

DecoderModel read_gemma2(Reader& reader) {
  constexpr std::int64_t kLayersOfLargest = 46;
  DecoderConfig config = gemma_config(reader, kLayersOfLargest);
  // The same in all sizes, and left out by early files.
  config.attention_softcap = reader.positive_or("attn_logit_softcapping", 50);
  config.output_softcap = reader.positive_or("final_logit_softcapping", 30);
  reader.set_windows(config, {.window = 4096, .period = 2});
  return reader.model(std::move(config), {.has_output_norms = true});
}

}  // namespace tl::arch
