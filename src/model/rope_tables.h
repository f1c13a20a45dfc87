// Cosines and sines of the angles by which heads turn, for as many positions as were asked for.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "tl/model/decoder_config.h"
#include "tl/runtime/device.h"
#include "tl/tensor/tensor.h"

namespace tl::model {

struct RopeTable {
  Tensor cosines;  // (positions, pairs), f32
  Tensor sines;
};

// Grows with the longest sequence: a position costs little beside its keys and values. Safe to use
// from several threads.
class RopeTables {
 public:
  RopeTables(std::vector<RopeFrequencies> ropes, Device device);

  // For at least that many positions.
  RopeTable get(int rope, std::int64_t positions);

 private:
  std::vector<RopeFrequencies> ropes_;
  Device device_;
  std::mutex mutex_;  // guards tables_
  std::vector<RopeTable> tables_;
};

}  // namespace tl::model
