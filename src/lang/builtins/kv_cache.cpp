#include "lang/builtins/kv_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lang/builtins/container.h"
#include "lang/builtins/library.h"
#include "lang/builtins/rope_tables.h"
#include "lang/builtins/tensors.h"
#include "lang/row_work.h"
#include "tl/ops/attention.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

constexpr std::int64_t kFirstRows = 16;  // of a buffer that begins to grow

Shape with_rows(Shape shape, std::int64_t rows) {
  shape[0] = rows;
  return shape;
}

void expect_rows(std::string_view who, const tl::Tensor& have, const tl::Tensor& more) {
  const bool fits = have.rank() > 0 && more.rank() == have.rank() &&
                    with_rows(more.shape(), 0) == with_rows(have.shape(), 0);
  if (!fits) {
    throw invalid_operation(who, "(): rows of a tensor of shape ", bracketed(more.shape()),
                            " do not go after those of ", bracketed(have.shape()));
  }
}

// More room than is asked for, so that rows one by one cost no copy each.
tl::Tensor grown(const tl::Tensor& rows, std::int64_t least) {
  const std::int64_t capacity = std::max({least, 2 * rows.dim(0), kFirstRows});
  tl::Tensor memory =
      tl::Tensor::uninitialized(with_rows(rows.shape(), capacity), rows.dtype(), rows.device());
  assign_at(memory, memory.layout().narrow(0, 0, rows.dim(0)), rows);
  return memory;
}

}  // namespace

void RowBuffer::set(const tl::Tensor& rows) {
  memory_ = rows;
  rows_ = rows.dim(0);
}

void RowBuffer::make_room(const tl::Tensor& rows) {
  if (empty()) return;
  expect_rows("append", memory_, rows);
  const std::int64_t total = rows_ + rows.dim(0);
  // A view that someone still holds shares the memory: what is written then goes to new memory, and
  // that may as well have room.
  if (total > memory_.dim(0) || !memory_.memory().is_unique()) memory_ = grown(view(), total);
}

void RowBuffer::add(const tl::Tensor& rows) {
  if (empty()) {
    set(rows);
    return;
  }
  assign_at(memory_, memory_.layout().narrow(0, rows_, rows.dim(0)), rows);
  rows_ += rows.dim(0);
}

tl::Tensor RowBuffer::view() const { return memory_.narrow(0, 0, rows_); }

Value append_rows(Value& target, const tl::Tensor& rows) {
  tl::Tensor& base = static_cast<TensorObject&>(*target.object()).tensor;
  expect_rows("append", base, rows);
  const tl::Tensor more = to(rows, base.device());
  const DType dtype = base.dtype();
  const Layout before = base.layout();
  const std::int64_t count = before.shape()[0];
  const Shape shape = with_rows(before.shape(), count + more.dim(0));
  const auto with_more = [&](RawMemory memory, const Layout& layout) {
    tl::Tensor longer = tl::Tensor::from_memory(std::move(memory), dtype, layout);
    assign_at(longer, layout.narrow(0, count, more.dim(0)), more);
    return longer;
  };
  const Layout after(shape, before.strides(), before.offset());
  const auto room = static_cast<std::int64_t>(base.memory().bytes() / size_of(dtype));
  if (before.is_contiguous() && base.memory().is_unique() && after.fits(room)) {
    // What lies behind belongs to nobody: rows written there do not change what `target` shows.
    tl::Tensor longer = with_more(std::move(base.memory()), after);
    base = longer.with_layout(before);
    return longer;
  }
  return with_more(std::move(grown(base, shape[0]).memory()), Layout(shape));
}

void KVCacheObject::Layer::append(const tl::Tensor& more_keys, const tl::Tensor& more_values) {
  keys.make_room(more_keys);
  values.make_room(more_values);
  keys.add(more_keys);
  values.add(more_values);
}

std::string KVCacheObject::text() const {
  return tl::join("<KVCache: ", layers.size(), " layers>");
}

KVCacheObject::Layer& KVCacheObject::layer(std::int64_t number) {
  if (number < 0 || std::cmp_greater_equal(number, layers.size())) {
    throw RuntimeError(tl::join("Index ", number, " out of bounds for length ", layers.size()));
  }
  return layers[static_cast<std::size_t>(number)];
}

bool KVCacheObject::is_in_blocks(std::int64_t number) const {
  return blocks && blocks->length(number) > 0;
}

namespace {

[[noreturn]] void no_rows(std::int64_t layer) {
  throw invalid_operation("No cache entry for layer ", layer);
}

}  // namespace

