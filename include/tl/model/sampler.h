// Which token comes next: one is drawn from logits, on the device where they are.
//
//   Sampler sampler({.temperature = 0.7, .seed = 42}, decoder.config().vocabulary, device);
//   sampler.accept(prompt);                          // the penalties count these too
//   Tensor token = sampler.sample(logits);           // u32 (1); nothing waits for a GPU
//   logits = decoder.forward(token, cache);
//
// A sampler is a value. A copy goes on by itself: both draw what the one would have drawn, until
// they are given different logits. The same seed and the same logits give the same tokens on every
// device. docs/sampling.md says what each option does, and in which order.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tl/model/tokenizer.h"  // TokenId
#include "tl/runtime/device.h"
#include "tl/runtime/raw_memory.h"
#include "tl/tensor/tensor.h"

namespace tl {

struct SamplingOptions {
  double temperature = 0.8;       // below 1e-7: always the largest logit
  std::int64_t top_k = 40;        // so many of the largest logits stay; 0: all
  double top_p = 0.95;            // the likeliest stay that have this probability together; 1: all
  double min_p = 0.05;            // those stay that are so likely beside the likeliest; 0: all
  double typical_p = 1;           // as top_p, but what is nearest to the mean surprise first
  double repetition_penalty = 1;  // for tokens among the last ones: logits are divided by it
  double presence_penalty = 0;    // subtracted from their logits
  double frequency_penalty = 0;   // and this for each time they are there
  std::int64_t penalty_window = 64;  // how many the last ones are; -1: all there ever were
  // Added to logits; -infinity: never. (The braces let a list of named fields leave it out.)
  // NOLINTNEXTLINE(readability-redundant-member-init)
  std::vector<std::pair<TokenId, float>> logit_bias = {};
  std::uint64_t seed = 0;

  static constexpr std::int64_t kMostWindow = std::int64_t{1} << 24;

  bool is_greedy() const noexcept { return temperature < 1e-7; }
  // Throws BadArgument that names the field and its value.
  void check() const;
};

class Sampler {
 public:
  static constexpr std::int64_t kMostTokens = std::int64_t{1} << 22;  // of a vocabulary

  // Throws BadArgument for options that check() refuses, a bias for a token that is not in the
  // vocabulary or that has one already, a vocabulary of no tokens or more than kMostTokens.
  Sampler(SamplingOptions options, std::int64_t vocabulary, const Device& device);
  Sampler(const Sampler&) = default;  // shares; no move, which would leave one that cannot sample
  Sampler& operator=(const Sampler&) = default;
  ~Sampler() = default;

  const SamplingOptions& options() const noexcept { return options_; }
  std::int64_t vocabulary() const noexcept { return vocabulary_; }
  Device device() const { return state_.device(); }

  // Tokens that were not sampled here, the prompt's above all: penalties count them. Throws
  // InvalidIndex for one that is not in the vocabulary; then nothing was counted.
  void accept(std::span<const TokenId> tokens);

  // logits: f32, (vocabulary) or (1, vocabulary), on the sampler's device. The token is u32 (1) on
  // the same device. Throws InvalidIndex when there is no token to choose because no logit is a
  // number above -infinity; on a GPU the next wait for the device does, and the token is 0. After
  // any other error the sampler is as it was.
  Tensor sample(const Tensor& logits);
  // The rows of logits (n, vocabulary), each by a sampler of its own, with one launch for 64 of
  // them. The tokens are u32 (n).
  static Tensor sample(std::span<Sampler* const> samplers, const Tensor& logits);

  // As it was made: the first number of the seed comes next, and no token was seen.
  void reset();

 private:
  RawMemory fresh_state(const Device& device) const;

  SamplingOptions options_;
  std::int64_t vocabulary_ = 0;
  RawMemory state_;  // what changes: step, counts, last tokens
  RawMemory bias_;   // a number for each token, or nothing; never written again
};

}  // namespace tl
