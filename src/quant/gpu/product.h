// Products of quantised matrices on a GPU, from their blocks.
#pragma once

#include <cstdint>
#include <optional>

#include "tl/quant/format.h"
#include "tl/runtime/raw_memory.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

enum class ProductPath : std::uint8_t {
  Vector,   // x as bytes, sums of integers; at most eight rows of x
  Row,      // the same for one row of x and many of the weight; the same bits
  Pieces,   // the same for rows of some formats whose numbers share words; bits of its own
  Decoded,  // numbers of the weight as f32; at most eight rows of x
  Narrow,   // matrix units, small tiles
  Wide,     // matrix units, large tiles
  Group     // matrix units of four warps, larger tiles
};

struct ProductShape {
  std::int64_t n, k, m;  // rows and columns of the weight, rows of x
};

// The quickest path there is, none when the weight has to be decoded first. `blocks` says where the
// weight lies.
std::optional<ProductPath> product_path(const Device& device, QType type, const RawMemory& blocks,
                                        const ProductShape& shape);

// x: m rows of k numbers, f32, f16 or bf16, contiguous. y: m rows of n, of the same dtype. None of
// the sizes is zero. Throws Unsupported when the path cannot take the type, the shape or the place
// of the blocks.
void product(ProductPath path, QType type, const RawMemory& blocks, const ProductShape& shape,
             const Tensor& x, Tensor& y);

// x (m, k) in f32 times a weight of f16 or bf16, by the vendor's library: x becomes what the weight
// is (f16 after a power of two brought its rows to where f16 is good), sums are f32. False, with
// nothing done, where there is no library or it refuses; `y` is (m, n) of f32.
bool plain_product(DType stored, const RawMemory& weight, const ProductShape& shape,
                   const Tensor& x, Tensor& y);

}  // namespace tl::gpu
