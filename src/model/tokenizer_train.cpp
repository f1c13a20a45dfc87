#include "tl/model/tokenizer_train.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "model/tokenizer_pre.h"
#include "model/tokenizer_tables.h"
#include "model/tokenizer_utf8.h"
#include "model/tokenizer_vocabulary.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl {

namespace {

constexpr std::string_view kTrainWhere = "tokenizer train";
constexpr std::size_t kByteTokens = 256;
constexpr std::size_t kMostVocabulary = 1'000'000;
constexpr std::size_t kTrainChunk = std::size_t{1} << 20;  // bytes that are cut into words at once
constexpr std::size_t kProgressEvery = 64;                 // tokens

constexpr std::string_view kRoleTemplate =
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] -%}"
    "{{ raise_exception('the roles are system, user and assistant') }}"
    "{%- endif -%}"
    "{{ '<|' + message['role'] + '|>' + message['content'] | trim + '<|eot|>' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}";

// Different words and how often each stands in the text.
struct WordCounts {
  tok::TextTable words;
  std::vector<std::uint64_t> counts;

  void add(std::string_view word) {
    const std::size_t index = words.add(word);
    if (index == counts.size()) counts.push_back(0);
    ++counts[index];
  }
};

// The merges of one vocabulary, learned from counted words.
class MergeLearner {
 public:
  MergeLearner(const WordCounts& words, std::vector<std::string> tokens, std::size_t special)
      : counts_(words.counts), tokens_(std::move(tokens)), special_(special) {
    for (std::size_t id = 0; id < tokens_.size(); ++id) ids_.add(tokens_[id]);
    words_.resize(words.counts.size());
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (const char byte : words.words.text(w)) {
        words_[w].push_back(static_cast<Id>(special + static_cast<unsigned char>(byte)));
      }
      count_pairs(w, static_cast<std::int64_t>(counts_[w]));
    }
    queue_touched();
  }

  void learn(const TokenizerTrainOptions& options) {
    while (tokens_.size() < options.vocabulary) {
      const std::optional<std::size_t> best = take_best(options.least_count);
      if (!best) return;
      merge(*best);
      if (options.progress && tokens_.size() % kProgressEvery == 0) {
        options.progress(tokens_.size());
      }
    }
  }

  std::vector<std::string> take_tokens() { return std::move(tokens_); }
  std::vector<std::string> take_merges() { return std::move(merges_); }
  std::uint64_t text_tokens() const {
    std::uint64_t sum = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) sum += counts_[w] * words_[w].size();
    return sum;
  }

 private:
  using Id = std::uint32_t;

  struct Pair {
    Id left = 0, right = 0;
    std::int64_t count = 0;
    std::int64_t queued = 0;           // the count it was put into the heap with last
    std::vector<std::uint32_t> words;  // where it stands, or stood
    bool is_touched = false;
  };

  // In the heap: a pair with the count it had then. Entries that are out of date are put right
  // when they come up.
  struct Entry {
    std::int64_t count;
    std::uint64_t key;
    std::size_t pair;
    bool operator<(const Entry& other) const noexcept {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  static std::uint64_t key_of(Id left, Id right) noexcept {
    return std::uint64_t{left} << 32 | right;
  }

  std::size_t pair_index(Id left, Id right) {
    const auto [found, is_new] = index_.try_emplace(key_of(left, right), pairs_.size());
    if (is_new) pairs_.push_back({.left = left, .right = right, .words = {}});
    return found->second;
  }

  // Adds a word's pairs to the counts, or takes them away where `times` is negative.
  void count_pairs(std::size_t word, std::int64_t times) {
    const std::vector<Id>& symbols = words_[word];
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const std::size_t index = pair_index(symbols[i], symbols[i + 1]);
      Pair& pair = pairs_[index];
      pair.count += times;
      if (times < 0) continue;
      const auto number = static_cast<std::uint32_t>(word);
      if (pair.words.empty() || pair.words.back() != number) pair.words.push_back(number);
      if (pair.is_touched) continue;
      pair.is_touched = true;
      touched_.push_back(index);
    }
  }

  // Pairs whose count grew go into the heap again.
  void queue_touched() {
    for (const std::size_t index : touched_) {
      pairs_[index].is_touched = false;
      if (pairs_[index].count > pairs_[index].queued) queue(index);
    }
    touched_.clear();
  }
  void queue(std::size_t index) {
    Pair& pair = pairs_[index];
    pair.queued = pair.count;
    heap_.push({pair.count, key_of(pair.left, pair.right), index});
  }

  std::optional<std::size_t> take_best(std::uint64_t least) {
    while (!heap_.empty()) {
      const Entry top = heap_.top();
      heap_.pop();
      Pair& pair = pairs_[top.pair];
      if (top.count == pair.count && pair.count > 0) {
        if (static_cast<std::uint64_t>(pair.count) < least) return std::nullopt;
        pair.queued = 0;
        return top.pair;
      }
      if (pair.count > 0 && top.count > pair.count) queue(top.pair);
    }
    return std::nullopt;
  }

  void merge(std::size_t index) {
    const Id left = pairs_[index].left, right = pairs_[index].right;
    const std::string text = tokens_[left] + tokens_[right];
    // Two pairs may spell the same text: the second one is a merge, but no new token.
    const std::size_t id = ids_.add(text);
    if (id < special_) {  // what reads like a special token would be taken for one
      pairs_[index].count = 0;
      return;
    }
    if (id == tokens_.size()) tokens_.push_back(text);
    merges_.push_back(tokens_[left] + ' ' + tokens_[right]);
    const std::vector<std::uint32_t> words = std::move(pairs_[index].words);
    pairs_[index].words = {};
    for (const std::uint32_t word : words) merge_in(word, left, right, static_cast<Id>(id));
    queue_touched();
  }

  void merge_in(std::uint32_t word, Id left, Id right, Id both) {
    std::vector<Id>& symbols = words_[word];
    const auto begins = [&](std::size_t i) {
      return symbols[i] == left && i + 1 < symbols.size() && symbols[i + 1] == right;
    };
    std::size_t first = 0;
    while (first < symbols.size() && !begins(first)) ++first;
    if (first == symbols.size()) return;  // other merges have taken it apart
    const auto count = static_cast<std::int64_t>(counts_[word]);
    count_pairs(word, -count);
    std::size_t out = first;
    for (std::size_t i = first; i < symbols.size(); ++out) {
      const bool merges = begins(i);
      const Id symbol = merges ? both : symbols[i];
      i += merges ? 2 : 1;
      symbols[out] = symbol;
    }
    symbols.resize(out);
    count_pairs(word, count);
  }

  const std::vector<std::uint64_t>& counts_;  // of words
  std::vector<std::vector<Id>> words_;        // the symbols of each
  std::vector<std::string> tokens_, merges_;
  std::size_t special_;
  tok::TextTable ids_;
  std::vector<Pair> pairs_;
  std::unordered_map<std::uint64_t, std::size_t> index_;  // into pairs_, by both ids
  std::vector<std::size_t> touched_;
  std::priority_queue<Entry> heap_;
};

