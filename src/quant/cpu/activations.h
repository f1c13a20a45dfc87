// The other side of a quantised product: rows of numbers as bytes with one scale per block.
#pragma once

#include <cstdint>

#include "ops/cpu/aligned.h"

namespace tl::cpu {

// Bytes and scales are those of Q8_0, in blocks of 32 (there with the precision of a half) or 256.
// Sums of the bytes of each part (of 32, and of 16 in blocks of 256) serve offsets and minimums of
// the weights.
class Activations {
 public:
  // What encodes blocks [first, last): the portable loops when it is null.
  using EncodeBlocks = void (*)(const float* x, int block, std::int64_t first, std::int64_t last,
                                std::int8_t* bytes, float* scales, std::int32_t* sums);
  Activations(const float* x, std::int64_t rows, std::int64_t columns, int block,
              EncodeBlocks encode = nullptr);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  const std::int8_t* bytes(std::int64_t row) const { return bytes_.get() + row * columns_; }
  const float* scales(std::int64_t row) const { return scales_.get() + row * (columns_ / block_); }
  const std::int32_t* sums(std::int64_t row) const {
    return sums_.get() + row * (columns_ / part_);
  }

 private:
  std::int64_t rows_, columns_;
  int block_, part_;
  Aligned<std::int8_t> bytes_;
  Aligned<float> scales_;
  Aligned<std::int32_t> sums_;
};

}  // namespace tl::cpu
