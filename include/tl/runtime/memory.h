// Device memory with value semantics: copies share a block until one of them is written.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tl/base/error.h"
#include "tl/runtime/device.h"
#include "tl/runtime/host_buffer.h"
#include "tl/runtime/pending.h"
#include "tl/runtime/raw_memory.h"

namespace tl {

// `count` elements of T on one device.
//
// Copying shares the block: an atomic increment, whatever the size and the device. A write detaches
// first, so no other handle ever sees it. Two handles of one block may be used from two threads;
// one handle may not be changed by two threads at once, as with any value.
template <class T>
class DeviceMemory {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
  static_assert(!std::is_empty_v<T>, "an empty type has no bytes to store");

 public:
  using value_type = T;

  DeviceMemory() noexcept = default;  // no elements, on the CPU

  // Uninitialised. Throws OutOfMemory, Overflow, or BadArgument for a negative count.
  template <std::integral Count>
  DeviceMemory(const Device& device, Count count, Label label = Label::current())
      : DeviceMemory(Sized{}, device, checked_count(count), label) {}

  static DeviceMemory zeros(const Device& device, std::uint64_t count,
                            Label label = Label::current()) {
    DeviceMemory memory(device, count, label);
    memory.memset(0);
    return memory;
  }
  static DeviceMemory from_host(const Device& device, std::span<const T> values,
                                Label label = Label::current()) {
    DeviceMemory memory(device, values.size(), label);
    memory.copy_from_host(values);
    return memory;
  }

