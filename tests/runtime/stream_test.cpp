// Streams, events, and the order they keep between blocks.
#include "tl/runtime/stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "runtime/block_record.h"
#include "support/on_every_device.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

using test::expect_error;

class Streams : public test::OnEveryDevice {
 protected:
  void SetUp() override { device().synchronize(); }
};
TL_ON_EVERY_DEVICE(Streams);

TEST_P(Streams, AHandleIsSharedAndKnowsItsPlace) {
  const Stream a = device().new_stream();
  const Stream b = a;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == device().stream());
  EXPECT_EQ(a.location(), GetParam());
}

TEST_P(Streams, EventsPassWhenTheWorkBeforeThemIsDone) {
  Stream stream = device().new_stream();
  DeviceMemory<int> memory(device(), 1 << 16);
  memory.mutable_data(stream);
  Event event = stream.record();
  event.synchronize();
  EXPECT_TRUE(event.passed());
  stream.synchronize();
  EXPECT_TRUE(stream.finished());
}

TEST_P(Streams, TimedEventsMeasureAndOthersSayTheyCannot) {
  Stream stream = device().new_stream();
  const Event start = stream.record(true);
  const Event stop = stream.record(true);
  EXPECT_GE(stop.milliseconds_since(start), 0.0);
  const Event untimed = stream.record();
  expect_error(ErrorKind::BadArgument, "timing", [&] { (void)untimed.milliseconds_since(start); });
}

TEST_P(Streams, AWriteOnAnotherStreamIsSeenByALaterReadAtHome) {
  Stream other = device().new_stream();
  auto a = DeviceMemory<int>::zeros(device(), 1000);
  auto pending =
      a.copy_from_host_async(HostBuffer<int>(device(), std::vector<int>(1000, 5)), other);
  EXPECT_EQ(a.to_vector(), std::vector<int>(1000, 5)) << "read before the upload had happened";
  pending.wait();
}

TEST_P(Streams, AWriteWaitsForADownloadOnAnotherStream) {
  Stream other = device().new_stream();
  auto a = DeviceMemory<int>::from_host(device(), std::vector<int>(1000, 1));
  auto pending = a.copy_to_host_async(HostBuffer<int>(device(), 1000), other);
  EXPECT_TRUE(a.is_unique()) << "a transfer is not an owner";
  a.fill(2);
  EXPECT_EQ(pending.wait()[999], 1) << "the download saw a write that came after it";
  EXPECT_EQ(a.to_vector(), std::vector<int>(1000, 2));
}

TEST_P(Streams, ABlockUsedOnASecondStreamIsHeldUntilThatStreamIsDone) {
  if (device().is_cpu()) GTEST_SKIP() << "work on the CPU is done at the call";
  Stream other = device().new_stream();
  device().trim();
  {
    auto a = DeviceMemory<int>::from_host(device(), std::vector<int>(1000, 1));
    a.data(other);  // as a kernel that reads on `other` would
  }
  // Nothing has asked yet whether the other stream is done, so the block waits.
  EXPECT_GE(device().pool().held_bytes, 4000U);
  EXPECT_EQ(device().pool().live_blocks, 0U);
  other.synchronize();
  const DeviceMemory<int> b(device(), 1000);  // taking collects what is done
  EXPECT_EQ(device().pool().held_bytes, 0U);
}

TEST_P(Streams, ManyReadersOfOneBlockStayOrdered) {
  auto a = DeviceMemory<int>::from_host(device(), std::vector<int>(5000, 3));
  std::vector<Stream> streams;
  std::vector<PendingRead<int>> reads;
  for (int i = 0; i < 9; ++i) {  // more than a block has room to note
    streams.push_back(device().new_stream());
    reads.push_back(a.copy_to_host_async(HostBuffer<int>(device(), 5000), streams.back()));
  }
  a.fill(4);
  for (auto& read : reads) EXPECT_EQ(read.wait()[4999], 3);
  EXPECT_EQ(a.to_vector().front(), 4);
}

