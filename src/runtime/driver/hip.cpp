// Fills the driver table from libamdhip64 (ROCm 5, 6 and 7), opened at run time.
//
// HIP has no context of its own: a thread selects a device by number. A context handle here is that
// number plus one, so that it is never null. The library keeps the 792-byte property structure
// under the plain name and the 1472-byte one under a name with its version; only the architecture
// name is read from it, everything else has an attribute number that did not change from 5.2
// to 7.2. TL_HIP_DRIVER names another file to open.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/driver/library.h"
#include "runtime/driver/table.h"
#include "tl/base/error.h"

namespace tl::driver {

namespace {

struct Raw {
  Status (*init)(unsigned flags);
  Status (*driver_version)(int* version);
  Status (*runtime_version)(int* version);
  Status (*device_count)(int* count);
  Status (*get_device)(int* index);
  Status (*set_device)(int index);
  Status (*device_name)(char* name, int length, int device);
  Status (*device_memory)(std::size_t* bytes, int device);
  Status (*device_attribute)(int* value, int attribute, int device);
  Status (*properties_r0600)(void* properties, int device);
  Status (*properties_r0000)(void* properties, int device);
  Status (*mem_free)(void* address);
  Status (*host_alloc)(void** address, std::size_t bytes, unsigned flags);
  Status (*host_free)(void* address);
  Status (*stream_create)(Handle* stream, unsigned flags);
  Status (*stream_wait)(Handle stream, Handle event, unsigned flags);
  Status (*event_create)(Handle* event, unsigned flags);
  Status (*module_load)(Handle* module, const void* image);
  Status (*launch)(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Handle stream, void** arguments, void** extra);
  Status (*launch_together)(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, Handle stream,
                            void** arguments);
  Status (*peer_copy)(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                      Handle stream);
  const char* (*error_name)(Status status);
  const char* (*error_string)(Status status);
};
Raw raw;

constexpr unsigned kHostPortable = 1;
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventNoTiming = 2;

Handle context_of(int device) {
  return reinterpret_cast<Handle>(static_cast<std::intptr_t>(device) + 1);
}
int device_of(Handle context) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(context) - 1);
}

Status get_current(Handle* context) {
  int device = 0;
  const Status status = raw.get_device(&device);
  *context = status == kSuccess ? context_of(device) : nullptr;
  return status;
}

Status set_current(Handle context) { return raw.set_device(device_of(context)); }

Status open_device(int index, Handle* context) {
  int before = 0;
  if (const Status s = raw.get_device(&before); s != kSuccess) return s;
  if (const Status s = raw.set_device(index); s != kSuccess) return s;
  *context = context_of(index);
  return raw.set_device(before);
}

// "gfx90a:sramecc+:xnack-" -> "gfx90a".
Status architecture_name(int device, std::string* out) {
  constexpr std::size_t kNewSize = 1472;
  constexpr std::size_t kNewName = 1160;
  constexpr std::size_t kOldSize = 792;
  constexpr std::size_t kOldName = 396;
  constexpr std::size_t kNameLength = 256;
  // Larger than any known layout, in case a later version writes past its documented end.
  alignas(16) std::array<char, 4096> room{};
  static_assert(kNewSize <= 4096 && kOldSize <= 4096);
  std::size_t at = kNewName;
  Status status = kNotSupported;
  if (raw.properties_r0600 != nullptr) {
    status = raw.properties_r0600(room.data(), device);
  } else {
    at = kOldName;
    status = raw.properties_r0000(room.data(), device);
  }
  if (status != kSuccess) return status;
  std::string name(room.data() + at, ::strnlen(room.data() + at, kNameLength));
  *out = name.substr(0, name.find(':'));
  return kSuccess;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> heads) {
  for (const std::string_view head : heads) {
    if (text.starts_with(head)) return true;
  }
  return false;
}

