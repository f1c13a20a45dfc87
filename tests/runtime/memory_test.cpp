// The contract of DeviceMemory: sharing, detaching, exact sizes, zero sizes, views.
#include "tl/runtime/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "support/on_every_device.h"

namespace tl {
namespace {

using test::expect_error;

class Memory : public test::OnEveryDevice {
 protected:
  DeviceMemory<int> make(std::vector<int> values) const {
    return DeviceMemory<int>::from_host(device(), values);
  }
};
TL_ON_EVERY_DEVICE(Memory);

// ---- sharing

TEST_P(Memory, ACopyThenAWriteLeavesTheOtherAlone) {
  auto a = make({1, 2, 3, 4});
  const DeviceMemory<int> b = a;
  EXPECT_EQ(a.data(), b.data());
  EXPECT_TRUE(a.shared());
  a.copy_from_host(std::vector<int>{5, 6, 7, 8});
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(a.to_vector(), (std::vector<int>{5, 6, 7, 8}));
  EXPECT_EQ(b.to_vector(), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_TRUE(a.is_unique());
  EXPECT_TRUE(b.is_unique());
}

TEST_P(Memory, AThousandCopiesTouchNeitherPoolNorDriver) {
  const auto a = make(std::vector<int>(1000, 7));
  const PoolStatistics pool = device().pool();
  const DriverCalls calls = device().driver_calls();
  {
    const std::vector<DeviceMemory<int>> copies(1000, a);
    EXPECT_EQ(a.use_count(), 1001U);
    for (const auto& copy : copies) ASSERT_EQ(copy.data(), a.data());
    EXPECT_EQ(device().pool().allocations, pool.allocations);
  }
  EXPECT_EQ(a.use_count(), 1U);
  EXPECT_EQ(device().pool().returns, pool.returns);
  EXPECT_EQ(device().driver_calls(), calls);
}

TEST_P(Memory, EveryBlockIsReturnedOnce) {
  const PoolStatistics before = device().pool();
  {
    auto a = make(std::vector<int>(100, 1));
    auto b = a;
    b.memset(0);
    auto c = b;
    c.mutable_data();
    EXPECT_EQ(device().pool().live_blocks, before.live_blocks + 3);
  }
  const PoolStatistics after = device().pool();
  EXPECT_EQ(after.live_blocks, before.live_blocks);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.allocations - before.allocations, after.returns - before.returns);
}

TEST_P(Memory, MovingLeavesNothingBehind) {
  auto a = make({1, 2});
  const int* address = a.data();
  DeviceMemory<int> b = std::move(a);
  EXPECT_EQ(b.data(), address);
  EXPECT_TRUE(b.is_unique());
  EXPECT_EQ(a.count(), 0U);  // NOLINT(bugprone-use-after-move): the moved-from state is defined
  EXPECT_EQ(a.data(), nullptr);
  a = b;
  EXPECT_EQ(a.to_vector(), (std::vector<int>{1, 2}));
}

TEST_P(Memory, SelfAssignmentIsHarmless) {
  auto a = make({1, 2});
  auto& same = a;
  a = same;
  EXPECT_EQ(a.use_count(), 1U);
  EXPECT_EQ(a.to_vector(), (std::vector<int>{1, 2}));
}

TEST_P(Memory, DeepCopyHasABlockOfItsOwn) {
  const auto a = make({1, 2});
  const auto b = a.deep_copy();
  EXPECT_NE(a.data(), b.data());
  EXPECT_TRUE(a.is_unique());
  EXPECT_EQ(b.to_vector(), (std::vector<int>{1, 2}));
}

// ---- detaching

TEST_P(Memory, MutableDataKeepsTheBytesAndDetaches) {
  auto a = make({1, 2, 3});
  const auto b = a;
  const std::uint64_t generation = a.generation();
  EXPECT_NE(a.mutable_data(), b.data());
  EXPECT_NE(a.generation(), generation) << "the address changed, so the generation must";
  EXPECT_EQ(a.to_vector(), b.to_vector());
}

TEST_P(Memory, AUniqueHandleIsWrittenInPlace) {
#if defined(TL_STRESS)
  GTEST_SKIP() << "the stress build detaches on every write";
#endif
  auto a = make({1, 2, 3});
  const int* address = a.data();
  const std::uint64_t generation = a.generation();
  a.copy_from_host(std::vector<int>{4, 5, 6});
  a.memset(0);
  a.fill(9);
  EXPECT_EQ(a.mutable_data(), address);
  EXPECT_EQ(a.generation(), generation);
}

TEST_P(Memory, AFullOverwriteOfASharedBlockCopiesNothingOnTheDevice) {
  auto a = make(std::vector<int>(1 << 16, 1));
  const auto keep = a;
  const DriverCalls before = device().driver_calls();
  a.copy_from_host(std::vector<int>(1 << 16, 2));
  auto b = keep;
  b.memset(3);
  auto c = keep;
  c.fill(4);
  auto d = keep;
  auto pending = d.copy_from_host_async(HostBuffer<int>(device(), std::vector<int>(1 << 16, 5)),
                                        device().stream());
  pending.wait();
  EXPECT_EQ(device().driver_calls().device_copies, before.device_copies);
  EXPECT_EQ(keep.to_vector(), std::vector<int>(1 << 16, 1));
  EXPECT_EQ(a.to_vector().back(), 2);
  EXPECT_EQ(b.to_vector().back(), 0x03030303);
  EXPECT_EQ(c.to_vector().back(), 4);
  EXPECT_EQ(d.to_vector().back(), 5);
}

TEST_P(Memory, APartialWriteKeepsWhatSurvives) {
  auto a = make({0, 1, 2, 3, 4, 5, 6, 7});
  const auto b = a;
  a.copy_from_host_at(2, std::vector<int>{20, 30});
  EXPECT_EQ(a.to_vector(), (std::vector<int>{0, 1, 20, 30, 4, 5, 6, 7}));
  EXPECT_EQ(b.to_vector(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  auto c = b;
  c.copy_from_host_at(0, std::vector<int>{9});
  c.copy_from_host_at(7, std::vector<int>{10});
  EXPECT_EQ(c.to_vector(), (std::vector<int>{9, 1, 2, 3, 4, 5, 6, 10}));
  std::vector<int> part(3);
  c.copy_to_host_at(5, part);
  EXPECT_EQ(part, (std::vector<int>{5, 6, 10}));
}

// ---- sizes

TEST_P(Memory, SizesMustMatchExactly) {
  auto a = make({1, 2, 3});
  const auto expect_mismatch = [](std::uint64_t expected, std::uint64_t actual, auto&& action) {
    try {
      action();
      FAIL() << "accepted " << actual << " for " << expected;
    } catch (const SizeMismatch& error) {
      EXPECT_EQ(error.expected, expected);
      EXPECT_EQ(error.actual, actual);
      EXPECT_EQ(error.kind, ErrorKind::SizeMismatch);
    }
  };
  std::vector<int> two(2);
  std::vector<int> four(4, 9);
  std::vector<int> none;
  expect_mismatch(3, 2, [&] { a.copy_from_host(two); });
  expect_mismatch(3, 4, [&] { a.copy_from_host(four); });
  expect_mismatch(3, 0, [&] { a.copy_from_host(none); });
  expect_mismatch(3, 2, [&] { a.copy_to_host(two); });
  expect_mismatch(3, 4, [&] { a.copy_to_host(four); });
  expect_mismatch(3, 0, [&] { a.copy_to_host(none); });
  expect_mismatch(3, 2, [&] { a.copy_from_device(DeviceMemory<int>(device(), 2)); });
  expect_mismatch(3, 0, [&] { a.copy_from_device(DeviceMemory<int>(device(), 0)); });
  expect_mismatch(3, 2,
                  [&] { a.copy_from_host_async(HostBuffer<int>(device(), 2), device().stream()); });
  expect_mismatch(3, 4,
                  [&] { a.copy_to_host_async(HostBuffer<int>(device(), 4), device().stream()); });
  DeviceMemory<int> empty(device(), 0);
  expect_mismatch(0, 2, [&] { empty.copy_from_host(two); });
  EXPECT_EQ(a.to_vector(), (std::vector<int>{1, 2, 3})) << "a refused copy wrote something";
}

TEST_P(Memory, ARefusedAsyncUploadLeavesTheBufferWithTheCaller) {
  auto a = make({1, 2, 3});
  HostBuffer<int> buffer(device(), std::vector<int>{7, 8});
  EXPECT_THROW(a.copy_from_host_async(std::move(buffer), device().stream()), SizeMismatch);
  ASSERT_EQ(buffer.count(), 2U);  // NOLINT(bugprone-use-after-move): that is the claim
  EXPECT_EQ(buffer[1], 8);
}

TEST_P(Memory, RangesAreCheckedWithoutOverflow) {
  auto a = make({1, 2, 3});
  std::vector<int> one(1);
  const auto huge = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t offset : {std::uint64_t{3}, std::uint64_t{4}, huge}) {
    expect_error(ErrorKind::BadArgument, "copy_from_host_at",
                 [&] { a.copy_from_host_at(offset, one); });
    expect_error(ErrorKind::BadArgument, "copy_to_host_at",
                 [&] { a.copy_to_host_at(offset, one); });
    expect_error(ErrorKind::BadArgument, "slice", [&] { a.slice(offset, 1); });
  }
  expect_error(ErrorKind::BadArgument, "slice", [&] { a.slice(1, huge); });
  EXPECT_NO_THROW(a.copy_to_host_at(3, std::span<int>{})) << "nothing at the end is a valid range";
}

TEST_P(Memory, CountsThatCannotBeAreRefused) {
  const auto huge = std::numeric_limits<std::uint64_t>::max();
  const PoolStatistics before = device().pool();
  expect_error(ErrorKind::Overflow, "DeviceMemory",
               [&] { DeviceMemory<double>(device(), huge / 4); });
  expect_error(ErrorKind::Overflow, "bytes", [&] { DeviceMemory<char>(device(), huge); });
  expect_error(ErrorKind::BadArgument, "negative", [&] { DeviceMemory<double>(device(), -1); });
  expect_error(ErrorKind::Overflow, "host buffer", [&] { HostBuffer<double>(device(), huge / 4); });
  EXPECT_EQ(device().pool().live_blocks, before.live_blocks);
}

TEST_P(Memory, MoreThanTheDeviceHasIsOutOfMemoryWithNumbers) {
  if (device().name().find("emulated") == 0) {
    GTEST_SKIP() << "the emulating HIP library hands out more than it says it has";
  }
  const std::uint64_t total = device().properties().total_memory;
  try {
    const DeviceMemory<std::byte> too_much(device(), total * 4);
    FAIL() << "allocated four times the device";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.kind, ErrorKind::OutOfMemory);
    EXPECT_EQ(error.requested, total * 4);
    EXPECT_EQ(error.device, GetParam().text());
    EXPECT_GT(error.total, 0U);
    EXPECT_LE(error.free, error.total);
  }
  EXPECT_EQ(make({1}).to_vector(), std::vector<int>{1}) << "usable afterwards";
}

// ---- zero size

TEST_P(Memory, ZeroElementsAreValidEverywhereAndNeverReachTheDriver) {
  const DriverCalls before = device().driver_calls();
  DeviceMemory<int> a(device(), 0);
  EXPECT_EQ(a.count(), 0U);
  EXPECT_EQ(a.size_bytes(), 0U);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.device(), device());
  EXPECT_TRUE(a.is_unique());
  const auto b = a;
  EXPECT_EQ(a.mutable_data(), nullptr);
  a.make_unique();
  a.copy_from_host({});
  a.copy_to_host({});
  a.copy_from_host_at(0, {});
  a.copy_from_device(b);
  a.memset(1);
  a.fill(2);
  EXPECT_EQ(a.to_vector(), std::vector<int>{});
  EXPECT_EQ(a.slice(0, 0).count(), 0U);
  EXPECT_EQ(a.reinterpret<double>().count(), 0U);
  auto pending = a.copy_from_host_async(HostBuffer<int>(device(), 0), device().stream());
  EXPECT_TRUE(pending.is_ready());
  pending.wait();
  a.copy_to_host_async(HostBuffer<int>(device(), 0), device().stream()).wait();
  EXPECT_EQ(DeviceMemory<int>::zeros(device(), 0).count(), 0U);
  EXPECT_EQ(make({}).count(), 0U);
  EXPECT_EQ(device().driver_calls(), before);
}

// ---- fills

template <class T>
void expect_filled(const Device& device, T value, std::uint64_t count) {
  DeviceMemory<T> a(device, count);
  a.fill(value);
  const std::vector<T> got = a.to_vector();
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &value, sizeof(T)), 0) << "element " << i << " of " << count;
  }
}

