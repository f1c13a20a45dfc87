// SIGINT and SIGTERM as something that can be waited for and counted.
#pragma once

namespace tl::cli::serve {

// While it lives, both signals only count. One at a time.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  int file() const noexcept;   // can be read once the first has come
  int count() const noexcept;  // that have come
};

}  // namespace tl::cli::serve
