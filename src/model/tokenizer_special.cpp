#include "model/tokenizer_special.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <queue>
#include <tuple>

namespace tl::tok {

namespace {

struct Candidate {
  std::size_t length;
  TokenId token;
  std::size_t at;
  // The best is on top of a queue.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tuple(a.length, b.token, b.at) < std::tuple(b.length, a.token, a.at);
  }
};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The longest token at a place of the text that is at most `most` bytes.
Candidate longest(const ByteTrie& trie, std::string_view text, std::size_t at, std::size_t most) {
  Candidate best{0, kNoToken, at};
  auto node = ByteTrie::kRoot;
  for (std::size_t i = at; i < text.size() && i - at < most; ++i) {
    const auto next = trie.step(node, text[i]);
    if (!next) break;
    node = *next;
    if (trie.value(node) != ByteTrie::kNothing) best = {i - at + 1, trie.value(node), at};
  }
  return best;
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!vocabulary.has(id, Control | UserDefined | Unknown)) continue;
    all_.add(vocabulary.texts.text(i), id);
    if (!vocabulary.has(id, Control | Unknown)) user_.add(vocabulary.texts.text(i), id);
  }
}

std::vector<Fragment> SpecialTokens::split(std::string_view text, bool control) const {
  const ByteTrie& trie = control ? all_ : user_;
  std::vector<Fragment> fragments;
  std::priority_queue<Candidate> queue;
  if (!trie.is_empty()) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      const Candidate best = longest(trie, text, at, text.size());
      if (best.length != 0) queue.push(best);
    }
  }
  if (queue.empty()) {
    if (!text.empty()) fragments.push_back({text, kNoToken});
    return fragments;
  }

  // Which bytes are taken, and by which token from where. Tokens come in order of their lengths, so
  // one that overlaps a taken part without beginning in it reaches it with its last byte.
  std::vector<bool> taken(text.size(), false);
  std::vector<Candidate> found;
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    if (taken[best.at]) continue;
    if (taken[best.at + best.length - 1]) {
      const Candidate shorter = longest(trie, text, best.at, best.length - 1);
      if (shorter.length != 0) queue.push(shorter);
      continue;
    }
    std::size_t start = best.at, end = best.at + best.length;
    if (vocabulary_.has(best.token, StripLeft)) {
      while (start > 0 && !taken[start - 1] && is_space(text[start - 1])) --start;
    }
    if (vocabulary_.has(best.token, StripRight)) {
      while (end < text.size() && !taken[end] && is_space(text[end])) ++end;
    }
    std::fill(taken.begin() + static_cast<std::ptrdiff_t>(start),
              taken.begin() + static_cast<std::ptrdiff_t>(end), true);
    found.push_back(best);
  }
  std::sort(found.begin(), found.end(),
            [](const Candidate& a, const Candidate& b) { return a.at < b.at; });

  std::size_t at = 0;
  const auto add_text = [&](std::size_t end) {
    while (at < end && taken[at]) ++at;  // white space that went with a token
    std::size_t last = end;
    while (last > at && taken[last - 1]) --last;
    if (last > at) fragments.push_back({text.substr(at, last - at), kNoToken});
  };
  for (const Candidate& token : found) {
    add_text(token.at);
    fragments.push_back({text.substr(token.at, token.length), token.token});
    at = token.at + token.length;
  }
  add_text(text.size());
  return fragments;
}

}  // namespace tl::tok