struct Twelve {
  std::uint32_t a, b, c;
};

TEST_P(Memory, FillsEveryElementOfEverySize) {
  for (const std::uint64_t count : {1, 2, 3, 255, 10000, 100001}) {
    expect_filled<std::uint8_t>(device(), 0xAB, count);
    expect_filled<std::uint16_t>(device(), 0xABCD, count);
    expect_filled<std::uint32_t>(device(), 0xABCDEF01, count);
    expect_filled<std::uint64_t>(device(), 0x0123456789ABCDEF, count);
    expect_filled<double>(device(), 1.5, count);
    expect_filled<float>(device(), -0.0F, count);
    expect_filled<Twelve>(device(), {1, 2, 3}, count);
  }
}

TEST_P(Memory, MemsetTakesAByte) {
  DeviceMemory<std::uint32_t> a(device(), 5);
  a.memset(0xFF);
  EXPECT_EQ(a.to_vector(), std::vector<std::uint32_t>(5, 0xFFFFFFFF));
  EXPECT_EQ(DeviceMemory<std::uint32_t>::zeros(device(), 5).to_vector(),
            std::vector<std::uint32_t>(5, 0));
}

// ---- copies on the device

TEST_P(Memory, CopyingOnOneDeviceShares) {
  const auto a = make({1, 2, 3});
  DeviceMemory<int> b(device(), 3);
  const DriverCalls before = device().driver_calls();
  b.copy_from_device(a);
  EXPECT_EQ(device().driver_calls(), before);
  EXPECT_EQ(b.data(), a.data());
  b.fill(0);
  EXPECT_EQ(a.to_vector(), (std::vector<int>{1, 2, 3}));
}

