#include "lang/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>

#include "lang/builtin.h"
#include "lang/convert.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

// A number with a fraction or an exponent, as short as it can be read back: 0.5, 1.0, 7.2e-6.
std::string fraction_text(double number) {
  if (!std::isfinite(number)) return std::isnan(number) ? "NaN" : number > 0 ? "inf" : "-inf";
  const double size = std::fabs(number);
  if (number != 0 && (size < 1e-5 || size >= 1e16)) {
    std::string text = fmt::format("{:e}", static_cast<float>(number));
    const std::size_t e = text.find('e');
    std::string digits = text.substr(0, e);
    if (digits.find('.') != std::string::npos) {
      digits.erase(digits.find_last_not_of('0') + 1);
      if (digits.back() == '.') digits.pop_back();
    }
    return fmt::format("{}e{}", digits, std::stoi(text.substr(e + 1)));
  }
  std::string text = fmt::format("{}", static_cast<float>(number));
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::vector<double> first_values(const tl::Tensor& x, std::int64_t most) {
  const tl::Tensor flat = reshape(x.detach(), {x.count()});
  const tl::Tensor some = flat.narrow(0, 0, std::min(most, x.count()));
  return to_dtype(some, DType::F64).to_vector<double>();
}

std::string values_text(const tl::Tensor& x, std::int64_t most) {
  std::string out = "[";
  for (const double value : first_values(x, most)) {
    if (out.size() > 1) out += ", ";
    out += fraction_text(value);
  }
  return out + "]";
}

std::string shape_text(const Shape& shape) {
  std::string out = "[";
  for (const std::int64_t size : shape) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(size);
  }
  return out + "]";
}

[[noreturn]] void unknown_setting(std::string_view what, std::string_view of, std::string_view name,
                                  std::span<const std::string_view> known) {
  std::string list;
  for (const std::string_view each : known) list += join(list.empty() ? "" : ", ", each);
  throw invalid_operation(what, " '", of, "' has no setting '", name, "'; it has ", list);
}

double number_in(std::string_view what, std::string_view name, const Value& value) {
  if (const auto number = real_in(value)) return *number;
  throw type_error("'", name, "' of ", what, " must be a number, got ", type_name(value));
}

// The settings of an optimizer or a scheduler, each with the place it goes to.
struct Knob {
  std::string_view name;
  double* number = nullptr;
  bool* flag = nullptr;
};

void turn(std::string_view what, std::string_view of, std::span<const Knob> knobs,
          std::string_view name, const Value& value) {
  const auto knob =
      std::find_if(knobs.begin(), knobs.end(), [&](const Knob& k) { return k.name == name; });
  if (knob == knobs.end()) {
    std::vector<std::string_view> known;
    for (const Knob& k : knobs) known.push_back(k.name);
    unknown_setting(what, of, name, known);
  }
  const double number = number_in(of, name, value);
  if (knob->flag != nullptr) {
    *knob->flag = number != 0;
  } else {
    *knob->number = number;
  }
}

}  // namespace

const tl::Tensor& followed_loss(std::string_view who, const Value& loss) {
  if (!loss.is(Kind::Tensor) || !loss.tensor().has_history()) {
    throw invalid_operation(who, " needs a value that depends on a learnable tensor, got ",
                            type_name(loss));
  }
  const tl::Tensor& x = loss.tensor();
  if (x.count() != 1) {
    throw invalid_operation(who, " needs one element, got a tensor of shape ",
                            shape_text(x.shape()), "; take its mean() or sum()");
  }
  return x;
}

Value OptimizerObject::property(Context&, std::string_view wanted) const {
  if (wanted == "lr") return optimizer->rate();
  if (wanted == "steps") return optimizer->steps();
  if (wanted == "name") return Value(name);
  throw invalid_operation("An optimizer has no '", wanted, "'; it has lr, name and steps");
}

// ---- parameters

Value Learning::add_parameter(const Context& context, std::string name, const Value& value) {
  tl::Tensor x = to_tensor(context, "learnable", value).detach();
  if (!is_float(x.dtype())) {
    throw type_error("learnable needs a tensor of floats, got ", tl::name(x.dtype()));
  }
  parameters();  // lets go of those that nobody holds
  auto* object = new TensorObject(follow(x));
  object->is_parameter = true;
  const Value result = Value::of(object);
  if (name.empty()) name = join("parameter ", held_.size() + 1);
  held_.push_back({std::move(name), result});
  return result;
}

std::vector<Learning::Parameter> Learning::parameters() {
  std::erase_if(held_, [](const Held& h) { return !h.value.object()->shared(); });
  std::vector<Parameter> out;
  for (const Held& h : held_) {
    out.push_back({h.name, static_cast<TensorObject*>(h.value.object())});
  }
  return out;
}

