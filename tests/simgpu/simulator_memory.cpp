// Allocating, freeing, copying and filling.
//
// Ranges are checked when a copy is queued, against one live block of the right device, and again
// when it runs.
#include <cstring>
#include <new>

#include "simulator.h"

namespace simgpu {
namespace {

std::byte* bytes_at(void* address) { return static_cast<std::byte*>(address); }

bool overlap(const void* a, const void* b, std::size_t bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a);
  const auto y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + bytes && y < x + bytes;
}

Item::Work copy_work(void* to, const void* from, std::size_t bytes) {
  return [=] {
    std::memcpy(to, from, bytes);
    return Status::Ok;
  };
}

}  // namespace

Status Simulator::take_memory(Lock& lock, int device, std::size_t bytes, Stream* reuse,
                              void** out) {
  Device& target = *devices_[device];
  if (out == nullptr || bytes == 0) return misuse(Status::InvalidValue);
  if (fails(Fault::Alloc)) return Status::OutOfMemory;
  // What was freed earlier in the stream may serve what is allocated later in it.
  if (reuse != nullptr && bytes > settings_.memory - target.live_bytes) {
    for (const StreamRef& stream : std::vector<StreamRef>(target.streams)) {
      if (stream.get() == reuse) scheduler_.finish(lock, stream);
    }
  }
  if (bytes > settings_.memory - target.live_bytes) return Status::OutOfMemory;
  try {
    *out = memory_.allocate(device, bytes)->begin();
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory;
  }
  target.live_bytes += bytes;
  counters_.live_bytes += bytes;
  ++counters_.live_blocks;
  ++counters_.allocs;
  return Status::Ok;
}

void Simulator::give_back(const BlockRef& block) {
  memory_.release(block, counters_.guard_hits);
  devices_[block->device()]->live_bytes -= block->size();
  counters_.live_bytes -= block->size();
  --counters_.live_blocks;
  ++counters_.frees;
}

Status Simulator::allocate(int device, std::size_t bytes, void** out) {
  Lock lock(mutex_);
  return take_memory(lock, device, bytes, nullptr, out);
}

Status Simulator::allocate_async(int device, std::size_t bytes, Handle stream, void** out) {
  Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  return take_memory(lock, device, bytes, queue.get(), out);
}

Status Simulator::free(int device, void* address) {
  Lock lock(mutex_);
  if (const BlockRef block = range_of(device, address, 0);
      !block || block->begin() != address || !block->owned()) {
    return misuse(Status::InvalidValue);
  }
  scheduler_.finish_all(lock, *devices_[device]);
  // Looked up again: the queue may have held a free of the same block, or another thread was
  // faster.
  const BlockRef block = range_of(device, address, 0);
  if (!block || block->begin() != address) return misuse(Status::InvalidValue);
  give_back(block);
  return devices_[device]->error;
}

Status Simulator::free_async(int device, void* address, Handle stream) {
  const Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  const BlockRef block = range_of(device, address, 0);
  if (!block || block->begin() != address || !block->owned() || block->free_queued) {
    return misuse(Status::InvalidValue);
  }
  block->free_queued = true;
  Item item;
  item.bookkeeping = [this, block] { give_back(block); };
  scheduler_.submit(queue, std::move(item));
  return Status::Ok;
}

Status Simulator::host_allocate(std::size_t bytes, void** out) {
  const Lock lock(mutex_);
  if (out == nullptr || bytes == 0) return misuse(Status::InvalidValue);
  if (fails(Fault::HostAlloc)) return Status::OutOfMemory;
  try {
    *out = memory_.allocate(kHostMemory, bytes)->begin();
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory;
  }
  counters_.live_host_bytes += bytes;
  ++counters_.live_host_blocks;
  ++counters_.host_allocs;
  return Status::Ok;
}

// Does not wait for copies that use the memory: they find out when they run.
Status Simulator::host_free(void* address) {
  const Lock lock(mutex_);
  const BlockRef block = range_of(kHostMemory, address, 0);
  if (!block || block->begin() != address) return misuse(Status::InvalidValue);
  memory_.release(block, counters_.guard_hits);
  counters_.live_host_bytes -= block->size();
  --counters_.live_host_blocks;
  ++counters_.host_frees;
  return Status::Ok;
}

