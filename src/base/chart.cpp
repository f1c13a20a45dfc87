#include "base/chart.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/chart_scale.h"
#include "base/svg_writer.h"
#include "tl/base/error.h"

namespace tl {

namespace {

constexpr double kWidth = 800;
constexpr double kEdge = 20;         // around everything
constexpr double kPlotHeight = 300;  // of a chart with lines
constexpr double kFont = 12;
constexpr std::size_t kMostPoints = 12'000;  // in a panel: some 150 kB of text

struct Rectangle {
  double left = 0, top = 0, right = 0, bottom = 0;

  bool meets(const Rectangle& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

std::string colour_class(std::string_view kind, std::size_t series) {
  return std::string(kind) + std::to_string(series % SvgWriter::kColours);
}

// Names with their colours, in as many rows as they need; gives the height. One series that a title
// names needs none.
double draw_legend(SvgWriter& out, const std::vector<std::string>& names, double top, bool boxes) {
  if (names.size() < 2) return 0;
  constexpr double kRow = 18;
  double x = kEdge;
  double y = top + 10;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = fitted(names[i], kFont, kWidth / 2);
    const double width = 28 + text_width(name, kFont) + 18;
    if (x > kEdge && x + width > kWidth - kEdge) {
      x = kEdge;
      y += kRow;
    }
    if (boxes) {
      out << "<rect class=\"" << colour_class("f", i) << "\" x=\"" << x + 8 << "\" y=\"" << y - 5
          << "\" width=\"12\" height=\"10\" rx=\"2\"/>\n";
    } else {
      const std::string again = i >= SvgWriter::kColours ? " again" : "";
      out.line("line " + colour_class("s", i) + again, x, y, x + 20, y);
    }
    out.text("legend", x + 28, y + 4, "start", name);
    x += width;
  }
  return y + kRow - top;
}

// ---- lines

struct LinePanel {
  const Chart& chart;
  Rectangle plot;
  ChartScale x, y;

  double px(double value) const { return plot.left + x.place(value) * (plot.right - plot.left); }
  double py(double value) const { return plot.bottom - y.place(value) * (plot.bottom - plot.top); }
};

// The stretches of a series without a gap. Where there are more of them than could be seen the gaps
// are left out, or a file would have no bound.
std::vector<ChartLine> stretches(const LinePanel& panel, const Series& series, std::size_t most) {
  std::vector<ChartLine> out;
  ChartLine all;
  bool is_open = false;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const bool good = panel.x.can_show(series.x[i]) && panel.y.can_show(series.y[i]);
    if (good && !is_open) out.emplace_back();
    if (good) {
      out.back().emplace_back(series.x[i], series.y[i]);
      all.emplace_back(series.x[i], series.y[i]);
    }
    is_open = good;
  }
  if (out.size() > most / 4 + 1) return {thinned(all, most)};
  for (ChartLine& each : out) {
    each = thinned(each, std::max<std::size_t>(4, most * each.size() / all.size()));
  }
  return out;
}

void draw_series(SvgWriter& out, const LinePanel& panel, std::size_t index) {
  const Series& series = panel.chart.series[index];
  const std::size_t most = std::max<std::size_t>(16, kMostPoints / panel.chart.series.size()) /
                           (series.keeps_its_value ? 2 : 1);
  const std::vector<ChartLine> lines = stretches(panel, series, std::min<std::size_t>(most, 2800));
  std::string again = index >= SvgWriter::kColours ? " again" : "";
  if (series.x.size() > 400) again += " fine";  // many points in a pixel's width run together
  out << "<g class=\"series\"><title>" << xml_text(series.name) << "</title>\n";
  out << "<path class=\"line " << colour_class("s", index) << again << "\" d=\"";
  for (const ChartLine& line : lines) {
    if (line.size() < 2) continue;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const double x = panel.px(line[i].first);
      if (i > 0 && series.keeps_its_value)
        out << "H" << x << "V" << panel.py(line[i].second);
      else
        out << (i == 0 ? "M" : "L") << x << " " << panel.py(line[i].second);
    }
  }
  out << "\"/>\n";
  for (const ChartLine& line : lines) {  // alone between gaps: nothing to join it with
    if (line.size() != 1) continue;
    out << "<circle class=\"" << colour_class("f", index) << "\" cx=\"" << panel.px(line[0].first)
        << "\" cy=\"" << panel.py(line[0].second) << "\" r=\"3\"/>\n";
  }
  out << "</g>\n";
}

void draw_axes(SvgWriter& out, const LinePanel& panel) {
  const Rectangle& plot = panel.plot;
  const std::vector<double> rows = panel.y.ticks(6);
  const std::vector<std::string> row_texts = tick_texts(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.line("grid", plot.left, panel.py(rows[i]), plot.right, panel.py(rows[i]));
    out.text("tick", plot.left - 8, panel.py(rows[i]) + 4, "end", row_texts[i]);
  }
  const std::vector<double> columns = panel.x.ticks(8);
  const std::vector<std::string> column_texts = tick_texts(columns);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    out.line("axis", panel.px(columns[i]), plot.bottom, panel.px(columns[i]), plot.bottom + 5);
    out.text("tick", panel.px(columns[i]), plot.bottom + 19, "middle", column_texts[i]);
  }
  out.line("axis", plot.left, plot.bottom, plot.right, plot.bottom);
}

