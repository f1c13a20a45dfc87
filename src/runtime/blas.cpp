#include "runtime/blas.h"

#include <map>
#include <memory>

#include "runtime/context.h"
#include "runtime/stream_state.h"
#include "tl/base/error.h"
#include "tl/runtime/raw_memory.h"

namespace tl {

namespace {

// Forms remembered at most; a program that goes through more starts again.
constexpr std::size_t kMostPlans = 4096;

}  // namespace

std::size_t Blas::Hash::operator()(const driver::BlasForm& f) const noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](std::uint64_t x) {
    hash = (hash ^ x) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  add(static_cast<std::uint64_t>(f.in) | static_cast<std::uint64_t>(f.out) << 8 |
      std::uint64_t{f.tf32} << 16 | std::uint64_t{f.transpose_a} << 17 |
      std::uint64_t{f.transpose_b} << 18 | std::uint64_t{f.accumulate} << 19 |
      std::uint64_t{f.bias} << 20);
  add(std::uint64_t{f.align_a} | std::uint64_t{f.align_b} << 16 | std::uint64_t{f.align_c} << 32);
  for (const std::int64_t x :
       {f.m, f.n, f.k, f.lda, f.ldb, f.ldc, f.batch, f.stride_a, f.stride_b, f.stride_c}) {
    add(static_cast<std::uint64_t>(x));
  }
  return hash;
}

Blas* Blas::open(const Device& device) {
  const driver::Found<driver::BlasTable>& found = driver::find_blas(device.kind());
  if (found.table == nullptr) return nullptr;
  const CurrentContext current(device.context());
  const driver::Handle native = found.table->create(device.properties());
  return native == nullptr ? nullptr : new Blas(*found.table, native);
}

Blas* Blas::of(const Device& device) {
  // Handles live as long as the contexts they belong to: for the whole process.
  struct All {
    std::mutex mutex;
    std::map<DeviceLocation, Blas*> opened;
  };
  static auto* const all = new All;
  const std::lock_guard lock(all->mutex);
  const auto [at, is_new] = all->opened.try_emplace(device.location(), nullptr);
  if (is_new) at->second = open(device);
  return at->second;
}

const Blas::Plan& Blas::plan_for(const driver::BlasForm& form) {
  if (const auto found = plans_.find(form); found != plans_.end()) return found->second;
  if (plans_.size() >= kMostPlans) {
    for (const auto& [key, plan] : plans_) {
      if (plan.native != nullptr) table_.forget(plan.native);
    }
    plans_.clear();
  }
  Plan plan;
  plan.native = table_.plan(native_, form, &plan.workspace_bytes);
  return plans_.emplace(form, plan).first->second;
}

bool Blas::multiply(const Device& device, const driver::BlasForm& form,
                    const driver::BlasOperands& operands) {
  Context& context = device.context();
  const Stream& stream = device.stream();
  const CurrentContext current(context);
  const std::lock_guard lock(mutex_);
  const Plan& plan = plan_for(form);
  if (plan.native == nullptr) return false;
  driver::BlasOperands at = operands;
  // Given back when the product is queued: the next user of this memory on the stream comes after.
  RawMemory workspace;
  if (plan.workspace_bytes > 0) {
    try {
      workspace = RawMemory(device, plan.workspace_bytes);
    } catch (const Error& error) {
      if (error.kind != ErrorKind::OutOfMemory) throw;
      return false;  // our own kernels need none
    }
    at.workspace = workspace.overwrite_data(stream);
    at.workspace_bytes = plan.workspace_bytes;
  }
  if (!table_.run(native_, plan.native, form, at, stream.native())) return false;
  count(context.counters().launches);
  return true;
}

}  // namespace tl
