// The architectures of decoders. Each has a file of its own that reads its numbers and tensors into
// one form; decoder.cpp runs that form and knows none of them by name.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tl/model/decoder_config.h"
#include "tl/model/gguf.h"
#include "tl/model/weights.h"
#include "tl/quant/qtensor.h"
#include "tl/tensor/tensor.h"

namespace tl::arch {

// y = x * transpose(weight) + bias.
struct Linear {
  QTensor weight;              // (out, in)
  std::optional<Tensor> bias;  // (out), f32
};

// Norm weights are f32 and on the device. Matrices that a file has merged share its memory here.
struct DecoderLayer {
  Tensor attention_norm;
  Linear query, key, value, output;
  std::optional<Tensor> query_norm, key_norm;   // (key_size), of each head before it turns
  std::optional<Tensor> attention_output_norm;  // of what attention adds to the stream
  Tensor feed_forward_norm;
  Linear gate, up, down;
  std::optional<Tensor> feed_forward_output_norm;
};

struct DecoderModel {
  DecoderConfig config;
  QTensor embedding;  // (vocabulary, width)
  std::vector<DecoderLayer> layers;
  Tensor output_norm;
  QTensor output;  // (vocabulary, width); the embedding where they are tied
};

// `context` is how many positions caches will have, 0 for as many as the model was trained for:
// some models turn heads otherwise when it is long. Throws Unsupported for an architecture that is
// not known, with the list of those that are, and for what a model has beyond the form above.
DecoderModel read_model(const GgufFile& file, const ModelWeights& weights,
                        std::int64_t context = 0);

class Reader;

// One for each architecture.
DecoderModel read_llama(Reader& reader);
DecoderModel read_qwen2(Reader& reader);
DecoderModel read_qwen3(Reader& reader);
DecoderModel read_gemma2(Reader& reader);
DecoderModel read_gemma3(Reader& reader);
DecoderModel read_phi3(Reader& reader);

}  // namespace tl::arch
