// Ctrl-C while work goes on.
#pragma once

namespace tl::cli {

// While one of these lives, the first Ctrl-C only sets interrupted(), so that the work can end and
// give back what it holds; a second one ends the program as usual. A pipe whose reader has gone is
// an error of the write and not a signal.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

bool interrupted() noexcept;
void clear_interrupt() noexcept;  // and listens for the next first one

}  // namespace tl::cli
