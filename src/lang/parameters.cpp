// The parameters of a program.
#include <algorithm>

#include "lang/builtin.h"
#include "lang/builtins/library.h"
#include "lang/convert.h"
#include "lang/training.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"

namespace tl::lang {

bool is_parameter(const Value& value) noexcept {
  return value.is(Kind::Tensor) && value.as<TensorObject>().is_parameter;
}

const tl::Tensor& followed_loss(std::string_view who, const Value& loss) {
  if (!loss.is(Kind::Tensor) || !loss.tensor().has_history()) {
    throw invalid_operation(who, " needs a value that depends on a learnable tensor, got ",
                            type_name(loss));
  }
  const tl::Tensor& x = loss.tensor();
  if (x.count() != 1) {
    throw invalid_operation(who, " needs one element, got a tensor of shape ", bracketed(x.shape()),
                            "; take its mean() or sum()");
  }
  return x;
}

// ---- which there are

void Learning::let_go() {
  std::erase_if(held_, [](const Held& h) { return !h.value.object()->shared(); });
}

std::vector<LearnParameter> Learning::parameters() {
  let_go();
  return {held_.begin(), held_.end()};
}

Value Learning::add(const Context& context, const std::string& name, const Value& value) {
  const tl::Tensor x = to_tensor(context, "learnable", value).detach();
  if (!is_float(x.dtype())) {
    throw type_error("learnable needs a tensor of floats, got ", tl::name(x.dtype()));
  }
  let_go();
  auto* object = new TensorObject(follow(x));
  object->is_parameter = true;
  const Value result = Value::of(object);
  const auto is_free = [&](const std::string& wanted) {
    return std::none_of(held_.begin(), held_.end(),
                        [&](const Held& h) { return h.name == wanted; });
  };
  std::string free = name;
  for (int i = name.empty() ? 1 : 2; free.empty() || !is_free(free); ++i) {
    free = name.empty() ? join("parameter ", i) : join(name, ".", i);
  }
  held_.push_back({{std::move(free), result}, {}});
  return result;
}

namespace {

// It stays the variable it was to losses that are computed already, unless it becomes another kind
// of tensor.
void set_elements(TensorObject& parameter, const tl::Tensor& x) {
  const tl::Tensor& old = parameter.tensor;
  const tl::Tensor fitting = to(to_dtype(x.detach(), old.dtype()), old.device());
  parameter.tensor =
      old.shape() == fitting.shape() ? fitting.with_history(old.history()) : follow(fitting);
}

}  // namespace

void Learning::assign(const Context& context, const Value& parameter, const Value& value) {
  auto& object = static_cast<TensorObject&>(*parameter.object());
  const tl::Tensor x = to_tensor(context, "learnable", value).detach();
  if (context.learning->trainer && x.shape() != object.tensor.shape()) {
    throw invalid_operation("A learnable tensor of shape ", bracketed(object.tensor.shape()),
                            " cannot get shape ", bracketed(x.shape()), " inside learn");
  }
  set_elements(object, x);
}

void Learning::load(std::string_view from, const NamedTensors& tensors) {
  const std::vector<LearnParameter> all = parameters();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  for (const LearnParameter& parameter : all) {
    const auto at = tensors.find(parameter.name);
    if (at == tensors.end()) {
      throw invalid_operation("Parameter '", parameter.name, "' is not in ", from,
                              did_you_mean(parameter.name, names));
    }
    if (at->second.shape() != parameter.tensor().shape()) {
      throw invalid_operation("Parameter '", parameter.name, "' has shape ",
                              bracketed(parameter.tensor().shape()), ", and in ", from,
                              " it has shape ", bracketed(at->second.shape()));
    }
    if (!is_float(at->second.dtype())) {
      throw type_error("Parameter '", parameter.name, "' is ", tl::name(at->second.dtype()), " in ",
                       from, ", not floats");
    }
  }
  for (const LearnParameter& parameter : all) {
    set_elements(parameter.object(), tensors.at(parameter.name));
  }
}

// ---- gradients

void Learning::differentiate(const Value& loss) {
  drop_gradients();
  const Gradients found = tl::backward(followed_loss("backward()", loss));
  for (Held& h : held_) {
    if (const tl::Tensor* gradient = found.find(h.tensor())) h.gradient = *gradient;
  }
  has_gradients_ = true;
}

tl::Tensor Learning::gradient(const Value& parameter) const {
  if (!has_gradients_) {
    throw invalid_operation(
        "grad() needs a backward() before it; the one inside learn uses its gradients up, so ask "
        "for grad(loss, x) before it");
  }
  for (const Held& h : held_) {
    if (h.value.object() == parameter.object() && h.gradient) return *h.gradient;
  }
  return zeros_like(parameter.tensor().detach());
}

void Learning::drop_gradients() noexcept {
  has_gradients_ = false;
  for (Held& h : held_) h.gradient.reset();
}

void Learning::forget() noexcept {
  trainer.reset();
  held_.clear();
  has_gradients_ = false;
}

}  // namespace tl::lang
