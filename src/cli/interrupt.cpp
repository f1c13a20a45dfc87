#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace tl::cli {

namespace {

std::atomic<bool> was_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // a handler may set it

void listen() {
  struct sigaction action = {};
  action.sa_handler = [](int) { was_interrupted.store(true); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one is the system's; reads end
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptScope::InterruptScope() {
  was_interrupted.store(false);
  listen();
  std::signal(SIGPIPE, SIG_IGN);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
}

bool interrupted() noexcept { return was_interrupted.load(); }

void clear_interrupt() noexcept {
  was_interrupted.store(false);
  listen();
}

}  // namespace tl::cli
