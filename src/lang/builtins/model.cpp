// Models: loading them, their tensors, and the library's decoder over them.
#include <ostream>

#include "lang/builtins/library.h"
#include "lang/builtins/model_objects.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

constexpr std::size_t kLazyTensors = 200;  // that a lazy model keeps

template <class... Parts>
void say(const Context& context, const Parts&... parts) {
  if (context.verbose) *context.out << tl::join(parts...) << '\n';
}

Value call_load_model(Context& context, Args& args) {
  const std::string& path = args.string(0);
  ModelPointer data = ModelData::load(path, context.device, NumberType::F16);
  say(context, "Loaded model from: ", path, " (f16)");
  return make<ModelObject>(std::move(data));
}

Value call_load_model_f16(Context& context, Args& args) {
  const std::string& path = args.string(0);
  say(context, "Loading model: ", path);
  ModelPointer data = ModelData::load(path, context.device, NumberType::F16);
  if (data->is_gguf()) say(context, "  GGUF version: ", data->gguf().version());
  say(context, "  Tensors: ", data->names().size());
  say(context, "Loaded model as f16 (mmap zero-copy)");
  return make<ModelObject>(std::move(data));
}

Value call_load_model_f32(Context& context, Args& args) {
  const std::string& path = args.string(0);
  ModelPointer data =
      ModelData::open_lazy(path, context.device, NumberType::F32, kLazyTensors, false);
  say(context, "Loaded model from: ", path, " (f32, lazy)");
  say(context, "  Weights available: ", data->names().size());
  return make<ModelObject>(std::move(data));
}

template <NumberType kNumbers, bool kGguf>
Value call_weight_cache(Context& context, Args& args) {
  const std::string& path = args.string(0);
  const std::int64_t capacity = args.integer(1);
  if (capacity < 1) args.bad_value(1, "a number of tensors from 1");
  if (path.ends_with(".gguf") != kGguf) {
    args.bad_value(0, kGguf ? "a .gguf file" : "a .safetensors file");
  }
  return make<ModelObject>(ModelData::open_lazy(path, context.device, kNumbers,
                                                static_cast<std::size_t>(capacity), !kGguf));
}

Value call_get_tensor(Context&, Args& args) {
  return model_argument(args, 0).tensor(args.string(1));
}

Value call_tensor_names(Context&, Args& args) {
  return list_of_texts(model_argument(args, 0).names());
}

// ---- chats

std::string text_member(const MapObject& message, const char* key) {
  const Value* found = message.find(Value(key));
  if (found == nullptr || !found->is(Kind::String)) {
    throw type_error(
        "chat_template() expects maps with a \"role\" and a \"content\" that are "
        "texts; \"",
        key, "\" is ", found == nullptr ? "missing" : type_name(*found));
  }
  return found->string();
}

Value call_chat_template(Context& context, Args& args) {
  ChatInput input;
  input.set_tokens(tokenizer_argument(args, 0));
  for (const Value& each : elements(context, args[1])) {
    if (!each.is(Kind::Map)) args.bad(1, "a list of maps");
    const auto& message = each.as<MapObject>();
    input.messages.push_back({text_member(message, "role"), text_member(message, "content")});
  }
  input.add_generation_prompt = args.boolean(2);
  if (auto* model = dynamic_cast<ModelObject*>(args[0].object())) {
    return model->data->chat_template().render(input);
  }
  const auto& own = args.host<TokenizerObject>(0).chat;
  if (!own) throw invalid_operation("the tokenizer's file has no chat template");
  return own->render(input);
}

// ---- the library's decoder

Value call_model_cache(Context&, Args& args) {
  const Decoder& decoder = model_argument(args, 0).decoder();
  const KvCache usual = decoder.new_cache();
  const std::int64_t context = args.integer(1);
  if (context == 0) return make<ModelCacheObject>(usual);
  if (context < 0 || context > decoder.context()) {
    args.bad_value(1, tl::join("from 1 to ", decoder.context(), " positions"));
  }
  return make<ModelCacheObject>(KvCache(decoder.device(), usual.shape(), context));
}

Value call_forward(Context& context, Args& args) {
  const Decoder& decoder = model_argument(args, 0).decoder();
  KvCache& cache = args.host<ModelCacheObject>(2).cache;
  const LogitRows rows = args.boolean(3) ? LogitRows::All : LogitRows::Last;
  context.check_interrupt();
  // Ids that are still being computed on a GPU stay there: nothing waits for it.
  if (args[1].is(Kind::Tensor) && decoder.device().is_gpu() && !args[1].tensor().empty() &&
      is_int(args[1].tensor().dtype()) && args[1].tensor().device() == decoder.device()) {
    const tl::Tensor ids = to_dtype(reshape(args[1].tensor(), {-1}), DType::U32);
    return decoder.forward(ids, cache, rows);
  }
  const std::vector<TokenId> ids = token_ids(args, 1);
  if (ids.empty()) args.bad(1, "at least one token id");
  return decoder.forward(ids, cache, rows);
}

}  // namespace

BuiltinRows model_builtins() {
  static const std::vector<Builtin> rows = [] {
    const Builtin own[] = {
        {"load_model", "models", "(path)",
         "A model from a .gguf or .safetensors file; quantised tensors stay as they are.",
         call_load_model},
        {"load_model_f16", "models", "(path)", "As load_model, and tells what it found.",
         call_load_model_f16},
        {"load_model_f32", "models", "(path)",
         "A model whose tensors are loaded when they are asked for; the last 200 are kept.",
         call_load_model_f32},
        {"load_weight_cache_f16", "models", "(path, capacity)",
         "The f16 tensors of a .safetensors file, loaded when asked for; so many are kept.",
         call_weight_cache<NumberType::F16, false>},
        {"load_weight_cache_f32", "models", "(path, capacity)",
         "The f32 tensors of a .safetensors file, loaded when asked for; so many are kept.",
         call_weight_cache<NumberType::F32, false>},
        {"load_weight_cache_gguf_f16", "models", "(path, capacity)",
         "The tensors of a .gguf file, loaded when asked for; so many are kept.",
         call_weight_cache<NumberType::F16, true>},
        {"load_weight_cache_gguf_f32", "models", "(path, capacity)",
         "The tensors of a .gguf file, loaded when asked for; so many are kept.",
         call_weight_cache<NumberType::F32, true>},
        {"get_tensor", "models", "(model, name)", "A tensor of a model by its full name.",
         call_get_tensor},
        {"tensor_names", "models", "(model)", "The names of all tensors, sorted.",
         call_tensor_names},
        {"chat_template", "models", "(model, messages, add_generation_prompt = true)",
         "Messages, maps with a role and a content, as one text by the template of a model or "
         "tokenizer.",
         call_chat_template},
        {"model_cache", "models", "(model, context = 0)",
         "An empty cache of keys and values for forward(); 0 is the model's context.",
         call_model_cache},
        {"forward", "models", "(model, ids, cache, all = false)",
         "The logits after token ids that come after those in the cache, by the library's "
         "decoder; of every id when `all` is true.",
         call_forward},
    };
    return joined({own, metadata_builtins()});
  }();
  return rows;
}

}  // namespace tl::lang
