// What the readers of architectures share: numbers under the architecture's prefix, tensors of the
// shapes those numbers say, the speeds at which heads turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/arch/arch.h"

namespace tl::arch {

class Reader {
 public:
  Reader(const GgufFile& file, const ModelWeights& weights);

  // Numbers; `key` comes without the architecture ("block_count").
  std::int64_t size(std::string_view key) const;  // at least 1; throws BadFile
  std::int64_t size_or(std::string_view key, std::int64_t otherwise) const;
  double number(std::string_view key) const;
  double number_or(std::string_view key, double otherwise) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  const GgufFile& file() const noexcept { return file_; }

  // The numbers that all architectures have, with the usual defaults: no windows, one rope.
  DecoderConfig config() const;
  // Frequencies of base^(-2i / size), scaled as rope.scaling.* and rope_freqs.weight say.
  RopeFrequencies rope(double base, std::int64_t size) const;

  // Tensors.
  Tensor norm(std::string_view name, std::int64_t size) const;
  std::optional<Tensor> norm_if(std::string_view name, std::int64_t size) const;
  // `name` comes without ".weight"; a bias is taken where there is one.
  Linear linear(std::string_view name, std::int64_t out, std::int64_t in) const;
  // The parts that every layer has: norms and matrices under "blk.N", with biases and the norms of
  // heads where the file has them.
  DecoderLayer layer(const DecoderConfig& config, std::int64_t index) const;
  // Embedding, last norm and output, tied to the embedding where there is none.
  void ends(DecoderModel& model) const;

 private:
  const GgufFile& file_;
  const ModelWeights& weights_;
  std::string prefix_;
};

}  // namespace tl::arch
