// Fills the driver table from libcuda (CUDA 12 and 13), opened at run time.
//
// Suffixes such as _v2 name the ABI that the CUDA headers have selected since version 3.2
// (cuMemAlloc_v2) or 13 (cuEventElapsedTime_v2); the plain names are older layouts. TL_CUDA_DRIVER
// names another file to open.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/driver/library.h"
#include "runtime/driver/table.h"
#include "tl/base/error.h"

namespace tl::driver {

namespace {

// A launch's attribute and shape as cuLaunchKernelEx takes them (CUlaunchAttribute,
// CUlaunchConfig).
struct LaunchAttribute {
  int id;
  int pad;
  int value;
  std::array<int, 15> rest;  // the value is a union of 64 bytes
};
struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  unsigned shared_bytes = 0;
  Handle stream = nullptr;
  const LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

// The functions of which the neutral form differs, as the driver declares them.
struct Raw {
  Status (*init)(unsigned flags);
  Status (*driver_version)(int* version);
  Status (*device_count)(int* count);
  Status (*device_get)(int* device, int index);
  Status (*device_name)(char* name, int length, int device);
  Status (*device_memory)(std::size_t* bytes, int device);
  Status (*device_attribute)(int* value, int attribute, int device);
  Status (*device_uuid)(unsigned char* uuid, int device);
  Status (*retain_context)(Handle* context, int device);
  Status (*mem_free)(void* address);
  Status (*host_alloc)(void** address, std::size_t bytes, unsigned flags);
  Status (*host_free)(void* address);
  Status (*stream_create)(Handle* stream, unsigned flags);
  Status (*stream_wait)(Handle stream, Handle event, unsigned flags);
  Status (*event_create)(Handle* event, unsigned flags);
  Status (*module_load)(Handle* module, const void* image, unsigned options, int* keys,
                        void** values);
  Status (*launch)(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Handle stream, void** arguments, void** extra);
  Status (*launch_together)(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, Handle stream,
                            void** arguments);
  Status (*launch_ex)(const LaunchConfig* config, Handle function, void** arguments, void** extra);
  Status (*get_function_attribute)(int* value, int attribute, Handle function);
  Status (*function_attribute)(Handle function, int attribute, int value);
  Status (*peer_copy)(void* to, Handle to_context, const void* from, Handle from_context,
                      std::size_t bytes, Handle stream);
  Status (*error_name)(Status status, const char** text);
  Status (*error_string)(Status status, const char** text);
};
Raw raw;

constexpr unsigned kHostPortable = 1;       // pinned for every context
constexpr unsigned kStreamNonBlocking = 1;  // not ordered against the null stream
constexpr unsigned kEventNoTiming = 2;

int attribute(int number, int device) {
  int value = 0;
  return raw.device_attribute(&value, number, device) == kSuccess ? value : 0;
}

Status open_device(int index, Handle* context) {
  int device = 0;
  if (const Status s = raw.device_get(&device, index); s != kSuccess) return s;
  return raw.retain_context(context, device);
}

Status properties(int index, DeviceProperties* out) {
  int device = 0;
  if (const Status s = raw.device_get(&device, index); s != kSuccess) return s;
  std::array<char, 256> name{};
  if (const Status s = raw.device_name(name.data(), static_cast<int>(name.size()) - 1, device);
      s != kSuccess) {
    return s;
  }
  const auto at = [device](int number) { return attribute(number, device); };
  const auto bytes_at = [&at](int number) { return static_cast<std::uint64_t>(at(number)); };
  std::size_t total = 0;
  if (const Status s = raw.device_memory(&total, device); s != kSuccess) return s;
  out->name = name.data();
  out->total_memory = total;
  out->major = at(75);
  out->minor = at(76);
  out->architecture = join("sm_", out->major, out->minor);
  out->warp_width = at(10);
  out->multiprocessors = at(16);
  out->max_threads_per_block = at(1);
  out->max_threads_per_multiprocessor = at(39);
  out->max_block = {at(2), at(3), at(4)};
  out->max_grid = {at(5), at(6), at(7)};
  out->shared_memory_per_block = bytes_at(8);
  out->shared_memory_per_block_optin = bytes_at(97);
  out->registers_per_block = at(12);
  out->constant_memory = bytes_at(9);
  out->l2_bytes = bytes_at(38);
  out->clock_khz = at(13);
  out->memory_clock_khz = at(36);
  out->memory_bus_bits = at(37);
  out->integrated = at(18) != 0;
  out->can_map_host_memory = at(19) != 0;
  out->managed_memory = at(83) != 0;
  out->cooperative_launch = at(95) != 0;
  out->bf16 = out->major >= 8;
  out->fp8 = out->major > 8 || (out->major == 8 && out->minor >= 9);
  std::array<char, 32> pci{};
  std::snprintf(pci.data(), pci.size(), "%04x:%02x:%02x.0", static_cast<unsigned>(at(50)),
                static_cast<unsigned>(at(33)), static_cast<unsigned>(at(34)));
  out->pci = pci.data();
  std::array<unsigned char, 16> id{};
  if (raw.device_uuid != nullptr && raw.device_uuid(id.data(), device) == kSuccess) {
    out->uuid = "GPU-";
    for (std::size_t i = 0; i < id.size(); ++i) {
      std::array<char, 4> two{};
      std::snprintf(two.data(), two.size(), "%02x", id[i]);
      if (i == 4 || i == 6 || i == 8 || i == 10) out->uuid += '-';
      out->uuid += two.data();
    }
  }
  return kSuccess;
}

Status free_memory(void* address, std::size_t /*bytes*/) { return raw.mem_free(address); }
Status allocate_host(void** address, std::size_t bytes) {
  return raw.host_alloc(address, bytes, kHostPortable);
}
Status free_host(void* address, std::size_t /*bytes*/) { return raw.host_free(address); }
Status create_stream(Handle* stream) { return raw.stream_create(stream, kStreamNonBlocking); }
Status wait_event(Handle stream, Handle event) { return raw.stream_wait(stream, event, 0); }
Status create_event(Handle* event, bool timing) {
  return raw.event_create(event, timing ? 0 : kEventNoTiming);
}

Status load_module(Handle* module, const void* image, std::string* log) {
  std::array<char, 8192> text{};
  std::array<int, 2> keys{5, 6};  // CU_JIT_ERROR_LOG_BUFFER and its size
  std::array<void*, 2> values{text.data(), reinterpret_cast<void*>(text.size())};
  const Status status = raw.module_load(module, image, 2, keys.data(), values.data());
  text.back() = '\0';
  *log = text.data();
  return status;
}

Status launch(Handle function, Dim3 grid, Dim3 block, unsigned shared_bytes, Handle stream,
              void** arguments) {
  return raw.launch(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes,
                    stream, arguments, nullptr);
}
Status launch_early(Handle function, Dim3 grid, Dim3 block, unsigned shared_bytes, Handle stream,
                    void** arguments) {
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  static constexpr LaunchAttribute kEarly{.id = 6, .pad = 0, .value = 1, .rest = {}};
  const LaunchConfig config{grid, block, shared_bytes, stream, &kEarly, 1};
  return raw.launch_ex(&config, function, arguments, nullptr);
}
// By the virtual architecture the code was compiled for: PTX of compute_75 stays without the
// instruction when the driver makes code for sm_90 of it. What is for 9.0 runs nowhere older.
bool awaits_earlier(Handle function) {
  constexpr int kPtxVersion = 5;
  int version = 0;
  return raw.get_function_attribute(&version, kPtxVersion, function) == kSuccess && version >= 90;
}
Status allow_shared(Handle function, unsigned bytes) {
  constexpr int kMaxDynamicShared = 8;
  return raw.function_attribute(function, kMaxDynamicShared, static_cast<int>(bytes));
}
Status launch_together(Handle function, Dim3 grid, Dim3 block, unsigned shared_bytes, Handle stream,
                       void** arguments) {
  return raw.launch_together(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                             shared_bytes, stream, arguments);
}

std::string error_text(Status status) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (raw.error_name == nullptr || raw.error_name(status, &name) != kSuccess || name == nullptr) {
    name = "unknown error";
  }
  if (raw.error_string == nullptr || raw.error_string(status, &text) != kSuccess ||
      text == nullptr) {
    return name;
  }
  return join(name, ": ", text);
}

std::string version_text(int version) { return join(version / 1000, ".", version % 1000 / 10); }

}  // namespace

