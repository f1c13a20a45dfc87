#include "ops/gpu/scan.h"

#include "ops/gpu/launcher.h"

namespace tl::gpu {

namespace {

// Lines of up to this many elements go to a warp, longer ones to a block or to several.
constexpr std::int64_t kShortLine = 2048;
// What a block takes at least of a line that it shares.
constexpr std::int64_t kLeastOfRow = 8192;
constexpr std::int64_t kLeastOfLine = 64;
constexpr std::int64_t kMostTiles = 1 << 20;

}  // namespace

void scan(const ops::ScanPlan& plan, const Tensor& x, Tensor& out) {
  const Device device = out.device();
  const std::int64_t processors = std::max(device.properties().multiprocessors, 1);
  const std::int64_t lines = plan.lines.count;
  const bool rows = plan.in_step == 1 && plan.out_step == 1;

  kernels::ScanArgs args = {};
  args.lines = plan.lines;
  args.count = plan.count;
  args.in_step = plan.in_step;
  args.out_step = plan.out_step;
  args.by_warp = rows && plan.count <= kShortLine ? 1 : 0;
  std::int64_t splits = 1;
  if (rows && args.by_warp == 0) {
    splits = std::clamp<std::int64_t>(divide_up(processors * 4, lines), 1,
                                      divide_up(plan.count, kLeastOfRow));
  } else if (!rows) {
    splits =
        std::clamp<std::int64_t>(divide_up(processors * 1024, lines), 1,
                                 std::min<std::int64_t>(divide_up(plan.count, kLeastOfLine), 1024));
  }
  // Whole vectors for each.
  args.per_split = divide_up(divide_up(plan.count, splits), 64) * 64;
  args.splits = splits = divide_up(plan.count, args.per_split);

  const std::byte* from = x.read(device.stream());
  std::byte* to = out.write(device.stream());
  RawMemory totals;
  const std::byte* sums = nullptr;
  if (splits > 1) {
    const ReduceOp op = plan.op == ScanOp::Sum ? ReduceOp::Sum : ReduceOp::Prod;
    totals = RawMemory(
        device, static_cast<std::uint64_t>(splits * lines) * (size_of(x.dtype()) == 8 ? 8 : 4));
    std::byte* kept = totals.overwrite_data(device.stream());
    kernels::ReduceArgs reduce = {};
    reduce.kept = plan.in_lines;
    const kernels::Index size[] = {plan.count}, step[] = {plan.in_step};
    reduce.reduced = kernels::make_strided<1>(1, size, {step});
    reduce.per_split = args.per_split;
    reduce.splits = splits;
    reduce.scalar = 1;
    // Lines that are not rows stay with the threads that will scan them.
    reduce.width = rows ? kThreads : 32;
    const std::int64_t tiles = divide_up(lines, rows ? 1 : 32);
    run(device, reduce_kernel(op, rows ? ReduceForm::Rows : ReduceForm::Strided, x.dtype()),
        {.grid = {static_cast<std::uint64_t>(std::min(tiles, kMostTiles)),
                  static_cast<std::uint64_t>(splits)},
         .block = {kThreads}},
        from, static_cast<std::byte*>(nullptr), kept, reduce);
    sums = kept;
  }
  const std::int64_t lines_per_block = !rows               ? kThreads
                                       : args.by_warp != 0 ? kThreads / device.warp_width()
                                                           : 1;
  const std::int64_t tiles = divide_up(lines, lines_per_block);
  run(device, scan_kernel(plan.op, rows ? ScanForm::Rows : ScanForm::Lines, x.dtype()),
      {.grid = {static_cast<std::uint64_t>(std::min(tiles, kMostTiles)),
                static_cast<std::uint64_t>(splits)},
       .block = {kThreads}},
      from, to, sums, args);
}

}  // namespace tl::gpu
