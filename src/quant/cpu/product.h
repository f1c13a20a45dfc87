// Products of quantised rows with rows of numbers.
//
// Where a format's numbers are whole-number codes times scales, the other side is rounded to bytes
// (activations.h), a block's share of a product is a sum of integers, and these shares are added up
// in f32: blocks of 256 one after the other; blocks of 32 in four chains, of every fourth block
// each, and then the chains in order. Integers have no rounding, so every path and every batch size
// gives the same bits. Other formats are decoded and multiplied in f32.
//
// With one exception: where there is a matrix unit, batches of 96 rows and more go through it as
// bf16, which is quicker still and nearer to the truth (product_tiles.cpp). AmxInt8 is the way to
// the bits of the others for these too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ops/cpu/gemm.h"
#include "ops/cpu/row_order.h"
#include "quant/cpu/activations.h"
#include "tl/quant/format.h"

namespace tl::cpu {

// How the integers are added up; each takes few rows of x as those before it do. Portable is what
// the compiler makes of plain loops, Amx the one that rounds many rows to bf16.
enum class ProductPath : std::uint8_t { Portable, Avx2, Avx512Vnni, AmxInt8, Amx };

// Whether this machine has it.
bool has_product_path(ProductPath path);
// The one with a name: portable, avx2, avx512, amx-int8 or amx; the fastest that this machine has
// for an empty one. Throws BadArgument for another name, and for a path that this machine does not
// have.
ProductPath product_path(std::string_view name);
// The one that TL_CPU_PRODUCTS names when it is first asked for, else the fastest.
ProductPath best_product_path();

// y (m, n) = x (m, k) times the transpose of w (n rows of k). k is a whole number of blocks.
struct Factor {
  QType type;
  const std::byte* w;
  std::int64_t n;
  float* y;
};
// The products of one x with several weights, as one piece of work where they do little more than
// read them: x is made bytes once, and threads wait for each other once. The bits are those that
// each has by itself.
void products(std::span<const Factor> factors, std::int64_t k, const float* x, std::int64_t m,
              ProductPath path = best_product_path(), RowOrder order = best_row_order());
inline void product(QType type, const std::byte* w, std::int64_t n, std::int64_t k, const float* x,
                    std::int64_t m, float* y, ProductPath path = best_product_path(),
                    RowOrder order = best_row_order()) {
  const Factor one{type, w, n, y};
  products(std::span(&one, 1), k, x, m, path, order);
}

// Sums that the blocks of 32 are added to in turn.
inline constexpr int kChains = 4;

// Where block b is among `blocks` in the order of chains: those of chain 0, then of chain 1, ...
inline std::int64_t place_in_chains(std::int64_t b, std::int64_t blocks) {
  const std::int64_t chain = b % kChains, longer = blocks % kChains;
  return chain * (blocks / kChains) + (chain < longer ? chain : longer) + b / kChains;
}

class ActivationTiles;

namespace detail {

// Rows [first, last) of w times every row of x: y[i * n + row].
using RowsProduct = void (*)(const std::byte* w, std::int64_t first, std::int64_t last,
                             const Activations& x, float* y, std::int64_t n, RowOrder order);
// Null where the type has no such path.
RowsProduct portable_product(QType type);
template <class Format>
void portable_rows(const std::byte* w, std::int64_t first, std::int64_t last, const Activations& x,
                   float* y, std::int64_t n, RowOrder order);
RowsProduct avx2_product(QType type);
bool has_avx2();
Activations::EncodeBlocks avx2_encode();
RowsProduct vnni_product(QType type);
bool has_vnni();
Activations::EncodeBlocks vnni_encode();

// The same with a matrix unit, which wants x in tiles: of a whole number of panels of sixteen rows.
struct TiledProduct {
  void (*rows)(const std::byte* w, std::int64_t first, std::int64_t last, const ActivationTiles& x,
               float* y, std::int64_t n) = nullptr;
  int block = 0, part = 0;  // of x
};
TiledProduct amx_product(QType type);
bool has_amx();

// By numbers of bf16; null where the type's products are no integers. In `g` the other matrix is
// the weight, and b_col the bytes of its rows.
using GemmProduct = void (*)(const Gemm& g);
GemmProduct tiles_product(QType type);
bool has_tiles();

}  // namespace detail

}  // namespace tl::cpu
