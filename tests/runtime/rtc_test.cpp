// The real run-time compilers, where they are installed: they need no GPU to compile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/embedded.h"
#include "runtime/driver/architecture.h"
#include "runtime/driver/table.h"
#include "runtime/pack_registry.h"
#include "runtime/scratch.h"
#include "tl/kernels/modules.h"

namespace tl {
namespace {

using driver::CompilerTable;
using driver::Found;
using driver::Source;

// The tests may run with stand-ins named in the environment; here the real ones are wanted.
Found<CompilerTable> real_nvrtc() {
  const ScopedVariable library("TL_NVRTC", nullptr);
  const ScopedVariable driver("TL_CUDA_DRIVER", nullptr);
  return driver::open_nvrtc();
}

Found<CompilerTable> real_hiprtc() {
  const ScopedVariable library("TL_HIPRTC", nullptr);
  const ScopedVariable driver("TL_HIP_DRIVER", nullptr);
  return driver::open_hiprtc();
}

struct Compiled {
  bool good = false;
  std::vector<std::byte> image;
  std::string log;
};

// Compiles a module from nothing but the texts inside the library.
Compiled compile_module(const CompilerTable& compiler, const std::string& module,
                        std::string_view architecture) {
  kernels::install();
  const auto texts = PackRegistry::global().sources();
  Source program{};
  std::vector<Source> headers;
  for (const SourceText& text : texts) {
    if (text.name == module + ".cu") {
      program = {text.name, text.text};
    } else if (!text.name.ends_with(".cu")) {
      headers.push_back({text.name, text.text});
    }
  }
  Compiled out;
  out.good = compiler.compile(program, headers, architecture, &out.image, &out.log);
  return out;
}

Compiled compile_text(const CompilerTable& compiler, std::string_view text,
                      std::string_view architecture) {
  Compiled out;
  out.good = compiler.compile({"mine.cu", text}, {}, architecture, &out.image, &out.log);
  return out;
}

bool is_elf(const std::vector<std::byte>& image) {
  return image.size() > 64 && std::memcmp(image.data(), "\177ELF", 4) == 0;
}

bool contains(const std::vector<std::byte>& image, std::string_view text) {
  const auto bytes = std::as_bytes(std::span<const char>(text.data(), text.size()));
  return std::search(image.begin(), image.end(), bytes.begin(), bytes.end()) != image.end();
}

void expect_every_kernel(const std::vector<std::byte>& image, ModuleId module) {
  for (const std::string_view kernel : kernel_names(module)) {
    EXPECT_TRUE(contains(image, kernel)) << kernel;
  }
}

constexpr std::string_view kKernel =
    "extern \"C\" __attribute__((global)) void one(int* out) { *out = 1; }\n";
constexpr std::string_view kWrong =
    "extern \"C\" __attribute__((global)) void one(int* out) { *out = undeclared_name; }\n";

// Compiling takes seconds, and the compilers do not care which devices the program sees.
constexpr const char* kOnce = "tested once, in the run without a simulated GPU";

class Nvrtc : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("SIMGPU_WARP") != nullptr) GTEST_SKIP() << kOnce;
    found_ = real_nvrtc();
    if (found_.table == nullptr) GTEST_SKIP() << found_.reason;
  }
  Found<CompilerTable> found_;
};

class Hiprtc : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("SIMGPU_WARP") != nullptr) GTEST_SKIP() << kOnce;
    found_ = real_hiprtc();
    if (found_.table == nullptr) GTEST_SKIP() << found_.reason;
  }
  bool has_version(std::string_view major) const {
    return found_.table->version.starts_with(major);
  }

  Found<CompilerTable> found_;
};

TEST_F(Nvrtc, CompilesTheModulesInside) {
  for (const ModuleId module : {ModuleId::Fill, ModuleId::Cast}) {
    const Compiled out = compile_module(*found_.table, std::string(name(module)), "sm_90");
    ASSERT_TRUE(out.good) << out.log;
    EXPECT_TRUE(is_elf(out.image));
    expect_every_kernel(out.image, module);
  }
}

TEST_F(Nvrtc, ADeviceNewerThanTheCompilerGetsIntermediateCode) {
  EXPECT_EQ(found_.table->options("sm_80"), "--std=c++20 --gpu-architecture=sm_80");
  EXPECT_EQ(found_.table->options("sm_90"), "--std=c++20 --gpu-architecture=sm_90a");
  const std::string options = found_.table->options("sm_999");
  EXPECT_NE(options.find("--gpu-architecture=compute_"), std::string::npos) << options;
  const Compiled out = compile_text(*found_.table, kKernel, "sm_999");
  ASSERT_TRUE(out.good) << out.log;
  EXPECT_TRUE(contains(out.image, ".entry one"));
}

