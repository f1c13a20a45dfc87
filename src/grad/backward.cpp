#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>

#include "grad/flow.h"
#include "tl/grad/grad.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/reduce.h"

namespace tl {

namespace grad {

Tensor sum_to(const Tensor& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const int lead = gradient.rank() - shape.size();
  Dims over;
  for (int d = 0; d < gradient.rank(); ++d) {
    if (d < lead || (shape[d - lead] == 1 && gradient.shape()[d] != 1)) over.push_back(d);
  }
  const Tensor summed = over.empty() ? gradient : sum(gradient, over, true);
  return reshape(summed, shape);
}

Tensor Flow::input(std::size_t i) const {
  const Input& in = node_.inputs()[i];
  return follows_ ? in.kept : in.kept.detach();
}

Tensor Flow::result() const {
  return follows_ ? node_.kept_result().with_history(node_.shared_from_this())
                  : node_.kept_result();
}

void Flow::give(std::size_t i, Tensor gradient) {
  if (!wants(i)) return;
  gradient = sum_to(gradient, shape(i));
  if (gradient.dtype() != dtype(i)) gradient = to_dtype(gradient, dtype(i));
  std::optional<Tensor>& so_far = given_[i];
  so_far = so_far ? add(*so_far, gradient) : std::move(gradient);
}

}  // namespace grad

using grad::Flow;
using grad::Node;

// One walk from a result to its variables, the ops that ran last first.
class BackwardRun {
 public:
  explicit BackwardRun(const BackwardOptions& options)
      : keep_(options.keep || options.follow), follow_(options.follow) {}

  void want(const Node* node) { wanted_.emplace(node, std::nullopt); }
  const std::optional<Tensor>& wanted(const Node* node) const { return wanted_.at(node); }

  Gradients run(const Tensor& result, Tensor seed) {
    arrive(grad::node_of(result), std::move(seed));
    while (!queue_.empty()) {
      const std::shared_ptr<const Node> node = queue_.top();
      queue_.pop();
      const auto at = arrived_.find(node.get());
      Tensor gradient = std::move(at->second);
      arrived_.erase(at);
      if (const auto w = wanted_.find(node.get()); w != wanted_.end()) w->second = gradient;
      if (node->is_variable()) {
        out_.entries_.push_back({node, std::move(gradient)});
      } else {
        pass(*node, std::move(gradient));
      }
    }
    return std::move(out_);
  }

 private:
  struct Earlier {
    bool operator()(const std::shared_ptr<const Node>& a,
                    const std::shared_ptr<const Node>& b) const {
      return a->order() < b->order();
    }
  };

  void arrive(const std::shared_ptr<const Node>& node, Tensor gradient) {
    const auto [at, is_new] = arrived_.try_emplace(node.get(), gradient);
    if (is_new) {
      queue_.push(node);
    } else {
      at->second = add(at->second, gradient);
    }
  }

  void pass(const Node& node, Tensor gradient) {
    if (node.was_dropped()) {
      throw Error(
          ErrorKind::BadArgument, "backward", "what '", node.rule().op,
          "' kept was dropped by an earlier run; compute it again, or ask that run to keep it");
    }
    Flow flow(node, std::move(gradient), follow_);
    {
      const HistoryScope scope(follow_);
      node.rule().run(flow);
    }
    const auto& inputs = node.inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (flow.given()[i]) arrive(inputs[i].node, std::move(*flow.given()[i]));
    }
    if (!keep_) node.drop_kept();
  }

  bool keep_;
  bool follow_;
  std::priority_queue<std::shared_ptr<const Node>, std::vector<std::shared_ptr<const Node>>,
                      Earlier>
      queue_;
  std::unordered_map<const Node*, Tensor> arrived_;
  std::unordered_map<const Node*, std::optional<Tensor>> wanted_;
  Gradients out_;
};

namespace {

void expect_followed(std::string_view op, const Tensor& x) {
  if (!x.has_history()) {
    throw Error(ErrorKind::BadArgument, op, "a tensor of shape ", x.shape(),
                " depends on nothing that is followed");
  }
}

Tensor seed_of(const Tensor& result) {
  expect_followed("backward", result);
  if (result.count() != 1) {
    throw Error(ErrorKind::ShapeMismatch, "backward", "needs one element, and shape ",
                result.shape(), " has ", result.count());
  }
  return ones(result.shape(), result.dtype(), result.device());
}

}  // namespace

Tensor follow(const Tensor& x) {
  if (!is_float(x.dtype())) {
    throw Error(ErrorKind::Unsupported, "follow", "needs a float tensor, got ", x.dtype());
  }
  return x.with_history(Node::variable(x));
}

const Tensor* Gradients::find(const Tensor& variable) const {
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.variable == variable.history(); });
  return at == entries_.end() ? nullptr : &at->gradient;
}

Tensor Gradients::of(const Tensor& variable) const {
  expect_followed("gradient", variable);
  const Tensor* found = find(variable);
  return found != nullptr ? *found : zeros_like(variable.detach());
}

Gradients backward(const Tensor& result, const BackwardOptions& options) {
  return BackwardRun(options).run(result, seed_of(result));
}

Gradients backward(const Tensor& result, const Tensor& seed, const BackwardOptions& options) {
  expect_followed("backward", result);
  if (seed.shape() != result.shape()) {
    throw Error(ErrorKind::ShapeMismatch, "backward", "a seed of shape ", seed.shape(),
                " for a result of shape ", result.shape());
  }
  return BackwardRun(options).run(result, seed);
}

std::vector<Tensor> gradients_of(const Tensor& result, std::span<const Tensor> with_respect_to,
                                 const BackwardOptions& options) {
  BackwardRun run(options);
  for (const Tensor& x : with_respect_to) {
    expect_followed("gradients_of", x);
    run.want(grad::node_of(x).get());
  }
  run.run(result, seed_of(result));
  std::vector<Tensor> out;
  for (const Tensor& x : with_respect_to) {
    const auto& found = run.wanted(grad::node_of(x).get());
    out.push_back(found ? *found : zeros_like(x.detach()));
  }
  return out;
}

Tensor checkpoint(std::function<Tensor(std::span<const Tensor>)> function,
                  std::vector<Tensor> inputs) {
  if (!has_history(inputs)) return function(inputs);
  Tensor result;
  {
    const NoHistory none;
    result = function(inputs).detach();
  }
  return result.with_history(Node::checkpoint(std::move(function), inputs, result));
}

}  // namespace tl