// A ring at the place and its text near by, where no other text is and inside the plot.
void draw_marks(SvgWriter& out, const LinePanel& panel) {
  std::vector<Rectangle> taken;
  for (const Mark& mark : panel.chart.marks) {
    if (!panel.x.can_show(mark.x) || !panel.y.can_show(mark.y)) continue;
    const double x = panel.px(mark.x);
    const double y = panel.py(mark.y);
    const std::string text = fitted(mark.text, kFont, (panel.plot.right - panel.plot.left) / 2);
    const double width = text_width(text, kFont) + 6;
    const double middle =
        std::clamp(x, panel.plot.left + width / 2, kWidth - kEdge / 2 - width / 2);
    double base = y - 12;
    for (const double offset : {-12.0, 22.0, -28.0, 38.0, -44.0, 54.0, -60.0, 70.0}) {
      const Rectangle box{middle - width / 2, y + offset - 11, middle + width / 2, y + offset + 4};
      const bool is_free = std::none_of(taken.begin(), taken.end(),
                                        [&](const Rectangle& each) { return each.meets(box); });
      if (box.top < panel.plot.top - 16 || box.bottom > panel.plot.bottom || !is_free) continue;
      base = y + offset;
      break;
    }
    taken.push_back({middle - width / 2, base - 11, middle + width / 2, base + 4});
    taken.push_back({x - 6, y - 6, x + 6, y + 6});
    const bool is_above = base < y;
    if (std::fabs(base - y) > 24) out.line("leader", x, y, x, is_above ? base + 4 : base - 11);
    out << "<circle class=\"mark\" cx=\"" << x << "\" cy=\"" << y << "\" r=\"4\"/>\n";
    out.text("note", middle, base, "middle", text);
  }
}

void add_values(LinePanel& panel) {
  const Chart& chart = panel.chart;
  for (const Series& series : chart.series) {
    if (series.x.size() != series.y.size()) {
      throw Error(ErrorKind::BadArgument, "chart", "series '", series.name, "' has ",
                  series.x.size(), " x and ", series.y.size(), " y");
    }
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      // A point that has no place in one direction does not widen the other.
      const bool is_drawn = panel.x.can_show(series.x[i]) && panel.y.can_show(series.y[i]) &&
                            (!chart.log_x || series.x[i] > 0) && (!chart.log_y || series.y[i] > 0);
      if (!is_drawn) continue;
      panel.x.add(series.x[i]);
      panel.y.add(series.y[i]);
    }
  }
  if (chart.from_zero && !chart.log_y) panel.y.add(0);
  panel.x.finish(chart.log_x, false);
  panel.y.finish(chart.log_y, true);
}