TEST_P(Streams, MemoryOfADyingStreamGoesOnToTheDefaultOne) {
  const PoolStatistics before = device().pool();
  {
    Stream other = device().new_stream();
    auto a = DeviceMemory<int>::zeros(device(), 100000);
    const auto keep = a;
    a.mutable_data(other);  // the detached block is at home on `other`
  }
  EXPECT_EQ(device().pool().live_blocks, before.live_blocks);
  device().trim();
  EXPECT_EQ(device().pool().live_blocks, before.live_blocks);
  const DriverCalls calls = device().driver_calls();
  EXPECT_EQ(before.live_blocks, 0U);
  EXPECT_EQ(calls.allocations, calls.frees) << "a segment of the dead stream was not found";
}

TEST_P(Streams, EachHasZerosToCountArrivalsInAndFreesThem) {
  device().synchronize();
  const DriverCalls before = device().driver_calls();
  {
    const Stream one = device().new_stream(), other = device().new_stream();
    if (device().is_cpu()) {
      EXPECT_EQ(one.arrivals(), nullptr);
      EXPECT_EQ(one.scratch(), nullptr);
      return;
    }
    std::uint32_t* const zeros = one.arrivals();
    ASSERT_NE(zeros, nullptr);
    EXPECT_EQ(Stream(one).arrivals(), zeros);
    EXPECT_NE(other.arrivals(), zeros);
    EXPECT_EQ(one.scratch(), reinterpret_cast<std::byte*>(zeros + Stream::kArrivals));
    const RawMemory view =
        RawMemory::borrowed(device(), std::make_shared<int>(),
                            std::as_bytes(std::span(zeros, std::size_t{Stream::kArrivals})));
    Stream(one).synchronize();
    std::vector<std::uint32_t> found(Stream::kArrivals, 1);
    view.download(0, found.data(), view.bytes());
    EXPECT_EQ(found, std::vector<std::uint32_t>(Stream::kArrivals, 0));
  }
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.allocations - before.allocations, 2U);
  EXPECT_EQ(after.frees - before.frees, 2U);
}

TEST_P(Streams, AStreamOfAnotherDeviceIsRefused) {
  for (const Device& other : Device::all()) {
    if (other.location() == GetParam()) continue;
    auto a = DeviceMemory<int>::zeros(device(), 4);
    expect_error(ErrorKind::WrongDevice, other.text(), [&] { a.mutable_data(other.stream()); });
    expect_error(ErrorKind::WrongDevice, other.text(), [&] { (void)a.data(other.stream()); });
    expect_error(ErrorKind::WrongDevice, other.text(),
                 [&] { a.copy_from_host_async(HostBuffer<int>(device(), 4), other.stream()); });
  }
}

TEST_P(Streams, ABorrowedStreamIsNotDestroyed) {
  Stream owner = device().new_stream();
  {
    Stream borrowed = Stream::borrow(GetParam(), owner.native());
    auto a = DeviceMemory<int>::from_host(device(), std::vector<int>{1, 2, 3});
    a.copy_from_host_async(HostBuffer<int>(device(), std::vector<int>{4, 5, 6}), borrowed).wait();
    EXPECT_EQ(a.to_vector(), (std::vector<int>{4, 5, 6}));
  }
  EXPECT_NO_THROW(owner.synchronize());
}

// The owner may destroy its stream once the last handle is gone, whatever still names it: blocks
// written on it, blocks at home on it, blocks held for it.
TEST_P(Streams, NothingTouchesABorrowedStreamAfterItsLastHandle) {
  DeviceMemory<int> written(device(), 1000);
  DeviceMemory<int> at_home = DeviceMemory<int>::zeros(device(), 1000);
  const DeviceMemory<int> sibling = at_home;
  {
    Stream owner = device().new_stream();
    Stream borrowed = Stream::borrow(GetParam(), owner.native());
    written.copy_from_host_async(HostBuffer<int>(device(), std::vector<int>(1000, 8)), borrowed)
        .wait();
    at_home.mutable_data(borrowed);
    DeviceMemory<int> held = DeviceMemory<int>::zeros(device(), 1000);
    held.data(borrowed);
  }  // `borrowed` goes first, then the stream itself
  EXPECT_EQ(written.to_vector(), std::vector<int>(1000, 8));
  at_home.fill(3);
  EXPECT_EQ(at_home.to_vector().back(), 3);
  written = DeviceMemory<int>();
  at_home = DeviceMemory<int>();
  const DeviceMemory<int> next(device(), 1000);
  device().trim();
  EXPECT_EQ(device().pool().held_bytes, 0U);
  EXPECT_NO_THROW(device().synchronize());
}

}  // namespace
}  // namespace tl
