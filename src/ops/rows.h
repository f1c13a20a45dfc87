// The rows of each family, gathered by table.cpp.
#pragma once

#include <span>

#include "tl/ops/table.h"

namespace tl::ops {

std::span<const OpRow> conv_rows();
std::span<const OpRow> copy_rows();
std::span<const OpRow> pool_rows();
std::span<const OpRow> resize_rows();

}  // namespace tl::ops
