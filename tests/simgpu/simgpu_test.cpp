// simgpu's own test: streams, events and memory. The other files hold kernels, faults and run-time
// compilation.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "driver_under_test.h"

namespace simgpu_test {
namespace {

class Streams : public OnSimGpu {};
class Events : public OnSimGpu {};
class MemoryCalls : public OnSimGpu {};
class Devices : public OnSimGpu {};

const auto kEveryAbi = testing::Values("cuda", "hip", "hip5");
INSTANTIATE_TEST_SUITE_P(Abi, Streams, kEveryAbi);
INSTANTIATE_TEST_SUITE_P(Abi, Events, kEveryAbi);
INSTANTIATE_TEST_SUITE_P(Abi, MemoryCalls, kEveryAbi);
INSTANTIATE_TEST_SUITE_P(Abi, Devices, kEveryAbi);

// Pinned host memory of a test.
class Pinned {
 public:
  Pinned(Driver& driver, std::size_t count) : driver_(driver) {
    void* address = nullptr;
    EXPECT_EQ(driver.host_alloc(&address, count * 4, 0), kOk);
    data_ = static_cast<std::uint32_t*>(address);
    std::fill_n(data_, count, 0u);
  }
  ~Pinned() { driver_.host_free(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::uint32_t& operator[](std::size_t i) { return data_[i]; }
  std::uint32_t* data() { return data_; }

 private:
  Driver& driver_;
  std::uint32_t* data_;
};

TEST_P(Streams, NothingRunsUntilItIsWaitedFor) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  void* stream = new_stream();
  void* memory = device_memory(4);
  Pinned back(driver(), 1);
  driver().fill32(memory, 42, 1, stream);
  driver().dtoh(back.data(), memory, 4, stream);
  EXPECT_EQ(back[0], 0u);
  EXPECT_EQ(control().pending(0), 2);
  EXPECT_EQ(driver().stream_sync(stream), kOk);
  EXPECT_EQ(back[0], 42u);
  EXPECT_EQ(control().pending(0), 0);
}

TEST_P(Streams, StreamsAreIndependent) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  void* first = new_stream();
  void* second = new_stream();
  void* memory = device_memory(8);
  Pinned back(driver(), 2);
  driver().fill32(memory, 1, 2, first);
  driver().stream_sync(first);
  driver().fill32(memory, 2, 1, first);
  driver().dtoh(back.data(), memory, 8, second);
  driver().stream_sync(second);
  EXPECT_EQ(back[0], 1u) << "the second stream must not have run the first";
  driver().stream_sync(first);
}

TEST_P(Streams, NullStreamIsAQueueOfItsOwn) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  void* stream = new_stream();
  void* memory = device_memory(4);
  driver().fill32(memory, 5, 1, stream);
  driver().stream_sync(nullptr);
  EXPECT_EQ(control().pending(0), 1);
}

TEST_P(Streams, PollingMakesProgress) {
  void* stream = new_stream();
  void* memory = device_memory(4);
  for (unsigned i = 0; i < 5; ++i) driver().fill32(memory, i, 1, stream);
  int polls = 0;
  while (driver().stream_query(stream) == kNotReady) ++polls;
  if (lazy_mode()) {
    EXPECT_EQ(polls, 5);
  }
  EXPECT_EQ(driver().stream_query(stream), kOk);
}

TEST_P(Streams, DestroyRunsWhatIsQueued) {
  void* stream = nullptr;
  void* memory = device_memory(4);
  ASSERT_EQ(driver().stream_create(&stream, 1), kOk);
  driver().fill32(memory, 9, 1, stream);
  EXPECT_EQ(driver().stream_destroy(stream), kOk);
  EXPECT_EQ(download<std::uint32_t>(memory, 1)[0], 9u);
  EXPECT_EQ(driver().stream_sync(stream), kInvalidHandle);
  expected_bad_calls = 1;
}

TEST_P(Streams, ManyThreadsMayEnqueueAndWait) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      Driver& d = driver();
      d.use(t % 2);
      void* stream = nullptr;
      void* memory = nullptr;
      d.stream_create(&stream, 1);
      d.alloc(&memory, 4096);
      for (unsigned round = 0; round < 50; ++round) {
        d.fill32(memory, round, 1024, stream);
        std::uint32_t back[1024];
        EXPECT_EQ(d.dtoh(back, memory, 4096, stream), kOk);
        EXPECT_EQ(back[1023], round);
      }
      d.free(memory);
      d.stream_destroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Events, WaitOrdersTwoStreams) {
  void* producer = new_stream();
  void* consumer = new_stream();
  void* event = new_event();
  void* memory = device_memory(4);
  Pinned back(driver(), 1);
  for (unsigned i = 1; i <= 100; ++i) driver().fill32(memory, i, 1, producer);
  driver().event_record(event, producer);
  driver().stream_wait(consumer, event, 0);
  driver().dtoh(back.data(), memory, 4, consumer);
  EXPECT_EQ(driver().stream_sync(consumer), kOk);
  EXPECT_EQ(back[0], 100u);
}

