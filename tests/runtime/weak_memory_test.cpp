// Memory that is not owned: weak handles, and bytes that a mapped file holds.
#include "tl/runtime/weak_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "support/on_every_device.h"
#include "tl/runtime/memory.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

using test::expect_error;

DeviceMemory<int> numbers(const Device& device, int value, std::size_t count = 64) {
  return DeviceMemory<int>::from_host(device, std::vector<int>(count, value));
}

int first(const RawMemory& memory) {
  int value = 0;
  memory.download(0, &value, sizeof value);
  return value;
}

class Weak : public test::OnEveryDevice {};
TL_ON_EVERY_DEVICE(Weak);

TEST_P(Weak, SharesWhileSomebodyHoldsAndThenNoMore) {
  auto memory = numbers(device(), 5);
  const WeakMemory weak(memory.raw());
  EXPECT_EQ(memory.use_count(), 1U);
  {
    const auto shared = weak.lock();
    ASSERT_TRUE(shared);
    EXPECT_EQ(shared->data(), memory.raw().data());
    EXPECT_EQ(memory.use_count(), 2U);
    memory = DeviceMemory<int>();
    EXPECT_EQ(first(*shared), 5);
    EXPECT_FALSE(weak.expired());
  }
  EXPECT_TRUE(weak.expired());
  EXPECT_FALSE(weak.lock());
  EXPECT_TRUE(WeakMemory().expired());
}

TEST_P(Weak, KeepsNothingAlive) {
  const PoolStatistics before = device().pool();
  auto memory = numbers(device(), 1);
  const WeakMemory weak(memory.raw());
  memory = DeviceMemory<int>();
  EXPECT_EQ(device().pool().live_blocks, before.live_blocks);
  EXPECT_EQ(device().pool().live_bytes, before.live_bytes);
}

TEST_P(Weak, IsNotFooledByABlockInTheSamePlace) {
  RawMemory memory(device(), 256);
  const WeakMemory weak(memory);
  const BlockHeader* record = memory.block().get();
  memory = RawMemory();
  memory = RawMemory(device(), 256);
  ASSERT_EQ(memory.block().get(), record);  // or this test shows nothing
  EXPECT_FALSE(weak.lock());
  const WeakMemory second(memory);  // frozen now, as the first was
  EXPECT_FALSE(weak.lock());
  EXPECT_EQ(memory.use_count(), 1U);
  EXPECT_TRUE(second.lock());
}

TEST_P(Weak, AWriteOfTheSoleOwnerDetaches) {
  auto memory = numbers(device(), 3);
  const WeakMemory weak(memory.raw());
  EXPECT_FALSE(memory.is_unique());
  memory.fill(4);
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(memory.to_vector(), std::vector<int>(64, 4));
  EXPECT_TRUE(memory.is_unique());

  auto kept = numbers(device(), 3);
  const WeakMemory other(kept.raw());
  const auto copy = kept;
  kept.copy_from_host_at(0, std::vector<int>{9});
  ASSERT_TRUE(other.lock());
  EXPECT_EQ(first(*other.lock()), 3);
  EXPECT_EQ(copy.to_vector(), std::vector<int>(64, 3));
}

TEST_P(Weak, ASliceComesBackAsTheSlice) {
  std::vector<int> counting(100);
  std::iota(counting.begin(), counting.end(), 0);
  const auto memory = DeviceMemory<int>::from_host(device(), counting);
  const WeakMemory weak(memory.raw().slice(40, 20));
  const auto part = weak.lock();
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bytes(), 20U);
  EXPECT_EQ(first(*part), 10);
}

TEST_P(Weak, NothingIsWeaklyHeldToo) {
  const DeviceMemory<int> empty(device(), 0);
  const WeakMemory weak(empty.raw());
  ASSERT_TRUE(weak.lock());
  EXPECT_EQ(weak.lock()->bytes(), 0U);
  EXPECT_TRUE(WeakMemory(RawMemory()).expired());
}

// Owners come and go in the same few records while other threads ask for them. What a lock gives is
// the block it was made of, and in the end every block is back.
TEST_P(Weak, LocksRaceWithLastOwners) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 400;
  const Device d = device();
  const PoolStatistics before = d.pool();
  struct Published {
    WeakMemory memory;
    int value = 0;
  };
  std::mutex mutex;  // guards published
  Published published;
  std::atomic<bool> is_over{false};
  std::atomic<int> shared{0};
  std::latch start(kThreads + 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      while (!is_over) {
        Published seen;
        {
          const std::lock_guard lock(mutex);
          seen = published;
        }
        if (const auto memory = seen.memory.lock()) {
          ++shared;
          ASSERT_EQ(first(*memory), seen.value);
        }
      }
    });
  }
  start.arrive_and_wait();
  for (int round = 1; round <= kRounds; ++round) {
    const auto memory = numbers(d, round, 8);
    {
      const std::lock_guard lock(mutex);
      published = {WeakMemory(memory.raw()), round};
    }
    // Now and then somebody has it before it goes.
    for (const int seen = shared; round % 16 == 0 && shared == seen;) std::this_thread::yield();
  }
  is_over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(published.memory.expired());
  EXPECT_EQ(d.pool().live_blocks, before.live_blocks);
  EXPECT_EQ(d.pool().allocations - before.allocations, d.pool().returns - before.returns);
}

// ---- mapped bytes

struct Bytes {
  explicit Bytes(std::size_t size) : values(size) {
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<std::byte>(i);
  }
  std::vector<std::byte> values;
};

RawMemory map(const std::shared_ptr<Bytes>& bytes) {
  return RawMemory::mapped(bytes, bytes->values, Label("a file"));
}

