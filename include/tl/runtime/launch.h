// Launching kernels.
//
//   launch(function, stream, {.grid = {blocks}, .block = {256}}, in(x), out(y), count);
//
// Memory is passed by what the kernel does with it; everything else by value, with the exact type
// of the kernel's parameter. An input keeps its block alive and never detaches. An output detaches,
// so a kernel that gets the same handle as input and output reads the old bytes and writes new
// ones; a kernel that works in place gets inout() alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tl/runtime/device.h"
#include "tl/runtime/memory.h"
#include "tl/runtime/module_store.h"
#include "tl/runtime/stream.h"

namespace tl {

struct LaunchSize {
  std::array<std::uint32_t, 3> values{1, 1, 1};
  LaunchSize() = default;
  LaunchSize(std::uint64_t x, std::uint64_t y = 1, std::uint64_t z = 1);  // throws when too large
};

struct LaunchShape {
  LaunchSize grid;   // blocks; a zero means nothing to do, and nothing is launched
  LaunchSize block;  // threads
  std::uint32_t shared_bytes = 0;
  // All blocks are resident at once and may wait for each other. Where the device cannot
  // (can_launch_together()), the launch is refused.
  bool together = false;
};

bool can_launch_together(const Device& device) noexcept;

// Lets a function be launched with that much dynamic shared memory, where it is more than every
// function has. False where the device has no more to give.
bool allow_shared_bytes(const Device& device, const Function& function, std::uint32_t bytes);

// Blocks of `threads` for `elements`, at most `most`: kernels loop over what is left.
LaunchSize grid_for(std::uint64_t elements, std::uint32_t threads, std::uint32_t most = 1U << 20);

enum class ArgumentUse : std::uint8_t { Input, Output, InOut };

template <class T>
class MemoryArgument {
 public:
  // Takes its reference at once, before any output of the same launch detaches.
  explicit MemoryArgument(const DeviceMemory<T>& memory) : input_(memory.raw()) {}
  MemoryArgument(DeviceMemory<T>& memory, ArgumentUse use) : output_(&memory.raw()), use_(use) {}

  void* resolve(const Stream& stream) {
    switch (use_) {
      case ArgumentUse::Input:
        address_ = input_.data(stream);
        break;
      case ArgumentUse::Output:
        address_ = output_->overwrite_data(stream);
        break;
      case ArgumentUse::InOut:
        address_ = output_->mutable_data(stream);
        break;
    }
    return &address_;
  }

 private:
  RawMemory input_;
  RawMemory* output_ = nullptr;
  ArgumentUse use_ = ArgumentUse::Input;
  const void* address_ = nullptr;
};

template <class T>
MemoryArgument<T> in(const DeviceMemory<T>& memory) {
  return MemoryArgument<T>(memory);
}
// The kernel writes every element; what was there is not kept.
template <class T>
MemoryArgument<T> out(DeviceMemory<T>& memory) {
  return {memory, ArgumentUse::Output};
}
// The kernel writes some elements, or reads what it writes.
template <class T>
MemoryArgument<T> inout(DeviceMemory<T>& memory) {
  return {memory, ArgumentUse::InOut};
}

// The driver call. `arguments` are pointers to the values.
void launch_raw(const Function& function, const Stream& stream, const LaunchShape& shape,
                void** arguments);

namespace detail {

template <class T>
void* resolve_argument(MemoryArgument<T>& argument, const Stream& stream) {
  return argument.resolve(stream);
}
template <class T>
void* resolve_argument(T& value, const Stream& /*stream*/) {
  static_assert(std::is_trivially_copyable_v<T>, "kernel arguments are copied as bytes");
  return const_cast<std::remove_const_t<T>*>(&value);
}

}  // namespace detail

template <class... Arguments>
void launch(const Function& function, const Stream& stream, const LaunchShape& shape,
            Arguments&&... arguments) {
  std::array<void*, sizeof...(Arguments) + 1> pointers{
      detail::resolve_argument(arguments, stream)..., nullptr};
  launch_raw(function, stream, shape, pointers.data());
}

}  // namespace tl
