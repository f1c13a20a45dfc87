// The table of driver functions. Each driver function the library uses is listed here once, in
// neutral terms; cuda.cpp fills a table from libcuda, hip.cpp from libamdhip64, host.cpp from the C
// library for the CPU. Everything to the right of this folder calls through a table and cannot tell
// the vendors apart.
//
// Two vendors can share one table because the module APIs agree: same arguments in the same order,
// handles are pointers, and the error numbers a runtime meets are equal. What differs (contexts,
// properties, options) has an adapter in the file that fills the table.
//
// All functions but those on devices act on the thread's current context; see CurrentContext in
// context.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/runtime/location.h"
#include "tl/runtime/properties.h"

namespace tl::driver {

using Status = int;    // 0 is success; other numbers are the driver's own
using Handle = void*;  // a context, stream, event, module or function

// Numbers on which CUresult and hipError_t agree; the CPU's table uses them too.
inline constexpr Status kSuccess = 0;
inline constexpr Status kInvalidValue = 1;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kNotFound = 500;
inline constexpr Status kNotReady = 600;
inline constexpr Status kNotSupported = 801;

// After one of these the context is unusable: every later call on it fails too.
bool means_lost(Status status) noexcept;

struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct Table {
  DeviceKind kind = DeviceKind::Cpu;
  std::string library;         // the file that was opened, e.g. "libcuda.so.1"
  std::string driver_version;  // "13.0", "6.4.3"
  std::string runtime_version;
  int device_count = 0;

  // Devices and contexts. A context handle is never null.
  Status (*open_device)(int index, Handle* context) = nullptr;
  Status (*get_current)(Handle* context) = nullptr;  // null when the thread has none
  Status (*set_current)(Handle context) = nullptr;
  Status (*properties)(int index, DeviceProperties* out) = nullptr;
  Status (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  Status (*synchronize)() = nullptr;

  // Memory.
  Status (*allocate)(void** address, std::size_t bytes) = nullptr;
  Status (*free)(void* address, std::size_t bytes) = nullptr;            // `bytes` as allocated
  Status (*allocate_host)(void** address, std::size_t bytes) = nullptr;  // pinned
  Status (*free_host)(void* address, std::size_t bytes) = nullptr;
  Status (*upload)(void* to, const void* from, std::size_t bytes, Handle stream) = nullptr;
  Status (*download)(void* to, const void* from, std::size_t bytes, Handle stream) = nullptr;
  Status (*copy)(void* to, const void* from, std::size_t bytes, Handle stream) = nullptr;
  Status (*fill8)(void* to, std::uint8_t value, std::size_t count, Handle stream) = nullptr;
  Status (*fill16)(void* to, std::uint16_t value, std::size_t count, Handle stream) = nullptr;
  Status (*fill32)(void* to, std::uint32_t value, std::size_t count, Handle stream) = nullptr;

  // Streams and events.
  Status (*create_stream)(Handle* stream) = nullptr;  // not ordered against the null stream
  Status (*destroy_stream)(Handle stream) = nullptr;
  Status (*synchronize_stream)(Handle stream) = nullptr;
  Status (*query_stream)(Handle stream) = nullptr;
  Status (*wait_event)(Handle stream, Handle event) = nullptr;
  Status (*create_event)(Handle* event, bool timing) = nullptr;
  Status (*destroy_event)(Handle event) = nullptr;
  Status (*record_event)(Handle event, Handle stream) = nullptr;
  Status (*query_event)(Handle event) = nullptr;
  Status (*synchronize_event)(Handle event) = nullptr;
  Status (*elapsed)(float* milliseconds, Handle start, Handle stop) = nullptr;

  // Modules. `log` takes what the driver's loader says when it refuses an image.
  Status (*load_module)(Handle* module, const void* image, std::string* log) = nullptr;
  Status (*unload_module)(Handle module) = nullptr;
  Status (*get_function)(Handle* function, Handle module, const char* name) = nullptr;
  Status (*launch)(Handle function, Dim3 grid, Dim3 block, unsigned shared_bytes, Handle stream,
                   void** arguments) = nullptr;

  // Optional: null where the driver does not have it.
  // A launch whose blocks are all resident at once, so that they may wait for each other.
  Status (*launch_together)(Handle function, Dim3 grid, Dim3 block, unsigned shared_bytes,
                            Handle stream, void** arguments) = nullptr;
  // A launch that may begin before the one ahead of it in the stream has ended, and costs the host
  // less; and whether the kernels of this library wait for that one themselves (await_earlier() in
  // gpu.h) in the code that `function` is: only they may be launched so. Both are there or neither.
  Status (*launch_early)(Handle function, Dim3 grid, Dim3 block, unsigned shared_bytes,
                         Handle stream, void** arguments) = nullptr;
  bool (*awaits_earlier)(Handle function) = nullptr;
  // Lets a function be launched with more dynamic shared memory than usual.
  Status (*allow_shared)(Handle function, unsigned bytes) = nullptr;
  Status (*copy_peer)(void* to, Handle to_context, const void* from, Handle from_context,
                      std::size_t bytes, Handle stream) = nullptr;
  Status (*allocate_async)(void** address, std::size_t bytes, Handle stream) = nullptr;
  Status (*free_async)(void* address, Handle stream) = nullptr;

  // "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  std::string (*error_text)(Status status) = nullptr;
};

// One text of a program for the run-time compiler.
struct Source {
  std::string_view name;
  std::string_view text;
};

// A run-time compiler (NVRTC, hipRTC).
struct CompilerTable {
  std::string library;
  std::string version;  // "13.0"

  // Compiles `program` for `architecture`; returns false and fills `log` when it is refused, by the
  // compiler or, for an architecture that would make the compiler end the process, before it.
  std::function<bool(const Source& program, std::span<const Source> headers,
                     std::string_view architecture, std::vector<std::byte>* image,
                     std::string* log)>
      compile;
  // The options `compile` uses, for the key of the cache on disk.
  std::function<std::string(std::string_view architecture)> options;
};

// What came of looking for a library: a table, or the one sentence that says why there is none.
template <class T>
struct Found {
  const T* table = nullptr;
  std::string reason;
};

// Each library is opened at the first call and kept. None of these throws for a missing library.
const Found<Table>& find(DeviceKind kind);
const Found<CompilerTable>& find_compiler(DeviceKind kind);

// The vendor math libraries that were found for a kind, e.g. "cuBLASLt 13 (libcublasLt.so.13)".
// Only for display.
std::vector<std::string> math_libraries(DeviceKind kind);

// For tests: a table whose members can be replaced, so that any driver can be made to fail. Not for
// the product.
Table& table_for_testing(DeviceKind kind);

// The parts, one per file, that find() puts together.
Found<Table> open_host();
Found<Table> open_cuda();
Found<Table> open_hip();
Found<CompilerTable> open_nvrtc();
Found<CompilerTable> open_hiprtc();
std::vector<std::string> cuda_math_libraries();
std::vector<std::string> hip_math_libraries();

}  // namespace tl::driver
