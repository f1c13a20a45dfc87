#include "tl/runtime/read_into.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/context.h"
#include "simgpu/control.h"
#include "support/faulty_driver.h"
#include "support/on_every_device.h"
#include "support/sim_guard.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

using test::expect_error;
using test::FaultyDriver;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::byte value(std::size_t index, std::uint64_t offset) {
  return static_cast<std::byte>(index * 31 + offset * 7 + (offset >> 11));
}

void read_values(std::size_t index, std::uint64_t offset, std::span<std::byte> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = value(index, offset + i);
}

std::vector<RawMemory> memories(const Device& device, const std::vector<std::uint64_t>& sizes) {
  std::vector<RawMemory> out;
  for (const std::uint64_t size : sizes) out.emplace_back(device, size);
  return out;
}

void expect_values(const std::vector<RawMemory>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::byte> expected(all[i].bytes());
    read_values(i, 0, expected);
    std::vector<std::byte> actual(all[i].bytes());
    all[i].download(0, actual.data(), actual.size());
    EXPECT_EQ(actual, expected) << "memory " << i;
  }
}

ReadOptions with_threads(int threads, std::uint64_t staging = ReadOptions::kLeastStaging) {
  return {.threads = threads, .staging_bytes = staging, .progress = {}};
}

class ReadInto : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    device().synchronize();
    device().trim();
    device().reset_peak();
    before_ = device().pool();
  }
  void TearDown() override {
    EXPECT_TRUE(device().stream().finished());
    EXPECT_EQ(device().pool().live_blocks, before_.live_blocks);
    EXPECT_EQ(device().pinned_pool().live_blocks, 0U);
  }
  PoolStatistics before_;
};
TL_ON_EVERY_DEVICE(ReadInto);

TEST_P(ReadInto, EveryByteArrives) {
  for (const int threads : {0, 1, 2, 5}) {
    auto all = memories(device(), {1, 0, 4097, 3 * kMiB + 5, 256, 0, 700000, 17});
    read_into(device(), all, read_values, with_threads(threads));
    expect_values(all);
  }
}

TEST_P(ReadInto, NothingToReadIsNothingToDo) {
  std::vector<RawMemory> none;
  int calls = 0;
  const ReadSource source = [&](std::size_t, std::uint64_t, std::span<std::byte>) { ++calls; };
  read_into(device(), none, source);
  auto empty = memories(device(), {0, 0});
  read_into(device(), empty, source);
  EXPECT_EQ(calls, 0);
}

TEST_P(ReadInto, SmallMemoriesShareABufferAndNobodyWaitsForOne) {
  if (device().is_cpu()) GTEST_SKIP() << "the CPU needs no buffers";
  auto all = memories(device(), std::vector<std::uint64_t>(100, 1000));
  const DriverCalls before = device().driver_calls();
  read_into(device(), all, read_values, with_threads(1));
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads - before.uploads, 100U);
  EXPECT_EQ(after.events - before.events, 1U);
  EXPECT_EQ(after.synchronizations - before.synchronizations, 1U);
  expect_values(all);
}

TEST_P(ReadInto, HostMemoryIsBounded) {
  auto all = memories(device(), {9 * kMiB, 100, 5 * kMiB});
  read_into(device(), all, read_values, with_threads(3, kMiB));
  EXPECT_LE(device().pinned_pool().peak_bytes, kMiB);
  EXPECT_EQ(device().pinned_pool().peak_bytes > 0, device().is_gpu());
  expect_values(all);
}

TEST_P(ReadInto, SharedMemoryIsLeftAlone) {
  auto all = memories(device(), {5000});
  read_into(device(), all, read_values);
  const std::vector<RawMemory> kept = all;
  read_into(device(), all, [](std::size_t, std::uint64_t, std::span<std::byte> to) {
    std::fill(to.begin(), to.end(), std::byte{1});
  });
  expect_values(kept);
  EXPECT_NE(all[0].data(), kept[0].data());
}

TEST_P(ReadInto, ProgressGrowsOnTheCallingThreadAndEndsWithAll) {
  auto all = memories(device(), {2 * kMiB, 3 * kMiB, 100});
  ReadOptions options = with_threads(2);
  std::vector<ReadProgress> seen;
  const auto caller = std::this_thread::get_id();
  options.progress = [&](const ReadProgress& now) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    seen.push_back(now);
  };
  read_into(device(), all, read_values, options);
  ASSERT_FALSE(seen.empty());
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GT(seen[i].done, seen[i - 1].done);
  EXPECT_EQ(seen.back().done, 5 * kMiB + 100);
  EXPECT_EQ(seen.back().total, 5 * kMiB + 100);
  EXPECT_EQ(seen.back().index, 2U);
}

