#include "cli/serve/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace tl::cli::serve {

namespace {

using SocketClock = std::chrono::steady_clock;

constexpr std::size_t kHeaderBytes = 64 << 10;  // of one request, its first line too

SocketClock::time_point after(double seconds) {
  return SocketClock::now() +
         std::chrono::duration_cast<SocketClock::duration>(std::chrono::duration<double>(seconds));
}

bool is_ready(int file, short events, SocketClock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - SocketClock::now()).count();
    pollfd one{file, events, 0};
    const int count = ::poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

}  // namespace

Connection::Connection(int file, const HttpOptions& options) : file_(file), options_(options) {
  const int on = 1;  // a token is sent when it is there
  ::setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool Connection::wait_for_request(const std::atomic<bool>& is_closing) {
  // Before the question: who closes asks in the other order, so one of both sees the other.
  is_idle = true;
  const bool comes =
      !is_closing &&
      (at_ < end_ || (is_ready(file_, POLLIN, after(options_.idle_seconds)) && fill() > 0));
  is_idle = false;
  deadline_ = after(options_.read_seconds);
  left_ = kHeaderBytes;
  must_close = true;  // until its headers are understood
  return comes;
}

void Connection::headers_are_read() {
  must_close = false;
  left_ = options_.body_bytes * 2 + kHeaderBytes;  // chunks have lengths of their own
}

bool Connection::is_gone() const {
  char byte = 0;
  const ssize_t got = ::recv(file_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void Connection::linger() {
  ::shutdown(file_, SHUT_WR);
  const auto deadline = after(1);
  std::array<char, 4096> waste{};
  for (int i = 0; i < 1024 && is_ready(file_, POLLIN, deadline); ++i) {
    if (::recv(file_, waste.data(), waste.size(), MSG_DONTWAIT) <= 0) return;
  }
}

bool Connection::is_readable() const { return at_ < end_ || is_ready(file_, POLLIN, deadline_); }

bool Connection::is_writable() const {
  return !is_gone() && is_ready(file_, POLLOUT, after(options_.write_seconds));
}

long Connection::read(char* to, std::size_t size) {
  if (at_ == end_ && (!is_ready(file_, POLLIN, deadline_) || fill() <= 0)) return -1;
  const std::size_t count = std::min({size, end_ - at_, left_});
  if (count == 0) return -1;  // more than a request may have
  std::memcpy(to, buffer_.data() + at_, count);
  at_ += count;
  left_ -= count;
  return static_cast<long>(count);
}

long Connection::write(const char* from, std::size_t size) {
  const auto deadline = after(options_.write_seconds);
  for (std::size_t done = 0; done < size;) {
    const ssize_t sent = ::send(file_, from + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      done += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!is_ready(file_, POLLOUT, deadline)) return -1;
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return static_cast<long>(size);
}

long Connection::fill() {
  ssize_t got = -1;
  do {
    got = ::recv(file_, buffer_.data(), buffer_.size(), 0);
  } while (got < 0 && errno == EINTR);
  at_ = 0;
  end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  return got;
}

}  // namespace tl::cli::serve
