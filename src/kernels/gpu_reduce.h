// What the host tells the kernels of module REDUCE. Both sides include this file; it is embedded as
// source for the run-time compilers.
#pragma once

#include "gpu_args.h"
#include "gpu_order.h"

namespace tl::kernels {

using float_bits::Bits32;

// How a variance, a norm or a count comes out.
enum class ReduceMode : unsigned {
  Plain,
  Root,      // of a variance: the standard deviation
  Any,       // of a count: is it above 0?
  All,       // of a count: is it everything?
  Absolute,  // norms: p = 1
  Square,    // p = 2
  Largest,   // p = infinity
  Smallest,  // p = -infinity
  Nonzero,   // p = 0
  Power,     // any other p
};

// Outputs are the positions of `kept`, each reduces the positions of `reduced`; offsets add up.
struct ReduceArgs {
  Strided<1> kept;
  Strided<1> reduced;
  Index per_split;  // positions of `reduced` that one block takes
  Index splits;
  unsigned width;  // rows: threads per output; strided: outputs side by side in a block
  ReduceMode mode;
  double scalar;  // what a sum is divided by, the correction of a variance, the p of a norm
  Order order;
  Bits32* arrived;  // with several splits: a zero for each block of outputs, or null to leave parts
};

// A scan along one dimension of `count` elements; the lines are the positions of `lines`, whose
// operands are input and output.
struct ScanArgs {
  Strided<2> lines;
  Index count;
  Index in_step;
  Index out_step;
  Index per_split;
  Index splits;
  unsigned by_warp;  // rows: 1 when each belongs to one warp, 0 to a block or several
};

}  // namespace tl::kernels
