#include "lang/convert.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tl/ops/copy.h"
#include "tl/ops/join.h"

namespace tl::lang {

// ---- dtypes

DType promote(DType a, DType b) noexcept {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) {
    if (size_of(a) == size_of(b)) return DType::F32;  // f16 and bf16
    return size_of(a) > size_of(b) ? a : b;
  }
  const bool unsigned_wide = a == DType::U32 || b == DType::U32;
  if (unsigned_wide && a != DType::U8 && b != DType::U8) return DType::I64;
  return size_of(a) >= size_of(b) ? a : b;
}

std::optional<DType> dtype_by_name(std::string_view name) noexcept {
  struct Row {
    std::string_view name;
    DType dtype;
  };
  static constexpr std::array kRows = {
      Row{"f32", DType::F32},       Row{"float32", DType::F32},   Row{"float", DType::F32},
      Row{"f16", DType::F16},       Row{"float16", DType::F16},   Row{"half", DType::F16},
      Row{"bf16", DType::BF16},     Row{"bfloat16", DType::BF16}, Row{"f64", DType::F64},
      Row{"float64", DType::F64},   Row{"double", DType::F64},    Row{"f8e4m3", DType::F8E4M3},
      Row{"float8", DType::F8E4M3}, Row{"i64", DType::I64},       Row{"int64", DType::I64},
      Row{"int", DType::I64},       Row{"i32", DType::I32},       Row{"int32", DType::I32},
      Row{"i16", DType::I16},       Row{"int16", DType::I16},     Row{"u8", DType::U8},
      Row{"uint8", DType::U8},      Row{"u32", DType::U32},       Row{"uint32", DType::U32},
      Row{"bool", DType::Bool},
  };
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

// ---- lists

bool is_list_like(const Value& value) noexcept {
  switch (value.kind()) {
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::Tokens:
    case Kind::Vec:
      return true;
    default:
      return false;
  }
}

std::size_t list_size(const Value& list) noexcept {
  switch (list.kind()) {
    case Kind::List:
      return list.as<ListObject>().values.size();
    case Kind::Tuple:
      return list.as<TupleObject>().values.size();
    case Kind::Range:
      return static_cast<std::size_t>(list.as<RangeObject>().size());
    case Kind::Tokens:
      return list.as<TokensObject>().ids.size();
    default:
      return list.as<VecObject>().values.size();
  }
}

Value list_item(const Value& list, std::size_t i) {
  switch (list.kind()) {
    case Kind::List:
      return list.as<ListObject>().values[i];
    case Kind::Tuple:
      return list.as<TupleObject>().values[i];
    case Kind::Range:
      return list.as<RangeObject>().first + static_cast<std::int64_t>(i);
    case Kind::Tokens:
      return std::int64_t{list.as<TokensObject>().ids[i]};
    default:
      return list.as<VecObject>().values[i];
  }
}

namespace {

// Lists that programs make are shorter; ranges cost nothing and may be any length.
constexpr std::size_t kLongest = std::size_t{1} << 27;

void expect_reasonable(std::size_t size) {
  if (size <= kLongest) return;
  throw invalid_operation("A list of ", size, " elements is too long to write out");
}

}  // namespace

std::vector<Value> list_values(const Value& list) {
  const std::size_t size = list_size(list);
  expect_reasonable(size);
  std::vector<Value> values;
  values.reserve(size);
  for (std::size_t i = 0; i < size; ++i) values.push_back(list_item(list, i));
  return values;
}

namespace {

// The first thing in a list that is no list; nothing when there is none.
const Value* first_leaf(const Value& value, Value& made) {
  const Value* at = &value;
  for (int depth = 0; depth <= Dims::kMax && is_list_like(*at); ++depth) {
    if (list_size(*at) == 0) return nullptr;
    if (at->is(Kind::List)) {
      at = &at->as<ListObject>().values[0];
    } else {
      made = list_item(*at, 0);
      at = &made;
    }
  }
  return at;
}

}  // namespace

bool is_number_list(const Value& value) noexcept {
  if (!is_list_like(value)) return false;
  Value made;
  const Value* leaf = first_leaf(value, made);
  return leaf != nullptr && leaf->is_number();
}

bool is_pieces(const Value& value) noexcept {
  return value.is(Kind::List) && dynamic_cast<const PiecesObject*>(value.object()) != nullptr &&
         !value.as<ListObject>().values.empty();
}

bool is_tensor_like(const Value& value) noexcept {
  if (value.is_tensor() || is_pieces(value)) return true;
  if (!is_list_like(value)) return false;
  Value made;
  const Value* leaf = first_leaf(value, made);
  return leaf == nullptr || leaf->is_number() || leaf->is(Kind::Bool) ||
         (leaf->is(Kind::Tensor) && has_history(leaf->tensor()));
}

namespace {

bool floats_within(const Value& value, int depth) noexcept {
  if (value.is(Kind::Float)) return true;
  if (value.is(Kind::Vec)) return value.as<VecObject>().element == Kind::Float;
  if (depth > Dims::kMax || (!value.is(Kind::List) && !value.is(Kind::Tuple))) return false;
  const auto& values =
      value.is(Kind::List) ? value.as<ListObject>().values : value.as<TupleObject>().values;
  return std::any_of(values.begin(), values.end(),
                     [&](const Value& item) { return floats_within(item, depth + 1); });
}

}  // namespace

bool has_floats(const Value& value) noexcept { return floats_within(value, 0); }

namespace {

// The numbers of nested lists in row-major order, as integers for as long as all of them are.
class Numbers {
 public:
  // False for a list that is ragged or has something else in it.
  bool add(const Value& value, int depth) {
    if (is_list_like(value)) return add_list(value, depth);
    if (leaf_depth_ < 0) leaf_depth_ = depth;
    if (depth != leaf_depth_) return false;
    if (value.is(Kind::Tensor) && value.tensor().count() == 1) {
      return add(from_tensor_item(value.tensor()), depth);
    }
    if (!value.is_number() && !value.is(Kind::Bool)) return false;
    if (value.is(Kind::Float)) {
      floats_ = true;
    } else {
      integers_.push_back(value.integer());
    }
    if (!value.is(Kind::Bool)) bools_ = false;
    reals_.push_back(value.is(Kind::Bool) ? static_cast<double>(value.integer()) : value.number());
    return true;
  }

  bool only_bools() const { return bools_ && !reals_.empty(); }

  // Floats where integers are wanted must be whole.
  void expect_fits(std::string_view who, DType dtype) const {
    if (!floats_ || !is_int(dtype)) return;
    for (const double real : reals_) {
      if (std::isfinite(real) && real == std::trunc(real)) continue;
      throw type_error(who, " expects whole numbers for ", name(dtype), ", got ",
                       number_text(real));
    }
  }

  tl::Tensor tensor(DType dtype, const Device& device) const {
    return visit_dtype("tensor", dtype, [&]<class T>() {
      using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
      std::vector<Stored> values(reals_.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<Stored>(floats_ ? convert<T>(reals_[i]) : convert<T>(integers_[i]));
      }
      return tl::Tensor::from_bytes(std::as_bytes(std::span(values)), dtype, shape_, device);
    });
  }

 private:
  bool add_list(const Value& list, int depth) {
    if (depth >= Dims::kMax || (leaf_depth_ >= 0 && depth >= leaf_depth_)) return false;
    const std::size_t size = list_size(list);
    expect_reasonable(size);
    if (shape_.size() == depth) shape_.push_back(static_cast<std::int64_t>(size));
    if (shape_[depth] != static_cast<std::int64_t>(size)) return false;
    for (std::size_t i = 0; i < size; ++i) {
      if (list.is(Kind::List)) {
        if (!add(list.as<ListObject>().values[i], depth + 1)) return false;
      } else if (!add(list_item(list, i), depth + 1)) {
        return false;
      }
    }
    return true;
  }

  Shape shape_;
  std::vector<double> reals_;
  std::vector<std::int64_t> integers_;
  int leaf_depth_ = -1;
  bool floats_ = false;
  bool bools_ = true;
};

bool holds_followed(const Value& value, int depth = 0) {
  if (value.is(Kind::Tensor)) return depth > 0 && has_history(value.tensor());
  if (depth > Dims::kMax || (!value.is(Kind::List) && !value.is(Kind::Tuple))) return false;
  for (std::size_t i = 0; i < list_size(value); ++i) {
    if (holds_followed(list_item(value, i), depth + 1)) return true;
  }
  return false;
}

// [a, b] of tensors stands for them along a new first dimension.
std::optional<tl::Tensor> stacked(const Context& context, std::string_view who, const Value& list,
                                  std::optional<DType> dtype) {
  if (!list.is(Kind::List) && !list.is(Kind::Tuple)) return std::nullopt;
  const std::size_t size = list_size(list);
  if (size == 0) return std::nullopt;
  // Numbers too, beside a loss or the like: as numbers alone they would lose where they come from.
  const bool follows = holds_followed(list);
  for (std::size_t i = 0; i < size; ++i) {
    const Value item = list_item(list, i);
    const bool is_part = item.is_number() || item.is(Kind::List) || item.is(Kind::Tuple);
    if (!item.is_tensor() && !(follows && is_part)) return std::nullopt;
  }
  std::vector<tl::Tensor> parts;
  for (std::size_t i = 0; i < size; ++i) {
    parts.push_back(to_tensor(context, who, list_item(list, i), dtype));
  }
  std::vector<tl::Tensor*> all;
  for (tl::Tensor& part : parts) all.push_back(&part);
  bring_together(context, all);
  return stack(parts, 0);
}

}  // namespace

std::optional<tl::Tensor> list_tensor(const Value& value, DType dtype) {
  Numbers numbers;
  if (!numbers.add(value, 0)) return std::nullopt;
  return numbers.tensor(dtype, Device::cpu());
}

tl::Tensor to_tensor(const Context& context, std::string_view who, const Value& value,
                     std::optional<DType> dtype) {
  switch (value.kind()) {
    case Kind::Tensor:
      return dtype && *dtype != value.tensor().dtype() ? to_dtype(value.tensor(), *dtype)
                                                       : value.tensor();
    case Kind::QTensor: {
      const DType wanted = dtype.value_or(DType::F32);
      const bool direct = wanted == DType::F32 || wanted == DType::F16 || wanted == DType::BF16;
      const tl::Tensor plain = value.qtensor().dequantize(direct ? wanted : DType::F32);
      return direct ? plain : to_dtype(plain, wanted);
    }
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float: {
      Numbers numbers;
      numbers.add(value, 0);
      const DType wanted = dtype.value_or(value.is(Kind::Bool) ? DType::Bool : DType::F32);
      numbers.expect_fits(who, wanted);
      return numbers.tensor(wanted, context.device);
    }
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::Tokens:
    case Kind::Vec: {
      if (is_pieces(value)) {
        return to_tensor(context, who, value.as<ListObject>().values[0], dtype);
      }
      Numbers numbers;
      if (!holds_followed(value) && numbers.add(value, 0)) {
        const DType usual = value.is(Kind::Tokens) ? DType::I32
                            : numbers.only_bools() ? DType::Bool
                                                   : DType::F32;
        numbers.expect_fits(who, dtype.value_or(usual));
        return numbers.tensor(dtype.value_or(usual), context.device);
      }
      if (auto tensor = stacked(context, who, value, dtype)) return *std::move(tensor);
      throw type_error(who,
                       " expects a tensor, got a list that is none: its rows differ in length "
                       "or hold something other than numbers");
    }
    default:
      throw type_error(who, " expects a tensor, got ", type_name(value));
  }
}

Value from_tensor_item(const tl::Tensor& one) {
  const Scalar item = one.item();
  if (one.dtype() == DType::Bool) return item.real() != 0;
  if (is_int(one.dtype())) return item.integer();
  return item.real();
}

Value number_of(const tl::Tensor& one) {
  return has_history(one) ? Value(one) : from_tensor_item(one);
}

// ---- numbers

std::int64_t saturated(double number) noexcept { return convert<std::int64_t>(number); }

std::optional<double> real_in(const Value& value) {
  switch (value.kind()) {
    case Kind::Bool:
    case Kind::Int:
      return static_cast<double>(value.integer());
    case Kind::Float:
      return value.real();
    case Kind::Tensor:
      if (value.tensor().count() != 1) return std::nullopt;
      return value.tensor().item().real();
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> integer_in(const Value& value) {
  switch (value.kind()) {
    case Kind::Bool:
    case Kind::Int:
      return value.integer();
    case Kind::Float:
      return saturated(value.real());
    case Kind::Tensor: {
      if (value.tensor().count() != 1) return std::nullopt;
      const Value item = from_tensor_item(value.tensor());
      return item.is(Kind::Float) ? saturated(item.real()) : item.integer();
    }
    default:
      return std::nullopt;
  }
}

std::vector<double> list_of_reals(const tl::Tensor& x) {
  return to_dtype(to(x, Device::cpu()), DType::F64).to_vector<double>();
}

// ---- operands that go together

Device common_device(const Context& context, const tl::Tensor& a, const tl::Tensor& b) {
  const DeviceLocation wanted = context.device->location();
  return b.location() == wanted && a.location() != wanted ? b.device() : a.device();
}

void bring_together(const Context& context, std::span<tl::Tensor* const> tensors) {
  if (tensors.size() < 2) return;
  DType dtype = tensors[0]->dtype();
  bool moves = false;
  bool converts = false;
  for (const tl::Tensor* x : tensors.subspan(1)) {
    dtype = promote(dtype, x->dtype());
    moves = moves || x->location() != tensors[0]->location();
  }
  for (const tl::Tensor* x : tensors) converts = converts || x->dtype() != dtype;
  if (converts) {
    for (tl::Tensor* x : tensors) *x = to_dtype(*x, dtype);
  }
  if (moves) {
    Device device = tensors[0]->device();
    for (const tl::Tensor* x : tensors) {
      if (x->location() == context.device->location()) device = x->device();
    }
    for (tl::Tensor* x : tensors) *x = to(*x, device);
  }
}

tl::Tensor converted(const Context& context, std::string_view who, const Value& value,
                     DType dtype) {
  if (!is_int(dtype) || !has_floats(value)) return to_tensor(context, who, value, dtype);
  return to_dtype(to_tensor(context, who, value, DType::F64), dtype);
}

tl::Tensor index_tensor(const Context& context, std::string_view who, const Value& value) {
  tl::Tensor ids = value.is_tensor() ? to_tensor(context, who, value)
                                     : converted(context, who, value, DType::I64);
  // The largest value of a dtype means "nothing" to the library: no index of a program should.
  const bool wide = ids.dtype() == DType::I64 || ids.dtype() == DType::I32;
  return wide ? ids : to_dtype(ids, DType::I64);
}

tl::Tensor mask_tensor(const Context& context, std::string_view who, const Value& value) {
  tl::Tensor mask =
      to_tensor(context, who, value, value.is_tensor() ? std::nullopt : std::optional(DType::Bool));
  return is_float(mask.dtype()) ? to_dtype(mask, DType::Bool) : mask;
}

}  // namespace tl::lang
