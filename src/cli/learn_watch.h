// What learn blocks of a program do, for the person who waits and for a picture of their losses.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/chart.h"
#include "cli/progress.h"
#include "tl/lang/interpreter.h"

namespace tl::cli {

class LearnWatch {
 public:
  // The program prints to `out`, or to what out() gives in its place. `losses`: where they are
  // kept; null when nobody wants them, as each has to be fetched from the device.
  LearnWatch(std::ostream& out, std::vector<Series>* losses);

  std::ostream& out() { return around_.stream(); }
  void hear(const LearnProgress& now);

 private:
  void show(const LearnProgress& now, double loss);
  void keep(const LearnProgress& now, double loss);

  std::unique_ptr<Progress> progress_;
  AroundProgress around_;
  std::vector<Series>* losses_;
  bool is_new_run_ = false;
};

// A curve for each learn block of the program. The axis is logarithmic where the losses go over
// more than two powers of ten.
Chart loss_chart(const std::string& program, std::vector<Series> losses);

}  // namespace tl::cli
