// `tl mem`: a program's memory while it runs, and the lines that took it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/chart.h"
#include "base/chart_scale.h"
#include "cli/command.h"
#include "cli/memory_timeline.h"
#include "cli/plot_file.h"
#include "cli/program_run.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kMarks = 5;
constexpr std::size_t kJsonSamples = 2000;

struct MemArguments {
  std::shared_ptr<ProgramOptions> program = std::make_shared<ProgramOptions>();
  std::string file, plot;
  std::vector<std::string> arguments;
  std::size_t lines = 10;
  bool json = false;
};

// What held most at the peak comes first, then what took most over time.
std::vector<LineUse> by_weight(std::vector<LineUse> lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const LineUse& a, const LineUse& b) {
    return std::pair(a.at_peak, a.allocated) > std::pair(b.at_peak, b.allocated);
  });
  return lines;
}

void print_place(const PlaceMemory& place, std::size_t most) {
  fmt::print("{}: peak {} at {}, {} after the start; {} {}{}\n",
             coloured(stdout, Colour::Bold, place.name), format_bytes(place.peak),
             place.lines[place.peak_line].line, format_duration(place.peak_seconds),
             format_count(place.allocations), place.allocations == 1 ? "allocation" : "allocations",
             place.left == 0 ? ", all returned"
                             : fmt::format(", {} not returned", format_bytes(place.left)));
  Table table;
  table.column("line").column("at the peak", Table::Align::Right);
  table.column("allocated", Table::Align::Right).column("times", Table::Align::Right);
  table.column("copies", Table::Align::Right);
  const std::vector<LineUse> lines = by_weight(place.lines);
  for (std::size_t i = 0; i < std::min(most, lines.size()); ++i) {
    const LineUse& each = lines[i];
    table.row({each.line, format_bytes(each.at_peak), format_bytes(each.allocated),
               format_count(each.allocations),
               each.detaches == 0 ? "" : format_count(each.detaches)});
  }
  table.print(stdout);
  if (lines.size() > most) fmt::print("and {} more\n", lines.size() - most);
}

Json to_json(const PlaceMemory& place) {
  Json lines = Json::array();
  for (const LineUse& each : by_weight(place.lines)) {
    lines.push_back({{"line", each.line},
                     {"peak_bytes", each.at_peak},
                     {"allocated_bytes", each.allocated},
                     {"allocations", each.allocations},
                     {"copies", each.detaches}});
  }
  Json peaks = Json::array();
  for (const MemorySample& each : place.peaks(kMarks)) {
    peaks.push_back(
        {{"seconds", each.seconds}, {"bytes", each.live}, {"line", place.lines[each.line].line}});
  }
  ChartLine points;
  for (const MemorySample& each : place.samples) {
    points.emplace_back(each.seconds, static_cast<double>(each.live));
  }
  Json timeline = Json::array();
  for (const auto& [seconds, bytes] : thinned(points, kJsonSamples)) {
    timeline.push_back({seconds, static_cast<std::uint64_t>(bytes)});
  }
  return {{"place", place.name},
          {"peak_bytes", place.peak},
          {"peak_line", place.lines[place.peak_line].line},
          {"peak_seconds", place.peak_seconds},
          {"allocations", place.allocations},
          {"bytes_left", place.left},
          {"lines", std::move(lines)},
          {"peaks", std::move(peaks)},
          {"timeline", std::move(timeline)}};
}

struct ByteScale {
  double divisor;
  const char* unit;
};

ByteScale byte_scale(std::uint64_t most) {
  if (most >= std::uint64_t{1} << 30) return {1024.0 * 1024 * 1024, "GiB"};
  if (most >= std::uint64_t{1} << 20) return {1024.0 * 1024, "MiB"};
  if (most >= std::uint64_t{1} << 10) return {1024.0, "KiB"};
  return {1, "bytes"};
}

// Every place has its line; the highest moments of the first are marked.
Chart memory_chart(const std::string& program, const std::vector<PlaceMemory>& places,
                   double seconds) {
  const ByteScale scale = byte_scale(places.empty() ? 0 : places.front().peak);
  const bool in_milliseconds = seconds < 1;
  const double time = in_milliseconds ? 1000 : 1;
  Chart chart{.title = fmt::format("Memory of {}{}", file_name(program),
                                   places.size() == 1 ? " on " + places.front().name : ""),
              .x_label = in_milliseconds ? "milliseconds" : "seconds",
              .y_label = fmt::format("{} live", scale.unit),
              .from_zero = true};
  for (const PlaceMemory& place : places) {
    Series series{.name = place.name, .x = {0}, .y = {0}, .keeps_its_value = true};
    for (const MemorySample& each : place.samples) {
      series.x.push_back(each.seconds * time);
      series.y.push_back(static_cast<double>(each.live) / scale.divisor);
    }
    // What the interpreter holds itself comes back after the program's end.
    series.x.push_back(std::max(seconds * time, series.x.back()));
    series.y.push_back(static_cast<double>(place.left) / scale.divisor);
    chart.series.push_back(std::move(series));
  }
  if (places.empty()) return chart;
  for (const MemorySample& each : places.front().peaks(kMarks)) {
    chart.marks.push_back({each.seconds * time, static_cast<double>(each.live) / scale.divisor,
                           fmt::format("{} {}", file_name(places.front().lines[each.line].line),
                                       format_bytes(each.live))});
  }
  return chart;
}

int mem(const MemArguments& options) {
  PlotFile plot(options.plot);
  ProgramOptions program = *options.program;
  if (options.json) program.out = &std::cerr;  // standard output is one JSON text
  std::unique_ptr<MemoryTimeline> timeline;
  double seconds = 0;
  const int code = with_interpreter(program, options.arguments, [&](Interpreter& interpreter) {
    if (!load_program(interpreter, options.file)) return 1;
    timeline = std::make_unique<MemoryTimeline>();
    int result = 0;
    try {
      interpreter.run_main();
    } catch (const ProgramFailed& failure) {
      show_failure(failure);
      result = 1;
    }
    interpreter.clear();
    seconds = timeline->seconds();
    return result;
  });
  if (!timeline) return code;  // there is no program
  const std::vector<PlaceMemory> places = timeline->finish();
  if (options.json) {
    Json json{{"program", options.file}, {"seconds", seconds}, {"places", Json::array()}};
    for (const PlaceMemory& place : places) json["places"].push_back(to_json(place));
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    if (places.empty()) fmt::print("the program took no memory\n");
    for (const PlaceMemory& place : places) {
      fmt::print("\n");
      print_place(place, options.lines);
    }
  }
  const Chart chart = memory_chart(options.file, places, seconds);
  plot.write({.title = chart.title, .panels = {chart}});
  return code;
}

}  // namespace

void add_mem(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<MemArguments>();
  CLI::App& command = *app.add_subcommand(
      "mem", "run a TensorLogic program and show its memory over time and the lines that took it");
  command.add_option("file", options->file, "the program; - for standard input")->required();
  command.add_option("arguments", options->arguments, "what args() gives to the program");
  add_program_options(command, options->program);
  add_plot_option(command, options->plot, "draw the memory over time, the peaks with their lines");
  command.add_option("--lines", options->lines, "how many lines of the program are listed")
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--json", options->json,
                   "print it as JSON; what the program prints goes to stderr");
  add_quiet_option(command);
  command.callback([options, &chosen] { chosen = [options] { return mem(*options); }; });
}

}  // namespace tl::cli
