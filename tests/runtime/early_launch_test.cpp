// Launches that may begin before what is ahead of them in the stream has ended: which functions are
// launched so, and that what they read is there.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/context.h"
#include "runtime/driver/table.h"
#include "simgpu/control.h"
#include "support/on_every_device.h"
#include "tl/base/text.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/launch.h"
#include "tl/runtime/memory.h"

namespace tl {
namespace {

using Index = long long;
using Words = std::vector<std::uint32_t>;

// A table's members may be replaced; all are put back.
class ChangedTable {
 public:
  explicit ChangedTable(DeviceKind kind) : table_(driver::table_for_testing(kind)), saved_(table_) {
    real = saved_;
    calls_together = 0;
  }
  ~ChangedTable() { table_ = saved_; }
  ChangedTable(const ChangedTable&) = delete;
  ChangedTable& operator=(const ChangedTable&) = delete;
  driver::Table* operator->() { return &table_; }

  // For a driver that has no such launch.
  static driver::Status launch_together(driver::Handle function, driver::Dim3 grid,
                                        driver::Dim3 block, unsigned shared_bytes,
                                        driver::Handle stream, void** arguments) {
    ++calls_together;
    return real.launch(function, grid, block, shared_bytes, stream, arguments);
  }
  static inline int calls_together = 0;

 private:
  static inline driver::Table real;
  driver::Table& table_;
  driver::Table saved_;
};

class EarlyLaunch : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    if (device().is_cpu()) GTEST_SKIP() << "the CPU launches no kernels";
    const bool cuda = GetParam().kind == DeviceKind::Cuda;
    const std::string path(environment(cuda ? "TL_CUDA_DRIVER" : "TL_HIP_DRIVER"));
    if (path.find("libsim") != std::string::npos) sim_.emplace(path);
  }
  void TearDown() override {
    if (sim_) sim_->compiled_for(0);
  }

  const driver::Table& table() const { return device().context().table(); }
  bool can_begin_early() const {
    return table().launch_early != nullptr && device().properties().major >= 9;
  }
  std::uint64_t early_launches() const { return sim_->counters().early_launches; }
  std::uint64_t launches() const { return sim_->counters().launches; }

  static const Function& fill_of(ModuleStore& store) {
    const KernelId id = fill_kernel(4);
    return store.function(module_spec(id.module), id.index);
  }
  // One launch of `function`, a fill of words, that must do its work.
  void expect_filled(const Function& function, bool together = false) const {
    auto y = DeviceMemory<std::uint32_t>::zeros(device(), 1000);
    launch(function, device().stream(), {.grid = {4}, .block = {256}, .together = together}, out(y),
           std::uint32_t{7}, Index{1000});
    EXPECT_EQ(y.to_vector(), Words(1000, 7));
  }

  std::optional<simgpu::Control> sim_;
};
TL_ON_EVERY_DEVICE(EarlyLaunch);

