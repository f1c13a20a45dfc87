// Writing into a tensor that others may share memory with: only the tensor written to changes.
#pragma once

#include <memory>
#include <utility>

#include "tl/tensor/tensor.h"

namespace tl::ops {

// What the history of `x` needs to know of it after a write: all but its memory, which would then
// have two owners, and the write would go to new memory.
inline Tensor without_memory(Tensor x) {
  x.memory() = RawMemory();
  return x;
}

// Calls write(target) with a view of `x`. Where others see the memory too, the write detaches; it
// then takes along what lies between the first and the last element of `x`, and no more. When
// something is thrown, `x` is as it was.
template <class F>
void write_part(Tensor& x, Layout part, F&& write) {
  const std::shared_ptr<const History> history = x.history();
  const auto size = size_of(x.dtype());
  const auto extent = static_cast<std::uint64_t>(x.layout().extent()) * size;
  if (!x.memory().is_unique() && extent < x.memory().bytes()) {
    const std::int64_t start = x.layout().offset();
    part = Layout(part.shape(), part.strides(), part.offset() - start);
    x = Tensor::from_memory(x.memory().slice(static_cast<std::uint64_t>(start) * size, extent),
                            x.dtype(), {x.shape(), x.strides(), 0});
  }
  if (x.has_history()) x = x.detach();  // it is another value now
  Tensor target = x.with_layout(part);
  x.memory() = RawMemory();  // so that the target can be the only owner
  try {
    std::forward<F>(write)(target);
  } catch (...) {
    x.memory() = std::move(target.memory());
    if (history != nullptr) x = x.with_history(history);
    throw;
  }
  x.memory() = std::move(target.memory());
}

// The same for a write of every element. Nothing old survives it, so where others see the memory,
// or elements of `x` share a place, it goes to new memory without gaps.
template <class F>
void write_whole(Tensor& x, F&& write) {
  if (x.memory().is_unique() && !x.layout().overlaps()) {
    write_part(x, x.layout(), std::forward<F>(write));
    return;
  }
  const LabelScope same{x.memory().label()};
  Tensor fresh = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  std::forward<F>(write)(fresh);
  x = std::move(fresh);
}

}  // namespace tl::ops
