// The names of kernels, made at compile time: the one rule by which the host and the kernel files
// agree.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tl::kernels {

// Room for one name, so that a list of them can be a constant.
struct KernelName {
  std::array<char, 40> text{};
  std::size_t length = 0;

  constexpr void append(std::string_view part) {
    if (length > 0) text[length++] = '_';
    for (const char c : part) text[length++] = c;
  }
  constexpr std::string_view view() const { return {text.data(), length}; }
};

// A family and what it is specialised for, joined by underscores.
template <class... Parts>
constexpr KernelName kernel_name(std::string_view family, Parts... parts) {
  KernelName result;
  result.append(family);
  (result.append(parts), ...);
  return result;
}

template <std::size_t kCount>
constexpr std::array<std::string_view, kCount> views(const std::array<KernelName, kCount>& names) {
  std::array<std::string_view, kCount> result;
  for (std::size_t i = 0; i < kCount; ++i) result[i] = names[i].view();
  return result;
}

inline constexpr std::array<std::string_view, 4> kElementSizes = {"1", "2", "4", "8"};

}  // namespace tl::kernels
