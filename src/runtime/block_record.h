// What the pool and the streams know of a block, behind the header that handles touch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/device_state.h"
#include "runtime/driver/table.h"
#include "runtime/segment_list.h"
#include "runtime/stream_state.h"
#include "tl/runtime/block.h"
#include "tl/runtime/label.h"

namespace tl {

class Pool;

// One record serves a chunk of a segment all its life: free in a list, taken as a block, held after
// its last owner. Records are deleted with their pool alone, so that a weak handle can always look
// at one. A mapped block has a record and no chunk.
//
// Order between streams. A block belongs to its home stream, and work there needs no bookkeeping:
// that is the common case and costs one load. Work on another stream is noted: the stream of the
// last write, and the streams that read since. No event is recorded at a use; when order is needed
// (a later write, a read elsewhere, the end of the block), an event recorded at that moment on the
// noted stream covers the use, since it was enqueued before.
struct Block final : BlockHeader, Chunk {
  static constexpr std::size_t kReaders = 4;

  Pool* pool = nullptr;
  StreamState* home = nullptr;    // counted while taken or held
  DeviceState* device = nullptr;  // counted while taken; null for pinned host memory
  Label label;
  std::shared_ptr<const void> keeper;  // of a mapped block: what holds its bytes
  bool large = false;                  // which of the two free lists of a stream it belongs to

  Block* next_live = nullptr;  // the pool's list of taken blocks
  Block* previous_live = nullptr;
  Block* next_held = nullptr;  // the pool's list of held blocks, or of spare records

  std::mutex use_mutex;
  std::atomic<bool> foreign{false};  // is anything noted below?
  StreamState* writer = nullptr;     // null: the home stream
  std::array<StreamState*, kReaders> readers{};
  std::size_t reader_count = 0;

  struct Pending {
    StreamState* stream = nullptr;
    driver::Handle event = nullptr;
  };
  std::array<Pending, kReaders + 1> pending{};  // while held
  std::size_t pending_count = 0;
};

inline Block& record_of(BlockHeader* header) noexcept { return *static_cast<Block*>(header); }

enum class Access : std::uint8_t { Read, Write };

// Orders what `stream` will do with the block next after what other streams did with it, and notes
// the use. Call before enqueuing the work. Throws when the driver fails.
void note_use(Block& block, StreamState& stream, Access access);

// Moves the noted uses into `pending` events (or waits, when no event can be had). For the end of a
// block.
void collect_uses(Block& block) noexcept;

}  // namespace tl
