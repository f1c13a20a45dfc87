// Finding each ABI's functions, and what all tests do before and after.
#include "driver_under_test.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>

namespace simgpu_test {
namespace {

std::string path_of(const std::string& which) {
  if (which == "cuda") return SIMGPU_CUDA;
  return which == "hip" ? SIMGPU_HIP : SIMGPU_HIP5;
}

}  // namespace

Driver::Driver(const std::string& which)
    : cuda(which == "cuda"),
      library(dlopen(path_of(which).c_str(), RTLD_NOW | RTLD_LOCAL)),
      control(path_of(which)) {
  const auto bind = [this](auto& function, const char* cuda_name, const char* hip_name) {
    const char* name = cuda ? cuda_name : hip_name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("not exported: ") + name);
  };
  bind(mem_info, "cuMemGetInfo_v2", "hipMemGetInfo");
  bind(alloc, "cuMemAlloc_v2", "hipMalloc");
  bind(free, "cuMemFree_v2", "hipFree");
  bind(alloc_async, "cuMemAllocAsync", "hipMallocAsync");
  bind(free_async, "cuMemFreeAsync", "hipFreeAsync");
  bind(host_alloc, "cuMemHostAlloc", "hipHostMalloc");
  bind(host_free, "cuMemFreeHost", "hipHostFree");
  bind(htod, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync");
  bind(dtoh, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync");
  bind(dtod, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync");
  bind(fill8, "cuMemsetD8Async", "hipMemsetD8Async");
  bind(fill16, "cuMemsetD16Async", "hipMemsetD16Async");
  bind(fill32, "cuMemsetD32Async", "hipMemsetD32Async");
  bind(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags");
  bind(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy");
  bind(stream_sync, "cuStreamSynchronize", "hipStreamSynchronize");
  bind(stream_query, "cuStreamQuery", "hipStreamQuery");
  bind(stream_wait, "cuStreamWaitEvent", "hipStreamWaitEvent");
  bind(event_create, "cuEventCreate", "hipEventCreateWithFlags");
  bind(event_destroy, "cuEventDestroy_v2", "hipEventDestroy");
  bind(event_record, "cuEventRecord", "hipEventRecord");
  bind(event_query, "cuEventQuery", "hipEventQuery");
  bind(event_sync, "cuEventSynchronize", "hipEventSynchronize");
  bind(event_elapsed, "cuEventElapsedTime", "hipEventElapsedTime");
  bind(module_load, "cuModuleLoadData", "hipModuleLoadData");
  bind(module_unload, "cuModuleUnload", "hipModuleUnload");
  bind(module_function, "cuModuleGetFunction", "hipModuleGetFunction");
  bind(module_global, "cuModuleGetGlobal_v2", "hipModuleGetGlobal");
  bind(function_get, "cuFuncGetAttribute", "hipFuncGetAttribute");
  bind(function_set, "cuFuncSetAttribute", "hipFuncSetAttribute");
  bind(launch, "cuLaunchKernel", "hipModuleLaunchKernel");
  bind(device_sync, "cuCtxSynchronize", "hipDeviceSynchronize");
  if (find<int (*)(unsigned)>(cuda ? "cuInit" : "hipInit")(0) != kOk) {
    throw std::runtime_error("no simulated device");
  }
  for (int device = 0; cuda && device < 2; ++device) {
    void* context = nullptr;
    find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device);
    contexts_.push_back(context);
  }
}

Driver& Driver::named(const std::string& which) {
  static std::map<std::string, std::unique_ptr<Driver>> drivers;
  std::unique_ptr<Driver>& driver = drivers[which];
  if (!driver) driver = std::make_unique<Driver>(which);
  return *driver;
}

int Driver::use(int device) {
  if (!cuda) return find<int (*)(int)>("hipSetDevice")(device);
  return find<int (*)(void*)>("cuCtxSetCurrent")(contexts_[static_cast<std::size_t>(device)]);
}

int Driver::peer(void* to, int to_device, void* from, int from_device, std::size_t bytes,
                 void* stream) {
  if (!cuda) {
    return find<int (*)(void*, int, const void*, int, std::size_t, void*)>("hipMemcpyPeerAsync")(
        to, to_device, from, from_device, bytes, stream);
  }
  return find<int (*)(void*, void*, void*, void*, std::size_t, void*)>("cuMemcpyPeerAsync")(
      to, contexts_[static_cast<std::size_t>(to_device)], from,
      contexts_[static_cast<std::size_t>(from_device)], bytes, stream);
}

bool lazy_mode() {
  const char* mode = std::getenv("SIMGPU_MODE");
  return mode == nullptr || std::strcmp(mode, "threads") != 0;
}

unsigned warp_width() {
  const char* warp = std::getenv("SIMGPU_WARP");
  return warp != nullptr && std::strcmp(warp, "64") == 0 ? 64 : 32;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string kernel_image(unsigned warp) {
  return read_file(warp == 64 ? SIMGPU_KERNELS64 : SIMGPU_KERNELS32);
}

void OnSimGpu::SetUp() {
  control().reset();
  ASSERT_EQ(driver().use(0), kOk);
}

void OnSimGpu::TearDown() {
  driver().use(0);
  for (void* event : events_) driver().event_destroy(event);
  for (void* stream : streams_) driver().stream_destroy(stream);
  for (void* block : blocks_) EXPECT_EQ(driver().free(block), kOk);
  if (module_ != nullptr) {
    EXPECT_EQ(driver().module_unload(module_), kOk);
  }
  const SimCounters counters = control().counters();
  EXPECT_EQ(counters.bad_calls, expected_bad_calls);
  EXPECT_EQ(counters.guard_hits, expected_guard_hits);
  EXPECT_EQ(counters.live_blocks, 0u);
  EXPECT_EQ(counters.live_bytes, 0u);
  EXPECT_EQ(counters.live_host_blocks, 0u);
  EXPECT_EQ(counters.live_streams, 0u);
  EXPECT_EQ(counters.live_events, 0u);
  EXPECT_EQ(counters.live_modules, 0u);
}

void* OnSimGpu::new_stream() {
  void* stream = nullptr;
  EXPECT_EQ(driver().stream_create(&stream, 1), kOk);
  streams_.push_back(stream);
  return stream;
}

void* OnSimGpu::new_event() {
  void* event = nullptr;
  EXPECT_EQ(driver().event_create(&event, 0), kOk);
  events_.push_back(event);
  return event;
}

void* OnSimGpu::device_memory(std::size_t bytes) {
  void* address = nullptr;
  EXPECT_EQ(driver().alloc(&address, bytes), kOk);
  blocks_.push_back(address);
  return address;
}

void* OnSimGpu::module() {
  if (module_ == nullptr) {
    const std::string image = kernel_image(warp_width());
    EXPECT_EQ(driver().module_load(&module_, image.data()), kOk);
  }
  return module_;
}

void* OnSimGpu::function(const char* name) {
  void* found = nullptr;
  EXPECT_EQ(driver().module_function(&found, module(), name), kOk) << name;
  return found;
}

}  // namespace simgpu_test
