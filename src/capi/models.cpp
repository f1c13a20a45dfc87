// Models and chats for the C interface.
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capi/tensors.h"
#include "tl/model/chat.h"
#include "tl/model/chat_template.h"
#include "tl/model/decoder.h"
#include "tl/model/engine.h"
#include "tl/model/gguf.h"
#include "tl/model/tokenizer.h"
#include "tl/model/weights.h"

namespace tl::capi {

namespace {

// An engine, which one thread at a time may step, and how chats are written for it.
class Model {
 public:
  Model(Engine engine, std::optional<ChatTemplate> chat_template)
      : engine_(std::move(engine)), template_(std::move(chat_template)) {}

  const Tokenizer& tokenizer() const noexcept { return engine_.tokenizer(); }

  // The engine for this thread alone. From a callback it is in use by the thread itself, which
  // would wait for ever.
  class Turn {
   public:
    Turn(Model& model, std::string_view function) : model_(model) {
      if (model.worker_.load() == std::this_thread::get_id()) {
        throw Error(ErrorKind::BadArgument, function,
                    "the model is at work: a callback cannot use the model that calls it");
      }
      model.mutex_.lock();
      model.worker_ = std::this_thread::get_id();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      model_.worker_ = std::thread::id();
      model_.mutex_.unlock();
    }
    Engine& engine() const noexcept { return model_.engine_; }

   private:
    Model& model_;
  };

  const ChatTemplate& chat_template(std::string_view function) const {
    if (!template_) {
      throw Error(ErrorKind::BadArgument, function,
                  "the model has no chat template; tl_model_options names one");
    }
    return *template_;
  }
  Engine& engine() noexcept { return engine_; }  // for what only keeps it

 private:
  Engine engine_;
  std::optional<ChatTemplate> template_;
  std::mutex mutex_;
  std::atomic<std::thread::id> worker_;
};

using SharedModel = std::shared_ptr<Model>;

struct ChatOfModel {
  SharedModel model;
  Chat chat;
};

HandleTable<tl_model, SharedModel>& models() {
  static auto& table = *new HandleTable<tl_model, SharedModel>("model");  // see tensors()
  return table;
}

HandleTable<tl_chat, ChatOfModel>& chats() {
  static auto& table = *new HandleTable<tl_chat, ChatOfModel>("chat");
  return table;
}

template <class Options>
void expect_set(std::string_view function, const Options& options) {
  if (options.struct_size != sizeof(Options)) {
    throw Error(ErrorKind::BadArgument, function,
                "the options were not set by their _init function: struct_size is ",
                options.struct_size, ", not ", sizeof(Options));
  }
}

TextOptions text_options(std::string_view function, const tl_text_options* given) {
  TextOptions out;
  if (given == nullptr) return out;
  const tl_text_options& from = *given;
  expect_set(function, from);
  out.sampling.temperature = from.temperature;
  out.sampling.top_k = from.top_k;
  out.sampling.top_p = from.top_p;
  out.sampling.min_p = from.min_p;
  out.sampling.repetition_penalty = from.repetition_penalty;
  out.sampling.check();
  out.max_tokens = from.max_tokens;
  if (from.has_seed != 0) out.seed = from.seed;
  if (from.stop_count > 0) expect(from.stop, function, "stop");
  for (std::size_t i = 0; i < from.stop_count; ++i) {
    out.stop.emplace_back(expect(from.stop[i], function, "a stop text"));
  }
  out.ignore_end = from.ignore_end != 0;
  out.context = from.shift_context != 0 ? ContextPolicy::Shift : ContextPolicy::Stop;
  return out;
}

// A callback of C as one of ours.
Chat::OnText to_cpp(tl_on_text on_text, void* user) {
  if (on_text == nullptr) return {};
  return [on_text, user](std::string_view piece) {
    const std::string text(piece);  // ended by a zero
    return on_text(text.c_str(), text.size(), user) != 0;
  };
}

tl_finish finish_of(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::StopToken:
      return TL_FINISH_STOP;
    case FinishReason::StopString:
      return TL_FINISH_STOP_TEXT;
    case FinishReason::Length:
      return TL_FINISH_LENGTH;
    case FinishReason::Cancelled:
    case FinishReason::Error:
      break;
  }
  return TL_FINISH_CANCELLED;
}

// Where an answer goes; both may be null.
void give(const GenerationResult& from, char** text, tl_result* result) {
  if (text != nullptr) *text = new_text(from.text);
  if (result == nullptr) return;
  const GenerationStatistics& statistics = from.statistics;
  *result = {finish_of(from.reason),      statistics.prompt_tokens,  statistics.reused_tokens,
             statistics.generated_tokens, statistics.prompt_seconds, statistics.answer_seconds};
}

SharedModel open_model(const char* path, const Device& device, const tl_model_options& options) {
  const GgufFile file = GgufFile::open(path);
  DecoderOptions how;
  how.context = options.context;
  if (options.cache_type != nullptr) how.cache = parse_kv_type(options.cache_type);
  std::optional<ChatTemplate> chat_template = options.chat_template != nullptr
                                                  ? ChatTemplate::builtin(options.chat_template)
                                                  : ChatTemplate::from_gguf(file);
  const Decoder decoder(file, ModelWeights::load(file, device), how);
  return std::make_shared<Model>(
      Engine(decoder, Tokenizer::from_gguf(file), {.sequences = 1, .step_tokens = 0}),
      std::move(chat_template));
}

}  // namespace

}  // namespace tl::capi

