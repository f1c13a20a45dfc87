// Simulated memory: every allocation is a mapping of its own, fenced on both sides.
//
//   | no access | guard: canary bytes | payload | guard: canary bytes | no access |
//               ^ page                ^ multiple of 512, of no larger power of two
//
// A write just outside the payload lands in a canary and is found at free or by check(); a wild one
// hits the page without access. Under AddressSanitizer the canaries are poisoned, so that a read
// outside is reported as well. What has been freed stays mapped without access for a while, so that
// a late use crashes instead of meeting a new block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace simgpu {

inline constexpr unsigned char kPoison = 0xCD;  // fresh device memory and shared memory
inline constexpr int kHostMemory = -1;          // the "device" of pinned host memory

class Block {
 public:
  Block(int device, std::size_t bytes);  // maps; throws std::bad_alloc
  Block(int device, void* begin,
        std::size_t bytes);  // a variable of a loaded module, owned by the module
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  int device() const { return device_; }
  std::byte* begin() const { return begin_; }
  std::size_t size() const { return size_; }
  bool owned() const { return mapping_ != nullptr; }
  bool holds(const void* address, std::size_t bytes) const;

  // Damaged guard zones, 0 to 2. Those seen for the first time are added to `fresh` and told on
  // stderr.
  int check_guards(std::uint64_t& fresh);
  void set_access(bool open);  // for SIMGPU_PROTECT

  bool live = true;          // false once freed, though queued work may still refer to the block
  bool free_queued = false;  // by a free in stream order

 private:
  std::byte* guard_end() const { return mapping_ + mapped_ - kFence; }

  static constexpr std::size_t kFence = 4096;
  static constexpr std::size_t kFront =
      4096 - 512;                            // leaves the payload aligned to 512 and no more
  static constexpr std::size_t kBack = 512;  // at least

  int device_;
  std::byte* begin_;
  std::size_t size_;
  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  bool told_front_ = false;
  bool told_back_ = false;
};

using BlockRef = std::shared_ptr<Block>;

// All live blocks by address. The caller holds the simulator's lock.
class Memory {
 public:
  explicit Memory(bool protect) : protect_(protect) {}

  BlockRef allocate(int device, std::size_t bytes);
  BlockRef adopt(int device, void* begin, std::size_t bytes);
  BlockRef at(const void* address) const;  // the block that contains the address
  BlockRef find(const void* address,
                std::size_t bytes) const;  // the block that holds the whole range
  void release(const BlockRef& block,
               std::uint64_t& guard_hits);  // checks the guards, then forgets the block
  int check(std::uint64_t& guard_hits);

  // Device memory can be touched while at least one window is open; always, without SIMGPU_PROTECT.
  class Window {
   public:
    explicit Window(Memory& memory) : memory_(memory) { memory_.change_access(+1); }
    ~Window() { memory_.change_access(-1); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

   private:
    Memory& memory_;
  };

 private:
  void change_access(int by);

  std::map<std::uintptr_t, BlockRef> blocks_;
  bool protect_;
  int windows_ = 0;
};

}  // namespace simgpu
