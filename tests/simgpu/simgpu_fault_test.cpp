// Faults on demand, guard zones, lost devices, and what the device queries answer.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "driver_under_test.h"
#include "sanitizer.h"

namespace simgpu_test {
namespace {

class Faults : public OnSimGpu {};
class Guards : public OnSimGpu {};

const auto kEveryAbi = testing::Values("cuda", "hip", "hip5");
INSTANTIATE_TEST_SUITE_P(Abi, Faults, kEveryAbi);
INSTANTIATE_TEST_SUITE_P(Abi, Guards, kEveryAbi);

TEST_P(Faults, NthAllocationFailsOnce) {
  control().fail("alloc", 2);
  void* memory = nullptr;
  device_memory(8);
  EXPECT_EQ(driver().alloc(&memory, 8), kOutOfMemory);
  device_memory(8);
  EXPECT_THROW(control().fail("nonsense"), std::invalid_argument);
}

TEST_P(Faults, EveryKindFails) {
  Driver& d = driver();
  void* stream = new_stream();
  void* event = new_event();
  void* memory = device_memory(8);
  void* kernel = function("no_arguments");
  void* out = nullptr;
  int host = 0;
  const std::string image = kernel_image(warp_width());
  control().fail("host_alloc");
  EXPECT_EQ(d.host_alloc(&out, 8, 0), kOutOfMemory);
  control().fail("launch");
  EXPECT_EQ(d.launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), kLaunchFailed);
  control().fail("module_load");
  EXPECT_EQ(d.module_load(&out, image.data()), kInvalidImage);
  control().fail("copy");
  EXPECT_EQ(d.htod(memory, &host, 4, stream), kLaunchFailed);
  control().fail("fill");
  EXPECT_EQ(d.fill8(memory, 0, 4, stream), kLaunchFailed);
  control().fail("stream_create");
  EXPECT_EQ(d.stream_create(&out, 1), kOutOfMemory);
  control().fail("event_create");
  EXPECT_EQ(d.event_create(&out, 0), kOutOfMemory);
  control().fail("event_record");
  EXPECT_EQ(d.event_record(event, stream), kLaunchFailed);
  control().fail("sync");
  EXPECT_EQ(d.stream_sync(stream), kLaunchFailed);
  EXPECT_EQ(d.stream_sync(stream), kOk) << "a planned failure happens once";
  EXPECT_EQ(control().counters().launches, 0u);
}

TEST_P(Faults, LostDeviceFailsUntilReset) {
  Driver& d = driver();
  void* stream = new_stream();
  void* event = new_event();
  void* memory = device_memory(8);
  d.fill32(memory, 1, 2, stream);
  d.stream_sync(stream);
  if (lazy_mode()) d.fill32(memory, 2, 2, stream);
  d.event_record(event, stream);
  control().lose_device(0);
  void* out = nullptr;
  EXPECT_EQ(d.alloc(&out, 8), kLaunchFailed);
  EXPECT_EQ(d.stream_sync(stream), kLaunchFailed);
  EXPECT_EQ(d.event_query(event), kLaunchFailed);
  EXPECT_EQ(d.free(memory), kLaunchFailed);
  d.use(1);
  EXPECT_EQ(d.alloc(&out, 8), kOk) << "the other device is well";
  EXPECT_EQ(d.free(out), kOk);
  EXPECT_EQ(d.event_query(event), kLaunchFailed);
  d.use(0);
  control().reset();
  EXPECT_EQ(control().pending(0), 0);
  EXPECT_EQ(download<std::uint32_t>(memory, 2, stream)[1], 1u) << "queued work was dropped";
}

TEST_P(Faults, CopyFromFreedPinnedMemoryIsFound) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  Driver& d = driver();
  void* stream = new_stream();
  void* memory = device_memory(8);
  void* pinned = nullptr;
  d.host_alloc(&pinned, 8, 0);
  std::memset(pinned, 0, 8);
  d.htod(memory, pinned, 8, stream);
  d.host_free(pinned);
  EXPECT_EQ(d.stream_sync(stream), kIllegalAddress);
  control().reset();
}

TEST_P(Guards, WritesOutsideABlockAreFound) {
  auto* memory = static_cast<std::uint8_t*>(device_memory(100));
  EXPECT_EQ(launch("write_at", 1, 1, 0, nullptr, memory, std::int64_t{99}), kOk);
  driver().stream_sync(nullptr);
  EXPECT_EQ(control().check(), 0);
  EXPECT_EQ(launch("write_outside", 1, 1, 0, nullptr, memory, std::int64_t{100}), kOk);
  EXPECT_EQ(launch("write_outside", 1, 1, 0, nullptr, memory, std::int64_t{-1}), kOk);
  driver().stream_sync(nullptr);
  EXPECT_EQ(control().check(), 2);
  EXPECT_EQ(control().check(), 2);
  expected_guard_hits = 2;  // counted once each, though they are seen again at free
}

