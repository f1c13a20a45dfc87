// Values as print() shows them. What is shown of a long list, and how numbers are written, is part
// of the language.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "lang/builtin.h"
#include "lang/value.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

constexpr std::size_t kShown = 10;  // elements of lists and tensors that are shown one by one
constexpr int kDeepest = 100;       // levels of lists that are shown

// The shortest digits that read back as the number, and where the point stands in them.
struct Digits {
  bool negative = false;
  std::string digits;  // without leading or trailing zeros; "0" for zero
  int point = 1;       // 0.DIGITS times 10 to this power
};

template <class T>
Digits shortest(T number) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
  Digits out;
  if (text.front() == '-') {
    out.negative = true;
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* first = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(first, text.data() + text.size(), exponent);
  for (const char c : text.substr(0, e)) {
    if (c != '.') out.digits += c;
  }
  while (out.digits.size() > 1 && out.digits.back() == '0') out.digits.pop_back();
  out.point = out.digits == "0" ? 1 : exponent + 1;
  return out;
}

template <class T>
std::string plain(T number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  const Digits d = shortest(number);
  const auto size = static_cast<int>(d.digits.size());
  std::string out = d.negative ? "-" : "";
  if (d.point <= 0) {
    out += "0." + std::string(static_cast<std::size_t>(-d.point), '0') + d.digits;
  } else if (d.point >= size) {
    out += d.digits + std::string(static_cast<std::size_t>(d.point - size), '0');
  } else {
    out += d.digits;
    out.insert(out.size() - static_cast<std::size_t>(size - d.point), 1, '.');
  }
  return out;
}

// As lists show floats: with a point, and an exponent where there would be many zeros.
std::string listed(double number) {
  if (!std::isfinite(number)) return plain(number);
  const double size = std::abs(number);
  if (size != 0 && (size < 1e-5 || size >= 1e16)) {
    const Digits d = shortest(number);
    std::string out = d.negative ? "-" : "";
    out += d.digits[0];
    if (d.digits.size() > 1) out += "." + d.digits.substr(1);
    return out + "e" + std::to_string(d.point - 1);
  }
  std::string out = plain(number);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string shape_text(const Shape& shape) {
  std::string out = "[";
  for (int d = 0; d < shape.size(); ++d) {
    if (d > 0) out += ", ";
    out += std::to_string(shape[d]);
  }
  return out + "]";
}

std::string tensor_heading(std::string_view dtype, const Shape& shape) {
  std::string lower(dtype);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return "Tensor<" + lower + ">(shape=" + shape_text(shape) + ")";
}

std::string tensor_text(const tl::Tensor& tensor) {
  if (tensor.count() > static_cast<std::int64_t>(kShown)) {
    return tensor_heading(name(tensor.dtype()), tensor.shape());
  }
  std::string out = "[";
  visit_dtype("print", tensor.dtype(), [&]<class T>() {
    using Read = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    for (const Read value : tensor.to_vector<Read>()) {
      if (out.size() > 1) out += ", ";
      if constexpr (std::is_same_v<T, bool>) {
        out += value != 0 ? "1" : "0";
      } else if constexpr (std::is_integral_v<T>) {
        out += std::to_string(value);
      } else if constexpr (std::is_same_v<T, double>) {
        out += plain(value);
      } else {
        out += plain(static_cast<float>(value));
      }
    }
  });
  return out + "]";
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        out += c;
    }
  }
  return out + "\"";
}

std::string shown(const Value& value, int depth);

// `[a, b]`, or `[a, b, ..., z] (len=N)`. `item` gives the text of one element.
template <class F>
std::string row(std::size_t count, F&& item) {
  std::string out = "[";
  if (count > kShown) {
    out += item(0) + ", " + item(1) + ", ..., " + item(count - 1);
    return out + "] (len=" + std::to_string(count) + ")";
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    out += item(i);
  }
  return out + "]";
}

