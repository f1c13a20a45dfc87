#include "tl/model/weight_cache.h"

#include <condition_variable>
#include <exception>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/gguf_cursor.h"
#include "tl/base/error.h"
#include "tl/runtime/weak_memory.h"

namespace tl {

namespace {

// A tensor that is known without being kept.
struct Held {
  explicit Held(const QTensor& tensor)
      : memory(tensor.memory()), type(tensor.type()), shape(tensor.shape()) {}

  std::optional<QTensor> lock() const {
    std::optional<RawMemory> shared = memory.lock();
    if (!shared) return std::nullopt;
    return QTensor::from_memory(std::move(*shared), type, shape);
  }

  WeakMemory memory;
  QType type;
  Shape shape;
};

// The block a tensor is in, which may be larger than the tensor. 0 for no bytes.
std::uint64_t block_of(const QTensor& tensor) { return tensor.memory().generation(); }
std::uint64_t block_bytes(const QTensor& tensor) {
  const BlockRef& block = tensor.memory().block();
  return block ? block->bytes : 0;
}

struct Load {
  std::thread::id thread;  // that loads
  bool is_wanted = true;   // to be kept
  bool is_done = false;
  std::optional<QTensor> result;
  std::exception_ptr problem;
};

}  // namespace

struct WeightCache::State {
  struct Kept {
    std::string key;
    QTensor tensor;
  };
  struct Block {
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;
  };
  using Order = std::list<Kept>;  // what was asked for last is first
  // What is taken out under the lock and let go of after it: giving memory back takes time.
  using Dropped = Order;

  mutable std::mutex mutex;  // guards all below
  std::condition_variable loaded;
  Order order;
  std::map<std::string, Order::iterator, std::less<>> kept;
  std::map<std::string, Held, std::less<>> held;  // and no longer kept; some are expired
  std::size_t sweep_at = 64;                      // of held, when the expired are taken out
  std::map<std::string, std::shared_ptr<Load>, std::less<>> loading;
  std::map<std::thread::id, const Load*> waiting;
  std::map<std::uint64_t, Block> blocks;  // of kept tensors, by their generation
  std::uint64_t bytes = 0;                // of blocks
  WeightCacheStatistics counts;           // those that only grow

  std::optional<QTensor> find(std::string_view key, Dropped& dropped) {
    if (const auto found = kept.find(key); found != kept.end()) {
      ++counts.hits;
      order.splice(order.begin(), order, found->second);
      return found->second->tensor;
    }
    const auto found = held.find(key);
    if (found == held.end()) return std::nullopt;
    std::optional<QTensor> tensor = found->second.lock();
    if (tensor) {
      ++counts.shared;
      keep(key, *tensor, dropped);
    } else {
      held.erase(found);
    }
    return tensor;
  }

  void keep(std::string_view key, const QTensor& tensor, Dropped& dropped) {
    if (block_bytes(tensor) > counts.budget_bytes) {
      hold(std::string(key), tensor);
      return;
    }
    Order one;  // all that may fail comes first, so that the lists always agree
    one.push_front({std::string(key), tensor});
    const auto place = kept.emplace(key, one.begin()).first;
    try {
      Block& block = blocks[block_of(tensor)];
      if (block.tensors++ == 0) {
        block.bytes = block_bytes(tensor);
        bytes += block.bytes;
      }
    } catch (...) {
      kept.erase(place);
      throw;
    }
    order.splice(order.begin(), one);
    if (const auto found = held.find(key); found != held.end()) held.erase(found);
    trim(counts.budget_bytes, dropped);
  }

  void hold(std::string key, const QTensor& tensor) {
    held.insert_or_assign(std::move(key), Held(tensor));
    if (held.size() < sweep_at) return;
    std::erase_if(held, [](const auto& each) { return each.second.memory.expired(); });
    sweep_at = 2 * held.size() + 64;
  }

  // Takes a tensor out. Its bytes are freed with the last one of its block.
  void drop(Order::iterator at, Dropped& dropped) {
    const auto block = blocks.find(block_of(at->tensor));
    if (--block->second.tensors == 0) {
      bytes -= block->second.bytes;
      blocks.erase(block);
    }
    kept.erase(at->key);
    dropped.splice(dropped.end(), order, at);
  }

  void trim(std::uint64_t most, Dropped& dropped) {
    while (bytes > most && !order.empty()) {
      const auto last = std::prev(order.end());
      hold(last->key, last->tensor);
      drop(last, dropped);
      ++counts.evictions;
    }
  }

  // Would waiting for `load` never end, because its thread waits for this one?
  bool is_circle(const Load& load) const {
    for (const Load* at = &load; at != nullptr && !at->is_done;) {
      if (at->thread == std::this_thread::get_id()) return true;
      const auto next = waiting.find(at->thread);
      at = next == waiting.end() ? nullptr : next->second;
    }
    return false;
  }

