#include "ops/gpu/reduce.h"

#include <bit>

#include "ops/gpu/launcher.h"
#include "ops/order.h"

namespace tl::gpu {

namespace {

using kernels::ReduceArgs;

// Bytes of what a block keeps of one output (Kept in reduce.cu).
std::uint64_t kept_bytes(ReduceOp op, DType dtype) {
  const std::uint64_t number = dtype == DType::F64 ? 8 : 4;
  switch (op) {
    case ReduceOp::Extreme:
      return size_of(dtype);
    case ReduceOp::Place:
      return size_of(dtype) == 8 ? 16 : 8;
    case ReduceOp::Count:
    case ReduceOp::Power:
      return 8;
    case ReduceOp::Var:
      return 3 * number;
    case ReduceOp::LogSumExp:
      return 2 * number;
    case ReduceOp::Norm:
      return number;
    case ReduceOp::Sum:
    case ReduceOp::Prod:
      return size_of(dtype) == 8 ? 8 : 4;
  }
  return 16;
}

unsigned power_of_two_up_to(std::int64_t n, unsigned most) {
  return n >= most ? most : std::bit_floor(static_cast<unsigned>(std::max<std::int64_t>(n, 1)));
}

struct Choice {
  ReduceForm form = ReduceForm::Rows;
  unsigned width = 1;
  std::int64_t tiles = 1;      // blocks that the outputs make
  std::int64_t splits = 1;     // blocks that share an output
  std::int64_t per_split = 0;  // reduced positions of each
};

// Rows of up to this many elements get a part of a warp, longer ones a block.
constexpr std::int64_t kShortRow = 1024;
// A block takes at least this much of a row it shares.
constexpr std::int64_t kLeastOfRow = 4096;

Choice choose(const ops::ReducePlan& plan, std::size_t element_bytes, std::int64_t processors) {
  const std::int64_t outputs = plan.kept.count;
  const std::int64_t count = plan.reduced.count;
  Choice choice;
  const bool rows = plan.op != ReduceOp::Power && plan.reduced.contiguous != 0;
  if (rows && count <= kShortRow) {
    // Two vectors per thread, so that there is something to add before lanes talk.
    choice.width = power_of_two_up_to(count / static_cast<std::int64_t>(32 / element_bytes), 32);
    choice.tiles = divide_up(outputs, kThreads / choice.width);
  } else if (rows) {
    choice.width = kThreads;
    choice.tiles = outputs;
    // Four blocks fit a processor whatever registers the kernel needs: one wave, no ragged end.
    const std::int64_t wanted = divide_up(processors * 4, outputs);
    choice.splits = std::clamp<std::int64_t>(wanted, 1, count / kLeastOfRow + 1);
  } else {
    choice.form = ReduceForm::Strided;
    // Neighbours in memory go to neighbouring threads.
    const bool columns =
        outputs > 1 && (count == 1 || plan.kept.stride[0][0] <= plan.reduced.stride[0][0]);
    choice.width =
        columns ? std::bit_ceil(static_cast<unsigned>(std::min<std::int64_t>(outputs, 32))) : 1;
    while (columns && choice.width < kThreads && choice.width < outputs &&
           count < 4 * std::int64_t{kThreads} / choice.width) {
      choice.width *= 2;
    }
    choice.tiles = divide_up(outputs, choice.width);
    const std::int64_t apart = kThreads / choice.width;
    // Threads load single elements here: more blocks, so that enough bytes are on their way.
    const std::int64_t wanted = divide_up(processors * 8, choice.tiles);
    choice.splits =
        std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(count / (apart * 16) + 1, 1024));
  }
  // Whole vectors for each, so that only the last has an odd end.
  choice.per_split =
      std::max<std::int64_t>(divide_up(divide_up(count, choice.splits), 64) * 64, 64);
  choice.splits = std::max<std::int64_t>(divide_up(count, choice.per_split), 1);
  return choice;
}

// More blocks than this loop over what is left.
constexpr std::int64_t kMostTiles = 1 << 20;

}  // namespace

void reduce(const ops::ReducePlan& plan, const Tensor& x, Tensor& out) {
  const Device device = out.device();
  const std::int64_t processors = std::max(device.properties().multiprocessors, 1);
  Choice choice = choose(plan, size_of(x.dtype()), processors);
  ReduceArgs args = {};
  if (choice.splits > 1 && choice.tiles <= Stream::kArrivals) {
    args.arrived = device.stream().arrivals();
  }
  if (args.arrived == nullptr) {
    choice.splits = 1;
    choice.per_split = plan.reduced.count;
  }
  args.kept = plan.kept;
  args.reduced = plan.reduced;
  args.per_split = choice.per_split;
  args.splits = choice.splits;
  args.width = choice.width;
  args.mode = plan.mode;
  args.scalar = plan.scalar;
  args.order = ops::order_of(x.dtype(), plan.smallest, true);

  const std::byte* in = x.read(device.stream());
  std::byte* result = out.write(device.stream());
  const auto tiles = static_cast<std::uint64_t>(std::min(choice.tiles, kMostTiles));
  RawMemory partial;
  std::byte* kept = nullptr;
  if (choice.splits > 1) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(choice.splits * plan.kept.count) *
                                kept_bytes(plan.op, x.dtype());
    if (bytes <= Stream::kScratch) {
      kept = device.stream().scratch();
    } else {
      partial = RawMemory(device, bytes);
      kept = partial.overwrite_data(device.stream());
    }
  }
  run(device, reduce_kernel(plan.op, choice.form, x.dtype()),
      {.grid = {tiles, static_cast<std::uint64_t>(choice.splits)}, .block = {kThreads}}, in, result,
      kept, args);
}

}  // namespace tl::gpu
