// Transfers that are under way own what they use.
#include "tl/runtime/pending.h"

#include <gtest/gtest.h>

#include <numeric>
#include <type_traits>
#include <vector>

#include "support/on_every_device.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

class Pending : public test::OnEveryDevice {
 protected:
  std::vector<int> numbers(int first) const {
    std::vector<int> out(3000);
    std::iota(out.begin(), out.end(), first);
    return out;
  }
};
TL_ON_EVERY_DEVICE(Pending);

static_assert(!std::is_copy_constructible_v<PendingCopy<int>>);
static_assert(!std::is_copy_constructible_v<HostBuffer<int>>);
static_assert(std::is_nothrow_move_constructible_v<PendingCopy<int>>);

TEST_P(Pending, UploadGivesTheBufferBack) {
  DeviceMemory<int> a(device(), 3000);
  HostBuffer<int> buffer(device(), numbers(1));
  const int* host = buffer.data();
  auto pending = a.copy_from_host_async(std::move(buffer), device().stream());
  HostBuffer<int> back = pending.wait();
  EXPECT_EQ(back.data(), host);
  EXPECT_EQ(back.count(), 3000U);
  EXPECT_EQ(a.to_vector(), numbers(1));
}

TEST_P(Pending, DownloadBringsTheData) {
  const auto a = DeviceMemory<int>::from_host(device(), numbers(5));
  auto pending = a.copy_to_host_async(HostBuffer<int>(device(), 3000), device().stream());
  while (!pending.is_ready()) {
  }
  const HostBuffer<int> got = pending.wait();
  EXPECT_TRUE(std::equal(got.span().begin(), got.span().end(), numbers(5).begin()));
}

TEST_P(Pending, PageableBuffersKeepTheSameContract) {
  DeviceMemory<int> a(device(), 3000);
  HostBuffer<int> buffer = HostBuffer<int>::pageable(3000);
  EXPECT_FALSE(buffer.is_pinned());
  std::iota(buffer.data(), buffer.data() + 3000, 9);
  buffer = a.copy_from_host_async(std::move(buffer), device().stream()).wait();
  std::fill_n(buffer.data(), 3000, 0);
  buffer = a.copy_to_host_async(std::move(buffer), device().stream()).wait();
  EXPECT_TRUE(std::equal(buffer.span().begin(), buffer.span().end(), numbers(9).begin()));
}

TEST_P(Pending, AnUploadDroppedEarlyStillArrives) {
  DeviceMemory<int> a(device(), 3000);
  {
    a.copy_from_host_async(HostBuffer<int>(device(), numbers(1)), device().stream());
  }  // the destructor waited; the pinned memory may be used again at once
  HostBuffer<int> scribble(device(), std::vector<int>(3000, -1));
  EXPECT_EQ(a.to_vector(), numbers(1));
}

TEST_P(Pending, TheBlockOutlivesItsHandlesUntilTheCopyIsDone) {
  const PoolStatistics before = device().pool();
  Stream other = device().new_stream();
  std::optional<PendingRead<int>> pending;
  {
    const auto a = DeviceMemory<int>::from_host(device(), numbers(2));
    pending.emplace(a.copy_to_host_async(HostBuffer<int>(device(), 3000), other));
  }
  EXPECT_EQ(device().pool().live_blocks, before.live_blocks + 1) << "the transfer pins the block";
  const auto scribble = DeviceMemory<int>::from_host(device(), std::vector<int>(3000, -1));
  const HostBuffer<int> got = pending->wait();
  EXPECT_TRUE(std::equal(got.span().begin(), got.span().end(), numbers(2).begin()));
  EXPECT_EQ(device().pool().live_blocks, before.live_blocks + 1) << "only the scribble is left";
}

TEST_P(Pending, AnUploadNeverChangesASibling) {
  auto a = DeviceMemory<int>::from_host(device(), numbers(1));
  const auto b = a;
  auto pending = a.copy_from_host_async(HostBuffer<int>(device(), numbers(7)), device().stream());
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(b.to_vector(), numbers(1));
  pending.wait();
  EXPECT_EQ(a.to_vector(), numbers(7));
  EXPECT_EQ(b.to_vector(), numbers(1));
}

TEST_P(Pending, MovedTransfersKeepTheirCopy) {
  DeviceMemory<int> a(device(), 3000);
  auto first = a.copy_from_host_async(HostBuffer<int>(device(), numbers(1)), device().stream());
  auto second = std::move(first);
  EXPECT_EQ(second.wait().count(), 3000U);
  EXPECT_EQ(a.to_vector(), numbers(1));
}

TEST_P(Pending, ParkedTransfersFinishByThemselves) {
  DeviceMemory<int> a(device(), 3000);
  const std::uint64_t pinned = device().pinned_pool().live_blocks;
  Stream other = device().new_stream();
  a.copy_from_host_async(HostBuffer<int>(device(), numbers(4)), other).park();
  EXPECT_EQ(a.to_vector(), numbers(4));
  other.synchronize();
  device().synchronize();
  EXPECT_EQ(device().pinned_pool().live_blocks, pinned) << "the parked buffer was let go";
}

}  // namespace
}  // namespace tl
