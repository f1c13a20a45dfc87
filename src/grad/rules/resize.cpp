// Resizing of (b, c, l) and (b, c, h, w): what an element was read for comes back to it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/rules/windows.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"

namespace tl::grad {

namespace {

// The slices of g along `dim`, each added to the one of `size` that `places` names.
Tensor gathered(const Tensor& g, int dim, std::int64_t size,
                const std::vector<std::int64_t>& places) {
  Shape shape = g.shape();
  shape[dim] = size;
  const Tensor ids = Tensor::from(places, {g.dim(dim)}, g.device());
  return index_add(Tensor::zeros(shape, g.dtype(), g.device()), dim, ids, g);
}

void nearest_rule(Flow& flow) {
  Tensor g = widened(flow.gradient());
  for (int dim = g.rank() - 1; dim >= 2; --dim) {
    const std::int64_t in = flow.shape(0)[dim], out = g.dim(dim);
    if (in == out) continue;
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < out; ++i) places.push_back(i * in / out);
    g = gathered(g, dim, in, places);
  }
  flow.give(0, g);
}

// Each place of the output lies between two of the input, at scale * place + shift.
Tensor bilinear_back(const Tensor& g, int dim, std::int64_t in, double scale, double shift) {
  std::vector<std::int64_t> first, second;
  std::vector<double> parts;
  const auto end = static_cast<double>(in - 1);
  for (std::int64_t i = 0; i < g.dim(dim); ++i) {
    const double at = std::max(std::fma(scale, static_cast<double>(i), shift), 0.0);
    const double below = std::floor(std::min(at, end));
    first.push_back(static_cast<std::int64_t>(below));
    second.push_back(static_cast<std::int64_t>(std::min(below + 1, end)));
    parts.push_back(std::min(at - below, 1.0));
  }
  Tensor part = to_dtype(Tensor::from(parts, {g.dim(dim)}, g.device()), g.dtype());
  if (dim == 2) part = part.unsqueeze(1);
  const Tensor far = mul(g, part);
  return add(gathered(sub(g, far), dim, in, first), gathered(far, dim, in, second));
}

void bilinear_rule(Flow& flow) {
  const Shape& x = flow.shape(0);
  const Tensor g = widened(flow.gradient());
  const Tensor columns = bilinear_back(g, 3, x[3], flow.real(2), flow.real(3));
  flow.give(0, bilinear_back(columns, 2, x[2], flow.real(0), flow.real(1)));
}

}  // namespace

std::span<const Rule> resize_rules() {
  static constexpr Rule kRules[] = {
      {"resize_nearest", nearest_rule},
      {"resize_bilinear", bilinear_rule},
  };
  return kRules;
}

}  // namespace tl::grad
