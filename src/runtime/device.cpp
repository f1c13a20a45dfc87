#include "tl/runtime/device.h"

#include <map>
#include <memory>
#include <mutex>
#include <ostream>

#include "runtime/context.h"
#include "runtime/device_state.h"
#include "runtime/parking.h"
#include "runtime/pool.h"
#include "runtime/stream_state.h"
#include "tl/base/error.h"

namespace tl {

namespace {

std::uint64_t next_device_id() noexcept {
  static std::atomic<std::uint64_t> id{0};
  return id.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The default handle of each location. Never destroyed, as contexts are not.
struct Defaults {
  std::mutex mutex;
  std::map<DeviceLocation, std::unique_ptr<DeviceState>> states;
};

Defaults& defaults() {
  static auto* const all = new Defaults;
  return *all;
}

}  // namespace

// ---- DeviceState

DeviceState::DeviceState(Context& owner, Stream home) noexcept
    : context(owner), stream(std::move(home)), id(next_device_id()), seed(Device::kDefaultSeed) {}

// ---- making devices

Device Device::adopt(DeviceState* state) noexcept {
  Device device;
  device.state_ = state;
  return device;
}

Device Device::at(DeviceLocation location) {
  Context& context = Context::get(location);
  Defaults& all = defaults();
  const std::lock_guard lock(all.mutex);
  auto found = all.states.find(location);
  if (found == all.states.end()) {
    auto state = std::make_unique<DeviceState>(context, Stream(&context.default_stream()));
    found = all.states.emplace(location, std::move(state)).first;
  }
  return Device(found->second.get());
}

Device Device::with_stream(DeviceLocation location) {
  Context& context = Context::get(location);
  return adopt(new DeviceState(context, Stream::adopt(StreamState::create(context))));
}

Device Device::cpu() {
  static const Device only = at({});
  return only;
}
Device Device::cuda(int index) { return at({DeviceKind::Cuda, index}); }
Device Device::rocm(int index) { return at({DeviceKind::Rocm, index}); }
Device Device::cuda_with_stream(int index) { return with_stream({DeviceKind::Cuda, index}); }
Device Device::rocm_with_stream(int index) { return with_stream({DeviceKind::Rocm, index}); }

Device Device::parse(std::string_view text) {
  return text == "auto" ? best_available() : at(DeviceLocation::parse(text));
}

Device Device::cuda_if_available(int index) noexcept {
  try {
    return cuda(index);
  } catch (const std::exception&) {
    return cpu();
  }
}

Device Device::rocm_if_available(int index) noexcept {
  try {
    return rocm(index);
  } catch (const std::exception&) {
    return cpu();
  }
}

Device Device::gpu_if_available(int index) noexcept {
  Device found = cuda_if_available(index);
  return found.is_gpu() ? found : rocm_if_available(index);
}

int Device::count(DeviceKind kind) noexcept {
  try {
    const driver::Found<driver::Table>& found = driver::find(kind);
    return found.table == nullptr ? 0 : found.table->device_count;
  } catch (const std::exception&) {
    return 0;
  }
}

DriverInfo Device::driver(DeviceKind kind) {
  const driver::Found<driver::Table>& found = driver::find(kind);
  const driver::Found<driver::CompilerTable>& compiler = driver::find_compiler(kind);
  DriverInfo info;
  info.kind = kind;
  info.reason = found.reason;
  if (found.table != nullptr) {
    info.device_count = found.table->device_count;
    info.library = found.table->library;
    info.driver_version = found.table->driver_version;
    info.runtime_version = found.table->runtime_version;
  }
  info.compiler = compiler.table == nullptr
                      ? compiler.reason
                      : join(compiler.table->library, " ", compiler.table->version);
  info.math_libraries = driver::math_libraries(kind);
  return info;
}

std::vector<Device> Device::all() {
  std::vector<Device> devices;
  for (const DeviceKind kind : {DeviceKind::Cpu, DeviceKind::Cuda, DeviceKind::Rocm}) {
    for (int i = 0; i < count(kind); ++i) {
      try {
        devices.push_back(at({kind, i}));
      } catch (const Error&) {
        continue;  // there, but unusable (in exclusive use, say)
      }
    }
  }
  return devices;
}

// ---- the handle

Device::Device(DeviceState* state) noexcept : state_(state) { state_->add(); }
Device::Device(const Device& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->add();
}
Device::~Device() {
  if (state_ != nullptr) state_->remove();
}

Context& Device::context() const noexcept { return state_->context; }
DeviceLocation Device::location() const noexcept { return context().location(); }
bool Device::same_device(const Device& other) const noexcept {
  return state_ == other.state_ || (is_cpu() && other.is_cpu());
}
std::uint64_t Device::id() const noexcept { return state_->id; }
const DeviceProperties& Device::properties() const noexcept { return context().properties(); }
std::pair<int, int> Device::compute_capability() const noexcept {
  return {properties().major, properties().minor};
}
MemoryInfo Device::memory_info() const { return context().memory_info(); }

const Stream& Device::stream() const noexcept { return state_->stream; }

Stream Device::new_stream() const { return Stream::adopt(StreamState::create(context())); }

void Device::synchronize() const {
  stream().state()->native();  // with what was put off
  const CurrentContext current(context());
  tl::count(context().counters().synchronizations);
  context().check(context().table().synchronize(), "synchronize");
  drain_parked(context());
  context().release_deferred_streams();
  context().check_fault();
}

Fault* Device::fault_word() const { return context().fault_word(); }

void Device::set_seed(std::uint64_t seed) const noexcept {
  state_->seed.store(seed, std::memory_order_relaxed);
  state_->random_position.store(0, std::memory_order_relaxed);
}
std::uint64_t Device::current_seed() const noexcept {
  return state_->seed.load(std::memory_order_relaxed);
}

std::uint64_t Device::take_random(std::uint64_t count) const noexcept {
  return state_->random_position.fetch_add(count, std::memory_order_relaxed);
}

PoolStatistics Device::pool() const { return context().pool().statistics(); }
PoolStatistics Device::pinned_pool() const { return context().host_pool().statistics(); }
void Device::reserve(std::span<const std::uint64_t> sizes) const {
  context().pool().reserve(sizes, *stream().state());
}

std::uint64_t Device::trim() const {
  drain_parked(context());
  return context().pool().trim() + context().host_pool().trim();
}
void Device::set_pool_limit(std::uint64_t bytes) const { context().pool().set_limit(bytes); }
void Device::reset_peak() const {
  context().pool().reset_peak();
  context().host_pool().reset_peak();
}
DriverCalls Device::driver_calls() const noexcept { return context().counters().read(); }
ModuleStore& Device::modules() const noexcept { return context().modules(); }

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.text(); }

}  // namespace tl
