#include "cli/chat_session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/input.h"
#include "cli/interrupt.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::cli {

namespace {
using Json = nlohmann::ordered_json;
constexpr const char* kChatSessionWhere = "chat";
}  // namespace

ChatSession::ChatSession(Engine& engine, ChatTemplate chat_template, const TextOptions& options)
    : engine_(engine), template_(std::move(chat_template)), options_(options) {}

// A model may have written its answer with other tokens than the tokenizer has for the text. What
// goes on after it then keeps those, so that the cache stays of use. Where a special token follows
// that is exact: text before it and after it are cut into tokens apart in any case.
std::vector<TokenId> ChatSession::encode(const std::string& text, const Remembered& before) const {
  const Tokenizer& tokenizer = engine_.tokenizer();
  if (!before.prompt.empty() && text == before.prompt) {
    const auto first = before.tokens.begin();
    return {first, first + static_cast<std::ptrdiff_t>(before.asked)};
  }
  if (!before.whole.empty() && text.starts_with(before.whole)) {
    const std::vector<TokenId> rest =
        tokenizer.encode(text.substr(before.whole.size()), {false, true});
    if (!rest.empty() && (tokenizer.kind(rest.front()) == TokenKind::Control ||
                          tokenizer.kind(rest.front()) == TokenKind::UserDefined)) {
      std::vector<TokenId> all = before.tokens;
      all.insert(all.end(), rest.begin(), rest.end());
      return all;
    }
  }
  return tokenizer.encode_prompt(text);
}

ChatSession::Prompt ChatSession::prompt_of(const Branch& branch) const {
  ChatInput input;
  input.set_tokens(engine_.tokenizer());
  if (!branch.system.empty()) input.messages.push_back({"system", branch.system});
  input.messages.insert(input.messages.end(), branch.messages.begin(), branch.messages.end());
  std::string text = template_.render(input);
  std::vector<TokenId> tokens = encode(text, branch.remembered);
  return {std::move(text), std::move(tokens)};
}

// Where shifts are allowed, the oldest turns are forgotten until there is room for an answer.
ChatSession::Prompt ChatSession::fitting_prompt(Branch& branch) const {
  const std::int64_t context = engine_.decoder().context();
  while (true) {
    Prompt prompt = prompt_of(branch);
    if (std::cmp_less_equal(prompt.tokens.size(), context)) return prompt;
    if (options_.context == ContextPolicy::Stop || branch.messages.size() < 3) {
      throw Error(ErrorKind::BadArgument, kChatSessionWhere, "the chat has ", prompt.tokens.size(),
                  " tokens, and the context holds ", context,
                  branch.messages.size() < 3 ? "" : "; /reset begins a new one");
    }
    branch.messages.erase(branch.messages.begin(), branch.messages.begin() + 2);
  }
}

GenerationResult ChatSession::answer(const std::function<void(std::string_view)>& show) {
  Branch& now = branch();
  Prompt prompt = fitting_prompt(now);
  Remembered before = std::exchange(now.remembered, Remembered());
  // What both begin with need not be computed again.
  const auto same = std::mismatch(before.tokens.begin(), before.tokens.end(), prompt.tokens.begin(),
                                  prompt.tokens.end())
                        .first -
                    before.tokens.begin();
  before.cache.truncate(std::min(before.cache.length(), static_cast<std::int64_t>(same)));
  GenerationRequest request = options_.request(engine_.tokenizer());
  request.cache = std::move(before.cache);
  request.sampling.seed += retries_;
  request.keep_cache = true;
  now.remembered.asked = prompt.tokens.size();
  request.prompt = std::move(prompt.tokens);
  request.on_text = [&](std::string_view text) {
    show(text);
    return !interrupted();
  };
  const RequestId id = engine_.submit(std::move(request));
  while (engine_.step()) {
    if (interrupted()) engine_.cancel(id);
  }
  GenerationResult result = std::move(engine_.take_results().at(0));
  now.remembered.cache = std::exchange(result.cache, KvCache());
  now.remembered.tokens = result.sequence;
  if (result.error) std::rethrow_exception(result.error);
  if (result.statistics.shifts == 0) {
    now.remembered.prompt = std::move(prompt.text);
    // The tokens of a stop string are there, its text is not.
    if (result.reason != FinishReason::StopString) {
      now.remembered.whole = now.remembered.prompt + result.text;
    }
  }
  now.messages.push_back({"assistant", result.text});
  return result;
}

GenerationResult ChatSession::say(std::string message,
                                  const std::function<void(std::string_view)>& show) {
  expect_utf8(kChatSessionWhere, message);
  const std::vector<ChatMessage> before = branch().messages;
  branch().messages.push_back({"user", std::move(message)});
  retries_ = 0;
  try {
    return answer(show);
  } catch (...) {
    branch().messages = before;
    throw;
  }
}

GenerationResult ChatSession::retry(const std::function<void(std::string_view)>& show) {
  if (branch().messages.empty() || branch().messages.back().role != "assistant") {
    throw Error(ErrorKind::BadArgument, kChatSessionWhere, "there is no answer yet to try again");
  }
  const std::vector<ChatMessage> before = branch().messages;
  branch().messages.pop_back();
  ++retries_;
  try {
    return answer(show);
  } catch (...) {
    branch().messages = before;
    throw;
  }
}

void ChatSession::set_system(std::string text) { branch().system = std::move(text); }

void ChatSession::reset() {
  Branch fresh;
  fresh.system = std::move(branch().system);
  branch() = std::move(fresh);
}

std::size_t ChatSession::fork() {
  branches_.push_back(branch());  // the cache's blocks are shared until one of them is written
  current_ = branches_.size() - 1;
  return current();
}

void ChatSession::go_to(std::size_t number) {
  if (number < 1 || number > branches_.size()) {
    throw Error(ErrorKind::BadArgument, kChatSessionWhere, "there is no chat ", number,
                "; there are ", branches_.size());
  }
  current_ = number - 1;
}

void ChatSession::save(const std::string& path) const {
  Json json{{"system", branch().system}, {"messages", Json::array()}};
  for (const ChatMessage& message : branch().messages) {
    json["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  std::ofstream out(path, std::ios::binary);
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  if (!out) {
    throw Error(ErrorKind::BadFile, path, "could not be written: ", std::strerror(errno));
  }
}

void ChatSession::load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorKind::BadFile, path, std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Branch loaded;
  try {
    const Json json = Json::parse(text);
    loaded.system = json.value("system", std::string());
    for (const Json& each : json.at("messages")) {
      loaded.messages.push_back(
          {each.at("role").get<std::string>(), each.at("content").get<std::string>()});
    }
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::BadFile, path, "is no saved chat: ", error.what());
  }
  // The cache may still fit: a chat that was saved and goes on is found again in it.
  loaded.remembered = std::move(branch().remembered);
  branch() = std::move(loaded);
}

std::uint64_t ChatSession::cache_bytes() const {
  std::vector<const KvCache*> caches;
  for (const Branch& each : branches_) caches.push_back(&each.remembered.cache);
  return size_bytes(caches);
}

}  // namespace tl::cli
