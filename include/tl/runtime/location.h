// Where memory lives: the CPU, or a GPU of one vendor by number. It says where, not which handle
// (see device.h).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace tl {

enum class DeviceKind : std::uint8_t { Cpu, Cuda, Rocm };

// "cpu", "cuda", "rocm".
std::string_view name(DeviceKind kind) noexcept;

struct DeviceLocation {
  DeviceKind kind = DeviceKind::Cpu;
  int index = 0;

  // "cpu", "cuda:0", "rocm:1"; a GPU without a number means its first. Throws BadArgument for
  // anything else.
  static DeviceLocation parse(std::string_view text);
  std::string text() const;

  bool is_cpu() const noexcept { return kind == DeviceKind::Cpu; }
  bool is_gpu() const noexcept { return kind != DeviceKind::Cpu; }

  friend bool operator==(const DeviceLocation&, const DeviceLocation&) = default;
  friend auto operator<=>(const DeviceLocation&, const DeviceLocation&) = default;
};

std::ostream& operator<<(std::ostream& out, const DeviceLocation& location);

}  // namespace tl

template <>
struct std::hash<tl::DeviceLocation> {
  std::size_t operator()(const tl::DeviceLocation& l) const noexcept {
    return static_cast<std::size_t>(l.kind) * 1021 + static_cast<std::size_t>(l.index);
  }
};
