// Tensors that are loaded when they are first asked for and kept as long as there is room.
//
//   WeightCache cache(std::uint64_t{4} << 30);
//   const QTensor w = cache.get("blk.0.ffn_up.weight", [&] {
//     return load_tensor(file, "blk.0.ffn_up.weight", device);
//   });
//
// get() gives a share: nothing is copied. When the tensors kept have more bytes than the budget,
// those that were not asked for longest are let go of. One that somebody still holds stays as it
// is, and as long as it is held the cache gives it out again instead of loading it twice.
//
// All of it may be used from several threads. Threads that ask for one tensor wait for one of them
// to load it; different tensors are loaded at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "tl/quant/qtensor.h"

namespace tl {

struct WeightCacheStatistics {
  std::uint64_t hits = 0;      // it was kept
  std::uint64_t shared = 0;    // it was let go of, and somebody still held it
  std::uint64_t waits = 0;     // another thread was loading it
  std::uint64_t loads = 0;     // the loader was called
  std::uint64_t failures = 0;  // of them, those that threw
  std::uint64_t evictions = 0;
  std::size_t tensors = 0;       // kept
  std::uint64_t bytes = 0;       // of the memory they are in; what two share counts once
  std::size_t held_tensors = 0;  // let go of and held by others
  std::uint64_t held_bytes = 0;  // of them, where nothing kept is in the same memory
  std::uint64_t budget_bytes = 0;
};

class WeightCache {
 public:
  using Loader = std::function<QTensor()>;

  explicit WeightCache(std::uint64_t budget_bytes);
  ~WeightCache();
  WeightCache(const WeightCache&) = delete;
  WeightCache& operator=(const WeightCache&) = delete;

  // What `load` throws is thrown here and to all who wait for the same tensor; nothing is kept
  // then, and the next get() tries again. A tensor larger than the budget is given out and not
  // kept. A loader may ask for other tensors; for one that waits for its own, BadArgument is
  // thrown.
  QTensor get(std::string_view key, const Loader& load);
  // What is kept or held. Loads nothing, waits for nothing.
  std::optional<QTensor> find(std::string_view key);

  // Lets go of the tensors longest not asked for until at most that many bytes are kept; how many
  // bytes that were.
  std::uint64_t trim(std::uint64_t bytes);
  void set_budget(std::uint64_t bytes);  // and trims to it
  // These also forget who holds what. A load under way goes on, and its result is not kept.
  bool erase(std::string_view key);  // was it there?
  void clear();

  WeightCacheStatistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tl
