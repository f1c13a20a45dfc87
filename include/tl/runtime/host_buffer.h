// A host buffer for transfers: pinned, so that the device can copy while the CPU goes on, or
// pageable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "tl/base/error.h"
#include "tl/runtime/block.h"
#include "tl/runtime/device.h"

namespace tl {

class RawHostBuffer {
 public:
  static RawHostBuffer pinned(const Device& device, std::uint64_t bytes);
  static RawHostBuffer pageable(std::uint64_t bytes);

  RawHostBuffer() noexcept = default;
  RawHostBuffer(RawHostBuffer&& other) noexcept
      : block_(std::move(other.block_)),
        heap_(std::move(other.heap_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  RawHostBuffer& operator=(RawHostBuffer&& other) noexcept {
    block_ = std::move(other.block_);
    heap_ = std::move(other.heap_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  std::byte* data() const noexcept { return data_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  bool is_pinned() const noexcept { return static_cast<bool>(block_); }

 private:
  BlockRef block_;                     // pinned: from the device's host pool
  std::unique_ptr<std::byte[]> heap_;  // pageable
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Move-only; a transfer takes it and gives it back. Uninitialised when made by count.
template <class T>
class HostBuffer {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_empty_v<T>);

 public:
  HostBuffer() noexcept = default;
  HostBuffer(const Device& device, std::uint64_t count)
      : raw_(RawHostBuffer::pinned(device, checked_multiply("host buffer", count, sizeof(T)))),
        count_(count) {}
  HostBuffer(const Device& device, std::span<const T> values) : HostBuffer(device, values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  static HostBuffer pageable(std::uint64_t count) {
    HostBuffer buffer;
    buffer.raw_ = RawHostBuffer::pageable(checked_multiply("host buffer", count, sizeof(T)));
    buffer.count_ = count;
    return buffer;
  }
  HostBuffer(HostBuffer&& other) noexcept
      : raw_(std::move(other.raw_)), count_(std::exchange(other.count_, 0)) {}
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    raw_ = std::move(other.raw_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }

  T* data() noexcept { return reinterpret_cast<T*>(raw_.data()); }
  const T* data() const noexcept { return reinterpret_cast<const T*>(raw_.data()); }
  std::uint64_t count() const noexcept { return count_; }
  bool is_pinned() const noexcept { return raw_.is_pinned(); }
  std::span<T> span() noexcept { return {data(), count_}; }
  std::span<const T> span() const noexcept { return {data(), count_}; }
  T& operator[](std::uint64_t i) noexcept { return data()[i]; }
  const T& operator[](std::uint64_t i) const noexcept { return data()[i]; }
  RawHostBuffer& raw() noexcept { return raw_; }

 private:
  RawHostBuffer raw_;
  std::uint64_t count_ = 0;
};

}  // namespace tl
