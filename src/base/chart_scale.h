// What charts compute before they draw: which numbers an axis names and which points of a long line
// are needed.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tl {

// From numbers to places between 0 and 1.
class ChartScale {
 public:
  // Over what was added with `add`; widened to the ticks' numbers where `to_ticks` says so.
  void add(double value);
  void finish(bool is_logarithmic, bool to_ticks);

  bool can_show(double value) const noexcept;  // a number that has a place on this axis
  double place(double value) const noexcept;   // 0 for low(), 1 for high()
  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }
  bool is_logarithmic() const noexcept { return is_logarithmic_; }
  // About `most` numbers at 1, 2 or 5 times a power of ten.
  std::vector<double> ticks(int most) const;

 private:
  bool has_any_ = false;
  double low_ = 0, high_ = 1;
  double low_positive_ = 0;  // the smallest that a logarithm has; 0 for none
  bool is_logarithmic_ = false;
};

// Texts of an axis' numbers with as many digits as tell them apart: 0.25, 1500, 20k, 3M, 2e-05.
std::vector<std::string> tick_texts(const std::vector<double>& ticks);

// A number in a sentence or beside a bar, with three or four digits.
std::string number_text(double value);

using ChartPoint = std::pair<double, double>;
using ChartLine = std::vector<ChartPoint>;

// At most about `most` of the points; the first, the last, and the least and greatest y of every
// stretch are among them, in their order.
ChartLine thinned(const ChartLine& points, std::size_t most);

}  // namespace tl
