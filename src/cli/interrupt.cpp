#include "cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace tl::cli {

namespace {

std::atomic<bool> was_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // a handler may set it

// The signal may come to any thread, so that a wait of the main one would not end by it: a byte in
// this pipe ends it. Made once; without it a wait ends at the next line.
std::array<int, 2> bell{-1, -1};
Signals listens_for = Signals::Interrupt;

void on_interrupt(int /*signal*/) {
  const int saved = errno;
  was_interrupted.store(true);
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(bell[1], &byte, 1);
  errno = saved;
}

void listen() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one is the system's
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  if (listens_for == Signals::Both) ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptScope::InterruptScope(Signals signals) {
  listens_for = signals;
  if (bell[0] < 0) [[maybe_unused]]
    const int failed = ::pipe2(bell.data(), O_CLOEXEC | O_NONBLOCK);
  clear_interrupt();
  std::signal(SIGPIPE, SIG_IGN);
}

InterruptScope::~InterruptScope() {
  std::signal(SIGINT, SIG_DFL);
  if (listens_for == Signals::Both) std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
}

bool interrupted() noexcept { return was_interrupted.load(); }
const std::atomic<bool>& interrupt_flag() noexcept { return was_interrupted; }

void clear_interrupt() noexcept {
  was_interrupted.store(false);
  char bytes[16];
  while (::read(bell[0], bytes, sizeof bytes) > 0) {
  }
  listen();
}

bool wait_for_input(int file) noexcept {
  std::array<pollfd, 2> both{pollfd{file, POLLIN, 0}, pollfd{bell[0], POLLIN, 0}};
  while (!interrupted()) {
    if (::poll(both.data(), both.size(), -1) < 0 && errno != EINTR) return true;  // read() tells
    if (!interrupted() && both[0].revents != 0) return true;
  }
  return false;
}

}  // namespace tl::cli
