// Modules and kernels: loading, launching, and what GPU threads can do together.
#include <algorithm>
#include <numeric>

#include "driver_under_test.h"

namespace simgpu_test {
namespace {

class Modules : public OnSimGpu {};
class Launches : public OnSimGpu {};
class Kernels : public OnSimGpu {};

const auto kEveryAbi = testing::Values("cuda", "hip", "hip5");
INSTANTIATE_TEST_SUITE_P(Abi, Modules, kEveryAbi);
INSTANTIATE_TEST_SUITE_P(Abi, Launches, kEveryAbi);
INSTANTIATE_TEST_SUITE_P(Abi, Kernels, kEveryAbi);

TEST_P(Modules, BadImagesAreRefused) {
  Driver& d = driver();
  void* out = nullptr;
  const char garbage[256] = "this is no module";
  EXPECT_EQ(d.module_load(&out, garbage), kInvalidImage);
  const std::string other = kernel_image(warp_width() == 32 ? 64 : 32);
  EXPECT_EQ(d.module_load(&out, other.data()), kNoBinary);
  std::string foreign = kernel_image(warp_width());
  foreign[18] = static_cast<char>(190);  // e_machine of a CUDA binary
  foreign[19] = 0;
  EXPECT_EQ(d.module_load(&out, foreign.data()), kNoBinary);
  EXPECT_EQ(control().counters().module_loads, 0u);
}

TEST_P(Modules, UnknownFunctionsAreNotFound) {
  void* out = nullptr;
  EXPECT_EQ(driver().module_function(&out, module(), "no_such_kernel"), kNotFound);
}

TEST_P(Modules, EachLoadIsAnInstanceOfItsOwn) {
  Driver& d = driver();
  const std::string image = kernel_image(warp_width());
  void* other = nullptr;
  ASSERT_EQ(d.module_load(&other, image.data()), kOk);
  void* out = device_memory(4);
  void* parameters[] = {&out};
  void* bump = nullptr;
  d.module_function(&bump, other, "bump_variable");
  for (std::uint32_t expected : {2u, 3u}) {
    d.launch(bump, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    EXPECT_EQ(download<std::uint32_t>(out, 1)[0], expected);
  }
  EXPECT_EQ(launch("bump_variable", 1, 1, 0, nullptr, out), kOk);
  EXPECT_EQ(download<std::uint32_t>(out, 1)[0], 2u) << "its own variable";
  EXPECT_EQ(d.module_unload(other), kOk);
}

TEST_P(Modules, GlobalsAreDeviceMemory) {
  void* address = nullptr;
  std::size_t bytes = 0;
  ASSERT_EQ(driver().module_global(&address, &bytes, module(), "selftest_variable"), kOk);
  EXPECT_EQ(bytes, 16u);
  EXPECT_EQ(download<std::uint32_t>(address, 4), (std::vector<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(driver().fill32(address, 10, 1, nullptr), kOk);
  void* out = device_memory(4);
  launch("bump_variable", 1, 1, 0, nullptr, out);
  EXPECT_EQ(download<std::uint32_t>(out, 1)[0], 11u);
  EXPECT_EQ(driver().module_global(&address, &bytes, module(), "nothing"), kNotFound);
  EXPECT_EQ(driver().free(address), kInvalidValue);
  expected_bad_calls = 1;
}

TEST_P(Modules, UnloadRunsWhatIsQueuedAndNoMore) {
  Driver& d = driver();
  const std::string image = kernel_image(warp_width());
  void* loaded = nullptr;
  void* add = nullptr;
  ASSERT_EQ(d.module_load(&loaded, image.data()), kOk);
  d.module_function(&add, loaded, "add_one");
  void* memory = upload(std::vector<std::uint32_t>{5});
  unsigned count = 1;
  void* parameters[] = {&memory, &count};
  EXPECT_EQ(d.launch(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), kOk);
  EXPECT_EQ(d.module_unload(loaded), kOk);
  EXPECT_EQ(download<std::uint32_t>(memory, 1)[0], 6u);
  EXPECT_EQ(d.launch(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), kInvalidHandle);
  EXPECT_EQ(d.module_unload(loaded), kInvalidHandle);
  expected_bad_calls = 2;
}

TEST_P(Launches, ArgumentsAreTakenDuringTheCall) {
  void* memory = upload(std::vector<std::uint32_t>(100, 1));
  unsigned count = 50;
  void* pointer = memory;
  void* parameters[] = {&pointer, &count};
  void* stream = new_stream();
  driver().launch(function("add_one"), 1, 1, 1, 100, 1, 1, 0, stream, parameters, nullptr);
  count = 0;
  pointer = nullptr;
  const auto values = download<std::uint32_t>(memory, 100, stream);
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0u), 150u);
}

struct Shape {
  std::int64_t rows, cols;
  unsigned char flag;
};

TEST_P(Launches, ArgumentsOfEverySize) {
  void* out = device_memory(40);
  const std::vector<std::uint64_t> expected{3, 4, 5, 6078, 9};
  EXPECT_EQ(launch("many_arguments", 2, 40, 0, nullptr, out, char{3}, 4.0, short{5}, Shape{6, 7, 8},
                   9.0f),
            kOk);
  EXPECT_EQ(download<std::uint64_t>(out, 5), expected);

  // The same in one buffer.
  struct {
    void* out;
    char a;
    double b;
    short c;
    Shape shape;
    float d;
  } packed{out, 13, 14, 15, {6, 7, 8}, 19};
  std::size_t bytes = sizeof packed;
  void* extra[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &bytes,
                   reinterpret_cast<void*>(driver().extra_end())};
  EXPECT_EQ(
      driver().launch(function("many_arguments"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
      kOk);
  EXPECT_EQ(download<std::uint64_t>(out, 5), (std::vector<std::uint64_t>{13, 14, 15, 6078, 19}));
  bytes = 16;
  EXPECT_EQ(
      driver().launch(function("many_arguments"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
      kInvalidValue);
  EXPECT_EQ(
      driver().launch(function("many_arguments"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
      kInvalidValue);
  expected_bad_calls = 2;
}

TEST_P(Launches, ShapesAreChecked) {
  Driver& d = driver();
  void* kernel = function("no_arguments");
  const auto shape = [&](unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned shared = 0) {
    return d.launch(kernel, gx, gy, 1, bx, by, 1, shared, nullptr, nullptr, nullptr);
  };
  const int too_many = d.cuda ? kInvalidValue : 9;
  EXPECT_EQ(shape(0, 1, 1, 1), kInvalidValue);
  EXPECT_EQ(shape(1, 1, 1, 0), kInvalidValue);
  EXPECT_EQ(shape(1, 1, 1025, 1), too_many);
  EXPECT_EQ(shape(1, 1, 64, 32), too_many);
  EXPECT_EQ(shape(1, 1, 1, 1, 200 << 10), kInvalidValue);
  expected_bad_calls = 5;
  if (d.cuda) {
    EXPECT_EQ(shape(1, 65536, 1, 1), kInvalidValue);
    EXPECT_EQ(shape(1, 1, 1, 1, 64 << 10), kInvalidValue) << "before it was asked for";
    EXPECT_EQ(d.function_set(kernel, 8, 64 << 10), kOk);
    EXPECT_EQ(shape(1, 1, 1, 1, 64 << 10), kOk);
    int value = 0;
    EXPECT_EQ(d.function_get(&value, 8, kernel), kOk);
    EXPECT_EQ(value, 64 << 10);
    expected_bad_calls += 2;
  } else {
    EXPECT_EQ(shape(0x1000'0000, 1, 16, 1), kInvalidValue) << "2^32 threads in one dimension";
    expected_bad_calls += 1;
  }
  EXPECT_EQ(shape(1, 1, 32, 32), kOk);
}

TEST_P(Launches, CoordinatesAreRight) {
  const unsigned warp = warp_width();
  void* out = device_memory(2 * 3 * 2 * 70 * 8 * 4);
  void* parameters[] = {&out};
  EXPECT_EQ(
      driver().launch(function("coordinates"), 2, 3, 2, 7, 5, 2, 0, nullptr, parameters, nullptr),
      kOk);
  const auto words = download<std::uint32_t>(out, 2 * 3 * 2 * 70 * 8);
  for (unsigned block = 0; block < 12; ++block) {
    for (unsigned thread = 0; thread < 70; ++thread) {
      const std::uint32_t expected[8] = {thread % 7,    thread / 7 % 5, thread / 35,
                                         block % 2,     block / 2 % 3,  block / 6,
                                         thread % warp, thread / warp};
      const std::uint32_t* seen = &words[(block * 70 + thread) * 8];
      ASSERT_TRUE(std::equal(seen, seen + 8, expected)) << "block " << block << ", " << thread;
    }
  }
}

TEST_P(Kernels, BlocksReduceWithShufflesAndSharedMemory) {
  for (const unsigned threads : {warp_width(), 256u, 1024u}) {
    const unsigned blocks = 5;
    std::vector<std::uint32_t> values(blocks * threads);
    std::iota(values.begin(), values.end(), 1u);
    void* in = upload(values);
    void* out = device_memory(blocks * 8);
    ASSERT_EQ(launch("block_sum", blocks, threads, 0, nullptr, in, out), kOk);
    const auto sums = download<std::uint64_t>(out, blocks);
    for (unsigned b = 0; b < blocks; ++b) {
      const auto begin = values.begin() + b * threads;
      EXPECT_EQ(sums[b], std::accumulate(begin, begin + threads, std::uint64_t{0}));
    }
  }
}

TEST_P(Kernels, DynamicSharedMemoryBelongsToTheBlock) {
  std::vector<std::uint32_t> values(3 * 200);
  std::iota(values.begin(), values.end(), 0u);
  void* data = upload(values);
  EXPECT_EQ(launch("reverse_block", 3, 200, 800, nullptr, data), kOk);
  for (unsigned b = 0; b < 3; ++b) {
    std::reverse(values.begin() + b * 200, values.begin() + (b + 1) * 200);
  }
  EXPECT_EQ(download<std::uint32_t>(data, 600), values);
}

TEST_P(Kernels, SharedMemoryStartsAsPoison) {
  void* out = device_memory(4 * 2 * 4);
  EXPECT_EQ(launch("read_shared", 4, 32, 64, nullptr, out), kOk);
  EXPECT_EQ(download<std::uint32_t>(out, 8), std::vector<std::uint32_t>(8, 0xCDCDCDCD));
  EXPECT_EQ(launch("read_shared", 1, 32, 0, nullptr, out), kOk);
  EXPECT_EQ(download<std::uint32_t>(out, 2)[1], 0u) << "none asked for, none given";
}

TEST_P(Kernels, ShuffleReadsAnyLiveLane) {
  const unsigned warp = warp_width();
  std::vector<std::uint32_t> source(warp);
  for (unsigned i = 0; i < warp; ++i) source[i] = (i * 7 + 3) % warp;
  source[0] = warp;      // outside
  source[2] = 0xFFFFFF;  // far outside
  void* from = upload(source);
  void* out = device_memory(warp * 8);
  EXPECT_EQ(launch("shuffle_values", 1, warp, 0, nullptr, out, from, 0u), kOk);
  auto values = download<std::uint64_t>(out, warp);
  for (unsigned i = 0; i < warp; ++i) {
    EXPECT_EQ(values[i], 1000 + (source[i] < warp ? source[i] : i)) << "lane " << i;
  }
  // The odd lanes have returned: reading one of them gives the reader's own value.
  EXPECT_EQ(launch("shuffle_values", 1, warp, 0, nullptr, out, from, 1u), kOk);
  values = download<std::uint64_t>(out, warp);
  for (unsigned i = 0; i < warp; i += 2) {
    const bool live = source[i] < warp && source[i] % 2 == 0;
    EXPECT_EQ(values[i], 1000 + (live ? source[i] : i)) << "lane " << i;
  }
}

TEST_P(Kernels, ShuffleInAPartialWarp) {
  const unsigned warp = warp_width();
  std::vector<std::uint32_t> source(warp, warp - 1);
  void* from = upload(source);
  void* out = device_memory(warp * 8);
  EXPECT_EQ(launch("shuffle_values", 1, warp - 3, 0, nullptr, out, from, 0u), kOk);
  EXPECT_EQ(download<std::uint64_t>(out, 2)[1], 1001u) << "lane warp - 1 does not exist";
}

TEST_P(Kernels, BallotCountsLiveLanes) {
  const unsigned warp = warp_width();
  void* out = device_memory(2 * warp * 8);
  std::uint64_t expected = 0;
  for (unsigned i = 0; i < warp; i += 3) expected |= std::uint64_t{1} << i;
  EXPECT_EQ(launch("ballot_lanes", 1, 2 * warp, 0, nullptr, out, 3u, 1000u), kOk);
  EXPECT_EQ(download<std::uint64_t>(out, 2 * warp), std::vector<std::uint64_t>(2 * warp, expected));
  EXPECT_EQ(launch("ballot_lanes", 1, warp, 0, nullptr, out, 3u, 6u), kOk);
  EXPECT_EQ(download<std::uint64_t>(out, 1)[0], 0b1001001u);
}

TEST_P(Kernels, ThreadsThatReturnedDoNotHoldABarrier) {
  void* out = device_memory(100 * 4);
  EXPECT_EQ(launch("staggered_exit", 1, 100, 0, nullptr, out), kOk);
  std::vector<std::uint32_t> expected(100);
  std::iota(expected.begin(), expected.end(), 1u);
  EXPECT_EQ(download<std::uint32_t>(out, 100), expected);
}

TEST_P(Kernels, DeadlockIsALaunchFailure) {
  void* out = device_memory(64 * 4);
  testing::internal::CaptureStderr();
  EXPECT_EQ(launch("mixed_wait", 1, 64, 0, nullptr, out), kOk);
  EXPECT_EQ(driver().stream_sync(nullptr), kLaunchFailed);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("mixed_wait is stuck in block (0, 0, 0)"), std::string::npos) << said;
  EXPECT_NE(said.find("32 wait at a barrier, 32 in a shuffle"), std::string::npos) << said;
  EXPECT_EQ(driver().stream_sync(nullptr), kLaunchFailed) << "such an error stays";
  control().reset();
  // Nothing of the stuck block is left in the way.
  void* data = upload(std::vector<std::uint32_t>(64, 1));
  EXPECT_EQ(launch("reverse_block", 1, 64, 256, nullptr, data), kOk);
  EXPECT_EQ(download<std::uint32_t>(data, 64), std::vector<std::uint32_t>(64, 1));
}

TEST_P(Kernels, SomeThreadsMeetWhileOthersServeThem) {
  const unsigned workers = 2 * warp_width();
  void* out = device_memory(workers * 4);
  EXPECT_EQ(launch("hand_over", 2, workers + warp_width(), 16, nullptr, out, workers), kOk);
  EXPECT_EQ(download<std::uint32_t>(out, workers), std::vector<std::uint32_t>(workers, 285));
}

TEST_P(Kernels, WaitingForNobodyIsALaunchFailure) {
  void* out = upload(std::vector<std::uint32_t>{0});
  testing::internal::CaptureStderr();
  EXPECT_EQ(launch("wait_for_nobody", 1, 2, 0, nullptr, out), kOk);
  EXPECT_EQ(driver().stream_sync(nullptr), kLaunchFailed);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("2 for another thread"), std::string::npos) << said;
  control().reset();
}

TEST_P(Kernels, StacksAreDeepEnough) {
  void* out = device_memory(64 * 4);
  EXPECT_EQ(launch("deep_stack", 1, 64, 0, nullptr, out, 100u), kOk);
  EXPECT_EQ(download<std::uint32_t>(out, 64), std::vector<std::uint32_t>(64, 100));
}

TEST_P(Kernels, AtomicsAddUpAcrossStreams) {
  void* counter = upload(std::vector<std::uint32_t>{0});
  std::vector<void*> streams{new_stream(), new_stream(), new_stream()};
  for (void* stream : streams) {
    EXPECT_EQ(launch("count_up", 10, 100, 0, stream, counter), kOk);
  }
  for (void* stream : streams) EXPECT_EQ(driver().stream_sync(stream), kOk);
  EXPECT_EQ(download<std::uint32_t>(counter, 1)[0], 3000u);
  EXPECT_EQ(control().counters().launches, 3u);
}

TEST_P(Launches, EarlyOnesAreForCodeThatCanWait) {
  if (!driver().cuda) GTEST_SKIP() << "CUDA's alone";
  struct Attribute {
    int id, pad, value, rest[15];
  } attribute{6, 0, 1, {}};
  struct {
    unsigned grid[3], block[3], shared;
    void* stream;
    Attribute* attributes;
    unsigned count;
  } config{{10, 1, 1}, {100, 1, 1}, 0, new_stream(), &attribute, 1};
  const auto launch_ex =
      driver().find<int (*)(const void*, void*, void**, void**)>("cuLaunchKernelEx");
  void* counter = upload(std::vector<std::uint32_t>{0});
  void* parameters[] = {&counter};
  EXPECT_EQ(launch_ex(&config, function("count_up"), parameters, nullptr), kOk);
  attribute.value = 0;
  EXPECT_EQ(launch_ex(&config, function("count_up"), parameters, nullptr), kOk);
  EXPECT_EQ(driver().stream_sync(config.stream), kOk);
  EXPECT_EQ(download<std::uint32_t>(counter, 1)[0], 2000u);
  EXPECT_EQ(control().counters().launches, 2u);
  EXPECT_EQ(control().counters().early_launches, 1u);

  attribute.id = 4;  // another attribute
  EXPECT_EQ(launch_ex(&config, function("count_up"), parameters, nullptr), kInvalidValue);
  attribute = {6, 0, 1, {}};
  control().compiled_for(75);
  EXPECT_EQ(launch_ex(&config, function("bump_variable"), parameters, nullptr), kInvalidValue);
  expected_bad_calls = 2;
}

TEST_P(Kernels, StreamsReduceAtTheSameTime) {
  // In threads mode several blocks run at once, each with its own static shared memory.
  const unsigned blocks = 8;
  std::vector<std::uint32_t> values(blocks * 128, 3);
  void* in = upload(values);
  std::vector<void*> outs, streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(new_stream());
    outs.push_back(device_memory(blocks * 8));
    EXPECT_EQ(launch("block_sum", blocks, 128, 0, streams.back(), in, outs.back()), kOk);
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(download<std::uint64_t>(outs[i], blocks, streams[i]),
              std::vector<std::uint64_t>(blocks, 384));
  }
}

}  // namespace
}  // namespace simgpu_test
