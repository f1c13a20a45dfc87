#include "base/chart_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace tl {

namespace {

// Beyond it differences of two numbers are no numbers any more.
constexpr double kLargest = 1e300;

std::string printed(const char* format, int digits, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, digits, value);
  return text.data();
}

// The smallest of 1, 2 and 5 times a power of ten that is not below `least`.
double nice_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least * (1 - 1e-9)) return times * power;
  }
  return 10 * power;
}

std::vector<double> linear_ticks(double low, double high, int most) {
  const double step = nice_step((high - low) / std::max(most, 1));
  std::vector<double> out;
  // Rounding must not lose a tick at an end of the axis.
  const double first = std::ceil(low / step - 1e-6);
  const double last = std::floor(high / step + 1e-6);
  const auto count = static_cast<int>(last - first) + 1;
  for (int i = 0; i < count; ++i) {
    const double at = first + i;
    out.push_back(at == 0 ? 0 : at * step);
  }
  return out;
}

std::vector<double> log_ticks(double low, double high, int most) {
  const auto first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const auto last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  const auto collect = [&](const std::vector<double>& factors, int stride) {
    std::vector<double> out;
    for (int power = first; power <= last; power += stride) {
      for (const double factor : factors) {
        const double value = factor * std::pow(10.0, power);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) out.push_back(value);
      }
    }
    return out;
  };
  std::vector<double> many = collect({1, 2, 5}, 1);
  if (many.size() < 3) return linear_ticks(low, high, most);  // less than about a factor of five
  if (many.size() <= static_cast<std::size_t>(most) + 2) return many;
  return collect({1}, 1 + (last - first) / std::max(most, 1));
}

}  // namespace

void ChartScale::add(double value) {
  if (!can_show(value)) return;
  low_ = has_any_ ? std::min(low_, value) : value;
  high_ = has_any_ ? std::max(high_, value) : value;
  if (value > 0) low_positive_ = low_positive_ > 0 ? std::min(low_positive_, value) : value;
  has_any_ = true;
}

void ChartScale::finish(bool is_logarithmic, bool to_ticks) {
  is_logarithmic_ = is_logarithmic && low_positive_ > 0;
  if (is_logarithmic_) {
    low_ = low_positive_;
    if (high_ < low_ * 1.01) {
      low_ /= 2;
      high_ *= 2;
    }
    return;
  }
  // A range that is narrow beside its numbers has no ticks that differ.
  const double size = std::max(std::fabs(low_), std::fabs(high_));
  if (high_ - low_ <= size * 1e-9) {
    const double around = size > 0 ? size / 2 : 0.5;
    low_ -= around;
    high_ += around;
  }
  if (!to_ticks) return;
  const double step = nice_step((high_ - low_) / 5);
  low_ = std::floor(low_ / step + 1e-6) * step;
  high_ = std::ceil(high_ / step - 1e-6) * step;
}

bool ChartScale::can_show(double value) const noexcept {
  return std::fabs(value) <= kLargest && (!is_logarithmic_ || value > 0);  // not for NaN
}

double ChartScale::place(double value) const noexcept {
  if (!is_logarithmic_) return (value - low_) / (high_ - low_);
  return (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));
}

std::vector<double> ChartScale::ticks(int most) const {
  return is_logarithmic_ ? log_ticks(low_, high_, most) : linear_ticks(low_, high_, most);
}

std::vector<std::string> tick_texts(const std::vector<double>& ticks) {
  if (ticks.empty()) return {};
  double largest = 0;
  double nearest = kLargest;  // two ticks
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    largest = std::max(largest, std::fabs(ticks[i]));
    if (i > 0) nearest = std::min(nearest, ticks[i] - ticks[i - 1]);
  }
  const bool is_even = ticks.size() < 3 || (ticks[2] - ticks[1]) < 1.5 * (ticks[1] - ticks[0]);
  std::vector<std::string> out;
  for (const double tick : ticks) {
    if (!is_even || largest >= 1e15 || (largest < 1e-3 && largest > 0)) {
      const int digits = 1 + static_cast<int>(std::ceil(std::log10(largest / nearest) - 1e-9));
      const bool is_short = is_even && nearest < kLargest;
      out.push_back(is_short ? printed("%.*g", std::clamp(digits, 1, 12), tick)
                             : number_text(tick));
      continue;
    }
    constexpr std::array<std::pair<double, const char*>, 5> kUnits{
        {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}, {0, ""}}};
    const auto* unit = std::find_if(kUnits.begin(), kUnits.end(),
                                    [&](const auto& each) { return largest >= each.first; });
    const double divisor = unit->first == 1e4 ? 1e3 : unit->first > 0 ? unit->first : 1;
    const double step = std::min(nearest, std::max(largest, 1e-3)) / divisor;
    const int decimals = static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
    const std::string text = printed("%.*f", std::clamp(decimals, 0, 9), tick / divisor);
    out.push_back(tick == 0 ? text : text + unit->second);
  }
  return out;
}

std::string number_text(double value) {
  const double size = std::fabs(value);
  if (size >= 1e15 || (size < 1e-3 && size > 0)) return printed("%.*g", 3, value);
  constexpr std::array<std::pair<double, const char*>, 4> kUnits{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}}};
  for (const auto& [least, unit] : kUnits) {
    if (size >= least) return printed("%.*g", 4, value / (least == 1e4 ? 1e3 : least)) + unit;
  }
  return printed("%.*g", 4, value);
}

ChartLine thinned(const ChartLine& points, std::size_t most) {
  const std::size_t buckets = std::max<std::size_t>(most / 2, 1);
  if (points.size() <= std::max<std::size_t>(most, 4)) return points;
  ChartLine out{points.front()};
  const std::size_t inner = points.size() - 2;  // the ends are kept anyway
  for (std::size_t b = 0; b < buckets; ++b) {
    const auto first = points.begin() + 1 + static_cast<std::ptrdiff_t>(b * inner / buckets);
    const auto last = points.begin() + 1 + static_cast<std::ptrdiff_t>((b + 1) * inner / buckets);
    if (first == last) continue;
    const auto [least, greatest] = std::minmax_element(
        first, last, [](const ChartPoint& a, const ChartPoint& c) { return a.second < c.second; });
    out.push_back(*std::min(least, greatest));
    if (least != greatest) out.push_back(*std::max(least, greatest));
  }
  out.push_back(points.back());
  return out;
}

}  // namespace tl
