// Optimisers: they move parameters against their gradients.
//
// Parameters are plain tensors that the optimiser replaces; state belongs to their place in the
// list, which must be the same in every step. Half-precision parameters have an f32 master copy, so
// that small steps are not rounded away.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/tensor/tensor.h"

namespace tl {

struct SgdOptions {
  double rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;  // added to the gradient
};

struct AdamOptions {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // AdamW: the decay shrinks the parameter, not the gradient
  bool amsgrad = false;
};

class Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // One step. Throws BadArgument when the lists differ in length or in number from an earlier step,
  // ShapeMismatch when a gradient does not have its parameter's shape; nothing is changed then.
  void step(std::span<Tensor> parameters, std::span<const Tensor> gradients);

  double rate() const noexcept { return rate_; }
  void set_rate(double rate);
  std::int64_t steps() const noexcept { return steps_; }

  // What a run that goes on later needs: named tensors for a safetensors file. Loading them into
  // an optimiser of the same kind goes on as if it had never stopped.
  std::map<std::string, Tensor> state() const;
  void load_state(const std::map<std::string, Tensor>& state);

 protected:
  using Slots = std::map<std::string, Tensor, std::less<>>;
  // One step of one parameter, in the optimiser's dtype.
  virtual void move(Tensor& parameter, const Tensor& gradient, Slots& slots) = 0;

  double rate_ = 1e-3;
  std::int64_t steps_ = 0;

 private:
  void check(std::span<const Tensor> parameters, std::span<const Tensor> gradients) const;
  bool was_set_anew(std::size_t i, const Tensor& parameter) const;

  std::vector<Slots> slots_;
  bool has_stepped_ = false;     // with these slots
  std::vector<Tensor> rounded_;  // half parameters as the last step left them, sharing their memory
};

std::unique_ptr<Optimizer> make_sgd(const SgdOptions& options);
std::unique_ptr<Optimizer> make_adam(const AdamOptions& options);
inline std::unique_ptr<Optimizer> make_adamw(AdamOptions options) {
  options.decoupled = true;
  return make_adam(options);
}

// The length of all gradients as one vector; where it is more than `most`, they are scaled to it.
double clip_gradients(std::span<Tensor> gradients, double most);
double gradient_norm(std::span<const Tensor> gradients);

// How a rate changes with time, which is counted in whatever the caller likes: steps or epochs.
struct Schedule {
  enum class Kind : std::uint8_t { Constant, Step, Exponential, Cosine };
  Kind kind = Kind::Constant;
  double step_size = 10;  // Step: times `gamma` after so many
  double gamma = 0.1;     // Step and Exponential
  double period = 0;      // Cosine: falls to `least` over so many, then begins again
  double least = 0;
  double warmup = 0;  // grows to the full rate over so many first; the rest begins after them

  double rate(double full, double time) const;
};

}  // namespace tl
