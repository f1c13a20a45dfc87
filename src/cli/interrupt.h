// Ctrl-C while work goes on.
#pragma once

#include <atomic>

namespace tl::cli {

// While one of these lives, the first Ctrl-C only sets interrupted(), so that the work can end and
// give back what it holds; a second one ends the program as usual. A pipe whose reader has gone is
// an error of the write and not a signal. With Signals::Both a request to end (SIGTERM) is one too.
enum class Signals { Interrupt, Both };
class InterruptScope {
 public:
  explicit InterruptScope(Signals signals = Signals::Interrupt);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

bool interrupted() noexcept;
const std::atomic<bool>& interrupt_flag() noexcept;  // what interrupted() tells
void clear_interrupt() noexcept;                     // and listens for the next first one
// Waits until the file can be read, or is at its end; false when Ctrl-C came first.
bool wait_for_input(int file) noexcept;

}  // namespace tl::cli
