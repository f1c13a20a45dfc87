#include "tl/runtime/location.h"

#include <charconv>
#include <ostream>

#include "tl/base/error.h"

namespace tl {

std::string_view name(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::Cpu:
      return "cpu";
    case DeviceKind::Cuda:
      return "cuda";
    case DeviceKind::Rocm:
      return "rocm";
  }
  return "unknown";
}

DeviceLocation DeviceLocation::parse(std::string_view text) {
  if (text == "cpu") return {};
  for (const DeviceKind kind : {DeviceKind::Cuda, DeviceKind::Rocm}) {
    const std::string_view head = name(kind);
    if (text.substr(0, head.size()) != head) continue;
    const std::string_view rest = text.substr(head.size());
    if (rest.empty()) return {kind, 0};
    int index = 0;
    const char* end = rest.data() + rest.size();
    if (rest.size() < 2 || rest[0] != ':' || rest[1] == '-') break;
    const auto [stop, problem] = std::from_chars(rest.data() + 1, end, index);
    if (problem == std::errc{} && stop == end) return {kind, index};
    break;
  }
  throw Error(ErrorKind::BadArgument, "device", "'", text,
              "' is not a device; write cpu, cuda:0 or rocm:0");
}

std::string DeviceLocation::text() const {
  return is_cpu() ? std::string(name(kind)) : join(name(kind), ":", index);
}

std::ostream& operator<<(std::ostream& out, const DeviceLocation& location) {
  return out << location.text();
}

}  // namespace tl
