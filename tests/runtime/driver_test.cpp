// The driver tables against real libraries: what is missing, what is there without a device.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/driver/library.h"
#include "runtime/driver/table.h"
#include "support/on_every_device.h"
#include "tl/base/text.h"

namespace tl {
namespace {

// Opening is done once per process, so each case opens the vendor's table directly, with the
// override set.
class EnvironmentOverride {
 public:
  EnvironmentOverride(const char* variable, const std::string& value)
      : variable_(variable), old_(environment(variable)) {
    ::setenv(variable, value.c_str(), 1);
  }
  ~EnvironmentOverride() {
    if (old_.empty()) {
      ::unsetenv(variable_);
    } else {
      ::setenv(variable_, old_.c_str(), 1);
    }
  }

 private:
  const char* variable_;
  std::string old_;
};

TEST(Driver, AMissingLibraryIsASentenceNotAnException) {
  const std::array<std::string, 1> names{"libno-such-driver.so.1"};
  const driver::Library library = driver::Library::open("TL_TEST_UNSET", names);
  EXPECT_FALSE(library);
  EXPECT_EQ(library.reason(), "libno-such-driver.so.1 was not found");
  EXPECT_EQ(library.symbol("anything"), nullptr);
}

TEST(Driver, AnOverrideThatIsNotThereNamesTheVariable) {
  const EnvironmentOverride set("TL_TEST_DRIVER", "/nowhere/libdriver.so");
  const std::array<std::string, 1> names{"libc.so.6"};
  const driver::Library library = driver::Library::open("TL_TEST_DRIVER", names);
  EXPECT_FALSE(library) << "an override must not fall back";
  EXPECT_EQ(library.reason(), "/nowhere/libdriver.so (named by TL_TEST_DRIVER) was not found");
}

TEST(Driver, AFileThatIsNoLibrarySaysWhatTheLoaderSaid) {
  const EnvironmentOverride set("TL_TEST_DRIVER", "/etc/hostname");
  const std::array<std::string, 1> names{"unused"};
  const driver::Library library = driver::Library::open("TL_TEST_DRIVER", names);
  EXPECT_FALSE(library);
  EXPECT_NE(library.reason().find("/etc/hostname"), std::string::npos) << library.reason();
}

TEST(Driver, ALibraryWithoutTheFunctionsIsTooOld) {
  if (Device::is_available(DeviceKind::Cuda) || Device::is_available(DeviceKind::Rocm)) {
    GTEST_SKIP() << "would replace the table in use";
  }
  {
    const EnvironmentOverride set("TL_CUDA_DRIVER", "libc.so.6");
    EXPECT_EQ(driver::open_cuda().reason,
              "no CUDA: libc.so.6 has no cuInit; the driver is too old");
  }
  const EnvironmentOverride set("TL_HIP_DRIVER", "libc.so.6");
  EXPECT_EQ(driver::open_hip().reason,
            "no ROCm: libc.so.6 has no hipRuntimeGetVersion; ROCm 5.2 or newer is needed");
}

// The vendor's library loads on a machine with no AMD device; every function the table needs must
// be in it, in each major version there is (Debian 12 has the fifth).
TEST(Driver, TheRealHipLibraryResolvesAndSaysNoDevice) {
  if (Device::is_available(DeviceKind::Rocm)) GTEST_SKIP() << "would replace the table in use";
  int seen = 0;
  for (const std::string file : {"libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"}) {
    if (::dlopen(file.c_str(), RTLD_NOW) == nullptr) continue;
    ++seen;
    const EnvironmentOverride set("TL_HIP_DRIVER", file);
    const driver::Found<driver::Table> found = driver::open_hip();
    EXPECT_EQ(found.table, nullptr);
    EXPECT_EQ(found.reason.find("no ROCm: " + file + " found no AMD device"), 0U) << found.reason;
  }
  if (seen == 0) GTEST_SKIP() << "no libamdhip64 is installed";
}

TEST(Driver, StickyErrorsMeanTheDeviceIsLost) {
  for (const int lost : {700, 702, 719}) EXPECT_TRUE(driver::means_lost(lost));
  for (const int fine : {0, 1, 2, 500, 600, 801}) EXPECT_FALSE(driver::means_lost(fine));
}

}  // namespace
}  // namespace tl
