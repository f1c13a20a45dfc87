// The rules of each family of ops, in src/grad/rules/.
#pragma once

#include <span>

#include "grad/node.h"

namespace tl::grad {

std::span<const Rule> attention_rules();
std::span<const Rule> binary_rules();
std::span<const Rule> choice_rules();
std::span<const Rule> conv_rules();
std::span<const Rule> glu_rules();
std::span<const Rule> indexing_rules();
std::span<const Rule> join_rules();
std::span<const Rule> loss_rules();
std::span<const Rule> matmul_rules();
std::span<const Rule> move_rules();
std::span<const Rule> norm_rules();
std::span<const Rule> pool_rules();
std::span<const Rule> quant_rules();
std::span<const Rule> reduce_rules();
std::span<const Rule> resize_rules();
std::span<const Rule> rope_rules();
std::span<const Rule> scan_rules();
std::span<const Rule> softmax_rules();
std::span<const Rule> unary_rules();
std::span<const Rule> view_rules();

}  // namespace tl::grad
