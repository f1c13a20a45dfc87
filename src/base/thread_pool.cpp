#include "tl/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/cpu_count.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl {

namespace {

// Ranges per thread: enough that a slow thread does not hold up the rest, few enough that taking
// one costs nothing.
constexpr std::uint64_t kRangesPerThread = 4;

// How long a thread looks before it sleeps: several times what waking it would take.
constexpr std::chrono::microseconds kSpin{60};

thread_local bool inside_loop = false;

void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

class InsideLoop {
 public:
  InsideLoop() noexcept : before_(std::exchange(inside_loop, true)) {}
  ~InsideLoop() { inside_loop = before_; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;

 private:
  bool before_;
};

int checked_threads(int threads) {
  if (threads < 1 || threads > ThreadPool::kMaxThreads) {
    throw Error(ErrorKind::BadArgument, "thread pool", "the number of threads must be from 1 to ",
                ThreadPool::kMaxThreads, ", got ", threads);
  }
  return threads;
}

}  // namespace

// One running parallel_for. Threads take ranges by counting `next` up.
struct ThreadPool::Loop {
  std::int64_t begin;
  std::uint64_t count;   // iterations
  std::uint64_t range;   // iterations in one range
  std::uint64_t ranges;  // how many ranges there are
  Body body;
  void* callable;

  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the thread that set `failed`, read when all have left
  // Workers in this loop. Changes under the pool's mutex; whoever sees zero once the loop is off
  // the pool's list may end its life.
  std::atomic<int> inside{0};

  bool has_work() const noexcept { return next.load(std::memory_order_relaxed) < ranges; }

  void take_part() noexcept {
    const InsideLoop mark;
    while (!failed.load(std::memory_order_relaxed)) {
      const std::uint64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= ranges) return;
      const std::uint64_t offset = index * range;
      const std::uint64_t length = std::min(range, count - offset);
      // Unsigned first: begin may be so far below zero that the sums do not fit a signed number on
      // the way.
      const auto first = static_cast<std::int64_t>(static_cast<std::uint64_t>(begin) + offset);
      const auto last = static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + length);
      try {
        body(callable, first, last);
      } catch (...) {
        if (!failed.exchange(true, std::memory_order_relaxed)) error = std::current_exception();
      }
    }
  }
};

struct ThreadPool::Worker {
  std::thread thread;
  bool stop = false;  // guarded by the pool's mutex
};

ThreadPool::ThreadPool() : ThreadPool(default_threads()) {}

ThreadPool::ThreadPool(int threads)
    : threads_(checked_threads(threads)), spins_(threads <= usable_cpus()) {}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& worker : workers_) worker->stop = true;
  }
  wake_.notify_all();
  for (const auto& worker : workers_) worker->thread.join();
}

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool;
  return pool;
}

int ThreadPool::default_threads() {
  const std::string_view text = environment("TL_NUM_THREADS");
  if (text.empty()) return std::min(usable_cpus(), kMaxThreads);
  int threads = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (status != std::errc{} || end != text.data() + text.size() || threads < 1 ||
      threads > kMaxThreads) {
    throw Error(ErrorKind::BadArgument, "thread pool", "TL_NUM_THREADS must be a number from 1 to ",
                kMaxThreads, ", got '", text, "'");
  }
  return threads;
}

int ThreadPool::threads() const {
  const std::lock_guard lock(mutex_);
  return threads_;
}

int ThreadPool::started_workers() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(workers_.size());
}

void ThreadPool::set_threads(int threads) {
  checked_threads(threads);
  if (inside_loop) {
    // A worker would wait for itself to end.
    throw Error(ErrorKind::BadArgument, "thread pool",
                "the number of threads cannot be set from inside a parallel loop");
  }
  std::vector<std::unique_ptr<Worker>> surplus;
  {
    const std::lock_guard lock(mutex_);
    threads_ = threads;
    spins_.store(threads <= usable_cpus(), std::memory_order_relaxed);
    while (workers_.size() + 1 > static_cast<std::size_t>(threads)) {
      workers_.back()->stop = true;
      surplus.push_back(std::move(workers_.back()));
      workers_.pop_back();
    }
  }
  wake_.notify_all();
  for (const auto& worker : surplus) worker->thread.join();
}

void ThreadPool::start_workers(int wanted) {
  while (static_cast<int>(workers_.size()) < wanted) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    try {
      worker.thread = std::thread([this, &worker] { work(worker); });
    } catch (const std::system_error&) {
      // The system gives no more threads. The loop is still right with fewer, and the next one asks
      // again.
      workers_.pop_back();
      return;
    }
  }
}

template <class Done>
bool ThreadPool::spin_until(Done&& done) const {
  if (done()) return true;
  if (!spins_.load(std::memory_order_relaxed)) return false;
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

ThreadPool::Loop* ThreadPool::find_work() const {
  const auto found =
      std::find_if(loops_.begin(), loops_.end(), [](const Loop* each) { return each->has_work(); });
  return found == loops_.end() ? nullptr : *found;
}

void ThreadPool::work(Worker& self) {
  std::unique_lock lock(mutex_);
  for (;;) {
    Loop* loop = find_work();
    if (loop == nullptr && !self.stop) {
      const std::uint64_t seen = begun_.load(std::memory_order_relaxed);
      lock.unlock();
      spin_until([&] { return begun_.load(std::memory_order_relaxed) != seen; });
      lock.lock();
      ++asleep_;
      wake_.wait(lock, [&] {
        loop = find_work();
        return self.stop || loop != nullptr;
      });
      --asleep_;
    }
    if (self.stop) return;
    loop->inside.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    loop->take_part();
    lock.lock();
    // The last touch of the loop. What was done in it is seen by who sees the zero.
    if (loop->inside.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
  }
}

void ThreadPool::run(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body,
                     void* callable) {
  if (grain < 1) {
    throw Error(ErrorKind::BadArgument, "parallel_for", "the grain must be at least 1, got ",
                grain);
  }
  if (begin >= end) return;
  const std::uint64_t count = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin);
  if (inside_loop || count <= static_cast<std::uint64_t>(grain)) {
    const InsideLoop mark;
    body(callable, begin, end);
    return;
  }

  std::unique_lock lock(mutex_);
  const auto threads = static_cast<std::uint64_t>(threads_);
  const std::uint64_t even = (count - 1) / (threads * kRangesPerThread) + 1;
  const std::uint64_t range =
      threads == 1 ? count : std::max(static_cast<std::uint64_t>(grain), even);
  Loop loop{.begin = begin,
            .count = count,
            .range = range,
            .ranges = (count - 1) / range + 1,
            .body = body,
            .callable = callable,
            .error = nullptr};
  const auto helpers = static_cast<int>(std::min(threads, loop.ranges) - 1);
  if (helpers > 0) {
    start_workers(helpers);
    loops_.push_back(&loop);
    begun_.fetch_add(1, std::memory_order_relaxed);
  }
  const int to_wake = std::min(helpers, asleep_);
  lock.unlock();
  for (int i = 0; i < to_wake; ++i) wake_.notify_one();

  loop.take_part();

  if (helpers > 0) {
    lock.lock();
    std::erase(loops_, &loop);  // from here on no worker can enter
    lock.unlock();
    const auto empty = [&] { return loop.inside.load(std::memory_order_acquire) == 0; };
    if (!spin_until(empty)) {
      lock.lock();
      left_.wait(lock, empty);
    }
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

}  // namespace tl
