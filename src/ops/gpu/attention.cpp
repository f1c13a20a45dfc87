#include "ops/gpu/attention.h"

#include <algorithm>
#include <bit>

#include "ops/gpu/launcher.h"
#include "tl/kernels/attention.h"
#include "tl/kernels/attention_grad.h"

namespace tl::gpu {

namespace {

// As in attention_scores.h, attention.cu and attention_grad.cu.
enum class MaskKind : std::uint32_t { None, Byte, Float };
struct Attention {
  Index batch, heads, kv_heads, group;
  Index queries, keys, depth, value_depth;
  Index q[4], k[4], v[4], out[4], mask[4];
  const void* mask_at;
  const void* slopes;
  double scale;
  double softcap;
  Index window;
  MaskKind mask_kind;
  std::uint32_t causal;
  std::byte* logs;
};
struct AttentionGrad {
  Attention a;
  Index g[4];
  std::byte* deltas;
};
struct Split {
  Index splits;
  Index keys_per_part;
  Index columns;
};
struct Parts {
  std::byte* values = nullptr;
  std::byte* most = nullptr;
  std::byte* sum = nullptr;
};

constexpr std::int64_t kFewQueries = 8;
constexpr std::int64_t kTileQueries = 64;
constexpr std::int64_t kSplitRows = 4;
constexpr std::int64_t kSplitTile = 64;
constexpr std::int64_t kMostSplits = 64;

void set_strides(Index (&to)[4], const Tensor& x) {
  for (int d = 0; d < 4; ++d) to[d] = x.strides()[d];
}

Attention describe(const ops::AttentionArguments& arguments, const Tensor& out,
                   const Stream& stream) {
  Attention a{};
  a.batch = arguments.batch();
  a.heads = arguments.heads();
  a.kv_heads = arguments.kv_heads();
  a.group = a.heads / a.kv_heads;
  a.queries = arguments.queries();
  a.keys = arguments.keys();
  a.depth = arguments.depth();
  a.value_depth = arguments.value_depth();
  set_strides(a.q, *arguments.q);
  set_strides(a.k, *arguments.k);
  set_strides(a.v, *arguments.v);
  set_strides(a.out, out);
  if (const Tensor* mask = arguments.mask; mask != nullptr) {
    set_strides(a.mask, *mask);
    a.mask_at = mask->read(stream);
    a.mask_kind = is_float(mask->dtype()) ? MaskKind::Float : MaskKind::Byte;
  }
  if (arguments.slopes != nullptr) a.slopes = arguments.slopes->read(stream);
  a.scale = arguments.scale;
  a.softcap = arguments.softcap;
  a.window = arguments.window;
  a.causal = arguments.causal ? 1 : 0;
  return a;
}

// Parts of the keys: enough blocks to fill the device several times over, none of them without
// some tiles to do.
Split divide(const Device& device, DType dtype, const Attention& a) {
  const std::int64_t each = dtype == DType::F64 ? 2 : 4;
  const auto columns = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(divide_up(a.value_depth, each))));
  const std::int64_t rows = a.batch * a.kv_heads * divide_up(a.group * a.queries, kSplitRows);
  const std::int64_t wanted =
      divide_up(std::int64_t{device.properties().multiprocessors} * 4, rows);
  const std::int64_t room = std::max<std::int64_t>(1, a.keys / (2 * kSplitTile));
  const std::int64_t splits = std::min({wanted, room, kMostSplits});
  const std::int64_t per_part = divide_up(divide_up(a.keys, splits), kSplitTile) * kSplitTile;
  return {divide_up(a.keys, per_part), per_part, std::min<std::int64_t>(columns, kThreads)};
}

}  // namespace

