// The few calls that tell AddressSanitizer and ThreadSanitizer what the simulator does; nothing in
// a plain build.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SIMGPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMGPU_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define SIMGPU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMGPU_TSAN 1
#endif
#endif

#ifdef SIMGPU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIMGPU_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace simgpu {

inline void poison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef SIMGPU_ASAN
  __asan_poison_memory_region(begin, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef SIMGPU_ASAN
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

// Order for ThreadSanitizer beyond what locks show: what follows happens_after(tag) sees what came
// before happens_before(tag).
inline void happens_before([[maybe_unused]] const void* tag) {
#ifdef SIMGPU_TSAN
  __tsan_release(const_cast<void*>(tag));
#endif
}

inline void happens_after([[maybe_unused]] const void* tag) {
#ifdef SIMGPU_TSAN
  __tsan_acquire(const_cast<void*>(tag));
#endif
}

}  // namespace simgpu
