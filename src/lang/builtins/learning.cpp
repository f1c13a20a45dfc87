// Gradients and what goes on inside `learn`.
#include "lang/builtin.h"
#include "lang/builtins/library.h"
#include "lang/builtins/model_objects.h"
#include "lang/convert.h"
#include "lang/knowledge.h"
#include "lang/training.h"
#include "tl/tensor/npy.h"

namespace tl::lang {

namespace {

constexpr std::string_view kSection = "learning";

// Learnable relations become parameters when they are first looked at, which is now.
Learning& with_relations(Context& context) {
  if (context.knowledge) context.knowledge->make_parameters(context);
  return *context.learning;
}

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
  if (!args.has(1)) {
    if (!is_parameter(args[0])) {
      args.bad(0, "a learnable tensor; for one that depends on it there is grad(loss, x)");
    }
    return context.learning->gradient(args[0]);
  }
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
  for (const LearnParameter& parameter : with_relations(context).parameters()) {
    out.mutate<MapObject>().slot(Value(parameter.name)) = Value(parameter.tensor().detach());
  }
  return out;
}

NamedTensors tensors_in(const Context& context, const Args& args, std::size_t i) {
  NamedTensors out;
  for (const auto& [key, value] : args[i].as<MapObject>().entries) {
    out.emplace(text(key), to_tensor(context, args.name(), value));
  }
  return out;
}

// A file, or what parameters() gave before.
Value call_load_parameters(Context& context, Args& args) {
  if (args[0].is(Kind::Map)) {
    with_relations(context).load("the map", tensors_in(context, args, 0));
    return {};
  }
  const std::string& path = args.string(0);
  expect_file(path);
  with_relations(context).load(path, path.ends_with(".npz")
                                         ? Npz(path).load_all(context.device)
                                         : Safetensors(path).load_all(context.device));
  return {};
}

Value call_load_state(Context& context, Args& args) {
  if (!args[1].is(Kind::Map)) args.bad(1, "what optimizer.state was, a map of tensors");
  args.host<OptimizerObject>(0).optimizer->load_state(tensors_in(context, args, 1));
  return {};
}

}  // namespace

BuiltinRows learning_builtins() {
  static const Builtin rows[] = {
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
      {"load_parameters", kSection, "(from)",
       "Sets all learnable tensors from a .safetensors or .npz file, or from a map by name.",
       call_load_parameters},
      {"load_state", kSection, "(optimizer, state)",
       "The optimizer of a learn block goes on where the one whose state this was stopped.",
       call_load_state},
  };
  return rows;
}

}  // namespace tl::lang