TEST_F(Nvrtc, RefusesWithTheReason) {
  const Compiled wrong = compile_text(*found_.table, kWrong, "sm_90");
  EXPECT_FALSE(wrong.good);
  EXPECT_NE(wrong.log.find("undeclared_name"), std::string::npos) << wrong.log;
  EXPECT_NE(wrong.log.find("mine.cu"), std::string::npos) << wrong.log;
  const Compiled unknown = compile_text(*found_.table, kKernel, "gfx90a");
  EXPECT_FALSE(unknown.good);
  EXPECT_FALSE(unknown.log.empty());
}

TEST_F(Hiprtc, CompilesTheModulesInside) {
  for (const ModuleId module : {ModuleId::Fill, ModuleId::Cast}) {
    for (const char* architecture : {"gfx90a", "gfx1030"}) {
      const Compiled out = compile_module(*found_.table, std::string(name(module)), architecture);
      ASSERT_TRUE(out.good) << architecture << "\n" << out.log;
      EXPECT_TRUE(is_elf(out.image));
      expect_every_kernel(out.image, module);
    }
  }
}

TEST_F(Hiprtc, RefusesWithTheReason) {
  const Compiled wrong = compile_text(*found_.table, kWrong, "gfx90a");
  EXPECT_FALSE(wrong.good);
  EXPECT_NE(wrong.log.find("undeclared_name"), std::string::npos) << wrong.log;
}

// Asked for one of these, the compilers of ROCm 5 and 6 would end this process.
TEST_F(Hiprtc, AnUnknownArchitectureIsAnAnswerNotTheEnd) {
  std::vector<const char*> unknown{"gfx9999", "gfx", "gfx90a:xnack+:nonsense"};
  if (has_version("5.")) unknown.insert(unknown.end(), {"gfx942", "gfx1100", "gfx1201"});
  for (const char* architecture : unknown) {
    const Compiled out = compile_text(*found_.table, kKernel, architecture);
    EXPECT_FALSE(out.good) << architecture;
    EXPECT_NE(out.log.find(architecture), std::string::npos) << out.log;
  }
}

TEST_F(Hiprtc, ThreadsMayCompileAtOnce) {
  std::vector<Compiled> results(4);
  std::vector<std::thread> threads;
  for (Compiled& result : results) {
    threads.emplace_back([&] { result = compile_text(*found_.table, kKernel, "gfx90a"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Compiled& result : results) EXPECT_TRUE(result.good) << result.log;
}

TEST(RuntimeCompiler, AMissingLibraryIsASentence) {
  {
    const ScopedVariable none("TL_NVRTC", "/nonexistent/libnvrtc.so");
    const auto found = driver::open_nvrtc();
    EXPECT_EQ(found.table, nullptr);
    EXPECT_EQ(found.reason, "no NVRTC: /nonexistent/libnvrtc.so (named by TL_NVRTC) was not found");
  }
  const ScopedVariable none("TL_HIPRTC", "libm.so.6");  // there, and something else
  const auto found = driver::open_hiprtc();
  EXPECT_EQ(found.table, nullptr);
  EXPECT_EQ(found.reason, "no hipRTC: libm.so.6 has no hiprtcCompileProgram");
}

TEST(Architecture, TheBestImageComesFirst) {
  using driver::suitability;
  // On sm_86: its own, then sm_80, then the newest PTX that is not newer.
  EXPECT_GT(suitability("sm_86", "sm_86"), suitability("sm_80", "sm_86"));
  EXPECT_GT(suitability("sm_80", "sm_86"), suitability("compute_86", "sm_86"));
  EXPECT_GT(suitability("compute_80", "sm_86"), suitability("compute_75", "sm_86"));
  EXPECT_GT(suitability("compute_75", "sm_86"), 0);
  EXPECT_GT(suitability("sm_100", "sm_103"), 0);
  EXPECT_GT(suitability("compute_120", "sm_121"), suitability("compute_75", "sm_121"));
  EXPECT_EQ(suitability("gfx90a", "gfx90a"), suitability("sim32", "sim32"));
}

TEST(Architecture, WhatCannotRunIsNotOffered) {
  using driver::suitability;
  EXPECT_EQ(suitability("sm_89", "sm_86"), 0);    // newer minor
  EXPECT_EQ(suitability("sm_75", "sm_86"), 0);    // older generation
  EXPECT_EQ(suitability("sm_100", "sm_120"), 0);  // 10.x and 12.x
  EXPECT_EQ(suitability("compute_90", "sm_86"), 0);
  EXPECT_EQ(suitability("sm_90a", "sm_90"), 0);
  EXPECT_EQ(suitability("compute_90a", "sm_90"), 0);
  EXPECT_EQ(suitability("gfx1100", "gfx1101"), 0);
  EXPECT_EQ(suitability("gfx90a", "gfx90"), 0);
  EXPECT_EQ(suitability("sim32", "sim64"), 0);
  EXPECT_EQ(suitability("compute_75", "gfx90a"), 0);
  EXPECT_EQ(suitability("", ""), 0);
  EXPECT_EQ(suitability("sm_", "sm_90"), 0);
  EXPECT_EQ(suitability("sm_99999999999999", "sm_90"), 0);
}

}  // namespace
}  // namespace tl
