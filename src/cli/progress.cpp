#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <streambuf>
#include <utility>

#include "tl/base/text.h"

namespace tl::cli {

namespace {

constexpr std::size_t kBarWidth = 24;
constexpr auto kBetween = std::chrono::milliseconds(100);
constexpr auto kWindow = std::chrono::seconds(10);  // that the rate is measured over

std::atomic<bool> asked_for_quiet = false;

bool can_overwrite() {
  return !asked_for_quiet && ::isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb";
}

std::size_t terminal_columns() {
  winsize window{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  return known ? window.ws_col : 80U;
}

std::string amount(std::uint64_t count, const std::string& unit) {
  return unit == "bytes" ? format_bytes(count) : format_count(count);
}

std::string rate_text(const ProgressState& state) {
  if (!(state.rate > 0)) return {};
  if (state.unit == "bytes") {
    return fmt::format("{}/s", format_bytes(static_cast<std::uint64_t>(state.rate)));
  }
  const int digits = state.rate < 10 ? 2 : state.rate < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}/s", state.rate, digits, state.unit);
}

std::string clock_text(double seconds) {
  if (!(seconds < 100 * 3600)) return "long";
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bar(const ProgressState& state, double share) {
  const auto full = std::min(kBarWidth, static_cast<std::size_t>(share * kBarWidth));
  std::string done(full, '=');
  if (full > 0 && full < kBarWidth) done.back() = '>';
  const std::string rest(kBarWidth - full, ' ');
  if (!state.is_coloured) return fmt::format("[{}{}]", done, rest);
  return fmt::format("[\x1b[32m{}\x1b[0m{}]", done, rest);
}

// What of `text` fits; the bytes of a character stay together.
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t used = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && ++used > columns) break;
  }
  return text.substr(0, at);
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// Names come from files: nothing in them may move the cursor.
std::string harmless(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; }, '?');
  return out;
}

}  // namespace

std::string progress_text(const ProgressState& state, std::size_t columns) {
  constexpr std::string_view kWheel = "|/-\\";
  const std::size_t room = columns > 1 ? columns - 1 : 0;
  std::string out;
  std::size_t used = 0;  // colours take no room
  // Parts that come first matter most; one that does not fit is left out with all after it.
  bool is_full = false;
  const auto part = [&](const std::string& text, std::size_t width) {
    const std::size_t gap = used > 0 ? 1 : 0;
    if (text.empty() || is_full) return;
    is_full = used + gap + width > room;
    if (is_full) return;
    out += (gap > 0 ? " " : "") + text;
    used += gap + width;
  };
  const auto plain = [&](const std::string& text) { part(text, columns_of(text)); };

  const std::string label = harmless(state.label);
  plain(std::string(cut(label, room)));
  if (state.total > 0) {
    const std::uint64_t done = std::min(state.done, state.total);
    const double share = static_cast<double>(done) / static_cast<double>(state.total);
    // A narrow terminal has the percentage without the bar.
    if (used + 1 + kBarWidth + 2 + 1 + 4 <= room) part(bar(state, share), kBarWidth + 2);
    plain(fmt::format("{:3.0f}%", std::floor(100 * share)));
    plain(fmt::format("{}/{}{}", amount(done, state.unit), amount(state.total, state.unit),
                      state.unit == "bytes" || state.unit.empty() ? "" : " " + state.unit));
    plain(rate_text(state));
    if (state.rate > 0 && done < state.total) {
      plain(clock_text(static_cast<double>(state.total - done) / state.rate) + " left");
    }
  } else {
    plain(std::string(1, kWheel[state.turn % kWheel.size()]));
    plain(fmt::format("{}{}", amount(state.done, state.unit),
                      state.unit == "bytes" || state.unit.empty() ? "" : " " + state.unit));
    plain(rate_text(state));
  }
  const std::string what = harmless(state.what);
  if (used + 1 < room && !what.empty()) plain(std::string(cut(what, room - used - 1)));
  return out;
}