TEST_P(Guards, PinnedMemoryIsGuardedToo) {
  void* pinned = nullptr;
  driver().host_alloc(&pinned, 100, 0);
  EXPECT_EQ(launch("write_outside", 1, 1, 0, nullptr, pinned, std::int64_t{100}), kOk);
  driver().stream_sync(nullptr);
  driver().host_free(pinned);
  expected_guard_hits = 1;
}

#ifdef SIMGPU_ASAN
TEST_P(Guards, AddressSanitizerStopsAKernelThatLeavesItsBlock) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  auto* memory = static_cast<std::uint8_t*>(device_memory(100));
  module();
  const auto run = [&] {
    launch("write_at", 1, 1, 0, nullptr, memory, std::int64_t{100});
    driver().stream_sync(nullptr);
  };
  EXPECT_DEATH(run(), "use-after-poison");
}
#endif

#ifdef SIMGPU_TSAN
// What ThreadSanitizer says goes to stderr and into the exit status of a process of its own.
constexpr int kTsanFound = 66;

// A stream that begins only when it is waited for has seen all that its host did before: there is
// nothing to find then. On a busy machine that may be so, unless it is given time.
void let_streams_begin() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

TEST_P(Faults, ThreadSanitizerSeesAHostBufferWrittenTooEarly) {
  if (lazy_mode() || !driver().cuda) GTEST_SKIP() << "threads mode, one ABI is enough";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [&](bool wait) {
    Driver& d = driver();
    void* stream = new_stream();
    void* memory = device_memory(1 << 16);
    void* pinned = nullptr;
    d.host_alloc(&pinned, 1 << 16, 0);
    d.htod(memory, pinned, 1 << 16, stream);
    if (wait) d.stream_sync(stream);
    std::memset(pinned, 1, 1 << 16);
    let_streams_begin();
    d.stream_sync(stream);
    std::exit(0);
  };
  EXPECT_EXIT(run(false), testing::ExitedWithCode(kTsanFound), "data race");
  EXPECT_EXIT(run(true), testing::ExitedWithCode(0), "");
}

TEST_P(Faults, ThreadSanitizerSeesStreamsThatShareMemoryUnordered) {
  if (lazy_mode() || !driver().cuda) GTEST_SKIP() << "threads mode, one ABI is enough";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [&](bool order) {
    Driver& d = driver();
    void* first = new_stream();
    void* second = new_stream();
    void* event = new_event();
    void* memory = device_memory(1 << 16);
    d.fill8(memory, 1, 1 << 16, first);
    d.event_record(event, first);
    if (order) d.stream_wait(second, event, 0);
    launch("add_one", 4, 64, 0, second, memory, 256u);
    let_streams_begin();
    d.stream_sync(first);
    d.stream_sync(second);
    std::exit(0);
  };
  EXPECT_EXIT(run(false), testing::ExitedWithCode(kTsanFound), "data race");
  EXPECT_EXIT(run(true), testing::ExitedWithCode(0), "");
}
#endif

TEST_P(Guards, ProtectedMemoryIsOutOfTheHostsReach) {
  const char* protect = std::getenv("SIMGPU_PROTECT");
  if (protect == nullptr || *protect != '1') GTEST_SKIP() << "needs SIMGPU_PROTECT=1";
  auto* memory = static_cast<volatile std::uint8_t*>(device_memory(100));
  EXPECT_DEATH(memory[50] = 1, "");
}

TEST_P(Guards, FreedMemoryIsOutOfReach) {
  if (!lazy_mode()) GTEST_SKIP() << "lazy mode only";
  void* memory = nullptr;
  driver().alloc(&memory, 100);
  driver().free(memory);
  module();
  const auto run = [&] {
    launch("write_at", 1, 1, 0, nullptr, memory, std::int64_t{0});
    driver().stream_sync(nullptr);
  };
  EXPECT_DEATH(run(), "");
}

