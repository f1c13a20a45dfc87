// What happens when the driver fails: nothing is lost, nothing leaks, and the error says what and
// where.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/context.h"
#include "simgpu/control.h"
#include "support/faulty_driver.h"
#include "support/on_every_device.h"
#include "tl/base/text.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/launch.h"
#include "tl/runtime/memory.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

using test::expect_error;
using test::FaultyDriver;

class Failures : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    device().synchronize();
    device().trim();
  }
};
TL_ON_EVERY_DEVICE(Failures);

// Runs `scenario` with the n-th allocation of anything failing, for n = 1, 2, ... until it passes
// without reaching the planned failure. After each failure every byte must be back and the device
// must work.
void fail_at_every_allocation(const Device& device, const std::function<void()>& scenario) {
  const std::uint64_t live = device.pool().live_blocks;
  const std::uint64_t pinned = device.pinned_pool().live_blocks;
  FaultyDriver driver(device.kind());
  int failures = 0;
  for (int n = 1; n < 200; ++n) {
    device.trim();
    driver.fail_from(n, 1000);
    try {
      scenario();
      if (!driver.reached()) {
        driver.fail_from(0);
        EXPECT_GT(failures, 0) << "the scenario allocates nothing";
        return;
      }
    } catch (const Error& error) {
      ++failures;
      EXPECT_EQ(error.kind, ErrorKind::OutOfMemory) << error.what();
    }
    driver.fail_from(0);
    ASSERT_EQ(device.pool().live_blocks, live) << "leaked after failure " << n;
    ASSERT_EQ(device.pinned_pool().live_blocks, pinned) << "leaked after failure " << n;
    ASSERT_EQ(DeviceMemory<int>::from_host(device, std::vector<int>{1, 2}).to_vector(),
              (std::vector<int>{1, 2}));
  }
  FAIL() << "the scenario never passed";
}

TEST_P(Failures, AtEveryAllocationLeavesTheStateUnchanged) {
  const Device d = device();
  fail_at_every_allocation(d, [&] {
    const std::vector<int> old(50000, 1);
    auto a = DeviceMemory<int>::from_host(d, old);
    const auto sibling = a;
    const int* address = a.data();
    const auto unchanged = [&] {
      EXPECT_EQ(a.data(), address);
      EXPECT_EQ(sibling.data(), address);
      EXPECT_EQ(a.use_count(), 2U);
      EXPECT_EQ(a.to_vector(), old);
    };
    const auto attempt = [&](auto&& write) {
      try {
        write(a);
      } catch (const OutOfMemory&) {
        unchanged();
        throw;
      }
      a = sibling;
    };
    Stream other = d.new_stream();
    attempt([](auto& m) { m.mutable_data(); });
    attempt([&](auto& m) { m.mutable_data(other); });
    attempt([](auto& m) { m.copy_from_host(std::vector<int>(50000, 2)); });
    attempt([](auto& m) { m.copy_from_host_at(7, std::vector<int>(3, 2)); });
    attempt([](auto& m) { m.memset(3); });
    attempt([](auto& m) { m.fill(4); });
    attempt([&](auto& m) { m.copy_from_host_async(HostBuffer<int>(d, 50000), other).wait(); });
    a.copy_to_host_async(HostBuffer<int>(d, 50000), other).wait();
    EXPECT_EQ(sibling.to_vector(), old);
  });
}

TEST_P(Failures, DetachingFailsCleanly) {
  auto a = DeviceMemory<int>::from_host(device(), std::vector<int>(4000000, 1));
  const auto b = a;
  device().trim();  // so that the new block has to come from the driver
  FaultyDriver driver(GetParam().kind);
  driver.fail_from(1, 1000);
  EXPECT_THROW(a.make_unique(), OutOfMemory);
  driver.fail_from(0);
  EXPECT_EQ(a.data(), b.data());
  EXPECT_EQ(a.use_count(), 2U);
  EXPECT_EQ(a.to_vector(), b.to_vector());
}

