// One opened device: its driver table and context, its properties, its pools of memory and its
// loaded modules. There is one Context per location for the life of the process; Device handles and
// blocks of memory point to it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/driver/table.h"
#include "tl/runtime/location.h"
#include "tl/runtime/properties.h"

namespace tl {

class ModuleStore;
class Pool;
struct Fault;
struct StreamState;

// The counters behind DriverCalls. Relaxed: they are statistics, and nothing is ordered by them.
struct DriverCounters {
  using Counter = std::atomic<std::uint64_t>;
  Counter allocations{0}, frees{0}, host_allocations{0}, host_frees{0}, uploads{0}, downloads{0},
      device_copies{0}, fills{0}, launches{0}, module_loads{0}, module_unloads{0}, events{0},
      synchronizations{0};

  DriverCalls read() const noexcept;
};

inline void count(DriverCounters::Counter& counter) noexcept {
  counter.fetch_add(1, std::memory_order_relaxed);
}

class Context {
 public:
  // Opens the device at the first call. Throws DriverMissing or NoSuchDevice.
  static Context& get(DeviceLocation location);

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceLocation& location() const noexcept { return location_; }
  std::string text() const { return location_.text(); }
  const driver::Table& table() const noexcept { return table_; }
  driver::Handle native() const noexcept { return native_; }
  const DeviceProperties& properties() const noexcept { return properties_; }
  DriverCounters& counters() noexcept { return counters_; }

  Pool& pool() noexcept { return *pool_; }            // memory on the device
  Pool& host_pool() noexcept { return *host_pool_; }  // pinned host memory
  ModuleStore& modules() noexcept { return *modules_; }
  StreamState& default_stream() noexcept { return *default_stream_; }

  MemoryInfo memory_info();

  // Where this device's kernels report a bad index; made at the first call. Throws.
  Fault* fault_word();
  // After a wait: throws InvalidIndex for what a kernel has reported, once. One load when nothing
  // is wrong.
  void check_fault() {
    if (Fault* word = fault_.load(std::memory_order_acquire); word != nullptr) take_fault(*word);
  }

  // Events without timing, reused. acquire_event throws; a context must be current for it.
  driver::Handle acquire_event(std::string_view where);
  void release_event(driver::Handle event) noexcept;

  // Drops a reference to a stream later, from a place where destroying it is allowed.
  void defer_stream_release(StreamState* stream) noexcept;
  void release_deferred_streams() noexcept;

  // Throws for anything but success: DeviceFault of kind Device or DeviceLost, with `where` and the
  // device in front. Out of memory is the pool's business and comes as a plain Device fault from
  // here.
  void check(driver::Status status, std::string_view where) {
    if (status != driver::kSuccess) [[unlikely]]
      fail(status, where);
  }
  // For destructors: counts and reports through the error hook instead of throwing.
  void note_failure(driver::Status status, std::string_view where) noexcept;
  // Throws DeviceLost when an earlier call found the device gone.
  void require_alive(std::string_view where) const;
  std::uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }
  void forget_loss_for_testing() noexcept { lost_.store(false, std::memory_order_relaxed); }
  bool lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  Context(DeviceLocation location, const driver::Table& table);
  ~Context();
  [[noreturn]] void fail(driver::Status status, std::string_view where);
  void take_fault(Fault& word);

  DeviceLocation location_;
  const driver::Table& table_;
  driver::Handle native_ = nullptr;
  DeviceProperties properties_;
  DriverCounters counters_;
  std::atomic<bool> lost_{false};
  std::atomic<std::uint64_t> failures_{0};
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Pool> host_pool_;
  std::unique_ptr<ModuleStore> modules_;
  StreamState* default_stream_ = nullptr;
  std::mutex fault_mutex_;              // guards making fault_
  std::atomic<Fault*> fault_{nullptr};  // lives as long as the context: for ever
  std::mutex event_mutex_;
  std::vector<driver::Handle> free_events_;
  std::size_t events_made_ = 0;
  std::mutex deferred_mutex_;
  std::atomic<StreamState*> deferred_{nullptr};
};

// Makes a context the thread's current one for a scope and gives the thread its own back
// afterwards. Every entry into the driver stands under one: the library never relies on, nor
// changes, what the calling thread had selected.
class CurrentContext {
 public:
  explicit CurrentContext(Context& context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const driver::Table& table_;
  driver::Handle previous_ = nullptr;
  bool changed_ = false;
};

}  // namespace tl