tl::Tensor KVCacheObject::keys(std::int64_t number) {
  const Layer& rows = layer(number);
  if (is_in_blocks(number)) return blocks->keys(number);
  if (rows.keys.empty()) no_rows(number);
  return rows.keys.view();
}

tl::Tensor KVCacheObject::values(std::int64_t number) {
  const Layer& rows = layer(number);
  if (is_in_blocks(number)) return blocks->values(number);
  if (rows.keys.empty()) no_rows(number);
  return rows.values.view();
}

void KVCacheObject::leave_blocks(std::int64_t number) {
  if (!is_in_blocks(number)) return;
  Layer& rows = layer(number);
  rows.keys.set(blocks->keys(number));
  rows.values.set(blocks->values(number));
  blocks->forget(number);
}

namespace {

Value call_get_k(Context&, Args& args) { return args.host<KVCacheObject>(0).keys(args.integer(1)); }

Value call_get_v(Context&, Args& args) {
  return args.host<KVCacheObject>(0).values(args.integer(1));
}

// What cached_attention() was given: rows of heads, f32 and on one device.
struct Rows {
  tl::Tensor q, k, v;  // (new, heads, size)
  std::optional<double> base;
  bool halves = false;
  double scale = 0;
  std::int64_t window = 0;
  double softcap = 0;
};

void check_rows(const Args& args, const Rows& rows) {
  const Shape &q = rows.q.shape(), &k = rows.k.shape(), &v = rows.v.shape();
  const bool fits = q.size() == 3 && k.size() == 3 && v.size() == 3 && q[0] == k[0] &&
                    k[0] == v[0] && k[1] == v[1] && k[1] > 0 && q[1] % k[1] == 0 && q[2] == k[2] &&
                    q[0] > 0 && q[1] > 0 && q[2] > 0 && v[2] > 0;
  if (!fits) {
    throw type_error(args.name(), "() expects q [new, heads, d] and k, v [new, kv_heads, d], got ",
                     bracketed(q), ", ", bracketed(k), " and ", bracketed(v));
  }
  if (rows.base && (q[2] % 2 != 0 || !(*rows.base > 0))) {
    throw type_error(args.name(), "() turns heads of an even size by a base above 0, got ", q[2],
                     " and ", *rows.base);
  }
}

// The library's kernels keep rows in blocks. They take heads of certain sizes; gradients do not
// flow through them; and a layer that has rows already goes on as it is.
bool goes_to_blocks(KVCacheObject& cache, std::int64_t number, const Rows& rows) {
  if (!cache.layer(number).keys.empty() || has_history(rows.q, rows.k, rows.v)) return false;
  constexpr std::int64_t kStep = 8, kMost = 256;
  for (const std::int64_t size : {rows.k.dim(2), rows.v.dim(2)}) {
    if (size % kStep != 0 || size > kMost) return false;
  }
  const KvShape shape{cache.size(), rows.k.dim(1), rows.k.dim(2), rows.v.dim(2),
                      cache.dtype == DType::F16 ? KvType::F16 : KvType::F32};
  if (!cache.blocks) cache.blocks = std::make_shared<model::LayeredCache>(rows.q.device(), shape);
  return cache.blocks->shape() == shape && cache.blocks->device().location() == rows.q.location();
}

tl::Tensor attend_in_blocks(Context& context, KVCacheObject& cache, std::int64_t number,
                            const Rows& rows) {
  model::LayerSight sight{.scale = rows.scale, .softcap = rows.softcap, .window = rows.window};
  sight.pairs = rows.halves ? RopePairs::Halves : RopePairs::Neighbours;
  if (rows.base) {
    const std::int64_t positions = cache.blocks->length(number) + rows.q.dim(0);
    TensorCache::Tables tables =
        rope_tables(context, rows.q.device(), rows.q.dim(2), *rows.base, DType::F32, 0, positions);
    sight.cosines = std::move(tables.cosines);
    sight.sines = std::move(tables.sines);
  }
  return cache.blocks->attend(number, rows.q, rows.k, rows.v, sight, row_queue(context, rows.q));
}

tl::Tensor attend_by_ops(Context& context, KVCacheObject& cache, std::int64_t number,
                         const Rows& rows) {
  KVCacheObject::Layer& layer = cache.layer(number);
  const std::int64_t past = layer.keys.empty() ? 0 : layer.keys.view().dim(0);
  const auto at_its_place = [&](const tl::Tensor& x) {
    return rows.base ? turned(context, x, past, *rows.base, rows.halves) : x;
  };
  layer.append(to_dtype(at_its_place(rows.k), cache.dtype), to_dtype(rows.v, cache.dtype));
  const auto by_heads = [&](const tl::Tensor& x) {  // (1, heads, n, size)
    return to_dtype(x, rows.q.dtype()).unsqueeze(0).transpose(1, 2);
  };
  AttentionOptions options{.causal = true, .scale = rows.scale, .softcap = rows.softcap};
  if (rows.window > 0) options.window = rows.window - 1;
  const tl::Tensor found =
      scaled_dot_product_attention(by_heads(at_its_place(rows.q)), by_heads(layer.keys.view()),
                                   by_heads(layer.values.view()), options);
  return contiguous(found.transpose(1, 2)).squeeze(0);
}

// (cache, layer, q, k, v, base, halves, scale, window, softcap)
Value call_cached_attention(Context& context, Args& args) {
  auto& cache = args.host<KVCacheObject>(0);
  const std::int64_t number = args.integer(1);
  cache.layer(number);  // throws where there is none
  Rows rows{.q = args.tensor(context, 2, DType::F32),
            .k = args.tensor(context, 3, DType::F32),
            .v = args.tensor(context, 4, DType::F32),
            .base = args.has(5) ? std::optional(args.real(5)) : std::nullopt,
            .halves = args.boolean(6),
            .scale = 1,
            .window = args.integer(8),
            .softcap = args.real(9)};
  bring_together(context, std::array{&rows.q, &rows.k, &rows.v});
  check_rows(args, rows);
  rows.scale = args.has(7) ? args.real(7) : 1 / std::sqrt(static_cast<double>(rows.q.dim(2)));
  if (rows.window < 0) args.bad_value(8, "a number of positions");
  if (!(rows.softcap >= 0) || !std::isfinite(rows.softcap)) args.bad_value(9, "0 or more");
  if (goes_to_blocks(cache, number, rows)) return attend_in_blocks(context, cache, number, rows);
  cache.leave_blocks(number);
  return attend_by_ops(context, cache, number, rows);
}

template <DType kType>
Value new_cache(Context&, Args& args) {
  if (!args[0].is(Kind::Int)) args.bad(0, "an integer");
  const std::int64_t layers = args.integer(0);
  if (layers < 0 || layers > 1 << 20) args.bad_value(0, "a number of layers");
  return make<KVCacheObject>(static_cast<std::size_t>(layers), kType);
}

}  // namespace

