// Launching kernels: argument rules, bad shapes, and what a launch may do to siblings.
#include "tl/runtime/launch.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/context.h"
#include "support/on_every_device.h"
#include "tl/kernels/modules.h"

namespace tl {
namespace {

using test::expect_error;
using Index = long long;

class Launch : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    if (device().is_cpu()) GTEST_SKIP() << "the CPU launches no kernels";
  }
  const Function& kernel(KernelId id) const {
    return device().modules().function(module_spec(id.module), id.index);
  }
  static LaunchShape shape(std::uint64_t elements) {
    return {.grid = grid_for(elements, 256), .block = {256}, .shared_bytes = 0};
  }
};
TL_ON_EVERY_DEVICE(Launch);

TEST_P(Launch, OutputsAreWritten) {
  DeviceMemory<std::uint32_t> y(device(), 1000);
  launch(kernel(fill_kernel(4)), device().stream(), shape(1000), out(y), std::uint32_t{7},
         Index{1000});
  EXPECT_EQ(y.to_vector(), std::vector<std::uint32_t>(1000, 7));
}

TEST_P(Launch, AnOutputDetachesFromItsSiblings) {
  auto y = DeviceMemory<std::uint32_t>::zeros(device(), 1000);
  const auto sibling = y;
  const DriverCalls before = device().driver_calls();
  launch(kernel(fill_kernel(4)), device().stream(), shape(1000), out(y), std::uint32_t{7},
         Index{1000});
  EXPECT_EQ(device().driver_calls().device_copies, before.device_copies) << "old bytes were copied";
  EXPECT_EQ(sibling.to_vector(), std::vector<std::uint32_t>(1000, 0));
  EXPECT_EQ(y.to_vector(), std::vector<std::uint32_t>(1000, 7));
}

TEST_P(Launch, InOutKeepsWhatTheKernelDoesNotWrite) {
  auto y = DeviceMemory<std::uint32_t>::from_host(device(), std::vector<std::uint32_t>(1000, 3));
  const auto sibling = y;
  launch(kernel(fill_kernel(4)), device().stream(), shape(10), inout(y), std::uint32_t{7},
         Index{10});
  const auto got = y.to_vector();
  EXPECT_EQ(got[9], 7U);
  EXPECT_EQ(got[10], 3U);
  EXPECT_EQ(sibling.to_vector()[0], 3U);
}

TEST_P(Launch, TheSameHandleAsInputAndOutputReadsTheOldBytes) {
  std::vector<std::uint32_t> values(6);
  for (std::uint32_t i = 0; i < 6; ++i) values[i] = i;
  auto x = DeviceMemory<std::uint32_t>::from_host(device(), values);
  // Shifts the rows of a 2 x 3 matrix: in place it would read what it has just written.
  launch(kernel(copy2d_kernel(4)), device().stream(), shape(6), in(x), out(x), Index{2}, Index{3},
         Index{3}, Index{3});
  EXPECT_EQ(x.to_vector(), values);
  EXPECT_TRUE(x.is_unique()) << "the input's reference went with the launch";
}

TEST_P(Launch, MemoryFreedRightAfterTheLaunchIsNotTouchedTooEarly) {
  DeviceMemory<std::uint32_t> y(device(), 5000);
  {
    const auto x =
        DeviceMemory<std::uint32_t>::from_host(device(), std::vector<std::uint32_t>(5000, 9));
    launch(kernel(copy2d_kernel(4)), device().stream(), shape(5000), in(x), out(y), Index{1},
           Index{5000}, Index{5000}, Index{5000});
  }  // x is gone; its block may be handed out again, in stream order
  DeviceMemory<std::uint32_t> z(device(), 5000);
  z.fill(1);
  EXPECT_EQ(y.to_vector(), std::vector<std::uint32_t>(5000, 9));
}

