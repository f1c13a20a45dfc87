// One history for an op that is made of others.
#pragma once

#include <utility>

#include "tl/tensor/tensor.h"

namespace tl::ops {

// What f() computes, without a history of what happens inside.
template <class F>
Tensor without_history(F&& f) {
  const NoHistory none;
  return std::forward<F>(f)();
}

}  // namespace tl::ops
