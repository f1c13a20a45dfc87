// The word someone may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tl {

// The one of `words` that takes the fewest edits (insert, delete, replace, swap neighbours) to make
// from `typed`, or an empty text when none is near enough to be a likely slip.
std::string nearest(std::string_view typed, std::span<const std::string> words);

}  // namespace tl
