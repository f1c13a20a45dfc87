// Running sums and products.
#include "tl/ops/scan.h"

#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/join.h"
#include "tl/ops/reduce.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

// The sum of each element and all behind it.
Tensor sum_of_rest(const Tensor& x, std::int64_t dim) {
  return flip(cumsum(flip(x, {dim}), dim), {dim});
}

void cumsum_rule(Flow& flow) { flow.give(0, sum_of_rest(flow.gradient(), flow.integer(0))); }

// For g' = g y and y the products, element i gets the rest of g' from i on over x[i]. The first 0
// of a line gets the same with it left out of the products; what comes behind it moves nothing.
Tensor from_products(const Tensor& g, const Tensor& x, std::int64_t dim) {
  const Tensor is_zero = eq(x, 0);
  const Tensor zeros = cumsum(to_dtype(is_zero, DType::I64), dim);
  const Tensor is_first = logical_and(is_zero, eq(zeros, 1));
  const Tensor filled = where(is_first, 1, x);
  const Tensor moved = mul(g, cumprod(filled, dim));
  const Tensor is_before = eq(zeros, 0);
  const Tensor before = div(sum_of_rest(where(is_before, moved, 0), dim), where(is_zero, 1, x));
  return where(is_before, before, where(is_first, sum_of_rest(moved, dim), 0));
}

// Without division, from the products of all but one element, for each of them. As many numbers as
// the square of a line, but its own gradient is right even where elements are 0.
Tensor from_all_products(const Tensor& g, const Tensor& x, std::int64_t dim) {
  const std::int64_t n = x.dim(dim);
  const auto lines = [&](const Tensor& t) { return reshape(t.move_dim(dim, -1), {-1, 1, n}); };
  const Tensor is_left_out = eye(n, DType::Bool, x.device());
  const Tensor products = triu(cumprod(where(is_left_out, 1, lines(x)), -1));
  const Tensor out = sum(mul(products, lines(g)), {-1});
  return reshape(out, x.move_dim(dim, -1).shape()).move_dim(-1, dim);
}

void cumprod_rule(Flow& flow) {
  const std::int64_t dim = flow.integer(0);
  const Tensor& g = flow.gradient();
  const Tensor x = flow.input(0);
  flow.give(0, flow.follows() ? from_all_products(g, x, dim) : from_products(g, x, dim));
}

}  // namespace

std::span<const Rule> scan_rules() {
  static constexpr Rule kRules[] = {
      {"cumsum", cumsum_rule},
      {"cumprod", cumprod_rule, keeps_input(0)},
  };
  return kRules;
}

}  // namespace tl::grad