Status properties(int device, DeviceProperties* out) {
  std::array<char, 256> name{};
  if (const Status s = raw.device_name(name.data(), static_cast<int>(name.size()) - 1, device);
      s != kSuccess) {
    return s;
  }
  std::size_t total = 0;
  if (const Status s = raw.device_memory(&total, device); s != kSuccess) return s;
  if (const Status s = architecture_name(device, &out->architecture); s != kSuccess) return s;
  const auto at = [device](int number) {
    int value = 0;
    return raw.device_attribute(&value, number, device) == kSuccess ? value : 0;
  };
  const auto bytes_at = [&at](int number) { return static_cast<std::uint64_t>(at(number)); };
  out->name = name.data();
  out->total_memory = total;
  out->major = at(23);
  out->minor = at(61);
  out->warp_width = at(87);
  out->multiprocessors = at(63);
  out->max_threads_per_block = at(56);
  out->max_threads_per_multiprocessor = at(57);
  out->max_block = {at(26), at(27), at(28)};
  out->max_grid = {at(29), at(30), at(31)};
  out->shared_memory_per_block = bytes_at(74);
  out->shared_memory_per_block_optin = bytes_at(75);
  out->registers_per_block = at(71);
  out->constant_memory = bytes_at(83);
  out->l2_bytes = bytes_at(19);
  out->clock_khz = at(5);
  out->memory_clock_khz = at(60);
  out->memory_bus_bits = at(59);
  out->integrated = at(16) != 0;
  out->can_map_host_memory = at(3) != 0;
  out->managed_memory = at(24) != 0;
  out->cooperative_launch = at(10) != 0;
  out->bf16 =
      starts_with_any(out->architecture, {"gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12"});
  out->fp8 = starts_with_any(out->architecture, {"gfx94", "gfx95", "gfx12"});
  std::array<char, 32> pci{};
  std::snprintf(pci.data(), pci.size(), "%04x:%02x:%02x.0", static_cast<unsigned>(at(69)),
                static_cast<unsigned>(at(67)), static_cast<unsigned>(at(68)));
  out->pci = pci.data();
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
  log->clear();
  return raw.module_load(module, image);
}

Status launch(Handle function, Dim3 grid, Dim3 block, unsigned shared_bytes, Handle stream,
              void** arguments) {
  return raw.launch(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes,
                    stream, arguments, nullptr);
}
Status launch_together(Handle function, Dim3 grid, Dim3 block, unsigned shared_bytes, Handle stream,
                       void** arguments) {
  return raw.launch_together(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                             shared_bytes, stream, arguments);
}

Status copy_peer(void* to, Handle to_context, const void* from, Handle from_context,
                 std::size_t bytes, Handle stream) {
  return raw.peer_copy(to, device_of(to_context), from, device_of(from_context), bytes, stream);
}

std::string error_text(Status status) {
  const char* name = raw.error_name == nullptr ? nullptr : raw.error_name(status);
  const char* text = raw.error_string == nullptr ? nullptr : raw.error_string(status);
  if (name == nullptr) name = "unknown error";
  return text == nullptr || std::strcmp(name, text) == 0 ? name : join(name, ": ", text);
}

// 60443484 -> "6.4".
std::string version_text(int version) {
  return join(version / 10000000, ".", version / 100000 % 100);
}

}  // namespace

