// The operands of where(): layouts have the shape of the result, and a null tensor stands for the
// number.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::ops {

struct Choice {
  const Tensor* condition = nullptr;
  const Layout* condition_layout = nullptr;
  const Tensor* yes = nullptr;
  const Layout* yes_layout = nullptr;
  const Tensor* no = nullptr;
  const Layout* no_layout = nullptr;
  Scalar value;
};

}  // namespace tl::ops
