#include "tl/runtime/host_buffer.h"

#include <new>

#include "runtime/context.h"
#include "runtime/pool.h"

namespace tl {

RawHostBuffer RawHostBuffer::pinned(const Device& device, std::uint64_t bytes) {
  RawHostBuffer buffer;
  if (bytes == 0) return buffer;
  Context& context = device.context();
  buffer.block_ = BlockRef::adopt(
      context.host_pool().take(bytes, context.default_stream(), nullptr, Label::current()));
  buffer.data_ = buffer.block_->address;
  buffer.bytes_ = bytes;
  return buffer;
}

RawHostBuffer RawHostBuffer::pageable(std::uint64_t bytes) {
  RawHostBuffer buffer;
  if (bytes == 0) return buffer;
  buffer.heap_.reset(new (std::nothrow) std::byte[bytes]);
  if (buffer.heap_ == nullptr) {
    const MemoryInfo info = Device::cpu().memory_info();
    throw OutOfMemory("host buffer", "cpu", bytes, info.free, info.total, 0);
  }
  buffer.data_ = buffer.heap_.get();
  buffer.bytes_ = bytes;
  return buffer;
}

}  // namespace tl
