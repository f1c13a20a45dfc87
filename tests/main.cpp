// The main of tests that use devices: says which devices are there before the tests run, so that a
// log shows what was tested and what could not be.
#include <gtest/gtest.h>

#include <cstdio>

#include "support/sim_guard.h"
#include "tl/runtime/device.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!testing::GTEST_FLAG(list_tests)) {
    for (const tl::Device& device : tl::Device::all()) {
      std::printf("device %s: %s (%s, %d lanes)\n", device.text().c_str(), device.name().c_str(),
                  device.architecture().c_str(), device.warp_width());
    }
    for (const tl::DeviceKind kind : {tl::DeviceKind::Cuda, tl::DeviceKind::Rocm}) {
      const tl::DriverInfo driver = tl::Device::driver(kind);
      if (!driver.reason.empty()) std::printf("%s\n", driver.reason.c_str());
    }
    std::fflush(stdout);
  }
  testing::UnitTest::GetInstance()->listeners().Append(new tl::test::SimGuard);  // owned by gtest
  return RUN_ALL_TESTS();
}
