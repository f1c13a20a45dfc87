// What a command took of a device's memory, and whether all of it came back.
#pragma once

#include <cstdint>
#include <string>

#include "tl/runtime/device.h"
#include "tl/runtime/pool.h"

namespace tl::cli {

struct MemoryUse {
  std::uint64_t model = 0;    // bytes of its tensors, mapped or on the device
  std::uint64_t cache = 0;    // of keys and values, at most
  std::uint64_t peak = 0;     // of everything, at most
  std::uint64_t missing = 0;  // that did not come back

  std::string text() const;  // "model 806 KiB, cache 1.00 MiB, peak 2.1 MiB, all returned"
};

// Made before the model is loaded; finish() is called when everything was dropped. With
// TL_MEMORY_CHECK in the environment, or when asked to, both write a report to stderr; memory that
// is missing is reported in any case, with the labels of what took it.
class MemoryWatch {
 public:
  explicit MemoryWatch(const Device& device, bool reports = false);

  void note_model(std::uint64_t bytes) { use_.model = bytes; }  // when it is loaded
  void note_cache(std::uint64_t bytes);                         // the most counts
  MemoryUse finish();

 private:
  Device device_;
  PoolStatistics before_;
  std::uint64_t pinned_before_ = 0;
  MemoryUse use_;
  bool reports_;
};

}  // namespace tl::cli
