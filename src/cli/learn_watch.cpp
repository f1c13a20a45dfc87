#include "cli/learn_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>

#include "cli/plot_file.h"

namespace tl::cli {

namespace {

constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

}  // namespace

LearnWatch::LearnWatch(std::ostream& out, std::vector<Series>* losses)
    : around_(out, progress_), losses_(losses) {}

void LearnWatch::hear(const LearnProgress& now) {
  switch (now.stage) {
    case LearnProgress::Stage::Begin:
      progress_ = std::make_unique<Progress>(
          fmt::format("learn {}", file_name(std::string(now.place))),
          static_cast<std::uint64_t>(now.steps), now.steps > 0 ? "epochs" : "steps");
      is_new_run_ = true;
      break;
    case LearnProgress::Stage::Step: {
      // Where the block has an objective the loss is on the host already.
      const double loss = losses_ != nullptr || now.steps > 0 ? now.loss() : kNoLoss;
      if (losses_ != nullptr) keep(now, loss);
      if (progress_) show(now, loss);
      break;
    }
    case LearnProgress::Stage::End:
      progress_.reset();
      break;
  }
}

void LearnWatch::show(const LearnProgress& now, double loss) {
  if (!progress_->is_shown() || !around_.is_at_line_start()) return;
  around_.stream().flush();  // what waits in the buffer belongs above the bar
  progress_->set(static_cast<std::uint64_t>(now.step),
                 std::isnan(loss) ? "" : fmt::format("loss {:.6g}", loss));
}

// A block that runs again goes on where it was, after a gap.
void LearnWatch::keep(const LearnProgress& now, double loss) {
  const std::string name = file_name(std::string(now.place));
  auto at = std::find_if(losses_->begin(), losses_->end(),
                         [&](const Series& each) { return each.name == name; });
  if (at == losses_->end()) at = losses_->insert(at, Series{.name = name});
  if (std::exchange(is_new_run_, false) && !at->x.empty()) {
    at->x.push_back(at->x.back());
    at->y.push_back(kNoLoss);
  }
  at->x.push_back(at->x.empty() ? 1 : at->x.back() + 1);
  at->y.push_back(loss);
}

Chart loss_chart(const std::string& program, std::vector<Series> losses) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const Series& series : losses) {
    for (const double loss : series.y) {
      if (!std::isfinite(loss)) continue;
      low = std::min(low, loss);
      high = std::max(high, loss);
    }
  }
  const bool is_logarithmic = low > 0 && high / low > 100;
  return {.title = fmt::format("Loss of {}", file_name(program)),
          .x_label = "step",
          .y_label = is_logarithmic ? "loss, logarithmic" : "loss",
          .log_y = is_logarithmic,
          .series = std::move(losses)};
}

}  // namespace tl::cli
