// Makes any driver fail on purpose: the CPU's, a simulated one or a real one.
//
// The driver tables are plain function pointers, so a test can put a wrapper in front of one that
// fails at the n-th call and otherwise calls the original. Undone when the object goes.
#pragma once

#include <atomic>

#include "runtime/driver/table.h"
#include "tl/runtime/location.h"

namespace tl::test {

class FaultyDriver {
 public:
  explicit FaultyDriver(DeviceKind kind) : table_(driver::table_for_testing(kind)), saved_(table_) {
    original = saved_;
    fail_allocation = 0;
    calls = 0;
    table_.allocate = [](void** address, std::size_t bytes) {
      return should_fail() ? driver::kOutOfMemory : original.allocate(address, bytes);
    };
    table_.allocate_host = [](void** address, std::size_t bytes) {
      return should_fail() ? driver::kOutOfMemory : original.allocate_host(address, bytes);
    };
    table_.create_stream = [](driver::Handle* stream) {
      return should_fail() ? driver::kOutOfMemory : original.create_stream(stream);
    };
    table_.create_event = [](driver::Handle* event, bool timing) {
      return should_fail() ? driver::kOutOfMemory : original.create_event(event, timing);
    };
  }
  ~FaultyDriver() { table_ = saved_; }
  FaultyDriver(const FaultyDriver&) = delete;
  FaultyDriver& operator=(const FaultyDriver&) = delete;

  // From the n-th allocation of anything (1 is the next) on, `times` of them fail.
  void fail_from(int n, int times = 1) {
    calls = 0;
    fail_allocation = n;
    fail_times = times;
  }
  // Whether the planned failure was reached.
  bool reached() const { return fail_allocation != 0 && calls >= fail_allocation; }

 private:
  static bool should_fail() {
    const int now = ++calls;
    return fail_allocation != 0 && now >= fail_allocation && now < fail_allocation + fail_times;
  }

  static inline driver::Table original;
  static inline std::atomic<int> fail_allocation{0};
  static inline std::atomic<int> fail_times{1};
  static inline std::atomic<int> calls{0};

  driver::Table& table_;
  driver::Table saved_;
};

}  // namespace tl::test
