// Keys and values of conversations that ended a while ago, so that one which goes on, or begins
// alike, need not be read again. Blocks are shared with who uses them; those that several entries
// share count once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "tl/model/kv_cache.h"
#include "tl/model/tokenizer.h"

namespace tl::cli::serve {

class PrefixCache {
 public:
  explicit PrefixCache(std::uint64_t budget_bytes) : budget_(budget_bytes) {}

  // The longest start of `tokens` that is known; a cache of no model where nothing is.
  KvCache find(std::span<const TokenId> tokens);
  // The cache has the first cache.length() of the tokens. What was used longest ago makes room.
  void add(std::vector<TokenId> tokens, KvCache cache);
  void clear();

  std::uint64_t bytes() const noexcept { return bytes_; }
  std::size_t entries() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::vector<TokenId> tokens;  // as many as the cache has positions
    KvCache cache;
  };
  void count();

  static constexpr std::size_t kMostEntries = 256;  // a search looks at each of them

  std::uint64_t budget_;
  std::uint64_t bytes_ = 0;
  std::list<Entry> entries_;  // the one that was used last is first
};

}  // namespace tl::cli::serve
