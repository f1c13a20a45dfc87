#include "runtime/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/context.h"
#include "runtime/segment_list.h"
#include "support/faulty_driver.h"
#include "support/on_every_device.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

using test::FaultyDriver;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class Pools : public test::OnEveryDevice {
 protected:
  void SetUp() override { device().trim(); }
  void TearDown() override { device().set_pool_limit(~std::uint64_t{0}); }
};
TL_ON_EVERY_DEVICE(Pools);

TEST_P(Pools, ABlockComesBackAtOnceAndIsUsedAgain) {
  const void* address = nullptr;
  {
    const DeviceMemory<char> a(device(), 3 * kMiB);
    address = a.data();
  }
  const DriverCalls before = device().driver_calls();
  const PoolStatistics pool = device().pool();
  const DeviceMemory<char> b(device(), 3 * kMiB);
  EXPECT_EQ(static_cast<const void*>(b.data()), address);
  EXPECT_EQ(device().driver_calls().allocations, before.allocations);
  EXPECT_EQ(device().pool().hits, pool.hits + 1);
}

TEST_P(Pools, ExactSizesAreFoundAgainWhateverTheSize) {
  for (const std::uint64_t bytes : {1ULL, 511ULL, 512ULL, 513ULL, 4097ULL, 1048576ULL, 1048577ULL,
                                    5000000ULL, 16777217ULL, 33554431ULL, 50000001ULL}) {
    {
      const DeviceMemory<char> a(device(), bytes);
    }
    const DriverCalls before = device().driver_calls();
    {
      const DeviceMemory<char> b(device(), bytes);
    }
    EXPECT_EQ(device().driver_calls().allocations, before.allocations) << bytes;
  }
}

TEST_P(Pools, CountersAddUp) {
  const PoolStatistics before = device().pool();
  device().reset_peak();
  {
    const DeviceMemory<char> a(device(), 1000);
    const DeviceMemory<char> b(device(), 5 * kMiB);
    const PoolStatistics during = device().pool();
    EXPECT_EQ(during.live_bytes, before.live_bytes + 1000 + 5 * kMiB);
    EXPECT_EQ(during.live_blocks, before.live_blocks + 2);
    EXPECT_GE(during.reserved_bytes, during.live_bytes);
    EXPECT_EQ(during.allocations, before.allocations + 2);
  }
  const PoolStatistics after = device().pool();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.returns, before.returns + 2);
  EXPECT_EQ(after.peak_bytes, before.live_bytes + 1000 + 5 * kMiB);
  EXPECT_GT(after.pooled_bytes, 5 * kMiB);
}

TEST_P(Pools, TrimReturnsEverythingToTheDriver) {
  {
    const DeviceMemory<char> a(device(), 7 * kMiB);
  }
  ASSERT_GT(device().pool().pooled_bytes, 0U);
  const DriverCalls before = device().driver_calls();
  EXPECT_GE(device().trim(), 7 * kMiB);
  EXPECT_EQ(device().pool().pooled_bytes, 0U);
  EXPECT_EQ(device().pool().reserved_bytes, 0U);
  EXPECT_GT(device().driver_calls().frees, before.frees);
  const DriverCalls calls = device().driver_calls();
  EXPECT_EQ(calls.allocations, calls.frees) << "every segment was freed once";
  EXPECT_EQ(device().trim(), 0U);
}

TEST_P(Pools, ALiveBlockKeepsItsSegmentOnly) {
  const DeviceMemory<char> live(device(), 10 * kMiB);
  {
    const DeviceMemory<char> gone(device(), 40 * kMiB);
  }
  EXPECT_GE(device().trim(), 40 * kMiB);
  EXPECT_GE(device().pool().reserved_bytes, 10 * kMiB);
  EXPECT_LT(device().pool().reserved_bytes, 40 * kMiB);
}

TEST_P(Pools, TheLimitBoundsWhatIsKept) {
  device().set_pool_limit(8 * kMiB);
  {
    const DeviceMemory<char> a(device(), 20 * kMiB);
    const DeviceMemory<char> b(device(), 20 * kMiB);
  }
  EXPECT_LE(device().pool().pooled_bytes, 8 * kMiB);
  {
    const DeviceMemory<char> small(device(), 4 * kMiB);
  }
  device().set_pool_limit(0);
  EXPECT_EQ(device().pool().pooled_bytes, 0U);
}

