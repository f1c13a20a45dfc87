// What a tensor was computed from.
//
// A tensor that a gradient may be asked for carries a history, and so does everything computed from
// it: the ops of tl/ops/ and the views of Tensor add to it. Who wants gradients begins one
// (tl/grad/grad.h); all others have none, and pay for a null pointer.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tl/tensor/dims.h"
#include "tl/tensor/scalar.h"

namespace tl {

class Tensor;

// What an op was told beside its tensors.
using HistoryValue = std::variant<Scalar, Dims, std::string>;
using HistoryValues = std::vector<HistoryValue>;

class History {
 public:
  History() = default;
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  virtual ~History() = default;

  // The history of `result`, which `op` made of `inputs`, one of which has this history. Null where
  // nothing flows back through the op.
  virtual std::shared_ptr<const History> extend(std::string_view op, std::span<const Tensor> inputs,
                                                HistoryValues settings,
                                                const Tensor& result) const = 0;
};

// Does this thread keep histories? It does, unless a NoHistory lives.
bool keeps_history() noexcept;

// While it lives, this thread keeps histories, or does not.
class HistoryScope {
 public:
  explicit HistoryScope(bool keeps) noexcept;
  ~HistoryScope();
  HistoryScope(const HistoryScope&) = delete;
  HistoryScope& operator=(const HistoryScope&) = delete;

 private:
  bool before_;
};

// While it lives, what this thread computes has no history.
class NoHistory : public HistoryScope {
 public:
  NoHistory() noexcept : HistoryScope(false) {}
};

}  // namespace tl
