// Ops on one row, as programs with transformers of their own do them for every token: a GPU is
// given many of them at a time (model/gpu/row_queue.h).
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "lang/builtin.h"
#include "model/gpu/row_queue.h"

namespace tl::lang {

// What a program has put off, for each GPU; it belongs to a context and goes with it.
class RowWork {
 public:
  gpu::RowQueue* queue(const Device& device);          // null where there is none
  gpu::RowQueue* waiting(DeviceLocation place) const;  // null where nothing waits
  // Nothing waits any more, and no memory is kept for it.
  void clear();

 private:
  std::map<std::tuple<DeviceKind, int>, std::unique_ptr<gpu::RowQueue>> queues_;
};

// Where the op that begins with `x` may be put off; null for CPUs and for many rows.
gpu::RowQueue* row_queue(Context& context, const tl::Tensor& x);
// The same for ops that only go after others.
inline gpu::RowQueue* waiting_rows(const Context& context, const tl::Tensor& x) {
  return context.rows == nullptr ? nullptr : context.rows->waiting(x.location());
}

}  // namespace tl::lang