TEST_P(Failures, WithoutMemoryForThemThereAreNoArrivalCounters) {
  if (device().is_cpu()) GTEST_SKIP() << "has none";
  const Stream stream = device().new_stream();
  FaultyDriver driver(GetParam().kind);
  driver.fail_from(1, 1000);
  EXPECT_EQ(stream.arrivals(), nullptr);
  driver.fail_from(0);
  EXPECT_NE(stream.arrivals(), nullptr);
}

// ---- faults that only the simulated GPU can make

class SimFailures : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    if (device().is_cpu()) GTEST_SKIP() << "needs a simulated GPU";
    const std::string path(environment(device().is_cuda() ? "TL_CUDA_DRIVER" : "TL_HIP_DRIVER"));
    if (path.find("libsim") == std::string::npos) GTEST_SKIP() << "needs a simulated GPU";
    device().synchronize();
    device().trim();
    sim_.emplace(path);
    sim_->reset();
    set_error_hook([this](const Error& error) { reported_.emplace_back(error.what()); });
  }
  void TearDown() override {
    set_error_hook({});
    if (sim_) {
      recover();
      device().trim();
      EXPECT_EQ(sim_->check(), 0) << "guard zones were damaged";
    }
  }
  simgpu::Control& sim() { return *sim_; }
  // A real device cannot come back; the simulated one can, so that the tests after this one have a
  // device.
  void recover() {
    sim_->reset();
    device().context().forget_loss_for_testing();
  }

  std::optional<simgpu::Control> sim_;
  std::vector<std::string> reported_;
};
TL_ON_EVERY_DEVICE(SimFailures);

TEST_P(SimFailures, AnUploadThatFailsLeavesASharedHandleAsItWas) {
  auto a = DeviceMemory<int>::from_host(device(), std::vector<int>(100, 1));
  const auto b = a;
  sim().fail("copy", 1);
  EXPECT_THROW(a.copy_from_host(std::vector<int>(100, 2)), DeviceFault);
  recover();
  EXPECT_EQ(a.data(), b.data());
  EXPECT_EQ(a.to_vector(), std::vector<int>(100, 1));
  HostBuffer<int> buffer(device(), std::vector<int>(100, 3));
  sim().fail("copy", 1);
  EXPECT_THROW(a.copy_from_host_async(std::move(buffer), device().stream()), DeviceFault);
  EXPECT_EQ(buffer[99], 3);  // NOLINT(bugprone-use-after-move): it stays with the caller
  EXPECT_EQ(a.data(), b.data());
}

TEST_P(SimFailures, ATransferWhoseEventFailsGivesTheBufferBack) {
  auto a = DeviceMemory<int>::from_host(device(), std::vector<int>(100, 1));
  HostBuffer<int> buffer(device(), std::vector<int>(100, 3));
  sim().fail("event_record", 1);
  EXPECT_THROW(a.copy_from_host_async(std::move(buffer), device().stream()), DeviceFault);
  EXPECT_EQ(buffer[99], 3);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(sim().pending(GetParam().index), 0) << "the copy may still be reading the buffer";
}

TEST_P(SimFailures, ALaunchThatFailsNamesTheKernel) {
  DeviceMemory<std::uint32_t> y(device(), 100);
  const KernelId id = fill_kernel(4);
  const Function& function = device().modules().function(module_spec(id.module), id.index);
  sim().fail("launch", 1);
  try {
    launch(function, device().stream(), {.grid = {1}, .block = {256}}, out(y), std::uint32_t{1},
           100LL);
    FAIL() << "the launch did not fail";
  } catch (const DeviceFault& error) {
    EXPECT_NE(std::string(error.what()).find("launch of fill_4: " + GetParam().text()),
              std::string::npos)
        << error.what();
    EXPECT_NE(error.code, 0);
  }
}

