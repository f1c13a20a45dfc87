#include "tl/grad/optimizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include "ops/backward.h"
#include "tl/base/error.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/reduce.h"

namespace tl {

namespace {

constexpr std::string_view kMaster = "master";
constexpr std::string_view kStepsKey = "steps";

// Sums of halves would lose small steps.
DType working_dtype(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

double expect_at_least(std::string_view op, std::string_view what, double value, double least) {
  if (!(value >= least) || std::isinf(value)) {
    throw Error(ErrorKind::BadArgument, op, what, " must be at least ", least, ", got ", value);
  }
  return value;
}
void expect_share(std::string_view op, std::string_view what, double value) {
  if (!(value >= 0 && value < 1)) {
    throw Error(ErrorKind::BadArgument, op, what, " must be at least 0 and below 1, got ", value);
  }
}

}  // namespace

// ---- any optimiser

void Optimizer::set_rate(double rate) { rate_ = expect_at_least("set_rate", "a rate", rate, 0); }

void Optimizer::check(std::span<const Tensor> parameters, std::span<const Tensor> gradients) const {
  if (parameters.size() != gradients.size()) {
    throw Error(ErrorKind::BadArgument, "step", parameters.size(), " parameters and ",
                gradients.size(), " gradients");
  }
  // A state that was loaded ends with the last parameter that has some.
  if (has_stepped_ ? slots_.size() != parameters.size() : slots_.size() > parameters.size()) {
    throw Error(ErrorKind::BadArgument, "step", parameters.size(), " parameters, and there were ",
                slots_.size(), " before");
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].shape() != gradients[i].shape()) {
      throw Error(ErrorKind::ShapeMismatch, "step", "parameter ", i, " has shape ",
                  parameters[i].shape(), ", its gradient ", gradients[i].shape());
    }
    if (!is_float(parameters[i].dtype())) {
      throw Error(ErrorKind::Unsupported, "step", "parameter ", i, " is ", parameters[i].dtype(),
                  "; floats can be moved");
    }
    if (i >= slots_.size()) continue;
    for (const auto& [name, tensor] : slots_[i]) {
      if (tensor.shape() == parameters[i].shape()) continue;
      throw Error(ErrorKind::ShapeMismatch, "step", "parameter ", i, " has shape ",
                  parameters[i].shape(), ", and '", name, "' of its state ", tensor.shape());
    }
  }
}

void Optimizer::step(std::span<Tensor> parameters, std::span<const Tensor> gradients) {
  check(parameters, gradients);
  const NoHistory none;
  slots_.resize(parameters.size());
  for (std::size_t i = 0; i < parameters.size() && !has_stepped_; ++i) {
    for (auto& [name, tensor] : slots_[i]) {  // loaded, perhaps from a file
      tensor = to(to_dtype(tensor, working_dtype(parameters[i].dtype())), parameters[i].device());
    }
  }
  has_stepped_ = true;
  rounded_.resize(parameters.size());
  ++steps_;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Tensor& parameter = parameters[i];
    const DType dtype = working_dtype(parameter.dtype());
    const Tensor gradient = to_dtype(gradients[i], dtype);
    Slots& slots = slots_[i];
    if (parameter.dtype() == dtype) {
      move(parameter, gradient, slots);
      continue;
    }
    auto master = slots.find(kMaster);
    if (master == slots.end()) {
      master = slots.emplace(kMaster, to_dtype(parameter, dtype)).first;
    } else if (was_set_anew(i, parameter)) {
      master->second = to_dtype(parameter, dtype);
    }
    move(master->second, gradient, slots);
    parameter = to_dtype(master->second, parameter.dtype());
    rounded_[i] = parameter;
  }
}

// Is the parameter something else than what the last step made of its master? A write to it has
// detached it. After load_state nothing is known, and the master counts.
bool Optimizer::was_set_anew(std::size_t i, const Tensor& parameter) const {
  const Tensor& last = rounded_[i];
  return last.count() > 0 && last.shape() == parameter.shape() &&
         !parameter.shares_memory_with(last);
}

std::map<std::string, Tensor> Optimizer::state() const {
  std::map<std::string, Tensor> out;
  out.emplace(kStepsKey, Tensor::from({steps_}, {1}));
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    for (const auto& [name, tensor] : slots_[i]) out.emplace(join(i, ".", name), tensor);
  }
  return out;
}

