// The module store, on every GPU there is (simulated ones in most runs).
#include "tl/runtime/module_store.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/context.h"
#include "runtime/driver/table.h"
#include "runtime/kernel_pack.h"
#include "runtime/pack_registry.h"
#include "runtime/scratch.h"
#include "tl/base/error.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/device.h"
#include "tl/runtime/launch.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kTestSlot = ModuleStore::kSlots - 1;

// Replaces the driver's load function for a scope: every load goes through `around`, which may call
// the real one.
using Load = std::function<driver::Status(driver::Handle*, const void*, std::string*)>;

class LoadHook {
 public:
  using Around =
      std::function<driver::Status(const Load& real, driver::Handle*, const void*, std::string*)>;
  LoadHook(DeviceKind kind, Around around) : table_(driver::table_for_testing(kind)) {
    around_ = std::move(around);
    real_ = table_.load_module;
    table_.load_module = [](driver::Handle* module, const void* image, std::string* log) {
      return around_(real_, module, image, log);
    };
  }
  ~LoadHook() { table_.load_module = real_; }
  LoadHook(const LoadHook&) = delete;
  LoadHook& operator=(const LoadHook&) = delete;

 private:
  driver::Table& table_;
  static inline Around around_;
  static inline driver::Status (*real_)(driver::Handle*, const void*, std::string*) = nullptr;
};

// Adds a pack that lives as long as the process.
void register_forever(const PackWriter& writer, const std::string& origin) {
  static auto* const kept = new std::vector<std::unique_ptr<std::vector<std::byte>>>;
  kept->push_back(std::make_unique<std::vector<std::byte>>(writer.finish()));
  register_pack(*kept->back(), origin);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

constexpr std::string_view kSetSource =
    "#include \"gpu.h\"\n"
    "GPU_KERNEL void set_seven(int* out, int count) {\n"
    "  await_earlier();\n"
    "  if (static_cast<int>(global_thread()) < count) out[global_thread()] = 7;\n"
    "}\n";

class ModuleStoreTest : public testing::TestWithParam<std::string> {
 protected:
  Context& context() const { return device_.context(); }
  DriverCalls calls() const { return device_.driver_calls(); }
  const std::string& architecture() const { return device_.architecture(); }

  bool can_compile() const { return driver::find_compiler(device_.kind()).table != nullptr; }

  // A module of one test: an image for this device with the given bytes, and perhaps a source.
  ModuleSpec test_module(const std::string& module_name, std::string_view image_architecture,
                         std::string_view image, std::string_view source = {}) {
    names_.push_back(std::make_unique<std::string>(module_name));
    PackWriter writer(1);
    writer.add_image(module_name, image_architecture, PackKind::Host, bytes_of(image));
    if (!source.empty()) writer.add_source(module_name + ".cu", source);
    register_forever(writer, "test pack of " + module_name);
    return {kTestSlot, *names_.back(), kSetSeven};
  }
  // A whole ELF file with nothing in it.
  static std::string empty_elf() { return empty_elf_with_a_section_table_at(0); }
  static std::string empty_elf_with_a_section_table_at(std::uint64_t offset) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_shoff = offset;
    header.e_shnum = offset == 0 ? 0 : 3;
    header.e_shentsize = sizeof(Elf64_Shdr);
    return {reinterpret_cast<const char*>(&header), sizeof header};
  }
  // A name no other test and no other device has used.
  static std::string fresh_name(const char* base) {
    static std::atomic<int> serial{0};
    return base + std::string("_") + std::to_string(serial++);
  }

  template <class Failure, class F>
  static Failure expect_failure(F&& f) {
    try {
      f();
    } catch (const Failure& failure) {
      return failure;
    }
    throw std::runtime_error("the failure did not happen");
  }

  static constexpr std::array<std::string_view, 1> kSetSeven{"set_seven"};
  const Device device_ = Device::parse(GetParam());
  // Compiled kernels of a test are seen by nobody else.
  const ScratchFolder cache_;
  const ScopedVariable cache_variable_{"TL_CACHE_DIR", cache_.file("cache")};

 private:
  std::vector<std::unique_ptr<std::string>> names_;
};

