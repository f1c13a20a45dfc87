#include <bit>

#include "lang/builtins/rope_tables.h"
#include "lang/builtins/tensors.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/rope.h"
#include "tl/ops/unary.h"

namespace tl::lang {

namespace {

constexpr std::int64_t kMostPositions = std::int64_t{1} << 40;  // exact in double
constexpr std::int64_t kKeptPositions = std::int64_t{1} << 17;  // tables up to here are kept

using Function = tl::Tensor (*)(const tl::Tensor&);

// (positions, d / 2) from position `first`, computed in double and rounded once.
tl::Tensor angles(std::int64_t first, std::int64_t positions, std::int64_t d, double base,
                  DType dtype, const Device& device, Function function) {
  const tl::Tensor places = arange(first, first + positions, 1, DType::F64, device).unsqueeze(1);
  const tl::Tensor pairs = arange(0, d / 2, 1, DType::F64, device);
  const tl::Tensor rates = tl::pow(Scalar(base), mul(pairs, -2.0 / static_cast<double>(d)));
  return to_dtype(function(mul(places, rates)), dtype);
}

void check_heads(std::string_view op, const tl::Tensor& x) {
  if (x.rank() < 3 || x.dim(-1) % 2 != 0) {
    throw type_error(op, "() expects a tensor of shape [..., length, heads, even size], got rank ",
                     x.rank(), x.rank() > 0 ? join(" and size ", x.dim(-1)) : "");
  }
}

// Tables as precompute_rope_cos gives them, (positions, d) with every angle twice, or (positions,
// d / 2): the part for `length` positions.
tl::Tensor half_table(const tl::Tensor& table, const tl::Tensor& x, std::int64_t length) {
  const std::int64_t d = x.dim(-1);
  const bool fits =
      table.rank() == 2 && table.dim(0) >= length && (table.dim(1) == d || table.dim(1) == d / 2);
  if (!fits) {
    throw RuntimeError(join("Tensor error: Shape mismatch: expected tables of shape [>= ", length,
                            ", ", d, "], got ", table.shape()));
  }
  const tl::Tensor rows = table.narrow(0, 0, length);
  return table.dim(1) == d ? contiguous(rows.slice(1, 0, d, 2)) : rows;
}

// x (..., length, heads, d) for the op, which wants (b, heads, length, d), and back.
tl::Tensor turn(const tl::Tensor& x, const TensorCache::Tables& tables, bool halves) {
  const Shape four{-1, x.dim(-3), x.dim(-2), x.dim(-1)};
  const tl::Tensor heads = reshape(x, four).transpose(1, 2);
  const tl::Tensor out = halves ? rope(heads, tables.cosines, tables.sines)
                                : rope_i(heads, tables.cosines, tables.sines);
  return reshape(out.transpose(1, 2), x.shape());
}

// (x, offset, base), or (x, cos, sin).
Value call_rope(Context& context, Args& args) {
  tl::Tensor x = float_tensor(context, args, 0);
  const bool has_tables = is_tensor_like(args[1]) && args.has(2) && is_tensor_like(args[2]);
  if (!has_tables) {
    return turned(context, x, args.integer(1), args.has(2) ? args.real(2) : 10000.0,
                  args.boolean(3));
  }
  check_heads("rope", x);
  TensorCache::Tables tables{float_tensor(context, args, 1), float_tensor(context, args, 2)};
  bring_together(context, std::array{&x, &tables.cosines, &tables.sines});
  tables.cosines = half_table(tables.cosines, x, x.dim(-3));
  tables.sines = half_table(tables.sines, x, x.dim(-3));
  return turn(x, tables, args.boolean(3));
}

// (max_len, d): every angle twice in a row.
template <Function kFunction>
Value call_precompute(Context& context, Args& args) {
  const std::int64_t d = args.integer(0);
  const std::int64_t length = args.integer(1);
  if (d <= 0 || d % 2 != 0) args.bad_value(0, "an even size");
  if (length < 0 || length > kMostPositions) args.bad_value(1, "a number of positions");
  const DType dtype = args.has(3) ? args.dtype(3) : DType::F32;
  const tl::Tensor once = angles(0, length, d, args.real(2), dtype, context.device, kFunction);
  return reshape(once.unsqueeze(-1).broadcast_as({length, d / 2, 2}), {length, d});
}

constexpr std::string_view kSection = "network";

}  // namespace

TensorCache::Tables rope_tables(Context& context, const Device& device, std::int64_t d, double base,
                                DType dtype, std::int64_t offset, std::int64_t length) {
  if (offset < 0 || length > kMostPositions || offset > kMostPositions - length) {
    throw type_error("rope() expects positions from 0 to ", kMostPositions, ", got ", offset,
                     " and ", length, " more");
  }
  if (offset + length > kKeptPositions) {
    return {angles(offset, length, d, base, dtype, device, tl::cos),
            angles(offset, length, d, base, dtype, device, tl::sin)};
  }
  if (!context.cache) context.cache = std::make_shared<TensorCache>();
  const auto place = device.location();
  TensorCache::Tables& kept = context.cache->rope[{place.kind, place.index, d, base, dtype}];
  const std::int64_t needed = offset + length;
  if (kept.cosines.rank() != 2 || kept.cosines.dim(0) < needed) {
    constexpr std::int64_t kFirst = 256;
    const auto positions = static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max(needed, kFirst))));
    kept.cosines = angles(0, positions, d, base, dtype, device, tl::cos);
    kept.sines = angles(0, positions, d, base, dtype, device, tl::sin);
  }
  return {kept.cosines.narrow(0, offset, length), kept.sines.narrow(0, offset, length)};
}

tl::Tensor turned(Context& context, const tl::Tensor& x, std::int64_t offset, double base,
                  bool halves) {
  check_heads("rope", x);
  if (!(base > 0)) throw type_error("rope() expects a base above 0, got ", base);
  return turn(x, rope_tables(context, x.device(), x.dim(-1), base, x.dtype(), offset, x.dim(-3)),
              halves);
}

BuiltinRows rope_builtins() {
  static const Builtin rows[] = {
      {"rope", kSection, "(x, offset = 0, base = none, halves = false)",
       "Rotary embedding of x [..., length, heads, d] by position; (x, cos, sin) takes tables.",
       call_rope},
      {"precompute_rope_cos", kSection, "(d, max_len, base = 10000.0, dtype = none)",
       "The cosines for rope(), each twice in a row.", call_precompute<tl::cos>},
      {"precompute_rope_sin", kSection, "(d, max_len, base = 10000.0, dtype = none)",
       "The sines for rope(), each twice in a row.", call_precompute<tl::sin>},
  };
  return rows;
}

}  // namespace tl::lang
