// The version of this library.
#pragma once

#include <string_view>

namespace tl {

std::string_view version() noexcept;  // "0.1.0"

}  // namespace tl