TEST(DeviceQueries, CudaAnswersAsADriver) {
  Driver& d = Driver::named("cuda");
  int value = 0;
  EXPECT_EQ(d.find<int (*)(int*)>("cuDriverGetVersion")(&value), kOk);
  EXPECT_EQ(value, 13000);
  EXPECT_EQ(d.find<int (*)(int*)>("cuDeviceGetCount")(&value), kOk);
  EXPECT_EQ(value, 2);
  const auto attribute = d.find<int (*)(int*, int, int)>("cuDeviceGetAttribute");
  attribute(&value, 10, 0);
  EXPECT_EQ(value, static_cast<int>(warp_width()));
  attribute(&value, 75, 0);
  EXPECT_EQ(value, warp_width() == 64 ? 96 : 93);
  attribute(&value, 76, 1);
  EXPECT_EQ(value, warp_width() == 64 ? 4 : 2);
  EXPECT_EQ(attribute(&value, 10, 2), kInvalidDevice);
  char name[64];
  EXPECT_EQ(d.find<int (*)(char*, int, int)>("cuDeviceGetName")(name, 64, 0), kOk);
  EXPECT_EQ(std::string(name), "Simulated GPU, " + std::to_string(warp_width()) + " lanes");
  const char* text = nullptr;
  EXPECT_EQ(d.find<int (*)(int, const char**)>("cuGetErrorName")(719, &text), kOk);
  EXPECT_STREQ(text, "CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_EQ(d.find<int (*)(int*, int, int)>("cuDeviceCanAccessPeer")(&value, 0, 1), kOk);
  EXPECT_EQ(value, 1);
}

TEST(DeviceQueries, CudaWantsAContext) {
  Driver& d = Driver::named("cuda");
  const auto set_current = d.find<int (*)(void*)>("cuCtxSetCurrent");
  ASSERT_EQ(set_current(nullptr), kOk);
  const auto before = d.control.counters().bad_calls;
  void* out = nullptr;
  int host = 0;
  EXPECT_EQ(d.alloc(&out, 8), kInvalidContext);
  EXPECT_EQ(d.stream_create(&out, 1), kInvalidContext);
  EXPECT_EQ(d.event_create(&out, 0), kInvalidContext);
  EXPECT_EQ(d.module_load(&out, &host), kInvalidContext);
  EXPECT_EQ(d.device_sync(), kInvalidContext);
  EXPECT_EQ(set_current(&host), kInvalidContext);
  EXPECT_EQ(d.control.counters().bad_calls - before, 6u);
  void* context = &host;
  EXPECT_EQ(d.find<int (*)(void**)>("cuCtxGetCurrent")(&context), kOk);
  EXPECT_EQ(context, nullptr);
}

TEST(DeviceQueries, HipPropertiesHaveBothLayouts) {
  const std::string arch = "sim" + std::to_string(warp_width()) + ":sramecc+:xnack-";
  for (const char* which : {"hip", "hip5"}) {
    Driver& d = Driver::named(which);
    std::vector<char> old_layout(792 + 16, '!');
    EXPECT_EQ(d.find<int (*)(void*, int)>("hipGetDeviceProperties")(old_layout.data(), 0), kOk);
    EXPECT_STREQ(old_layout.data() + 396, arch.c_str());
    EXPECT_EQ(old_layout[792], '!') << "nothing written behind the struct";
    EXPECT_EQ(old_layout[791], 0);
  }
  std::vector<char> layout(1472 + 16, '!');
  const auto properties =
      Driver::named("hip").find<int (*)(void*, int)>("hipGetDevicePropertiesR0600");
  EXPECT_EQ(properties(layout.data(), 1), kOk);
  EXPECT_STREQ(layout.data() + 1160, arch.c_str());
  EXPECT_EQ(layout[1472], '!');
  EXPECT_EQ(layout[1471], 0);
  int warp = 0;
  std::memcpy(&warp, layout.data() + 308, sizeof warp);
  EXPECT_EQ(warp, static_cast<int>(warp_width()));
  EXPECT_EQ(Driver::named("hip5").find<void*>("hipGetDevicePropertiesR0600"), nullptr);
}

TEST(DeviceQueries, HipVersionsAndLastError) {
  const char* rocm = std::getenv("SIMGPU_ROCM");
  const bool seven = rocm != nullptr && rocm[0] == '7';
  int version = 0;
  Driver& d = Driver::named("hip");
  d.find<int (*)(int*)>("hipRuntimeGetVersion")(&version);
  EXPECT_EQ(version, seven ? 70253211 : 60443484);
  Driver::named("hip5").find<int (*)(int*)>("hipDriverGetVersion")(&version);
  EXPECT_EQ(version, 50221153);

  const auto last_error = d.find<int (*)()>("hipGetLastError");
  last_error();
  EXPECT_EQ(d.use(99), kInvalidDevice);
  EXPECT_EQ(d.use(0), kOk);
  EXPECT_EQ(last_error(), seven ? kInvalidDevice : kOk);
  EXPECT_EQ(last_error(), kOk);
  EXPECT_STREQ(d.find<const char* (*)(int)>("hipGetErrorName")(2), "hipErrorOutOfMemory");
}

TEST(DeviceQueries, HipAnswersRequestsForNothing) {
  Driver& d = Driver::named("hip");
  void* memory = &d;
  EXPECT_EQ(d.alloc(&memory, 0), kOk);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(d.free(nullptr), kOk);
}

}  // namespace
}  // namespace simgpu_test