TEST_P(Pools, SmallBlocksDoNotCutLargeSegments) {
  {
    const DeviceMemory<char> large(device(), 32 * kMiB);
  }
  const DeviceMemory<char> small(device(), 100);
  const DriverCalls before = device().driver_calls();
  const DeviceMemory<char> large_again(device(), 32 * kMiB);
  EXPECT_EQ(device().driver_calls().allocations, before.allocations);
}

TEST_P(Pools, SlightlyLargerRequestsDoNotPileUp) {
  // The pattern that makes other pools grow: each request a little larger than the last, none live
  // together.
  std::uint64_t largest = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    largest = 20 * kMiB + i * 300000;
    const DeviceMemory<char> scratch(device(), largest);
  }
  device().set_pool_limit(2 * largest);
  EXPECT_LE(device().pool().reserved_bytes, 2 * largest + 2 * kMiB);
}

TEST_P(Pools, WhenTheDriverIsFullThePoolIsTrimmedAndTheRequestTriedAgain) {
  {
    const DeviceMemory<char> pooled(device(), 24 * kMiB);
  }
  ASSERT_GE(device().pool().pooled_bytes, 24 * kMiB);
  FaultyDriver driver(GetParam().kind);
  driver.fail_from(1, 1);
  const DeviceMemory<char> b(device(), 48 * kMiB);
  EXPECT_TRUE(driver.reached());
  EXPECT_EQ(device().pool().reserved_bytes, 48 * kMiB);
}

TEST_P(Pools, OutOfMemoryNamesWhoHoldsTheMemory) {
  const DeviceMemory<char> a(device(), 3 * kMiB, Label("the big one"));
  FaultyDriver driver(GetParam().kind);
  driver.fail_from(1, 100);
  try {
    const DeviceMemory<char> b(device(), 64 * kMiB);
    FAIL() << "allocated";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("the big one 3.00 MiB"), std::string::npos)
        << error.what();
    EXPECT_EQ(error.requested, 64 * kMiB);
  }
}

TEST_P(Pools, RandomTrafficNeverOverlapsAndEndsWhole) {
  std::mt19937 random(7);
  std::vector<DeviceMemory<char>> live;
  for (int step = 0; step < 3000; ++step) {
    if (live.size() > 60 || (!live.empty() && random() % 2 == 0)) {
      std::swap(live[random() % live.size()], live.back());
      live.pop_back();
    } else {
      const std::uint64_t bytes =
          random() % 3 == 0 ? random() % (4 * kMiB) + 1 : random() % 9000 + 1;
      live.emplace_back(device(), bytes);
    }
    if (step % 500 == 0) {
      std::vector<std::pair<const char*, const char*>> ranges;
      for (const auto& m : live) ranges.emplace_back(m.data(), m.data() + m.count());
      std::sort(ranges.begin(), ranges.end());
      for (std::size_t i = 1; i < ranges.size(); ++i) {
        ASSERT_LE(ranges[i - 1].second, ranges[i].first) << "blocks overlap";
      }
      for (const auto& m : live) {
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(m.data()) % 512, 0U) << "alignment";
      }
    }
  }
  live.clear();
  EXPECT_EQ(device().pool().live_blocks, 0U);
  device().trim();
  EXPECT_EQ(device().pool().reserved_bytes, 0U) << "free neighbours were not joined";
}

TEST_P(Pools, PinnedMemoryIsPooledToo) {
  {
    const HostBuffer<char> a(device(), 3 * kMiB);
  }
  const DriverCalls before = device().driver_calls();
  {
    const HostBuffer<char> b(device(), 3 * kMiB);
  }
  EXPECT_EQ(device().driver_calls().host_allocations, before.host_allocations);
  EXPECT_GT(device().pinned_pool().pooled_bytes, 0U);
  device().trim();
  EXPECT_EQ(device().pinned_pool().reserved_bytes, 0U);
}

// ---- room taken in advance

