#include "tl/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace tl {
namespace {

TEST(Error, MessageIsWhereThenTheParts) {
  const Error error(ErrorKind::BadArgument, "softmax", "axis ", 3, " is outside shape (2, ", 4U,
                    ")");
  EXPECT_STREQ(error.what(), "softmax: axis 3 is outside shape (2, 4)");
  EXPECT_EQ(error.kind, ErrorKind::BadArgument);
}

TEST(Error, EveryKindHasItsOwnName) {
  std::set<std::string_view> names;
  for (int k = 0; k <= static_cast<int>(ErrorKind::CompileFailed); ++k) {
    const std::string_view text = name(static_cast<ErrorKind>(k));
    EXPECT_NE(text, "unknown") << k;
    EXPECT_TRUE(names.insert(text).second) << text;
  }
}

TEST(Error, CatchingTheBaseKeepsTheKind) {
  try {
    throw SizeMismatch("copy_from", 8, 7);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::SizeMismatch);
    EXPECT_STREQ(error.what(), "copy_from: expected 8 elements, got 7");
  }
  static_assert(std::is_base_of_v<std::runtime_error, Error>);
}

TEST(Error, OutOfMemoryShowsAllItsNumbers) {
  const OutOfMemory error("allocate", "cuda:0", std::uint64_t{2} << 30, std::uint64_t{1} << 30,
                          std::uint64_t{8} << 30, std::uint64_t{512} << 20);
  EXPECT_EQ(error.kind, ErrorKind::OutOfMemory);
  EXPECT_EQ(error.requested, std::uint64_t{2} << 30);
  EXPECT_EQ(error.free, std::uint64_t{1} << 30);
  EXPECT_EQ(error.total, std::uint64_t{8} << 30);
  EXPECT_EQ(error.pooled, std::uint64_t{512} << 20);
  EXPECT_EQ(error.device, "cuda:0");
  EXPECT_STREQ(error.what(),
               "allocate: cuda:0 has no room for 2.00 GiB: 1.00 GiB free of 8.00 GiB, 512 MiB kept "
               "in the pool");
}

TEST(Error, OutOfMemorySaysWhoHoldsIt) {
  const OutOfMemory error("allocate", "cpu", 1, 2, 3, 4, "weights 7 B");
  const std::string text = error.what();
  EXPECT_TRUE(text.ends_with("; held by weights 7 B")) << text;
}

TEST(Error, NoSuchDeviceCountsWhatThereIs) {
  EXPECT_STREQ(NoSuchDevice("open", "cuda", 0, 0).what(),
               "open: there is no cuda:0, this machine has no cuda device");
  EXPECT_STREQ(NoSuchDevice("open", "rocm", 3, 1).what(),
               "open: there is no rocm:3, this machine has 1 rocm device");
  EXPECT_STREQ(NoSuchDevice("open", "rocm", 3, 2).what(),
               "open: there is no rocm:3, this machine has 2 rocm devices");
}

TEST(Error, MissingKernelNamesAllFour) {
  const MissingKernel error("fill", "fill_q7", "rocm:1", "gfx942");
  const std::string text = error.what();
  for (const char* part : {"fill", "fill_q7", "rocm:1", "gfx942"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Error, ModuleLoadListsTheImagesThereAre) {
  const ModuleLoad some("cast", "cuda:0", "sm_75", {"sm_80", "sm_90"}, "no image fits");
  EXPECT_NE(std::string(some.what()).find("sm_80, sm_90"), std::string::npos) << some.what();
  const ModuleLoad none("cast", "cuda:0", "sm_75", {}, "no image fits");
  EXPECT_NE(std::string(none.what()).find("no architecture"), std::string::npos) << none.what();
}

TEST(Error, CompileFailedKeepsTheLog) {
  const CompileFailed error("compile", "the source has errors", "line 3: oops");
  EXPECT_EQ(error.log, "line 3: oops");
  EXPECT_STREQ(error.what(), "compile: the source has errors:\nline 3: oops");
}

TEST(CheckedMultiply, MultipliesWhatFits) {
  EXPECT_EQ(checked_multiply("x", 0, 5), 0U);
  EXPECT_EQ(checked_multiply("x", std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1),
            0xFFFFFFFF00000000U);
}

TEST(CheckedMultiply, OverflowNamesBothFactors) {
  try {
    checked_multiply("DeviceMemory", std::numeric_limits<std::uint64_t>::max(), 2);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Overflow);
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("DeviceMemory: 18446744073709551615 x 2")) << text;
  }
}

}  // namespace
}  // namespace tl
