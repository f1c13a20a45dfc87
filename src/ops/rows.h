// The rows of each family, gathered by table.cpp.
#pragma once

#include <span>

#include "tl/ops/table.h"

namespace tl::ops {

std::span<const OpRow> affine_rows();
std::span<const OpRow> attention_rows();
std::span<const OpRow> binary_rows();
std::span<const OpRow> conv_rows();
std::span<const OpRow> copy_rows();
std::span<const OpRow> create_rows();
std::span<const OpRow> glu_rows();
std::span<const OpRow> indexing_rows();
std::span<const OpRow> join_rows();
std::span<const OpRow> loss_rows();
std::span<const OpRow> matmul_rows();
std::span<const OpRow> norm_rows();
std::span<const OpRow> pool_rows();
std::span<const OpRow> random_rows();
std::span<const OpRow> reduce_rows();
std::span<const OpRow> resize_rows();
std::span<const OpRow> rope_rows();
std::span<const OpRow> scan_rows();
std::span<const OpRow> softmax_rows();
std::span<const OpRow> sort_rows();
std::span<const OpRow> unary_rows();
std::span<const OpRow> where_rows();

}  // namespace tl::ops