TEST_P(Memory, CopyingFromItselfDoesNothing) {
  auto a = make({1, 2, 3});
  const auto b = a;
  a.copy_from_device(b);
  EXPECT_EQ(a.use_count(), 2U);
  EXPECT_EQ(a.to_vector(), (std::vector<int>{1, 2, 3}));
}

TEST(MemoryAcrossDevices, EveryDeviceCopiesToEveryOther) {
  std::vector<int> values(70000);
  std::iota(values.begin(), values.end(), -5);
  for (const Device& from : Device::all()) {
    for (const Device& to : Device::all()) {
      const auto a = DeviceMemory<int>::from_host(from, values);
      DeviceMemory<int> b(to, values.size());
      const auto old = b;  // a shared destination must not change its sibling
      b.copy_from_device(a);
      EXPECT_EQ(b.to_vector(), values) << from << " to " << to;
      EXPECT_EQ(b.location(), to.location());
    }
  }
}

// ---- views

TEST_P(Memory, ASliceSharesAndItsWriteDetachesOnlyWhatItSees) {
  auto a = make({0, 1, 2, 3, 4, 5});
  auto part = a.slice(2, 3);
  EXPECT_EQ(part.data(), a.data() + 2);
  EXPECT_EQ(part.to_vector(), (std::vector<int>{2, 3, 4}));
  EXPECT_TRUE(a.shared());
  part.copy_from_host_at(1, std::vector<int>{30});
  EXPECT_EQ(part.to_vector(), (std::vector<int>{2, 30, 4}));
  EXPECT_EQ(a.to_vector(), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(part.raw().block()->bytes, 3 * sizeof(int)) << "a detached slice holds only its own";
  const auto kept = make({7, 8, 9}).slice(1, 2);  // outlives the whole
  EXPECT_EQ(kept.to_vector(), (std::vector<int>{8, 9}));
}

TEST_P(Memory, AViewOfAnotherTypeSharesOrSaysWhyNot) {
  const auto a = make({1, 0, 2, 0});
  const auto wide = a.reinterpret<std::int64_t>();
  EXPECT_EQ(wide.count(), 2U);
  EXPECT_EQ(wide.to_vector(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(static_cast<const void*>(wide.data()), static_cast<const void*>(a.data()));
  expect_error(ErrorKind::SizeMismatch, "reinterpret",
               [&] { make({1, 2, 3}).reinterpret<std::int64_t>(); });
  expect_error(ErrorKind::BadArgument, "aligned",
               [&] { make({1, 2, 3}).slice(1, 2).reinterpret<std::int64_t>(); });
}

}  // namespace
}  // namespace tl
