// Activations in the order in which a matrix unit reads them.
#pragma once

#include <cstdint>

#include "ops/cpu/aligned.h"
#include "quant/cpu/activations.h"

namespace tl::cpu {

inline constexpr int kTileRows = 16;

// Sixteen rows of x at a time (those after the last are zero); of these, parts of so many columns
// as share a scale, and of a part the rows one after the other. Blocks of 32 lie in the order of
// their chains (product.h).
class ActivationTiles {
 public:
  // `part` is 32, or 16 in blocks of 256.
  ActivationTiles(const Activations& x, int block, int part);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t groups() const { return (rows_ + kTileRows - 1) / kTileRows; }
  // [part][row][column of the part]
  const std::int8_t* bytes(std::int64_t group) const {
    return bytes_.get() + group * kTileRows * columns_;
  }
  // [block][row]
  const float* scales(std::int64_t group) const {
    return scales_.get() + group * kTileRows * (columns_ / block_);
  }
  // Sums of the bytes. Blocks of 32: a float for each, [block][row]. Blocks of 256: two words for
  // each two parts, [block][pair of parts][row].
  const float* block_sums(std::int64_t group) const {
    return block_sums_.get() + group * kTileRows * (columns_ / block_);
  }
  const std::int32_t* pair_sums(std::int64_t group) const {
    return pair_sums_.get() + group * kTileRows * (columns_ / part_ / 2);
  }

 private:
  void arrange(const Activations& x, std::int64_t group);

  std::int64_t rows_, columns_;
  int block_, part_;
  Aligned<std::int8_t> bytes_;
  Aligned<float> scales_, block_sums_;
  Aligned<std::int32_t> pair_sums_;
};

}  // namespace tl::cpu
