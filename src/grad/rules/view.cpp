// Views: the gradient of a part is put where the part was.
#include <vector>

#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/rules/windows.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"

namespace tl::grad {

namespace {

void view_rule(Flow& flow) { flow.give(0, reshape(flow.gradient(), flow.shape(0))); }

void broadcast_rule(Flow& flow) { flow.give(0, flow.gradient()); }  // summed by give()

void transpose_rule(Flow& flow) {
  flow.give(0, flow.gradient().transpose(flow.dims(0)[0], flow.dims(0)[1]));
}

void permute_rule(Flow& flow) {
  const Dims& order = flow.dims(0);
  Dims back = order;
  for (int d = 0; d < order.size(); ++d) back[static_cast<int>(order[d])] = d;
  flow.give(0, flow.gradient().permute(back));
}

// `part` at every step-th place from `start` along `dim`, zeros elsewhere.
Tensor put_back(const Tensor& part, const Shape& shape, int dim, std::int64_t start,
                std::int64_t step) {
  if (step == 1) {
    return pad_with_zeros(part, dim, start, shape[dim] - start - part.shape()[dim]);
  }
  const Tensor ids =
      arange(start, start + part.shape()[dim] * step, step, DType::I64, part.device());
  return index_add(Tensor::zeros(shape, part.dtype(), part.device()), dim, ids, part);
}

void slice_rule(Flow& flow) {
  const Dims& s = flow.dims(0);
  flow.give(0, put_back(flow.gradient(), flow.shape(0), static_cast<int>(s[0]), s[1], s[2]));
}

void get_rule(Flow& flow) {
  const Dims& s = flow.dims(0);
  const int dim = static_cast<int>(s[0]);
  flow.give(0, put_back(flow.gradient().unsqueeze(dim), flow.shape(0), dim, s[1], 1));
}

// Windows along s[0], s[2] apart.
void unfold_rule(Flow& flow) {
  const Dims& s = flow.dims(0);
  const int dim = static_cast<int>(s[0]);
  flow.give(0, fold(flow.gradient(), dim, s[2], flow.shape(0)[dim]));
}

// Where in memory each element of a layout lies, in row-major order.
std::vector<std::int64_t> places(const Layout& layout) {
  std::vector<std::int64_t> out{layout.offset()};
  for (int d = 0; d < layout.rank(); ++d) {
    std::vector<std::int64_t> next;
    next.reserve(out.size() * static_cast<std::size_t>(layout.shape()[d]));
    for (const std::int64_t at : out) {
      for (std::int64_t i = 0; i < layout.shape()[d]; ++i) {
        next.push_back(at + i * layout.strides()[d]);
      }
    }
    out = std::move(next);
  }
  return out;
}

// Any layout over the memory of another: every element adds to its place. Elements of the input
// that share a place share what came to it.
void with_layout_rule(Flow& flow) {
  const Tensor& g = flow.gradient();
  const std::int64_t start = flow.dims(1)[0];
  const Layout whole(flow.shape(0), flow.dims(0), 0);
  const Layout seen(g.shape(), flow.dims(2), flow.dims(3)[0] - start);
  Tensor memory = Tensor::zeros({whole.extent()}, g.dtype(), g.device());
  if (seen.overlaps()) {
    const auto at = Tensor::from(places(seen), {g.count()}, g.device());
    memory = index_add(memory, 0, at, reshape(g, {g.count()}));
  } else {
    assign_at(memory, seen, g);
  }
  if (whole.overlaps()) {
    const auto all = places(whole);
    std::vector<double> owners(static_cast<std::size_t>(whole.extent()), 0);
    for (const std::int64_t place : all) owners[static_cast<std::size_t>(place)] += 1;
    for (double& count : owners) count = count == 0 ? 1 : count;
    memory = div(memory, to_dtype(Tensor::from(owners, {whole.extent()}, g.device()), g.dtype()));
  }
  flow.give(0, copy(memory.with_layout(whole)));
}

}  // namespace

std::span<const Rule> view_rules() {
  static constexpr Rule kRules[] = {
      {"view", view_rule},           {"broadcast_as", broadcast_rule},
      {"transpose", transpose_rule}, {"permute", permute_rule},
      {"slice", slice_rule},         {"get", get_rule},
      {"unfold", unfold_rule},       {"with_layout", with_layout_rule},
  };
  return kRules;
}

}  // namespace tl::grad
