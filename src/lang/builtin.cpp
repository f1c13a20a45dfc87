#include "lang/builtin.h"

#include "lang/convert.h"

namespace tl::lang {

std::string_view Args::name() const noexcept { return builtin_->name; }

void Args::refuse(std::size_t i, std::string_view wanted, std::string_view got) const {
  const auto& parameters = builtin_->parameters;
  const std::string_view parameter = parameters.empty()
                                         ? std::string_view("value")
                                         : parameters[std::min(i, parameters.size() - 1)].name;
  throw type_error(name(), "() expects ", wanted, " for '", parameter, "', got ", got);
}

void Args::bad(std::size_t i, std::string_view wanted) const {
  refuse(i, wanted, i < values_.size() ? type_name(values_[i]) : "nothing");
}

void Args::bad_value(std::size_t i, std::string_view wanted) const {
  constexpr std::size_t kLongest = 200;  // bytes of a value that still tell something
  const std::string value = quoted(values_[i]);
  refuse(i, wanted, value.size() <= kLongest ? value : type_name(values_[i]));
}

bool Args::boolean(std::size_t i) const {
  const Value& value = values_[i];
  if (value.is(Kind::Bool) || value.is(Kind::Int)) return value.integer() != 0;
  bad(i, "a Boolean");
}

std::int64_t Args::integer(std::size_t i) const {
  if (values_[i].is(Kind::Int)) return values_[i].integer();
  if (const auto integer = integer_in(values_[i])) return *integer;
  bad(i, "an Integer");
}

double Args::real(std::size_t i) const {
  if (values_[i].is(Kind::Tensor) && has_history(values_[i].tensor())) {
    bad(i, "a number, through which no gradient flows: detach() what is given");
  }
  if (const auto real = real_in(values_[i])) return *real;
  bad(i, "a number");
}

const std::string& Args::string(std::size_t i) const {
  if (values_[i].is(Kind::String)) return values_[i].string();
  bad(i, "a String");
}

tl::Tensor Args::tensor(const Context& context, std::size_t i) const {
  if (values_[i].is(Kind::Tensor)) return values_[i].tensor();
  return to_tensor(context, join(name(), "()"), values_[i]);
}

tl::Tensor Args::tensor(const Context& context, std::size_t i, DType dtype) const {
  return to_tensor(context, join(name(), "()"), values_[i], dtype);
}

Dims Args::dims(std::size_t i) const {
  const Value& value = values_[i];
  Dims dims;
  if (value.is_number()) {
    dims.push_back(integer(i));
  } else if (value.is(Kind::Tensor)) {
    const tl::Tensor& x = value.tensor();
    if (x.rank() > 1 || x.count() > Dims::kMax) bad(i, "a list of at most 8 sizes");
    for (const double size : list_of_reals(x)) dims.push_back(saturated(size));
  } else if (is_list_like(value)) {
    const std::size_t size = list_size(value);
    if (size > static_cast<std::size_t>(Dims::kMax)) bad(i, "a list of at most 8 sizes");
    for (std::size_t k = 0; k < size; ++k) {
      const auto item = integer_in(list_item(value, k));
      if (!item) bad(i, "a list of integers");
      dims.push_back(*item);
    }
  } else {
    bad(i, "a list of integers");
  }
  return dims;
}

DType Args::dtype(std::size_t i) const {
  if (values_[i].is(Kind::String)) {
    if (const auto dtype = dtype_by_name(values_[i].string())) return *dtype;
    throw type_error(name(), "(): '", values_[i].string(),
                     "' is no dtype; there are f32, f16, bf16, f64, f8e4m3, i64, i32, i16, u32, u8 "
                     "and bool");
  }
  bad(i, "the name of a dtype");
}

}  // namespace tl::lang