std::string values_text(const std::vector<Value>& values, int depth) {
  const bool numbers =
      std::all_of(values.begin(), values.end(), [](const Value& v) { return v.is_number(); });
  const bool floats = numbers && std::any_of(values.begin(), values.end(),
                                             [](const Value& v) { return v.is(Kind::Float); });
  return row(values.size(), [&](std::size_t i) {
    return floats ? listed(values[i].number()) : shown(values[i], depth + 1);
  });
}

std::string joined(const std::vector<Value>& values, int depth) {
  std::string out;
  for (const Value& value : values) {
    if (!out.empty()) out += ", ";
    out += shown(value, depth + 1);
  }
  return out;
}

std::string list_text(const Value& value, int depth) {
  const auto& values = value.as<ListObject>().values;
  // Rows of equal length stand for a tensor and look like one.
  if (!values.empty() && values.front().is(Kind::List)) {
    if (const auto tensor = list_tensor(value, DType::F64)) {
      return tensor->count() > static_cast<std::int64_t>(kShown)
                 ? tensor_heading("f32", tensor->shape())
                 : tensor_text(*tensor);
    }
  }
  return values_text(values, depth);
}

std::string map_text(const MapObject& map, int depth) {
  std::string out = "{";
  for (const MapObject::Entry& entry : map.entries) {
    if (out.size() > 1) out += ", ";
    out += shown(entry.key, depth + 1) + ": " + shown(entry.value, depth + 1);
  }
  return out + "}";
}

std::string tokens_text(const TokensObject& tokens) {
  std::string out = "[";
  for (const std::int32_t id : tokens.ids) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(id);
  }
  return out + "]";
}

// As a list shows it.
std::string shown(const Value& value, int depth) {
  if (depth > kDeepest) return "...";
  switch (value.kind()) {
    case Kind::Void:
      return "void";
    case Kind::Missing:
      return "nothing";
    case Kind::Bool:
      return value.boolean() ? "true" : "false";
    case Kind::Int:
      return std::to_string(value.integer());
    case Kind::Float:
      return listed(value.real());
    case Kind::String:
      return quoted_text(value.string());
    case Kind::Tensor: {
      std::string text = tensor_text(value.tensor());
      // A number that gradients flow through is shown as the number.
      const bool is_number = value.tensor().rank() == 0 && value.tensor().has_history();
      return is_number ? text.substr(1, text.size() - 2) : text;
    }
    case Kind::QTensor:
      return tensor_heading(name(value.qtensor().type()), value.qtensor().shape());
    case Kind::List:
      return list_text(value, depth);
    case Kind::Tuple: {
      const auto& values = value.as<TupleObject>().values;
      return "(" + joined(values, depth) + (values.size() == 1 ? ",)" : ")");
    }
    case Kind::Map:
      return map_text(value.as<MapObject>(), depth);
    case Kind::Range: {
      const auto& range = value.as<RangeObject>();
      return row(static_cast<std::size_t>(range.size()), [&](std::size_t i) {
        return std::to_string(range.first + static_cast<std::int64_t>(i));
      });
    }
    case Kind::Tokens:
      return tokens_text(value.as<TokensObject>());
    case Kind::Vec:
      return "Vec" + values_text(value.as<VecObject>().values, depth);
    case Kind::Function:
      return "<fn " + std::string(function_name(value.as<FunctionObject>())) + ">";
    case Kind::Struct:
      return "<" + std::string(struct_name(value.as<StructObject>())) + ">";
    case Kind::Type:
      return "<Type: " + value.as<TypeObject>().name + ">";
    case Kind::Host: {
      const auto* host = dynamic_cast<const HostObject*>(value.object());
      return host == nullptr ? "<Iterator>" : host->text();
    }
  }
  return "";
}

}  // namespace

std::string number_text(double number) { return plain(number); }

std::string text(const Value& value) {
  if (value.is(Kind::String)) return value.string();
  if (value.is(Kind::Float)) return plain(value.real());
  return shown(value, 0);
}

std::string quoted(const Value& value) { return shown(value, 0); }

}  // namespace tl::lang
