// Reaching into a running simgpu: fault injection, counters and checks.
//
// Each driver library (libsimcuda.so, libsimhip.so, libsimhip5.so) holds a simulator of its own and
// exports the C functions below. A test finds them in the very library the product has loaded,
// through the same path:
//
//   simgpu::Control sim(path_of_the_driver);
//   sim.fail("alloc", 3);             // the third allocation from now runs out of memory
//   EXPECT_EQ(sim.counters().bad_calls, 0u);
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>

extern "C" {

// The first group counts calls that succeeded since the start (or simgpu_reset), the second what is
// held right now.
struct SimCounters {
  std::uint64_t allocs, frees;
  std::uint64_t host_allocs, host_frees;
  std::uint64_t htod, dtoh, dtod, peer, fills;
  std::uint64_t launches;
  std::uint64_t early_launches;  // of those, allowed to begin before what is ahead has ended
  std::uint64_t module_loads, module_unloads, functions;
  std::uint64_t context_switches;  // cuCtxSetCurrent or hipSetDevice
  std::uint64_t
      bad_calls;  // misuse: stale handles, foreign pointers, ranges outside a block, no context
  std::uint64_t guard_hits;  // guard zones found damaged, each counted once

  std::uint64_t live_streams, live_events, live_modules;
  std::uint64_t live_bytes, live_blocks;            // device memory
  std::uint64_t live_host_bytes, live_host_blocks;  // pinned memory
};

}  // extern "C"

namespace simgpu {

// The control functions of one driver library. Loads the library when nobody has; it is never
// unloaded.
class Control {
 public:
  explicit Control(const std::string& driver_path) {
    void* library = dlopen(driver_path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("simgpu: ") + dlerror());
    find(library, "simgpu_fail", fail_);
    find(library, "simgpu_lose_device", lose_device_);
    find(library, "simgpu_compiled_for", compiled_for_);
    find(library, "simgpu_reset", reset_);
    find(library, "simgpu_counters", counters_);
    find(library, "simgpu_check", check_);
    find(library, "simgpu_pending", pending_);
  }

  // The nth next call of the kind (1 is the very next) fails once; 0 takes a planned failure back.
  // Kinds: alloc, host_alloc, launch, module_load, copy, fill, stream_create, event_create,
  // event_record, sync.
  void fail(const char* what, long nth = 1) const {
    if (fail_(what, nth) != 0)
      throw std::invalid_argument(std::string("simgpu: no fault kind ") + what);
  }
  // Every later call on the device answers 719, and nothing queued on it runs any more.
  void lose_device(int device) const { lose_device_(device); }
  // Functions that are found from now on say that they were compiled for this virtual architecture
  // (75, 90); 0: the device's own, as at first.
  void compiled_for(int architecture) const { compiled_for_(architecture); }
  // Forgets planned failures, brings lost devices back (their queued work is dropped), zeroes the
  // call counters. Memory, streams, events and modules stay as they are.
  void reset() const { reset_(); }
  SimCounters counters() const {
    SimCounters all;
    counters_(&all);
    return all;
  }
  // Damaged guard zones around live blocks, two zones a block.
  int check() const { return check_(); }
  // Items queued on all streams of the device and not finished.
  long pending(int device) const { return pending_(device); }

 private:
  template <class F>
  static void find(void* library, const char* name, F& out) {
    out = reinterpret_cast<F>(dlsym(library, name));
    if (out == nullptr) throw std::runtime_error(std::string("simgpu: this driver has no ") + name);
  }

  int (*fail_)(const char* what, long nth) = nullptr;
  void (*lose_device_)(int device) = nullptr;
  void (*compiled_for_)(int architecture) = nullptr;
  void (*reset_)() = nullptr;
  void (*counters_)(SimCounters* out) = nullptr;
  int (*check_)() = nullptr;
  long (*pending_)(int device) = nullptr;
};

}  // namespace simgpu
