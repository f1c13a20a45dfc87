#include "grad/node.h"

#include <atomic>
#include <utility>

#include "tl/base/error.h"

namespace tl::grad {

namespace {

std::uint64_t next_order() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Node::Node(const Rule* rule, const Tensor& result)
    : rule_(rule), order_(next_order()), shape_(result.shape()), dtype_(result.dtype()) {}

std::shared_ptr<Node> Node::variable(const Tensor& x) {
  return std::shared_ptr<Node>(new Node(nullptr, x));
}

std::shared_ptr<const History> Node::extend(std::string_view op, std::span<const Tensor> inputs,
                                            HistoryValues settings, const Tensor& result) const {
  const Rule* rule = find_rule(op);
  if (rule == nullptr) {
    throw Error(ErrorKind::Unsupported, op, "no gradient is known for it; detach what it reads");
  }
  const std::shared_ptr<Node> node(new Node(rule, result));
  node->settings_ = std::move(settings);
  node->inputs_.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    const bool keeps = i < 31 ? (rule->keeps >> i & 1) != 0 : rule->keeps == kKeepsAll;
    node->inputs_.push_back({node_of(x), x.shape(), x.dtype(), keeps ? x : Tensor()});
  }
  // Without its own history, which would be a circle.
  if ((rule->keeps & kKeepsResult) != 0) node->result_ = result.detach();
  return node;
}

std::shared_ptr<const Node> Node::checkpoint(
    std::function<Tensor(std::span<const Tensor>)> function, std::span<const Tensor> inputs,
    const Tensor& result) {
  static constexpr std::string_view kOp = "checkpoint";
  const std::shared_ptr<Node> node(new Node(find_rule(kOp), result));
  node->function_ = std::move(function);
  for (const Tensor& x : inputs) node->inputs_.push_back({node_of(x), x.shape(), x.dtype(), x});
  return node;
}

void Node::drop_kept() const {
  dropped_ = true;
  result_ = Tensor();
  function_ = nullptr;
  let_go();
}

// A chain of a million ops must not become a million nested destructors: inputs that only this node
// still holds are taken apart one after another.
Node::~Node() { let_go(); }

void Node::let_go() const noexcept {
  thread_local std::vector<std::shared_ptr<const Node>>* waiting = nullptr;
  std::vector<std::shared_ptr<const Node>> mine;
  const bool first = waiting == nullptr;
  if (first) waiting = &mine;
  for (Input& input : inputs_) {
    input.kept = Tensor();  // holds the node too
    if (input.node != nullptr && input.node.use_count() == 1) {
      waiting->push_back(std::move(input.node));
    }
  }
  inputs_.clear();
  if (!first) return;
  while (!mine.empty()) {
    const std::shared_ptr<const Node> next = std::move(mine.back());
    mine.pop_back();
  }
  waiting = nullptr;
}

}  // namespace tl::grad
