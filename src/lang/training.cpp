#include "lang/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "lang/builtin.h"
#include "lang/builtins/library.h"
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

std::vector<LearnParameter> expect_some(std::vector<LearnParameter> parameters) {
  if (parameters.empty()) {
    throw invalid_operation(
        "No learnable parameters found. Declare tensors with 'learnable' keyword.");
  }
  return parameters;
}

}  // namespace

Value OptimizerObject::property(Context&, std::string_view wanted) const {
  if (wanted == "lr") return optimizer->rate();
  if (wanted == "steps") return optimizer->steps();
  if (wanted == "name") return Value(name);
  if (wanted == "state") {
    Value out = make<MapObject>();
    for (auto& [key, tensor] : optimizer->state()) {
      out.mutate<MapObject>().slot(Value(key)) = Value(tensor);
    }
    return out;
  }
  throw invalid_operation("An optimizer has no '", wanted, "'; it has lr, name, state and steps");
}

Optimizer& Trainer::moves() const {
  return *static_cast<OptimizerObject*>(optimizer_.object())->optimizer;
}

Trainer::~Trainer() {
  if (is_told_) tell(LearnProgress::Stage::End);
}

void Trainer::tell(LearnProgress::Stage stage, std::function<double()> loss) {
  if (!context_.on_learn) return;
  is_told_ = stage != LearnProgress::Stage::End;
  context_.on_learn({.stage = stage,
                     .place = place_,
                     .step = moves().steps(),
                     .steps = site_.has_objective ? settings_.epochs : 0,
                     .epochs = settings_.epochs,
                     .loss = std::move(loss)});
}

void Trainer::begin() {
  optimizer_ = make<OptimizerObject>(settings_.optimizer_name, settings_.optimizer());
  schedule_ = settings_.schedule();
  full_rate_ = moves().rate();
  moves().set_rate(schedule_.rate(full_rate_, 0));
  tell(LearnProgress::Stage::Begin);
  if (!site_.has_objective) return;
  std::ostream& out = *context_.out;
  out << "\n=== Learning Started ===\nOptimizer: " << settings_.optimizer_name
      << "\nEpochs: " << settings_.epochs << "\n";
  for (const auto& [name, value] : settings_.optimizer_lines) {
    out << "  " << name << ": " << value << "\n";
  }
  if (!settings_.schedule_name.empty()) {
    out << "\nScheduler: " << settings_.schedule_name << "\n";
    for (const auto& [name, value] : settings_.schedule_lines) {
      out << "  " << name << ": " << value << "\n";
    }
  }
  for (const LearnParameter& parameter : expect_some(context_.learning->parameters())) {
    const Shape& shape = parameter.tensor().shape();
    const std::int64_t shown = shape.empty() ? 1 : std::min<std::int64_t>(5, shape[0]);
    out << "\nLearnable parameter: " << parameter.name << "\n  Shape: " << bracketed(shape)
        << "\n  Initial values: " << values_text(parameter.tensor(), shown) << "\n";
  }
  out << "\n--- Training Progress ---\n" << std::flush;
}

bool Trainer::next_epoch() { return epoch_++ < settings_.epochs; }

// The optimizer keeps something for each, by its place.
const std::vector<LearnParameter>& Trainer::parameters() {
  std::vector<LearnParameter> now = expect_some(context_.learning->parameters());
  if (parameters_.empty()) {
    parameters_ = std::move(now);
    return parameters_;
  }
  const auto is_known = [&](const LearnParameter& p) {
    return std::any_of(parameters_.begin(), parameters_.end(), [&](const LearnParameter& known) {
      return known.value.object() == p.value.object();
    });
  };
  for (const LearnParameter& parameter : now) {
    if (!is_known(parameter)) {
      throw invalid_operation("Parameter '", parameter.name,
                              "' was made after the first step of learn; make it before the block");
    }
  }
  return parameters_;
}

double Trainer::step(const Value& loss) {
  context_.check_interrupt();
  context_.learning->drop_gradients();
  const std::vector<LearnParameter>& parameters = this->parameters();
  const Gradients found = tl::backward(
      followed_loss(site_.has_objective ? "The objective of learn" : "backward()", loss));
  std::vector<tl::Tensor> values, gradients;
  for (const LearnParameter& parameter : parameters) {
    values.push_back(parameter.tensor().detach());
    gradients.push_back(found.of(parameter.tensor()));
  }
  const double length = settings_.clip        ? clip_gradients(gradients, *settings_.clip)
                        : site_.has_objective ? gradient_norm(gradients)
                                              : 0;
  moves().step(values, gradients);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    tl::Tensor& tensor = parameters[i].object().tensor;
    tensor = values[i].with_history(tensor.history());
  }
  return length;
}

// A line is there as soon as its epoch is over, whatever standard output is.
void Trainer::learn_from(const Value& loss) {
  const double before = followed_loss("The objective of learn", loss).detach().item().real();
  const double rate = moves().rate();
  const double length = step(loss);
  std::ostream& out = *context_.out;
  out << fmt::format("Epoch {:3}/{}: Loss = {:.6f}, Grad Norm: {:.6f}", epoch_, settings_.epochs,
                     before, length);
  if (epoch_ % 10 == 1 || epoch_ == settings_.epochs) {
    const LearnParameter& first = parameters_.front();
    if (first.tensor().count() > 0) {
      out << fmt::format(", {} = [{:.4f}, ...]", first.name, first_values(first.tensor(), 1)[0]);
    }
    if (epoch_ > 1 && std::fabs(rate - full_rate_) > 1e-6) out << fmt::format(", LR: {:.6f}", rate);
  }
  out << "\n" << std::flush;
  moves().set_rate(schedule_.rate(full_rate_, static_cast<double>(epoch_)));
  tell(LearnProgress::Stage::Step, [before] { return before; });
}

// The schedule counts steps here.
void Trainer::backward(const Value& loss) {
  step(loss);
  ++epoch_;
  tell(LearnProgress::Stage::Step,
       [&] { return followed_loss("backward()", loss).detach().item().real(); });
  if (settings_.schedule_name.empty()) return;
  moves().set_rate(schedule_.rate(full_rate_, static_cast<double>(epoch_)));
}

void Trainer::end() {
  if (!site_.has_objective) {
    if (moves().steps() == 0 && settings_.epochs > 0) {
      throw invalid_operation("learn has no objective, and backward() was not called in it");
    }
    return;
  }
  std::ostream& out = *context_.out;
  out << "\n=== Learning Completed ===\n\nFinal Parameter Values:\n";
  for (const LearnParameter& parameter : context_.learning->parameters()) {
    out << "  " << parameter.name << ": " << values_text(parameter.tensor(), 5) << "\n";
  }
  out << std::flush;
}

}  // namespace tl::lang
