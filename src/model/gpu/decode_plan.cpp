#include "model/gpu/decode_plan.h"

#include <algorithm>

#include "ops/gpu/launcher.h"
#include "quant/gpu/blocks.h"
#include "tl/kernels/decode.h"
#include "tl/kernels/quantized.h"
#include "tl/runtime/label.h"
#include "tl/runtime/launch.h"

namespace tl::gpu {

namespace {

using kernels::DecodeAttention;
using kernels::DecodeKind;
using kernels::DecodeLinear;
using kernels::DecodePhase;

bool is_half(int format) { return format == kernels::kDecodeF16 || format == kernels::kDecodeBF16; }

const kernels::Bits8* address(const QTensor& x, const Stream& stream) {
  return reinterpret_cast<const kernels::Bits8*>(x.memory().data(stream));
}

// Shared memory for a warp's pieces holds at least so many of them.
constexpr std::int64_t kLeastSlots = 3;

// Room for a piece of `bytes`, which may begin anywhere in 16 bytes and so take part of 16 more;
// and for as many as a slot has.
std::int64_t room_for(std::int64_t bytes) { return divide_up(bytes + 15, 16) * 16; }
std::int64_t slot_of(std::int64_t piece) {
  return kernels::kDecodeLabel + kernels::kDecodePieces * piece;
}

// The matrices of a product.
std::span<kernels::DecodeRows> parts_of(DecodeLinear& linear) {
  return std::span(linear.part).first(static_cast<std::size_t>(linear.parts));
}
std::span<const kernels::DecodeRows> parts_of(const DecodeLinear& linear) {
  return std::span(linear.part).first(static_cast<std::size_t>(linear.parts));
}

// What kernels multiply by to divide small numbers by n.
unsigned inverse(std::int64_t n) {
  return n == 0 ? 0U : static_cast<unsigned>(divide_up(1 << 20, n));
}

// Lanes that are enough for eight elements each, as a logarithm.
int bits_of_lanes(std::int64_t elements) {
  int bits = 3;
  while (8 << bits < elements) ++bits;
  return bits;
}

// Whether the device brings memory to shared memory by itself (kDelivers in
// kernels/gpu_together.h).
bool brings_memory(const Device& device) {
  const DeviceProperties& properties = device.properties();
  return device.architecture().starts_with("sm_") && properties.major >= 9 &&
         properties.warp_width == 32;
}

// Shared memory that a block can have for weights on their way, beside what it always has.
std::uint32_t ring_of(const Device& device) {
  constexpr std::uint64_t kStatic = 49 << 10, kMost = 172 << 10, kLeast = 32 << 10;
  const DeviceProperties& properties = device.properties();
  if (!brings_memory(device)) return 0;
  const std::uint64_t limit = properties.shared_memory_per_block_optin;
  if (limit < kStatic + kLeast) return 0;
  const auto bytes = static_cast<std::uint32_t>(std::min(kMost, limit - kStatic) / 1024 * 1024);
  const KernelId id = decode_kernel();
  const Function& function = device.modules().function(module_spec(id.module), id.index);
  return allow_shared_bytes(device, function, bytes) ? bytes : 0;
}

Tensor make_counters(const Device& device, std::int64_t heads) {
  const LabelScope label("decode step");
  return Tensor::zeros({1 + heads}, DType::U32, device);
}

}  // namespace

int decode_format(const QTensor& weight) {
  if (weight.type() == QType::F16) return kernels::kDecodeF16;
  if (weight.type() == QType::BF16) return kernels::kDecodeBF16;
  const unsigned place = place_in(kernels::kProductFormats, weight.type());
  return place < kernels::kProductFormats.size() ? static_cast<int>(place) : kNoFormat;
}

DecodePlan::DecodePlan(const Device& device, std::int64_t heads)
    : device_(device),
      blocks_(static_cast<std::uint32_t>(std::max(1, device_.properties().multiprocessors))),
      order_(can_launch_together(device_) ? DecodeOrder::Meetings : DecodeOrder::Launches),
      ring_bytes_(ring_of(device_)),
      threads_(ring_bytes_ != 0 ? kernels::kDecodeServed : kernels::kDecodeThreads),
      counters_(make_counters(device_, heads)),
      counters_at_(reinterpret_cast<kernels::Bits32*>(counters_.update(device_.stream()))) {}

bool DecodePlan::is_possible(const Device& device) {
  const DeviceProperties& properties = device.properties();
  // The kernel is empty for that one (kManyRegisters in kernels/gpu_together.h).
  if (properties.max_threads_per_block < kernels::kDecodeThreads ||
      properties.architecture.starts_with("gfx906")) {
    return false;
  }
  return ring_of(device) != 0 || !brings_memory(device);
}

bool DecodePlan::fits(const DecoderConfig& config) const {
  const std::int64_t group = config.heads / config.kv_heads;
  const std::int64_t warps = threads_ / device_.warp_width();
  const std::int64_t floats =
      (group + 2) * config.key_size + config.value_size + warps * (config.value_size + 2);
  const auto is_kept = [](std::int64_t size) {
    return size <= kernels::kDecodeHead && size % 8 == 0;
  };
  return is_kept(config.key_size) && is_kept(config.value_size) &&
         floats * 4 <= kernels::kDecodeRoom && config.heads < counters_.count();
}

std::int64_t DecodePlan::partial_floats(const DecoderConfig& config) const {
  return std::max<std::int64_t>(blocks_, config.kv_heads) * (config.heads / config.kv_heads) *
         (config.value_size + 2);
}

std::optional<DecodePlan::Product> DecodePlan::cut(DecodeLinear linear,
                                                   std::span<const Matrix> matrices) const {
  bool halves = false, bytes = false;
  std::int64_t unit = 32;
  for (const auto& [rows, bias, out] : matrices) {
    const QTensor& weight = *rows;
    const int format = decode_format(weight);
    if (format == kNoFormat) return std::nullopt;
    (is_half(format) ? halves : bytes) = true;
    const kernels::Bits8* at = address(weight, device_.stream());
    if (is_half(format) && reinterpret_cast<std::uintptr_t>(at) % 16 != 0) return std::nullopt;
    if (!is_half(format)) unit = std::max<std::int64_t>(unit, format_of(weight.type()).elements);
    linear.k = static_cast<int>(weight.columns());
    linear.part[linear.parts++] = {.weight = at,
                                   .row_bytes = static_cast<Index>(weight.row_bytes()),
                                   .bias = bias,
                                   .out = out,
                                   .out_at = 0,
                                   .rows = static_cast<int>(weight.rows()),
                                   .each = 0,
                                   .more = 0,
                                   .unit_bytes = 0,
                                   .format = format};
  }
  // Vectors are kept in one form, and must fit.
  const std::int64_t needed = halves ? linear.k / 2 * 5 : linear.k / 2 * 3;
  if ((halves && bytes) || needed > kernels::kDecodeRoom || linear.k % unit != 0)
    return std::nullopt;
  linear.halves = halves ? 1 : 0;
  linear.units = static_cast<int>(linear.k / unit);
  linear.unit_groups = static_cast<int>(unit / 32);
  for (kernels::DecodeRows& part : parts_of(linear)) {
    part.unit_bytes = static_cast<int>(part.row_bytes / linear.units);
  }
  Product product{linear, 0};
  return cut_rows(product) ? std::optional(product) : std::nullopt;
}

// In how many pieces rows are taken: what leaves the least to do to the busiest warp.
bool DecodePlan::cut_rows(Product& product) const {
  DecodeLinear& linear = product.linear;
  const std::int64_t width = device_.warp_width(), warps = threads_ / width;
  const bool served = ring_bytes_ != 0;
  std::int64_t own = 0;
  for (const kernels::DecodeRows& part : parts_of(linear)) {
    own += divide_up(part.rows, blocks_);
  }
  std::int64_t least = -1;
  for (int bits = 0; bits <= 5; ++bits) {
    const std::int64_t units = divide_up(linear.units, 1 << bits);
    const std::int64_t groups = units * linear.unit_groups;
    const std::int64_t steps = divide_up(linear.halves != 0 ? 4 * groups : groups, width);
    const int lanes = static_cast<int>(width);
    if (steps > (linear.halves != 0 ? kernels::decode_eights(lanes)
                                    : kernels::decode_groups(lanes, served)))
      continue;
    std::int64_t largest = 0;
    for (const kernels::DecodeRows& part : parts_of(linear)) {
      largest = std::max(largest, room_for(units * part.unit_bytes));
    }
    if (ring_bytes_ != 0 && kLeastSlots * slot_of(largest) * warps > ring_bytes_) continue;
    // What is done once for a piece takes about as long as a step.
    const std::int64_t work =
        (steps + 1) * divide_up(divide_up(own << bits, warps), kernels::kDecodePieces);
    if (least >= 0 && work >= least) continue;
    least = work;
    linear.share_bits = bits;
    product.piece_bytes = largest;
  }
  return least >= 0;
}

// A phase for as many rows as there is room for sums of, and more phases for more.
void DecodePlan::add(const Product& product) {
  const DecodeLinear& linear = product.linear;
  piece_bytes_ = std::max(piece_bytes_, product.piece_bytes);
  const std::int64_t blocks = blocks_;
  const std::int64_t most = (kernels::kDecodeSums >> linear.share_bits) / linear.parts * blocks;
  std::int64_t rows = 0;
  for (const kernels::DecodeRows& part : parts_of(linear)) {
    rows = std::max<std::int64_t>(rows, part.rows);
  }
  for (std::int64_t first = 0; first < rows; first += most) {
    DecodePhase phase{};
    phase.kind = DecodeKind::Linear;
    phase.linear = linear;
    phase.linear.again = first > 0 && order_ == DecodeOrder::Meetings ? 1 : 0;
    for (kernels::DecodeRows& part : parts_of(phase.linear)) {
      const std::int64_t skipped = std::min<std::int64_t>(first, part.rows);
      const std::int64_t own = std::min<std::int64_t>(most, part.rows - skipped);
      part.weight += skipped * part.row_bytes;
      if (part.bias != nullptr) part.bias += skipped;
      part.out_at = static_cast<int>(skipped);
      part.rows = static_cast<int>(own);
      part.each = static_cast<int>(own / blocks);
      part.more = static_cast<int>(own % blocks);
    }
    add(phase);
  }
}

// Blocks meet before every phase but the first and those that go on with an input.
void DecodePlan::add(DecodePhase phase) {
  const bool goes_on = phase.kind == DecodeKind::Linear && phase.linear.again != 0;
  if (!phases_.empty() && !goes_on) ++meetings_;
  phase.meetings = static_cast<int>(meetings_);
  phases_.push_back(phase);
}

void DecodePlan::clear() {
  phases_.clear();
  piece_bytes_ = 0;
  meetings_ = 0;
}

// Each phase is told which linear one comes next.
void DecodePlan::finish() {
  auto next = static_cast<int>(phases_.size());
  for (auto i = next; i-- > 0;) {
    DecodePhase& phase = phases_[static_cast<std::size_t>(i)];
    phase.next_linear = next;
    if (phase.kind == DecodeKind::Linear) next = i;
  }
  first_linear_ = next;
  if (ring_bytes_ == 0) return;
  // Room for pieces under way, as many for each warp; some also where there are none, for blocks
  // are told by it that one of their warps brings memory.
  piece_bytes_ = std::max(piece_bytes_, room_for(1));
  const std::int64_t warps = threads_ / device_.warp_width();
  slots_ = static_cast<int>(
      std::min<std::int64_t>(kernels::kDecodeSlots, ring_bytes_ / (warps * slot_of(piece_bytes_))));
}

DecodePhase DecodePlan::attention_of(const DecoderConfig& config, const KvShape& shape,
                                     std::int64_t layer) const {
  const KvLayout layout(shape);
  DecodePhase phase{};
  phase.kind = DecodeKind::Attention;
  phase.attention = {};
  DecodeAttention& a = phase.attention;
  a.layer_at = layer * static_cast<Index>(layout.layer_bytes);
  a.values_at = static_cast<Index>(layout.values_at);
  a.key_head_bytes = static_cast<Index>(layout.key_head_bytes);
  a.value_head_bytes = static_cast<Index>(layout.value_head_bytes);
  a.window = config.attention[static_cast<std::size_t>(layer)].window;
  a.kv_type = static_cast<int>(shape.type);
  a.group = static_cast<int>(config.heads / config.kv_heads);
  a.by_half = inverse(config.rope_size / 2);
  a.by_value = inverse(config.value_size);
  a.key_size = static_cast<int>(config.key_size);
  a.value_size = static_cast<int>(config.value_size);
  a.key_bits = bits_of_lanes(config.key_size);
  a.value_bits = bits_of_lanes(config.value_size);
  a.rope_size = static_cast<int>(config.rope_size);
  a.rope_halves = config.rope_pairs == RopePairs::Halves ? 1 : 0;
  a.eps = static_cast<float>(config.norm_epsilon);
  a.scale = static_cast<float>(config.attention_scale);
  a.softcap = static_cast<float>(config.attention_softcap);
  return phase;
}

// Who looks at which keys: the way that is estimated to take the least time. A block goes through
// its keys in rounds of a tile for each warp. Fewer heads to a block make fewer rounds, but then
// several blocks read the same keys; and to add up what the blocks of a head found takes time too.
kernels::DecodeSight DecodePlan::sight(const DecoderConfig& config, const KvShape& shape,
                                       std::int64_t position, std::int64_t window) const {
  // Nanoseconds, as seen on an H200: of a round; of adding up, to begin with and for each time that
  // all threads load so many parts; and the bytes that all blocks together read in one.
  constexpr std::int64_t kRound = 1300, kAddUp = 1500, kLoads = 800, kLoaded = 16, kBytes = 4000;
  const KvLayout layout(shape);
  const std::int64_t end = position + 1;
  const std::int64_t begin = window != 0 && end > window ? end - window : 0;
  const std::int64_t group = config.heads / config.kv_heads, width = device_.warp_width();
  const std::int64_t warps = threads_ / width, blocks = blocks_;
  const auto key_bytes = static_cast<std::int64_t>(layout.key_head_bytes + layout.value_head_bytes);
  const std::int64_t bytes = (end - begin) * config.kv_heads * key_bytes / KvCache::kBlockPositions;
  kernels::DecodeSight best{};
  std::int64_t least = -1;
  for (std::int64_t heads = 1; heads <= std::min(group, warps); ++heads) {
    if (group % heads != 0) continue;
    const std::int64_t teams = config.heads / heads, members = warps / heads;
    const std::int64_t grain = members * width;  // keys of a round
    const std::int64_t rounds = divide_up(end - begin, grain);
    const std::int64_t room = (kernels::kDecodeSums - kernels::kDecodeTotals) / heads;
    const std::int64_t most = std::min({rounds, std::max<std::int64_t>(1, blocks / teams), room});
    const std::int64_t loads = divide_up(heads * config.value_size, threads_);
    for (const std::int64_t parts : {std::int64_t{1}, most}) {
      const std::int64_t each = divide_up(rounds, parts), splits = divide_up(rounds, each);
      const std::int64_t time =
          divide_up(teams * splits, blocks) * each * kRound +
          (splits > 1 ? kAddUp + loads * divide_up(splits, kLoaded) * kLoads : 0) +
          bytes * (group / heads) / kBytes;
      if (least >= 0 && time > least) continue;
      least = time;
      best = {.begin = begin,
              .each = static_cast<int>(each * grain),
              .splits = static_cast<int>(splits),
              .heads = static_cast<int>(heads),
              .teams = static_cast<int>(teams),
              .members = static_cast<int>(members),
              .by_heads = inverse(heads)};
    }
  }
  return best;
}

void DecodePlan::launch(kernels::DecodeStep step) {
  const int count = static_cast<int>(phases_.size());
  step.met = counters_at_;
  step.met_before = met_;
  step.first = 0;
  step.last = count;
  step.first_linear = first_linear_;
  step.slots = slots_;
  step.piece_bytes = static_cast<int>(piece_bytes_);
  // With a warp that only brings memory, where that is done.
  const auto threads =
      static_cast<unsigned>(threads_ + (ring_bytes_ != 0 ? device_.warp_width() : 0));
  LaunchShape shape{.grid = {blocks_}, .block = {threads}, .shared_bytes = ring_bytes_};
  if (order_ == DecodeOrder::Meetings) {
    shape.together = true;
    run(device_, decode_kernel(), shape, step);
    met_ += meetings_ * blocks_;
    return;
  }
  for (int i = 0; i < count; ++i) {
    step.first = i;
    step.last = i + 1;
    step.first_linear = phases_[static_cast<std::size_t>(i)].kind == DecodeKind::Linear ? i : i + 1;
    run(device_, decode_kernel(), shape, step);
  }
}

}  // namespace tl::gpu
