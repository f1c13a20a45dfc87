#include "cli/chat_session.h"

#include <cerrno>
#include <cstring>
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
    : branches_{Chat(engine, std::move(chat_template), options)} {}

namespace {

// Ctrl-C ends an answer, also while the prompt is still read.
Chat::OnText until_interrupted(const std::function<void(std::string_view)>& show) {
  return [&show](std::string_view text) {
    show(text);
    return !interrupted();
  };
}

bool not_interrupted() { return !interrupted(); }

}  // namespace

GenerationResult ChatSession::say(std::string message, const Show& show) {
  expect_utf8(kChatSessionWhere, message);
  try {
    return branch().say(std::move(message), until_interrupted(show), not_interrupted);
  } catch (const ContextFull& full) {
    if (messages() < 2) throw;
    throw Error(ErrorKind::BadArgument, kChatSessionWhere, "the chat has ", full.tokens,
                " tokens, and the context holds ", full.context, "; /reset begins a new one");
  }
}

GenerationResult ChatSession::retry(const Show& show) {
  return branch().retry(until_interrupted(show), not_interrupted);
}

void ChatSession::set_system(std::string text) { branch().set_system(std::move(text)); }

void ChatSession::reset() { branch().reset(); }

std::size_t ChatSession::fork() {
  branches_.push_back(branch().fork());  // the cache's blocks are shared until one is written
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
  Json json{{"system", branch().system()}, {"messages", Json::array()}};
  for (const ChatMessage& message : branch().messages()) {
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
  std::string system;
  std::vector<ChatMessage> messages;
  try {
    const Json json = Json::parse(text);
    system = json.value("system", std::string());
    for (const Json& each : json.at("messages")) {
      messages.push_back(
          {each.at("role").get<std::string>(), each.at("content").get<std::string>()});
    }
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::BadFile, path, "is no saved chat: ", error.what());
  }
  // The cache may still fit: a chat that was saved and goes on is found again in it.
  branch().set_system(std::move(system));
  branch().set_messages(std::move(messages));
}

std::uint64_t ChatSession::cache_bytes() const {
  std::vector<const KvCache*> caches;
  for (const Chat& each : branches_) caches.push_back(&each.cache());
  return size_bytes(caches);
}

}  // namespace tl::cli
