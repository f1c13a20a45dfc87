// What was picked goes back to where it came from; what was placed is picked up again. The order of
// elements, too, is a choice of indices.
//
// Indices that mean "nothing" pick, place and add nothing on the way back either.
#include "tl/ops/indexing.h"

#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

constexpr unsigned kIds = keeps_input(1);

Tensor zeros_for(const Flow& flow) {
  const Tensor& g = flow.gradient();
  return Tensor::zeros(flow.shape(0), g.dtype(), g.device());
}

// Rows of the first dimension, for indices of any shape.
void add_rows(Flow& flow) {
  const Tensor ids = flow.input(1);
  Shape rows = flow.shape(0);
  rows[0] = ids.count();
  Tensor out = zeros_for(flow);
  index_add_set(out, 0, reshape(ids, {ids.count()}), reshape(flow.gradient(), rows));
  flow.give(0, out);
}

void index_select_rule(Flow& flow) {
  Tensor out = zeros_for(flow);
  index_add_set(out, flow.integer(0), flow.input(1), flow.gradient());
  flow.give(0, out);
}

void gather_rule(Flow& flow) {
  const std::int64_t dim = flow.integer(0);
  const Tensor ids = flow.input(1);
  Tensor out = zeros_for(flow);
  if (ids.dim(dim) == 1) {  // no two meet, so nothing needs to be added up
    scatter_set(out, dim, ids, flow.gradient());
  } else {
    scatter_add_set(out, dim, ids, flow.gradient());
  }
  flow.give(0, out);
}

// Each element once, or not at all.
void sort_rule(Flow& flow) {
  Tensor out = zeros_for(flow);
  if (!flow.gradient().empty()) {
    scatter_set(out, flow.integer(0), flow.input(1), flow.gradient());
  }
  flow.give(0, out);
}

// Where several sources went to one place the last stayed: nothing comes back to the others.
Tensor only_to_who_stayed(const Flow& flow, const Tensor& picked, Tensor ids) {
  const auto dim = static_cast<int>(flow.integer(0));
  const std::int64_t length = ids.shape()[dim];
  if (length == 1) return picked;
  for (int d = 0; d < ids.rank(); ++d) {  // what is the same for all lines is found out once
    if (d != dim && ids.strides()[d] == 0) ids = ids.narrow(d, 0, 1);
  }
  Shape line = Shape::repeated(ids.rank(), 1);
  line[dim] = length;
  const Tensor turns = arange(0, length, 1, DType::I64, ids.device()).view(line);
  Shape places = ids.shape();
  places[dim] = flow.shape(0)[dim];
  Tensor last = Tensor::zeros(places, DType::I64, ids.device());
  scatter_set(last, dim, ids, turns.broadcast_as(ids.shape()));
  return where(eq(gather(last, dim, ids), turns), picked, 0);
}

void scatter_rule(Flow& flow) {
  const std::int64_t dim = flow.integer(0);
  const Tensor ids = flow.input(1);
  if (flow.wants(0)) flow.give(0, scatter(flow.gradient(), dim, ids, 0));
  if (flow.wants(2)) {
    flow.give(2, only_to_who_stayed(flow, gather(flow.gradient(), dim, ids), ids));
  }
}

void scatter_add_rule(Flow& flow) {
  flow.give(0, flow.gradient());
  if (flow.wants(2)) flow.give(2, gather(flow.gradient(), flow.integer(0), flow.input(1)));
}

}  // namespace

std::span<const Rule> indexing_rules() {
  static constexpr Rule kRules[] = {
      {"index_select", index_select_rule, kIds},
      {"embedding", add_rows, kIds},
      {"take", add_rows, kIds},
      {"gather", gather_rule, kIds},
      {"sort", sort_rule, kIds},
      {"scatter", scatter_rule, kIds},
      {"scatter_add", scatter_add_rule, kIds},
  };
  return kRules;
}

}  // namespace tl::grad