void expect_special(const TokenizerTrainOptions& options, std::string_view role,
                    const std::string& text) {
  const auto& all = options.special;
  if (text.empty() || std::find(all.begin(), all.end(), text) != all.end()) return;
  throw Error(ErrorKind::BadArgument, kTrainWhere, "the token '", text, "' that ", role,
              " is not one of the special tokens");
}

void check_train_options(const TokenizerTrainOptions& options) {
  tok::TextTable seen;
  for (const std::string& text : options.special) {
    if (text.empty()) throw Error(ErrorKind::BadArgument, kTrainWhere, "a special token is empty");
    if (const std::size_t bad = first_invalid_utf8(text); bad != text.size()) {
      throw Error(ErrorKind::BadArgument, kTrainWhere, "a special token is not UTF-8 at byte ",
                  bad);
    }
    if (seen.find(text)) {
      throw Error(ErrorKind::BadArgument, kTrainWhere, "the special token '", text,
                  "' is there twice");
    }
    // The texts of bytes are single characters, and a token's text must be its own.
    if (tok::promised_length(text.front()) >= text.size()) {
      throw Error(ErrorKind::BadArgument, kTrainWhere, "the special token '", text,
                  "' is a single character");
    }
    seen.add(text);
  }
  expect_special(options, "begins a text", options.begin);
  expect_special(options, "ends a text", options.end);
  expect_special(options, "ends a turn", options.end_of_turn);
  const std::size_t least = kByteTokens + options.special.size();
  if (options.vocabulary < least || options.vocabulary > kMostVocabulary) {
    throw Error(ErrorKind::BadArgument, kTrainWhere, "a vocabulary of ", options.vocabulary,
                " tokens is not possible; 256 bytes and ", options.special.size(),
                " special tokens need ", least, ", and the most is ", kMostVocabulary);
  }
}

}  // namespace

std::string_view TokenizerTrainOptions::role_template() noexcept { return kRoleTemplate; }

struct TokenizerTrainer::State {
  explicit State(TokenizerTrainOptions given)
      : options(std::move(given)), pre(rule_of(options.pre)) {
    check_train_options(options);
    for (std::size_t i = 0; i < options.special.size(); ++i) {
      special.add(options.special[i], static_cast<std::int32_t>(i));
    }
  }

  static const tok::PreRule& rule_of(const std::string& name) {
    const tok::PreRule& rule = tok::find_pre_rule(name);
    if (rule.raw) {
      throw Error(ErrorKind::Unsupported, kTrainWhere, "the pre-tokenizer '", name,
                  "' works on characters; vocabularies of bytes are what is made here");
    }
    return rule;
  }

