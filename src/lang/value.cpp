#include "lang/value.h"

#include <functional>
#include <limits>
#include <optional>

#include "lang/builtin.h"
#include "lang/convert.h"
#include "tl/ops/copy.h"

namespace tl::lang {

// ---- making values

Value::Value(std::string text) : Value(of(new StringObject(std::move(text)))) {}
Value::Value(tl::Tensor tensor) : Value(of(new TensorObject(std::move(tensor)))) {}
Value::Value(const tl::QTensor& tensor) : Value() {
  if (const auto dtype = is_plain(tensor.type()) ? plain_dtype(tensor.type()) : std::nullopt) {
    *this = Value(tl::Tensor::from_memory(tensor.memory(), *dtype, Layout(tensor.shape())));
  } else {
    *this = of(new QTensorObject(tensor));
  }
}

const std::string& Value::string() const noexcept { return as<StringObject>().text; }
const tl::Tensor& Value::tensor() const noexcept { return as<TensorObject>().tensor; }
const tl::QTensor& Value::qtensor() const noexcept { return as<QTensorObject>().tensor; }

// ---- letting go

// Lists of lists go level by level, and each level is a call. Beyond this depth objects wait until
// the calls have returned, so that no nesting can use up the stack.
void Object::release_nested() noexcept {
  constexpr int kDepth = 256;
  static thread_local int depth = 0;
  static thread_local Object* waiting = nullptr;
  if (depth >= kDepth) {
    next_ = waiting;
    waiting = this;
    return;
  }
  ++depth;
  delete this;
  if (depth == 1) {
    while (waiting != nullptr) {
      Object* object = waiting;
      waiting = object->next_;
      delete object;
    }
  }
  --depth;
}

// ---- maps

namespace {

constexpr std::size_t kSmallMap = 8;  // up to here the keys are compared one by one

bool is_key(const Value& key) noexcept {
  return key.is(Kind::String) || key.is(Kind::Int) || key.is(Kind::Bool);
}

bool same_key(const Value& a, const Value& b) noexcept {
  if (a.kind() != b.kind()) return false;
  return a.is(Kind::String) ? a.string() == b.string() : a.integer() == b.integer();
}

std::size_t hash_key(const Value& key) noexcept {
  if (key.is(Kind::String)) return std::hash<std::string_view>{}(key.string());
  // Neighbouring integers go to places far apart.
  return static_cast<std::size_t>(static_cast<std::uint64_t>(key.integer()) * 0x9e3779b97f4a7c15u >>
                                  20);
}

}  // namespace

void MapObject::rehash() const {
  std::size_t size = 16;
  while (size < 2 * entries.size()) size *= 2;
  buckets_.assign(size, 0);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::size_t at = hash_key(entries[i].key) & (size - 1);
    while (buckets_[at] != 0) at = (at + 1) & (size - 1);
    buckets_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

std::size_t MapObject::place(const Value& key) const {
  if (entries.size() <= kSmallMap) {
    std::size_t i = 0;
    while (i < entries.size() && !same_key(entries[i].key, key)) ++i;
    return i;
  }
  if (buckets_.empty()) rehash();
  std::size_t at = hash_key(key) & (buckets_.size() - 1);
  while (buckets_[at] != 0) {
    const std::size_t i = buckets_[at] - 1;
    if (same_key(entries[i].key, key)) return i;
    at = (at + 1) & (buckets_.size() - 1);
  }
  return entries.size();
}

const Value* MapObject::find(const Value& key) const {
  if (!is_key(key)) return nullptr;
  const std::size_t i = place(key);
  return i < entries.size() ? &entries[i].value : nullptr;
}

Value& MapObject::slot(const Value& key) {
  if (!is_key(key)) {
    throw type_error("A map's key must be a String, an Integer or a Boolean, got ", type_name(key));
  }
  const std::size_t i = place(key);
  if (i < entries.size()) return entries[i].value;
  if (entries.size() == std::numeric_limits<std::uint32_t>::max()) {
    throw invalid_operation("A map holds at most ", entries.size(), " entries");
  }
  entries.push_back({key, Value()});
  if (entries.size() > kSmallMap) {
    if (2 * entries.size() > buckets_.size()) {
      rehash();
    } else {
      std::size_t at = hash_key(key) & (buckets_.size() - 1);
      while (buckets_[at] != 0) at = (at + 1) & (buckets_.size() - 1);
      buckets_[at] = static_cast<std::uint32_t>(entries.size());
    }
  }
  return entries.back().value;
}

bool MapObject::remove(const Value& key) {
  if (!is_key(key)) return false;
  const std::size_t i = place(key);
  if (i == entries.size()) return false;
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
  buckets_.clear();  // every later entry has moved
  return true;
}

// ---- what a library's object does not offer

Value HostObject::property(Context& /*context*/, std::string_view name) const {
  throw type_error(type_name(), " has no property '", name, "'");
}
Value HostObject::index(Context& /*context*/, const Value& /*at*/) const {
  throw type_error(type_name(), " cannot be indexed");
}
std::int64_t HostObject::size() const { throw type_error(type_name(), " has no length"); }
bool HostObject::method(Context& /*context*/, std::string_view /*name*/, Args& /*args*/,
                        Value& /*result*/) {
  return false;
}

// ---- names of kinds

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::Void:
      return "Void";
    case Kind::Missing:
      return "nothing";
    case Kind::Bool:
      return "Boolean";
    case Kind::Int:
      return "Integer";
    case Kind::Float:
      return "Float";
    case Kind::String:
      return "String";
    case Kind::Tensor:
    case Kind::QTensor:
      return "Tensor";
    case Kind::List:
      return "List";
    case Kind::Tuple:
      return "Tuple";
    case Kind::Map:
      return "Map";
    case Kind::Range:
      return "Range";
    case Kind::Tokens:
      return "TokenIds";
    case Kind::Vec:
      switch (value.as<VecObject>().element) {
        case Kind::Int:
          return "IntVec";
        case Kind::Float:
          return "FloatVec";
        case Kind::String:
          return "StringVec";
        default:
          return "BoolVec";
      }
    case Kind::Function:
      return "Function";
    case Kind::Struct:
      return std::string(struct_name(value.as<StructObject>()));
    case Kind::Type:
      return "Type";
    case Kind::Host: {
      const auto* host = dynamic_cast<const HostObject*>(value.object());
      return host == nullptr ? "Iterator" : std::string(host->type_name());
    }
  }
  return "value";
}