void Learning::differentiate(const Value& loss) {
  gradients_ = {};
  gradients_ = tl::backward(followed_loss("backward()", loss));
}

void Learning::forget() noexcept {
  trainer.reset();
  gradients_ = {};
  held_.clear();
}

// ---- a run

Trainer::Trainer(Context& context, const LearnSite& site, std::span<const Value> values)
    : context_(context), has_objective_(site.has_objective) {
  static constexpr std::array<std::string_view, 5> kSettings = {"optimizer", "epochs", "scheduler",
                                                                "clip_grad_norm", "dropout"};
  for (std::size_t i = 0; i < site.entries.size(); ++i) {
    const LearnEntry& entry = site.entries[i];
    if (std::find(kSettings.begin(), kSettings.end(), entry.setting) == kSettings.end()) {
      unknown_setting("a block", "learn", entry.setting, kSettings);
    }
    if (entry.maker.empty()) read(entry, values[i]);
  }
  make_schedule(site, values);
  make_optimizer(site, values);
}

void Trainer::read(const LearnEntry& entry, const Value& value) {
  if (entry.setting == "epochs") {
    const auto count = integer_in(value);
    if (!count || *count < 0) {
      throw type_error("'epochs' must be a whole number that is not negative, got ", quoted(value));
    }
    epochs_ = *count;
  } else if (entry.setting == "clip_grad_norm") {
    clip_ = number_in("learn", entry.setting, value);
    if (!(*clip_ > 0)) throw invalid_operation("'clip_grad_norm' must be positive");
  } else if (entry.setting == "optimizer" || entry.setting == "scheduler") {
    throw type_error("'", entry.setting, "' must be named, as in ",
                     entry.setting == "optimizer" ? "sgd(lr: 0.1)" : "cosine(t_max: 100)");
  }
  // `dropout` is for the program to read: dropout() knows that this is training.
}

void Trainer::make_schedule(const LearnSite& site, std::span<const Value> values) {
  schedule_.period = static_cast<double>(epochs_);
  bool is_there = false;
  const std::array<Knob, 6> knobs = {{{"step_size", &schedule_.step_size},
                                      {"gamma", &schedule_.gamma},
                                      {"t_max", &schedule_.period},
                                      {"eta_min", &schedule_.least},
                                      {"warmup", &schedule_.warmup},
                                      {"steps", &schedule_.warmup}}};
  std::vector<Knob> own;
  for (std::size_t i = 0; i < site.entries.size(); ++i) {
    const LearnEntry& entry = site.entries[i];
    if (entry.setting != "scheduler") continue;
    if (!is_there) {
      is_there = true;
      schedule_name_ = entry.maker;
      using enum Schedule::Kind;
      if (entry.maker == "step") {
        schedule_.kind = Step;
        own = {knobs[0], knobs[1], knobs[4]};
      } else if (entry.maker == "exponential") {
        schedule_.kind = Exponential;
        schedule_.gamma = 0.95;
        own = {knobs[1], knobs[4]};
      } else if (entry.maker == "cosine") {
        schedule_.kind = Cosine;
        own = {knobs[2], knobs[3], knobs[4]};
      } else if (entry.maker == "constant") {
        own = {knobs[4]};
      } else if (entry.maker == "warmup") {
        schedule_.warmup = 10;
        own = {knobs[5]};
      } else {
        throw invalid_operation("Unknown scheduler: ", entry.maker,
                                "; there are constant, cosine, exponential, step and warmup");
      }
    }
    if (entry.argument.empty()) continue;
    turn("Scheduler", schedule_name_, own, entry.argument, values[i]);
    schedule_lines_.emplace_back(entry.argument, text(values[i]));
  }
  if (schedule_.kind == Schedule::Kind::Cosine && !(schedule_.period > 0) && epochs_ > 0) {
    throw invalid_operation("'t_max' of cosine must be positive");
  }
  if (schedule_.kind == Schedule::Kind::Step && !(schedule_.step_size > 0)) {
    throw invalid_operation("'step_size' of step must be positive");
  }
}

