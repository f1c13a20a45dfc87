// The rows of each family, gathered by table.cpp.
#pragma once

#include <span>

#include "tl/ops/table.h"

namespace tl::ops {

std::span<const OpRow> affine_rows();
std::span<const OpRow> binary_rows();
std::span<const OpRow> copy_rows();
std::span<const OpRow> create_rows();
std::span<const OpRow> random_rows();
std::span<const OpRow> unary_rows();
std::span<const OpRow> where_rows();

}  // namespace tl::ops
