// A chat with a model: what was said, in one or several branches, and what of it is in a cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sampling_options.h"
#include "tl/model/chat_template.h"
#include "tl/model/engine.h"

namespace tl::cli {

class ChatSession {
 public:
  ChatSession(Engine& engine, ChatTemplate chat_template, const TextOptions& options);

  // The model's answer to what was said; `show` is given its text as it comes. When it is
  // interrupted the answer is what there is by then. Throws what went wrong; the message is then
  // not part of the chat.
  GenerationResult say(std::string message, const std::function<void(std::string_view)>& show);
  // The last answer once more, by another seed. Throws BadArgument when there is none.
  GenerationResult retry(const std::function<void(std::string_view)>& show);

  void set_system(std::string text);
  const std::string& system() const { return branch().system; }
  void reset();        // only what the model should be stays
  std::size_t fork();  // the same chat a second time, which is then the current one; its number
  void go_to(std::size_t number);  // from 1; throws BadArgument
  std::size_t current() const { return current_ + 1; }
  std::size_t count() const { return branches_.size(); }
  std::size_t messages() const { return branch().messages.size(); }

  // JSON: {"system": "...", "messages": [{"role": "user", "content": "..."}]}. Throw BadFile.
  void save(const std::string& path) const;
  void load(const std::string& path);

  std::uint64_t cache_bytes() const;  // of all branches, shared blocks once
  std::int64_t positions() const { return branch().remembered.cache.length(); }

 private:
  // What is in a cache, and the texts that it was made of.
  struct Remembered {
    KvCache cache;
    std::vector<TokenId> tokens;  // whose keys and values the cache has, and perhaps more
    std::size_t asked = 0;        // of them, those of the prompt
    std::string prompt;           // as the template wrote it
    std::string whole;            // with the answer; empty where the tokens are not those of it
  };
  struct Branch {
    std::string system;
    std::vector<ChatMessage> messages;
    Remembered remembered;
  };
  Branch& branch() { return branches_[current_]; }
  const Branch& branch() const { return branches_[current_]; }
  struct Prompt {
    std::string text;
    std::vector<TokenId> tokens;
  };
  Prompt prompt_of(const Branch& branch) const;
  std::vector<TokenId> encode(const std::string& text, const Remembered& before) const;
  Prompt fitting_prompt(Branch& branch) const;
  GenerationResult answer(const std::function<void(std::string_view)>& show);

  Engine& engine_;
  ChatTemplate template_;
  TextOptions options_;
  std::vector<Branch> branches_{1};
  std::size_t current_ = 0;
  std::uint64_t retries_ = 0;
};

}  // namespace tl::cli