std::vector<std::string> gpus() {
  std::vector<std::string> all;
  for (const Device& device : Device::all()) {
    if (device.is_gpu()) all.push_back(device.text());
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Gpus, ModuleStoreTest, testing::ValuesIn(gpus()), [](const auto& gpu) {
  std::string text = gpu.param;
  for (char& c : text) c = c == ':' ? '_' : c;
  return text;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ModuleStoreTest);

TEST_P(ModuleStoreTest, AColdFunctionIsLoadedOnceHoweverManyAsk) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 5; ++round) {
    ModuleStore store(context());
    const auto before = calls();
    std::barrier start(kThreads);
    std::vector<const Function*> got(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        got[t] = &store.function(module_spec(ModuleId::Fill), fill_kernel(4).index);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(calls().module_loads - before.module_loads, 1u);
    for (const Function* function : got) EXPECT_EQ(function, got[0]);
    EXPECT_EQ(got[0]->name(), "fill_4");
  }
}

TEST_P(ModuleStoreTest, EveryKernelOfEveryModuleExists) {
  ModuleStore store(context());
  for (int m = 0; m < kModuleCount; ++m) {
    const ModuleSpec& spec = module_spec(static_cast<ModuleId>(m));
    for (std::uint32_t k = 0; k < spec.kernels.size(); ++k) {
      const Function& function = store.function(spec, k);
      EXPECT_NE(function.native(), nullptr);
      EXPECT_EQ(function.name(), spec.kernels[k]);
      EXPECT_EQ(&store.function(spec, k), &function);
    }
  }
}

TEST_P(ModuleStoreTest, OneModuleDoesNotWaitForAnother) {
  // The first load does not return before the second has: with a lock around loads it never would.
  std::mutex mutex;
  std::condition_variable changed;
  int started = 0;
  int finished = 0;
  bool in_time = true;
  const LoadHook hook(device_.kind(), [&](const Load& real, driver::Handle* module,
                                          const void* image, std::string* log) {
    std::unique_lock lock(mutex);
    const bool first = started++ == 0;
    changed.notify_all();
    if (first) in_time = changed.wait_for(lock, 60s, [&] { return finished > 0; });
    lock.unlock();
    const driver::Status status = real(module, image, log);
    lock.lock();
    ++finished;
    changed.notify_all();
    return status;
  });
  ModuleStore store(context());
  std::thread slow([&] { store.function(module_spec(ModuleId::Fill), 0); });
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 60s, [&] { return started > 0; }));
  }
  store.function(module_spec(ModuleId::Cast), 0);
  slow.join();
  EXPECT_TRUE(in_time);
}

TEST_P(ModuleStoreTest, AFunctionKeepsItsModuleWhenTheStoreIsGone) {
  const auto before = calls();
  std::shared_ptr<const Function> kept;
  {
    ModuleStore store(context());
    kept = store.shared_function(module_spec(ModuleId::Fill), fill_kernel(4).index);
    store.function(module_spec(ModuleId::Cast), 0);
    EXPECT_EQ(&store.function(module_spec(ModuleId::Fill), fill_kernel(4).index), kept.get());
  }
  EXPECT_EQ(calls().module_unloads - before.module_unloads, 1u) << "only CAST may go";

  DeviceMemory<std::uint32_t> memory(device_, 1000);
  launch(*kept, device_.stream(), {.grid = grid_for(1000, 256), .block = 256}, out(memory),
         std::uint32_t{42}, std::int64_t{1000});
  EXPECT_EQ(memory.to_vector(), std::vector<std::uint32_t>(1000, 42));

  device_.synchronize();
  kept.reset();
  EXPECT_EQ(calls().module_loads - before.module_loads, 2u);
  EXPECT_EQ(calls().module_unloads - before.module_unloads, 2u);
}

