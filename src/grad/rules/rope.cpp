// Rotary embeddings. Inputs: x, the tables of cosines and sines, and positions, which may be
// missing. Settings: the form of the pairs, and whether there are positions.
#include "tl/ops/rope.h"

#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/rules/windows.h"
#include "ops/rope.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"

namespace tl::grad {

namespace {

using Form = ops::RopeForm;

Form form_of(const Flow& flow) { return static_cast<Form>(flow.integer(0)); }

std::optional<Tensor> positions_of(const Flow& flow) {
  return flow.flag(1) ? std::optional(flow.input(3)) : std::nullopt;
}

// A rotation is undone by the one that turns the other way: by the same kernel, unless what it
// gives is to be differentiated.
void rope_rule(Flow& flow) {
  if (!flow.wants(0)) return;
  const Form form = form_of(flow);
  if (!flow.follows()) {
    return flow.give(0, ops::rope_gradient(flow.gradient(), flow.input(1), flow.input(2),
                                           positions_of(flow), form));
  }
  const auto turn = form == Form::Halves ? rope : form == Form::Interleaved ? rope_i : rope_thd;
  flow.give(0, turn(flow.gradient(), flow.input(1), neg(flow.input(2)), positions_of(flow)));
}

struct Pairs {
  Tensor first, second;  // (b, h, t, r / 2)
};

Pairs pairs_of(const Tensor& x, Form form, std::int64_t half) {
  const Tensor heads = widened(form == Form::Thd ? x.transpose(1, 2) : x);
  if (form == Form::Interleaved) {
    return {heads.slice(-1, 0, 2 * half, 2), heads.slice(-1, 1, 2 * half, 2)};
  }
  return {heads.narrow(-1, 0, half), heads.narrow(-1, half, half)};
}

// `gradient` (b, h, t, r / 2) to the rows of the table that were read.
void give_rows(Flow& flow, std::size_t i, const Tensor& gradient) {
  const Tensor rows = sum(gradient, {1});  // (b, t, r / 2)
  if (flow.shape(i).size() == 3) return flow.give(i, rows);
  const std::int64_t size = flow.shape(i)[0];
  const auto positions = positions_of(flow);
  if (!positions) {
    return flow.give(i, padded(sum(rows, {0}), 0, 0, size - rows.dim(1)));
  }
  const Tensor each = positions->rank() == 1 ? sum(rows, {0}) : reshape(rows, {-1, rows.dim(2)});
  const Tensor ids = reshape(*positions, {positions->count()});
  const Tensor none = Tensor::zeros(flow.shape(i), each.dtype(), each.device());
  flow.give(i, index_add(none, 0, ids, each));
}

void rope_and_tables_rule(Flow& flow) {
  rope_rule(flow);
  const Form form = form_of(flow);
  const std::int64_t half = flow.shape(1).back();
  if (flow.gradient().empty() || half == 0) return;
  const Pairs x = pairs_of(flow.input(0), form, half), g = pairs_of(flow.gradient(), form, half);
  if (flow.wants(1)) give_rows(flow, 1, add(mul(g.first, x.first), mul(g.second, x.second)));
  if (flow.wants(2)) give_rows(flow, 2, sub(mul(g.second, x.first), mul(g.first, x.second)));
}

}  // namespace

std::span<const Rule> rope_rules() {
  static constexpr unsigned kTables = keeps_input(1) | keeps_input(2) | keeps_input(3);
  static constexpr Rule kRules[] = {
      {"rope", rope_rule, kTables},
      {"rope_and_tables", rope_and_tables_rule, kTables | keeps_input(0)},
  };
  return kRules;
}

}  // namespace tl::grad
