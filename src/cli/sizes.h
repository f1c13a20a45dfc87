// Sizes as people type them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tl::cli {

// "4096", "64KiB", "512M", "1 GiB", "2gb": units are powers of 1024, whichever way they are
// written. Throws BadArgument for anything else, and Overflow for what does not fit in 64 bits.
std::uint64_t parse_bytes(std::string_view text);

}  // namespace tl::cli
