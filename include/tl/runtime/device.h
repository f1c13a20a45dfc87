// A device: the CPU, or a GPU of either vendor.
//
// A Device is a small shared handle; copies mean the same device, with the same stream and the same
// random seed. Device::cuda(0) always gives the one default handle of that GPU.
// Device::cuda_with_stream(0) gives a handle of its own on the same GPU: same memory pool and
// modules, its own stream, not same_device() as the default one.
//
// No vendor library is linked. The first question about a vendor opens its driver; when there is
// none, the question is answered (count 0, a sentence that says why) and only asking for a device
// throws.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tl/base/dtype.h"
#include "tl/runtime/location.h"
#include "tl/runtime/pool.h"
#include "tl/runtime/properties.h"
#include "tl/runtime/stream.h"

namespace tl {

class Context;
class ModuleStore;
struct DeviceState;
struct Fault;

// What is known of one vendor's driver on this machine, without throwing.
struct DriverInfo {
  DeviceKind kind = DeviceKind::Cpu;
  int device_count = 0;
  std::string reason;   // why there is no device; empty when there is one
  std::string library;  // the file that was opened
  std::string driver_version;
  std::string runtime_version;
  std::string compiler;  // the run-time compiler found, or the sentence that says why there is none
  std::vector<std::string> math_libraries;
};

class Device {
 public:
  static Device cpu();
  // Throw DriverMissing or NoSuchDevice.
  static Device cuda(int index = 0);
  static Device rocm(int index = 0);
  static Device cuda_with_stream(int index = 0);
  static Device rocm_with_stream(int index = 0);
  static Device at(DeviceLocation location);
  static Device parse(
      std::string_view text);  // "cpu", "cuda:1", "rocm", or "auto" for the best one

  // The GPU when it can be used, else the CPU. Never throw.
  static Device cuda_if_available(int index = 0) noexcept;
  static Device rocm_if_available(int index = 0) noexcept;
  static Device gpu_if_available(int index = 0) noexcept;
  static Device best_available() noexcept { return gpu_if_available(0); }

  static int count(DeviceKind kind) noexcept;
  static bool is_available(DeviceKind kind) noexcept { return count(kind) > 0; }
  static DriverInfo driver(DeviceKind kind);
  // Every device there is, the CPU first; those that cannot be opened are left out.
  static std::vector<Device> all();

  Device(const Device& other) noexcept;
  Device(Device&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Device& operator=(Device other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Device();

  DeviceLocation location() const noexcept;
  DeviceKind kind() const noexcept { return location().kind; }
  int index() const noexcept { return location().index; }
  std::string text() const { return location().text(); }
  bool is_cpu() const noexcept { return location().is_cpu(); }
  bool is_gpu() const noexcept { return location().is_gpu(); }
  bool is_cuda() const noexcept { return kind() == DeviceKind::Cuda; }
  bool is_rocm() const noexcept { return kind() == DeviceKind::Rocm; }

  // The same handle, not only the same place.
  bool same_device(const Device& other) const noexcept;
  friend bool operator==(const Device& a, const Device& b) noexcept { return a.same_device(b); }
  std::uint64_t id() const noexcept;

  const DeviceProperties& properties() const noexcept;
  const std::string& name() const noexcept { return properties().name; }
  const std::string& architecture() const noexcept { return properties().architecture; }
  std::pair<int, int> compute_capability() const noexcept;
  int warp_width() const noexcept { return properties().warp_width; }
  bool supports_bf16() const noexcept { return properties().bf16; }
  DType bf16_default_to_f32() const noexcept { return supports_bf16() ? DType::BF16 : DType::F32; }
  MemoryInfo memory_info() const;

  const Stream& stream() const noexcept;  // where work goes unless another stream is named
  Stream new_stream() const;
  void synchronize() const;  // waits for all work on the device; reports what went wrong in it

  // Random numbers (tl/ops/random.h): the seed of this handle. Starts as kDefaultSeed.
  static constexpr std::uint64_t kDefaultSeed = 299792458;
  void set_seed(std::uint64_t seed) const noexcept;
  std::uint64_t current_seed() const noexcept;
  // Takes `count` positions of the seed's sequence for the caller alone and gives the first. A seed
  // that is set starts its sequence anew.
  std::uint64_t take_random(std::uint64_t count) const noexcept;

  PoolStatistics pool() const;         // memory on the device
  PoolStatistics pinned_pool() const;  // host memory pinned for it
  // Returns what the pools keep to the driver, and tells how many bytes that was.
  std::uint64_t trim() const;
  // Takes room from the driver, at once, for blocks of these sizes that are going to be taken on
  // this handle. They are then cut from it with less than 512 bytes of slack each; without it a
  // large one has a segment to itself, of a multiple of 2 MiB. Does nothing where the pool has a
  // free piece of that size. Throws OutOfMemory.
  void reserve(std::span<const std::uint64_t> sizes) const;
  void set_pool_limit(std::uint64_t bytes) const;
  void reset_peak() const;
  DriverCalls driver_calls() const noexcept;

  // Where kernels on this device report a bad index; made at the first call. See
  // tl/runtime/fault.h.
  Fault* fault_word() const;

  ModuleStore& modules() const noexcept;
  Context& context() const noexcept;

  // For the runtime itself.
  explicit Device(DeviceState* state) noexcept;  // adds a reference
  DeviceState* state() const noexcept { return state_; }

 private:
  static Device adopt(DeviceState* state) noexcept;
  static Device with_stream(DeviceLocation location);
  Device() = default;
  DeviceState* state_ = nullptr;
};

std::ostream& operator<<(std::ostream& out, const Device& device);

// The tag under which kernels report the faults of an op, 1 to 255: the same for the same name.
// `op` is a literal. Throws Overflow for the 256th name.
unsigned fault_tag(std::string_view op);

}  // namespace tl

template <>
struct std::hash<tl::Device> {
  std::size_t operator()(const tl::Device& d) const noexcept { return d.id(); }
};