TEST_P(SimFailures, AFailedFreeIsReportedAndCountedNotThrown) {
  {
    const DeviceMemory<int> a(device(), 100);
  }
  const std::uint64_t before = device().pool().failures;
  sim().lose_device(GetParam().index);
  EXPECT_NO_THROW(device().trim());
  EXPECT_GT(device().pool().failures, before);
  EXPECT_FALSE(reported_.empty());
}

TEST_P(SimFailures, ALostDeviceIsAnErrorEveryTimeAndNeverACrash) {
  auto a = DeviceMemory<int>::from_host(device(), std::vector<int>(100, 1));
  auto b = a;
  std::optional<PendingRead<int>> pending(
      a.copy_to_host_async(HostBuffer<int>(device(), 100), device().stream()));
  sim().lose_device(GetParam().index);
  expect_error(ErrorKind::DeviceLost, GetParam().text(), [&] { (void)a.to_vector(); });
  expect_error(ErrorKind::DeviceLost, GetParam().text(), [&] { b.fill(2); });
  expect_error(ErrorKind::DeviceLost, "lost by an earlier failure",
               [&] { DeviceMemory<int>(device(), 5); });
  expect_error(ErrorKind::DeviceLost, GetParam().text(), [&] { device().synchronize(); });
  expect_error(ErrorKind::DeviceLost, GetParam().text(), [&] { (void)pending->wait(); });
  expect_error(ErrorKind::DeviceLost, GetParam().text(), [&] { device().new_stream(); });
  EXPECT_NO_THROW(pending.reset()) << "letting go of a transfer of a lost device";
  a = DeviceMemory<int>();
  b = DeviceMemory<int>();
  EXPECT_EQ(device().pool().live_blocks, 0U) << "handles of a lost device still come back";
}

TEST_P(SimFailures, EachAllocationIsFreedOnceAndNoCallWasBad) {
  const SimCounters before = sim().counters();
  for (int i = 0; i < 50; ++i) {
    auto a = DeviceMemory<int>::zeros(device(), 10000 + 1000 * static_cast<std::uint64_t>(i));
    auto b = a;
    b.fill(i);
    Stream other = device().new_stream();
    auto pending = a.copy_to_host_async(HostBuffer<int>(device(), a.count()), other);
  }
  device().synchronize();
  device().trim();
  const SimCounters counters = sim().counters();
  EXPECT_EQ(counters.allocs, counters.frees);
  EXPECT_EQ(counters.host_allocs, counters.host_frees);
  EXPECT_EQ(counters.live_blocks, before.live_blocks);
  EXPECT_EQ(counters.live_host_blocks, before.live_host_blocks);
  EXPECT_EQ(counters.bad_calls, 0U);
  EXPECT_EQ(counters.guard_hits, 0U);
}

// Memory made on device 1 while the thread has selected device 0 lives and dies on device 1, and
// the thread's selection stays as it was.
TEST_P(SimFailures, TheThreadsOwnDeviceIsNeverChanged) {
  if (Device::count(GetParam().kind) < 2) GTEST_SKIP() << "needs two devices";
  const driver::Table& table = device().context().table();
  const Device second = Device::at({GetParam().kind, 1});
  ASSERT_EQ(table.set_current(device().context().native()), driver::kSuccess);
  second.trim();
  const std::uint64_t on_first = device().memory_info().free;
  const std::uint64_t on_second = second.memory_info().free;
  {
    auto a = DeviceMemory<int>::zeros(second, 1 << 20);
    auto b = a;
    b.fill(1);
    EXPECT_EQ(b.to_vector().back(), 1);
    driver::Handle current = nullptr;
    ASSERT_EQ(table.get_current(&current), driver::kSuccess);
    EXPECT_EQ(current, device().context().native());
    EXPECT_EQ(device().memory_info().free, on_first);
    EXPECT_LT(second.memory_info().free, on_second);
  }
  second.trim();
  EXPECT_EQ(second.memory_info().free, on_second);
  driver::Handle current = nullptr;
  ASSERT_EQ(table.get_current(&current), driver::kSuccess);
  EXPECT_EQ(current, device().context().native());
}

}  // namespace
}  // namespace tl