  // How many bytes the longest special token at the start of `text` has; 0 where there is none.
  std::size_t special_length(std::string_view text) const {
    std::size_t longest = 0;
    tok::ByteTrie::Node node = tok::ByteTrie::kRoot;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto next = special.step(node, text[i]);
      if (!next) break;
      node = *next;
      if (special.value(node) != tok::ByteTrie::kNothing) longest = i + 1;
    }
    return longest;
  }

  // Text without special tokens, UTF-8 or not.
  void add_plain(std::string_view text) {
    bytes += text.size();
    while (!text.empty()) {
      const std::size_t valid = first_invalid_utf8(text);
      add_valid(text.substr(0, valid));
      if (valid == text.size()) return;
      words.add(text.substr(valid, 1));
      text.remove_prefix(valid + 1);
    }
  }

  void add_valid(std::string_view text) {
    while (!text.empty()) {
      const std::string_view chunk = text.substr(0, chunk_size(text));
      std::size_t start = 0;
      for (const std::size_t end : pre.split(chunk)) {
        words.add(chunk.substr(start, end - start));
        start = end;
      }
      text.remove_prefix(chunk.size());
    }
  }

  // Long texts are cut after the end of a line that has only that one white space around it: no
  // word of any rule goes over that.
  static std::size_t chunk_size(std::string_view text) {
    const auto is_seen = [&](std::size_t at) { return text[at] > ' ' && text[at] < 0x7F; };
    for (std::size_t at = kTrainChunk; at + 1 < text.size(); ++at) {
      if (text[at] == '\n' && is_seen(at - 1) && is_seen(at + 1)) return at + 1;
    }
    return text.size();
  }

  TokenizerTrainOptions options;
  tok::PreTokenizer pre;
  tok::ByteTrie special;
  WordCounts words;
  std::uint64_t bytes = 0;
};

TokenizerTrainer::TokenizerTrainer(TokenizerTrainOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

TokenizerTrainer::~TokenizerTrainer() = default;

void TokenizerTrainer::add(std::string_view text) {
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = state_->special_length(text.substr(at));
    if (length == 0) {
      ++at;
      continue;
    }
    state_->add_plain(text.substr(start, at - start));
    at += length;
    start = at;
  }
  state_->add_plain(text.substr(start));
}

TrainedTokenizer TokenizerTrainer::train() const {
  const TokenizerTrainOptions& options = state_->options;
  if (state_->bytes == 0) {
    throw Error(ErrorKind::BadArgument, kTrainWhere, "there is no text to learn from");
  }
  std::vector<std::string> tokens = options.special;
  for (unsigned byte = 0; byte < kByteTokens; ++byte) {
    tokens.push_back(tok::to_utf8(tok::character_of_byte(static_cast<unsigned char>(byte))));
  }
  MergeLearner learner(state_->words, std::move(tokens), options.special.size());
  learner.learn(options);

  TrainedTokenizer out;
  out.text_bytes = state_->bytes;
  out.text_tokens = learner.text_tokens();
  out.tokens = learner.take_tokens();
  out.merges = learner.take_merges();
  out.special = options.special.size();
  out.pre = options.pre;
  out.begin = options.begin;
  out.end = options.end;
  out.end_of_turn = options.end_of_turn;
  out.chat_template = options.chat_template;
  return out;
}

void TrainedTokenizer::add_to(GgufWriter& writer) const {
  constexpr std::int32_t kNormalKind = 1, kControlKind = 3;  // by the numbers of the files
  std::vector<std::int32_t> kinds(tokens.size(), kNormalKind);
  std::fill_n(kinds.begin(), special, kControlKind);
  writer.add("tokenizer.ggml.model", "gpt2");
  writer.add("tokenizer.ggml.pre", pre);
  writer.add("tokenizer.ggml.tokens", GgufValue::array(std::span<const std::string>(tokens)));
  writer.add("tokenizer.ggml.token_type", GgufValue::array(std::span<const std::int32_t>(kinds)));
  writer.add("tokenizer.ggml.merges", GgufValue::array(std::span<const std::string>(merges)));
  const auto add_id = [&](std::string_view key, const std::string& text) {
    const auto found = std::find(tokens.begin(), tokens.end(), text);
    if (!text.empty()) writer.add(key, static_cast<std::uint32_t>(found - tokens.begin()));
  };
  add_id("tokenizer.ggml.bos_token_id", begin);
  add_id("tokenizer.ggml.eos_token_id", end);
  add_id("tokenizer.ggml.eot_token_id", end_of_turn);
  writer.add("tokenizer.ggml.add_bos_token", !begin.empty());
  writer.add("tokenizer.ggml.add_eos_token", false);
  if (!chat_template.empty()) writer.add("tokenizer.chat_template", chat_template);
}

}  // namespace tl
