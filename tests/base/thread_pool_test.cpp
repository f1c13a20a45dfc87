#include "tl/base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu_count.h"
#include "tl/base/error.h"

namespace tl {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

// The ranges a loop was cut into, in order.
std::vector<Range> ranges_of(ThreadPool& pool, std::int64_t begin, std::int64_t end,
                             std::int64_t grain) {
  std::mutex mutex;
  std::vector<Range> ranges;
  pool.parallel_for(begin, end, grain, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(first, last);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

std::string bad_argument(auto&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::BadArgument);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(ThreadPool, EveryIterationRunsOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int count : {1, 2, 7, 1000}) {
      for (const int grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        pool.parallel_for(0, count, grain, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }))
            << threads << " threads, " << count << " iterations, grain " << grain;
      }
    }
  }
}

TEST(ThreadPool, OnlyTheLastRangeIsShorterThanTheGrain) {
  ThreadPool pool(4);
  const std::vector<Range> ranges = ranges_of(pool, 0, 1003, 100);
  ASSERT_GT(ranges.size(), 1U);
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
    EXPECT_GE(ranges[i].second - ranges[i].first, 100);
    EXPECT_EQ(ranges[i].second, ranges[i + 1].first);
  }
  EXPECT_EQ(ranges.front().first, 0);
  EXPECT_EQ(ranges.back().second, 1003);
}

TEST(ThreadPool, EmptyRangesCallNothing) {
  ThreadPool pool(2);
  EXPECT_TRUE(ranges_of(pool, 5, 5, 1).empty());
  EXPECT_TRUE(ranges_of(pool, 5, 4, 1).empty());
  EXPECT_EQ(pool.started_workers(), 0);
}

TEST(ThreadPool, TheWidestRangeDoesNotOverflow) {
  ThreadPool pool(3);
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  const std::vector<Range> ranges = ranges_of(pool, kLow, kHigh, 1);
  EXPECT_EQ(ranges.front().first, kLow);
  EXPECT_EQ(ranges.back().second, kHigh);
}

TEST(ThreadPool, WorkersStartWhenALoopNeedsThem) {
  ThreadPool pool(4);
  EXPECT_EQ(pool.started_workers(), 0);
  ranges_of(pool, 0, 10, 10);  // one range: the caller does it
  EXPECT_EQ(pool.started_workers(), 0);
  ranges_of(pool, 0, 2, 1);  // two ranges: one helper is enough
  EXPECT_EQ(pool.started_workers(), 1);
  ranges_of(pool, 0, 100, 1);
  EXPECT_EQ(pool.started_workers(), 3);
}

TEST(ThreadPool, AllThreadsTakePartAndTheCallerIsOneOfThem) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  std::mutex mutex;
  std::condition_variable arrived;
  std::set<std::thread::id> ids;
  // Nobody leaves its first range before all have come, so this ends only if each thread takes one.
  pool.parallel_for(0, kThreads * 4, 1, [&](std::int64_t, std::int64_t) {
    std::unique_lock lock(mutex);
    ids.insert(std::this_thread::get_id());
    arrived.notify_all();
    arrived.wait(lock, [&] { return ids.size() == kThreads; });
  });
  EXPECT_EQ(ids.count(std::this_thread::get_id()), 1U);
}

