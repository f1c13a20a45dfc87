// One token at a time on a GPU: the whole way through a decoder in one launch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "model/arch/arch.h"
#include "model/gpu/decode_plan.h"
#include "model/rope_tables.h"
#include "tl/model/kv_cache.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

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
  bool add_linear(const kernels::DecodeLinear& linear, std::initializer_list<Destination> weights);
  void add_attention(std::int64_t layer, const kernels::DecodeAttention& addresses);
  float* room(std::int64_t count);
  void refresh(std::int64_t positions, model::RopeTables& ropes);

  const arch::DecoderModel& model_;
  KvShape shape_;
  Device device_;
  DecodePlan plan_;
  std::int64_t window_ = 0;              // of the layers that have one
  std::vector<std::size_t> attentions_;  // places of the layers' attention in the plan
  Tensor room_;                          // vectors between phases
  std::int64_t room_taken_ = 0;
  std::mutex mutex_;
  std::vector<model::RopeTable> tables_;
  Tensor program_;  // the plan's phases on the device
};

}  // namespace tl::gpu