Progress::Progress(std::string label, std::uint64_t total, std::string unit)
    : is_shown_(can_overwrite()) {
  state_.is_coloured = environment("NO_COLOR").empty();
  restart(std::move(label), total, std::move(unit));
}

Progress::~Progress() { hide(); }

void Progress::restart(std::string label, std::uint64_t total, std::string unit) {
  if (!is_shown_) return;
  const std::lock_guard lock(mutex_);
  state_.label = std::move(label);
  state_.unit = std::move(unit);
  state_.total = total;
  state_.done = 0;
  state_.rate = 0;
  state_.what.clear();
  const Clock::time_point now = Clock::now();
  samples_.assign(1, {now, 0});
  next_ = now;
}

void Progress::set_total(std::uint64_t total) {
  if (!is_shown_) return;
  const std::lock_guard lock(mutex_);
  state_.total = total;
}

void Progress::set(std::uint64_t done, std::string_view what) {
  if (!is_shown_) return;
  const std::lock_guard lock(mutex_);
  change(done, what);
}

void Progress::add(std::uint64_t more, std::string_view what) {
  if (!is_shown_) return;
  const std::lock_guard lock(mutex_);
  change(state_.done + more, what);
}

void Progress::change(std::uint64_t done, std::string_view what) {
  state_.done = done;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  state_.what = what;
  redraw(now);
}

void Progress::redraw(Clock::time_point now) {
  next_ = now + kBetween;
  ++state_.turn;
  samples_.push_back({now, state_.done});
  while (samples_.size() > 2 && now - samples_.front().when > kWindow) samples_.pop_front();
  const Sample& first = samples_.front();
  const double seconds = std::chrono::duration<double>(now - first.when).count();
  // The first moments tell little.
  state_.rate = seconds > 0.2 && state_.done > first.done
                    ? static_cast<double>(state_.done - first.done) / seconds
                    : 0;
  fmt::print(stderr, "\r{}\033[K", progress_text(state_, terminal_columns()));
  std::fflush(stderr);
  is_written_ = true;
}

void Progress::hide() {
  if (!is_shown_) return;
  const std::lock_guard lock(mutex_);
  if (!is_written_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  is_written_ = false;
}

// ---- output beside a bar

namespace {

class HidingBuffer : public std::streambuf {
 public:
  HidingBuffer(std::ostream& to, const std::unique_ptr<Progress>& progress)
      : to_(to), progress_(progress) {}

  bool is_at_line_start = true;

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    clear(traits_type::to_char_type(c));
    return to_.rdbuf()->sputc(traits_type::to_char_type(c));
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (count > 0) clear(text[count - 1]);
    return to_.rdbuf()->sputn(text, count);
  }
  int sync() override { return to_.rdbuf()->pubsync(); }

 private:
  void clear(char last) {
    if (progress_) progress_->hide();
    is_at_line_start = last == '\n';
  }
  std::ostream& to_;
  const std::unique_ptr<Progress>& progress_;
};

}  // namespace

struct AroundProgress::Inside {
  Inside(std::ostream& to, const std::unique_ptr<Progress>& progress)
      : buffer(to, progress),
        stream(::isatty(STDOUT_FILENO) == 1 && can_overwrite() ? &buffer : to.rdbuf()) {}
  HidingBuffer buffer;
  std::ostream stream;
};

AroundProgress::AroundProgress(std::ostream& to, const std::unique_ptr<Progress>& progress)
    : inside_(std::make_unique<Inside>(to, progress)) {}

AroundProgress::~AroundProgress() = default;

std::ostream& AroundProgress::stream() { return inside_->stream; }
bool AroundProgress::is_at_line_start() const noexcept { return inside_->buffer.is_at_line_start; }

// ---- quiet

void set_quiet(bool is_quiet) noexcept { asked_for_quiet = is_quiet; }

}  // namespace tl::cli
