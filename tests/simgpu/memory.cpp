// Mapping, guarding and retiring blocks.
#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "sanitizer.h"

namespace simgpu {
namespace {

constexpr unsigned char kCanary = 0xA5;
constexpr std::size_t kPage = 4096;
// Filling a block of gigabytes would cost more than the test that asked for it; such a block reads
// as zero.
constexpr std::size_t kFillLimit = std::size_t{64} << 20;

// Freed mappings, kept without access so that their addresses are not handed out again at once. It
// has a lock of its own: the last reference to a block may go away in a worker thread.
class Quarantine {
 public:
  void add(void* begin, std::size_t bytes) {
    // Mapping over it gives the memory back and keeps the addresses.
    mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    const std::lock_guard lock(mutex_);
    held_.emplace_back(begin, bytes);
    if (held_.size() <= kHeld) return;
    munmap(held_.front().first, held_.front().second);
    held_.pop_front();
  }

 private:
  static constexpr std::size_t kHeld = 256;
  std::mutex mutex_;
  std::deque<std::pair<void*, std::size_t>> held_;
};

Quarantine& quarantine() {
  static auto* all = new Quarantine;  // never destroyed: blocks may outlive static objects
  return *all;
}

// Offset of the first byte that is no canary, or `bytes`.
std::size_t first_damage(const std::byte* zone, std::size_t bytes) {
  unpoison(zone, bytes);
  const auto* end = zone + bytes;
  const auto* hit = std::find_if(zone, end, [](std::byte b) { return b != std::byte{kCanary}; });
  poison(zone, bytes);
  return static_cast<std::size_t>(hit - zone);
}

}  // namespace

Block::Block(int device, std::size_t bytes) : device_(device), begin_(nullptr), size_(bytes) {
  if (bytes > (std::size_t{1} << 46)) throw std::bad_alloc();
  mapped_ = (kFence + kFront + bytes + kBack + kPage - 1) / kPage * kPage + kFence;
  void* mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  begin_ = mapping_ + kFence + kFront;
  std::memset(mapping_ + kFence, kCanary, kFront);
  std::memset(begin_ + size_, kCanary, static_cast<std::size_t>(guard_end() - (begin_ + size_)));
  if (bytes <= kFillLimit) std::memset(begin_, kPoison, bytes);
  mprotect(mapping_, kFence, PROT_NONE);
  mprotect(guard_end(), kFence, PROT_NONE);
  poison(mapping_ + kFence, kFront);
  poison(begin_ + size_, static_cast<std::size_t>(guard_end() - (begin_ + size_)));
}

Block::Block(int device, void* begin, std::size_t bytes)
    : device_(device), begin_(static_cast<std::byte*>(begin)), size_(bytes) {}

Block::~Block() {
  if (mapping_ == nullptr) return;
  unpoison(mapping_, mapped_);
  quarantine().add(mapping_, mapped_);
}

bool Block::holds(const void* address, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto start = reinterpret_cast<std::uintptr_t>(begin_);
  return at >= start && at - start <= size_ && bytes <= size_ - (at - start);
}

int Block::check_guards(std::uint64_t& fresh) {
  if (mapping_ == nullptr) return 0;
  const auto look = [&](const std::byte* zone, std::size_t bytes, const char* side, bool& told) {
    const std::size_t offset = first_damage(zone, bytes);
    if (offset == bytes) return 0;
    if (!told) {
      const auto distance = side[0] == 'b' ? bytes - offset : offset;
      std::fprintf(stderr, "simgpu: a block of %zu bytes on device %d was written %s its %s\n",
                   size_, device_, side[0] == 'b' ? "before" : "after",
                   side[0] == 'b' ? "start" : "end");
      std::fprintf(stderr, "simgpu:   first damaged byte: %zu bytes away\n", distance);
      told = true;
      ++fresh;
    }
    return 1;
  };
  const auto back = static_cast<std::size_t>(guard_end() - (begin_ + size_));
  return look(mapping_ + kFence, kFront, "before", told_front_) +
         look(begin_ + size_, back, "after", told_back_);
}

void Block::set_access(bool open) {
  if (mapping_ == nullptr || device_ == kHostMemory) return;
  mprotect(mapping_ + kFence, mapped_ - 2 * kFence, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

BlockRef Memory::allocate(int device, std::size_t bytes) {
  auto block = std::make_shared<Block>(device, bytes);
  if (protect_ && windows_ == 0) block->set_access(false);
  blocks_[reinterpret_cast<std::uintptr_t>(block->begin())] = block;
  return block;
}

BlockRef Memory::adopt(int device, void* begin, std::size_t bytes) {
  BlockRef& block = blocks_[reinterpret_cast<std::uintptr_t>(begin)];
  if (!block) block = std::make_shared<Block>(device, begin, bytes);
  return block;
}

BlockRef Memory::at(const void* address) const {
  auto next = blocks_.upper_bound(reinterpret_cast<std::uintptr_t>(address));
  if (next == blocks_.begin()) return nullptr;
  const BlockRef& block = std::prev(next)->second;
  return block->holds(address, 1) ? block : nullptr;
}

BlockRef Memory::find(const void* address, std::size_t bytes) const {
  BlockRef block = at(address);
  return block && block->holds(address, bytes) ? block : nullptr;
}

void Memory::release(const BlockRef& block, std::uint64_t& guard_hits) {
  {
    const Window window(*this);
    block->check_guards(guard_hits);
  }
  block->live = false;
  blocks_.erase(reinterpret_cast<std::uintptr_t>(block->begin()));
}

int Memory::check(std::uint64_t& guard_hits) {
  const Window window(*this);
  int damaged = 0;
  for (const auto& [address, block] : blocks_) damaged += block->check_guards(guard_hits);
  return damaged;
}

void Memory::change_access(int by) {
  const bool was_open = windows_ > 0;
  windows_ += by;
  const bool open = windows_ > 0;
  if (!protect_ || open == was_open) return;
  for (const auto& [address, block] : blocks_) block->set_access(open);
}

}  // namespace simgpu
