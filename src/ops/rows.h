// The rows of each family, gathered by table.cpp.
#pragma once

#include <span>

#include "tl/ops/table.h"

namespace tl::ops {

std::span<const OpRow> copy_rows();
std::span<const OpRow> indexing_rows();
std::span<const OpRow> join_rows();

}  // namespace tl::ops
