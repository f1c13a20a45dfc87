// What every part of the simulator uses: handles, contexts, planned failures.
#include "simulator.h"

#include <cstring>

namespace simgpu {

Simulator& Simulator::get() {
  // Never destroyed: worker threads and late destructors of the program under test may still come
  // here.
  static auto* simulator = new Simulator;
  return *simulator;
}

Simulator::Simulator()
    : settings_(read_settings()),
      memory_(settings_.protect),
      scheduler_(settings_.threads, mutex_, memory_) {
  for (int i = 0; i < settings_.devices; ++i) {
    auto device = std::make_unique<Device>();
    device->index = i;
    device->null_stream = std::make_shared<Stream>(*device);
    device->streams.push_back(device->null_stream);
    devices_.push_back(std::move(device));
  }
}

void Simulator::retain_context(int device) {
  const Lock lock(mutex_);
  ++devices_[device]->context_references;
}

bool Simulator::release_context(int device) {
  Lock lock(mutex_);
  Device& target = *devices_[device];
  if (target.context_references == 0) return false;
  // A real driver would also take back what the context still holds. Here it stays and is counted:
  // a leak must show.
  if (--target.context_references == 0) scheduler_.finish_all(lock, target);
  return true;
}

bool Simulator::context_alive(int device) {
  const Lock lock(mutex_);
  return devices_[device]->context_references > 0;
}

void Simulator::count_context_switch() {
  const Lock lock(mutex_);
  ++counters_.context_switches;
}

Status Simulator::bad_call(Status status) {
  const Lock lock(mutex_);
  return misuse(status);
}

Status Simulator::misuse(Status status) {
  ++counters_.bad_calls;
  return status;
}

Status Simulator::device_status(int device) {
  const Lock lock(mutex_);
  return devices_[device]->error;
}

Status Simulator::memory_info(int device, std::size_t* free, std::size_t* total) {
  const Lock lock(mutex_);
  if (free == nullptr || total == nullptr) return misuse(Status::InvalidValue);
  *free = settings_.memory - devices_[device]->live_bytes;
  *total = settings_.memory;
  return Status::Ok;
}

bool Simulator::fails(Fault what) {
  long& countdown = countdown_[static_cast<unsigned>(what)];
  return countdown > 0 && --countdown == 0;
}

StreamRef Simulator::stream_of(int device, Handle stream) const {
  if (stream == 0) return devices_[device]->null_stream;
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second->device.index != device) return nullptr;
  return found->second;
}

BlockRef Simulator::range_of(int device, const void* address, std::size_t bytes) const {
  BlockRef block = memory_.find(address, bytes);
  return block && block->device() == device ? block : nullptr;
}

bool Simulator::plan_failure(const char* what, long nth) {
  static constexpr const char* kNames[] = {
      "alloc", "host_alloc",    "launch",       "module_load",  "copy",
      "fill",  "stream_create", "event_create", "event_record", "sync"};
  static_assert(std::size(kNames) == static_cast<unsigned>(Fault::kCount));
  const Lock lock(mutex_);
  for (unsigned i = 0; i < std::size(kNames); ++i) {
    if (what == nullptr || std::strcmp(what, kNames[i]) != 0) continue;
    countdown_[i] = nth > 0 ? nth : 0;
    return true;
  }
  return false;
}

void Simulator::lose_device(int device) {
  const Lock lock(mutex_);
  if (has_device(device)) devices_[device]->error = Status::LaunchFailed;
}

void Simulator::compiled_for(int architecture) {
  const Lock lock(mutex_);
  compiled_for_ = architecture;
}

void Simulator::reset() {
  Lock lock(mutex_);
  compiled_for_ = 0;
  for (long& countdown : countdown_) countdown = 0;
  for (const auto& device : devices_) {
    if (device->error == Status::Ok) continue;
    scheduler_.finish_all(lock, *device);  // on a device in error, work is dropped and not done
    device->error = Status::Ok;
  }
  SimCounters fresh{};
  fresh.live_bytes = counters_.live_bytes;
  fresh.live_blocks = counters_.live_blocks;
  fresh.live_host_bytes = counters_.live_host_bytes;
  fresh.live_host_blocks = counters_.live_host_blocks;
  counters_ = fresh;
}

SimCounters Simulator::counters() {
  const Lock lock(mutex_);
  SimCounters all = counters_;
  all.live_streams = streams_.size();
  all.live_events = events_.size();
  all.live_modules = modules_.size();
  return all;
}

int Simulator::check() {
  const Lock lock(mutex_);
  return memory_.check(counters_.guard_hits);
}

long Simulator::pending(int device) {
  const Lock lock(mutex_);
  if (!has_device(device)) return 0;
  std::uint64_t pending = 0;
  for (const StreamRef& stream : devices_[device]->streams) {
    pending += stream->submitted - stream->completed;
  }
  return static_cast<long>(pending);
}

}  // namespace simgpu
