#include "tl/runtime/read_into.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/context.h"
#include "runtime/stream_state.h"
#include "tl/base/error.h"
#include "tl/base/thread_pool.h"
#include "tl/runtime/host_buffer.h"
#include "tl/runtime/label.h"

namespace tl {

namespace {

constexpr const char* kWhere = "read into memory";
constexpr int kDefaultThreads = 8;
constexpr std::uint64_t kAlignment = 256;  // of what shares a buffer
constexpr std::uint64_t kLeastPiece = ReadOptions::kLeastStaging / 2;
constexpr std::uint64_t kHostPiece = std::uint64_t{4} << 20;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Part {
  std::size_t index;
  std::uint64_t offset;
  std::uint64_t bytes;
};

// A pair, so that one can be read into while the other is on its way.
struct Buffers {
  std::array<RawHostBuffer, 2> memory;
  std::array<std::optional<Event>, 2> sent;
};

class Reading {
 public:
  Reading(const Device& device, std::span<RawMemory> memories, const ReadSource& source,
          const ReadOptions& options)
      : device_(device), stream_(device.stream()), source_(source), progress_(options.progress) {
    for (RawMemory& memory : memories) {
      if (memory.bytes() != 0 && !memory.device().same_device(device)) {
        throw Error(ErrorKind::WrongDevice, kWhere, "memory on ", memory.location(),
                    " was not taken on the device handle that reads, ", device);
      }
      addresses_.push_back(memory.overwrite_data(stream_));
      sizes_.push_back(memory.bytes());
      total_ += memory.bytes();
      padded_ += aligned(memory.bytes());
    }
    plan(options);
  }

  void run() {
    if (total_ == 0) return;
    {
      std::vector<std::jthread> threads;
      threads.reserve(buffers_.size());
      start(threads);
      if (threads.empty()) work(buffers_[0]);  // the system has no thread to spare
      report_until_read();
    }
    settle();
    if (problem_) std::rethrow_exception(problem_);
    if (progress_) progress_({.done = total_, .total = total_, .index = sizes_.size() - 1});
  }

 private:
  // How many threads, and how much they read at a time: no more than there is work for.
  void plan(const ReadOptions& options) {
    if (options.threads < 0 || options.threads > ReadOptions::kMostThreads) {
      throw Error(ErrorKind::BadArgument, kWhere, options.threads, " threads are not 0 to ",
                  ReadOptions::kMostThreads);
    }
    if (options.staging_bytes < ReadOptions::kLeastStaging) {
      throw Error(ErrorKind::BadArgument, kWhere, options.staging_bytes,
                  " bytes of staging are fewer than ", ReadOptions::kLeastStaging);
    }
    const int wanted = options.threads != 0
                           ? options.threads
                           : std::min(ThreadPool::default_threads(), kDefaultThreads);
    const std::uint64_t room = std::min(options.staging_bytes, 2 * padded_);
    const std::uint64_t most = std::max<std::uint64_t>(1, room / (2 * kLeastPiece));
    const std::uint64_t threads = std::min<std::uint64_t>(static_cast<std::uint64_t>(wanted), most);
    buffers_.resize(threads);
    piece_ = device_.is_cpu()
                 ? kHostPiece
                 : std::max(room / (2 * threads), kAlignment) / kAlignment * kAlignment;
    if (device_.is_cpu() || total_ == 0) return;
    const LabelScope label("staging");
    for (Buffers& pair : buffers_) {
      for (RawHostBuffer& each : pair.memory) each = buffer(piece_);
    }
  }

  // Pageable memory will do, if slowly, where no more can be pinned.
  RawHostBuffer buffer(std::uint64_t bytes) const {
    try {
      return RawHostBuffer::pinned(device_, bytes);
    } catch (const OutOfMemory&) {
      return RawHostBuffer::pageable(bytes);
    }
  }

  void start(std::vector<std::jthread>& threads) {
    for (Buffers& pair : buffers_) {
      {
        const std::lock_guard lock(mutex_);
        ++running_;
      }
      try {
        threads.emplace_back([this, &pair] {
          work(pair);
          const std::lock_guard lock(mutex_);
          --running_;
          changed_.notify_one();
        });
      } catch (const std::exception&) {
        const std::lock_guard lock(mutex_);
        --running_;
        return;  // those that run do it all
      }
    }
  }