void attention(const ops::AttentionArguments& arguments, Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const DType dtype = out.dtype();
  const std::byte* q = arguments.q->read(stream);
  const std::byte* k = arguments.k->read(stream);
  const std::byte* v = arguments.v->read(stream);
  Attention a = describe(arguments, out, stream);
  std::byte* to = out.write(stream);

  // Only the kernels for many queries keep logarithms.
  if (arguments.logs != nullptr) a.logs = arguments.logs->write(stream);
  if ((a.queries > kFewQueries || a.logs != nullptr) && dtype != DType::F64) {
    const bool small = a.value_depth <= 64;
    const std::int64_t blocks = divide_up(a.queries, kTileQueries) * a.batch * a.heads *
                                divide_up(a.value_depth, small ? 64 : 128);
    run(device, attention_kernel(small ? AttentionFamily::Tile64 : AttentionFamily::Tile128, dtype),
        {.grid = {static_cast<std::uint64_t>(blocks)}, .block = {kThreads}}, q, k, v, to, a);
    return;
  }

  const Split split = divide(device, dtype, a);
  const std::int64_t each = dtype == DType::F64 ? 2 : 4;
  const std::int64_t blocks = split.splits * divide_up(a.group * a.queries, kSplitRows) * a.batch *
                              a.kv_heads * divide_up(a.value_depth, split.columns * each);
  const LaunchShape shape{.grid = {static_cast<std::uint64_t>(blocks)}, .block = {kThreads}};
  const KernelId kernel = attention_kernel(AttentionFamily::Split, dtype);
  if (split.splits == 1) {
    run(device, kernel, shape, q, k, v, to, a, split, Parts{});
    return;
  }
  const DType wide = dtype == DType::F64 ? DType::F64 : DType::F32;
  const std::int64_t parts = a.batch * a.heads * a.queries * split.splits;
  Tensor values = Tensor::uninitialized({parts, a.value_depth}, wide, device);
  Tensor most = Tensor::uninitialized({parts}, wide, device);
  Tensor sum = Tensor::uninitialized({parts}, wide, device);
  const Parts room{values.write(stream), most.write(stream), sum.write(stream)};
  run(device, kernel, shape, q, k, v, to, a, split, room);
  run(device, attention_kernel(AttentionFamily::Merge, dtype), elementwise_shape(out.count(), 1),
      to, a, split, room);
}

namespace {

// Columns of a block: as many as the longer of keys and values has elements, or a few more.
int width_of(const Attention& a) {
  const std::int64_t most = std::max(a.depth, a.value_depth);
  return most <= 32 ? 0 : most <= 64 ? 1 : 2;
}
AttentionGradFamily family_of(AttentionGradFamily narrowest, int width) {
  return static_cast<AttentionGradFamily>(static_cast<int>(narrowest) + width);
}

}  // namespace

void attention_gradient(const ops::AttentionGradientArguments& arguments,
                        ops::AttentionGradients& found) {
  const Device device = found.q.device();
  const Stream& stream = device.stream();
  const std::byte* q = arguments.forward.q->read(stream);
  const std::byte* k = arguments.forward.k->read(stream);
  const std::byte* v = arguments.forward.v->read(stream);
  const std::byte* g = arguments.g->read(stream);
  AttentionGrad all{};
  all.a = describe(arguments.forward, *arguments.out, stream);
  all.a.logs = const_cast<std::byte*>(arguments.logs->read(stream));  // which these only read
  set_strides(all.g, *arguments.g);
  Tensor deltas = Tensor::uninitialized(arguments.logs->shape(), DType::F32, device);
  all.deltas = deltas.write(stream);
  const int width = width_of(all.a);
  const auto blocks = [&](std::int64_t heads, std::int64_t rows) {
    return LaunchShape{
        .grid = {static_cast<std::uint64_t>(divide_up(rows, kTileQueries) * all.a.batch * heads)},
        .block = {kThreads}};
  };
  run(device, attention_grad_kernel(family_of(AttentionGradFamily::Queries32, width)),
      blocks(all.a.heads, all.a.queries), q, k, v, arguments.out->read(stream), g,
      found.q.write(stream), all);
  run(device, attention_grad_kernel(family_of(AttentionGradFamily::Keys32, width)),
      blocks(all.a.kv_heads, all.a.keys), q, k, v, g, found.k.write(stream), found.v.write(stream),
      all);
}

}  // namespace tl::gpu