TEST_P(Events, WaitMeansTheRecordBeforeIt) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  void* producer = new_stream();
  void* consumer = new_stream();
  void* event = new_event();
  void* memory = device_memory(4);
  Pinned back(driver(), 1);
  driver().fill32(memory, 1, 1, producer);
  driver().event_record(event, producer);
  driver().stream_wait(consumer, event, 0);
  driver().fill32(memory, 2, 1, producer);
  driver().event_record(event, producer);  // the queued wait keeps the first record
  driver().dtoh(back.data(), memory, 4, consumer);
  driver().stream_sync(consumer);
  EXPECT_EQ(back[0], 1u);
  EXPECT_EQ(driver().event_query(event), kNotReady);
  EXPECT_EQ(driver().event_sync(event), kOk);
  EXPECT_EQ(driver().event_query(event), kOk);
}

TEST_P(Events, SynchronizeRunsNoMoreThanItsPoint) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  void* stream = new_stream();
  void* event = new_event();
  void* memory = device_memory(4);
  driver().fill32(memory, 1, 1, stream);
  driver().event_record(event, stream);
  driver().fill32(memory, 2, 1, stream);
  EXPECT_EQ(driver().event_sync(event), kOk);
  EXPECT_EQ(control().pending(0), 1);
}

TEST_P(Events, NeverRecordedIsDone) {
  void* event = new_event();
  void* stream = new_stream();
  EXPECT_EQ(driver().event_query(event), kOk);
  EXPECT_EQ(driver().event_sync(event), kOk);
  EXPECT_EQ(driver().stream_wait(stream, event, 0), kOk);
  EXPECT_EQ(driver().stream_sync(stream), kOk);
}

TEST_P(Events, PollingEnds) {
  void* first = new_stream();
  void* second = new_stream();
  void* event = new_event();
  void* done = new_event();
  void* memory = device_memory(4);
  driver().fill32(memory, 1, 1, first);
  driver().event_record(event, first);
  driver().stream_wait(second, event, 0);
  driver().event_record(done, second);
  while (driver().event_query(done) == kNotReady) {
  }
  EXPECT_EQ(driver().event_query(event), kOk);
}

TEST_P(Events, DestroyedWhileWaitedForIsFine) {
  void* first = new_stream();
  void* second = new_stream();
  void* memory = device_memory(4);
  void* event = nullptr;
  driver().event_create(&event, 2);
  driver().fill32(memory, 8, 1, first);
  driver().event_record(event, first);
  driver().stream_wait(second, event, 0);
  EXPECT_EQ(driver().event_destroy(event), kOk);
  EXPECT_EQ(download<std::uint32_t>(memory, 1, second)[0], 8u);
}

TEST_P(Events, TimeMovesForward) {
  void* stream = new_stream();
  void* start = new_event();
  void* end = new_event();
  void* memory = device_memory(4);
  float milliseconds = -1;
  driver().event_record(start, stream);
  driver().fill32(memory, 1, 1, stream);
  driver().event_record(end, stream);
  if (lazy_mode()) {
    EXPECT_EQ(driver().event_elapsed(&milliseconds, start, end), kNotReady);
  }
  driver().event_sync(end);
  EXPECT_EQ(driver().event_elapsed(&milliseconds, start, end), kOk);
  EXPECT_GT(milliseconds, 0.0f);
  EXPECT_LT(milliseconds, 10000.0f);

  void* untimed = nullptr;
  driver().event_create(&untimed, 2);
  driver().event_record(untimed, stream);
  driver().event_sync(untimed);
  EXPECT_EQ(driver().event_elapsed(&milliseconds, start, untimed), kInvalidHandle);
  driver().event_destroy(untimed);
  expected_bad_calls = 1;
}

