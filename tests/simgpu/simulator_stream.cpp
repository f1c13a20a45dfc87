// Streams and events.
#include <algorithm>

#include "simulator.h"

namespace simgpu {

Status Simulator::create_stream(int device, Handle* out) {
  const Lock lock(mutex_);
  if (out == nullptr) return misuse(Status::InvalidValue);
  if (fails(Fault::StreamCreate)) return Status::OutOfMemory;
  auto stream = std::make_shared<Stream>(*devices_[device]);
  devices_[device]->streams.push_back(stream);
  *out = new_handle();
  streams_[*out] = std::move(stream);
  return Status::Ok;
}

Status Simulator::destroy_stream(int device, Handle stream) {
  Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue || stream == 0) return misuse(Status::InvalidHandle);
  streams_.erase(stream);
  scheduler_.retire(lock, queue);
  std::erase(devices_[device]->streams, queue);
  return Status::Ok;
}

Status Simulator::synchronize_stream(int device, Handle stream) {
  Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  if (fails(Fault::Sync)) return Status::LaunchFailed;
  scheduler_.finish(lock, queue);
  return devices_[device]->error;
}

Status Simulator::query_stream(int device, Handle stream) {
  Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  if (scheduler_.idle(*queue)) return devices_[device]->error;
  scheduler_.nudge(lock, *queue);
  return Status::NotReady;
}

Status Simulator::wait_event(int device, Handle stream, Handle event) {
  const Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  // The event may be another device's: that is what it is for.
  const auto found = events_.find(event);
  if (!queue || found == events_.end()) return misuse(Status::InvalidHandle);
  if (!found->second.latest) return Status::Ok;
  Item item;
  item.wait = found->second.latest;
  scheduler_.submit(queue, std::move(item));
  return Status::Ok;
}

Status Simulator::synchronize_device(int device) {
  Lock lock(mutex_);
  if (fails(Fault::Sync)) return Status::LaunchFailed;
  scheduler_.finish_all(lock, *devices_[device]);
  return devices_[device]->error;
}

Status Simulator::create_event(int device, bool timing, Handle* out) {
  const Lock lock(mutex_);
  if (out == nullptr) return misuse(Status::InvalidValue);
  if (fails(Fault::EventCreate)) return Status::OutOfMemory;
  *out = new_handle();
  events_[*out] = {device, timing, nullptr};
  return Status::Ok;
}

Status Simulator::destroy_event(int device, Handle event) {
  const Lock lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end() || found->second.device != device) {
    return misuse(Status::InvalidHandle);
  }
  events_.erase(found);  // waits that are queued keep the marker
  return Status::Ok;
}

Status Simulator::record_event(int device, Handle event, Handle stream) {
  const Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  const auto found = events_.find(event);
  if (!queue || found == events_.end() || found->second.device != device) {
    return misuse(Status::InvalidHandle);
  }
  if (fails(Fault::EventRecord)) return Status::LaunchFailed;
  auto marker = std::make_shared<Marker>();
  marker->stream = queue.get();
  found->second.latest = marker;
  Item item;
  item.signal = std::move(marker);
  scheduler_.submit(queue, std::move(item));
  return Status::Ok;
}

Status Simulator::query_event(Handle event) {
  Lock lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return misuse(Status::InvalidHandle);
  const MarkerRef marker = found->second.latest;
  Device& device = *devices_[found->second.device];
  if (device.error != Status::Ok || !marker || scheduler_.passed(*marker)) return device.error;
  scheduler_.nudge(lock, *marker->stream);
  return Status::NotReady;
}

Status Simulator::synchronize_event(Handle event) {
  Lock lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return misuse(Status::InvalidHandle);
  const MarkerRef marker = found->second.latest;
  Device& device = *devices_[found->second.device];
  if (device.error != Status::Ok) return device.error;
  if (fails(Fault::Sync)) return Status::LaunchFailed;
  if (marker) scheduler_.finish(lock, marker);
  return device.error;
}

Status Simulator::elapsed_time(Handle start, Handle end, float* milliseconds) {
  const Lock lock(mutex_);
  const auto first = events_.find(start);
  const auto second = events_.find(end);
  if (first == events_.end() || second == events_.end() || !first->second.timing ||
      !second->second.timing || !first->second.latest || !second->second.latest) {
    return misuse(Status::InvalidHandle);
  }
  if (milliseconds == nullptr) return misuse(Status::InvalidValue);
  const Marker& from = *first->second.latest;
  const Marker& to = *second->second.latest;
  if (!from.passed || !to.passed) return Status::NotReady;
  *milliseconds = static_cast<float>(static_cast<double>(to.nanoseconds - from.nanoseconds) * 1e-6);
  return Status::Ok;
}

}  // namespace simgpu