TEST_P(ModuleStoreTest, AMissingKernelIsNamedAndHarmsNoOther) {
  static constexpr std::array<std::string_view, 3> kNames{"fill_1", "no_such_kernel", "fill_2"};
  const ModuleSpec spec{kTestSlot, "fill", kNames};
  static_cast<void>(module_spec(ModuleId::Fill));
  ModuleStore store(context());
  for (int again = 0; again < 2; ++again) {
    const auto failure = expect_failure<MissingKernel>([&] { store.function(spec, 1); });
    EXPECT_EQ(failure.kind, ErrorKind::MissingKernel);
    EXPECT_EQ(failure.module, "fill");
    EXPECT_EQ(failure.kernel, "no_such_kernel");
    EXPECT_EQ(failure.device, device_.text());
    EXPECT_EQ(std::string(failure.what()),
              "module store: module fill has no kernel "
              "'no_such_kernel' for " +
                  device_.text() + " (" + architecture() + ")");
    EXPECT_EQ(store.function(spec, 0).name(), "fill_1");
    EXPECT_EQ(store.function(spec, 2).name(), "fill_2");
  }
}

TEST_P(ModuleStoreTest, AFailureIsRememberedAndTouchesNoOtherModule) {
  const ModuleSpec broken = test_module(fresh_name("broken"), architecture(), empty_elf());
  int attempts = 0;
  auto hook =
      std::make_unique<LoadHook>(device_.kind(), [&](const Load& /*real*/, auto... /*all*/) {
        ++attempts;
        return driver::Status{200};  // an image that is well formed and still of no use
      });
  ModuleStore store(context());
  const auto before = calls();
  const auto first = expect_failure<ModuleLoad>([&] { store.function(broken, 0); });
  EXPECT_EQ(attempts, 1);
  const auto second = expect_failure<ModuleLoad>([&] { store.function(broken, 0); });
  EXPECT_EQ(attempts, 1) << "the driver was asked again";
  EXPECT_STREQ(first.what(), second.what());
  EXPECT_EQ(second.kind, ErrorKind::ModuleLoad);
  EXPECT_EQ(second.module, broken.name);
  EXPECT_EQ(second.device, device_.text());
  EXPECT_EQ(second.architecture, architecture());
  EXPECT_EQ(second.embedded, std::vector<std::string>{architecture()});
  EXPECT_NE(std::string(first.what()).find("test pack of " + std::string(broken.name)),
            std::string::npos)
      << first.what();
  EXPECT_EQ(calls().module_loads, before.module_loads) << "a refused image is not a loaded one";
  hook.reset();
  ASSERT_NO_THROW(store.function(module_spec(ModuleId::Fill), 0));
}

TEST_P(ModuleStoreTest, WhatIsNoImageNeverReachesTheDriver) {
  const LoadHook hook(device_.kind(), [](const Load& /*real*/, auto... /*all*/) {
    ADD_FAILURE() << "the driver was given it";
    return driver::Status{200};
  });
  for (const std::string& bytes :
       {std::string("this is no kernel image at all"),
        std::string("\x7f"
                    "ELF"),
        empty_elf().substr(0, 40), empty_elf_with_a_section_table_at(1 << 20)}) {
    ModuleStore store(context());
    const ModuleSpec broken = test_module(fresh_name("garbage"), architecture(), bytes);
    const auto failure = expect_failure<ModuleLoad>([&] { store.function(broken, 0); });
    EXPECT_NE(std::string(failure.what()).find("not a kernel image"), std::string::npos)
        << failure.what();
  }
}

