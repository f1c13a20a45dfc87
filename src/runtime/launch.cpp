#include "tl/runtime/launch.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "runtime/context.h"
#include "runtime/stream_state.h"
#include "tl/base/error.h"

namespace tl {

LaunchSize::LaunchSize(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (x > kMost || y > kMost || z > kMost) {
    throw Error(ErrorKind::BadArgument, "launch", "a size of (", x, ", ", y, ", ", z,
                ") is beyond what a device can count");
  }
  values = {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
            static_cast<std::uint32_t>(z)};
}

LaunchSize grid_for(std::uint64_t elements, std::uint32_t threads, std::uint32_t most) {
  const std::uint64_t blocks = elements / threads + (elements % threads != 0 ? 1 : 0);
  return {std::min<std::uint64_t>(blocks, most)};
}

bool can_launch_together(const Device& device) noexcept {
  return device.properties().cooperative_launch &&
         device.context().table().launch_together != nullptr;
}

bool allow_shared_bytes(const Device& device, const Function& function, std::uint32_t bytes) {
  if (function.shared_bytes_allowed() >= bytes) return true;
  Context& context = device.context();
  if (context.table().allow_shared == nullptr) return false;
  // One after the other: what one thread was allowed is never made less for another.
  static std::mutex asking;
  const std::lock_guard lock(asking);
  if (function.shared_bytes_allowed() >= bytes) return true;
  const CurrentContext current(context);
  if (context.table().allow_shared(function.native(), bytes) != driver::kSuccess) return false;
  function.note_shared_bytes_allowed(bytes);
  return true;
}

void launch_raw(const Function& function, const Stream& stream, const LaunchShape& shape,
                void** arguments) {
  const auto& grid = shape.grid.values;
  const auto& block = shape.block.values;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
  Context& context = stream.state()->context;
  const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
  const auto most = static_cast<std::uint64_t>(context.properties().max_threads_per_block);
  if (threads == 0 || threads > most) {
    throw Error(ErrorKind::BadArgument, function.name(), "a block of ", threads, " threads; ",
                context.location(), " allows 1 to ", most);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    // One vendor counts a grid in threads, in 32 bits; the same bound for both keeps code portable.
    if (std::uint64_t{grid[i]} * block[i] > std::numeric_limits<std::uint32_t>::max()) {
      throw Error(ErrorKind::BadArgument, function.name(), "a grid of ", grid[i], " blocks of ",
                  block[i], " threads has more than 2^32 threads in dimension ", i);
    }
  }
  const CurrentContext current(context);
  count(context.counters().launches);
  const driver::Table& table = context.table();
  const auto call = shape.together              ? table.launch_together
                    : function.awaits_earlier() ? table.launch_early
                                                : table.launch;
  if (call == nullptr) {
    throw Error(ErrorKind::Unsupported, function.name(), context.location(),
                " cannot launch blocks that wait for each other");
  }
  const driver::Status status =
      call(function.native(), {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},
           shape.shared_bytes, stream.state()->native(), arguments);
  if (status != driver::kSuccess) [[unlikely]] {
    context.check(status, join("launch of ", function.name()));
  }
}

}  // namespace tl
