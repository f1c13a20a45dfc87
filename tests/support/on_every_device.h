// Tests that run on every device present: the CPU always, and whatever GPUs the drivers report
// (real or simulated).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tl/base/error.h"
#include "tl/runtime/device.h"

namespace tl::test {

// The first device of each kind; a second GPU, where there is one, is for the tests of several
// devices.
inline std::vector<DeviceLocation> locations() {
  std::vector<DeviceLocation> out{{DeviceKind::Cpu, 0}};
  for (const DeviceKind kind : {DeviceKind::Cuda, DeviceKind::Rocm}) {
    if (Device::count(kind) > 0) out.push_back({kind, 0});
  }
  return out;
}

inline std::string location_name(const testing::TestParamInfo<DeviceLocation>& info) {
  return std::string(name(info.param.kind));
}

class OnEveryDevice : public testing::TestWithParam<DeviceLocation> {
 protected:
  Device device() const { return Device::at(GetParam()); }
};

// What `action` throws, with its kind and the text it must contain.
inline void expect_error(ErrorKind kind, const std::string& text,
                         const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(name(error.kind), name(kind)) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
        << "message: " << error.what() << "\nexpected to contain: " << text;
    return;
  } catch (const std::exception& error) {
    FAIL() << "not a tl::Error: " << error.what();
  }
  FAIL() << "nothing was thrown; expected: " << text;
}

}  // namespace tl::test

// Runs every test of a suite derived from OnEveryDevice on each device.
#define TL_ON_EVERY_DEVICE(Suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite, testing::ValuesIn(::tl::test::locations()), \
                           ::tl::test::location_name)
