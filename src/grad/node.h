// What a followed tensor remembers: the op, what it read, and where gradients go from there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tl/tensor/tensor.h"

namespace tl::grad {

class Node;
class Flow;

// How gradients go through an op.
struct Rule {
  std::string_view op;
  void (*run)(Flow& flow) = nullptr;
  unsigned keeps = 0;  // what `run` reads: bit i for input i, kKeepsResult for the result
};
inline constexpr unsigned kKeepsResult = 1u << 31;
inline constexpr unsigned kKeepsAll = ~kKeepsResult;  // every input
constexpr unsigned keeps_input(int i) { return 1u << i; }

// The rule of an op, or null.
const Rule* find_rule(std::string_view op);

struct Input {
  std::shared_ptr<const Node> node;  // null when it is not followed
  Shape shape;
  DType dtype = DType::F32;
  Tensor kept;  // with its history, where the rule reads it
};

class Node final : public History, public std::enable_shared_from_this<Node> {
 public:
  static std::shared_ptr<Node> variable(const Tensor& x);
  // A function that is run again for its gradients.
  static std::shared_ptr<const Node> checkpoint(
      std::function<Tensor(std::span<const Tensor>)> function, std::span<const Tensor> inputs,
      const Tensor& result);
  ~Node() override;

  std::shared_ptr<const History> extend(std::string_view op, std::span<const Tensor> inputs,
                                        HistoryValues settings,
                                        const Tensor& result) const override;

  bool is_variable() const noexcept { return rule_ == nullptr; }
  const Rule& rule() const noexcept { return *rule_; }
  std::uint64_t order() const noexcept { return order_; }  // larger than that of every input
  const Shape& shape() const noexcept { return shape_; }
  DType dtype() const noexcept { return dtype_; }
  const std::vector<Input>& inputs() const noexcept { return inputs_; }
  const HistoryValues& settings() const noexcept { return settings_; }
  const Tensor& kept_result() const noexcept { return result_; }
  const std::function<Tensor(std::span<const Tensor>)>& function() const noexcept {
    return function_;
  }
  bool was_dropped() const noexcept { return dropped_; }
  void drop_kept() const;  // backward has been here and does not come again

 private:
  Node(const Rule* rule, const Tensor& result);
  void let_go() const noexcept;  // of all inputs

  const Rule* rule_;
  std::uint64_t order_;
  Shape shape_;
  DType dtype_;
  HistoryValues settings_;
  // Backward drops them behind itself; who walks a graph in two threads at once asks it to keep.
  mutable std::vector<Input> inputs_;
  mutable Tensor result_;
  mutable std::function<Tensor(std::span<const Tensor>)> function_;
  mutable bool dropped_ = false;
};

inline std::shared_ptr<const Node> node_of(const Tensor& x) {
  return std::static_pointer_cast<const Node>(x.history());
}

}  // namespace tl::grad
