#include "cli/sizes.h"

#include <cctype>
#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>

#include "tl/base/error.h"

namespace tl::cli {

std::uint64_t parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc::result_out_of_range) {
    throw Error(ErrorKind::Overflow, "size", "'", text, "' is more than 64 bits can count");
  }
  std::string unit;
  for (const char c : text.substr(static_cast<std::size_t>(end - text.data()))) {
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  unsigned shift = 0;
  if (!unit.empty() && unit != "b") {
    constexpr std::string_view kUnits = "kmgtp";
    const std::size_t place = kUnits.find(unit[0]);
    const std::string_view tail = std::string_view(unit).substr(1);
    const bool known =
        place != std::string_view::npos && (tail.empty() || tail == "b" || tail == "ib");
    shift = known ? 10 * static_cast<unsigned>(place + 1) : 64;
  }
  if (status != std::errc{} || shift == 64) {
    throw Error(ErrorKind::BadArgument, "size", "'", text,
                "' is not a number of bytes; write 4096, 64KiB, 512MiB or 1GiB");
  }
  return checked_multiply("size", number, std::uint64_t{1} << shift);
}

}  // namespace tl::cli
