#include "tl/runtime/location.h"

#include <gtest/gtest.h>

#include <sstream>
#include <unordered_set>

#include "support/on_every_device.h"

namespace tl {
namespace {

using test::expect_error;

TEST(Location, ParsesWhatItPrints) {
  for (const char* text : {"cpu", "cuda:0", "cuda:7", "rocm:0", "rocm:15"}) {
    EXPECT_EQ(DeviceLocation::parse(text).text(), text);
  }
}

TEST(Location, GpuWithoutNumberIsTheFirst) {
  EXPECT_EQ(DeviceLocation::parse("cuda"), (DeviceLocation{DeviceKind::Cuda, 0}));
  EXPECT_EQ(DeviceLocation::parse("rocm"), (DeviceLocation{DeviceKind::Rocm, 0}));
}

TEST(Location, RejectsEverythingElseByName) {
  for (const char* text : {"", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda0",
                           "gpu", "hip:0", "cuda:99999999999", "cuda: 1", "cuda:+1"}) {
    expect_error(ErrorKind::BadArgument, std::string("'") + text + "'",
                 [&] { DeviceLocation::parse(text); });
  }
}

TEST(Location, ComparesAndHashesByValue) {
  const DeviceLocation cpu{};
  const DeviceLocation cuda0{DeviceKind::Cuda, 0};
  const DeviceLocation cuda1{DeviceKind::Cuda, 1};
  EXPECT_NE(cpu, cuda0);
  EXPECT_LT(cuda0, cuda1);
  const std::unordered_set<DeviceLocation> set{cpu, cuda0, cuda1, cuda0};
  EXPECT_EQ(set.size(), 3U);
  std::ostringstream out;
  out << cuda1;
  EXPECT_EQ(out.str(), "cuda:1");
}

}  // namespace
}  // namespace tl
