// A chat with a model in one or several branches, as the terminal has it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/chat.h"
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
  const std::string& system() const { return branch().system(); }
  void reset();        // only what the model should be stays
  std::size_t fork();  // the same chat a second time, which is then the current one; its number
  void go_to(std::size_t number);  // from 1; throws BadArgument
  std::size_t current() const { return current_ + 1; }
  std::size_t count() const { return branches_.size(); }
  std::size_t messages() const { return branch().messages().size(); }

  // JSON: {"system": "...", "messages": [{"role": "user", "content": "..."}]}. Throw BadFile.
  void save(const std::string& path) const;
  void load(const std::string& path);

  std::uint64_t cache_bytes() const;  // of all branches, shared blocks once
  std::int64_t positions() const { return branch().cache().length(); }

 private:
  using Show = std::function<void(std::string_view)>;
  Chat& branch() { return branches_[current_]; }
  const Chat& branch() const { return branches_[current_]; }

  std::vector<Chat> branches_;
  std::size_t current_ = 0;
};

}  // namespace tl::cli
