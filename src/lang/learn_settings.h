// What a learn block is told: an optimizer and a scheduler with what each of them takes, epochs,
// clip_grad_norm and dropout.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/bytecode.h"
#include "lang/value.h"
#include "tl/grad/optimizer.h"

namespace tl::lang {

// The names there are, for the compiler to look at before anything runs. `setting` is optimizer or
// scheduler; what an unknown maker takes is nothing.
std::vector<std::string_view> learn_setting_names();
std::vector<std::string_view> learn_maker_names(std::string_view setting);
std::vector<std::string_view> learn_argument_names(std::string_view setting,
                                                   std::string_view maker);

// What was said, and the defaults of what was not; NaN where they hang on something else.
struct LearnNumbers {
  static constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();
  double lr = 1e-3, momentum = 0, dampening = 0, nesterov = 0;
  double weight_decay = kUnset, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, amsgrad = 0;
  double step_size = 10, gamma = kUnset, t_max = kUnset, eta_min = 0;
  double warmup = kUnset;
};

class LearnSettings {
 public:
  // One entry of the block, in the order of the source. Throws for a value that cannot be.
  void set(const LearnEntry& entry, const Value& value);

  std::unique_ptr<Optimizer> optimizer() const;
  Schedule schedule() const;

  // As the header shows them: name and value.
  using Lines = std::vector<std::pair<std::string, std::string>>;

  std::string optimizer_name = "sgd", schedule_name;
  Lines optimizer_lines, schedule_lines;
  std::int64_t epochs = 1;
  std::optional<double> clip, dropout;

 private:
  void set_plain(std::string_view name, const Value& value);

  LearnNumbers numbers_;
};

}  // namespace tl::lang
