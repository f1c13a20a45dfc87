// One GGUF file, read and checked by itself; tl/model/gguf.h puts parts together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/gguf.h"

namespace tl::gguf {

inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kLeastAlignment = 8;
inline constexpr std::uint64_t kMostAlignment = std::uint64_t{1} << 30;
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr std::string_view kSplitNumber = "split.no";  // counts from 0
inline constexpr std::string_view kSplitCount = "split.count";
inline constexpr std::string_view kSplitTensors = "split.tensors.count";  // in all parts

// NAME-00002-of-00003.gguf
struct SplitName {
  std::string prefix;        // NAME
  std::uint64_t number = 0;  // 2
  std::uint64_t count = 0;   // 3
};
std::optional<SplitName> parse_split_name(std::string_view path);
std::string split_path(std::string_view prefix, std::uint64_t number, std::uint64_t count);

struct Part {
  std::uint32_t version = 0;
  std::uint64_t alignment = kDefaultAlignment;
  std::vector<GgufEntry> entries;
  std::map<std::string_view, std::size_t> by_key;  // places in `entries`
  std::vector<GgufTensorInfo> tensors;

  const GgufValue* find(std::string_view key) const;
};

// `file` and `bytes` are used for as long as the part is. `number` is the part's, for its tensors.
Part read_part(std::string_view file, std::span<const std::byte> bytes, std::size_t number);

}  // namespace tl::gguf
