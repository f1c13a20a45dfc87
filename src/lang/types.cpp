#include "lang/types.h"

#include <array>
#include <cmath>
#include <optional>

#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

bool whole(double value) {
  return std::nearbyint(value) == value && value >= -0x1p63 && value < 0x1p63;
}

std::optional<double> one_number(const Value& value) {
  if (value.is_number()) return value.number();
  if (value.is(Kind::Tensor) && value.tensor().count() == 1) return value.tensor().item().real();
  return std::nullopt;
}

bool convert_scalar(Value& value, Kind wanted) {
  if (value.is(wanted)) return true;
  if (wanted == Kind::Float) {
    const std::optional<double> number = one_number(value);
    if (number) value = *number;
    return number.has_value();
  }
  if (wanted == Kind::Int) {
    const std::optional<double> number = one_number(value);
    if (!number || !whole(*number)) return false;
    value = static_cast<std::int64_t>(*number);
    return true;
  }
  return false;
}

bool fits(const Shape& shape, const TypeInfo& type, DimNames& names) {
  if (shape.size() != static_cast<int>(type.dims.size())) return false;
  const std::size_t before = names.size();
  const auto none = [&] {
    names.resize(before);  // those of this shape mean nothing
    return false;
  };
  for (int d = 0; d < shape.size(); ++d) {
    const TypeInfo::Dim& dim = type.dims[static_cast<std::size_t>(d)];
    if (dim.size >= 0 && dim.size != shape[d]) return none();
    if (dim.name.empty()) continue;
    bool known = false;
    for (const auto& [name, size] : names) {
      if (name != dim.name) continue;
      known = true;
      if (size != shape[d]) return none();
    }
    if (!known) names.emplace_back(dim.name, shape[d]);
  }
  return true;
}

bool convert_tensor(Context& context, Value& value, const TypeInfo& type, DimNames& names) {
  if (value.is_number() || value.is(Kind::Bool)) return true;
  if (type.any_shape) {
    if (!value.is_tensor() && is_tensor_like(value))
      value = to_tensor(context, "conversion", value);
    return value.is_tensor();
  }
  if (value.is(Kind::QTensor)) return fits(value.qtensor().shape(), type, names);
  if (!value.is(Kind::Tensor)) {
    if (!is_tensor_like(value)) return false;
    value = to_tensor(context, "conversion", value, type.dtype);
  }
  if (!fits(value.tensor().shape(), type, names)) return false;
  const DType have = value.tensor().dtype();
  if (have == type.dtype) return true;
  if (is_float(have) != is_float(type.dtype)) return false;
  value = to_dtype(value.tensor(), type.dtype);
  return true;
}

constexpr std::array<std::string_view, 12> kHostTypes = {
    "Model",  "ModelLayer",   "Tokenizer", "TokenIds", "KVCache",   "ModelCache",
    "IntVec", "TensorBuffer", "FloatVec",  "BoolVec",  "StringVec", "TextStream"};

bool is_host_type(const Value& value, std::string_view name) {
  const std::string type = type_name(value);
  if (name == "Model") {
    return type == "ModelF16" || type == "ModelF32" || type == "GGUFWeightCache" ||
           type == "WeightCache";
  }
  if (name == "ModelLayer") return type == "ModelLayerF16" || type == "ModelLayerF32";
  return type == name;
}

}  // namespace

std::span<const std::string_view> host_types() noexcept { return kHostTypes; }

bool convert(Context& context, Value& value, const TypeInfo& type, DimNames& names) {
  using TypeKind = ast::Type::Kind;
  switch (type.kind) {
    case TypeKind::Scalar:
      return convert_scalar(value, type.scalar);
    case TypeKind::Tensor:
      return convert_tensor(context, value, type, names);
    case TypeKind::Any:
      return true;
    case TypeKind::Named:
      if (value.is(Kind::Struct)) return value.as<StructObject>().type->name == type.name;
      return value.is_object() && is_host_type(value, type.name);
    case TypeKind::Entity:
      return value.is(Kind::String);
    case TypeKind::Void:
      return value.is(Kind::Void);
    case TypeKind::Tuple:
      return value.is(Kind::Tuple);
    case TypeKind::List:
      return value.is(Kind::List) || value.is(Kind::Range) || value.is(Kind::Tokens) ||
             value.is(Kind::Vec);
    case TypeKind::Map:
      return value.is(Kind::Map);
    case TypeKind::Function:
      return value.is(Kind::Function);
  }
  return false;
}

DType dtype_of_type(std::string_view name) {
  if (const std::optional<DType> dtype = dtype_by_name(name)) return *dtype;
  throw RuntimeError(join("tensors of ", name, " are not supported"));
}

}  // namespace tl::lang