TEST_P(ModuleStoreTest, NoImageForTheArchitectureSaysWhichThereAre) {
  const ModuleSpec foreign = test_module(fresh_name("foreign"), "riscv_1", "an image");
  ModuleStore store(context());
  const auto failure = expect_failure<ModuleLoad>([&] { store.function(foreign, 0); });
  const std::string text = failure.what();
  EXPECT_EQ(
      text.find("module store: cannot load module " + std::string(foreign.name) + " on " +
                device_.text() + " (" + architecture() + "): no image fits; there is no source"),
      0u)
      << text;
  EXPECT_NE(text.find("images are built in for riscv_1"), std::string::npos) << text;
}

TEST_P(ModuleStoreTest, ADeviceOutOfMemoryMayBeAskedAgain) {
  int refusals = 2;
  const LoadHook hook(device_.kind(), [&](const Load& real, auto... all) {
    return refusals-- > 0 ? driver::kOutOfMemory : real(all...);
  });
  DeviceMemory<int>(device_, 1000)
      .data();  // something for the pool to keep, which is given up first
  ModuleStore store(context());
  const auto failure =
      expect_failure<OutOfMemory>([&] { store.function(module_spec(ModuleId::Fill), 0); });
  EXPECT_EQ(failure.device, device_.text());
  EXPECT_GT(failure.requested, 0u);
  refusals = 0;
  ASSERT_NO_THROW(store.function(module_spec(ModuleId::Fill), 0));
}

TEST_P(ModuleStoreTest, ASpecThatCannotBeIsRefused) {
  const auto refuse = [](ModuleStore& store, const ModuleSpec& spec, std::uint32_t index) {
    const auto failure = expect_failure<Error>([&] { store.function(spec, index); });
    EXPECT_EQ(failure.kind, ErrorKind::BadArgument) << failure.what();
  };
  ModuleStore store(context());
  const ModuleSpec& fill = module_spec(ModuleId::Fill);
  refuse(store, {ModuleStore::kSlots, "fill", fill.kernels}, 0);
  refuse(store, {kTestSlot, "fill", {}}, 0);
  refuse(store, {kTestSlot, "", fill.kernels}, 0);
  store.function(fill, 0);
  refuse(store, fill, static_cast<std::uint32_t>(fill.kernels.size()));
  refuse(store, {fill.slot, "cast", module_spec(ModuleId::Cast).kernels},
         0);                                         // the slot is another module's
  refuse(store, {fill.slot, "fill", kSetSeven}, 0);  // and has other kernels
  ASSERT_NO_THROW(store.function(fill, 0));
}

TEST_P(ModuleStoreTest, TellsWhatIsLoadedAndWhereItCameFrom) {
  ModuleStore store(context());
  EXPECT_TRUE(store.loaded().empty());
  store.function(module_spec(ModuleId::Fill), 0);
  const auto loaded = store.loaded();
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(loaded[0].name, "fill");
  EXPECT_GT(loaded[0].image_bytes, 1000u);
  EXPECT_TRUE(loaded[0].origin == ModuleOrigin::Pack || loaded[0].origin == ModuleOrigin::Embedded);
}

TEST_P(ModuleStoreTest, WhatTheDriverRefusesIsFollowedByTheNextChoice) {
  if (!can_compile()) GTEST_SKIP() << driver::find_compiler(device_.kind()).reason;
  // Refuses the best image; what is left is found by going on, down to the compiler.
  bool first = true;
  const LoadHook hook(device_.kind(), [&](const Load& real, driver::Handle* module,
                                          const void* image, std::string* log) {
    if (std::exchange(first, false)) {
      *log = "refused by the test";
      return driver::Status{209};
    }
    return real(module, image, log);
  });
  ModuleStore store(context());
  ASSERT_NO_THROW(store.function(module_spec(ModuleId::Fill), 0));
  EXPECT_FALSE(first);
  EXPECT_NE(store.loaded()[0].architecture, "");
}

