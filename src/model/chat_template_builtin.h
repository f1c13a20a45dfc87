// The templates that come with the program.
#pragma once

#include <span>
#include <string_view>

namespace tl {

struct BuiltinTemplate {
  std::string_view name;
  std::string_view source;
};

std::span<const BuiltinTemplate> builtin_templates() noexcept;

}  // namespace tl
