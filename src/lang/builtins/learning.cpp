// Gradients and what goes on inside `learn`.
#include "lang/builtin.h"
#include "lang/convert.h"
#include "lang/training.h"

namespace tl::lang {

namespace {

constexpr std::string_view kSection = "learning";

Value call_backward(Context& context, Args& args) {
  Learning& learning = *context.learning;
  if (learning.trainer) {
    learning.trainer->backward(args[0]);
  } else {
    learning.differentiate(args[0]);
  }
  return {};
}

const tl::Tensor& followed(const Args& args, std::size_t i) {
  if (!args[i].is(Kind::Tensor) || !args[i].tensor().has_history()) {
    args.bad(i, "a tensor that is learnable or depends on one");
  }
  return args[i].tensor();
}

Value call_grad(Context& context, Args& args) {
  if (!args.has(1)) return context.learning->gradients().of(followed(args, 0));
  const tl::Tensor& loss = followed_loss("grad()", args[0]);
  const tl::Tensor wanted[] = {followed(args, 1)};
  return gradients_of(loss, wanted, {.keep = true})[0];
}

Value call_detach(Context& context, Args& args) {
  if (!args[0].is(Kind::Tensor)) return args[0];
  return args.tensor(context, 0).detach();
}

Value call_set_lr(Context&, Args& args) {
  args.host<OptimizerObject>(0).optimizer->set_rate(args.real(1));
  return {};
}

Value call_parameters(Context& context, Args&) {
  Value out = make<MapObject>();
  for (const auto& [name, object] : context.learning->parameters()) {
    out.mutate<MapObject>().slot(Value(name)) = Value(object->tensor.detach());
  }
  return out;
}

}  // namespace

BuiltinRows learning_builtins() {
  static const Builtin kRows[] = {
      {"backward", kSection, "(loss)",
       "Gradients of a loss of one element; inside learn also one step of the optimizer.",
       call_backward},
      {"grad", kSection, "(x, of = none)",
       "The gradient for x that the last backward() found; grad(loss, x) computes it.", call_grad},
      {"detach", kSection, "(x)", "The same elements, through which no gradient flows.",
       call_detach},
      {"set_lr", kSection, "(optimizer, lr)", "Changes the rate of the optimizer of a learn block.",
       call_set_lr},
      {"parameters", kSection, "()", "A map of all learnable tensors by name, as they are now.",
       call_parameters},
  };
  return kRows;
}

}  // namespace tl::lang