TEST_P(EarlyLaunch, IsThereWhereTheDriverHasTheCall) {
  if (GetParam().kind != DeviceKind::Cuda) {
    EXPECT_EQ(table().launch_early, nullptr);
    return;
  }
  void* library = ::dlopen(table().library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(table().launch_early != nullptr, ::dlsym(library, "cuLaunchKernelEx") != nullptr);
  EXPECT_EQ(table().awaits_earlier != nullptr, table().launch_early != nullptr);
  ::dlclose(library);
}

TEST_P(EarlyLaunch, IsForOurKernelsOnDevicesThatCanWait) {
  EXPECT_EQ(fill_of(device().modules()).awaits_earlier(), can_begin_early());
  if (!sim_) return;
  const auto all = launches();
  const auto early = early_launches();
  expect_filled(fill_of(device().modules()));
  EXPECT_EQ(launches() - all, 1U);
  EXPECT_EQ(early_launches() - early, can_begin_early() ? 1U : 0U);
}

TEST_P(EarlyLaunch, IsNotForCodeThatTheDriverMadeOfOlderPtx) {
  if (!sim_) GTEST_SKIP() << "needs a driver that can be told what code is for";
  for (const int architecture : {75, 89, 90, 120}) {
    sim_->compiled_for(architecture);
    ModuleStore store(device().context());
    const Function& function = fill_of(store);
    const bool waits = can_begin_early() && architecture >= 90;
    EXPECT_EQ(function.awaits_earlier(), waits) << architecture;
    const auto early = early_launches();
    expect_filled(function);
    EXPECT_EQ(early_launches() - early, waits ? 1U : 0U) << architecture;
    device().synchronize();
  }
}

TEST_P(EarlyLaunch, IsNotForSourceOfTheCallersOwn) {
  const auto& compiler = driver::find_compiler(device().kind());
  if (compiler.table == nullptr) GTEST_SKIP() << compiler.reason;
  constexpr std::string_view kSource =
      "#include \"gpu.h\"\n"
      "GPU_KERNEL void fill_mine(Bits32* out, Bits32 value, Index count) {\n"
      "  for (Index i = global_thread(); i < count; i += grid_threads()) out[i] = value;\n"
      "}\n";
  const auto function = device().modules().compile("mine.cu", kSource, "fill_mine");
  EXPECT_FALSE(function->awaits_earlier());
  expect_filled(*function);
}

TEST_P(EarlyLaunch, IsNotForBlocksThatWaitForEachOther) {
  ChangedTable changed(GetParam().kind);
  changed->launch_together = ChangedTable::launch_together;
  const std::uint64_t early = sim_ ? early_launches() : 0;
  expect_filled(fill_of(device().modules()), true);
  EXPECT_EQ(ChangedTable::calls_together, 1);
  EXPECT_EQ(sim_ ? early_launches() : 0, early);
}

TEST_P(EarlyLaunch, OlderDriversLaunchAsEver) {
  ChangedTable changed(GetParam().kind);
  changed->launch_early = nullptr;
  changed->awaits_earlier = nullptr;
  ModuleStore store(device().context());
  EXPECT_FALSE(fill_of(store).awaits_earlier());
  expect_filled(fill_of(store));
  device().synchronize();
}

TEST_P(EarlyLaunch, AFailureIsNamedAlikeOnBothWays) {
  if (!sim_) GTEST_SKIP() << "needs a driver that can be told to fail";
  for (const int architecture : {75, 90}) {
    sim_->compiled_for(architecture);
    ModuleStore store(device().context());
    const Function& function = fill_of(store);
    sim_->fail("launch");
    test::expect_error(ErrorKind::DeviceLost, "launch of fill_4: " + GetParam().text(),
                       [&] { expect_filled(function); });
    sim_->reset();
    device().context().forget_loss_for_testing();
  }
}

// Each launch reads what the one before it wrote and overwrites what that one read, and nothing
// between them waits on the host. Blocks of the last launch of a round start while large ones end.
TEST_P(EarlyLaunch, AChainReadsWhatWasWrittenBefore) {
  // Much, and often, only where launches really begin early: an emulated device takes its time.
  const bool begins_early = can_begin_early() && !sim_;
  const Index count = begins_early ? 1 << 20 : 3000, rounds = begins_early || sim_ ? 100 : 5;
  const auto size = static_cast<std::size_t>(count);
  DeviceMemory<std::uint32_t> x(device(), size);
  DeviceMemory<std::uint32_t> y(device(), size);
  DeviceMemory<std::uint32_t> seen(device(), static_cast<std::size_t>(rounds) * size);
  const Stream& stream = device().stream();
  const KernelId copy_id = copy2d_kernel(4);
  const Function& fill = fill_of(device().modules());
  const Function& copy = device().modules().function(module_spec(copy_id.module), copy_id.index);
  const LaunchShape shape{.grid = grid_for(size, 256), .block = {256}};
  for (Index round = 0; round < rounds; ++round) {
    launch(fill, stream, shape, inout(x), static_cast<std::uint32_t>(round), count);
    launch(copy, stream, shape, in(x), inout(y), Index{1}, count, count, count);
    std::uint32_t* row = seen.mutable_data(stream) + round * count;
    launch(copy, stream, shape, in(y), row, Index{1}, count, count, count);
  }
  const Words got = seen.to_vector();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i / size) << i;
}

}  // namespace
}  // namespace tl