Found<Table> open_hip() {
  static Table table;
  const std::array<std::string, 8> names{"libamdhip64.so.7",
                                         "libamdhip64.so.6",
                                         "libamdhip64.so.5",
                                         "libamdhip64.so",
                                         "/opt/rocm/lib/libamdhip64.so.7",
                                         "/opt/rocm/lib/libamdhip64.so.6",
                                         "/opt/rocm/lib/libamdhip64.so.5",
                                         "/opt/rocm/lib/libamdhip64.so"};
  const Library library = Library::open("TL_HIP_DRIVER", names);
  if (!library) {
    const bool none = library.reason().starts_with(names.front());
    return {nullptr, join("no ROCm: ", none ? "libamdhip64.so was not found" : library.reason())};
  }

  Symbols symbols(library);
  symbols.want(raw.init, "hipInit")
      .want(raw.driver_version, "hipDriverGetVersion")
      .need(raw.runtime_version, "hipRuntimeGetVersion")
      .need(raw.device_count, "hipGetDeviceCount")
      .need(raw.get_device, "hipGetDevice")
      .need(raw.set_device, "hipSetDevice")
      .need(raw.device_name, "hipDeviceGetName")
      .need(raw.device_memory, "hipDeviceTotalMem")
      .need(raw.device_attribute, "hipDeviceGetAttribute")
      .want(raw.properties_r0600, "hipGetDevicePropertiesR0600")
      .want(raw.properties_r0000, "hipGetDeviceProperties")
      .need(raw.mem_free, "hipFree")
      .need(raw.host_alloc, "hipHostMalloc")
      .need(raw.host_free, "hipHostFree")
      .need(raw.stream_create, "hipStreamCreateWithFlags")
      .need(raw.stream_wait, "hipStreamWaitEvent")
      .need(raw.event_create, "hipEventCreateWithFlags")
      .need(raw.module_load, "hipModuleLoadData")
      .need(raw.launch, "hipModuleLaunchKernel")
      .want(raw.launch_together, "hipModuleLaunchCooperativeKernel")
      .want(raw.peer_copy, "hipMemcpyPeerAsync")
      .want(raw.error_name, "hipGetErrorName")
      .want(raw.error_string, "hipGetErrorString");
  // These have the neutral form already.
  symbols.need(table.memory_info, "hipMemGetInfo")
      .need(table.synchronize, "hipDeviceSynchronize")
      .need(table.allocate, "hipMalloc")
      .need(table.upload, "hipMemcpyHtoDAsync")
      .need(table.download, "hipMemcpyDtoHAsync")
      .need(table.copy, "hipMemcpyDtoDAsync")
      .need(table.fill8, "hipMemsetD8Async")
      .need(table.fill16, "hipMemsetD16Async")
      .need(table.fill32, "hipMemsetD32Async")
      .need(table.destroy_stream, "hipStreamDestroy")
      .need(table.synchronize_stream, "hipStreamSynchronize")
      .need(table.query_stream, "hipStreamQuery")
      .need(table.destroy_event, "hipEventDestroy")
      .need(table.record_event, "hipEventRecord")
      .need(table.query_event, "hipEventQuery")
      .need(table.synchronize_event, "hipEventSynchronize")
      .need(table.elapsed, "hipEventElapsedTime")
      .need(table.unload_module, "hipModuleUnload")
      .need(table.get_function, "hipModuleGetFunction")
      .want(table.allocate_async, "hipMallocAsync")
      .want(table.free_async, "hipFreeAsync");
  if (!symbols.missing().empty() ||
      (raw.properties_r0600 == nullptr && raw.properties_r0000 == nullptr)) {
    const std::string missing =
        symbols.missing().empty() ? "hipGetDeviceProperties" : symbols.missing();
    return {nullptr, join("no ROCm: ", library.file(), " has no ", missing,
                          "; ROCm 5.2 or newer is needed")};
  }

  table.kind = DeviceKind::Rocm;
  table.library = library.file();
  table.open_device = open_device;
  table.get_current = get_current;
  table.set_current = set_current;
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
  if (raw.peer_copy != nullptr) table.copy_peer = copy_peer;
  table.error_text = error_text;

  // Without a device every other call fails in its own way; this one answers plainly in every
  // version.
  int count = 0;
  if (const Status s = raw.device_count(&count); s != kSuccess || count <= 0) {
    return {nullptr, join("no ROCm: ", library.file(), " found no AMD device",
                          s == kSuccess ? "" : join(" (", error_text(s), ")"))};
  }
  table.device_count = count;
  int version = 0;
  if (raw.runtime_version(&version) == kSuccess) table.runtime_version = version_text(version);
  if (raw.driver_version != nullptr && raw.driver_version(&version) == kSuccess) {
    table.driver_version = version_text(version);
  }
  return {&table, {}};
}

std::vector<std::string> hip_math_libraries() {
  std::array<NamedLibrary, 3> wanted{{
      {"rocBLAS", {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0"}},
      {"hipBLASLt", {"libhipblaslt.so.1", "libhipblaslt.so.0"}},
      {"MIOpen", {"libMIOpen.so.1"}},
  }};
  for (NamedLibrary& library : wanted) {
    for (std::size_t i = 0, named = library.files.size(); i < named; ++i) {
      library.files.push_back(join("/opt/rocm/lib/", library.files[i]));
    }
  }
  return describe_found(wanted);
}

}  // namespace tl::driver