TEST_P(Events, OrderTwoDevices) {
  Driver& d = driver();
  void* first = new_stream();
  void* event = new_event();
  void* source = device_memory(1024);
  d.use(1);
  void* second = nullptr;
  void* target = nullptr;
  d.stream_create(&second, 1);
  d.alloc(&target, 1024);
  d.use(0);
  d.fill8(source, 0x3C, 1024, first);
  d.event_record(event, first);
  d.use(1);
  EXPECT_EQ(d.stream_wait(second, event, 0), kOk);
  EXPECT_EQ(d.peer(target, 1, source, 0, 1024, second), kOk);
  std::vector<std::uint8_t> back(1024);
  EXPECT_EQ(d.dtoh(back.data(), target, 1024, second), kOk);
  EXPECT_EQ(back, std::vector<std::uint8_t>(1024, 0x3C));
  EXPECT_EQ(control().counters().peer, 1u);
  EXPECT_EQ(d.free(target), kOk);
  EXPECT_EQ(d.stream_destroy(second), kOk);
  d.use(0);
}

TEST_P(MemoryCalls, FreshMemoryIsPoisonAndAligned) {
  for (const std::size_t bytes : {1u, 7u, 512u, 5000u}) {
    void* memory = device_memory(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 512, 0u);
    EXPECT_EQ(download<std::uint8_t>(memory, bytes), std::vector<std::uint8_t>(bytes, 0xCD));
  }
}

TEST_P(MemoryCalls, EveryDirectionCopies) {
  std::vector<std::uint32_t> values(1000);
  std::iota(values.begin(), values.end(), 7u);
  void* first = upload(values);
  void* second = device_memory(4000);
  EXPECT_EQ(driver().dtod(second, first, 4000, nullptr), kOk);
  EXPECT_EQ(download<std::uint32_t>(second, 1000), values);
  const SimCounters counters = control().counters();
  EXPECT_EQ(counters.htod, 1u);
  EXPECT_EQ(counters.dtod, 1u);
  EXPECT_EQ(counters.dtoh, 1u);
}

TEST_P(MemoryCalls, FillsOfEveryWidth) {
  char* memory = static_cast<char*>(device_memory(64));
  EXPECT_EQ(driver().fill8(memory, 0x11, 16, nullptr), kOk);
  EXPECT_EQ(driver().fill16(memory + 16, 0x2233, 8, nullptr), kOk);
  EXPECT_EQ(driver().fill32(memory + 32, 0x44556677, 4, nullptr), kOk);
  const auto bytes = download<std::uint8_t>(memory, 64);
  EXPECT_EQ(bytes[15], 0x11);
  EXPECT_EQ(bytes[16], 0x33);
  EXPECT_EQ(bytes[31], 0x22);
  EXPECT_EQ(bytes[47], 0x44);
  EXPECT_EQ(bytes[48], 0xCD);
  EXPECT_EQ(driver().fill32(memory + 2, 0, 1, nullptr), kInvalidValue) << "not aligned";
  expected_bad_calls = 1;
}

TEST_P(MemoryCalls, PageableSourcesAreStagedAndPinnedOnesAreNot) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  void* stream = new_stream();
  void* memory = device_memory(8);
  Pinned pinned(driver(), 1);
  std::uint32_t pageable = 1;
  pinned[0] = 1;
  driver().htod(memory, &pageable, 4, stream);
  driver().htod(static_cast<char*>(memory) + 4, pinned.data(), 4, stream);
  pageable = 2;
  pinned[0] = 2;  // too early: the copy has not run
  const auto values = download<std::uint32_t>(memory, 2, stream);
  EXPECT_EQ(values[0], 1u);
  EXPECT_EQ(values[1], 2u);
}

TEST_P(MemoryCalls, RangesMustLieInOneBlock) {
  char* memory = static_cast<char*>(device_memory(100));
  char* other = static_cast<char*>(device_memory(100));
  std::uint8_t host[256] = {};
  EXPECT_EQ(driver().htod(memory + 50, host, 50, nullptr), kOk);
  EXPECT_EQ(driver().htod(memory + 50, host, 51, nullptr), kInvalidValue);
  EXPECT_EQ(driver().htod(memory - 1, host, 1, nullptr), kInvalidValue);
  EXPECT_EQ(driver().dtoh(host, memory, 101, nullptr), kInvalidValue);
  EXPECT_EQ(driver().dtod(other, memory + 1, 100, nullptr), kInvalidValue);
  EXPECT_EQ(driver().dtod(memory, memory + 50, 60, nullptr), kInvalidValue);
  EXPECT_EQ(driver().dtod(memory, memory + 10, 20, nullptr), kInvalidValue) << "they overlap";
  EXPECT_EQ(driver().fill8(memory + 99, 0, 2, nullptr), kInvalidValue);
  EXPECT_EQ(driver().htod(host, host, 1, nullptr), kInvalidValue);
  EXPECT_EQ(driver().htod(memory, other, 1, nullptr), kInvalidValue) << "device as host memory";
  EXPECT_EQ(driver().htod(memory + 500, host, 0, nullptr), kOk) << "nothing to copy";
  expected_bad_calls = 9;
}

