// Phases of module DECODE (kernels/gpu_decode.h), cut into parts for a device, and their launch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/gpu_decode.h"
#include "tl/model/decoder_config.h"
#include "tl/model/kv_cache.h"
#include "tl/quant/qtensor.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// How the phases of a step are kept apart.
enum class DecodeOrder : std::uint8_t {
  Meetings,  // one launch, whose blocks meet after each phase
  Launches,  // a launch for each phase
};

// What the kernel calls the format of a weight's rows; kNoFormat where it has no name for it.
inline constexpr int kNoFormat = -1;
int decode_format(const QTensor& weight);

class DecodePlan {
 public:
  // Rows of a weight, and where what they give goes. Addresses on the device; `bias` may be null,
  // and so may `out`, for DecodeStep::logits.
  struct Matrix {
    const QTensor* weight;
    const float* bias;
    float* out;
  };

  static bool is_possible(const Device& device);
  // For attention of up to so many heads.
  DecodePlan(const Device& device, std::int64_t heads);

  const Device& device() const noexcept { return device_; }
  std::vector<kernels::DecodePhase>& phases() noexcept { return phases_; }

  // A product that is cut into pieces.
  struct Product {
    kernels::DecodeLinear linear;
    std::int64_t piece_bytes;  // of the ring for one piece
  };
  // Nothing for what the kernel does not do: formats without codes, formats of both kinds at once,
  // rows that are too long.
  std::optional<Product> cut(kernels::DecodeLinear linear, std::span<const Matrix> matrices) const;
  void add(const Product& product);  // in one phase or several
  void add(kernels::DecodePhase phase);
  // After the last phase, before they go to the device.
  void finish();
  void clear();

  // Whether attention with these heads can be a phase.
  bool fits(const DecoderConfig& config) const;
  // All of it but addresses.
  kernels::DecodePhase attention_of(const DecoderConfig& config, const KvShape& shape,
                                    std::int64_t layer) const;
  std::int64_t partial_floats(const DecoderConfig& config) const;  // DecodeAttention::partial
  kernels::Bits32* arrived() const noexcept { return counters_at_ + 1; }  // ...::arrived
  kernels::DecodeSight sight(const DecoderConfig& config, const KvShape& shape,
                             std::int64_t position, std::int64_t window) const;

  // All phases. The caller has set what they read: phases, token, blocks, logits, fault, fault_tag,
  // position, seen and seen_near.
  void launch(kernels::DecodeStep step);

 private:
  bool cut_rows(Product& product) const;

  Device device_;
  std::uint32_t blocks_;
  DecodeOrder order_;
  std::uint32_t ring_bytes_ = 0;  // shared memory for weights on their way; 0: none
  std::int64_t threads_;          // of a block that work
  std::int64_t piece_bytes_ = 0;  // of the ring for one piece
  int slots_ = 0;                 // of a warp
  std::uint32_t meetings_ = 0;    // of a launch
  std::vector<kernels::DecodePhase> phases_;
  int first_linear_ = 0;  // of them
  Tensor counters_;       // of meetings and of parts of attention; zeros to begin with
  kernels::Bits32* counters_at_;
  std::uint32_t met_ = 0;
};

}  // namespace tl::gpu
