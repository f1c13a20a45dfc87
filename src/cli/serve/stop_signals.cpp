#include "cli/serve/stop_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "tl/base/error.h"

namespace tl::cli::serve {

namespace {

std::atomic<int> stops{0};
static_assert(std::atomic<int>::is_always_lock_free);  // a handler adds to it
std::array<int, 2> stop_pipe{-1, -1};

void on_stop(int /*signal*/) {
  const int saved = errno;
  stops.fetch_add(1);
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(stop_pipe[1], &byte, 1);
  errno = saved;
}

}  // namespace

StopSignals::StopSignals() {
  if (stop_pipe[0] < 0 && ::pipe2(stop_pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorKind::Device, "serve", "no pipe for signals: ", std::strerror(errno));
  }
  stops = 0;
  struct sigaction action = {};
  action.sa_handler = on_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int StopSignals::file() const noexcept { return stop_pipe[0]; }
int StopSignals::count() const noexcept { return stops.load(); }

}  // namespace tl::cli::serve
