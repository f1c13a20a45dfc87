// What travels by value from the host into a kernel: how to walk over strided tensors, and division
// by multiplication.
//
// Both sides include this file, so both agree on every byte and on every result. It includes no
// system header and is embedded as source for the run-time compilers. Building a layout merges its
// dimensions first: a contiguous tensor comes out with one dimension and no division at all, a
// transposed matrix with two.
#pragma once

#include "tl/base/float_bits.h"  // TL_FN
#include "tl/runtime/fault.h"

#ifndef GPU_ROLLED
#define GPU_ROLLED  // see gpu.h; nothing to say to a host compiler
#endif

namespace tl::kernels {

using Index = long long;  // sizes, strides and positions, counted in elements
using tl::Fault;

// Division of n < 2^31 by a divisor in [1, 2^31): one multiplication, an addition and a shift. With
// shift = ceil(log2(divisor)) the multiplier is 2^32 * (2^shift - divisor) / divisor + 1, which
// fits 32 bits; below 2^31 the addition in divide() cannot overflow (Granlund and Montgomery,
// "Division by invariant integers").
struct FastDiv {
  unsigned divisor;
  unsigned multiplier;
  unsigned shift;

  TL_FN unsigned divide(unsigned n) const {
    const unsigned high =
        static_cast<unsigned>((static_cast<unsigned long long>(n) * multiplier) >> 32);
    return (high + n) >> shift;
  }
};

TL_FN FastDiv make_fast_div(unsigned divisor) {
  unsigned shift = 0;
  while ((1ull << shift) < divisor) ++shift;
  const unsigned long long excess = (1ull << shift) - divisor;
  return {divisor, static_cast<unsigned>((excess << 32) / divisor + 1), shift};
}

inline constexpr int kMaxRank = 8;

// The same positions in up to four tensors: count elements in row-major order of the logical shape.
// Dimensions are kept innermost first, since that is the order in which a position is taken apart.
template <int kOperands>
struct Strided {
  static_assert(kOperands >= 1 && kOperands <= 4);
  // Divides like FastDiv, with 64-bit numbers unless the walk is narrow.
  struct Dim {
    unsigned long long size;
    unsigned long long multiplier;
    unsigned shift;
  };
  Index count;
  unsigned rank;              // after merging, at least 1
  unsigned short narrow;      // 1: every position and every offset is below 2^31
  unsigned short contiguous;  // 1: the offset of every operand is the position itself
  Dim dim[kMaxRank];
  Index stride[kOperands][kMaxRank];
};

template <int kOperands>
struct Offsets {
  Index at[kOperands];
};

TL_FN unsigned long long multiply_high(unsigned long long a, unsigned long long b) {
  const unsigned long long a_low = a & 0xffffffffu, a_high = a >> 32;
  const unsigned long long b_low = b & 0xffffffffu, b_high = b >> 32;
  const unsigned long long cross = a_high * b_low + (a_low * b_low >> 32);
  return a_high * b_high + (cross >> 32) + ((a_low * b_high + (cross & 0xffffffffu)) >> 32);
}

// Where element `i` of the walk lies in each operand. (A contiguous walk has no need to ask.)
template <int kOperands>
TL_FN Offsets<kOperands> offsets(const Strided<kOperands>& walk, Index i) {
  Offsets<kOperands> result = {};
  const unsigned last = walk.rank - 1;  // the outermost dimension takes what is left: no division
  if (walk.narrow) {
    unsigned rest = static_cast<unsigned>(i);
    unsigned at[kOperands] = {};
    GPU_ROLLED
    for (unsigned d = 0; d < last; ++d) {
      const FastDiv dim = {static_cast<unsigned>(walk.dim[d].size),
                           static_cast<unsigned>(walk.dim[d].multiplier), walk.dim[d].shift};
      const unsigned next = dim.divide(rest);
      const unsigned here = rest - next * dim.divisor;
      for (int k = 0; k < kOperands; ++k) at[k] += here * static_cast<unsigned>(walk.stride[k][d]);
      rest = next;
    }
    for (int k = 0; k < kOperands; ++k) {
      result.at[k] = at[k] + rest * static_cast<unsigned>(walk.stride[k][last]);
    }
    return result;
  }
  unsigned long long rest = static_cast<unsigned long long>(i);
  GPU_ROLLED
  for (unsigned d = 0; d < last; ++d) {
    const auto next = (multiply_high(rest, walk.dim[d].multiplier) + rest) >> walk.dim[d].shift;
    const Index here = static_cast<Index>(rest - next * walk.dim[d].size);
    for (int k = 0; k < kOperands; ++k) result.at[k] += here * walk.stride[k][d];
    rest = next;
  }
  for (int k = 0; k < kOperands; ++k) {
    result.at[k] += static_cast<Index>(rest) * walk.stride[k][last];
  }
  return result;
}

// The place of element `i` in the innermost dimension.
template <int kOperands>
TL_FN Index inner_place(const Strided<kOperands>& walk, Index i) {
  if (walk.rank == 1) return i;
  const auto& dim = walk.dim[0];
  if (walk.narrow) {
    const FastDiv fast = {static_cast<unsigned>(dim.size), static_cast<unsigned>(dim.multiplier),
                          dim.shift};
    const unsigned n = static_cast<unsigned>(i);
    return n - fast.divide(n) * fast.divisor;
  }
  const auto n = static_cast<unsigned long long>(i);
  const auto quotient = (multiply_high(n, dim.multiplier) + n) >> dim.shift;
  return static_cast<Index>(n - quotient * dim.size);
}

template <int kOperands>
TL_FN Index offset(const Strided<kOperands>& walk, Index i) {
  static_assert(kOperands == 1);
  return offsets(walk, i).at[0];
}

// 2^64 * excess / divisor + 1 for excess < divisor, by long division: no compiler here has to know
// 128-bit integers.
TL_FN unsigned long long wide_multiplier(unsigned long long excess, unsigned long long divisor) {
  unsigned long long quotient = 0;
  for (int bit = 0; bit < 64; ++bit) {
    quotient <<= 1;
    if (excess >= divisor - excess) {  // 2 * excess >= divisor, without the overflow
      excess -= divisor - excess;
      quotient |= 1;
    } else {
      excess += excess;
    }
  }
  return quotient + 1;
}

// Host side: `rank` (at most kMaxRank) dimensions, outermost first, and the strides of each operand
// in the same order (0 where it is broadcast). Dimensions of size 1 are dropped, and neighbours
// that every operand walks as one are merged.
template <int kOperands>
TL_FN Strided<kOperands> make_strided(int rank, const Index* dims,
                                      const Index* const (&strides)[kOperands]) {
  Strided<kOperands> walk = {};
  Index size[kMaxRank] = {};
  walk.count = 1;
  for (int d = rank - 1; d >= 0; --d) {
    walk.count *= dims[d];
    if (dims[d] == 1) continue;
    bool merges = walk.rank > 0;
    for (int k = 0; k < kOperands && merges; ++k) {
      merges = strides[k][d] == walk.stride[k][walk.rank - 1] * size[walk.rank - 1];
    }
    if (merges) {
      size[walk.rank - 1] *= dims[d];
      continue;
    }
    size[walk.rank] = dims[d];
    for (int k = 0; k < kOperands; ++k) walk.stride[k][walk.rank] = strides[k][d];
    ++walk.rank;
  }
  if (walk.count <= 1) {  // nothing, or one element: any walk will do
    walk.rank = 1;
    size[0] = 1;
    for (int k = 0; k < kOperands; ++k) walk.stride[k][0] = 1;
  }

  constexpr Index kNarrowEnd = 1ll << 31;
  bool narrow = walk.count < kNarrowEnd;
  bool contiguous = walk.rank == 1;
  for (int k = 0; k < kOperands; ++k) {
    Index reach = 0;  // largest offset
    for (unsigned d = 0; d < walk.rank; ++d) {
      narrow = narrow && walk.stride[k][d] >= 0;
      reach += (size[d] - 1) * walk.stride[k][d];
    }
    narrow = narrow && reach < kNarrowEnd;
    contiguous = contiguous && walk.stride[k][0] == 1;
  }
  walk.narrow = narrow ? 1 : 0;
  walk.contiguous = contiguous ? 1 : 0;
  for (unsigned d = 0; d < walk.rank; ++d) {
    const auto divisor = static_cast<unsigned long long>(size[d]);
    if (narrow) {
      const FastDiv fast = make_fast_div(static_cast<unsigned>(divisor));
      walk.dim[d] = {divisor, fast.multiplier, fast.shift};
    } else {
      unsigned shift = 0;
      while ((1ull << shift) < divisor) ++shift;
      walk.dim[d] = {divisor, wide_multiplier((1ull << shift) - divisor, divisor), shift};
    }
  }
  return walk;
}

// All operands contiguous: the layout of the common case. `walk` is empty before.
template <int kOperands>
TL_FN void set_contiguous(Strided<kOperands>& walk, Index count) {
  walk.count = count;
  walk.rank = 1;
  walk.contiguous = 1;
  walk.dim[0] = {static_cast<unsigned long long>(count), 0, 0};
  for (int k = 0; k < kOperands; ++k) walk.stride[k][0] = 1;
}
template <int kOperands>
TL_FN Strided<kOperands> make_contiguous(Index count) {
  Strided<kOperands> walk = {};
  set_contiguous(walk, count);
  return walk;
}

}  // namespace tl::kernels
