#include "tl/model/chat_template.h"

#include <algorithm>
#include <ctime>

#include "model/chat_template_builtin.h"
#include "model/jinja/evaluate.h"
#include "tl/base/error.h"

namespace tl {

namespace {

constexpr std::string_view kKey = "tokenizer.chat_template";

// The members of a JSON object, or of nothing.
jinja::Value parse_object(jinja::Heap& heap, std::string_view json, std::string_view what) {
  if (json.empty()) return heap.dict();
  const jinja::Value value = jinja::parse_json(heap, json, what);
  if (!value.is_dict()) {
    throw Error(ErrorKind::BadArgument, "chat template", what, " must be a JSON object, not a ",
                jinja::type_name(value));
  }
  return value;
}

void define_members(jinja::Evaluator& evaluator, const jinja::Value& object) {
  for (const jinja::Dict::Entry& entry : object.dict().entries) {
    evaluator.define(entry.key.string(), entry.value);
  }
}

jinja::Value message_value(jinja::Heap& heap, const ChatMessage& message) {
  const jinja::Value out = heap.dict();
  out.dict().set(heap, jinja::Value("role"), heap.string(message.role));
  out.dict().set(heap, jinja::Value("content"), heap.string(message.content));
  const jinja::Value more = parse_object(heap, message.more, "what a message has more");
  for (const jinja::Dict::Entry& entry : more.dict().entries)
    out.dict().set(heap, entry.key, entry.value);
  return out;
}

// A template may use more the more it is given: its source is not trusted, the chat is.
jinja::Limits limits_for(std::size_t input_bytes) {
  jinja::Limits limits;
  limits.steps += 16 * input_bytes;
  limits.bytes += 64 * input_bytes;
  return limits;
}

std::size_t size_of(const ChatInput& input) {
  std::size_t size = input.tools.size() + input.variables.size();
  for (const ChatMessage& message : input.messages) {
    size += message.content.size() + message.more.size();
  }
  return size;
}

jinja::Evaluator::Clock clock_of(std::optional<std::int64_t> now) {
  return [now] { return now ? static_cast<std::time_t>(*now) : std::time(nullptr); };
}

}  // namespace

struct ChatTemplate::State {
  explicit State(std::string_view text) : source(text), body(jinja::parse(source)) {}
  std::string source;
  jinja::Body body;
};

void ChatInput::set_tokens(const Tokenizer& tokenizer) {
  const auto text = [&](std::optional<TokenId> id) {
    return id ? std::string(tokenizer.text(*id)) : std::string();
  };
  bos_token = text(tokenizer.bos());
  eos_token = text(tokenizer.eos());
}

ChatTemplate::ChatTemplate(std::shared_ptr<const State> state) noexcept
    : state_(std::move(state)) {}

ChatTemplate ChatTemplate::parse(std::string_view source) {
  return ChatTemplate(std::make_shared<const State>(source));
}

std::optional<ChatTemplate> ChatTemplate::from_gguf(const GgufFile& file,
                                                    std::string_view variant) {
  const std::string key = variant.empty() ? std::string(kKey) : join(kKey, '.', variant);
  const auto source = file.get_if<std::string>(key);
  return source ? std::optional(parse(*source)) : std::nullopt;
}

std::vector<std::string> ChatTemplate::variants(const GgufFile& file) {
  std::vector<std::string> names;
  for (const GgufEntry& entry : file.metadata()) {
    if (entry.key.starts_with(join(kKey, '.')))
      names.emplace_back(entry.key.substr(kKey.size() + 1));
  }
  return names;
}

ChatTemplate ChatTemplate::builtin(std::string_view name) {
  std::string list;
  for (const BuiltinTemplate& each : builtin_templates()) {
    if (each.name == name) return parse(each.source);
    list += (list.empty() ? "" : ", ") + std::string(each.name);
  }
  throw Error(ErrorKind::BadArgument, "chat template", "there is no template '", name,
              "'; there are ", list);
}

std::span<const std::string_view> ChatTemplate::builtin_names() noexcept {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const BuiltinTemplate& each : builtin_templates()) out.push_back(each.name);
    return out;
  }();
  return names;
}

std::string ChatTemplate::render(const ChatInput& input) const {
  jinja::Heap heap(limits_for(size_of(input)));
  jinja::Evaluator evaluator(heap, clock_of(input.now));
  std::vector<jinja::Value> messages;
  for (const ChatMessage& message : input.messages)
    messages.push_back(message_value(heap, message));
  evaluator.define("messages", heap.list(std::move(messages)));
  evaluator.define("tools", input.tools.empty()
                                ? jinja::Value::none()
                                : jinja::parse_json(heap, input.tools, "the list of tools"));
  evaluator.define("documents", jinja::Value::none());
  evaluator.define("add_generation_prompt", jinja::Value(input.add_generation_prompt));
  evaluator.define("bos_token", heap.string(input.bos_token));
  evaluator.define("eos_token", heap.string(input.eos_token));
  // The variables must outlive the rendering, and do: they lie in the heap.
  define_members(evaluator, parse_object(heap, input.variables, "what templates may ask for"));
  return evaluator.render(state_->body);
}

std::string ChatTemplate::render_json(std::string_view names) const {
  jinja::Heap heap(limits_for(names.size()));
  jinja::Evaluator evaluator(heap, clock_of(std::nullopt));
  define_members(evaluator, parse_object(heap, names, "what templates may ask for"));
  return evaluator.render(state_->body);
}

std::string_view ChatTemplate::source() const noexcept { return state_->source; }

}  // namespace tl
