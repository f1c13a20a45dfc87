// Handles of one block used from many threads. Run under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "support/on_every_device.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/launch.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

class Threads : public test::OnEveryDevice {
 protected:
  static constexpr int kThreads = 4;
  static constexpr int kRounds = 300;

  template <class F>
  static void run(F&& f) {
    std::latch start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        f(t);
      });
    }
    for (auto& thread : threads) thread.join();
  }
};
TL_ON_EVERY_DEVICE(Threads);

TEST_P(Threads, CloneDetachAndDestroyTogether) {
  const Device d = device();
  const PoolStatistics before = d.pool();
  {
    const auto shared = DeviceMemory<int>::from_host(d, std::vector<int>(256, 42));
    run([&](int t) {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      for (int i = 0; i < kRounds; ++i) {
        auto mine = shared;
        auto second = mine;
        switch (random() % 4) {
          case 0:
            mine.fill(t);
            ASSERT_EQ(mine.to_vector()[255], t);
            break;
          case 1:
            second.mutable_data();
            ASSERT_EQ(second.to_vector()[0], 42);
            break;
          case 2:
            mine = DeviceMemory<int>();
            ASSERT_EQ(second.to_vector()[100], 42);
            break;
          default:
            break;
        }
      }
    });
    EXPECT_TRUE(shared.is_unique());
    EXPECT_EQ(shared.to_vector(), std::vector<int>(256, 42));
  }
  EXPECT_EQ(d.pool().live_blocks, before.live_blocks);
}

TEST_P(Threads, TheLastOwnerOnAnyThreadReturnsTheBlock) {
  const Device d = device();
  const PoolStatistics before = d.pool();
  for (int round = 0; round < 50; ++round) {
    std::vector<DeviceMemory<int>> handles(kThreads, DeviceMemory<int>(d, 1000));
    run([&](int t) { handles[static_cast<std::size_t>(t)] = DeviceMemory<int>(); });
  }
  EXPECT_EQ(d.pool().live_blocks, before.live_blocks);
  EXPECT_EQ(d.pool().allocations - before.allocations, d.pool().returns - before.returns);
}

TEST_P(Threads, ThePoolServesManyThreads) {
  const Device d = device();
  run([&](int t) {
    std::minstd_rand random(static_cast<unsigned>(t) + 7);
    std::vector<DeviceMemory<char>> live;
    for (int i = 0; i < kRounds; ++i) {
      if (live.size() > 10) live.erase(live.begin());
      live.emplace_back(d, random() % 100000 + 1);
      if (i % 100 == 0) d.trim();
    }
  });
  EXPECT_EQ(d.pool().live_blocks, 0U);
}

TEST_P(Threads, EachThreadOnItsOwnStream) {
  const Device d = device();
  const auto shared = DeviceMemory<int>::from_host(d, std::vector<int>(512, 7));
  run([&](int t) {
    Stream stream = d.new_stream();
    for (int i = 0; i < 60; ++i) {
      auto mine = shared;
      auto read = mine.copy_to_host_async(HostBuffer<int>(d, 512), stream);
      mine.copy_from_host_async(HostBuffer<int>(d, std::vector<int>(512, t)), stream).park();
      ASSERT_EQ(read.wait()[511], 7);
      ASSERT_EQ(mine.to_vector()[0], t);
    }
  });
  d.synchronize();
  EXPECT_EQ(shared.to_vector(), std::vector<int>(512, 7));
}

TEST_P(Threads, KernelsFromManyThreadsOnOneStream) {
  const Device d = device();
  if (d.is_cpu()) GTEST_SKIP() << "the CPU launches no kernels";
  run([&](int t) {
    const KernelId id = fill_kernel(4);
    for (int i = 0; i < 40; ++i) {
      DeviceMemory<std::uint32_t> y(d, 300);
      launch(d.modules().function(module_spec(id.module), id.index), d.stream(),
             {.grid = {2}, .block = {256}}, out(y), static_cast<std::uint32_t>(t * 1000 + i),
             300LL);
      ASSERT_EQ(y.to_vector()[299], static_cast<std::uint32_t>(t * 1000 + i));
    }
  });
}

}  // namespace
}  // namespace tl