TEST_P(MemoryCalls, BadFreesAreRefusedAndCounted) {
  void* memory = nullptr;
  int local = 0;
  driver().alloc(&memory, 64);
  EXPECT_EQ(driver().free(static_cast<char*>(memory) + 1), kInvalidValue);
  EXPECT_EQ(driver().free(memory), kOk);
  EXPECT_EQ(driver().free(memory), kInvalidValue);
  EXPECT_EQ(driver().free(&local), kInvalidValue);
  EXPECT_EQ(driver().host_free(&local), kInvalidValue);
  expected_bad_calls = 4;
}

TEST_P(MemoryCalls, FreeRunsWhatIsQueued) {
  void* stream = new_stream();
  void* memory = nullptr;
  driver().alloc(&memory, 4);
  Pinned back(driver(), 1);
  driver().fill32(memory, 3, 1, stream);
  driver().dtoh(back.data(), memory, 4, stream);
  EXPECT_EQ(driver().free(memory), kOk);
  EXPECT_EQ(back[0], 3u);
}

TEST_P(MemoryCalls, AsyncFreeFollowsTheStream) {
  void* stream = new_stream();
  void* memory = nullptr;
  Pinned back(driver(), 1);
  EXPECT_EQ(driver().alloc_async(&memory, 4, stream), kOk);
  driver().fill32(memory, 6, 1, stream);
  driver().dtoh(back.data(), memory, 4, stream);
  EXPECT_EQ(driver().free_async(memory, stream), kOk);
  if (lazy_mode()) {
    EXPECT_EQ(control().counters().live_blocks, 1u);
    EXPECT_EQ(driver().free_async(memory, stream), kInvalidValue) << "twice";
    expected_bad_calls = 1;
  }
  driver().stream_sync(stream);
  EXPECT_EQ(back[0], 6u);
  EXPECT_EQ(control().counters().live_blocks, 0u);
}

TEST_P(MemoryCalls, MemoryIsLimited) {
  std::size_t free = 0, total = 0;
  driver().mem_info(&free, &total);
  EXPECT_EQ(free, total);
  void* most = device_memory(total - 1000);
  void* memory = nullptr;
  EXPECT_EQ(driver().alloc(&memory, 2000), kOutOfMemory);
  driver().mem_info(&free, &total);
  EXPECT_EQ(free, 1000u);
  // What the stream has freed can be had again in the stream.
  void* stream = new_stream();
  driver().alloc_async(&memory, 900, stream);
  driver().free_async(memory, stream);
  EXPECT_EQ(driver().alloc_async(&memory, 950, stream), kOk);
  driver().free(memory);
  EXPECT_NE(most, nullptr);
}

TEST_P(Devices, HandlesOfAnotherDeviceAreRefused) {
  Driver& d = driver();
  void* stream = new_stream();
  void* event = new_event();
  void* memory = device_memory(16);
  void* kernel = function("no_arguments");
  ASSERT_EQ(d.use(1), kOk);
  EXPECT_EQ(d.stream_sync(stream), kInvalidHandle);
  EXPECT_EQ(d.event_record(event, nullptr), kInvalidHandle);
  EXPECT_EQ(d.free(memory), kInvalidValue);
  EXPECT_EQ(d.fill8(memory, 0, 1, nullptr), kInvalidValue);
  EXPECT_EQ(d.launch(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), kInvalidHandle);
  EXPECT_EQ(d.event_query(event), kOk) << "looking at an event is allowed from anywhere";
  expected_bad_calls = 5;
}

TEST_P(Devices, CurrentDeviceBelongsToTheThread) {
  ASSERT_EQ(driver().use(1), kOk);
  int seen = 0;
  std::thread([&] {
    std::size_t free = 0, total = 0;
    seen = driver().mem_info(&free, &total);
  }).join();
  EXPECT_EQ(seen, driver().cuda ? kInvalidContext : kOk);
  expected_bad_calls = driver().cuda ? 1 : 0;
}

}  // namespace
}  // namespace simgpu_test
