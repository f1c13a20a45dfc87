// Scratch memory aligned for the widest vectors.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tl::cpu {

inline constexpr std::align_val_t kVectorAlign{64};

struct AlignedFree {
  void operator()(void* p) const noexcept { ::operator delete(p, kVectorAlign); }
};

// Numbers without destructors.
template <class T>
using Aligned = std::unique_ptr<T[], AlignedFree>;

template <class T>
Aligned<T> aligned(std::size_t count) {
  return Aligned<T>(static_cast<T*>(::operator new(count * sizeof(T), kVectorAlign)));
}

}  // namespace tl::cpu
