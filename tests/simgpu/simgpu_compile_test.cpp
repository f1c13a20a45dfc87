// The run-time compilers: source in, a module that loads and runs out.
#include "driver_under_test.h"

namespace simgpu_test {
namespace {

// Which compiler goes with which driver, and its words.
struct Pair {
  const char* driver;
  const char* library;
  const char* prefix;
  const char* get_size;
  const char* get_code;
  const char* arch;
  int unknown_arch;
};

class Compiler : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    library_ = dlopen(GetParam().library, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }

  template <class F>
  F find(const std::string& name) {
    void* symbol = dlsym(library_, (GetParam().prefix + name).c_str());
    EXPECT_NE(symbol, nullptr) << name;
    return reinterpret_cast<F>(symbol);
  }

  int compile(const std::string& source, std::vector<const char*> options) {
    const std::string contract = read_file(SIMGPU_GPU_HOST_H);
    const char* headers[] = {contract.c_str(), "#define BONUS 7\n"};
    const char* names[] = {"gpu_host.h", "deeper/bonus.h"};
    void* program = nullptr;
    EXPECT_EQ((find<int (*)(void**, const char*, const char*, int, const char* const*,
                            const char* const*)>("CreateProgram")(&program, source.c_str(),
                                                                  "made_up.cu", 2, headers, names)),
              0);
    const int result = find<int (*)(void*, int, const char* const*)>("CompileProgram")(
        program, static_cast<int>(options.size()), options.data());
    std::size_t bytes = 0;
    find<int (*)(void*, std::size_t*)>("GetProgramLogSize")(program, &bytes);
    log_.assign(bytes, '\0');
    find<int (*)(void*, char*)>("GetProgramLog")(program, log_.data());
    log_.pop_back();  // the size counts the zero
    const auto get_size = find<int (*)(void*, std::size_t*)>(GetParam().get_size);
    if (result == 0) {
      EXPECT_EQ(get_size(program, &bytes), 0);
      image_.assign(bytes, '\0');
      EXPECT_EQ(find<int (*)(void*, char*)>(GetParam().get_code)(program, image_.data()), 0);
    } else {
      EXPECT_NE(get_size(program, &bytes), 0);
    }
    EXPECT_EQ(find<int (*)(void**)>("DestroyProgram")(&program), 0);
    EXPECT_EQ(program, nullptr);
    return result;
  }

  std::string arch_option(unsigned warp) {
    return std::string("--gpu-architecture=") + GetParam().arch + std::to_string(warp);
  }

  void* library_ = nullptr;
  std::string log_, image_;
};

INSTANTIATE_TEST_SUITE_P(
    Abi, Compiler,
    testing::Values(Pair{"cuda", SIMGPU_NVRTC, "nvrtc", "GetCUBINSize", "GetCUBIN", "sm_9", 5},
                    Pair{"hip", SIMGPU_HIPRTC, "hiprtc", "GetCodeSize", "GetCode", "sim", 6},
                    Pair{"hip5", SIMGPU_HIP5, "hiprtc", "GetCodeSize", "GetCode", "sim", 6}),
    [](const auto& test) { return std::string(test.param.driver); });

constexpr const char* kSource = R"(
#include "gpu_host.h"
#include "deeper/bonus.h"
#define GPU_KERNEL extern "C"
static const gpu_host::Api* api;
extern "C" { extern const unsigned gpu_host_warp; const unsigned gpu_host_warp = GPU_HOST_WARP; }
extern "C" void gpu_host_bind(const gpu_host::Api* given) { api = given; }
// A template with static shared memory: two modules must not share it.
template <class T> T through_shared(T value) {
  static thread_local T room[64];
  room[api->self()->lane] = value;
  api->barrier();
  return room[api->self()->lane ^ 1];
}
// GPU_KERNEL void only_in_a_comment(int);
GPU_KERNEL void scale(unsigned* data, unsigned by) {
  const unsigned i = api->self()->thread[0];
  data[i] = through_shared(i) * by + BONUS + MORE;
}
GPU_KERNEL void
  other_one (unsigned* data) { data[0] = GPU_HOST_WARP; }
)";

