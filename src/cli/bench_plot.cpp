#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "cli/bench_result.h"
#include "cli/plot_file.h"

namespace tl::cli {

std::string BenchTest::name() const {
  return fmt::format("{}{}{}", writes ? "tg" : "pp", tokens,
                     depth > 0 ? fmt::format(" @ d{}", depth) : "");
}

double BenchMeasured::mean_speed() const {
  double sum = 0;
  for (const double each : seconds) sum += static_cast<double>(test.tokens) / each;
  return sum / static_cast<double>(seconds.size());
}

double BenchMeasured::deviation() const {
  if (seconds.size() < 2) return 0;
  const double mean = mean_speed();
  double sum = 0;
  for (const double each : seconds) {
    sum += std::pow(static_cast<double>(test.tokens) / each - mean, 2);
  }
  return std::sqrt(sum / static_cast<double>(seconds.size() - 1));
}

namespace {

// Models by their names; by their files where two have the same.
std::vector<std::string> model_names(const std::vector<BenchResult>& results) {
  std::vector<std::string> names;
  std::set<std::string> different;
  for (const BenchResult& each : results) {
    names.push_back(each.name);
    different.insert(each.name);
  }
  if (different.size() == results.size()) return names;
  for (std::size_t i = 0; i < results.size(); ++i) names[i] = file_name(results[i].path);
  return names;
}

BarChart bar_panel(const std::vector<BenchResult>& results, bool writes) {
  BarChart chart{.value_label = "tokens/s"};
  const std::vector<std::string> names = model_names(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    BarSeries series{.name = names[i]};
    for (const BenchMeasured& each : results[i].tests) {
      if (each.test.writes != writes) continue;
      series.bars.push_back({each.test.name(), each.mean_speed(), each.deviation()});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart depth_panel(const std::vector<BenchResult>& results, bool writes) {
  Chart chart{.x_label = "tokens in the cache before", .y_label = "tokens/s", .from_zero = true};
  const std::vector<std::string> names = model_names(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const BenchMeasured& each : results[i].tests) {
      if (each.test.writes != writes) continue;
      const std::string test = BenchTest{writes, each.test.tokens, 0}.name();
      const std::string name = results.size() == 1 ? test : fmt::format("{}, {}", names[i], test);
      auto at = std::find_if(chart.series.begin(), chart.series.end(),
                             [&](const Series& series) { return series.name == name; });
      if (at == chart.series.end()) at = chart.series.insert(at, Series{.name = name});
      at->x.push_back(static_cast<double>(each.test.depth));
      at->y.push_back(each.mean_speed());
    }
  }
  return chart;
}

}  // namespace

Figure bench_figure(const std::vector<BenchResult>& results) {
  std::set<std::int64_t> depths;
  std::set<bool> kinds;
  for (const BenchResult& result : results) {
    for (const BenchMeasured& each : result.tests) {
      depths.insert(each.test.depth);
      kinds.insert(each.test.writes);
    }
  }
  const BenchResult& first = results.front();
  Figure figure{.title = fmt::format(
                    "{} on {} ({})",
                    results.size() == 1 ? first.name : fmt::format("{} models", results.size()),
                    first.device, first.device_name)};
  for (const bool writes : kinds) {
    const std::string title = writes ? "Writing an answer" : "Reading a prompt";
    if (depths.size() > 1) {
      Chart chart = depth_panel(results, writes);
      chart.title = title;
      figure.panels.emplace_back(std::move(chart));
    } else {
      BarChart chart = bar_panel(results, writes);
      chart.title = title;
      figure.panels.emplace_back(std::move(chart));
    }
  }
  return figure;
}

}  // namespace tl::cli
