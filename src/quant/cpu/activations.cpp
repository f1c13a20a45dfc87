#include "quant/cpu/activations.h"

#include <cstddef>

#include "tl/base/float_bits.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

#include "quant/cpu/encode-inl.h"

}  // namespace

Activations::Activations(const float* x, std::int64_t rows, std::int64_t columns, int block,
                         EncodeBlocks encode)
    : rows_(rows),
      columns_(columns),
      block_(block),
      part_(block == 32 ? 32 : 16),
      bytes_(aligned<std::int8_t>(static_cast<std::size_t>(rows * columns))),
      scales_(aligned<float>(static_cast<std::size_t>(rows * columns / block))),
      sums_(aligned<std::int32_t>(static_cast<std::size_t>(rows * columns / part_))) {
  if (encode == nullptr) encode = &encode_blocks;
  ThreadPool::shared().parallel_for(
      0, rows * columns / block, 16384 / block, [&](std::int64_t first, std::int64_t last) {
        encode(x, block, first, last, bytes_.get(), scales_.get(), sums_.get());
      });
}

}  // namespace tl::cpu
