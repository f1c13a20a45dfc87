// What `tl bench` measures of models, and its picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/chart.h"
#include "cli/memory_watch.h"

namespace tl::cli {

// One line of the table: a number of tokens after so many others.
struct BenchTest {
  bool writes = false;  // one token at a time
  std::int64_t tokens = 0;
  std::int64_t depth = 0;

  std::string name() const;  // "pp512", "tg128 @ d4096"
};

struct BenchMeasured {
  BenchTest test;
  std::vector<double> seconds;

  double mean_speed() const;
  double deviation() const;  // of the speeds, about their mean; 0 for a single one
};

struct BenchResult {
  std::string path, name, device, device_name;
  std::uint64_t bytes = 0, parameters = 0;
  std::vector<BenchMeasured> tests;
  MemoryUse memory;
};

// A panel for prompts and one for answers: bars with their deviation, or lines over the depth where
// there are several depths.
Figure bench_figure(const std::vector<BenchResult>& results);

}  // namespace tl::cli