namespace capi = tl::capi;

tl_status tl_model_options_init(tl_model_options* options) {
  return capi::guarded([&] {
    *capi::expect(options, "tl_model_options_init", "options") = {sizeof(tl_model_options), 0,
                                                                  "f16", nullptr};
  });
}

tl_status tl_text_options_init(tl_text_options* options) {
  return capi::guarded([&] {
    tl_text_options& to = *capi::expect(options, "tl_text_options_init", "options");
    const tl::SamplingOptions usual;
    to = {};
    to.struct_size = sizeof(tl_text_options);
    to.temperature = usual.temperature;
    to.top_k = usual.top_k;
    to.top_p = usual.top_p;
    to.min_p = usual.min_p;
    to.repetition_penalty = usual.repetition_penalty;
    to.max_tokens = -1;
  });
}

tl_status tl_model_open(const char* path, tl_device device, const tl_model_options* options,
                        tl_model** model) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_model_open";
    capi::expect(path, kWhere, "path");
    capi::expect(model, kWhere, "model");
    const tl_model_options usual = {sizeof(tl_model_options), 0, "f16", nullptr};
    if (options != nullptr) capi::expect_set(kWhere, *options);
    *model = capi::models().put(capi::open_model(path, capi::device_of_c(kWhere, device),
                                                 options != nullptr ? *options : usual));
  });
}

tl_status tl_model_free(tl_model* model) {
  return capi::guarded([&] { capi::models().drop("tl_model_free", model); });
}

tl_status tl_model_tokenize(const tl_model* model, const char* text, tl_token* tokens,
                            size_t capacity, size_t* count) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_model_tokenize";
    const auto found = capi::models().get(kWhere, model);
    capi::expect(text, kWhere, "text");
    capi::expect(count, kWhere, "count");
    const std::vector<tl::TokenId> ids = (*found)->tokenizer().encode(text);
    if (capacity > 0 && capacity < ids.size()) {
      throw tl::Error(tl::ErrorKind::SizeMismatch, kWhere, "room for ", capacity,
                      " tokens, and the text has ", ids.size());
    }
    if (capacity > 0) {
      std::copy(ids.begin(), ids.end(), capi::expect(tokens, kWhere, "tokens"));
    }
    *count = ids.size();
  });
}