  // The next bytes that fit into one buffer. Empty at the end.
  void next(std::vector<Part>& parts) {
    parts.clear();
    const std::lock_guard lock(mutex_);
    if (problem_) return;
    std::uint64_t room = piece_;
    while (index_ < sizes_.size() && room > 0) {
      const std::uint64_t bytes = std::min(room, sizes_[index_] - offset_);
      if (bytes > 0) parts.push_back({index_, offset_, bytes});
      offset_ += bytes;
      room -= std::min(room, aligned(bytes));
      if (offset_ == sizes_[index_]) {
        ++index_;
        offset_ = 0;
      }
    }
  }

  void work(Buffers& pair) noexcept {
    try {
      std::vector<Part> parts;
      for (std::size_t turn = 0;; turn ^= 1) {
        next(parts);
        if (parts.empty()) break;
        if (device_.is_cpu()) {
          for (const Part& part : parts) {
            source_(part.index, part.offset, {addresses_[part.index] + part.offset, part.bytes});
          }
        } else {
          send(parts, pair.memory[turn], pair.sent[turn]);
        }
        const std::lock_guard lock(mutex_);
        for (const Part& part : parts) done_ += part.bytes;
        last_ = std::max(last_, parts.back().index);
        changed_.notify_one();
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void send(const std::vector<Part>& parts, RawHostBuffer& buffer, std::optional<Event>& sent) {
    if (sent) sent->synchronize();
    sent.reset();
    std::uint64_t at = 0;
    for (const Part& part : parts) {
      source_(part.index, part.offset, {buffer.data() + at, part.bytes});
      at += aligned(part.bytes);
    }
    Context& context = device_.context();
    const CurrentContext current(context);
    at = 0;
    for (const Part& part : parts) {
      count(context.counters().uploads);
      context.check(context.table().upload(addresses_[part.index] + part.offset, buffer.data() + at,
                                           part.bytes, stream_.state()->native()),
                    kWhere);
      at += aligned(part.bytes);
    }
    Stream stream(stream_);
    sent.emplace(stream.record());
  }

  void report_until_read() {
    std::uint64_t reported = 0;
    std::unique_lock lock(mutex_);
    while (running_ > 0) {
      changed_.wait(lock, [&] { return running_ == 0 || (progress_ && done_ != reported); });
      // The end is told when all of it is on the device.
      if (!progress_ || problem_ || done_ == reported || done_ == total_) {
        reported = done_;
        continue;
      }
      reported = done_;
      const ReadProgress now{.done = done_, .total = total_, .index = last_};
      lock.unlock();
      try {
        progress_(now);
      } catch (...) {
        fail(std::current_exception());
      }
      lock.lock();
    }
  }

  // Buffers and memory may go only when the device is done with them, whatever happened.
  void settle() {
    if (device_.is_cpu()) return;
    if (!problem_) {
      try {
        stream_.synchronize();
        return;
      } catch (...) {
        problem_ = std::current_exception();
      }
    }
    Context& context = device_.context();
    try {
      const CurrentContext current(context);
      context.note_failure(context.table().synchronize_stream(stream_.state()->bare()), kWhere);
    } catch (const Error&) {
      // The context cannot be selected: the device is gone, and nothing copies any more.
    }
  }

  void fail(std::exception_ptr problem) noexcept {
    const std::lock_guard lock(mutex_);
    if (!problem_) problem_ = std::move(problem);
  }

  Device device_;
  Stream stream_;
  const ReadSource& source_;
  const std::function<void(const ReadProgress&)>& progress_;
  std::vector<std::byte*> addresses_;
  std::vector<std::uint64_t> sizes_;
  std::uint64_t total_ = 0;
  std::uint64_t padded_ = 0;  // as it lies in buffers
  std::uint64_t piece_ = 0;
  std::vector<Buffers> buffers_;  // one pair for each thread

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::size_t index_ = 0;  // the next bytes to read
  std::uint64_t offset_ = 0;
  std::uint64_t done_ = 0;
  std::size_t last_ = 0;
  std::size_t running_ = 0;
  std::exception_ptr problem_;  // the first
};

}  // namespace

void read_into(const Device& device, std::span<RawMemory> memories, const ReadSource& source,
               const ReadOptions& options) {
  Reading(device, memories, source, options).run();
}

}  // namespace tl
