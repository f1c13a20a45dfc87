// A chat with a model: what was said, and what of it is in a cache.
//
//   Engine engine(Decoder(file, ModelWeights::load(file, device)), Tokenizer::from_gguf(file));
//   Chat chat(engine, ChatTemplate::from_gguf(file).value());
//   chat.say("Hello!", [](std::string_view text) { std::cout << text; return true; });
//
// A chat is a value: a copy goes on by itself, and the two share the blocks of the cache until one
// of them writes. Each turn computes only what the cache does not have yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tl/base/error.h"
#include "tl/model/chat_template.h"
#include "tl/model/engine.h"
#include "tl/model/kv_cache.h"
#include "tl/model/sampler.h"
#include "tl/model/tokenizer.h"

namespace tl {

// How a text is chosen and where it ends. (The braces let a list of named fields leave them out.)
// NOLINTBEGIN(readability-redundant-member-init)
struct TextOptions {
  SamplingOptions sampling = {};
  std::optional<std::uint64_t> seed = {};  // nothing: another one each time
  std::int64_t max_tokens = -1;
  std::vector<std::string> stop = {};
  bool ignore_end = false;
  ContextPolicy context = ContextPolicy::Stop;
  std::optional<std::int64_t> keep = {};  // nothing: the token that begins a text
  // GenerationRequest::on_prompt
  std::function<void(std::int64_t done, std::int64_t total)> on_prompt = {};
  // NOLINTEND(readability-redundant-member-init)

  // A request with all of this; the prompt is the caller's.
  GenerationRequest request(const Tokenizer& tokenizer) const;
  std::uint64_t next_seed() const;
};

// A chat has more tokens than the context holds.
struct ContextFull : Error {
  ContextFull(std::string_view where, std::uint64_t token_count, std::int64_t context_size);

  std::uint64_t tokens;
  std::int64_t context;
};

class Chat {
 public:
  // Given text as it comes, valid UTF-8; false ends the answer there.
  using OnText = std::function<bool(std::string_view)>;
  // Asked before each step, also while the prompt is read; false ends the answer there.
  using GoesOn = std::function<bool()>;

  // The engine stays the caller's, outlives the chat and does nothing else while one answers.
  Chat(Engine& engine, ChatTemplate chat_template, TextOptions options = {});

  // The model's answer; both sides are then part of the chat. Throws what went wrong, ContextFull
  // among it; the message is then not part of the chat. With ContextPolicy::Shift the oldest turns
  // are forgotten instead.
  GenerationResult say(std::string message, const OnText& on_text = {}, const GoesOn& goes_on = {});
  // The last answer once more, by another seed. Throws BadArgument when there is none.
  GenerationResult retry(const OnText& on_text = {}, const GoesOn& goes_on = {});
  // The answer to what set_messages() gave, whatever the roles are.
  GenerationResult answer(const OnText& on_text = {}, const GoesOn& goes_on = {});

  // How the model should be; empty: nothing is said about it.
  const std::string& system() const noexcept { return system_; }
  void set_system(std::string text);
  // What was said, without the system's message.
  const std::vector<ChatMessage>& messages() const noexcept { return messages_; }
  // Others take their place. What of them the cache has is found again.
  void set_messages(std::vector<ChatMessage> messages);
  void reset();  // only system() stays
  Chat fork() const { return *this; }

  const TextOptions& options() const noexcept { return options_; }
  const KvCache& cache() const noexcept { return remembered_.cache; }

 private:
  // What is in a cache, and the texts that it was made of.
  struct Remembered {
    KvCache cache;
    std::vector<TokenId> tokens;  // whose keys and values the cache has, and perhaps more
    std::size_t asked = 0;        // of them, those of the prompt
    std::string prompt;           // as the template wrote it
    std::string whole;            // with the answer; empty where the tokens are not those of it
  };
  struct Prompt {
    std::string text;
    std::vector<TokenId> tokens;
  };
  std::vector<TokenId> encode(const std::string& text) const;
  Prompt prompt() const;
  Prompt fitting_prompt();
  GenerationResult answer_or_undo(const std::vector<ChatMessage>& before, const OnText& on_text,
                                  const GoesOn& goes_on);

  Engine* engine_;
  ChatTemplate template_;
  TextOptions options_;
  std::string system_;
  std::vector<ChatMessage> messages_;
  Remembered remembered_;
  std::uint64_t retries_ = 0;
};

}  // namespace tl
