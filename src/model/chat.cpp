#include "tl/model/chat.h"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

namespace tl {

namespace {
constexpr const char* kChatWhere = "chat";
}  // namespace

std::uint64_t TextOptions::next_seed() const {
  if (seed) return *seed;
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

GenerationRequest TextOptions::request(const Tokenizer& tokenizer) const {
  GenerationRequest out;
  out.sampling = sampling;
  out.sampling.seed = next_seed();
  out.max_tokens = max_tokens;
  out.stop = stop;
  out.ignore_end_tokens = ignore_end;
  out.context = context;
  out.keep = keep.value_or(tokenizer.adds_bos() ? 1 : 0);
  out.on_prompt = on_prompt;
  return out;
}

ContextFull::ContextFull(std::string_view where, std::uint64_t token_count,
                         std::int64_t context_size)
    : Error(ErrorKind::BadArgument, where, "the chat has ", token_count,
            " tokens, and the context holds ", context_size),
      tokens(token_count),
      context(context_size) {}

Chat::Chat(Engine& engine, ChatTemplate chat_template, TextOptions options)
    : engine_(&engine), template_(std::move(chat_template)), options_(std::move(options)) {}

// A model may have written its answer with other tokens than the tokenizer has for the text. What
// goes on after it then keeps those, so that the cache stays of use. Where a special token follows
// that is exact: text before it and after it are cut into tokens apart in any case.
std::vector<TokenId> Chat::encode(const std::string& text) const {
  const Tokenizer& tokenizer = engine_->tokenizer();
  const Remembered& before = remembered_;
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

Chat::Prompt Chat::prompt() const {
  ChatInput input;
  input.set_tokens(engine_->tokenizer());
  if (!system_.empty()) input.messages.push_back({"system", system_});
  input.messages.insert(input.messages.end(), messages_.begin(), messages_.end());
  std::string text = template_.render(input);
  std::vector<TokenId> tokens = encode(text);
  return {std::move(text), std::move(tokens)};
}

// Where shifts are allowed, the oldest turns are forgotten until there is room for an answer.
Chat::Prompt Chat::fitting_prompt() {
  const std::int64_t context = engine_->decoder().context();
  while (true) {
    Prompt prompt = this->prompt();
    if (std::cmp_less_equal(prompt.tokens.size(), context)) return prompt;
    if (options_.context == ContextPolicy::Stop || messages_.size() < 3) {
      throw ContextFull(kChatWhere, prompt.tokens.size(), context);
    }
    messages_.erase(messages_.begin(), messages_.begin() + 2);
  }
}

GenerationResult Chat::answer(const OnText& on_text, const GoesOn& goes_on) {
  Prompt prompt = fitting_prompt();
  Remembered before = std::exchange(remembered_, Remembered());
  // What both begin with need not be computed again.
  const auto same = std::mismatch(before.tokens.begin(), before.tokens.end(), prompt.tokens.begin(),
                                  prompt.tokens.end())
                        .first -
                    before.tokens.begin();
  before.cache.truncate(std::min(before.cache.length(), static_cast<std::int64_t>(same)));
  GenerationRequest request = options_.request(engine_->tokenizer());
  request.cache = std::move(before.cache);
  request.sampling.seed += retries_;
  request.keep_cache = true;
  remembered_.asked = prompt.tokens.size();
  request.prompt = std::move(prompt.tokens);
  request.on_text = on_text;
  const RequestId id = engine_->submit(std::move(request));
  while (engine_->step()) {
    if (goes_on && !goes_on()) engine_->cancel(id);
  }
  GenerationResult result = std::move(engine_->take_results().at(0));
  remembered_.cache = std::exchange(result.cache, KvCache());
  remembered_.tokens = result.sequence;
  if (result.error) std::rethrow_exception(result.error);
  if (result.statistics.shifts == 0) {
    remembered_.prompt = std::move(prompt.text);
    // The tokens of a stop string are there, its text is not.
    if (result.reason != FinishReason::StopString) {
      remembered_.whole = remembered_.prompt + result.text;
    }
  }
  messages_.push_back({"assistant", result.text});
  return result;
}

GenerationResult Chat::answer_or_undo(const std::vector<ChatMessage>& before, const OnText& on_text,
                                      const GoesOn& goes_on) {
  try {
    return answer(on_text, goes_on);
  } catch (...) {
    messages_ = before;
    throw;
  }
}

GenerationResult Chat::say(std::string message, const OnText& on_text, const GoesOn& goes_on) {
  const std::vector<ChatMessage> before = messages_;
  messages_.push_back({"user", std::move(message)});
  retries_ = 0;
  return answer_or_undo(before, on_text, goes_on);
}

GenerationResult Chat::retry(const OnText& on_text, const GoesOn& goes_on) {
  if (messages_.empty() || messages_.back().role != "assistant") {
    throw Error(ErrorKind::BadArgument, kChatWhere, "there is no answer yet to try again");
  }
  const std::vector<ChatMessage> before = messages_;
  messages_.pop_back();
  ++retries_;
  return answer_or_undo(before, on_text, goes_on);
}

void Chat::set_system(std::string text) { system_ = std::move(text); }

void Chat::set_messages(std::vector<ChatMessage> messages) { messages_ = std::move(messages); }

void Chat::reset() {
  messages_.clear();
  remembered_ = Remembered();
}

}  // namespace tl
