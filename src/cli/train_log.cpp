#include "cli/train_log.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <sstream>
#include <vector>

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::cli {

namespace {

constexpr std::string_view kColumns = "step,loss,held_out,lr,tokens_per_second";

// The lines of a table up to a step.
std::vector<std::string> lines_until(const std::string& path, std::int64_t step) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::int64_t at = 0;
    const auto [end, status] = std::from_chars(line.data(), line.data() + line.size(), at);
    if (status == std::errc{} && at <= step) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string format_left(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(std::max(0.0, seconds)));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

void print_text(std::string_view name, const TrainText& text) {
  fmt::print("{}: {} documents, {}, {} tokens ({:.2f} bytes each), {} rows{}\n", name,
             format_count(text.documents), format_bytes(text.bytes), format_count(text.tokens),
             static_cast<double>(text.bytes) / static_cast<double>(text.tokens),
             format_count(text.rows), text.from_cache ? ", tokenised before" : "");
}

TrainLog::TrainLog(const std::string& path, std::int64_t resumed) : path_(path) {
  std::vector<std::string> kept;
  if (resumed > 0) kept = lines_until(path, resumed);
  csv_.open(path, std::ios::trunc);
  csv_ << kColumns << '\n';
  for (const std::string& line : kept) csv_ << line << '\n';
  if (!csv_.flush()) throw Error(ErrorKind::BadFile, path, "cannot be written");
}

void TrainLog::pause() { worked_ += std::chrono::duration<double>(Clock::now() - since_).count(); }
void TrainLog::go_on() { since_ = Clock::now(); }

void TrainLog::line(const Trainer& trainer, const Device& device, std::span<const double> losses,
                    double rate, const std::optional<HeldOutLoss>& held_out) {
  const auto count = static_cast<double>(losses.size());
  const double loss = std::accumulate(losses.begin(), losses.end(), 0.0) / count;
  seconds_per_step_ = worked_ / count;
  worked_ = 0;
  const double speed = static_cast<double>(trainer.tokens_per_step()) / seconds_per_step_;
  const double left =
      static_cast<double>(trainer.config().steps - trainer.steps()) * seconds_per_step_;
  fmt::print("step {:>{}}/{}  loss {:.4f}  {}lr {:.2e}  {} tokens/s  {} left  peak {}\n",
             trainer.steps(), fmt::formatted_size("{}", trainer.config().steps),
             trainer.config().steps, loss,
             held_out ? fmt::format("held-out {:.4f}  ", held_out->loss) : "", rate,
             format_count(static_cast<std::uint64_t>(speed)), format_left(left),
             format_bytes(device.pool().peak_bytes));
  std::fflush(stdout);
  csv_ << fmt::format("{},{:.6f},{},{:.6g},{:.1f}\n", trainer.steps(), loss,
                      held_out ? fmt::format("{:.6f}", held_out->loss) : "", rate, speed);
  if (!csv_.flush()) throw Error(ErrorKind::BadFile, path_, "cannot be written");
}

Chart TrainLog::chart(const std::string& title) const {
  Chart out{.title = title, .x_label = "step", .y_label = "loss (nats per token)", .log_y = true};
  Series train{.name = "training"}, held_out{.name = "held out"};
  for (const std::string& line : lines_until(path_, std::numeric_limits<std::int64_t>::max())) {
    std::istringstream fields(line);
    std::string step, loss, other;
    std::getline(std::getline(std::getline(fields, step, ','), loss, ','), other, ',');
    train.x.push_back(std::stod(step));
    train.y.push_back(std::stod(loss));
    if (other.empty()) continue;
    held_out.x.push_back(train.x.back());
    held_out.y.push_back(std::stod(other));
  }
  out.series.push_back(std::move(train));
  if (!held_out.x.empty()) out.series.push_back(std::move(held_out));
  return out;
}

}  // namespace tl::cli
