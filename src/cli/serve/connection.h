// A client's socket, with a bound on the bytes and the time of each request.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

#include "cli/serve/http.h"

namespace tl::cli::serve {

// The file is the caller's, who closes it.
class Connection {
 public:
  Connection(int file, const HttpOptions& options);

  // ---- for the thread that serves it
  // Waits for the first byte of a request; false when none comes, or no more shall.
  bool wait_for_request(const std::atomic<bool>& is_closing);
  void headers_are_read();                // from here on it is the body that is bounded
  long read(char* to, std::size_t size);  // -1 where nothing comes in time, or more than may
  long write(const char* from, std::size_t size);
  bool is_readable() const;
  bool is_writable() const;
  bool is_gone() const;  // has the client closed it?
  // Says that no more comes, and lets the client read what was said: closing with bytes unread
  // would reset the connection and take the reply with it.
  void linger();

  int file() const noexcept { return file_; }
  bool must_close = false;  // what is left of the request was not read, or it was none

  // ---- for every thread
  std::atomic<bool> is_idle{true};  // between two requests

 private:
  using Clock = std::chrono::steady_clock;
  long fill();

  int file_;
  const HttpOptions& options_;
  Clock::time_point deadline_;
  std::size_t left_ = 0;  // bytes that the request may still have
  std::array<char, 4096> buffer_{};
  std::size_t at_ = 0, end_ = 0;  // what of the buffer was not read
};

}  // namespace tl::cli::serve
