// How tensors are printed.
#pragma once

#include <string>

#include "tl/tensor/tensor.h"

namespace tl {

std::string to_text(const Tensor& tensor);

}  // namespace tl
