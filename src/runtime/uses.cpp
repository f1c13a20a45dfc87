// Order between streams that touch one block; the idea is in block_record.h.
#include <algorithm>

#include "runtime/block_record.h"
#include "runtime/context.h"
#include "tl/base/error.h"

namespace tl {

namespace {

// Later work on `after` starts when what `before` has been given so far is done.
void order(StreamState& before, StreamState& after) {
  if (before.is_retired()) return;
  driver::Handle event = nullptr;
  {
    const CurrentContext current(before.context);
    event = before.context.acquire_event("stream order");
    count(before.context.counters().events);
    const driver::Status status = before.context.table().record_event(event, before.bare());
    if (status != driver::kSuccess) {
      before.context.release_event(event);
      before.context.check(status, "stream order");
    }
  }
  const CurrentContext current(after.context);
  const driver::Status status = after.context.table().wait_event(after.bare(), event);
  before.context.release_event(event);  // the wait has taken its own note of the event
  after.context.check(status, "stream order");
}

void forget_uses(Block& block) noexcept {
  for (std::size_t i = 0; i < block.reader_count; ++i) block.readers[i]->remove();
  block.reader_count = 0;
  if (block.writer != nullptr) block.writer->remove();
  block.writer = nullptr;
}

}  // namespace

void note_use(Block& block, StreamState& stream, Access access) {
  // Mapped bytes are never written, and what keeps them waits for who reads them.
  if (block.bytes == 0 || block.keeper != nullptr) return;
  if (&stream == block.home && !block.foreign.load(std::memory_order_acquire)) return;

  submit_deferred_everywhere();
  const std::lock_guard lock(block.use_mutex);
  StreamState& writer = block.writer != nullptr ? *block.writer : *block.home;
  auto* const readers_end = block.readers.data() + block.reader_count;
  if (access == Access::Read) {
    if (&writer == &stream) return;
    if (std::find(block.readers.data(), readers_end, &stream) != readers_end) return;
    order(writer, stream);
    if (block.reader_count == Block::kReaders) {
      // No room: let this stream wait for an older reader, then its own end stands for both.
      StreamState* oldest = block.readers[0];
      order(*oldest, stream);
      block.readers[0] = &stream;
      stream.add();
      oldest->remove();
    } else {
      block.readers[block.reader_count++] = &stream;
      stream.add();
    }
    block.foreign.store(true, std::memory_order_release);
    return;
  }

  if (&writer != &stream) order(writer, stream);
  for (std::size_t i = 0; i < block.reader_count; ++i) {
    if (block.readers[i] != &stream) order(*block.readers[i], stream);
  }
  const bool at_home = &stream == block.home;
  if (!at_home) stream.add();
  forget_uses(block);
  block.writer = at_home ? nullptr : &stream;
  block.foreign.store(!at_home, std::memory_order_release);
}

void collect_uses(Block& block) noexcept {
  const auto hold = [&block](StreamState* stream) {
    if (stream == block.home || stream->is_retired()) return;
    Context& context = stream->context;
    try {
      const CurrentContext current(context);
      driver::Handle event = nullptr;
      try {
        event = context.acquire_event("return of a block");
        count(context.counters().events);
        context.check(context.table().record_event(event, stream->bare()), "return of a block");
      } catch (const Error&) {
        // No event: wait for the stream instead. When that fails too, the device is gone and
        // nothing runs on it.
        if (event != nullptr) context.release_event(event);
        context.note_failure(context.table().synchronize_stream(stream->bare()),
                             "return of a block");
        return;
      }
      stream->add();
      block.pending[block.pending_count++] = {stream, event};
    } catch (const Error&) {
      return;  // the context cannot be selected: the device is gone
    }
  };
  if (block.writer != nullptr) hold(block.writer);
  for (std::size_t i = 0; i < block.reader_count; ++i) hold(block.readers[i]);
  forget_uses(block);
  block.foreign.store(false, std::memory_order_relaxed);
}

}  // namespace tl
