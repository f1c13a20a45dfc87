// Gemma 3: five layers with a window, then one that sees all; only the latter is scaled for longer
// texts. Heads are normed, scores are not capped.
#include <utility>

#include "model/arch/gemma.h"

namespace tl::arch {

DecoderModel read_gemma3(Reader& reader) {
  constexpr std::int64_t kLayersOfLargest = 62;
  DecoderConfig config = gemma_config(reader, kLayersOfLargest);
  config.attention_softcap = reader.positive_or("attn_logit_softcapping", 0);
  config.output_softcap = reader.positive_or("final_logit_softcapping", 0);
  reader.set_windows(config, {.window = 0, .period = 6});
  RopeScaling near;
  near.magnitude = reader.positive_or("rope.scaling.attn_factor", 1);
  add_window_rope(config, rope_frequencies(reader.positive_or("rope.freq_base_swa", 10000),
                                           config.rope_size, near));
  return reader.model(std::move(config), {.has_head_norms = true, .has_output_norms = true});
}

}  // namespace tl::arch