TEST_P(Pools, ReservedRoomIsCutWithoutSlack) {
  const std::vector<std::uint64_t> sizes(11, 9 * kMiB + 1000);  // alone: 10 MiB each
  device().reserve(sizes);
  const DriverCalls before = device().driver_calls();
  std::vector<DeviceMemory<char>> all;
  for (const std::uint64_t size : sizes) all.emplace_back(device(), size);
  EXPECT_EQ(device().driver_calls().allocations, before.allocations);
  const PoolStatistics pool = device().pool();
  EXPECT_LE(pool.reserved_bytes, pool.live_bytes + 2 * kMiB + 11 * 512);
  all.clear();
  device().trim();
  EXPECT_EQ(device().pool().reserved_bytes, 0U);
}

// The best place for the first block of 6 MiB is the room that the block of 9 MiB needs.
TEST_P(Pools, WhatIsReservedAgainFitsWhereItWas) {
  const auto load = [&] {
    std::vector<DeviceMemory<char>> blocks;
    for (const std::vector<std::uint64_t>& sizes :
         {std::vector<std::uint64_t>{6 * kMiB, 6 * kMiB}, std::vector<std::uint64_t>{9 * kMiB}}) {
      device().reserve(sizes);
      for (const std::uint64_t size : sizes) blocks.emplace_back(device(), size);
    }
    return device().pool().reserved_bytes;
  };
  const std::uint64_t once = load();
  EXPECT_EQ(load(), once);
  EXPECT_EQ(load(), once);
  device().trim();
  EXPECT_EQ(load(), once) << "after the reserved room went back to the driver";
}

TEST_P(Pools, ReservingTwiceTakesRoomOnce) {
  const std::vector<std::uint64_t> sizes{20 * kMiB, 5 * kMiB, 100};
  device().reserve(sizes);
  const std::uint64_t reserved = device().pool().reserved_bytes;
  EXPECT_EQ(reserved, 26 * kMiB);
  device().reserve(sizes);
  EXPECT_EQ(device().pool().reserved_bytes, reserved);
  device().reserve({});
  device().reserve(std::vector<std::uint64_t>{0, 1, kMiB});  // small ones share segments anyway
  EXPECT_EQ(device().pool().reserved_bytes, reserved);
}

TEST_P(Pools, RoomThatIsNotThereIsRefused) {
  const std::uint64_t live = device().pool().live_blocks;
  FaultyDriver driver(device().kind());
  driver.fail_from(1, 10);
  EXPECT_THROW(device().reserve(std::vector<std::uint64_t>{20 * kMiB}), OutOfMemory);
  driver.fail_from(0);
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
  test::expect_error(ErrorKind::Overflow, "allocate",
                     [&] { device().reserve(std::vector<std::uint64_t>{kHuge, kHuge}); });
  EXPECT_EQ(device().pool().live_blocks, live);
}

// ---- the free lists themselves

TEST(SegmentList, FindsTheClosestFit) {
  SegmentList list;
  std::vector<Chunk> chunks(4);
  const std::uint64_t sizes[] = {512, 1024, 512 * 100, 512 * 101};
  for (std::size_t i = 0; i < 4; ++i) {
    chunks[i].capacity = sizes[i];
    list.add(&chunks[i]);
  }
  EXPECT_EQ(list.take(512 * 100), &chunks[2]);
  EXPECT_EQ(list.take(512 * 100), &chunks[3]);
  EXPECT_EQ(list.take(512 * 100), nullptr);
  EXPECT_EQ(list.take(512), &chunks[0]);
  EXPECT_EQ(list.take(512), &chunks[1]);
  EXPECT_EQ(list.take(512), nullptr);
}

TEST(SegmentList, AnyLargerChunkIsFoundAcrossTheWholeRange) {
  for (std::uint64_t bytes = 512; bytes < (std::uint64_t{1} << 45);
       bytes = bytes * 3 / 512 * 512 + 512) {
    SegmentList list;
    Chunk chunk;
    chunk.capacity = bytes;
    list.add(&chunk);
    EXPECT_EQ(list.take(bytes + 512), nullptr) << bytes;
    EXPECT_EQ(list.take(std::max<std::uint64_t>(512, bytes / 2 / 512 * 512)), &chunk) << bytes;
    list.add(&chunk);
    EXPECT_EQ(list.take(bytes), &chunk) << bytes;
    EXPECT_EQ(list.take(512), nullptr) << bytes;
  }
}

}  // namespace
}  // namespace tl