TEST(ThreadPool, NestedLoopsStayOnTheirThread) {
  ThreadPool pool(4);
  std::atomic<int> wrong{0};
  std::atomic<int> iterations{0};
  pool.parallel_for(0, 64, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const auto outer = std::this_thread::get_id();
      pool.parallel_for(0, 100, 1, [&](std::int64_t begin, std::int64_t end) {
        if (std::this_thread::get_id() != outer) ++wrong;
        iterations += static_cast<int>(end - begin);
      });
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(iterations, 6400);
  EXPECT_LE(pool.started_workers(), 3);
}

TEST(ThreadPool, ALoopOnAnotherPoolIsNestedToo) {
  ThreadPool outer(2);
  ThreadPool inner(4);
  outer.parallel_for(0, 8, 1, [&](std::int64_t, std::int64_t) { ranges_of(inner, 0, 100, 1); });
  EXPECT_EQ(inner.started_workers(), 0);
}

TEST(ThreadPool, TheFirstExceptionReachesTheCaller) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ran{0};
    try {
      pool.parallel_for(0, 1000, 1, [&](std::int64_t first, std::int64_t last) {
        ++ran;
        if (first <= 500 && 500 < last) throw std::out_of_range("iteration 500");
      });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "iteration 500");
    }
    EXPECT_GE(ran, 1);
  }
  EXPECT_EQ(ranges_of(pool, 0, 100, 1).back().second, 100);  // the pool still works
}

TEST(ThreadPool, WhenEveryRangeThrowsOneExceptionArrives) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.parallel_for(0, 100, 1,
                                   [](std::int64_t, std::int64_t) {
                                     throw Error(ErrorKind::BadArgument, "loop", "always");
                                   }),
                 Error);
  }
}

TEST(ThreadPool, AnExceptionInANestedLoopPassesThrough) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(0, 10, 1,
                                 [&](std::int64_t, std::int64_t) {
                                   pool.parallel_for(0, 10, 1, [](std::int64_t, std::int64_t) {
                                     throw std::runtime_error("inner");
                                   });
                                 }),
               std::runtime_error);
  // The mark that this thread is inside a loop was taken back: a new loop is parallel again.
  EXPECT_GT(ranges_of(pool, 0, 100, 1).size(), 1U);
}

TEST(ThreadPool, ThreadCountCanBeChanged) {
  ThreadPool pool(4);
  ranges_of(pool, 0, 100, 1);
  EXPECT_EQ(pool.started_workers(), 3);
  pool.set_threads(2);
  EXPECT_EQ(pool.threads(), 2);
  EXPECT_EQ(pool.started_workers(), 1);
  pool.set_threads(1);
  EXPECT_EQ(pool.started_workers(), 0);
  EXPECT_EQ(ranges_of(pool, 0, 100, 1).size(), 1U);
  pool.set_threads(6);
  ranges_of(pool, 0, 100, 1);
  EXPECT_EQ(pool.started_workers(), 5);
}

TEST(ThreadPool, ThreadCountMayChangeWhileLoopsRun) {
  ThreadPool pool(3);
  std::atomic<bool> done{false};
  std::thread changer([&] {
    for (int i = 0; !done; ++i) pool.set_threads(1 + i % 5);
  });
  for (int round = 0; round < 200; ++round) {
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(0, 100, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) sum += i;
    });
    ASSERT_EQ(sum, 4950);
  }
  done = true;
  changer.join();
}

TEST(ThreadPool, SettingThreadsInsideALoopIsRefused) {
  ThreadPool pool(2);
  const std::string message = bad_argument([&] {
    pool.parallel_for(0, 10, 1, [&](std::int64_t, std::int64_t) { pool.set_threads(1); });
  });
  EXPECT_EQ(message,
            "thread pool: the number of threads cannot be set from inside a parallel loop");
}

TEST(ThreadPool, SeveralCallersShareOnePool) {
  ThreadPool pool(4);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        std::vector<int> values(257, 0);
        pool.parallel_for(0, 257, 1, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) ++values[static_cast<std::size_t>(i)];
        });
        if (std::accumulate(values.begin(), values.end(), 0) != 257) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(pool.started_workers(), 3);
}

TEST(ThreadPool, WritesInTheLoopAreSeenAfterIt) {
  ThreadPool pool(4);
  std::vector<std::int64_t> values(10000, -1);
  pool.parallel_for(0, 10000, 10, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) values[static_cast<std::size_t>(i)] = i;
  });
  for (std::int64_t i = 0; i < 10000; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i);
}

