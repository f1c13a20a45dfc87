#include "tl/runtime/stream.h"

#include <memory>

#include "runtime/context.h"
#include "runtime/pool.h"
#include "runtime/stream_state.h"
#include "tl/base/error.h"

namespace tl {

// ---- StreamState

StreamState* StreamState::create(Context& context) {
  context.require_alive("new stream");
  driver::Handle native = nullptr;
  const CurrentContext current(context);
  context.check(context.table().create_stream(&native), "new stream");
  std::unique_ptr<StreamState> state;
  try {
    state = std::make_unique<StreamState>(context, native, /*is_borrowed=*/false);
    context.pool().add_stream(*state);
  } catch (...) {
    context.note_failure(context.table().destroy_stream(native), "new stream");
    throw;
  }
  return state.release();
}

void StreamState::retire() noexcept {
  try {
    const CurrentContext current(context);
    context.note_failure(context.table().synchronize_stream(bare()), "end of a borrowed stream");
  } catch (const Error&) {
    // The context cannot be selected: the device is gone, and its work with it.
  }
  retired.store(true, std::memory_order_release);
}

namespace {

constexpr std::size_t kArrivalBytes = Stream::kArrivals * sizeof(std::uint32_t);

}  // namespace

void StreamState::free_arrivals() noexcept {
  std::uint32_t* const zeros = arrivals.exchange(nullptr, std::memory_order_acquire);
  if (zeros == nullptr) return;
  count(context.counters().frees);
  context.note_failure(context.table().free(zeros, kArrivalBytes + Stream::kScratch),
                       "end of a stream");
}

void StreamState::destroy(StreamState* state) noexcept {
  Context& context = state->context;
  try {
    const CurrentContext current(context);
    if (!state->is_retired()) {
      // The memory that was safe in this stream's order goes to the default stream, so this order
      // has to end first.
      context.note_failure(context.table().synchronize_stream(state->bare()), "end of a stream");
    }
    state->free_arrivals();
    context.pool().remove_stream(*state, context.default_stream());
    if (!state->borrowed) {
      context.note_failure(context.table().destroy_stream(state->bare()), "end of a stream");
    }
  } catch (const Error&) {
    // The context cannot be selected: the device is gone, and so is its stream.
    context.pool().remove_stream(*state, context.default_stream());
  }
  delete state;
}

// ---- Stream

Stream Stream::borrow(DeviceLocation location, void* native) {
  Context& context = Context::get(location);
  auto state = std::make_unique<StreamState>(context, native, /*is_borrowed=*/true);
  context.pool().add_stream(*state);
  return adopt(state.release());
}

Stream::Stream(StreamState* state) noexcept : state_(state) {
  state_->add();
  state_->add_handle();
}
Stream::Stream(const Stream& other) noexcept : state_(other.state_) {
  if (state_ == nullptr) return;
  state_->add();
  state_->add_handle();
}
Stream::~Stream() {
  if (state_ == nullptr) return;
  state_->remove_handle();
  state_->remove();
}

Stream Stream::adopt(StreamState* state) noexcept {
  Stream stream;
  stream.state_ = state;
  state->add_handle();
  return stream;
}

DeviceLocation Stream::location() const noexcept { return state_->context.location(); }
void* Stream::native() const { return state_->native(); }

void Stream::synchronize() {
  Context& context = state_->context;
  const CurrentContext current(context);
  count(context.counters().synchronizations);
  context.check(context.table().synchronize_stream(state_->native()), "synchronize");
  context.check_fault();
}

bool Stream::finished() const {
  Context& context = state_->context;
  const CurrentContext current(context);
  const driver::Status status = context.table().query_stream(state_->native());
  if (status == driver::kNotReady) return false;
  context.check(status, "stream");
  return true;
}

Event Stream::record(bool timing) {
  Context& context = state_->context;
  const CurrentContext current(context);
  driver::Handle native = nullptr;
  if (timing) {
    context.check(context.table().create_event(&native, true), "event");
  } else {
    native = context.acquire_event("event");
  }
  Event event(context, native, timing);
  count(context.counters().events);
  context.check(context.table().record_event(native, state_->native()), "event");
  return event;
}

std::uint32_t* Stream::arrivals() const {
  StreamState& state = *state_;
  if (auto* made = state.arrivals.load(std::memory_order_acquire); made != nullptr) return made;
  Context& context = state.context;
  if (context.location().is_cpu()) return nullptr;
  const std::lock_guard lock(state.arrivals_mutex);
  if (auto* made = state.arrivals.load(std::memory_order_relaxed); made != nullptr) return made;
  const CurrentContext current(context);
  const driver::Table& table = context.table();
  constexpr std::size_t kBytes = kArrivalBytes + kScratch;
  void* zeros = nullptr;
  const driver::Status status = table.allocate(&zeros, kBytes);
  if (status == driver::kOutOfMemory) return nullptr;
  context.check(status, "arrival counters");
  count(context.counters().allocations);
  const driver::Status filled = table.fill8(zeros, 0, kBytes, state.bare());
  if (filled != driver::kSuccess) {
    count(context.counters().frees);
    context.note_failure(table.free(zeros, kBytes), "arrival counters");
  }
  context.check(filled, "arrival counters");
  state.arrivals.store(static_cast<std::uint32_t*>(zeros), std::memory_order_release);
  return static_cast<std::uint32_t*>(zeros);
}

std::byte* Stream::scratch() const {
  std::uint32_t* const zeros = arrivals();
  return zeros == nullptr ? nullptr : reinterpret_cast<std::byte*>(zeros + kArrivals);
}

void Stream::wait(const Event& event) {
  if (event.context().location().kind != location().kind) {
    throw Error(ErrorKind::WrongDevice, "stream", "a stream of ", location(),
                " cannot wait for an event of ", event.context().location());
  }
  Context& context = state_->context;
  const CurrentContext current(context);
  context.check(context.table().wait_event(state_->native(), event.native()), "stream");
}

void Stream::wait(const Stream& other) {
  if (other.state_ == state_) return;
  Stream before(other);
  wait(before.record());
}

// ---- Event

Event::~Event() {
  if (native_ == nullptr) return;
  if (!timing_) {
    context_->release_event(native_);
    return;
  }
  try {
    const CurrentContext current(*context_);
    context_->note_failure(context_->table().destroy_event(native_), "event");
  } catch (const Error&) {
    return;  // the device is gone, and the event with it
  }
}

bool Event::passed() const {
  const CurrentContext current(*context_);
  const driver::Status status = context_->table().query_event(native_);
  if (status == driver::kNotReady) return false;
  context_->check(status, "event");
  return true;
}

void Event::synchronize() const {
  const CurrentContext current(*context_);
  count(context_->counters().synchronizations);
  context_->check(context_->table().synchronize_event(native_), "event");
  context_->check_fault();
}

double Event::milliseconds_since(const Event& start) const {
  if (!timing_ || !start.timing_) {
    throw Error(ErrorKind::BadArgument, "event", "only events recorded with timing can be timed");
  }
  const CurrentContext current(*context_);
  context_->check(context_->table().synchronize_event(native_), "event");
  context_->check_fault();
  float milliseconds = 0;
  context_->check(context_->table().elapsed(&milliseconds, start.native_, native_), "event");
  return static_cast<double>(milliseconds);
}

}  // namespace tl
