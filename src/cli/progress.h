// How far long work is, for people who wait: a bar on stderr with the rate and the time that is
// left. Files and pipes get nothing, and neither does anybody who asked for quiet.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace tl::cli {

// What a bar shows. `total` is 0 where nobody knows how much there is.
struct ProgressState {
  std::string label;
  std::string unit;  // "tokens", "tensors", ...; "bytes" are shown in binary units
  std::string what;  // what is being done now; may be empty
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  double rate = 0;       // units in a second; 0 while it is not known
  std::size_t turn = 0;  // of the wheel that stands for a bar where the total is not known
  bool is_coloured = false;
};

// The line for a terminal of so many columns, one of which stays free.
std::string progress_text(const ProgressState& state, std::size_t columns);

// One line of stderr while it lives; gone, with nothing left of it, when the object is. At most ten
// times a second it is written again, so that calling it for every small step costs a look at the
// clock. Calls may come from several threads.
class Progress {
 public:
  // `total` 0: nobody knows.
  explicit Progress(std::string label, std::uint64_t total = 0, std::string unit = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set(std::uint64_t done, std::string_view what = {});
  void add(std::uint64_t more = 1, std::string_view what = {});
  void set_total(std::uint64_t total);
  // Another stage of the same work: rate and time count from here.
  void restart(std::string label, std::uint64_t total, std::string unit = {});

  bool is_shown() const noexcept { return is_shown_; }
  void hide();  // until the next change that is due; for a line of output in between

 private:
  using Clock = std::chrono::steady_clock;
  void redraw(Clock::time_point now);
  void change(std::uint64_t done, std::string_view what);

  const bool is_shown_;
  std::mutex mutex_;
  ProgressState state_;
  bool is_written_ = false;
  Clock::time_point next_;  // not before it
  struct Sample {
    Clock::time_point when;
    std::uint64_t done = 0;
  };
  std::deque<Sample> samples_;  // of the last seconds
};

// A stream that writes to `to` and hides the bar of `progress` first, where both are terminals.
// `progress` may be empty at times.
class AroundProgress {
 public:
  AroundProgress(std::ostream& to, const std::unique_ptr<Progress>& progress);
  ~AroundProgress();
  AroundProgress(const AroundProgress&) = delete;
  AroundProgress& operator=(const AroundProgress&) = delete;

  std::ostream& stream();
  // Has all that was written been a number of whole lines? If not, a bar would write over it. Where
  // the stream is no terminal it does not matter, and this is true.
  bool is_at_line_start() const noexcept;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// From now on nothing is shown: -q, --quiet.
void set_quiet(bool is_quiet) noexcept;

}  // namespace tl::cli