TEST(ThreadPool, TakesConstCallables) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  const auto body = [&calls](std::int64_t, std::int64_t) { ++calls; };
  pool.parallel_for(0, 2, 1, body);
  EXPECT_EQ(calls, 2);
}

TEST(ThreadPool, BadNumbersAreRefused) {
  EXPECT_EQ(bad_argument([] { ThreadPool pool(0); }),
            "thread pool: the number of threads must be from 1 to 4096, got 0");
  EXPECT_EQ(bad_argument([] { ThreadPool pool(4097); }),
            "thread pool: the number of threads must be from 1 to 4096, got 4097");
  ThreadPool pool(1);
  EXPECT_EQ(bad_argument([&] { pool.set_threads(-3); }),
            "thread pool: the number of threads must be from 1 to 4096, got -3");
  EXPECT_EQ(bad_argument([&] { ranges_of(pool, 0, 1, 0); }),
            "parallel_for: the grain must be at least 1, got 0");
}

class Variable {  // sets TL_NUM_THREADS for one test
 public:
  explicit Variable(const char* value) { ::setenv("TL_NUM_THREADS", value, 1); }
  ~Variable() { ::unsetenv("TL_NUM_THREADS"); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

TEST(ThreadPool, EnvironmentSetsTheDefault) {
  const Variable variable("3");
  EXPECT_EQ(ThreadPool::default_threads(), 3);
  EXPECT_EQ(ThreadPool().threads(), 3);
}

TEST(ThreadPool, BadEnvironmentIsAnErrorThatShowsIt) {
  for (const std::string text : {"0", "-1", "two", "3x", " 3", "99999999999"}) {
    const Variable variable(text.c_str());
    EXPECT_EQ(bad_argument([] { ThreadPool::default_threads(); }),
              "thread pool: TL_NUM_THREADS must be a number from 1 to 4096, got '" + text + "'");
  }
}

TEST(CpuCount, IsAtLeastOneAndAtMostTheMachine) {
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), static_cast<int>(std::thread::hardware_concurrency()));
}

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tl_cgroup_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  int limit() const {
    return cgroup_cpu_limit((folder_ / "membership").string(), (folder_ / "mount").string());
  }

  std::filesystem::path folder_;
};

TEST_F(CgroupTest, NothingThereMeansNoLimit) { EXPECT_EQ(limit(), 0); }

TEST_F(CgroupTest, Version2QuotaIsRoundedUp) {
  write("membership", "0::/job");
  write("mount/job/cpu.max", "150000 100000");
  EXPECT_EQ(limit(), 2);
}

TEST_F(CgroupTest, Version2MaxMeansNoLimit) {
  write("membership", "0::/job");
  write("mount/job/cpu.max", "max 100000");
  EXPECT_EQ(limit(), 0);
}

TEST_F(CgroupTest, ALimitHigherUpBinds) {
  write("membership", "0::/slice/job");
  write("mount/slice/job/cpu.max", "800000 100000");
  write("mount/slice/cpu.max", "300000 100000");
  EXPECT_EQ(limit(), 3);
}

TEST_F(CgroupTest, InsideAContainerTheMountIsTheGroup) {
  write("membership", "0::/a/path/of/the/host");
  write("mount/cpu.max", "200000 100000");
  EXPECT_EQ(limit(), 2);
}

TEST_F(CgroupTest, Version1Quota) {
  write("membership", "7:memory:/job\n4:cpu,cpuacct:/job");
  write("mount/cpu/job/cpu.cfs_quota_us", "400000");
  write("mount/cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limit(), 4);
  write("mount/cpu/job/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(limit(), 0);
}

TEST_F(CgroupTest, NonsenseIsIgnored) {
  write("membership", "no colons here\n0::/job");
  write("mount/job/cpu.max", "soon 0");
  EXPECT_EQ(limit(), 0);
}

}  // namespace
}  // namespace tl