bool KVCacheObject::method(Context& context, std::string_view name, Args& args, Value& result) {
  const bool stores = name == "set" || name == "append";
  if (stores) {
    static const Builtin store{"KVCache.append", "models", "(layer, keys, values)", "", nullptr};
    const Args own(store, args.from(0));
    if (own.size() != 3) {
      throw type_error("KVCache.", name, "() expects a layer, keys and values, got ", own.size(),
                       " arguments");
    }
    const std::int64_t number = own.integer(0);
    Layer& at = layer(number);
    const tl::Tensor keys = own.tensor(context, 1, dtype);
    const tl::Tensor values = own.tensor(context, 2, dtype);
    if (keys.rank() == 0 || values.rank() == 0) throw invalid_operation("KVCache needs rows");
    leave_blocks(number);
    if (name == "set") {
      at.keys.set(keys);
      at.values.set(values);
    } else {
      at.append(keys, values);
    }
    result = Value();
    return true;
  }
  if (name == "clear") {
    layers.assign(layers.size(), Layer{});
    blocks.reset();
    return true;
  }
  return false;
}

BuiltinRows kv_cache_builtins() {
  static const Builtin rows[] = {
      {"KVCache::new", "models", "(layers)", "An empty cache of keys and values in f16.",
       new_cache<DType::F16>},
      {"KVCache::new_f16", "models", "(layers)", "An empty cache of keys and values in f16.",
       new_cache<DType::F16>},
      {"KVCache::new_f32", "models", "(layers)", "An empty cache of keys and values in f32.",
       new_cache<DType::F32>},
      {"get_k", "models", "(cache, layer)", "The keys of a layer, all rows that were added.",
       call_get_k},
      {"get_v", "models", "(cache, layer)", "The values of a layer, all rows that were added.",
       call_get_v},
      {"cached_attention", "models",
       "(cache, layer, q, k, v, base = none, halves = false, scale = none, window = 0, softcap = "
       "0.0)",
       "Adds keys and values [new, kv_heads, d] to a layer and gives what q [new, heads, d] finds "
       "there, each row up to its own; with a base, q and k turn as by rope().",
       call_cached_attention},
  };
  return rows;
}

}  // namespace tl::lang
