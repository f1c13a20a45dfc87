#include "tl/runtime/fault.h"

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <string_view>

#include "runtime/context.h"
#include "tl/base/error.h"
#include "tl/runtime/device.h"

namespace tl {

namespace {

constexpr unsigned kTagShift = 56;
constexpr unsigned kMostTags = 255;

struct Tags {
  std::mutex mutex;
  std::array<std::string_view, kMostTags> names;  // of tag i + 1
  unsigned count = 0;
};

Tags& tags() {
  static auto* const all = new Tags;
  return *all;
}

std::string_view name_of(unsigned tag) {
  Tags& all = tags();
  const std::lock_guard lock(all.mutex);
  return tag >= 1 && tag <= all.count ? all.names[tag - 1] : "kernel";
}

}  // namespace

unsigned fault_tag(std::string_view op) {
  Tags& all = tags();
  const std::lock_guard lock(all.mutex);
  for (unsigned i = 0; i < all.count; ++i) {
    if (all.names[i] == op) return i + 1;
  }
  if (all.count == kMostTags) {
    throw Error(ErrorKind::Overflow, op, "there is room for ", kMostTags, " kinds of faults");
  }
  all.names[all.count++] = op;
  return all.count;
}

Fault* Context::fault_word() {
  if (Fault* word = fault_.load(std::memory_order_acquire); word != nullptr) return word;
  const std::lock_guard lock(fault_mutex_);
  if (Fault* word = fault_.load(std::memory_order_relaxed); word != nullptr) return word;
  const CurrentContext current(*this);
  void* address = nullptr;
  count(counters_.host_allocations);
  check(table_.allocate_host(&address, sizeof(Fault)), "fault word");
  auto* word = new (address) Fault{};
  fault_.store(word, std::memory_order_release);
  return word;
}

void Context::take_fault(Fault& word) {
  std::atomic_ref<unsigned long long> what(word.what);
  if (what.load(std::memory_order_relaxed) == 0) return;
  // Of two threads that wait at the same time, one gets it.
  const unsigned long long taken = what.exchange(0, std::memory_order_acq_rel);
  if (taken == 0) return;
  const auto size = std::atomic_ref<long long>(word.size).load(std::memory_order_relaxed);
  const unsigned tag = static_cast<unsigned>(taken >> kTagShift);
  constexpr unsigned kSpare = 64 - kTagShift;  // the index has a sign
  const auto index = static_cast<long long>(taken << kSpare) >> kSpare;
  throw Error(ErrorKind::InvalidIndex, name_of(tag), "index ", index,
              " is outside a dimension of size ", size, " (found on ", location_, ")");
}

}  // namespace tl
