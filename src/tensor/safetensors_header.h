// The header of a safetensors file, read and checked; it makes no tensors, so that a fuzzer can
// have it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/stored.h"
#include "tl/tensor/safetensors.h"

namespace tl::files {

using SafetensorsEntries = std::map<std::string, Safetensors::Entry, std::less<>>;

inline constexpr std::uint64_t kMostSafetensorsHeader = 100'000'000;  // bytes, as others limit it
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

struct StoredName {
  std::string_view name;
  unsigned bits;
  std::optional<Stored> type;  // none: known, but no tensor can hold it
};
const StoredName* find_stored(std::string_view name);  // nullptr when it is not known

// The entries of one file, with places counted from its start. The metadata is added to `metadata`.
SafetensorsEntries read_safetensors_header(const std::string& file,
                                           std::span<const std::byte> bytes, Metadata& metadata);

}  // namespace tl::files
