// Going through values, as `for` does.
#include "lang/convert.h"
#include "lang/operators.h"
#include "lang/utf8.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

class RangeIterator : public Iterator {
 public:
  RangeIterator(std::int64_t first, std::int64_t last) : at_(first), last_(last) {}
  bool next(Value& element) override {
    if (at_ >= last_) return false;
    element = at_++;
    return true;
  }

 private:
  std::int64_t at_, last_;
};

// Lists and what is like them. A list is held, so that what the loop does to the variable does not
// matter; a vector is shared and may change on the way.
class ListIterator : public Iterator {
 public:
  explicit ListIterator(Value list) : list_(std::move(list)) {}
  bool next(Value& element) override {
    if (at_ >= list_size(list_)) return false;
    element = list_item(list_, at_++);
    return true;
  }

 private:
  Value list_;
  std::size_t at_ = 0;
};

class StringIterator : public Iterator {
 public:
  explicit StringIterator(Value text) : text_(std::move(text)) {}
  bool next(Value& element) override {
    const std::string& text = text_.string();
    if (at_ >= text.size()) return false;
    const std::size_t length = utf8_length(text, at_);
    element = std::string_view(text).substr(at_, length);
    at_ += length;
    return true;
  }

 private:
  Value text_;
  std::size_t at_ = 0;
};

class MapIterator : public Iterator {
 public:
  explicit MapIterator(Value map) : map_(std::move(map)) {}
  bool next(Value& element) override {
    const auto& entries = map_.as<MapObject>().entries;
    if (at_ >= entries.size()) return false;
    const MapObject::Entry& entry = entries[at_++];
    element = make<TupleObject>(std::vector<Value>{entry.key, entry.value});
    return true;
  }

 private:
  Value map_;
  std::size_t at_ = 0;
};

// All elements in row-major order, read from the device once.
template <class T>
class TensorIterator : public Iterator {
 public:
  explicit TensorIterator(const tl::Tensor& tensor) : values_(tensor.to_vector<T>()) {}
  bool next(Value& element) override {
    if (at_ >= values_.size()) return false;
    element = values_[at_++];
    return true;
  }

 private:
  std::vector<T> values_;
  std::size_t at_ = 0;
};

class MaskIterator : public Iterator {
 public:
  explicit MaskIterator(const tl::Tensor& tensor) : values_(tensor.to_vector<std::uint8_t>()) {}
  bool next(Value& element) override {
    if (at_ >= values_.size()) return false;
    element = values_[at_++] != 0;
    return true;
  }

 private:
  std::vector<std::uint8_t> values_;
  std::size_t at_ = 0;
};

// The same for a tensor that gradients flow through: an element is a part of it.
class FollowedIterator : public Iterator {
 public:
  explicit FollowedIterator(const tl::Tensor& tensor) : flat_(reshape(tensor, {tensor.count()})) {}
  bool next(Value& element) override {
    if (at_ >= flat_.count()) return false;
    element = flat_.get(at_++);
    return true;
  }

 private:
  tl::Tensor flat_;
  std::int64_t at_ = 0;
};

Value over_tensor(const tl::Tensor& x) {
  if (has_history(x)) return make<FollowedIterator>(x);
  if (x.dtype() == DType::Bool) return make<MaskIterator>(x);
  if (is_int(x.dtype())) return make<TensorIterator<std::int64_t>>(to_dtype(x, DType::I64));
  return make<TensorIterator<double>>(to_dtype(x, DType::F64));
}

}  // namespace

Value Iterator::over(Context& /*context*/, const Value& value) {
  switch (value.kind()) {
    case Kind::Range:
      return make<RangeIterator>(value.as<RangeObject>().first, value.as<RangeObject>().last);
    case Kind::List:
    case Kind::Tuple:
    case Kind::Tokens:
    case Kind::Vec:
      return make<ListIterator>(value);
    case Kind::String:
      return make<StringIterator>(value);
    case Kind::Map:
      return make<MapIterator>(value);
    case Kind::Tensor:
      return over_tensor(value.tensor());
    case Kind::QTensor:
      return over_tensor(value.qtensor().dequantize());
    default:
      throw type_error(type_name(value), " cannot be iterated over");
  }
}

}  // namespace tl::lang
