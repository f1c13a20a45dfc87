// What a model's file says about it.
#include <charconv>
#include <limits>

#include "lang/builtins/library.h"
#include "lang/builtins/model_objects.h"

namespace tl::lang {

namespace {

// The number that the shortest digits of a float mean: 1e-5, not 9.999999747378752e-06.
double as_written(float number) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  double out = number;
  std::from_chars(digits, end, out);
  return out;
}

Value to_value(const GgufValue& value) {
  switch (value.type()) {
    case GgufType::Bool:
      return value.to<bool>();
    case GgufType::F32:
      return as_written(value.to<float>());
    case GgufType::F64:
      return value.to<double>();
    case GgufType::String:
      return value.to<std::string>();
    case GgufType::U64: {
      const auto number = value.to<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return static_cast<double>(number);
      }
      return static_cast<std::int64_t>(number);
    }
    case GgufType::Array: {
      std::vector<Value> values;
      value.for_each([&](const GgufValue& each) { values.push_back(to_value(each)); });
      return list_of(std::move(values));
    }
    default:
      return value.to<std::int64_t>();
  }
}

std::vector<std::string> metadata_keys(const ModelData& model) {
  std::vector<std::string> keys;
  if (const Metadata* metadata = model.safetensors_metadata()) {
    for (const auto& [key, value] : *metadata) keys.push_back(key);
    return keys;
  }
  for (const GgufEntry& entry : model.gguf().metadata()) keys.emplace_back(entry.key);
  return keys;
}

Value find_metadata(const ModelData& model, const std::string& key) {
  if (const Metadata* metadata = model.safetensors_metadata()) {
    const auto found = metadata->find(key);
    return found == metadata->end() ? Value() : Value(found->second);
  }
  const GgufValue* found = model.gguf().find_value(key);
  return found == nullptr ? Value() : to_value(*found);
}

Value call_model_info(Context&, Args& args) {
  const ModelData& model = model_argument(args, 0);
  const std::string& key = args.string(1);
  Value found = find_metadata(model, key);
  if (!found.is(Kind::Void)) return found;
  if (args.has(2)) return args[2];
  throw invalid_operation("Model does not have metadata '", key, "'",
                          did_you_mean(key, metadata_keys(model)));
}

Value call_metadata_keys(Context&, Args& args) {
  return list_of_texts(metadata_keys(model_argument(args, 0)));
}

// A key of the model's architecture; a number for each layer counts as the first.
Value of_architecture(const ModelData& model, std::string_view key) {
  Value found = find_metadata(model, tl::join(model.gguf().architecture(), ".", key));
  if (!found.is(Kind::List)) return found;
  const auto& values = found.as<ListObject>().values;
  return values.empty() ? Value() : values.front();
}

Value expect_of_architecture(const ModelData& model, std::string_view key) {
  Value found = of_architecture(model, key);
  if (found.is(Kind::Void)) {
    throw invalid_operation("Model does not have metadata '", model.gguf().architecture(), ".", key,
                            "'");
  }
  return found;
}

Value call_num_layers(Context&, Args& args) {
  return expect_of_architecture(model_argument(args, 0), "block_count");
}
Value call_num_heads(Context&, Args& args) {
  return expect_of_architecture(model_argument(args, 0), "attention.head_count");
}
Value call_num_kv_heads(Context&, Args& args) {
  Value own = of_architecture(model_argument(args, 0), "attention.head_count_kv");
  if (!own.is(Kind::Void)) return own;
  return expect_of_architecture(model_argument(args, 0), "attention.head_count");
}
Value call_hidden_size(Context&, Args& args) {
  return expect_of_architecture(model_argument(args, 0), "embedding_length");
}
Value call_head_dim(Context& context, Args& args) {
  Value own = of_architecture(model_argument(args, 0), "attention.key_length");
  if (!own.is(Kind::Void)) return own;
  const double heads = call_num_heads(context, args).number();
  if (heads < 1) throw invalid_operation("Model has no attention heads");
  return static_cast<std::int64_t>(call_hidden_size(context, args).number() / heads);
}
Value call_context_length(Context&, Args& args) {
  return expect_of_architecture(model_argument(args, 0), "context_length");
}
Value call_rope_base(Context&, Args& args) {
  Value own = of_architecture(model_argument(args, 0), "rope.freq_base");
  return own.is(Kind::Void) ? Value(10000.0) : own;
}
Value call_norm_eps(Context&, Args& args) {
  Value own = of_architecture(model_argument(args, 0), "attention.layer_norm_rms_epsilon");
  if (!own.is(Kind::Void)) return own;
  return expect_of_architecture(model_argument(args, 0), "attention.layer_norm_epsilon");
}

}  // namespace

BuiltinRows metadata_builtins() {
  static const Builtin rows[] = {
      {"model_info", "models", "(model, key, otherwise = none)",
       "A value of the metadata, such as general.name.", call_model_info},
      {"metadata_keys", "models", "(model)", "The keys of the metadata, in the file's order.",
       call_metadata_keys},
      {"num_layers", "models", "(model)", "How many layers a model has.", call_num_layers},
      {"num_heads", "models", "(model)", "How many heads attention has.", call_num_heads},
      {"num_kv_heads", "models", "(model)", "How many heads have keys and values of their own.",
       call_num_kv_heads},
      {"head_dim", "models", "(model)", "The size of a head's queries and keys.", call_head_dim},
      {"hidden_size", "models", "(model)", "The width of a model between its layers.",
       call_hidden_size},
      {"context_length", "models", "(model)", "How many positions a model was trained for.",
       call_context_length},
      {"rope_base", "models", "(model)", "The base of the rotary embedding.", call_rope_base},
      {"norm_eps", "models", "(model)", "The epsilon of the norms.", call_norm_eps},
  };
  return rows;
}

}  // namespace tl::lang