TEST_P(ReadInto, WhatTheCallbackThrowsEndsIt) {
  auto all = memories(device(), {8 * kMiB});
  ReadOptions options = with_threads(2);
  options.progress = [](const ReadProgress&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(read_into(device(), all, read_values, options), std::runtime_error);
  options.progress = [](const ReadProgress& now) {  // at the very end too
    if (now.done == now.total) throw std::runtime_error("enough");
  };
  EXPECT_THROW(read_into(device(), all, read_values, options), std::runtime_error);
}

TEST_P(ReadInto, WhatTheSourceThrowsEndsIt) {
  auto all = memories(device(), {8 * kMiB, kMiB});
  std::atomic<int> calls{0};
  expect_error(ErrorKind::BadFile, "f: gone", [&] {
    read_into(
        device(), all,
        [&](std::size_t index, std::uint64_t offset, std::span<std::byte> to) {
          if (++calls == 2) throw Error(ErrorKind::BadFile, "f", "gone");
          read_values(index, offset, to);
        },
        with_threads(1));
  });
  EXPECT_EQ(calls, 2);  // the rest was not read
  read_into(device(), all, read_values, with_threads(2));
  expect_values(all);
}

TEST_P(ReadInto, ManyAtOnce) {
  constexpr int kThreads = 3;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) {
        auto all = memories(device(), {300000, 10, 70000});
        read_into(device(), all, read_values, with_threads(2));
        expect_values(all);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(ReadInto, PageableBuffersWillDo) {
  if (device().is_cpu()) GTEST_SKIP() << "the CPU needs no buffers";
  auto all = memories(device(), {2 * kMiB, 100});
  {  // One event is at hand afterwards, so that only buffers are asked for.
    Stream stream(device().stream());
    stream.record();
  }
  FaultyDriver driver(device().kind());
  driver.fail_from(1, 2);
  read_into(device(), all, read_values, with_threads(1));
  EXPECT_TRUE(driver.reached());
  expect_values(all);
}

TEST_P(ReadInto, AFailingDriverIsAnErrorAndLeavesNothing) {
  if (device().is_cpu() || test::simulated_drivers().empty()) {
    GTEST_SKIP() << "needs a simulated GPU";
  }
  const simgpu::Control sim(test::simulated_drivers().front());
  for (const char* what : {"copy", "event_record", "sync"}) {
    for (const long n : {1L, 3L}) {
      auto all = memories(device(), {4 * kMiB, 100});
      sim.fail(what, n);
      try {
        read_into(device(), all, read_values, with_threads(2));
        ADD_FAILURE() << what << " " << n << " did not fail";
      } catch (const DeviceFault& error) {
        EXPECT_TRUE(error.kind == ErrorKind::Device || error.kind == ErrorKind::DeviceLost)
            << error.what();
      }
      sim.reset();  // the simulated device comes back, where a real one would not
      device().context().forget_loss_for_testing();
      EXPECT_TRUE(device().stream().finished());
      read_into(device(), all, read_values, with_threads(2));
      expect_values(all);
    }
  }
}

TEST_P(ReadInto, OptionsThatCannotBeAreRefused) {
  auto all = memories(device(), {10});
  for (const int threads : {-1, ReadOptions::kMostThreads + 1}) {
    expect_error(ErrorKind::BadArgument, "threads are not 0 to 64",
                 [&] { read_into(device(), all, read_values, with_threads(threads)); });
  }
  expect_error(ErrorKind::BadArgument, "1000 bytes of staging are fewer than 262144",
               [&] { read_into(device(), all, read_values, with_threads(1, 1000)); });
}

TEST_P(ReadInto, MemoryOfAnotherDeviceIsRefused) {
  if (device().is_cpu()) GTEST_SKIP() << "there is one CPU";
  auto all = memories(Device::cpu(), {10});
  expect_error(ErrorKind::WrongDevice, "memory on cpu was not taken on",
               [&] { read_into(device(), all, read_values); });
}

}  // namespace
}  // namespace tl