// ---- equality

namespace {

constexpr int kDeepest = 200;  // levels of lists that are compared

bool equal_tensors(const tl::Tensor& a, const tl::Tensor& b) {
  if (a.shape() != b.shape()) return false;
  const auto read = [](const tl::Tensor& x, DType dtype) {
    return to_dtype(to(x, Device::cpu()), dtype);
  };
  if (is_int(a.dtype()) && is_int(b.dtype())) {
    return read(a, DType::I64).to_vector<std::int64_t>() ==
           read(b, DType::I64).to_vector<std::int64_t>();
  }
  return read(a, DType::F64).to_vector<double>() == read(b, DType::F64).to_vector<double>();
}

class Comparison {
 public:
  explicit Comparison(bool strict) : strict_(strict) {}

  bool same(const Value& a, const Value& b, int depth) const {
    if (depth > kDeepest) throw invalid_operation("The values are nested too deeply to compare");
    if (a.is_number() && b.is_number() && a.kind() != b.kind()) {
      return !strict_ && a.number() == b.number();
    }
    if (a.is_tensor() || b.is_tensor()) return same_tensors(a, b);
    const bool tuple = a.is(Kind::Tuple) || b.is(Kind::Tuple);
    if (!tuple && is_list_like(a) && is_list_like(b)) return same_lists(a, b, depth);
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
      case Kind::Void:
      case Kind::Missing:
        return true;
      case Kind::Bool:
      case Kind::Int:
        return a.integer() == b.integer();
      case Kind::Float:
        return a.real() == b.real();
      case Kind::String:
        return a.string() == b.string();
      case Kind::Type:
        return a.as<TypeObject>().name == b.as<TypeObject>().name;
      case Kind::Tuple:
        return same_lists(a, b, depth);
      case Kind::Map:
        return same_maps(a.as<MapObject>(), b.as<MapObject>(), depth);
      case Kind::Struct:
        return a.as<StructObject>().type == b.as<StructObject>().type &&
               same_values(a.as<StructObject>().fields, b.as<StructObject>().fields, depth);
      case Kind::Function: {
        const auto& f = a.as<FunctionObject>();
        const auto& g = b.as<FunctionObject>();
        return f.function == g.function && f.builtin == g.builtin &&
               same_values(f.captured, g.captured, depth);
      }
      default:
        return a.object() == b.object();
    }
  }

 private:
  bool same_values(const std::vector<Value>& a, const std::vector<Value>& b, int depth) const {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!same(a[i], b[i], depth + 1)) return false;
    }
    return true;
  }
  bool same_lists(const Value& a, const Value& b, int depth) const {
    const std::size_t size = list_size(a);
    if (size != list_size(b)) return false;
    if (a.is(Kind::Range) && b.is(Kind::Range)) {  // however long
      return size == 0 || a.as<RangeObject>().first == b.as<RangeObject>().first;
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (!same(list_item(a, i), list_item(b, i), depth + 1)) return false;
    }
    return true;
  }
  bool same_maps(const MapObject& a, const MapObject& b, int depth) const {
    if (a.entries.size() != b.entries.size()) return false;
    for (const MapObject::Entry& entry : a.entries) {
      const Value* other = b.find(entry.key);
      if (other == nullptr || !same(entry.value, *other, depth + 1)) return false;
    }
    return true;
  }
  // A list of numbers beside a tensor is the tensor it stands for.
  static bool same_tensors(const Value& a, const Value& b) {
    const auto held = [](const Value& value) -> std::optional<tl::Tensor> {
      if (value.is(Kind::Tensor)) return value.tensor();
      if (value.is(Kind::QTensor)) return value.qtensor().dequantize();
      return std::nullopt;
    };
    const auto left = held(a);
    const auto right = held(b);
    if (left && right) return equal_tensors(*left, *right);
    const tl::Tensor& tensor = left ? *left : *right;
    const Value& list = left ? b : a;
    // Integers beside 1.5 are compared as numbers.
    const DType dtype = is_int(tensor.dtype()) && has_floats(list) ? DType::F64 : tensor.dtype();
    const auto listed = list_tensor(list, dtype);
    return listed && equal_tensors(to_dtype(tensor, dtype), *listed);
  }

  bool strict_;
};

}  // namespace

bool equal(const Value& a, const Value& b) { return Comparison(true).same(a, b, 0); }
bool loosely_equal(const Value& a, const Value& b) { return Comparison(false).same(a, b, 0); }

}  // namespace tl::lang