tl_status tl_model_detokenize(const tl_model* model, const tl_token* tokens, size_t count,
                              char** text) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_model_detokenize";
    const auto found = capi::models().get(kWhere, model);
    capi::expect(text, kWhere, "text");
    if (count > 0) capi::expect(tokens, kWhere, "tokens");
    *text = capi::new_text((*found)->tokenizer().decode(std::span(tokens, count)));
  });
}

tl_status tl_model_generate(tl_model* model, const char* prompt, const tl_text_options* options,
                            tl_on_text on_text, void* user, char** text, tl_result* result) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_model_generate";
    const capi::SharedModel found = *capi::models().get(kWhere, model);
    capi::expect(prompt, kWhere, "prompt");
    tl::GenerationRequest request = capi::text_options(kWhere, options).request(found->tokenizer());
    request.prompt = found->tokenizer().encode(prompt);
    request.on_text = capi::to_cpp(on_text, user);
    const capi::Model::Turn turn(*found, kWhere);
    const tl::GenerationResult made = turn.engine().generate(std::move(request));
    if (made.error) std::rethrow_exception(made.error);
    capi::give(made, text, result);
  });
}

tl_status tl_model_chat(tl_model* model, const tl_message* messages, size_t count,
                        const tl_text_options* options, tl_on_text on_text, void* user, char** text,
                        tl_result* result) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_model_chat";
    const capi::SharedModel found = *capi::models().get(kWhere, model);
    if (count == 0) {
      throw tl::Error(tl::ErrorKind::BadArgument, kWhere, "there is no message to answer");
    }
    capi::expect(messages, kWhere, "messages");
    std::vector<tl::ChatMessage> said;
    for (std::size_t i = 0; i < count; ++i) {
      said.push_back({capi::expect(messages[i].role, kWhere, "a role"),
                      capi::expect(messages[i].content, kWhere, "a message's content")});
    }
    const capi::Model::Turn turn(*found, kWhere);
    tl::Chat chat(turn.engine(), found->chat_template(kWhere), capi::text_options(kWhere, options));
    chat.set_messages(std::move(said));
    capi::give(chat.answer(capi::to_cpp(on_text, user)), text, result);
  });
}

tl_status tl_chat_new(tl_model* model, const char* system, const tl_text_options* options,
                      tl_chat** chat) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_chat_new";
    const capi::SharedModel found = *capi::models().get(kWhere, model);
    capi::expect(chat, kWhere, "chat");
    tl::Chat made(found->engine(), found->chat_template(kWhere),
                  capi::text_options(kWhere, options));
    if (system != nullptr) made.set_system(system);
    *chat = capi::chats().put({found, std::move(made)});
  });
}

tl_status tl_chat_say(tl_chat* chat, const char* message, tl_on_text on_text, void* user,
                      char** text, tl_result* result) {
  return capi::guarded([&] {
    constexpr const char* kWhere = "tl_chat_say";
    const auto found = capi::chats().get(kWhere, chat);
    capi::expect(message, kWhere, "message");
    const capi::Model::Turn turn(*found->model, kWhere);
    capi::give(found->chat.say(message, capi::to_cpp(on_text, user)), text, result);
  });
}

tl_status tl_chat_reset(tl_chat* chat) {
  return capi::guarded([&] {
    const auto found = capi::chats().get("tl_chat_reset", chat);
    const capi::Model::Turn turn(*found->model, "tl_chat_reset");
    found->chat.reset();
  });
}

tl_status tl_chat_clone(const tl_chat* chat, tl_chat** clone) {
  return capi::guarded([&] {
    const auto found = capi::chats().get("tl_chat_clone", chat);
    capi::expect(clone, "tl_chat_clone", "clone");
    const capi::Model::Turn turn(*found->model, "tl_chat_clone");
    *clone = capi::chats().put({found->model, found->chat.fork()});
  });
}

tl_status tl_chat_free(tl_chat* chat) {
  return capi::guarded([&] { capi::chats().drop("tl_chat_free", chat); });
}