TEST(Mapped, NothingIsCopiedAndTheKeeperGoesLast) {
  const PoolStatistics before = Device::cpu().pool();
  auto bytes = std::make_shared<Bytes>(100);
  const std::weak_ptr<Bytes> watch = bytes;
  RawMemory memory = map(bytes);
  EXPECT_EQ(memory.data(), bytes->values.data());
  EXPECT_TRUE(memory.device().is_cpu());
  EXPECT_EQ(memory.label(), "a file");
  EXPECT_EQ(Device::cpu().pool().live_bytes, before.live_bytes);
  EXPECT_EQ(Device::cpu().pool().mapped_bytes, before.mapped_bytes + 100);
  EXPECT_EQ(Device::cpu().pool().mapped_blocks, before.mapped_blocks + 1);
  EXPECT_NE(memory_report().text().find("mapped: 100 B in 1 block\n"), std::string::npos);
  EXPECT_FALSE(memory_report().everything_returned());

  bytes.reset();
  RawMemory slice = memory.slice(10, 5);
  memory = RawMemory();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(*slice.data(), std::byte{10});
  slice = RawMemory();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(Device::cpu().pool().mapped_blocks, before.mapped_blocks);
  EXPECT_EQ(Device::cpu().pool().mapped_bytes, before.mapped_bytes);
}

TEST(Mapped, EveryWayToWriteDetaches) {
  const auto bytes = std::make_shared<Bytes>(64);
  const std::vector<std::byte> original = bytes->values;
  const std::vector<std::byte> other(64, std::byte{0xEE});
  const Stream stream = Device::cpu().stream();
  const std::vector<std::function<void(RawMemory&)>> writes{
      [&](RawMemory& memory) { memory.upload(0, other.data(), 64); },
      [&](RawMemory& memory) { memory.upload(8, other.data(), 8); },
      [&](RawMemory& memory) { memory.fill(other.data(), 1); },
      [&](RawMemory& memory) { *memory.mutable_data(stream) = std::byte{0xEE}; },
      [&](RawMemory& memory) { *memory.overwrite_data(stream) = std::byte{0xEE}; },
      [&](RawMemory& memory) {
        RawHostBuffer buffer = RawHostBuffer::pageable(64);
        std::copy(other.begin(), other.end(), buffer.data());
        Transfer::upload(memory, buffer, stream).wait();
      }};
  for (const auto& write : writes) {
    RawMemory memory = map(bytes);
    EXPECT_FALSE(memory.is_unique());
    write(memory);
    EXPECT_NE(memory.data(), bytes->values.data());
    EXPECT_TRUE(memory.is_unique());
    EXPECT_EQ(bytes->values, original);
    EXPECT_EQ(bytes.use_count(), 1);
  }
}

TEST_P(Weak, MappedBytesGoToDevices) {
  const auto bytes = std::make_shared<Bytes>(1000);
  RawMemory there(device(), 1000);
  there.copy_from(map(bytes));
  std::vector<std::byte> back(1000);
  there.download(0, back.data(), back.size());
  EXPECT_EQ(back, bytes->values);
}

TEST(Mapped, CanBeHeldWeakly) {
  const auto bytes = std::make_shared<Bytes>(10);
  RawMemory memory = map(bytes);
  const WeakMemory weak(memory);
  EXPECT_EQ(weak.lock()->data(), bytes->values.data());
  memory = RawMemory();
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(bytes.use_count(), 1);
}

TEST(Mapped, OtherStreamsMayRead) {
  const auto bytes = std::make_shared<Bytes>(10);
  {
    const RawMemory memory = map(bytes);
    const Stream stream = Device::cpu().new_stream();
    EXPECT_EQ(memory.data(stream), bytes->values.data());
  }
  EXPECT_EQ(bytes.use_count(), 1);
}

// Someone else's bytes on any device; here they are those of another handle.
TEST_P(Weak, BorrowedBytesAreReadInPlaceAndNeverWritten) {
  const Device d = device();
  const PoolStatistics before = d.pool();
  const std::vector<int> values = {1, 2, 3, 4};
  auto owner = std::make_shared<DeviceMemory<int>>(DeviceMemory<int>::from_host(d, values));
  const std::weak_ptr<DeviceMemory<int>> watch = owner;
  const std::byte* at = owner->raw().data();
  RawMemory memory = RawMemory::borrowed(d, owner, {at, 16});
  EXPECT_EQ(memory.data(), at);
  EXPECT_TRUE(memory.device() == d);
  EXPECT_EQ(d.pool().mapped_bytes, before.mapped_bytes + 16);
  RawMemory other = memory;
  const int nine = 9;
  other.fill(&nine, sizeof nine);
  EXPECT_NE(other.data(), at);
  EXPECT_EQ(owner->to_vector(), values);
  owner.reset();
  int last = 0;
  memory.download(12, &last, sizeof last);
  EXPECT_EQ(last, 4);
  memory.mutable_data(d.stream());  // leaves the bytes, whose copy the device may still be making
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(d.pool().mapped_bytes, before.mapped_bytes);
  memory.download(0, &last, sizeof last);
  EXPECT_EQ(last, 1);
}

TEST(Mapped, NeedsAKeeperUnlessItIsEmpty) {
  const Bytes bytes(10);
  expect_error(ErrorKind::BadArgument, "nothing keeps the 10 bytes there",
               [&] { RawMemory::mapped(nullptr, bytes.values); });
  const RawMemory none = RawMemory::mapped(nullptr, {});
  EXPECT_EQ(none.bytes(), 0U);
  EXPECT_EQ(none.data(), nullptr);
}

}  // namespace
}  // namespace tl
