// What `learn` does: the program's parameters, and the run of an optimiser over them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lang/bytecode.h"
#include "lang/learn_settings.h"
#include "lang/value.h"
#include "tl/grad/grad.h"
#include "tl/grad/optimizer.h"
#include "tl/lang/interpreter.h"    // LearnProgress
#include "tl/tensor/safetensors.h"  // NamedTensors

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

// A tensor that can be learned, with the name it is shown and saved under.
struct LearnParameter {
  std::string name;
  Value value;

  TensorObject& object() const noexcept { return *static_cast<TensorObject*>(value.object()); }
  const tl::Tensor& tensor() const noexcept { return object().tensor; }
};

// One `learn` block while it runs.
class Trainer {
 public:
  // `place` is the line of the block, kept by somebody else.
  Trainer(Context& context, const LearnSite& site, std::string_view place)
      : context_(context), site_(site), place_(place) {}
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void set(std::size_t entry, const Value& value) { settings_.set(site_.entries[entry], value); }
  void begin();                        // the header; throws when there is nothing to learn
  bool next_epoch();                   // false: there were as many as asked for
  void learn_from(const Value& loss);  // one step of the form with an objective, with its line
  void backward(const Value& loss);    // one step of the form that calls backward()
  void end();                          // throws when nothing was learned

  std::int64_t epochs() const noexcept { return settings_.epochs; }
  const Value& optimizer() const noexcept { return optimizer_; }
  std::optional<double> dropout() const noexcept { return settings_.dropout; }

 private:
  const std::vector<LearnParameter>& parameters();  // the same in every step
  double step(const Value& loss);                   // the length of all gradients
  Optimizer& moves() const;
  void tell(LearnProgress::Stage stage, std::function<double()> loss = {});

  Context& context_;
  const LearnSite& site_;
  std::string_view place_;
  bool is_told_ = false;  // that it began, and not yet that it ended
  LearnSettings settings_;
  Schedule schedule_;
  double full_rate_ = 0;
  std::int64_t epoch_ = 0;
  Value optimizer_;
  std::vector<LearnParameter> parameters_;  // since the first step
};

// The learning side of a program.
class Learning {
 public:
  // A value as a parameter: all who hold it see what training makes of it. The name gets a number
  // where another parameter has it.
  Value add(const Context& context, const std::string& name, const Value& value);
  // The parameter gets other elements, in its dtype, and stays the one it is.
  static void assign(const Context& context, const Value& parameter, const Value& value);
  std::vector<LearnParameter> parameters();  // those that something still holds, in order

  // All parameters from tensors by name; nothing changes when one is missing or does not fit.
  void load(std::string_view from, const NamedTensors& tensors);

  // Gradients of a loss with respect to all parameters; kept until the next, or until learn moves
  // the parameters.
  void differentiate(const Value& loss);
  tl::Tensor gradient(const Value& parameter) const;
  void drop_gradients() noexcept;
  void forget() noexcept;  // parameters, gradients and a run that failed

  std::unique_ptr<Trainer> trainer;  // inside `learn`

 private:
  struct Held : LearnParameter {
    std::optional<tl::Tensor> gradient;
  };
  void let_go();  // of those that only this list holds

  std::vector<Held> held_;
  bool has_gradients_ = false;
};

bool is_parameter(const Value& value) noexcept;
// The one element of a followed tensor; throws when `loss` is something else.
const tl::Tensor& followed_loss(std::string_view who, const Value& loss);

}  // namespace tl::lang
