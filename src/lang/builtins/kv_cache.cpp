#include "lang/builtins/kv_cache.h"

#include <algorithm>
#include <utility>

#include "lang/builtins/container.h"
#include "lang/builtins/library.h"
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

std::string KVCacheObject::text() const {
  return tl::join("<KVCache: ", layers.size(), " layers>");
}

KVCacheObject::Layer& KVCacheObject::layer(std::int64_t number) {
  if (number < 0 || std::cmp_greater_equal(number, layers.size())) {
    throw RuntimeError(tl::join("Index ", number, " out of bounds for length ", layers.size()));
  }
  return layers[static_cast<std::size_t>(number)];
}

namespace {

enum class Part : std::uint8_t { Keys, Values };

tl::Tensor stored(KVCacheObject& cache, std::int64_t number, Part part) {
  const KVCacheObject::Layer& layer = cache.layer(number);
  if (layer.keys.empty()) throw invalid_operation("No cache entry for layer ", number);
  return part == Part::Keys ? layer.keys.view() : layer.values.view();
}

template <Part kPart>
Value call_get_part(Context&, Args& args) {
  return stored(args.host<KVCacheObject>(0), args.integer(1), kPart);
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
    Layer& at = layer(own.integer(0));
    const tl::Tensor keys = own.tensor(context, 1, dtype);
    const tl::Tensor values = own.tensor(context, 2, dtype);
    if (keys.rank() == 0 || values.rank() == 0) throw invalid_operation("KVCache needs rows");
    if (name == "set") {
      at.keys.set(keys);
      at.values.set(values);
    } else {
      at.keys.make_room(keys);
      at.values.make_room(values);
      at.keys.add(keys);
      at.values.add(values);
    }
    result = Value();
    return true;
  }
  if (name == "clear") {
    layers.assign(layers.size(), Layer{});
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
       call_get_part<Part::Keys>},
      {"get_v", "models", "(cache, layer)", "The values of a layer, all rows that were added.",
       call_get_part<Part::Values>},
  };
  return rows;
}

}  // namespace tl::lang
