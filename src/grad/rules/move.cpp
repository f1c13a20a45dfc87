// Copies, conversions, moves between devices, writes into parts, and what is computed again.
#include <algorithm>

#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/grad/grad.h"
#include "tl/ops/copy.h"

namespace tl::grad {

namespace {

void pass_rule(Flow& flow) { flow.give(0, flow.gradient()); }  // a dtype is converted by give()

void to_rule(Flow& flow) { flow.give(0, to(flow.gradient(), Device::parse(flow.text(0)))); }

// A part was written over: what was there before does not count, what was written does. Settings
// are the layouts of the whole and of the part in one memory.
void assign_at_rule(Flow& flow) {
  const Tensor& g = flow.gradient();
  const Shape& part_shape = flow.dims(2);
  const std::int64_t start = flow.dims(1)[0];
  Layout whole(g.shape(), flow.dims(0), 0);
  Tensor memory;
  if (whole.is_contiguous()) {
    memory = contiguous(g);
    whole = memory.layout();
  } else {
    memory = Tensor::zeros({whole.extent()}, g.dtype(), g.device());
    assign_at(memory, whole, g);
  }
  const Layout part(part_shape, flow.dims(3), flow.dims(4)[0] - start + whole.offset());
  if (flow.wants(1)) flow.give(1, copy(memory.with_layout(part)));
  if (flow.wants(0)) {
    fill_at(memory, part, 0);
    flow.give(0, memory.shape() == g.shape() ? memory : memory.with_layout(whole));
  }
}

// Runs the function once more, now followed, and goes back through it.
void checkpoint_rule(Flow& flow) {
  if (flow.follows()) {
    throw Error(ErrorKind::Unsupported, "checkpoint",
                "gradients of gradients do not go through what is computed again");
  }
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < flow.size(); ++i) {
    inputs.push_back(flow.wants(i) ? tl::follow(flow.input(i)) : flow.input(i));
  }
  const HistoryScope followed(true);
  const Tensor result = flow.node().function()(inputs);
  if (!result.has_history()) return;
  const Gradients gradients = backward(result, flow.gradient());
  for (std::size_t i = 0; i < flow.size(); ++i) {
    if (const Tensor* found = flow.wants(i) ? gradients.find(inputs[i]) : nullptr) {
      flow.give(i, *found);
    }
  }
}

}  // namespace

std::span<const Rule> move_rules() {
  static constexpr Rule kRules[] = {
      {"copy", pass_rule},
      {"to_dtype", pass_rule},
      {"to", to_rule},
      {"assign_at", assign_at_rule},
      {"checkpoint", checkpoint_rule, kKeepsAll},
  };
  return kRules;
}

}  // namespace tl::grad
