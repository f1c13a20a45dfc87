// Threads that share the iterations of a loop.
//
// The calling thread always works too, so a pool of n threads starts n - 1 workers, and those only
// when a loop first has work for them. A loop inside a loop runs on the thread that reached it: the
// outer loop already keeps every thread busy. Several threads may run loops on one pool at the same
// time; they then share the workers.
//
// A worker that has nothing to do looks for the next loop for a moment before it sleeps, because
// waking a thread takes as long as many a loop; a pool with more threads than the process has CPUs
// does not.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace tl {

class ThreadPool {
 public:
  static constexpr int kMaxThreads = 4096;

  ThreadPool();  // default_threads() of them
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The pool that the library's own loops run on.
  static ThreadPool& shared();

  // TL_NUM_THREADS when it is set, else the CPUs this process may use (its affinity mask and its
  // cgroup's quota). Throws BadArgument when TL_NUM_THREADS is not a number from 1 to kMaxThreads.
  static int default_threads();

  // Threads that take part in a loop, the caller included.
  int threads() const;
  // Takes effect for loops that start afterwards; loops that run keep going. Not from inside a
  // loop. Throws BadArgument for fewer than 1 or more than kMaxThreads.
  void set_threads(int threads);
  // Workers that are running now.
  int started_workers() const;

  // Calls f(first, last) for ranges that together cover [begin, end) once; nothing when it is
  // empty. `grain` is the number of iterations worth handing to another thread: only the last range
  // may be shorter. Returns when all is done. The first exception that f throws is rethrown here;
  // ranges not begun by then are left out.
  template <class F>
  void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, F&& f) {
    using Callable = std::remove_reference_t<F>;
    run(
        begin, end, grain,
        [](void* callable, std::int64_t first, std::int64_t last) {
          (*static_cast<Callable*>(callable))(first, last);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(f))));
  }

 private:
  using Body = void (*)(void* callable, std::int64_t first, std::int64_t last);
  struct Loop;
  struct Worker;

  void run(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body, void* callable);
  void start_workers(int wanted);  // with mutex_ held
  void work(Worker& self);
  Loop* find_work() const;  // with mutex_ held
  // Until `done` holds, for a moment at most; whether it does.
  template <class Done>
  bool spin_until(Done&& done) const;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::condition_variable left_;  // a worker has left a loop
  std::vector<Loop*> loops_;      // running, oldest first; each lives on its caller's stack
  std::vector<std::unique_ptr<Worker>> workers_;
  int threads_;
  int asleep_ = 0;                  // workers that wait for wake_
  std::atomic<bool> spins_{false};  // whether looking for a moment is worth it
  std::atomic<std::uint64_t> begun_{
      0};  // loops begun that have work for workers; changes under mutex_
};

}  // namespace tl