TEST_P(Launch, WorkOnTwoStreamsIsOrderedByItsMemory) {
  Stream other = device().new_stream();
  DeviceMemory<std::uint32_t> x(device(), 4096);
  DeviceMemory<std::uint32_t> y(device(), 4096);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    launch(kernel(fill_kernel(4)), device().stream(), shape(4096), out(x), round, Index{4096});
    launch(kernel(copy2d_kernel(4)), other, shape(4096), in(x), out(y), Index{1}, Index{4096},
           Index{4096}, Index{4096});
    ASSERT_EQ(y.to_vector(), std::vector<std::uint32_t>(4096, round));
  }
}

TEST_P(Launch, NothingIsLaunchedForZeroElements) {
  DeviceMemory<std::uint32_t> y(device(), 0);
  const DriverCalls before = device().driver_calls();
  launch(kernel(fill_kernel(4)), device().stream(), shape(0), out(y), std::uint32_t{7}, Index{0});
  EXPECT_EQ(device().driver_calls().launches, before.launches);
}

// What was granted is remembered, and what was refused is not.
TEST_P(Launch, SharedMemoryIsAskedForUntilThereIsAsMuch) {
  const Function& function = kernel(fill_kernel(8));
  const std::uint32_t before = function.shared_bytes_allowed(), more = before + 256;
  if (!allow_shared_bytes(device(), function, more)) {
    EXPECT_FALSE(device().is_cuda()) << "CUDA grants so little";
    EXPECT_EQ(function.shared_bytes_allowed(), before);
    return;
  }
  EXPECT_EQ(function.shared_bytes_allowed(), more);
  EXPECT_TRUE(allow_shared_bytes(device(), function, 128));
  EXPECT_EQ(function.shared_bytes_allowed(), more) << "it is never made less";
  DeviceMemory<std::uint64_t> y(device(), 100);
  LaunchShape with_room = shape(100);
  with_room.shared_bytes = more;
  launch(function, device().stream(), with_room, out(y), std::uint64_t{7}, Index{100});
  EXPECT_EQ(y.to_vector(), std::vector<std::uint64_t>(100, 7));
}

TEST_P(Launch, ShapesNoDeviceTakesAreRefusedByName) {
  DeviceMemory<std::uint32_t> y(device(), 10);
  const auto with = [&](LaunchShape bad) {
    launch(kernel(fill_kernel(4)), device().stream(), bad, inout(y), std::uint32_t{7}, Index{10});
  };
  expect_error(ErrorKind::BadArgument, "fill_4: a block of 4096 threads",
               [&] { with({.grid = {1}, .block = {4096}}); });
  expect_error(ErrorKind::BadArgument, "fill_4: a block of 0 threads",
               [&] { with({.grid = {1}, .block = {0}}); });
  expect_error(ErrorKind::BadArgument, "2^32", [&] { with({.grid = {1U << 30}, .block = {256}}); });
  expect_error(ErrorKind::BadArgument, "beyond",
               [&] { with({.grid = {1ULL << 40}, .block = {1}}); });
}

TEST_P(Launch, MemoryOfAnotherDeviceIsRefused) {
  DeviceMemory<std::uint32_t> host(Device::cpu(), 10);
  const DriverCalls before = device().driver_calls();
  expect_error(ErrorKind::WrongDevice, "cpu", [&] {
    launch(kernel(fill_kernel(4)), device().stream(), shape(10), out(host), std::uint32_t{7},
           Index{10});
  });
  EXPECT_EQ(device().driver_calls().launches, before.launches);
}

TEST(LaunchSizes, GridsCoverEveryElementUpToTheCap) {
  EXPECT_EQ(grid_for(0, 256).values[0], 0U);
  EXPECT_EQ(grid_for(1, 256).values[0], 1U);
  EXPECT_EQ(grid_for(256, 256).values[0], 1U);
  EXPECT_EQ(grid_for(257, 256).values[0], 2U);
  EXPECT_EQ(grid_for(~0ULL, 256, 1000).values[0], 1000U);
}

}  // namespace
}  // namespace tl