TEST_P(ModuleStoreTest, WhenNothingWorksEverythingTriedIsTold) {
  const LoadHook hook(device_.kind(),
                      [&](const Load&, driver::Handle*, const void*, std::string* log) {
                        *log = "refused by the test";
                        return driver::Status{209};
                      });
  ModuleStore store(context());
  const auto failure =
      expect_failure<ModuleLoad>([&] { store.function(module_spec(ModuleId::Fill), 0); });
  const std::string text = failure.what();
  EXPECT_NE(text.find(architecture() + "): "), std::string::npos) << text;
  EXPECT_NE(text.find("refused by the test"), std::string::npos) << text;
  EXPECT_NE(text.find(can_compile() ? "the driver refused what " : "cannot compile: "),
            std::string::npos)
      << text;
}

TEST_P(ModuleStoreTest, WithoutImagesTheSourceIsCompiledAndKept) {
  if (!can_compile()) GTEST_SKIP() << driver::find_compiler(device_.kind()).reason;
  const ScopedVariable force("TL_FORCE_RTC", "1");
  const ModuleSpec& fill = module_spec(ModuleId::Fill);
  {
    ModuleStore store(context());
    const Function& function = store.function(fill, fill_kernel(2).index);
    EXPECT_EQ(store.loaded()[0].origin, ModuleOrigin::Compiled);
    DeviceMemory<std::uint16_t> memory(device_, 333);
    launch(function, device_.stream(), {.grid = grid_for(333, 256), .block = 256}, out(memory),
           std::uint16_t{5}, std::int64_t{333});
    EXPECT_EQ(memory.to_vector(), std::vector<std::uint16_t>(333, 5));
  }
  {
    ModuleStore store(context());
    for (std::uint32_t k = 0; k < fill.kernels.size(); ++k) store.function(fill, k);
    EXPECT_EQ(store.loaded()[0].origin, ModuleOrigin::Cache);
  }
  // A damaged entry is made again; the device never sees it.
  std::size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache_.file("cache"))) {
    ++entries;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-100, std::ios::end);
    file << "damage";
  }
  EXPECT_EQ(entries, 1u);
  ModuleStore store(context());
  store.function(fill, 0);
  EXPECT_EQ(store.loaded()[0].origin, ModuleOrigin::Compiled);
}

TEST_P(ModuleStoreTest, ACachedImageTheDriverRefusesIsCompiledAgain) {
  if (!can_compile()) GTEST_SKIP() << driver::find_compiler(device_.kind()).reason;
  ModuleStore store(context());
  store.compile("set.cu", kSetSource, "set_seven");
  int loads = 0;
  const LoadHook hook(device_.kind(), [&](const Load& real, auto... all) {
    return loads++ == 0 ? driver::Status{200} : real(all...);
  });
  ModuleStore other(context());
  ASSERT_NO_THROW(other.compile("set.cu", kSetSource, "set_seven"));
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(other.loaded()[0].origin, ModuleOrigin::Compiled);
}

TEST_P(ModuleStoreTest, ADamagedImageIsPassedOver) {
  if (!can_compile()) GTEST_SKIP() << driver::find_compiler(device_.kind()).reason;
  const std::string module_name = fresh_name("damaged");
  PackWriter writer(1);
  writer.add_image(module_name, architecture(), PackKind::Host, bytes_of("whatever it was"));
  writer.add_source(module_name + ".cu", kSetSource);
  static auto* const kept = new std::vector<std::unique_ptr<std::vector<std::byte>>>;
  kept->push_back(std::make_unique<std::vector<std::byte>>(writer.finish()));
  const KernelPack sound(*kept->back(), "sound");
  const PackEntry& entry = sound.entries()[0];
  (*kept->back())[entry.frame_offset + entry.frame_bytes / 2] ^= std::byte{0x55};
  register_pack(*kept->back(), "damaged pack");

  ModuleStore store(context());
  const ModuleSpec spec{kTestSlot, module_name, kSetSeven};
  ASSERT_NO_THROW(store.function(spec, 0));
  EXPECT_EQ(store.loaded()[0].origin, ModuleOrigin::Compiled);
}