Status Simulator::copy_to_device(int device, void* to, const void* from, std::size_t bytes,
                                 Handle stream) {
  const Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  if (bytes == 0) return Status::Ok;
  const BlockRef target = range_of(device, to, bytes);
  const BlockRef source = memory_.at(from);
  const bool pageable = source == nullptr;
  if (!target || from == nullptr) return misuse(Status::InvalidValue);
  if (!pageable && !range_of(kHostMemory, from, bytes)) return misuse(Status::InvalidValue);
  if (fails(Fault::Copy)) return Status::LaunchFailed;

  Item item;
  item.uses = {target};
  if (pageable) {
    // A real driver stages such memory before the call returns.
    const auto* begin = static_cast<const std::byte*>(from);
    item.do_work([to, staged = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
      return Status::Ok;
    });
  } else {
    item.uses.push_back(source);
    item.do_work(copy_work(to, from, bytes));
  }
  scheduler_.submit(queue, std::move(item));
  ++counters_.htod;
  return Status::Ok;
}

Status Simulator::copy_to_host(int device, void* to, const void* from, std::size_t bytes,
                               Handle stream) {
  Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  if (bytes == 0) return Status::Ok;
  const BlockRef source = range_of(device, from, bytes);
  const BlockRef target = memory_.at(to);
  const bool pageable = target == nullptr;
  if (!source || to == nullptr) return misuse(Status::InvalidValue);
  if (!pageable && !range_of(kHostMemory, to, bytes)) return misuse(Status::InvalidValue);
  if (fails(Fault::Copy)) return Status::LaunchFailed;

  Item item;
  item.uses = {source};
  if (!pageable) item.uses.push_back(target);
  item.do_work(copy_work(to, from, bytes));
  scheduler_.submit(queue, std::move(item));
  ++counters_.dtoh;
  // Into pageable memory the call returns when the copy is done.
  if (pageable) scheduler_.finish(lock, queue);
  return devices_[device]->error;
}

Status Simulator::copy_on_device(int device, void* to, const void* from, std::size_t bytes,
                                 Handle stream) {
  const Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  if (bytes == 0) return Status::Ok;
  Item item;
  item.uses = {range_of(device, to, bytes), range_of(device, from, bytes)};
  if (!item.uses[0] || !item.uses[1] || overlap(to, from, bytes)) {
    return misuse(Status::InvalidValue);
  }
  if (fails(Fault::Copy)) return Status::LaunchFailed;
  item.do_work(copy_work(to, from, bytes));
  scheduler_.submit(queue, std::move(item));
  ++counters_.dtod;
  return Status::Ok;
}

Status Simulator::copy_peer(int device, void* to, int to_device, const void* from, int from_device,
                            std::size_t bytes, Handle stream) {
  const Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  for (const int end : {to_device, from_device}) {
    if (devices_[end]->error != Status::Ok) return devices_[end]->error;
  }
  if (bytes == 0) return Status::Ok;
  Item item;
  item.uses = {range_of(to_device, to, bytes), range_of(from_device, from, bytes)};
  if (!item.uses[0] || !item.uses[1] || overlap(to, from, bytes)) {
    return misuse(Status::InvalidValue);
  }
  if (fails(Fault::Copy)) return Status::LaunchFailed;
  item.do_work(copy_work(to, from, bytes));
  scheduler_.submit(queue, std::move(item));
  ++counters_.peer;
  return Status::Ok;
}

Status Simulator::fill(int device, void* to, unsigned value, unsigned width, std::size_t count,
                       Handle stream) {
  const Lock lock(mutex_);
  const StreamRef queue = stream_of(device, stream);
  if (!queue) return misuse(Status::InvalidHandle);
  if (count == 0) return Status::Ok;
  if (count > SIZE_MAX / width || reinterpret_cast<std::uintptr_t>(to) % width != 0) {
    return misuse(Status::InvalidValue);
  }
  Item item;
  item.uses = {range_of(device, to, count * width)};
  if (!item.uses[0]) return misuse(Status::InvalidValue);
  if (fails(Fault::Fill)) return Status::LaunchFailed;
  item.do_work([=] {
    if (width == 1) {
      std::memset(to, static_cast<int>(value), count);
    } else {
      for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes_at(to) + i * width, &value, width);
    }
    return Status::Ok;
  });
  scheduler_.submit(queue, std::move(item));
  ++counters_.fills;
  return Status::Ok;
}

}  // namespace simgpu
