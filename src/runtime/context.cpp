#include "runtime/context.h"

#include <array>
#include <map>
#include <utility>

#include "runtime/contexts.h"
#include "runtime/pool.h"
#include "runtime/stream_state.h"
#include "tl/base/error.h"
#include "tl/runtime/module_store.h"
#include "tl/runtime/report.h"

namespace tl {

namespace {

// Contexts are never destroyed: memory may be given back as late as during static destruction, and
// drivers clean up after a process anyway.
struct Registry {
  std::mutex mutex;
  std::map<DeviceLocation, Context*> contexts;
};

Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

struct HookHolder {
  std::mutex mutex;
  ErrorHook hook;
};

HookHolder& hook_holder() {
  static auto* const holder = new HookHolder;
  return *holder;
}

}  // namespace

DriverCalls DriverCounters::read() const noexcept {
  const auto value = [](const Counter& c) { return c.load(std::memory_order_relaxed); };
  return {.allocations = value(allocations),
          .frees = value(frees),
          .host_allocations = value(host_allocations),
          .host_frees = value(host_frees),
          .uploads = value(uploads),
          .downloads = value(downloads),
          .device_copies = value(device_copies),
          .fills = value(fills),
          .launches = value(launches),
          .module_loads = value(module_loads),
          .module_unloads = value(module_unloads),
          .events = value(events),
          .synchronizations = value(synchronizations)};
}

Context& Context::get(DeviceLocation location) {
  const driver::Found<driver::Table>& found = driver::find(location.kind);
  if (found.table == nullptr) {
    throw Error(ErrorKind::DriverMissing, location.text(), found.reason);
  }
  if (location.index < 0 || location.index >= found.table->device_count) {
    throw NoSuchDevice("device", name(location.kind), location.index, found.table->device_count);
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (const auto at = all.contexts.find(location); at != all.contexts.end()) return *at->second;
  std::unique_ptr<Context, void (*)(Context*)> made(new Context(location, *found.table),
                                                    [](Context* c) { delete c; });
  all.contexts.emplace(location, made.get());
  return *made.release();
}

std::vector<Context*> opened_contexts() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<Context*> out;
  for (const auto& [location, context] : all.contexts) out.push_back(context);
  return out;
}

Context::Context(DeviceLocation location, const driver::Table& table)
    : location_(location), table_(table) {
  const std::string where = location_.text();
  check(table_.open_device(location_.index, &native_), where);
  check(table_.properties(location_.index, &properties_), where);
  pool_ = std::make_unique<Pool>(*this, Pool::Memory::Device);
  host_pool_ = std::make_unique<Pool>(*this, Pool::Memory::PinnedHost);
  modules_ = std::make_unique<ModuleStore>(*this);
  // Made last: a stream registers with the pool.
  // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer)
  default_stream_ = StreamState::create(*this);
}

Context::~Context() = default;

MemoryInfo Context::memory_info() {
  const CurrentContext current(*this);
  std::size_t free = 0;
  std::size_t total = 0;
  check(table_.memory_info(&free, &total), "memory info");
  return {free, total};
}

driver::Handle Context::acquire_event(std::string_view where) {
  {
    const std::lock_guard lock(event_mutex_);
    if (!free_events_.empty()) {
      driver::Handle event = free_events_.back();
      free_events_.pop_back();
      return event;
    }
    free_events_.reserve(events_made_ + 1);  // so that release_event never allocates
    ++events_made_;
  }
  driver::Handle event = nullptr;
  const driver::Status status = table_.create_event(&event, /*timing=*/false);
  if (status != driver::kSuccess) {
    const std::lock_guard lock(event_mutex_);
    --events_made_;
  }
  check(status, where);
  return event;
}

void Context::release_event(driver::Handle event) noexcept {
  const std::lock_guard lock(event_mutex_);
  free_events_.push_back(event);
}

void Context::defer_stream_release(StreamState* stream) noexcept {
  const std::lock_guard lock(deferred_mutex_);
  if (stream->deferred_releases++ == 0) {
    stream->next_deferred = deferred_.load(std::memory_order_relaxed);
    deferred_.store(stream, std::memory_order_release);
  }
}

void Context::release_deferred_streams() noexcept {
  if (deferred_.load(std::memory_order_acquire) == nullptr) return;
  while (true) {
    StreamState* stream = nullptr;
    std::uint32_t times = 0;
    {
      const std::lock_guard lock(deferred_mutex_);
      stream = deferred_.load(std::memory_order_relaxed);
      if (stream == nullptr) return;
      deferred_.store(stream->next_deferred, std::memory_order_relaxed);
      stream->next_deferred = nullptr;
      times = std::exchange(stream->deferred_releases, 0);
    }
    for (; times > 0; --times) stream->remove();
  }
}

void Context::fail(driver::Status status, std::string_view where) {
  const bool gone = driver::means_lost(status);
  if (gone) lost_.store(true, std::memory_order_relaxed);
  if (status == driver::kOutOfMemory) {
    throw OutOfMemory(where, location_.text(), 0, 0, properties_.total_memory, 0);
  }
  throw DeviceFault(gone ? ErrorKind::DeviceLost : ErrorKind::Device, where, location_.text(),
                    status, table_.error_text(status));
}

void Context::note_failure(driver::Status status, std::string_view where) noexcept {
  if (status == driver::kSuccess) return;
  if (driver::means_lost(status)) lost_.store(true, std::memory_order_relaxed);
  failures_.fetch_add(1, std::memory_order_relaxed);
  try {
    ErrorHook hook;
    {
      const std::lock_guard lock(hook_holder().mutex);
      hook = hook_holder().hook;
    }
    if (hook) {
      hook(DeviceFault(driver::means_lost(status) ? ErrorKind::DeviceLost : ErrorKind::Device,
                       where, location_.text(), status, table_.error_text(status)));
    }
  } catch (...) {  // a hook that throws, or no memory to describe the failure: it is counted
    failures_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Context::require_alive(std::string_view where) const {
  if (lost()) [[unlikely]] {
    throw Error(ErrorKind::DeviceLost, where, location_.text(),
                " was lost by an earlier failure; it cannot be used again in this process");
  }
}

ErrorHook set_error_hook(ErrorHook hook) {
  const std::lock_guard lock(hook_holder().mutex);
  return std::exchange(hook_holder().hook, std::move(hook));
}

CurrentContext::CurrentContext(Context& context) : table_(context.table()) {
  context.check(table_.get_current(&previous_), "select device");
  if (previous_ != context.native()) {
    context.check(table_.set_current(context.native()), "select device");
    changed_ = previous_ != nullptr;
  }
}

CurrentContext::~CurrentContext() {
  if (changed_) table_.set_current(previous_);
}

}  // namespace tl
