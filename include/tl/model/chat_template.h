// Chats as one text, by the Jinja template that comes with a model.
//
//   const auto chat = ChatTemplate::from_gguf(file).value_or(ChatTemplate::builtin("chatml"));
//   ChatInput input;
//   input.set_tokens(tokenizer);
//   input.messages = {{"user", "Hello!"}};
//   tokenizer.encode_prompt(chat.render(input));
//
// Templates see what Hugging Face's apply_chat_template gives them, under the same settings, and
// mean what they mean in Python. They are code from strangers: what one may use of time and memory
// is limited, and a failure is a tl::Error with line and column. docs/chat-templates.md lists what
// they can do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/gguf.h"
#include "tl/model/tokenizer.h"

namespace tl {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  // Other members as a JSON object: {"tool_calls": [...]}, {"name": "f", "tool_call_id": "1"}. One
  // that is called "content" takes the place of the content above: null, or a list of parts.
  std::string more = {};  // NOLINT(readability-redundant-member-init): {"user", "Hi"} is enough
};

struct ChatInput {
  std::vector<ChatMessage> messages;
  std::string tools;      // a JSON array of what the model may call; empty: none
  std::string variables;  // a JSON object of other names the template may ask for; empty: none
  bool add_generation_prompt = true;  // end with what begins the assistant's answer
  std::string bos_token, eos_token;
  std::optional<std::int64_t>
      now;  // seconds since 1970, for templates that tell the date; else the clock

  void set_tokens(const Tokenizer& tokenizer);  // bos_token and eos_token
};

// A handle: copies share the parsed template. Safe to use from several threads.
class ChatTemplate {
 public:
  // Throws BadArgument for what is not a template, Unsupported for a tag that is not known; both
  // say where.
  static ChatTemplate parse(std::string_view source);

  // The model's own, tokenizer.chat_template, or the variant tokenizer.chat_template.NAME, such as
  // "tool_use". Nothing when the file has none.
  static std::optional<ChatTemplate> from_gguf(const GgufFile& file, std::string_view variant = {});
  static std::vector<std::string> variants(const GgufFile& file);

  // Those that come with the program, for models without one. Throws BadArgument, with the names
  // there are, for another.
  static ChatTemplate builtin(std::string_view name);
  static std::span<const std::string_view> builtin_names() noexcept;

  std::string render(const ChatInput& input) const;
  // All names and values as one JSON object, nothing added.
  std::string render_json(std::string_view names) const;

  std::string_view source() const noexcept;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tl
