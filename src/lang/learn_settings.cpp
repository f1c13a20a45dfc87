#include "lang/learn_settings.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "lang/convert.h"
#include "lang/operators.h"

namespace tl::lang {

namespace {

enum class Range : std::uint8_t { Any, NotNegative, Positive, Share, Flag };

struct Knob {
  std::string_view name;
  double LearnNumbers::* number;
  Range range;
};
struct Maker {
  std::string_view setting, name;
  std::vector<Knob> knobs;
};

const std::vector<Maker>& makers() {
  using N = LearnNumbers;
  using enum Range;
  static const Knob rate{"lr", &N::lr, NotNegative};
  static const Knob decay{"weight_decay", &N::weight_decay, NotNegative};
  static const Knob warmup{"warmup", &N::warmup, NotNegative};
  static const Knob gamma{"gamma", &N::gamma, NotNegative};
  static const std::vector<Knob> adam = {rate,
                                         {"beta1", &N::beta1, Share},
                                         {"beta2", &N::beta2, Share},
                                         {"eps", &N::eps, NotNegative},
                                         decay,
                                         {"amsgrad", &N::amsgrad, Flag}};
  static const std::vector<Maker> all = {
      {"optimizer", "adam", adam},
      {"optimizer", "adamw", adam},
      {"optimizer",
       "sgd",
       {rate,
        {"momentum", &N::momentum, NotNegative},
        {"dampening", &N::dampening, Any},
        {"nesterov", &N::nesterov, Flag},
        decay}},
      {"scheduler", "constant", {warmup}},
      {"scheduler",
       "cosine",
       {{"t_max", &N::t_max, Positive}, {"eta_min", &N::eta_min, NotNegative}, warmup}},
      {"scheduler", "exponential", {gamma, warmup}},
      {"scheduler", "step", {{"step_size", &N::step_size, Positive}, gamma, warmup}},
      {"scheduler", "warmup", {{"steps", &N::warmup, NotNegative}}},
  };
  return all;
}

const Maker* find_maker(std::string_view setting, std::string_view name) {
  for (const Maker& maker : makers()) {
    if (maker.setting == setting && maker.name == name) return &maker;
  }
  return nullptr;
}

// "'lr' of sgd must be ..., got -1"
[[noreturn]] void refuse(std::string_view name, std::string_view of, std::string_view wanted,
                         const Value& value) {
  throw invalid_operation("'", name, "' of ", of, " must be ", wanted, ", got ", quoted(value));
}

double number_in(std::string_view name, std::string_view of, Range range, const Value& value) {
  const auto number = real_in(value);
  if (!number) {
    throw type_error("'", name, "' of ", of, " must be a number, got ", type_name(value));
  }
  if (!std::isfinite(*number)) refuse(name, of, "a finite number", value);
  switch (range) {
    case Range::NotNegative:
      if (*number < 0) refuse(name, of, "0 or more", value);
      break;
    case Range::Positive:
      if (*number <= 0) refuse(name, of, "more than 0", value);
      break;
    case Range::Share:
      if (*number < 0 || *number >= 1) refuse(name, of, "at least 0 and below 1", value);
      break;
    case Range::Flag:
      if (*number != 0 && *number != 1) refuse(name, of, "true or false", value);
      break;
    case Range::Any:
      break;
  }
  return *number;
}

double or_else(double number, double otherwise) { return std::isnan(number) ? otherwise : number; }

}  // namespace

std::vector<std::string_view> learn_setting_names() {
  return {"optimizer", "epochs", "scheduler", "clip_grad_norm", "dropout", "objective"};
}

std::vector<std::string_view> learn_maker_names(std::string_view setting) {
  std::vector<std::string_view> out;
  for (const Maker& maker : makers()) {
    if (maker.setting == setting) out.push_back(maker.name);
  }
  return out;
}

std::vector<std::string_view> learn_argument_names(std::string_view setting,
                                                   std::string_view maker) {
  std::vector<std::string_view> out;
  if (const Maker* found = find_maker(setting, maker)) {
    for (const Knob& knob : found->knobs) out.push_back(knob.name);
  }
  return out;
}

void LearnSettings::set(const LearnEntry& entry, const Value& value) {
  if (entry.maker.empty()) {
    set_plain(entry.setting, value);
    return;
  }
  const bool is_optimizer = entry.setting == "optimizer";
  if (entry.argument.empty()) {
    (is_optimizer ? optimizer_name : schedule_name) = entry.maker;
    return;
  }
  const std::vector<Knob>& knobs = find_maker(entry.setting, entry.maker)->knobs;
  const auto knob = std::find_if(knobs.begin(), knobs.end(),
                                 [&](const Knob& k) { return k.name == entry.argument; });
  numbers_.*knob->number = number_in(entry.argument, entry.maker, knob->range, value);
  (is_optimizer ? optimizer_lines : schedule_lines).emplace_back(entry.argument, text(value));
}

void LearnSettings::set_plain(std::string_view name, const Value& value) {
  if (name == "epochs") {
    const auto count = integer_in(value);
    const bool is_whole = count && real_in(value) == static_cast<double>(*count);
    if (!is_whole || *count < 0) refuse(name, "learn", "a whole number, 0 or more", value);
    epochs = *count;
  } else if (name == "clip_grad_norm") {
    clip = number_in(name, "learn", Range::Positive, value);
  } else if (name == "dropout") {
    dropout = number_in(name, "learn", Range::Any, value);
    if (*dropout < 0 || *dropout > 1) refuse(name, "learn", "a probability from 0 to 1", value);
  } else {
    throw type_error("'", name, "' must be named, as in ",
                     name == "optimizer" ? "sgd(lr: 0.1)" : "cosine(t_max: 100)");
  }
}

std::unique_ptr<Optimizer> LearnSettings::optimizer() const {
  const LearnNumbers& n = numbers_;
  if (optimizer_name == "sgd") {
    return make_sgd({.rate = n.lr,
                     .momentum = n.momentum,
                     .dampening = n.dampening,
                     .nesterov = n.nesterov != 0,
                     .weight_decay = or_else(n.weight_decay, 0)});
  }
  const bool decoupled = optimizer_name == "adamw";
  return make_adam({.rate = n.lr,
                    .beta1 = n.beta1,
                    .beta2 = n.beta2,
                    .eps = n.eps,
                    .weight_decay = or_else(n.weight_decay, decoupled ? 0.01 : 0),
                    .decoupled = decoupled,
                    .amsgrad = n.amsgrad != 0});
}

Schedule LearnSettings::schedule() const {
  using enum Schedule::Kind;
  Schedule out;
  const LearnNumbers& n = numbers_;
  out.warmup = or_else(n.warmup, schedule_name == "warmup" ? 10 : 0);
  if (schedule_name == "step") {
    out.kind = Step;
    out.step_size = n.step_size;
    out.gamma = or_else(n.gamma, 0.1);
  } else if (schedule_name == "exponential") {
    out.kind = Exponential;
    out.gamma = or_else(n.gamma, 0.95);
  } else if (schedule_name == "cosine") {
    out.kind = Cosine;
    out.period = or_else(n.t_max, static_cast<double>(std::max<std::int64_t>(epochs, 1)));
    out.least = n.eta_min;
  }
  return out;
}

}  // namespace tl::lang