TEST_P(ModuleStoreTest, ASourceOfTheCallersOwnIsCompiledOnce) {
  if (!can_compile()) GTEST_SKIP() << driver::find_compiler(device_.kind()).reason;
  const auto before = calls();
  std::shared_ptr<const Function> kept;
  {
    ModuleStore store(context());
    std::vector<std::shared_ptr<const Function>> got(4);
    std::vector<std::thread> threads;
    for (auto& function : got) {
      threads.emplace_back([&] { function = store.compile("set.cu", kSetSource, "set_seven"); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& function : got) EXPECT_EQ(function, got[0]);
    EXPECT_EQ(calls().module_loads - before.module_loads, 1u);
    kept = store.compile("another name.cu", kSetSource, "set_seven");
    EXPECT_EQ(kept, got[0]) << "the text counts, not what the caller calls it";
    // The same name with another text is another program.
    const std::string changed = std::string(kSetSource) + "// changed\n";
    EXPECT_NE(store.compile("set.cu", changed, "set_seven"), got[0]);
    EXPECT_EQ(store.loaded().size(), 2u);
  }
  DeviceMemory<int> memory(device_, 100);
  launch(*kept, device_.stream(), {.grid = grid_for(100, 256), .block = 256}, out(memory), 100);
  EXPECT_EQ(memory.to_vector(), std::vector<int>(100, 7));
  device_.synchronize();
  kept.reset();
  EXPECT_EQ(calls().module_unloads - before.module_unloads,
            calls().module_loads - before.module_loads);
}

TEST_P(ModuleStoreTest, ASourceThatDoesNotCompileGivesTheLog) {
  if (!can_compile()) GTEST_SKIP() << driver::find_compiler(device_.kind()).reason;
  constexpr std::string_view kBad =
      "#include \"gpu.h\"\nGPU_KERNEL void bad(int* out) { *out = undeclared_name; }\n";
  ModuleStore store(context());
  const auto first = expect_failure<CompileFailed>([&] { store.compile("bad.cu", kBad, "bad"); });
  EXPECT_EQ(first.kind, ErrorKind::CompileFailed);
  EXPECT_NE(first.log.find("undeclared_name"), std::string::npos) << first.log;
  EXPECT_EQ(
      std::string(first.what()).find("module store: cannot compile bad.cu for " + device_.text()),
      0u)
      << first.what();
  const auto second = expect_failure<CompileFailed>([&] { store.compile("bad.cu", kBad, "bad"); });
  EXPECT_STREQ(first.what(), second.what());
  EXPECT_THROW(store.compile("set.cu", kSetSource, "no_such"), MissingKernel);
  EXPECT_NO_THROW(store.compile("set.cu", kSetSource, "set_seven"));
}

TEST_P(ModuleStoreTest, ACacheDirectoryTheUserNamedMustWork) {
  if (!can_compile()) GTEST_SKIP() << driver::find_compiler(device_.kind()).reason;
  std::ofstream(cache_.file("plain")) << "a file, not a directory";
  ModuleStore store(context());
  {
    const ScopedVariable impossible("TL_CACHE_DIR", cache_.file("plain/cache"));
    const auto failure =
        expect_failure<Error>([&] { store.compile("set.cu", kSetSource, "set_seven"); });
    EXPECT_EQ(failure.kind, ErrorKind::BadFile);
    EXPECT_NE(std::string(failure.what()).find("plain/cache"), std::string::npos);
  }
  EXPECT_NO_THROW(store.compile("set.cu", kSetSource, "set_seven")) << "not remembered";
}

TEST(ModuleStoreOnCpu, SaysThatModulesAreForGpus) {
  ModuleStore& store = Device::cpu().modules();
  try {
    store.function(module_spec(ModuleId::Fill), 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Unsupported);
    EXPECT_STREQ(error.what(), "module store: kernel modules are for GPUs, not for the CPU");
  }
  EXPECT_THROW(store.compile("set.cu", kSetSource, "set_seven"), Error);
}

}  // namespace
}  // namespace tl