void Trainer::make_optimizer(const LearnSite& site, std::span<const Value> values) {
  SgdOptions sgd;
  AdamOptions adam;
  double rate = 1e-3;
  std::vector<Knob> knobs;
  optimizer_name_ = "sgd";
  for (const LearnEntry& entry : site.entries) {
    if (entry.setting == "optimizer") optimizer_name_ = entry.maker;
  }
  if (optimizer_name_ == "sgd") {
    knobs = {{"lr", &rate},
             {"momentum", &sgd.momentum},
             {"dampening", &sgd.dampening},
             {"nesterov", nullptr, &sgd.nesterov},
             {"weight_decay", &sgd.weight_decay}};
  } else if (optimizer_name_ == "adam" || optimizer_name_ == "adamw") {
    adam.decoupled = optimizer_name_ == "adamw";
    if (adam.decoupled) adam.weight_decay = 0.01;
    knobs = {{"lr", &rate},
             {"beta1", &adam.beta1},
             {"beta2", &adam.beta2},
             {"eps", &adam.eps},
             {"weight_decay", &adam.weight_decay},
             {"amsgrad", nullptr, &adam.amsgrad}};
  } else {
    throw invalid_operation("Unknown optimizer: ", optimizer_name_,
                            "; there are adam, adamw and sgd");
  }
  for (std::size_t i = 0; i < site.entries.size(); ++i) {
    const LearnEntry& entry = site.entries[i];
    if (entry.setting != "optimizer" || entry.argument.empty()) continue;
    turn("Optimizer", optimizer_name_, knobs, entry.argument, values[i]);
    optimizer_lines_.emplace_back(entry.argument, text(values[i]));
  }
  sgd.rate = adam.rate = full_rate_ = rate;
  optimizer_ = make<OptimizerObject>(optimizer_name_,
                                     optimizer_name_ == "sgd" ? make_sgd(sgd) : make_adam(adam));
}

Optimizer& Trainer::moves() const {
  return *static_cast<OptimizerObject*>(optimizer_.object())->optimizer;
}

void Trainer::begin() {
  const auto parameters = context_.learning->parameters();
  if (parameters.empty()) {
    throw invalid_operation(
        "No learnable parameters found. Declare tensors with 'learnable' keyword.");
  }
  moves().set_rate(schedule_.rate(full_rate_, 0));
  if (!has_objective_) return;
  std::ostream& out = *context_.out;
  out << "\n=== Learning Started ===\nOptimizer: " << optimizer_name_ << "\nEpochs: " << epochs_
      << "\n";
  for (const auto& [name, value] : optimizer_lines_) out << "  " << name << ": " << value << "\n";
  if (!schedule_name_.empty()) {
    out << "\nScheduler: " << schedule_name_ << "\n";
    for (const auto& [name, value] : schedule_lines_) out << "  " << name << ": " << value << "\n";
  }
  for (const auto& [name, object] : parameters) {
    const Shape& shape = object->tensor.shape();
    const std::int64_t shown = shape.empty() ? 1 : std::min<std::int64_t>(5, shape[0]);
    out << "\nLearnable parameter: " << name << "\n  Shape: " << shape_text(shape)
        << "\n  Initial values: " << values_text(object->tensor, shown) << "\n";
  }
  out << "\n--- Training Progress ---\n";
}

bool Trainer::next_epoch() { return epoch_++ < epochs_; }

double Trainer::step(const Value& loss) {
  context_.check_interrupt();
  const Gradients found =
      tl::backward(followed_loss(has_objective_ ? "The objective of learn" : "backward()", loss));
  const auto parameters = context_.learning->parameters();
  std::vector<tl::Tensor> values, gradients;
  for (const auto& [name, object] : parameters) {
    values.push_back(object->tensor.detach());
    gradients.push_back(found.of(object->tensor));
  }
  const double length = clip_            ? clip_gradients(gradients, *clip_)
                        : has_objective_ ? gradient_norm(gradients)
                                         : 0;
  moves().step(values, gradients);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].object->tensor = follow(values[i]);
  }
  return length;
}

void Trainer::learn_from(const Value& loss) {
  const double before = followed_loss("The objective of learn", loss).detach().item().real();
  const double rate = moves().rate();
  const double length = step(loss);
  std::ostream& out = *context_.out;
  out << fmt::format("Epoch {:3}/{}: Loss = {:.6f}, Grad Norm: {:.6f}", epoch_, epochs_, before,
                     length);
  if (epoch_ % 10 == 1 || epoch_ == epochs_) {
    const auto first = context_.learning->parameters().front();
    if (first.object->tensor.count() > 0) {
      out << fmt::format(", {} = [{:.4f}, ...]", first.name,
                         first_values(first.object->tensor, 1)[0]);
    }
    if (epoch_ > 1 && std::fabs(rate - full_rate_) > 1e-6) out << fmt::format(", LR: {:.6f}", rate);
  }
  out << "\n";
  moves().set_rate(schedule_.rate(full_rate_, static_cast<double>(epoch_)));
}

// The schedule counts steps here.
void Trainer::backward(const Value& loss) {
  step(loss);
  ++epoch_;
  if (schedule_name_.empty()) return;
  moves().set_rate(schedule_.rate(full_rate_, static_cast<double>(epoch_)));
}

void Trainer::end() {
  if (!has_objective_) return;
  std::ostream& out = *context_.out;
  out << "\n=== Learning Completed ===\n\nFinal Parameter Values:\n";
  for (const auto& [name, object] : context_.learning->parameters()) {
    out << "  " << name << ": " << values_text(object->tensor, 5) << "\n";
  }
}

}  // namespace tl::lang
