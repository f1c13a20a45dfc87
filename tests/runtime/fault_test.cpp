// Bad indices that kernels report: thrown at the next wait, once, with the device still usable.
#include "tl/runtime/fault.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/on_every_device.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/launch.h"

namespace tl {
namespace {

using test::expect_error;
using Index = long long;

class Faults : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    if (device().is_cpu()) GTEST_SKIP() << "the CPU launches no kernels";
    device().synchronize();
  }
  // What a kernel does that meets a bad index: it writes both words.
  void report(const Stream& stream, std::string_view op, Index index, Index size) const {
    const Function& fill =
        device().modules().function(module_spec(ModuleId::Fill), fill_kernel(8).index);
    const LaunchShape one{.grid = {1}, .block = {256}};
    const auto what = std::uint64_t{fault_tag(op)} << 56 |
                      (static_cast<std::uint64_t>(index) & 0xffffffffffffffULL);
    Fault* word = device().fault_word();
    launch(fill, stream, one, &word->size, static_cast<std::uint64_t>(size), Index{1});
    launch(fill, stream, one, &word->what, what, Index{1});
  }
};
TL_ON_EVERY_DEVICE(Faults);

TEST_P(Faults, TheWordIsMadeOnceAndStartsClear) {
  Fault* word = device().fault_word();
  EXPECT_EQ(word, device().fault_word());
  EXPECT_EQ(word->what, 0U);
  device().synchronize();
}

TEST_P(Faults, EveryKindOfWaitReportsOnceAndTheDeviceGoesOn) {
  const std::string text =
      join("gather: index 7 is outside a dimension of size 5 (found on ", device(), ")");
  Stream stream = device().new_stream();
  auto memory = DeviceMemory<int>::zeros(device(), 100);
  const std::vector<int> values(100, 3);

  report(stream, "gather", 7, 5);
  expect_error(ErrorKind::InvalidIndex, text, [&] { stream.synchronize(); });
  stream.synchronize();

  report(stream, "gather", 7, 5);
  expect_error(ErrorKind::InvalidIndex, text, [&] { device().synchronize(); });
  device().synchronize();

  report(stream, "gather", 7, 5);
  const Event event = stream.record();
  expect_error(ErrorKind::InvalidIndex, text, [&] { event.synchronize(); });
  event.synchronize();

  report(device().stream(), "gather", 7, 5);
  expect_error(ErrorKind::InvalidIndex, text, [&] { memory.to_vector(); });
  EXPECT_EQ(memory.to_vector(), std::vector<int>(100, 0));

  report(device().stream(), "gather", 7, 5);
  expect_error(ErrorKind::InvalidIndex, text, [&] { memory.copy_from_host(values); });
  memory.copy_from_host(values);
  EXPECT_EQ(memory.to_vector(), values);

  report(stream, "gather", 7, 5);
  auto pending = memory.copy_to_host_async(HostBuffer<int>(device(), 100), stream);
  expect_error(ErrorKind::InvalidIndex, text, [&] { pending.wait(); });
  const HostBuffer<int> back = pending.wait();
  EXPECT_EQ(std::vector<int>(back.data(), back.data() + 100), values);
}

TEST_P(Faults, NegativeIndicesKeepTheirSign) {
  report(device().stream(), "scatter", -3, 10);
  expect_error(ErrorKind::InvalidIndex, "scatter: index -3 is outside a dimension of size 10",
               [&] { device().synchronize(); });
}

TEST_P(Faults, OfSeveralThreadsThatWaitOneGetsTheFault) {
  report(device().stream(), "gather", 7, 5);
  std::atomic<int> thrown{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        device().synchronize();
      } catch (const Error& error) {
        EXPECT_EQ(error.kind, ErrorKind::InvalidIndex);
        thrown.fetch_add(1);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(thrown.load(), 1);
}

TEST(FaultTags, AreTheSameForTheSameName) {
  const unsigned a = fault_tag("first op"), b = fault_tag("second op");
  EXPECT_NE(a, b);
  EXPECT_EQ(fault_tag("first op"), a);
  EXPECT_GE(a, 1U);
  EXPECT_LE(b, 255U);
}

}  // namespace
}  // namespace tl
