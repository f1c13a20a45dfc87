// What `learn` does: the program's parameters, and the run of an optimiser over them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lang/bytecode.h"
#include "lang/value.h"
#include "tl/grad/grad.h"
#include "tl/grad/optimizer.h"

namespace tl::lang {

class Context;

// sgd(lr: 0.1): the optimizer as programs see it.
struct OptimizerObject : HostObject {
  static constexpr std::string_view kTypeName = "Optimizer";
  OptimizerObject(std::string n, std::unique_ptr<Optimizer> o)
      : name(std::move(n)), optimizer(std::move(o)) {}
  std::string_view type_name() const override { return kTypeName; }
  std::string text() const override { return join("<Optimizer ", name, ">"); }
  Value property(Context& context, std::string_view wanted) const override;

  std::string name;
  std::unique_ptr<Optimizer> optimizer;
};

// One `learn` block while it runs.
class Trainer {
 public:
  Trainer(Context& context, const LearnSite& site, std::span<const Value> values);

  void begin();                        // the header; throws when there is nothing to learn
  bool next_epoch();                   // false: there were as many as asked for
  void learn_from(const Value& loss);  // one step of the form with an objective, with its line
  void backward(const Value& loss);    // one step of the form that calls backward()
  void end();

  std::int64_t epochs() const noexcept { return epochs_; }
  const Value& optimizer() const noexcept { return optimizer_; }

 private:
  void read(const LearnEntry& entry, const Value& value);
  void make_optimizer(const LearnSite& site, std::span<const Value> values);
  void make_schedule(const LearnSite& site, std::span<const Value> values);
  double step(const Value& loss);  // the length of all gradients
  Optimizer& moves() const;

  Context& context_;
  bool has_objective_;
  std::string optimizer_name_, schedule_name_;
  std::vector<std::pair<std::string, std::string>> optimizer_lines_, schedule_lines_;
  std::int64_t epochs_ = 1;
  std::int64_t epoch_ = 0;
  std::optional<double> clip_;
  Schedule schedule_;
  double full_rate_ = 0;
  Value optimizer_;
};

// The learning side of a program.
class Learning {
 public:
  // A value as a parameter: all who hold it see what training makes of it.
  Value add_parameter(const Context& context, std::string name, const Value& value);

  struct Parameter {
    std::string name;
    TensorObject* object;
  };
  std::vector<Parameter> parameters();  // those that something still holds, in order

  // Gradients of a loss with respect to all parameters; kept until the next.
  void differentiate(const Value& loss);
  const Gradients& gradients() const noexcept { return gradients_; }
  void forget() noexcept;  // parameters, gradients and a run that failed

  std::unique_ptr<Trainer> trainer;  // inside `learn`

 private:
  struct Held {
    std::string name;
    Value value;
  };
  std::vector<Held> held_;
  Gradients gradients_;
};

// The one element of a followed tensor; throws when `loss` is something else.
const tl::Tensor& followed_loss(std::string_view who, const Value& loss);

}  // namespace tl::lang
