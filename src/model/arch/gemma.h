// What Gemma 2 and 3 share.
#pragma once

#include <cstdint>

#include "model/arch/reader.h"

namespace tl::arch {

// The usual numbers, scaled embeddings and gates. Files do not say by what queries are divided: it
// is the root of a head's size, but in the largest model, known by its count of layers, the root of
// the width over the heads.
DecoderConfig gemma_config(Reader& reader, std::int64_t layers_of_largest);

// Layers with a window turn by a table of their own.
void add_window_rope(DecoderConfig& config, RopeFrequencies rope);

}  // namespace tl::arch