void Optimizer::load_state(const std::map<std::string, Tensor>& state) {
  const auto count = state.find(std::string(kStepsKey));
  if (count == state.end() || count->second.dtype() != DType::I64 || count->second.count() != 1) {
    throw Error(ErrorKind::BadArgument, "load_state", "there is no '", kStepsKey,
                "' of one integer, so this is not the state of an optimiser");
  }
  const auto steps = count->second.item<std::int64_t>();
  if (steps < 0) {
    throw Error(ErrorKind::BadArgument, "load_state", steps, " steps are less than none");
  }
  constexpr std::string_view kNames[] = {kMaster, "momentum", "first", "second", "largest"};
  std::vector<Slots> slots;
  for (const auto& [name, tensor] : state) {
    if (name == kStepsKey) continue;
    const std::size_t dot = name.find('.');
    std::size_t index = 0;
    const bool is_number = dot != std::string::npos && dot > 0 && dot < 7 &&
                           name.find_first_not_of("0123456789") == dot;
    const bool is_known = is_number && std::find(std::begin(kNames), std::end(kNames),
                                                 name.substr(dot + 1)) != std::end(kNames);
    if (!is_known || !is_float(tensor.dtype())) {
      throw Error(ErrorKind::BadArgument, "load_state", "'", name, "' is no part of a state");
    }
    for (std::size_t i = 0; i < dot; ++i) {
      index = index * 10 + static_cast<std::size_t>(name[i] - '0');
    }
    if (index >= slots.size()) slots.resize(index + 1);
    slots[index].emplace(name.substr(dot + 1), tensor);
  }
  slots_ = std::move(slots);
  rounded_.clear();
  has_stepped_ = false;
  steps_ = steps;
}

// ---- SGD

namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options) : o_(options) {
    rate_ = expect_at_least("sgd", "a rate", o_.rate, 0);
    expect_at_least("sgd", "momentum", o_.momentum, 0);
    expect_at_least("sgd", "weight_decay", o_.weight_decay, 0);
    if (o_.nesterov && (o_.momentum == 0 || o_.dampening != 0)) {
      throw Error(ErrorKind::BadArgument, "sgd", "nesterov needs momentum and no dampening");
    }
  }

 private:
  void move(Tensor& parameter, const Tensor& gradient, Slots& slots) override {
    Tensor g = gradient;
    if (o_.weight_decay != 0) g = add(g, mul(parameter, o_.weight_decay));
    if (o_.momentum != 0) {
      const auto [at, is_first] = slots.try_emplace("momentum", g);
      Tensor& velocity = at->second;
      if (!is_first) velocity = add(mul(velocity, o_.momentum), mul(g, 1 - o_.dampening));
      g = o_.nesterov ? add(g, mul(velocity, o_.momentum)) : velocity;
    }
    parameter = sub(parameter, mul(g, rate_));
  }

  SgdOptions o_;
};

// ---- Adam

class Adam final : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options) : o_(options) {
    const std::string_view op = o_.decoupled ? "adamw" : "adam";
    rate_ = expect_at_least(op, "a rate", o_.rate, 0);
    expect_share(op, "beta1", o_.beta1);
    expect_share(op, "beta2", o_.beta2);
    expect_at_least(op, "eps", o_.eps, 0);
    expect_at_least(op, "weight_decay", o_.weight_decay, 0);
  }

 private:
  void move(Tensor& parameter, const Tensor& gradient, Slots& slots) override {
    const auto slot = [&](std::string_view name) -> Tensor& {
      auto at = slots.find(name);
      if (at == slots.end()) at = slots.emplace(name, zeros_like(gradient)).first;
      return at->second;
    };
    const double t = static_cast<double>(steps_);
    const training::AdamNumbers<double> numbers{
        .beta1 = o_.beta1,
        .rest1 = 1 - o_.beta1,
        .beta2 = o_.beta2,
        .rest2 = 1 - o_.beta2,
        .rate = rate_ / (1 - std::pow(o_.beta1, t)),
        .scale = 1 / std::sqrt(1 - std::pow(o_.beta2, t)),
        .eps = o_.eps,
        .shrink = o_.decoupled ? 1 - rate_ * o_.weight_decay : 1,
        .decay = o_.decoupled ? 0 : o_.weight_decay};
    Tensor& first = slot("first");
    Tensor& second = slot("second");
    Tensor* largest = o_.amsgrad ? &slot("largest") : nullptr;
    ops::adam(parameter, gradient, first, second, largest, numbers);
  }

  AdamOptions o_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const SgdOptions& options) {
  return std::make_unique<Sgd>(options);
}
std::unique_ptr<Optimizer> make_adam(const AdamOptions& options) {
  return std::make_unique<Adam>(options);
}

// ---- gradients and rates

double gradient_norm(std::span<const Tensor> gradients) {
  const NoHistory none;
  double squares = 0;
  for (const Tensor& g : gradients) {
    const double length = norm_all(to_dtype(g, working_dtype(g.dtype()))).item().real();
    squares += length * length;
  }
  return std::sqrt(squares);
}

double clip_gradients(std::span<Tensor> gradients, double most) {
  if (!(most > 0)) {
    throw Error(ErrorKind::BadArgument, "clip_gradients", "the bound must be positive, got ", most);
  }
  const double length = gradient_norm(gradients);
  if (length > most) {
    const NoHistory none;
    for (Tensor& g : gradients) g = mul(g, most / length);
  }
  return length;
}

double Schedule::rate(double full, double time) const {
  if (time < warmup) return full * (time + 1) / (warmup + 1);
  time -= warmup;
  switch (kind) {
    case Kind::Constant:
      return full;
    case Kind::Step:
      return full * std::pow(gamma, std::floor(time / step_size));
    case Kind::Exponential:
      return full * std::pow(gamma, time);
    case Kind::Cosine:
      return least + (full - least) *
                         (1 + std::cos(std::numbers::pi * std::fmod(time, period) / period)) / 2;
  }
  return full;
}

}  // namespace tl
