#include "model/arch/rope.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace tl::arch {

namespace {

// The pair, as a fraction, that turns `turns` times within the original context.
double pair_of_turns(double turns, double base, std::int64_t size, double context) {
  return static_cast<double>(size) * std::log(context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(base));
}

}  // namespace

RopeFrequencies rope_frequencies(double base, std::int64_t size, const RopeScaling& scaling) {
  double low = 0, high = 0;
  if (scaling.extrapolation != 0) {
    const double context = scaling.original_context;
    low = std::max(0.0, std::floor(pair_of_turns(scaling.beta_fast, base, size, context)));
    high = std::min(static_cast<double>(size - 1),
                    std::ceil(pair_of_turns(scaling.beta_slow, base, size, context)));
  }
  RopeFrequencies out;
  out.magnitude = scaling.magnitude;
  for (std::int64_t i = 0; i < size / 2; ++i) {
    const auto pair = static_cast<double>(i);
    double whole = std::pow(base, -2 * pair / static_cast<double>(size));
    if (!scaling.divisors.empty()) whole /= scaling.divisors[static_cast<std::size_t>(i)];
    // 1 up to `low`, 0 from `high` on; the least width keeps the division possible.
    const double kept = scaling.extrapolation *
                        (1 - std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0));
    out.radians.push_back(whole / scaling.factor * (1 - kept) + whole * kept);
  }
  return out;
}

double yarn_magnitude(double factor) { return factor <= 1 ? 1 : 0.1 * std::log(factor) + 1; }

}  // namespace tl::arch
