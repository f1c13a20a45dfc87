// The operands of where(): layouts have the shape of the result, and a null tensor stands for the
// number.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::ops {

struct Choice {
  const Tensor* condition;
  const Layout* condition_layout;
  const Tensor* yes;
  const Layout* yes_layout;
  const Tensor* no;
  const Layout* no_layout;
  Scalar value;
};

}  // namespace tl::ops
