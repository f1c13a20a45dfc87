// The one thread that runs the model, and what handlers wait on. Requests of all connections are
// steps of one engine: who comes while others are being written joins at the next step. Who finds
// no place waits in a line of limited length.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tl/base/error.h"
#include "tl/model/engine.h"

namespace tl::cli::serve {

// What became of a request.
struct Outcome {
  FinishReason reason = FinishReason::Error;
  bool is_late = false;  // cancelled because its time was over
  ErrorKind kind = ErrorKind::Device;
  std::string message;  // with FinishReason::Error
  GenerationStatistics statistics;
  std::vector<float> embedding;  // of a request that asked for one
};

class Ticket {
 public:
  using Clock = std::chrono::steady_clock;

  // Waits for text, the end, or so long; gives what text has come since the last call.
  std::string wait(std::chrono::milliseconds time);
  std::optional<Outcome> outcome()
      const;  // nothing while it runs; then the next wait() gives the last text

 private:
  friend class Scheduler;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::optional<Outcome> outcome_;

  // Of the scheduler alone:
  std::atomic<bool> is_cancelled_{false};
  Clock::time_point submitted_ = Clock::now();
  Clock::time_point first_;  // text
  Clock::time_point deadline_ = Clock::time_point::max();
};
using TicketRef = std::shared_ptr<Ticket>;

struct SchedulerOptions {
  std::size_t parallel = 64;
  std::size_t queue = 256;
  double seconds = 600;  // for a request, waiting too; 0: as long as it takes
  std::uint64_t prefix_bytes = std::uint64_t{256} << 20;
};

// A count of times in classes, as Prometheus has them.
class Histogram {
 public:
  static constexpr double kBounds[] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                       2.5,  5,     10,   30,  60,   120};
  static constexpr std::size_t kClasses = std::size(kBounds) + 1;

  void add(double seconds);
  std::uint64_t counts[kClasses] = {};
  double sum = 0;
};

struct SchedulerNumbers {
  std::size_t running = 0, queued = 0;
  std::uint64_t prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0;
  std::uint64_t finished = 0, cancelled = 0, failed = 0;
  std::uint64_t prefix_bytes = 0, prefix_entries = 0, peak_cache_bytes = 0;
  Histogram request_seconds, first_text_seconds;
};

class Scheduler {
 public:
  Scheduler(Engine engine, const SchedulerOptions& options);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler();  // cancels what is left

  const Decoder& decoder() const noexcept;
  const Tokenizer& tokenizer() const noexcept;

  // Nothing when too many wait already.
  TicketRef generate(GenerationRequest request);
  TicketRef embed(std::vector<TokenId> tokens);
  void cancel(Ticket& ticket);
  void cancel_all();

  SchedulerNumbers numbers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tl::cli::serve