double draw(SvgWriter& out, const Chart& chart, double top) {
  LinePanel panel{.chart = chart, .plot = {}, .x = {}, .y = {}};
  add_values(panel);
  std::vector<std::string> names;
  for (const Series& each : chart.series) names.push_back(each.name);
  top += draw_legend(out, names, top, false);
  double widest = 0;
  for (const std::string& text : tick_texts(panel.y.ticks(6))) {
    widest = std::max(widest, text_width(text, kFont));
  }
  out.text("label", kEdge, top + 12, "start", fitted(chart.y_label, kFont, kWidth / 2));
  panel.plot = {kEdge + widest + 8, top + 26, kWidth - kEdge - 10, top + 26 + kPlotHeight};
  draw_axes(out, panel);
  for (std::size_t i = 0; i < chart.series.size(); ++i) draw_series(out, panel, i);
  draw_marks(out, panel);
  const Rectangle& plot = panel.plot;
  if (names.empty()) {
    out.text("label", (plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2, "middle",
             "nothing to show");
  }
  out.text("label", (plot.left + plot.right) / 2, plot.bottom + 38, "middle",
           fitted(chart.x_label, kFont, plot.right - plot.left));
  return plot.bottom + 46;
}

// ---- bars

struct BarPlace {
  std::size_t series = 0;
  const Bar* bar = nullptr;
};

struct BarGroup {
  std::string name;
  std::vector<BarPlace> bars;
};

std::vector<BarGroup> groups_of(const BarChart& chart) {
  std::vector<BarGroup> groups;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    for (const Bar& bar : chart.series[s].bars) {
      auto at = std::find_if(groups.begin(), groups.end(),
                             [&](const BarGroup& group) { return group.name == bar.name; });
      if (at == groups.end()) at = groups.insert(at, {bar.name, {}});
      at->bars.push_back({s, &bar});
    }
  }
  return groups;
}

std::string value_text(const Bar& bar) {
  if (!std::isfinite(bar.value)) return "no value";
  const bool has_spread = std::isfinite(bar.spread) && bar.spread > 0;
  return number_text(bar.value) + (has_spread ? " \xC2\xB1 " + number_text(bar.spread) : "");
}

void draw_bar(SvgWriter& out, const BarPlace& place, const ChartScale& scale, double left,
              double right, double top, double height) {
  const Bar& bar = *place.bar;
  const auto px = [&](double value) { return left + scale.place(value) * (right - left); };
  const double middle = top + height / 2;
  double end = left;
  out << "<g class=\"bar\"><title>" << xml_text(bar.name) << ": " << value_text(bar)
      << "</title>\n";
  if (scale.can_show(bar.value)) {
    const double from = std::min(px(0), px(bar.value));
    end = std::max(px(0), px(bar.value));
    out << "<rect class=\"" << colour_class("f", place.series) << "\" x=\"" << from << "\" y=\""
        << top << "\" width=\"" << std::max(end - from, 1.0) << "\" height=\"" << height
        << "\" rx=\"2\"/>\n";
    if (scale.can_show(bar.spread) && bar.spread > 0) {
      const double low = px(std::max(bar.value - bar.spread, scale.low()));
      const double high = px(bar.value + bar.spread);
      out << "<path class=\"spread\" d=\"M" << low << " " << middle << "H" << high << "M" << low
          << " " << middle - 4 << "V" << middle + 4 << "M" << high << " " << middle - 4 << "V"
          << middle + 4 << "\"/>\n";
      end = std::max(end, high);
    }
  }
  out.text("value", end + 6, middle + 4, "start", value_text(bar));
  out << "</g>\n";
}

