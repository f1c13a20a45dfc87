// Charts as SVG: lines over an axis, and bars with their spread. The file needs nothing beside it,
// is readable on light and dark pages, and says in words what it shows to those who cannot see it.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace tl {

// With an initializer each member may be left out of a designated one.
// NOLINTBEGIN(readability-redundant-member-init)

// Points that a line joins in their order. A point whose x or y is no number, or infinite, or not
// positive where the axis is logarithmic, is a gap. Long series are thinned; what is the least and
// the most of any stretch stays.
struct Series {
  std::string name = {};
  std::vector<double> x = {}, y = {};  // of one length
  bool keeps_its_value = false;        // drawn in steps: y stays as it is until the next point
};

// A place of the chart with a word to it.
struct Mark {
  double x = 0;
  double y = 0;
  std::string text = {};
};

struct Chart {
  std::string title = {}, x_label = {}, y_label = {};
  bool log_x = false, log_y = false;
  std::vector<Series> series = {};
  std::vector<Mark> marks = {};
  bool from_zero = false;  // the y axis has zero in it
};

struct Bar {
  std::string name = {};
  double value = 0;
  double spread = 0;  // to both sides of the value; 0 for none
};

struct BarSeries {
  std::string name = {};
  std::vector<Bar> bars = {};
};

// Bars from left to right, those of one name together: one group for each name, in the order in
// which names come first.
struct BarChart {
  std::string title = {}, value_label = {};
  std::vector<BarSeries> series = {};
};

// Charts one below the other.
struct Figure {
  std::string title = {};
  std::vector<std::variant<Chart, BarChart>> panels = {};
};

// NOLINTEND(readability-redundant-member-init)

// Throws BadArgument when a series has more of x than of y.
std::string svg(const Chart& chart);
std::string svg(const BarChart& chart);
std::string svg(const Figure& figure);

}  // namespace tl
