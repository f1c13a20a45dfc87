// A tensor of indices as kernels get it, by value. Both sides include this file.
#pragma once

#include "gpu_args.h"

namespace tl::kernels {

// Indices of any integer dtype: which one is a parameter and not a template, because the branch is
// the same for all threads and costs nothing beside the load.
struct Ids {
  const void* data;
  Index size;     // an index must be below this
  Index nothing;  // the largest value of the dtype: the sentinel
  Fault* fault;
  unsigned kind;  // 0 u8, 1 u32, 2 i16, 3 i32, 4 i64: as DType counts
  unsigned tag;   // of the op, for `fault`
};

}  // namespace tl::kernels
