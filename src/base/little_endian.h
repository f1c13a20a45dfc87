// Numbers as files hold them: little-endian, at any alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

namespace tl::files {

static_assert(std::endian::native == std::endian::little, "files are read without swapping");

// The caller has checked that the number is there.
template <class T>
T load_number(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace tl::files
