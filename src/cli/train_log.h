// What a training run tells: lines for people, and a table of numbers for plots.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "base/chart.h"
#include "tl/model/train.h"
#include "tl/runtime/device.h"

namespace tl::cli {

std::string format_left(double seconds);  // "4:05", "1:02:03"

class TrainLog {
 public:
  // Writes STEM.csv. Lines of an earlier run are kept up to the step that it was resumed from.
  // Throws BadFile where it cannot be written.
  TrainLog(const std::string& path, std::int64_t resumed);

  // Time that is not spent in steps is left out of their speed.
  void pause();
  void go_on();
  // The losses since the last line; their mean is shown.
  void line(const Trainer& trainer, const Device& device, std::span<const double> losses,
            double rate, const std::optional<HeldOutLoss>& held_out);
  double seconds_per_step() const noexcept { return seconds_per_step_; }
  // The losses of all lines, those before a resumption too.
  Chart chart(const std::string& title) const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string path_;
  std::ofstream csv_;
  Clock::time_point since_ = Clock::now();
  double worked_ = 0;  // seconds before since_
  double seconds_per_step_ = 0;
};

// What was read: "train: 3 documents, 1.20 KiB, 400 tokens (3.1 bytes each), 12 rows".
void print_text(std::string_view name, const TrainText& text);

}  // namespace tl::cli
