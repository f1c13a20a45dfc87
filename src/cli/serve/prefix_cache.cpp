#include "cli/serve/prefix_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tl/model/engine.h"

namespace tl::cli::serve {

namespace {

std::int64_t common_start(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

KvCache PrefixCache::find(std::span<const TokenId> tokens) {
  auto best = entries_.end();
  std::int64_t most = 0;
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    const std::int64_t same = common_start(at->tokens, tokens);
    if (same <= most) continue;
    best = at;
    most = same;
  }
  if (best == entries_.end()) return {};
  entries_.splice(entries_.begin(), entries_, best);
  KvCache fork = best->cache.fork();
  fork.truncate(most);
  return fork;
}

void PrefixCache::add(std::vector<TokenId> tokens, KvCache cache) {
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(cache.length())));
  if (budget_ == 0 || tokens.empty()) return;
  // What only says the start of the new one says nothing more, and the other way round.
  const auto is_start = [](const std::vector<TokenId>& start, const std::vector<TokenId>& whole) {
    return start.size() <= whole.size() && std::equal(start.begin(), start.end(), whole.begin());
  };
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (!is_start(tokens, at->tokens)) continue;
    entries_.splice(entries_.begin(), entries_, at);
    return;
  }
  entries_.remove_if([&](const Entry& entry) { return is_start(entry.tokens, tokens); });
  entries_.push_front({std::move(tokens), std::move(cache)});
  count();
  while (!entries_.empty() && (bytes_ > budget_ || entries_.size() > kMostEntries)) {
    entries_.pop_back();
    count();
  }
}

void PrefixCache::clear() {
  entries_.clear();
  bytes_ = 0;
}

void PrefixCache::count() {
  std::vector<const KvCache*> caches;
  caches.reserve(entries_.size());
  for (const Entry& entry : entries_) caches.push_back(&entry.cache);
  bytes_ = size_bytes(caches);
}

}  // namespace tl::cli::serve