Found<Table> open_cuda() {
  static Table table;
  const std::array<std::string, 2> names{"libcuda.so.1", "libcuda.so"};
  const Library library = Library::open("TL_CUDA_DRIVER", names);
  if (!library) return {nullptr, join("no CUDA: ", library.reason())};

  Symbols symbols(library);
  symbols.need(raw.init, "cuInit")
      .need(raw.driver_version, "cuDriverGetVersion")
      .need(raw.device_count, "cuDeviceGetCount")
      .need(raw.device_get, "cuDeviceGet")
      .need(raw.device_name, "cuDeviceGetName")
      .need(raw.device_memory, "cuDeviceTotalMem_v2")
      .need(raw.device_attribute, "cuDeviceGetAttribute")
      .want(raw.device_uuid, "cuDeviceGetUuid_v2")
      .need(raw.retain_context, "cuDevicePrimaryCtxRetain")
      .need(raw.mem_free, "cuMemFree_v2")
      .need(raw.host_alloc, "cuMemHostAlloc")
      .need(raw.host_free, "cuMemFreeHost")
      .need(raw.stream_create, "cuStreamCreate")
      .need(raw.stream_wait, "cuStreamWaitEvent")
      .need(raw.event_create, "cuEventCreate")
      .need(raw.module_load, "cuModuleLoadDataEx")
      .need(raw.launch, "cuLaunchKernel")
      .want(raw.launch_together, "cuLaunchCooperativeKernel")
      .want(raw.launch_ex, "cuLaunchKernelEx")
      .want(raw.get_function_attribute, "cuFuncGetAttribute")
      .want(raw.function_attribute, "cuFuncSetAttribute")
      .want(raw.peer_copy, "cuMemcpyPeerAsync")
      .want(raw.error_name, "cuGetErrorName")
      .want(raw.error_string, "cuGetErrorString");
  // These have the neutral form already.
  symbols.need(table.get_current, "cuCtxGetCurrent")
      .need(table.set_current, "cuCtxSetCurrent")
      .need(table.memory_info, "cuMemGetInfo_v2")
      .need(table.synchronize, "cuCtxSynchronize")
      .need(table.allocate, "cuMemAlloc_v2")
      .need(table.upload, "cuMemcpyHtoDAsync_v2")
      .need(table.download, "cuMemcpyDtoHAsync_v2")
      .need(table.copy, "cuMemcpyDtoDAsync_v2")
      .need(table.fill8, "cuMemsetD8Async")
      .need(table.fill16, "cuMemsetD16Async")
      .need(table.fill32, "cuMemsetD32Async")
      .need(table.destroy_stream, "cuStreamDestroy_v2")
      .need(table.synchronize_stream, "cuStreamSynchronize")
      .need(table.query_stream, "cuStreamQuery")
      .need(table.destroy_event, "cuEventDestroy_v2")
      .need(table.record_event, "cuEventRecord")
      .need(table.query_event, "cuEventQuery")
      .need(table.synchronize_event, "cuEventSynchronize")
      .need(table.unload_module, "cuModuleUnload")
      .need(table.get_function, "cuModuleGetFunction")
      .want(table.allocate_async, "cuMemAllocAsync")
      .want(table.free_async, "cuMemFreeAsync");
  // CUDA 13 drivers offer both; the old one stays in CUDA 12 drivers.
  if (!library.load(table.elapsed, "cuEventElapsedTime_v2")) {
    symbols.need(table.elapsed, "cuEventElapsedTime");
  }
  if (!symbols.missing().empty()) {
    return {nullptr, join("no CUDA: ", library.file(), " has no ", symbols.missing(),
                          "; the driver is too old")};
  }

  table.kind = DeviceKind::Cuda;
  table.library = library.file();
  table.open_device = open_device;
  table.properties = properties;
  table.free = free_memory;
  table.allocate_host = allocate_host;
  table.free_host = free_host;
  table.create_stream = create_stream;
  table.wait_event = wait_event;
  table.create_event = create_event;
  table.load_module = load_module;
  table.launch = launch;
  if (raw.launch_together != nullptr) table.launch_together = launch_together;
  if (raw.launch_ex != nullptr && raw.get_function_attribute != nullptr) {
    table.launch_early = launch_early;
    table.awaits_earlier = awaits_earlier;
  }
  if (raw.function_attribute != nullptr) table.allow_shared = allow_shared;
  table.copy_peer = raw.peer_copy;
  table.error_text = error_text;

  if (const Status s = raw.init(0); s != kSuccess) {
    return {nullptr,
            join("no CUDA: ", library.file(), " is there but cuInit failed with ", error_text(s))};
  }
  int count = 0;
  if (const Status s = raw.device_count(&count); s != kSuccess || count <= 0) {
    return {nullptr, join("no CUDA: ", library.file(), " found no NVIDIA device",
                          s == kSuccess ? "" : join(" (", error_text(s), ")"))};
  }
  table.device_count = count;
  int version = 0;
  if (raw.driver_version(&version) == kSuccess) table.driver_version = version_text(version);
  return {&table, {}};
}

std::vector<std::string> cuda_math_libraries() {
  const std::array<NamedLibrary, 2> wanted{{
      {"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}},
      {"cuDNN", {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"}},
  }};
  return describe_found(wanted);
}

}  // namespace tl::driver
