// The host's list of kernels and the kernel files say the same.
#include "tl/kernels/modules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace tl {
namespace {

// Names in a kernel file, found as the build finds them.
std::set<std::string> kernels_in(const std::filesystem::path& file) {
  std::set<std::string> names;
  std::ifstream text(file);
  EXPECT_TRUE(text.good()) << file;
  constexpr std::string_view kStart = "GPU_KERNEL void ";
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(kStart)) continue;
    names.insert(line.substr(kStart.size(), line.find('(') - kStart.size()));
  }
  return names;
}

TEST(Modules, HaveTheirOwnNamesAndSlots) {
  std::set<std::string_view> names;
  for (int m = 0; m < kModuleCount; ++m) {
    const auto id = static_cast<ModuleId>(m);
    EXPECT_TRUE(names.insert(name(id)).second);
    EXPECT_EQ(module_spec(id).slot, static_cast<std::uint32_t>(m));
    EXPECT_EQ(module_spec(id).name, name(id));
  }
  EXPECT_EQ(name(ModuleId::Affine), "affine");
  EXPECT_EQ(name(ModuleId::Unary), "unary");
}

TEST(Modules, EveryNameIsInTheKernelFileAndTheOtherWayRound) {
  const std::filesystem::path folder = TL_KERNEL_SOURCES;
  for (int m = 0; m < kModuleCount; ++m) {
    const auto id = static_cast<ModuleId>(m);
    const auto names = kernel_names(id);
    if (names.empty()) continue;
    const std::set<std::string> listed(names.begin(), names.end());
    EXPECT_EQ(listed.size(), names.size()) << "a name is there twice";
    EXPECT_EQ(listed, kernels_in(folder / (std::string(name(id)) + ".cu")));
  }
}

std::string_view kernel_name_of(KernelId id) { return kernel_names(id.module)[id.index]; }

TEST(Modules, IndicesLeadToTheRightNames) {
  for (const std::size_t size : {1u, 2u, 4u, 8u}) {
    const std::string end = "_" + std::to_string(size);
    EXPECT_EQ(kernel_name_of(fill_kernel(size)), "fill" + end);
    EXPECT_EQ(kernel_name_of(copy2d_kernel(size)), "copy2d" + end);
    EXPECT_EQ(kernel_name_of(const_set_kernel(size)), "const_set" + end);
    EXPECT_EQ(kernel_name_of(copy_strided_kernel(size)), "copy_strided" + end);
  }
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      std::ostringstream want;
      want << "cast_" << from << "_" << to;
      EXPECT_EQ(kernel_name_of(cast_kernel(from, to)), want.str());
    }
  }
}

}  // namespace
}  // namespace tl
