// The CPU's driver table. The CPU is a device like the others: its memory comes from the same pool
// and obeys the same contract, so the one code path above has one set of rules. Work is done at the
// call, so streams and events are always finished; kernels are not launched here, the ops have CPU
// code of their own.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <thread>

#include "runtime/driver/table.h"

namespace tl::driver {

namespace {

using Clock = std::chrono::steady_clock;

struct HostEvent {
  Clock::time_point time;
};

Status open_device(int index, Handle* context) {
  static char only_context;
  if (index != 0) return kInvalidValue;
  *context = &only_context;
  return kSuccess;
}

Status get_current(Handle* context) { return open_device(0, context); }
Status set_current(Handle /*context*/) { return kSuccess; }

// The field of /proc/meminfo in bytes, 0 when it cannot be read.
std::uint64_t meminfo(std::string_view field) {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(field)) {
      return std::strtoull(line.c_str() + field.size(), nullptr, 10) * 1024;
    }
  }
  return 0;
}

std::uint64_t physical_memory() {
  static const std::uint64_t bytes = [] {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0
               ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
               : std::numeric_limits<std::uint64_t>::max();
  }();
  return bytes;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) {
      const std::size_t at = line.find(": ");
      if (at != std::string::npos) return line.substr(at + 2);
    }
  }
  return "CPU";
}

Status properties(int /*index*/, DeviceProperties* out) {
  out->name = cpu_name();
#if defined(__x86_64__)
  out->architecture = "x86_64";
#elif defined(__aarch64__)
  out->architecture = "aarch64";
#else
  out->architecture = "cpu";
#endif
  out->total_memory = physical_memory();
  out->multiprocessors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  out->bf16 = true;
  out->fp8 = true;
  return kSuccess;
}

Status memory_info(std::size_t* free, std::size_t* total) {
  *total = physical_memory();
  std::uint64_t available = meminfo("MemAvailable:");  // counts caches that can be dropped
  if (available == 0) {
    const long pages = ::sysconf(_SC_AVPHYS_PAGES);
    const long page = ::sysconf(_SC_PAGESIZE);
    available = pages > 0 && page > 0
                    ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
                    : 0;
  }
  *free = std::min<std::uint64_t>(available, *total);
  return kSuccess;
}

Status nothing_to_wait_for() { return kSuccess; }

// The pool asks for whole segments, so each is a mapping of its own: freeing one gives its pages
// back at once.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

Status allocate(void** address, std::size_t bytes) {
  // Without this the kernel may promise more than there is and end the process when it is touched.
  if (bytes > physical_memory()) return kOutOfMemory;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return kOutOfMemory;
  if (bytes >= 2 * kHugePage) ::madvise(at, bytes, MADV_HUGEPAGE);
  *address = at;
  return kSuccess;
}

Status copy(void* to, const void* from, std::size_t bytes, Handle /*stream*/) {
  std::memcpy(to, from, bytes);
  return kSuccess;
}

template <class T>
Status fill(void* to, T value, std::size_t count, Handle /*stream*/) {
  std::fill_n(static_cast<T*>(to), count, value);
  return kSuccess;
}

Status create_stream(Handle* stream) {
  *stream = new (std::nothrow) char;
  return *stream == nullptr ? kOutOfMemory : kSuccess;
}

Status destroy_stream(Handle stream) {
  delete static_cast<char*>(stream);
  return kSuccess;
}

Status finished(Handle /*stream_or_event*/) { return kSuccess; }
Status wait_event(Handle /*stream*/, Handle /*event*/) { return kSuccess; }

Status create_event(Handle* event, bool /*timing*/) {
  *event = new (std::nothrow) HostEvent{};
  return *event == nullptr ? kOutOfMemory : kSuccess;
}

Status destroy_event(Handle event) {
  delete static_cast<HostEvent*>(event);
  return kSuccess;
}

Status record_event(Handle event, Handle /*stream*/) {
  static_cast<HostEvent*>(event)->time = Clock::now();
  return kSuccess;
}

Status elapsed(float* milliseconds, Handle start, Handle stop) {
  const auto span = static_cast<HostEvent*>(stop)->time - static_cast<HostEvent*>(start)->time;
  *milliseconds = std::chrono::duration<float, std::milli>(span).count();
  return kSuccess;
}

Status load_module(Handle* /*module*/, const void* /*image*/, std::string* log) {
  *log = "the CPU runs no kernel modules";
  return kNotSupported;
}
Status unload_module(Handle /*module*/) { return kNotSupported; }
Status get_function(Handle* /*function*/, Handle /*module*/, const char* /*name*/) {
  return kNotSupported;
}
Status launch(Handle, Dim3, Dim3, unsigned, Handle, void**) { return kNotSupported; }

std::string error_text(Status status) {
  switch (status) {
    case kInvalidValue:
      return "invalid value";
    case kOutOfMemory:
      return "out of memory";
    case kNotSupported:
      return "not supported on the CPU";
    default:
      return "error";
  }
}

}  // namespace

Found<Table> open_host() {
  static Table table;
  table.kind = DeviceKind::Cpu;
  table.device_count = 1;
  table.open_device = open_device;
  table.get_current = get_current;
  table.set_current = set_current;
  table.properties = properties;
  table.memory_info = memory_info;
  table.synchronize = nothing_to_wait_for;
  table.allocate = allocate;
  table.allocate_host = allocate;
  table.free = [](void* address, std::size_t bytes) {
    return ::munmap(address, bytes) == 0 ? kSuccess : kInvalidValue;
  };
  table.free_host = table.free;
  table.upload = copy;
  table.download = copy;
  table.copy = copy;
  table.fill8 = fill<std::uint8_t>;
  table.fill16 = fill<std::uint16_t>;
  table.fill32 = fill<std::uint32_t>;
  table.create_stream = create_stream;
  table.destroy_stream = destroy_stream;
  table.synchronize_stream = finished;
  table.query_stream = finished;
  table.wait_event = wait_event;
  table.create_event = create_event;
  table.destroy_event = destroy_event;
  table.record_event = record_event;
  table.query_event = finished;
  table.synchronize_event = finished;
  table.elapsed = elapsed;
  table.load_module = load_module;
  table.unload_module = unload_module;
  table.get_function = get_function;
  table.launch = launch;
  table.error_text = error_text;
  return {&table, {}};
}

}  // namespace tl::driver
