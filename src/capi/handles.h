// Handles of the C interface: numbers that are never given out twice, and what they stand for.
//
// A table finds the object of a number. So a handle that was freed, or is of another kind, is found
// to be none instead of being followed, and an object that one thread frees lives on while another
// still works with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "capi/guard.h"

namespace tl::capi {

// One sequence for all kinds: a handle of one kind never is one of another.
inline std::uintptr_t next_handle() noexcept {
  static std::atomic<std::uintptr_t> last{0};
  // Steps of 16, as addresses have: nothing that looks at the low bits of a pointer is misled.
  return last.fetch_add(16, std::memory_order_relaxed) + 16;
}

// `Handle` is the opaque struct of tl/c.h, `Object` what is behind it.
template <class Handle, class Object>
class HandleTable {
 public:
  explicit HandleTable(std::string_view kind) : kind_(kind) {}

  Handle* put(Object object) {
    auto held = std::make_shared<Object>(std::move(object));
    const std::uintptr_t number = next_handle();
    const std::lock_guard lock(mutex_);
    objects_.emplace(number, std::move(held));
    return reinterpret_cast<Handle*>(number);  // NOLINT(performance-no-int-to-ptr)
  }

  std::shared_ptr<Object> get(std::string_view function, const Handle* handle) const {
    if (handle != nullptr) {
      const std::lock_guard lock(mutex_);
      const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
      if (found != objects_.end()) return found->second;
    }
    throw bad(function, handle);
  }

  void drop(std::string_view function, const Handle* handle) {
    if (handle == nullptr) return;
    std::shared_ptr<Object> last;  // goes outside the lock: it may call back
    {
      const std::lock_guard lock(mutex_);
      const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
      if (found != objects_.end()) {
        last = std::move(found->second);
        objects_.erase(found);
      }
    }
    if (last == nullptr) throw bad(function, handle);
  }

 private:
  BadHandle bad(std::string_view function, const Handle* handle) const {
    return BadHandle(join(function, ": ", handle == nullptr ? "null is" : "this is",
                          " not the handle of a ", kind_,
                          handle == nullptr ? "" : ", or it was freed"));
  }

  std::string_view kind_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uintptr_t, std::shared_ptr<Object>> objects_;
};

}  // namespace tl::capi