double draw(SvgWriter& out, const BarChart& chart, double top) {
  const std::vector<BarGroup> groups = groups_of(chart);
  ChartScale scale;
  scale.add(0);
  double widest = 0;
  for (const BarGroup& group : groups) {
    widest = std::max(widest, text_width(group.name, kFont));
    for (const BarPlace& each : group.bars) {
      scale.add(each.bar->value);
      scale.add(each.bar->value + each.bar->spread);
    }
  }
  scale.finish(false, true);
  std::vector<std::string> names;
  for (const BarSeries& each : chart.series) names.push_back(each.name);
  top += draw_legend(out, names, top, true) + 6;

  const double left = kEdge + std::min(widest, kWidth / 3) + 10;
  const double right = kWidth - kEdge - 110;  // the values stand right of the bars
  const double height = names.size() > 1 ? 14 : 18;
  double y = top;
  SvgWriter bars;
  for (const BarGroup& group : groups) {
    y += 6;
    const double all = static_cast<double>(group.bars.size()) * (height + 2);
    bars.text("group", left - 10, y + all / 2 + 3, "end", fitted(group.name, kFont, kWidth / 3));
    for (const BarPlace& each : group.bars) {
      draw_bar(bars, each, scale, left, right, y, height);
      y += height + 2;
    }
    y += 4;
  }
  const std::vector<double> ticks = scale.ticks(6);
  const std::vector<std::string> texts = tick_texts(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double x = left + scale.place(ticks[i]) * (right - left);
    out.line(ticks[i] == 0 ? "axis" : "grid", x, top, x, y);
    out.text("tick", x, y + 16, "middle", texts[i]);
  }
  out << bars.body();
  out.text("label", (left + right) / 2, y + 35, "middle", fitted(chart.value_label, kFont, 500));
  return y + 42;
}

// ---- words

std::string described(const Chart& chart) {
  std::string out = chart.y_label + " over " + chart.x_label + ".";
  for (const Series& series : chart.series) {
    ChartScale y;
    double last = 0;
    std::size_t points = 0;
    for (const double value : series.y) {
      if (!std::isfinite(value)) continue;
      y.add(value);
      last = value;
      ++points;
    }
    out += " " + (series.name.empty() ? "Line" : series.name) + ": ";
    if (points == 0) {
      out += "no points.";
      continue;
    }
    out += std::to_string(points) + " points from " + number_text(y.low()) + " to " +
           number_text(y.high()) + ", the last " + number_text(last) + ".";
  }
  for (const Mark& mark : chart.marks) {
    out +=
        " Marked: " + mark.text + " at " + number_text(mark.x) + ", " + number_text(mark.y) + ".";
  }
  return out;
}

std::string described(const BarChart& chart) {
  std::string out = chart.value_label + ".";
  for (const BarSeries& series : chart.series) {
    for (const Bar& bar : series.bars) {
      out += " " + (series.name.empty() ? "" : series.name + ", ") + bar.name + ": " +
             value_text(bar) + ".";
    }
  }
  return out;
}

// Titles of panels that have the figure's own are left out.
std::string drawn(const std::string& title,
                  const std::vector<std::variant<Chart, BarChart>>& panels) {
  SvgWriter out;
  double y = kEdge;
  if (!title.empty()) {
    out.text("title", kEdge, y + 14, "start", fitted(title, 16, kWidth - 2 * kEdge));
    y += 30;
  }
  std::string words;
  for (const auto& panel : panels) {
    std::visit(
        [&](const auto& chart) {
          if (!chart.title.empty() && chart.title != title) {
            out.text("panel", kEdge, y + 14, "start", fitted(chart.title, 13, kWidth - 2 * kEdge));
            y += 26;
          }
          y = draw(out, chart, y) + kEdge / 2;
          words += (words.empty() ? "" : " ") + described(chart);
        },
        panel);
  }
  return out.file(kWidth, std::ceil(y + kEdge / 2), title, words);
}

}  // namespace

std::string svg(const Chart& chart) { return drawn(chart.title, {chart}); }
std::string svg(const BarChart& chart) { return drawn(chart.title, {chart}); }
std::string svg(const Figure& figure) { return drawn(figure.title, figure.panels); }

}  // namespace tl
