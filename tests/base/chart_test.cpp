#include "base/chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/chart_scale.h"
#include "base/svg_writer.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t times(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Why `text` is no well-formed XML; empty when it is. Enough of XML for what charts write: elements
// with quoted attributes, entities, and no comments or declarations.
std::string xml_mistake(std::string_view text) {
  std::vector<std::string> open;
  if (first_invalid_utf8(text) != text.size()) return "not UTF-8";
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '&') {
      const std::string_view rest = text.substr(at);
      const bool known = rest.starts_with("&lt;") || rest.starts_with("&gt;") ||
                         rest.starts_with("&amp;") || rest.starts_with("&quot;");
      if (!known) return join("a bare & at ", at);
    }
    if (static_cast<unsigned char>(text[at]) < 0x20 && text[at] != '\n')
      return "a control character";
    if (text[at] != '<') {
      ++at;
      continue;
    }
    bool in_quotes = false;
    std::size_t end = at + 1;
    for (; end < text.size() && (in_quotes || text[end] != '>'); ++end) {
      if (text[end] == '"') in_quotes = !in_quotes;
      if (text[end] == '<') return join("a bare < at ", end);
    }
    if (end == text.size()) return "a tag without an end";
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
    if (tag.starts_with('/')) {
      if (open.empty() || "/" + open.back() != tag) return join("</", tag, "> closes nothing");
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : join("<", open.back(), "> is not closed");
}

// The d of the first line of a chart.
std::string first_path(const std::string& text) {
  const std::size_t line = text.find("<path class=\"line");
  const std::size_t begin = text.find(" d=\"", line) + 4;
  return text.substr(begin, text.find('"', begin) - begin);
}

Series made(std::size_t count, double (*f)(double)) {
  Series out{.name = "f", .x = {}, .y = {}};
  for (std::size_t i = 0; i < count; ++i) {
    out.x.push_back(static_cast<double>(i));
    out.y.push_back(f(static_cast<double>(i)));
  }
  return out;
}

std::vector<double> ticks_of(double low, double high, int most, bool is_logarithmic = false) {
  ChartScale scale;
  scale.add(low);
  scale.add(high);
  scale.finish(is_logarithmic, false);
  return scale.ticks(most);
}

