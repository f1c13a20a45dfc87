// A language model of the Llama family: tokens in, logits out.
//
//   const GgufFile file = GgufFile::open("model.gguf");
//   const Device device = Device::best_available();
//   const Decoder decoder(file, ModelWeights::load(file, device));
//   KvCache cache = decoder.new_cache();
//   Tensor logits = decoder.forward(tokens, cache);  // (1, vocabulary): of what comes next
//
// Weights stay as the file has them. A decoder is a value and may be used by several threads, each
// with caches of its own. On a GPU tokens may be a tensor that is still being computed, and so may
// logits: one token at a time waits for the device only when a cache takes a new block; several at
// once wait for an upload of where they go.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tl/model/decoder_config.h"
#include "tl/model/gguf.h"
#include "tl/model/kv_cache.h"
#include "tl/model/tokenizer.h"
#include "tl/model/weights.h"
#include "tl/tensor/tensor.h"

namespace tl {

struct DecoderOptions {
  KvType cache = KvType::F16;
  std::int64_t context = 0;  // positions of a cache; 0: as many as the model was trained for
  // Tokens that are computed together; more are cut into chunks, and memory is bounded by it.
  std::int64_t chunk = 512;
};

enum class LogitRows : std::uint8_t { Last, All };

// Some tokens of one sequence, which come after those in its cache.
struct SequencePart {
  KvCache* cache = nullptr;
  std::int64_t count = 0;  // of tokens, at least 1
  LogitRows rows = LogitRows::Last;
};

struct DecoderState;

class Decoder {
 public:
  // Throws Unsupported for an architecture that is not known (and names those that are) or for a
  // part of the model that is not, BadFile for a missing tensor or number, ShapeMismatch for a
  // tensor of another shape than the numbers say.
  Decoder(const GgufFile& file, const ModelWeights& weights, const DecoderOptions& options = {});

  const DecoderConfig& config() const noexcept;
  const DecoderOptions& options() const noexcept;
  Device device() const;
  std::int64_t context() const noexcept;  // positions that its caches have

  KvCache new_cache() const;

  // Logits in f32 for the next token: (1, vocabulary), or (tokens, vocabulary) with LogitRows::All.
  // Throws BadArgument when the cache has no room or is not one of this model's, InvalidIndex for a
  // token that is not in the vocabulary (on a GPU when the result is read). The cache then is as it
  // was, or on a GPU holds what it held and something after it.
  Tensor forward(std::span<const TokenId> tokens, KvCache& cache,
                 LogitRows rows = LogitRows::Last) const;
  // The same for tokens (u32) on the decoder's device.
  Tensor forward(const Tensor& tokens, KvCache& cache, LogitRows rows = LogitRows::Last) const;
  // Several sequences at once: their tokens one after the other, and so their logits. No cache may
  // come twice.
  Tensor forward(std::span<const SequencePart> parts, const Tensor& tokens) const;

  // What the model knows at each token, after the last norm and before it becomes logits: f32
  // (tokens, width). Their mean is an embedding of the text. Throws what forward() throws.
  Tensor hidden(std::span<const TokenId> tokens, KvCache& cache) const;

 private:
  Tensor compute(std::span<const SequencePart> parts, const Tensor& tokens, bool to_logits) const;

  std::shared_ptr<const DecoderState> state_;
};

}  // namespace tl