TEST_P(Compiler, CompilesWhatTheDriverRuns) {
  const std::string arch = arch_option(warp_width());
  ASSERT_EQ(compile(kSource, {arch.c_str(), "--std=c++20", "-DMORE=100"}), 0) << log_;
  Driver& d = Driver::named(GetParam().driver);
  ASSERT_EQ(d.use(0), kOk);
  d.control.reset();
  void *module = nullptr, *scale = nullptr, *other = nullptr, *memory = nullptr;
  ASSERT_EQ(d.module_load(&module, image_.data()), kOk);
  ASSERT_EQ(d.module_function(&scale, module, "scale"), kOk);
  ASSERT_EQ(d.module_function(&other, module, "other_one"), kOk);
  ASSERT_EQ(d.alloc(&memory, 16), kOk);
  unsigned by = 10;
  void* parameters[] = {&memory, &by};
  ASSERT_EQ(d.launch(scale, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr), kOk);
  std::vector<unsigned> values(4);
  EXPECT_EQ(d.dtoh(values.data(), memory, 16, nullptr), kOk);
  EXPECT_EQ(values, (std::vector<unsigned>{117, 107, 137, 127}));
  ASSERT_EQ(d.launch(other, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), kOk);
  EXPECT_EQ(d.dtoh(values.data(), memory, 16, nullptr), kOk);
  EXPECT_EQ(values[0], warp_width());
  EXPECT_EQ(d.free(memory), kOk);
  EXPECT_EQ(d.module_unload(module), kOk);
  EXPECT_EQ(d.control.counters().bad_calls, 0u);
}

TEST_P(Compiler, TheArchitectureChoosesTheWarp) {
  const unsigned other = warp_width() == 32 ? 64 : 32;
  const std::string arch = arch_option(other) + (GetParam().arch[1] == 'i' ? ":sramecc+" : "");
  ASSERT_EQ(compile(kSource, {arch.c_str(), "-D", "MORE=1"}), 0) << log_;
  Driver& d = Driver::named(GetParam().driver);
  ASSERT_EQ(d.use(0), kOk);
  void* module = nullptr;
  EXPECT_EQ(d.module_load(&module, image_.data()), kNoBinary);
}

TEST_P(Compiler, ErrorsComeBackInTheLog) {
  const std::string arch = arch_option(32);
  EXPECT_EQ(compile("#include \"gpu_host.h\"\n\nint wrong = nonsense;\n", {arch.c_str()}), 6);
  EXPECT_NE(log_.find("made_up.cu:3:"), std::string::npos) << log_;
  EXPECT_NE(log_.find("nonsense"), std::string::npos) << log_;
}

TEST_P(Compiler, UnknownArchitecturesAndOptionsAreRefused) {
  EXPECT_EQ(compile(kSource, {"--gpu-architecture=sm_90"}), GetParam().unknown_arch);
  EXPECT_NE(log_.find("sm_90"), std::string::npos) << log_;
  EXPECT_EQ(compile(kSource, {}), GetParam().unknown_arch);
  const std::string arch = arch_option(32);
  EXPECT_EQ(compile(kSource, {arch.c_str(), "--no-such-option"}), 5);
}

TEST_P(Compiler, NamesItsVersionAndErrors) {
  int major = 0, minor = -1;
  EXPECT_EQ((find<int (*)(int*, int*)>("Version")(&major, &minor)), 0);
  EXPECT_GT(major, 0);
  const std::string text = find<const char* (*)(int)>("GetErrorString")(6);
  EXPECT_NE(text.find("RTC_ERROR_COMPILATION"), std::string::npos);
}

}  // namespace
}  // namespace simgpu_test
