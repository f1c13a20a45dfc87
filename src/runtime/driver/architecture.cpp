#include "runtime/driver/architecture.h"

#include <charconv>

namespace tl::driver {

namespace {

constexpr int kExact = 3000000;
constexpr int kSameGeneration = 2000000;
constexpr int kIntermediate = 1000000;

// The 90 of "sm_90". Names with a letter behind (sm_90a) are for one device only and give 0.
int number_after(std::string_view prefix, std::string_view text) noexcept {
  if (!text.starts_with(prefix)) return 0;
  text.remove_prefix(prefix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number > 0 && number < kIntermediate ? number : 0;
}

}  // namespace

int suitability(std::string_view image, std::string_view device) noexcept {
  if (image == device && !image.empty()) return kExact;
  const int have = number_after("sm_", device);
  if (have == 0) return 0;
  // The last digit is the minor number.
  if (const int built = number_after("sm_", image)) {
    return built / 10 == have / 10 && built < have ? kSameGeneration + built : 0;
  }
  if (const int built = number_after("compute_", image)) {
    return built <= have ? kIntermediate + built : 0;
  }
  return 0;
}

}  // namespace tl::driver