  QTensor wait(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Load>& load,
               std::string_view key) {
    if (is_circle(*load)) {
      throw Error(ErrorKind::BadArgument, "weight cache", "the loader of ", gguf::Quoted{key},
                  " waits for that same tensor");
    }
    ++counts.waits;
    waiting.insert_or_assign(std::this_thread::get_id(), load.get());
    loaded.wait(lock, [&] { return load->is_done; });
    waiting.erase(std::this_thread::get_id());
    if (load->problem) std::rethrow_exception(load->problem);
    return *load->result;
  }
};

WeightCache::WeightCache(std::uint64_t budget_bytes) : state_(std::make_unique<State>()) {
  state_->counts.budget_bytes = budget_bytes;
}

WeightCache::~WeightCache() = default;

QTensor WeightCache::get(std::string_view key, const Loader& load) {
  State& state = *state_;
  State::Dropped dropped;  // outlives the lock
  std::unique_lock lock(state.mutex);
  if (std::optional<QTensor> found = state.find(key, dropped)) return std::move(*found);
  if (const auto under_way = state.loading.find(key); under_way != state.loading.end()) {
    const std::shared_ptr<Load> other = under_way->second;
    return state.wait(lock, other, key);
  }

  const auto mine = std::make_shared<Load>();
  mine->thread = std::this_thread::get_id();
  const auto place = state.loading.emplace(std::string(key), mine).first;
  ++state.counts.loads;
  lock.unlock();
  std::optional<QTensor> result;
  std::exception_ptr problem;
  try {
    result = load();
  } catch (...) {
    problem = std::current_exception();
  }
  lock.lock();
  if (mine->is_wanted) state.loading.erase(place);  // else it is out already
  if (result && mine->is_wanted) {
    try {
      state.keep(key, *result, dropped);
    } catch (...) {  // no memory for the entry
      problem = std::current_exception();
    }
  }
  if (problem) ++state.counts.failures;
  mine->result = result;
  mine->problem = problem;
  mine->is_done = true;
  state.loaded.notify_all();
  lock.unlock();
  if (problem) std::rethrow_exception(problem);
  return std::move(*result);
}

std::optional<QTensor> WeightCache::find(std::string_view key) {
  State::Dropped dropped;
  const std::lock_guard lock(state_->mutex);
  return state_->find(key, dropped);
}

std::uint64_t WeightCache::trim(std::uint64_t bytes) {
  State::Dropped dropped;
  const std::lock_guard lock(state_->mutex);
  const std::uint64_t before = state_->bytes;
  state_->trim(bytes, dropped);
  return before - state_->bytes;
}

void WeightCache::set_budget(std::uint64_t bytes) {
  State::Dropped dropped;
  const std::lock_guard lock(state_->mutex);
  state_->counts.budget_bytes = bytes;
  state_->trim(bytes, dropped);
}

bool WeightCache::erase(std::string_view key) {
  State& state = *state_;
  State::Dropped dropped;
  const std::lock_guard lock(state.mutex);
  bool was_there = false;
  if (const auto found = state.kept.find(key); found != state.kept.end()) {
    state.drop(found->second, dropped);
    was_there = true;
  }
  if (const auto found = state.held.find(key); found != state.held.end()) {
    was_there = !found->second.memory.expired();
    state.held.erase(found);
  }
  if (const auto found = state.loading.find(key); found != state.loading.end()) {
    found->second->is_wanted = false;
    state.loading.erase(found);
  }
  return was_there;
}

void WeightCache::clear() {
  State& state = *state_;
  State::Dropped dropped;
  const std::lock_guard lock(state.mutex);
  dropped.swap(state.order);
  state.kept.clear();
  state.held.clear();
  state.blocks.clear();
  state.bytes = 0;
  for (const auto& [key, load] : state.loading) load->is_wanted = false;
  state.loading.clear();
}

WeightCacheStatistics WeightCache::statistics() const {
  const State& state = *state_;
  std::vector<RawMemory> alive;  // let go of outside the lock
  const std::lock_guard lock(state.mutex);
  WeightCacheStatistics now = state.counts;
  now.tensors = state.kept.size();
  now.bytes = state.bytes;
  std::set<std::uint64_t> counted;
  for (const auto& [key, held] : state.held) {
    std::optional<RawMemory> memory = held.memory.lock();
    if (!memory) continue;
    ++now.held_tensors;
    const std::uint64_t block = memory->generation();
    if (!state.blocks.contains(block) && counted.insert(block).second) {
      now.held_bytes += memory->block()->bytes;
    }
    alive.push_back(std::move(*memory));
  }
  return now;
}

}  // namespace tl
