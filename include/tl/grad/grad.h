// Gradients: reverse-mode differentiation of everything that the ops compute.
//
//   const Tensor w = follow(weights);              // gradients may be asked for
//   const Tensor loss = mse_loss(matmul(x, w), y); // any ops, any control flow
//   const Gradients gradients = backward(loss);
//   weights = sub(weights, mul(gradients.of(w), 0.1));
//
// Tensors are values: what an op read is kept by sharing it, a later write to a variable detaches
// it, so no gradient ever sees a value that was changed after the op. What an op keeps is dropped
// as soon as its gradient is computed, and all of it when the last tensor that was computed goes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tl/tensor/tensor.h"

namespace tl {

// The same elements, from here on followed: a variable. Throws Unsupported unless they are floats.
Tensor follow(const Tensor& x);

struct BackwardOptions {
  // Keeps what the ops kept, so that backward can run through them again. Without it a second run
  // throws.
  bool keep = false;
  // Gradients are followed themselves, so that they can be differentiated. Implies `keep`.
  bool follow = false;
};

// The gradient of each variable that was reached.
class Gradients {
 public:
  // The gradient with respect to a followed tensor; null when the result does not depend on it.
  const Tensor* find(const Tensor& variable) const;
  // The same, zeros when there is none. Throws BadArgument for a tensor that is not followed.
  Tensor of(const Tensor& variable) const;
  bool empty() const noexcept { return entries_.empty(); }

 private:
  friend class BackwardRun;
  struct Entry {
    std::shared_ptr<const History> variable;
    Tensor gradient;
  };
  std::vector<Entry> entries_;
};

// Gradients of a result of one element with respect to every variable it depends on. Throws
// ShapeMismatch for more elements: sum them, or say with `seed` how much each counts.
Gradients backward(const Tensor& result, const BackwardOptions& options = {});
Gradients backward(const Tensor& result, const Tensor& seed, const BackwardOptions& options = {});
// Gradients with respect to tensors on the way, variables or not; zeros where the result does not
// depend on one.
std::vector<Tensor> gradients_of(const Tensor& result, std::span<const Tensor> with_respect_to,
                                 const BackwardOptions& options = {});

// function(inputs), without keeping what happens inside: backward computes it again. Trades time
// for memory. The function must give the same result when it is called twice.
Tensor checkpoint(std::function<Tensor(std::span<const Tensor>)> function,
                  std::vector<Tensor> inputs);

}  // namespace tl
