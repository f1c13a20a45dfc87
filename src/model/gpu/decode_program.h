// One token at a time on a GPU: the whole way through a decoder in one launch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/gpu_decode.h"
#include "model/arch/arch.h"
#include "model/rope_tables.h"
#include "tl/model/kv_cache.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// How the phases of a step are kept apart.
enum class DecodeOrder : std::uint8_t {
  Meetings,  // one launch, whose blocks meet after each phase
  Launches,  // a launch for each phase
};

// The phases of a model (kernels/gpu_decode.h), ready on the device. It keeps the addresses of the
// model's tensors and must not outlive them. Safe to use from several threads: steps are queued one
// after the other.
class DecodeProgram {
 public:
  // Nothing for a model that the kernel does not do: weights of formats without codes, or heads too
  // large for a block.
  static std::unique_ptr<DecodeProgram> make(const arch::DecoderModel& model, const KvShape& shape);

  // Logits (1, vocabulary) of the token (u32, one element) that comes after those in the cache,
  // which has room for it. Does not wait.
  Tensor step(const Tensor& token, KvCache& cache, model::RopeTables& ropes);

 private:
  using Destination = std::pair<const arch::Linear*, float*>;

  DecodeProgram(const arch::DecoderModel& model, const KvShape& shape);
  bool add_phases();
  bool add_linear(kernels::DecodeLinear linear, std::initializer_list<Destination> weights);
  bool cut(kernels::DecodeLinear& linear);
  void add_turns(const kernels::DecodeLinear& linear);
  void chain();
  void share_ring();
  void add(kernels::DecodePhase phase);
  void add_attention(std::int64_t layer);
  float* room(std::int64_t count);
  kernels::DecodeSight sight(std::int64_t position, std::int64_t window) const;
  void refresh(std::int64_t positions, model::RopeTables& ropes);

  const arch::DecoderModel& model_;
  KvShape shape_;
  Device device_;
  std::uint32_t blocks_;
  const DecodeOrder order_;
  std::uint32_t ring_bytes_ = 0;  // shared memory for weights on their way; 0: none
  std::int64_t threads_;          // of a block that work
  std::int64_t piece_bytes_ = 0;  // of the ring for one piece
  int slots_ = 0;                 // of a warp
  std::uint32_t meetings_ = 0;    // of a step
  std::vector<kernels::DecodePhase> phases_;
  int first_linear_ = 0;                 // of them
  std::int64_t window_ = 0;              // of the layers that have one
  std::vector<std::size_t> attentions_;  // places of the layers' attention in phases_
  Tensor room_;                          // vectors between phases
  std::int64_t room_taken_ = 0;
  Tensor counters_;  // of meetings and of parts of attention; zeros to begin with
  std::mutex mutex_;
  std::vector<model::RopeTable> tables_;
  Tensor program_;  // phases_ on the device
  std::uint32_t met_ = 0;
};

}  // namespace tl::gpu