TEST(ChartTicks, AreOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_EQ(ticks_of(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks_of(0, 100, 10).size(), 11U);
  EXPECT_EQ(ticks_of(-3, 3, 3), (std::vector<double>{-2, 0, 2}));
  const std::vector<double> small = ticks_of(0, 0.001, 4);
  ASSERT_EQ(small.size(), 3U);
  EXPECT_DOUBLE_EQ(small[1], 0.0005);
}

TEST(ChartTicks, ARangeOfNoWidthIsWidened) {
  EXPECT_GE(ticks_of(5, 5, 5).size(), 2U);
  EXPECT_GE(ticks_of(0, 0, 5).size(), 2U);
  EXPECT_GE(ticks_of(1e15, 1e15 + 1, 5).size(), 2U);
  EXPECT_LE(ticks_of(-1e300, 1e300, 5).size(), 12U);
}

TEST(ChartTicks, LogarithmicOnesAreDecadesWhereThereAreMany) {
  EXPECT_EQ(ticks_of(1, 100, 6, true), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  const std::vector<double> wide = ticks_of(1e-6, 1e6, 6, true);
  ASSERT_GE(wide.size(), 4U);
  for (const double each : wide) {
    EXPECT_NEAR(std::log10(each), std::round(std::log10(each)), 1e-9) << each;
  }
  EXPECT_GE(ticks_of(3.1, 3.9, 5, true).size(), 3U);  // inside one decade
}

TEST(ChartTicks, TextsTellThemApart) {
  EXPECT_EQ(tick_texts({0, 0.05, 0.1}), (std::vector<std::string>{"0.00", "0.05", "0.10"}));
  EXPECT_EQ(tick_texts({0, 500, 1000}), (std::vector<std::string>{"0", "500", "1000"}));
  EXPECT_EQ(tick_texts({0, 10000, 20000}), (std::vector<std::string>{"0", "10k", "20k"}));
  EXPECT_EQ(tick_texts({1e6, 1.5e6}), (std::vector<std::string>{"1.0M", "1.5M"}));
  EXPECT_EQ(tick_texts({0, 2e-5, 4e-5}), (std::vector<std::string>{"0", "2e-05", "4e-05"}));
  EXPECT_EQ(tick_texts({0.001, 1, 1000}), (std::vector<std::string>{"0.001", "1", "1000"}));
}

TEST(Chart, IsWellFormedAndHasAllItsTexts) {
  Chart chart{.title = "Loss",
              .x_label = "epoch",
              .y_label = "loss",
              .series = {{"first", {1, 2, 3}, {3, 2, 1}}, {"second", {1, 2}, {1, 5}}},
              .marks = {{2, 5, "file.tl:12"}}};
  const std::string text = svg(chart);
  EXPECT_EQ(xml_mistake(text), "");
  for (const char* part :
       {"<title id=\"title\">Loss</title>", "epoch", ">first<", ">second<", ">file.tl:12<",
        "prefers-color-scheme:dark", "role=\"img\"", "second: 2 points from 1 to 5, the last 5"}) {
    EXPECT_NE(text.find(part), text.npos) << part;
  }
  EXPECT_EQ(times(text, "<path class=\"line"), 2U);
  EXPECT_EQ(times(text, "<circle class=\"mark\""), 1U);
}

TEST(Chart, TextOfAnybodyIsEscaped) {
  const std::string nasty = "</title><script>alert(1)</script>&\"\x01\xff\xEF\xBF\xBF\n";
  const std::string text = svg(Chart{.title = nasty,
                                     .x_label = nasty,
                                     .y_label = nasty,
                                     .series = {{nasty, {1, 2}, {1, 2}}, {nasty, {1}, {1}}},
                                     .marks = {{1, 1, nasty}}});
  EXPECT_EQ(xml_mistake(text), "");
  EXPECT_EQ(text.find("<script"), text.npos);
  const std::string bars =
      svg(BarChart{.title = nasty, .value_label = nasty, .series = {{nasty, {{nasty, 1, 0}}}}});
  EXPECT_EQ(xml_mistake(bars), "");
  EXPECT_EQ(bars.find("<script"), bars.npos);
  EXPECT_EQ(xml_text("a<b>&\"c\x01\xff"), "a&lt;b&gt;&amp;&quot;c\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Chart, WhatIsNoNumberIsAGap) {
  const std::string text = svg(Chart{
      .title = "gaps", .series = {{"a", {1, 2, 3, 4, 5, 6, 7}, {1, 2, kNaN, 4, kInfinity, 6, 7}}}});
  EXPECT_EQ(xml_mistake(text), "");
  EXPECT_EQ(times(first_path(text), "M"), 2U);  // 1-2 and 6-7
  EXPECT_EQ(times(first_path(text), "L"), 2U);
  EXPECT_EQ(times(text, "<circle"), 1U);  // 4 alone
  EXPECT_EQ(text.find("nan"), text.npos);
  EXPECT_EQ(text.find("inf"), text.npos);
}

TEST(Chart, LogarithmicAxesLeaveOutWhatHasNoLogarithm) {
  const std::string text =
      svg(Chart{.title = "log",
                .log_x = true,
                .log_y = true,
                .series = {{"a", {0, 1, 10, 100, 1000}, {5, 0.01, 0, 1, 100}}}});
  EXPECT_EQ(xml_mistake(text), "");
  EXPECT_EQ(times(first_path(text), "M"), 1U);  // 100 to 1000
  EXPECT_EQ(times(text, "<circle"), 1U);        // 1 between two gaps
  const std::string none = svg(Chart{.title = "log", .log_y = true, .series = {{"a", {1}, {-1}}}});
  EXPECT_EQ(xml_mistake(none), "");
}

TEST(Chart, NothingAndOnePointCanBeDrawn) {
  const std::string empty = svg(Chart{});
  EXPECT_EQ(xml_mistake(empty), "");
  EXPECT_NE(empty.find("nothing to show"), empty.npos);
  const std::string hollow = svg(Chart{.title = "t", .series = {{"a", {}, {}}}});
  EXPECT_EQ(xml_mistake(hollow), "");
  EXPECT_NE(hollow.find("a: no points"), hollow.npos);
  const std::string one = svg(Chart{.title = "t", .series = {{"a", {3}, {7}}}});
  EXPECT_EQ(xml_mistake(one), "");
  EXPECT_EQ(times(one, "<circle"), 1U);
  EXPECT_EQ(xml_mistake(svg(BarChart{})), "");
  EXPECT_EQ(xml_mistake(svg(Figure{})), "");
}

TEST(Chart, SizesThatDifferAreAnError) {
  try {
    svg(Chart{.title = "t", .series = {{"lopsided", {1, 2}, {1}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::BadArgument);
    EXPECT_STREQ(error.what(), "chart: series 'lopsided' has 2 x and 1 y");
  }
}

TEST(Chart, StepsKeepAValueUntilTheNext) {
  const Series steps{.name = "a", .x = {0, 1, 2}, .y = {0, 1, 0}, .keeps_its_value = true};
  const std::string path = first_path(svg(Chart{.title = "t", .series = {steps}}));
  EXPECT_EQ(times(path, "H"), 2U);
  EXPECT_EQ(times(path, "V"), 2U);
  EXPECT_EQ(times(path, "L"), 0U);
}

TEST(Chart, LongSeriesAreThinnedAndKeepTheirPeaks) {
  Series wave = made(1'000'000, [](double x) { return std::sin(x / 1000); });
  wave.y[654'321] = 50;
  wave.y[123'456] = -50;
  const std::string text = svg(Chart{.title = "long", .series = {wave}});
  EXPECT_LT(text.size(), 200'000U);
  const std::string with_marks = svg(Chart{
      .title = "long", .series = {wave}, .marks = {{654'321, 50, "up"}, {123'456, -50, "d"}}});
  // The line goes through both marks' places.
  for (std::size_t at = with_marks.find("class=\"mark\""); at != with_marks.npos;
       at = with_marks.find("class=\"mark\"", at + 1)) {
    const std::size_t x = with_marks.find("cx=\"", at) + 4;
    const std::size_t y = with_marks.find("cy=\"", at) + 4;
    const std::string place = with_marks.substr(x, with_marks.find('"', x) - x) + " " +
                              with_marks.substr(y, with_marks.find('"', y) - y);
    EXPECT_NE(first_path(with_marks).find(place), std::string::npos) << place;
  }
}

TEST(Chart, ManySeriesAndManyGapsStaySmall) {
  Chart chart{.title = "many"};
  for (int i = 0; i < 30; ++i) {
    chart.series.push_back(made(20'000, [](double x) { return std::sin(x); }));
  }
  EXPECT_LT(svg(chart).size(), 220'000U);
  Series holes = made(500'000, [](double x) { return std::fmod(x, 2) < 1 ? x : kNaN; });
  EXPECT_LT(svg(Chart{.title = "holes", .series = {holes}}).size(), 200'000U);
}

TEST(Thinned, KeepsOrderEndsAndExtremes) {
  ChartLine line;
  for (int i = 0; i < 1000; ++i) line.emplace_back(i, i == 500 ? 9 : i == 501 ? -9 : 0);
  const ChartLine thin = thinned(line, 20);
  EXPECT_LE(thin.size(), 22U);
  EXPECT_EQ(thin.front(), line.front());
  EXPECT_EQ(thin.back(), line.back());
  EXPECT_TRUE(std::is_sorted(thin.begin(), thin.end()));
  EXPECT_NE(std::find(thin.begin(), thin.end(), ChartPoint(500, 9)), thin.end());
  EXPECT_NE(std::find(thin.begin(), thin.end(), ChartPoint(501, -9)), thin.end());
  EXPECT_EQ(thinned(line, 1000), line);
}

TEST(BarChart, OneBarForEachValueWithItsSpread) {
  const std::string text =
      svg(BarChart{.title = "speed",
                   .value_label = "tokens/s",
                   .series = {{"one", {{"pp512", 1234, 12}, {"tg128", 50, 0}}},
                              {"two", {{"pp512", 900, kNaN}, {"tg128", kNaN, 0}}}}});
  EXPECT_EQ(xml_mistake(text), "");
  EXPECT_EQ(times(text, "<g class=\"bar\">"), 4U);
  EXPECT_EQ(times(text, "<rect class=\"f"), 3U + 2U);  // with two of the legend
  EXPECT_EQ(times(text, "class=\"spread\""), 1U);
  EXPECT_EQ(times(text, "class=\"group\""), 2U);
  EXPECT_NE(text.find("1234 \xC2\xB1 12"), text.npos);
  EXPECT_NE(text.find("no value"), text.npos);
}

TEST(Figure, PanelsStandBelowEachOther) {
  const std::string text = svg(Figure{
      .title = "both",
      .panels = {Chart{.title = "lines", .series = {{"a", {1, 2}, {1, 2}}}},
                 BarChart{.title = "bars", .value_label = "v", .series = {{"", {{"x", 1, 0}}}}}}});
  EXPECT_EQ(xml_mistake(text), "");
  EXPECT_EQ(times(text, "class=\"panel\""), 2U);
  EXPECT_LT(text.find(">lines<"), text.find(">bars<"));
}

TEST(Fitted, CutsBetweenCharacters) {
  EXPECT_EQ(fitted("short", 12, 100), "short");
  const std::string cut = fitted("äöüäöüäöüäöüäöü", 12, 50);
  EXPECT_EQ(first_invalid_utf8(cut), cut.size());
  EXPECT_LE(text_width(cut, 12), 50 + 1e-9);
}

}  // namespace
}  // namespace tl
