#include "lang/row_work.h"

namespace tl::lang {

namespace {

std::tuple<DeviceKind, int> key(DeviceLocation place) { return {place.kind, place.index}; }

}  // namespace

gpu::RowQueue* RowWork::queue(const Device& device) {
  const auto [at, is_new] = queues_.try_emplace(key(device.location()));
  if (is_new) at->second = gpu::RowQueue::make(device);
  return at->second.get();
}

gpu::RowQueue* RowWork::waiting(DeviceLocation place) const {
  if (place.is_cpu()) return nullptr;
  const auto at = queues_.find(key(place));
  const bool waits = at != queues_.end() && at->second != nullptr && at->second->size() > 0;
  return waits ? at->second.get() : nullptr;
}

void RowWork::clear() {
  for (const auto& [place, queue] : queues_) {
    if (queue != nullptr) queue->finish();
  }
  queues_.clear();
}

gpu::RowQueue* row_queue(Context& context, const tl::Tensor& x) {
  if (x.location().is_cpu()) return nullptr;
  if (context.rows == nullptr) context.rows = std::make_shared<RowWork>();
  return context.rows->queue(x.device());
}

}  // namespace tl::lang
