#include "tl/runtime/device.h"

#include <gtest/gtest.h>

#include <sstream>
#include <unordered_set>

#include "support/on_every_device.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

using test::expect_error;

class Devices : public test::OnEveryDevice {};
TL_ON_EVERY_DEVICE(Devices);

TEST_P(Devices, KnowThemselves) {
  const Device d = device();
  EXPECT_EQ(d.location(), GetParam());
  EXPECT_FALSE(d.name().empty());
  EXPECT_FALSE(d.architecture().empty());
  EXPECT_EQ(d.architecture().find(':'), std::string::npos) << d.architecture();
  EXPECT_GT(d.properties().total_memory, 0U);
  EXPECT_GT(d.properties().multiprocessors, 0);
  const MemoryInfo info = d.memory_info();
  EXPECT_GT(info.free, 0U);
  EXPECT_LE(info.free, info.total);
  std::ostringstream out;
  out << d;
  EXPECT_EQ(out.str(), GetParam().text());
  if (d.is_gpu()) {
    EXPECT_TRUE(d.warp_width() == 32 || d.warp_width() == 64) << d.warp_width();
    EXPECT_GE(d.properties().max_threads_per_block, 256);
    EXPECT_FALSE(d.properties().pci.empty());
  }
}

TEST_P(Devices, CopiesAndRepeatedLookupsAreTheSameDevice) {
  const Device a = device();
  const Device b = a;  // NOLINT(performance-unnecessary-copy-initialization)
  const Device c = Device::parse(GetParam().text());
  EXPECT_TRUE(a.same_device(b));
  EXPECT_TRUE(a.same_device(c));
  EXPECT_EQ(a, c);
  EXPECT_EQ(std::hash<Device>{}(a), std::hash<Device>{}(c));
}

TEST_P(Devices, AHandleWithItsOwnStreamIsAnotherDeviceAtTheSamePlace) {
  const Device a = device();
  if (a.is_cpu()) GTEST_SKIP() << "the CPU has one order of work";
  const Device b = a.is_cuda() ? Device::cuda_with_stream(0) : Device::rocm_with_stream(0);
  EXPECT_EQ(a.location(), b.location());
  EXPECT_FALSE(a.same_device(b));
  EXPECT_FALSE(a.stream() == b.stream());
  EXPECT_NE(a.id(), b.id());
  // Memory of one, read through the other: same place, so it is a copy ordered by events.
  const auto x = DeviceMemory<int>::from_host(a, std::vector<int>{1, 2, 3});
  DeviceMemory<int> y(b, 3);
  y.copy_from_device(x);
  EXPECT_EQ(y.to_vector(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(y.device(), b);
}

TEST_P(Devices, SeedsAreKeptPerHandle) {
  const Device d = device();
  EXPECT_EQ(d.current_seed(), Device::kDefaultSeed);
  d.set_seed(42);
  EXPECT_EQ(device().current_seed(), 42U);
  d.set_seed(Device::kDefaultSeed);
}

TEST_P(Devices, SynchronizeReturns) { EXPECT_NO_THROW(device().synchronize()); }

TEST(Device, TheCpuIsAlwaysThere) {
  EXPECT_TRUE(Device::is_available(DeviceKind::Cpu));
  EXPECT_EQ(Device::count(DeviceKind::Cpu), 1);
  EXPECT_TRUE(Device::cpu().is_cpu());
  EXPECT_EQ(Device::all().front(), Device::cpu());
  EXPECT_TRUE(Device::cpu().supports_bf16());
}

TEST(Device, AMissingDriverIsOneSentence) {
  for (const DeviceKind kind : {DeviceKind::Cuda, DeviceKind::Rocm}) {
    if (Device::is_available(kind)) continue;
    const DriverInfo info = Device::driver(kind);
    EXPECT_EQ(info.device_count, 0);
    const std::string brand = kind == DeviceKind::Cuda ? "no CUDA: " : "no ROCm: ";
    EXPECT_EQ(info.reason.find(brand), 0U) << info.reason;
    EXPECT_EQ(info.reason.find('\n'), std::string::npos);
    expect_error(ErrorKind::DriverMissing, info.reason, [&] { Device::at({kind, 0}); });
    EXPECT_TRUE(
        (kind == DeviceKind::Cuda ? Device::cuda_if_available() : Device::rocm_if_available())
            .is_cpu());
  }
}

TEST(Device, AnIndexOutsideTheRangeNamesBoth) {
  expect_error(ErrorKind::NoSuchDevice, "there is no cpu:1",
               [] { Device::at({DeviceKind::Cpu, 1}); });
  for (const DeviceKind kind : {DeviceKind::Cuda, DeviceKind::Rocm}) {
    const int count = Device::count(kind);
    if (count == 0) continue;
    try {
      Device::at({kind, count});
      FAIL() << "device " << count << " of " << count << " was opened";
    } catch (const NoSuchDevice& error) {
      EXPECT_EQ(error.index, count);
      EXPECT_EQ(error.count, count);
    }
    EXPECT_THROW(Device::at({kind, -1}), NoSuchDevice);
  }
}

TEST(Device, AutoPicksAGpuWhenThereIsOne) {
  const Device best = Device::parse("auto");
  const bool gpu = Device::is_available(DeviceKind::Cuda) || Device::is_available(DeviceKind::Rocm);
  EXPECT_EQ(best.is_gpu(), gpu);
}

}  // namespace
}  // namespace tl