  DeviceMemory(const DeviceMemory&) noexcept = default;  // shares
  DeviceMemory& operator=(const DeviceMemory&) noexcept = default;
  DeviceMemory(DeviceMemory&& other) noexcept
      : raw_(std::move(other.raw_)), count_(std::exchange(other.count_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    raw_ = std::move(other.raw_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }
  ~DeviceMemory() = default;
  DeviceMemory clone() const noexcept { return *this; }

  // A copy of its own at once: a new block, even where sharing would do.
  DeviceMemory deep_copy() const {
    DeviceMemory copy(*this);
    copy.make_unique();
    return copy;
  }

  Device device() const { return raw_.device(); }
  DeviceLocation location() const noexcept { return raw_.location(); }
  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t size_bytes() const noexcept { return raw_.bytes(); }
  bool empty() const noexcept { return count_ == 0; }
  std::uint32_t use_count() const noexcept { return raw_.use_count(); }
  bool is_unique() const noexcept { return raw_.is_unique(); }
  bool shared() const noexcept { return !raw_.is_unique(); }
  // Changes whenever the address may have changed: captured graphs and descriptors compare it.
  std::uint64_t generation() const noexcept { return raw_.generation(); }
  const RawMemory& raw() const noexcept { return raw_; }
  RawMemory& raw() noexcept { return raw_; }

  // A device address; never detaches. Null when empty.
  const T* data() const noexcept { return reinterpret_cast<const T*>(raw_.data()); }
  const T* data(const Stream& stream) const {
    return reinterpret_cast<const T*>(raw_.data(stream));
  }
  // Detaches first, so siblings keep the old bytes. The write goes to `stream`.
  T* mutable_data(const Stream& stream) { return reinterpret_cast<T*>(raw_.mutable_data(stream)); }
  T* mutable_data() { return reinterpret_cast<T*>(raw_.mutable_data(own_stream())); }
  void make_unique() { raw_.make_unique(own_stream()); }

  // ---- copies that wait ----
  void copy_from_host(std::span<const T> values) {
    expect_count("copy_from_host", values.size());
    raw_.upload(0, values.data(), raw_.bytes());
  }
  void copy_from_host_at(std::uint64_t offset, std::span<const T> values) {
    expect_range("copy_from_host_at", offset, values.size());
    raw_.upload(offset * sizeof(T), values.data(), values.size_bytes());
  }
  void copy_to_host(std::span<T> values) const {
    expect_count("copy_to_host", values.size());
    raw_.download(0, values.data(), raw_.bytes());
  }
  void copy_to_host_at(std::uint64_t offset, std::span<T> values) const {
    expect_range("copy_to_host_at", offset, values.size());
    raw_.download(offset * sizeof(T), values.data(), values.size_bytes());
  }
  std::vector<T> to_vector() const {
    static_assert(!std::is_same_v<T, bool>, "read bool storage as std::uint8_t");
    std::vector<T> values(count_);
    copy_to_host(values);
    return values;
  }

  // ---- on the device ----
  void copy_from_device(const DeviceMemory& other) {
    expect_count("copy_from_device", other.count_);
    raw_.copy_from(other.raw_);
  }
  void memset(std::uint8_t byte) { raw_.fill(&byte, 1); }
  void fill(const T& value) { raw_.fill(&value, sizeof(T)); }

  // ---- copies that do not wait ----
  // The buffer moves into the pending copy when the copy was accepted, and stays with the caller
  // when it throws.
  PendingCopy<T> copy_from_host_async(HostBuffer<T>&& buffer, const Stream& stream) {
    expect_count("copy_from_host_async", buffer.count());
    Transfer transfer = Transfer::upload(raw_, buffer.raw(), stream);
    return PendingCopy<T>(std::move(transfer), std::move(buffer));
  }
  PendingRead<T> copy_to_host_async(HostBuffer<T>&& buffer, const Stream& stream) const {
    expect_count("copy_to_host_async", buffer.count());
    Transfer transfer = Transfer::download(raw_, buffer.raw(), stream);
    return PendingRead<T>(std::move(transfer), std::move(buffer));
  }

  // ---- views: share the block, never own a new one ----
  DeviceMemory slice(std::uint64_t offset, std::uint64_t count) const {
    expect_range("slice", offset, count);
    DeviceMemory part;
    part.raw_ = raw_.slice(offset * sizeof(T), count * sizeof(T));
    part.count_ = count;
    return part;
  }
  template <class U>
  DeviceMemory<U> reinterpret() const {
    if (raw_.bytes() % sizeof(U) != 0) {
      throw Error(ErrorKind::SizeMismatch, "reinterpret", raw_.bytes(),
                  " bytes do not divide into elements of ", sizeof(U));
    }
    if (reinterpret_cast<std::uintptr_t>(raw_.data()) % alignof(U) != 0) {
      throw Error(ErrorKind::BadArgument, "reinterpret", "the address is not aligned to ",
                  alignof(U), " bytes");
    }
    DeviceMemory<U> view;
    view.raw_ = raw_;
    view.count_ = raw_.bytes() / sizeof(U);
    return view;
  }

 private:
  template <class>
  friend class DeviceMemory;
  struct Sized {};

  DeviceMemory(Sized, const Device& device, std::uint64_t count, Label label)
      : raw_(device, checked_multiply("DeviceMemory", count, sizeof(T)), label), count_(count) {}

  template <std::integral Count>
  static std::uint64_t checked_count(Count count) {
    if constexpr (std::is_signed_v<Count>) {
      if (count < 0) {
        throw Error(ErrorKind::BadArgument, "DeviceMemory", "a count of ", count,
                    " elements is negative");
      }
    }
    return static_cast<std::uint64_t>(count);
  }
  void expect_count(std::string_view where, std::uint64_t actual) const {
    if (actual != count_) throw SizeMismatch(where, count_, actual);
  }
  void expect_range(std::string_view where, std::uint64_t offset, std::uint64_t length) const {
    if (offset > count_ || length > count_ - offset) {
      throw Error(ErrorKind::BadArgument, where, "elements ", offset, " to ", offset, " + ", length,
                  " are outside ", count_);
    }
  }
  Stream own_stream() const { return raw_.device().stream(); }

  RawMemory raw_;
  std::uint64_t count_ = 0;
};

}  // namespace tl
