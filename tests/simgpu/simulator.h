// The simulated GPUs behind both ABIs: devices, memory, streams, events, modules and launches.
//
// Every call that a vendor's API makes relative to a current context or device comes here with that
// device's number. Handles are numbers that are never used twice, so that a stale one is always
// recognised; one of another device is refused like a stale one. The simulator is stricter than the
// real drivers where being strict shows a mistake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "control.h"
#include "grid.h"
#include "memory.h"
#include "module.h"
#include "settings.h"
#include "status.h"
#include "stream.h"

namespace simgpu {

// What differs between the vendors beyond names. Each driver library defines its own.
struct Flavour {
  Dim3 max_grid;
  unsigned default_dynamic_shared;  // without asking for more through a function attribute
  unsigned max_dynamic_shared;
  bool limit_threads_per_grid;  // HIP: grid times block below 2^32 in each dimension
  Status too_many_threads;
  std::uintptr_t extra_end;  // closes the list of the `extra` form of a launch
};
extern const Flavour kFlavour;

using Handle = std::uint64_t;  // 0 is the null stream, and no handle of anything else

enum class Fault : unsigned {
  Alloc,
  HostAlloc,
  Launch,
  ModuleLoad,
  Copy,
  Fill,
  StreamCreate,
  EventCreate,
  EventRecord,
  Sync,
  kCount
};

struct LaunchCall {
  Handle function = 0;
  Dim3 grid, block;
  unsigned shared_bytes = 0;
  Handle stream = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  bool early = false;  // may begin before what is ahead of it in the stream has ended
};

class Simulator {
 public:
  static Simulator& get();
  const Settings& settings() const { return settings_; }
  bool has_device(int device) const { return device >= 0 && device < settings_.devices; }

  // Contexts: CUDA's primary contexts are counted here, what is current is the ABI's affair.
  void retain_context(int device);
  bool release_context(int device);
  bool context_alive(int device);
  void count_context_switch();
  Status bad_call(Status status);    // counts misuse that the ABI found
  Status device_status(int device);  // the sticky error
  Status memory_info(int device, std::size_t* free, std::size_t* total);

  // simulator_memory.cpp
  Status allocate(int device, std::size_t bytes, void** out);
  Status allocate_async(int device, std::size_t bytes, Handle stream, void** out);
  Status free(int device, void* address);
  Status free_async(int device, void* address, Handle stream);
  Status host_allocate(std::size_t bytes, void** out);
  Status host_free(void* address);
  Status copy_to_device(int device, void* to, const void* from, std::size_t bytes, Handle stream);
  Status copy_to_host(int device, void* to, const void* from, std::size_t bytes, Handle stream);
  Status copy_on_device(int device, void* to, const void* from, std::size_t bytes, Handle stream);
  Status copy_peer(int device, void* to, int to_device, const void* from, int from_device,
                   std::size_t bytes, Handle stream);
  // `count` elements of `width` bytes (1, 2 or 4).
  Status fill(int device, void* to, unsigned value, unsigned width, std::size_t count,
              Handle stream);

  // simulator_stream.cpp
  Status create_stream(int device, Handle* out);
  Status destroy_stream(int device, Handle stream);
  Status synchronize_stream(int device, Handle stream);
  Status query_stream(int device, Handle stream);
  Status wait_event(int device, Handle stream, Handle event);
  Status synchronize_device(int device);
  Status create_event(int device, bool timing, Handle* out);
  Status destroy_event(int device, Handle event);
  Status record_event(int device, Handle event, Handle stream);
  Status query_event(Handle event);
  Status synchronize_event(Handle event);
  Status elapsed_time(Handle start, Handle end, float* milliseconds);

  // simulator_module.cpp
  Status load_module(int device, const void* image, Handle* out);
  Status unload_module(int device, Handle module);
  Status get_function(int device, Handle module, const char* name, Handle* out);
  Status get_variable(int device, Handle module, const char* name, void** address,
                      std::size_t* bytes);
  Status function_attribute(Handle function, int attribute, int* value);
  Status set_function_attribute(Handle function, int attribute, int value);
  Status launch(int device, const LaunchCall& call);

  // control.cpp
  bool plan_failure(const char* what, long nth);
  void lose_device(int device);
  void compiled_for(int architecture);
  void reset();
  SimCounters counters();
  int check();
  long pending(int device);

 private:
  using Lock = Scheduler::Lock;

  struct Event {
    int device;
    bool timing;
    MarkerRef latest;  // null until recorded
  };
  struct LoadedModule {
    int device;
    std::shared_ptr<Module> code;
    std::map<std::string, Handle> functions;
    std::vector<BlockRef> variables;
  };
  // Kept after its module is gone, so that a launch of it is recognised.
  struct Function {
    int device;
    std::shared_ptr<Module> code;  // null once unloaded
    const gpu_host::Entry* entry;
    std::string name;
    unsigned max_dynamic_shared;
    int compiled_for;  // the virtual architecture, as CUDA counts
  };

  Simulator();

  // The first thing every call does: null Status means go on.
  bool fails(Fault what);                                // a planned failure is due now
  StreamRef stream_of(int device, Handle stream) const;  // null for a stale or foreign handle
  BlockRef range_of(int device, const void* address, std::size_t bytes) const;
  Status misuse(Status status);
  Status take_memory(Lock& lock, int device, std::size_t bytes, Stream* reuse, void** out);
  void give_back(const BlockRef& block);
  Status check_shape(const LaunchCall& call, const Function& function) const;
  static Status pack_arguments(const LaunchCall& call, Launch& launch);

  const Settings settings_;
  std::mutex mutex_;
  Memory memory_;
  Scheduler scheduler_;
  std::vector<std::unique_ptr<Device>> devices_;
  Handle next_handle_ = 0x51A0'0000'0010;
  std::unordered_map<Handle, StreamRef> streams_;
  std::unordered_map<Handle, Event> events_;
  std::unordered_map<Handle, LoadedModule> modules_;
  std::unordered_map<Handle, Function> functions_;
  SimCounters counters_{};
  int compiled_for_ = 0;  // what new functions say; 0: the device's own
  long countdown_[static_cast<unsigned>(Fault::kCount)] = {};

  Handle new_handle() { return next_handle_ += 16; }
};

}  // namespace simgpu
