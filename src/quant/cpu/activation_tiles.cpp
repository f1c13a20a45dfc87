#include "quant/cpu/activation_tiles.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "quant/cpu/product.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

ActivationTiles::ActivationTiles(const Activations& x, int block, int part)
    : rows_(x.rows()), columns_(x.columns()), block_(block), part_(part) {
  const auto padded = static_cast<std::size_t>(groups() * kTileRows);
  const auto columns = static_cast<std::size_t>(columns_);
  const auto blocks = columns / static_cast<std::size_t>(block);
  bytes_ = aligned<std::int8_t>(padded * columns);
  scales_ = aligned<float>(padded * blocks);
  if (block == 32) {
    block_sums_ = aligned<float>(padded * blocks);
  } else {
    pair_sums_ = aligned<std::int32_t>(padded * (columns / static_cast<std::size_t>(2 * part)));
  }
  ThreadPool::shared().parallel_for(0, groups(), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t group = first; group < last; ++group) arrange(x, group);
  });
}

void ActivationTiles::arrange(const Activations& x, std::int64_t group) {
  const std::int64_t blocks = columns_ / block_, parts = block_ / part_;
  std::int8_t* bytes = bytes_.get() + group * kTileRows * columns_;
  float* scales = scales_.get() + group * kTileRows * blocks;
  for (int r = 0; r < kTileRows; ++r) {
    const std::int64_t row = group * kTileRows + r;
    const bool there = row < rows_;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t place = block_ == 32 ? place_in_chains(b, blocks) : b;
      scales[place * kTileRows + r] = there ? x.scales(row)[b] : 0.0f;
      for (std::int64_t p = 0; p < parts; ++p) {
        std::int8_t* to = bytes + ((place * parts + p) * kTileRows + r) * part_;
        if (there) {
          std::memcpy(to, x.bytes(row) + b * block_ + p * part_, static_cast<std::size_t>(part_));
        } else {
          std::memset(to, 0, static_cast<std::size_t>(part_));
        }
      }
      if (block_ == 32) {
        float* sums = block_sums_.get() + group * kTileRows * blocks;
        sums[place * kTileRows + r] = there ? static_cast<float>(x.sums(row)[b]) : 0.0f;
        continue;
      }
      // The sums that x has are those of sixteen.
      std::int32_t* pairs = pair_sums_.get() + (group * blocks + b) * (parts / 2) * kTileRows;
      const std::int64_t each = part_ / 16;
      for (std::int64_t p = 0; p < parts / 2; ++p) {
        std::int32_t sum[2] = {0, 0};
        for (std::int64_t s = 0; there && s < 2 * each; ++s) {
          sum[s / each] += x.sums(row)[16 * b + 2 * each * p + s];
        }
        pairs[p * kTileRows + r] =
            static_cast<std::int32_t>((static_cast<std::uint32_t>(sum[0]) & 0xffffu) |
                                      static_cast<std::uint32_t>(sum[1]) << 16);
      }
    }
  }
}

}  // namespace tl::cpu
