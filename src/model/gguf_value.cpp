#include "tl/model/gguf_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ostream>
#include <utility>

#include "model/gguf_cursor.h"
#include "tl/base/error.h"

namespace tl {

namespace {

constexpr std::array<std::string_view, 13> kNames = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

void append(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
template <class T>
void append_number(std::string& out, T value) {
  append(out, std::as_bytes(std::span(&value, 1)));
}
void append_text(std::string& out, std::string_view text) {
  append_number(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

// Calls f<T>() with the C++ type of a number or bool. Texts and arrays have none.
template <class F>
decltype(auto) visit_number(GgufType type, F&& f) {
  switch (type) {
    case GgufType::U8:
      return f.template operator()<std::uint8_t>();
    case GgufType::I8:
      return f.template operator()<std::int8_t>();
    case GgufType::U16:
      return f.template operator()<std::uint16_t>();
    case GgufType::I16:
      return f.template operator()<std::int16_t>();
    case GgufType::U32:
      return f.template operator()<std::uint32_t>();
    case GgufType::I32:
      return f.template operator()<std::int32_t>();
    case GgufType::F32:
      return f.template operator()<float>();
    case GgufType::Bool:
      return f.template operator()<bool>();
    case GgufType::U64:
      return f.template operator()<std::uint64_t>();
    case GgufType::I64:
      return f.template operator()<std::int64_t>();
    default:
      return f.template operator()<double>();
  }
}

template <class T>
T load(const std::byte* from) {
  // A bool is checked when it is read; as a byte it is safe whatever it holds.
  if constexpr (std::is_same_v<T, bool>) return *from != std::byte{0};
  return files::load_number<T>(from);
}

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class To, class From>
constexpr bool kConvertible =
    (kIsInteger<To> && kIsInteger<From>) ||
    (std::is_floating_point_v<To> && std::is_floating_point_v<From>) || std::is_same_v<To, From>;

// Nothing when To cannot hold the value.
template <class To, class From>
std::optional<To> convert(From value) {
  if constexpr (kIsInteger<To>) {
    if (!std::in_range<To>(value)) return std::nullopt;
  } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>) {
    const auto rounded = static_cast<float>(value);
    if (std::isinf(rounded) && !std::isinf(value)) return std::nullopt;
    return rounded;
  }
  return static_cast<To>(value);
}

template <class T>
std::string number_text(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else {
    std::array<char, 40> room{};
    const auto end = std::to_chars(room.data(), room.data() + room.size(), value).ptr;
    return {room.data(), end};
  }
}

template <class T>
constexpr std::string_view kWanted = kIsInteger<T>                 ? "an integer"
                                     : std::is_floating_point_v<T> ? "a float"
                                     : std::is_same_v<T, bool>     ? "a bool"
                                                                   : "a string";

template <class T>
constexpr bool kIsText = std::is_same_v<T, std::string_view> || std::is_same_v<T, std::string>;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The least that an element takes in a file.
std::size_t least_size(GgufType type, const gguf::Cursor& in) {
  if (type == GgufType::String) return in.length_size();
  if (type == GgufType::Array) return 4 + in.length_size();
  return gguf::fixed_size(type);
}

void check_bools(const gguf::Cursor& in, std::uint64_t start, std::span<const std::byte> bytes,
                 const gguf::Field& field) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(),
                                [](std::byte each) { return std::to_integer<unsigned>(each) > 1; });
  if (bad == bytes.end()) return;
  in.fail(start + static_cast<std::uint64_t>(bad - bytes.begin()), field, " has the byte ",
          std::to_integer<unsigned>(*bad), ", which is no bool");
}

struct Array {
  GgufType element;
  std::uint64_t count;
  std::uint64_t start;  // of the elements
  int depth;            // with the arrays inside
};

// Moves past an array whose type has been read, and checks the whole of it. It calls itself for
// arrays inside, at most kMostNesting deep. Every step moves on in the file or ends.
Array skip_array(gguf::Cursor& in, std::string_view key, int depth) {
  if (depth > GgufValue::kMostNesting) {
    in.fail(in.at(), gguf::Field{"value", "key", key}, " has arrays nested deeper than ",
            GgufValue::kMostNesting);
  }
  const GgufType element = in.type({"element type", "key", key});
  const gguf::Field field{"element count", "key", key};
  const std::uint64_t count = in.count(least_size(element, in), field);
  Array array{element, count, in.at(), 1};
  if (element == GgufType::String) {
    for (std::uint64_t i = 0; i < count; ++i) in.string({"text in the array", "key", key});
  } else if (element == GgufType::Array) {
    for (std::uint64_t i = 0; i < count; ++i) {
      array.depth = std::max(array.depth, 1 + skip_array(in, key, depth + 1).depth);
    }
  } else {
    const auto bytes = in.take(count * gguf::fixed_size(element), field);
    if (element == GgufType::Bool) check_bools(in, array.start, bytes, {"value", "key", key});
  }
  return array;
}

}  // namespace

std::string_view name(GgufType type) noexcept {
  const auto code = static_cast<std::size_t>(type);
  return code < kNames.size() ? kNames[code] : "unknown";
}

std::ostream& operator<<(std::ostream& out, GgufType type) { return out << name(type); }

std::optional<GgufType> gguf_type(std::uint32_t code) noexcept {
  if (code >= kNames.size()) return std::nullopt;
  return static_cast<GgufType>(code);
}

bool is_integer(GgufType type) noexcept {
  switch (type) {
    case GgufType::F32:
    case GgufType::F64:
    case GgufType::Bool:
    case GgufType::String:
    case GgufType::Array:
      return false;
    default:
      return true;
  }
}

// ---- reading from a file

// What the reader and the writer know of a value and others need not.
struct detail::GgufValueAccess {
  // A value whose type has been read.
  static GgufValue read(gguf::Cursor& in, GgufType type, std::string_view key) {
    GgufValue value;
    value.type_ = type;
    value.wide_ = in.wide();
    value.file_ = in.file();
    value.key_ = key;
    const gguf::Field field{"value", "key", key};
    if (type == GgufType::String) {
      value.body_ = std::as_bytes(std::span(in.string(field)));
    } else if (type == GgufType::Array) {
      gguf::Cursor start = in;
      const Array array = skip_array(in, key, 1);
      value.element_ = array.element;
      value.count_ = array.count;
      value.depth_ = static_cast<std::uint8_t>(array.depth);
      start.take(array.start - start.at(), field);
      value.body_ = start.take(in.at() - array.start, field);
    } else {
      const std::uint64_t start = in.at();
      value.body_ = in.take(gguf::fixed_size(type), field);
      if (type == GgufType::Bool) check_bools(in, start, value.body_, field);
    }
    return value;
  }

  // Without the type; texts and arrays with their lengths, as they stand in an array.
  static void encode(const GgufValue& value, std::string& out) {
    if (value.type_ == GgufType::String) return append_text(out, as_text(value.body_));
    if (value.type_ != GgufType::Array) return append(out, value.body_);
    append_number(out, static_cast<std::uint32_t>(value.element_));
    append_number(out, value.count_);
    if (value.wide_ || gguf::fixed_size(value.element_) > 0) return append(out, value.body_);
    value.for_each([&](const GgufValue& item) { encode(item, out); });
  }
};

namespace gguf {

GgufValue read_value(Cursor& in, std::string_view key) {
  const GgufType type = in.type({"type", "key", key});
  return tl::detail::GgufValueAccess::read(in, type, key);
}

std::string encode_value(const GgufValue& value) {
  std::string out;
  append_number(out, static_cast<std::uint32_t>(value.type()));
  tl::detail::GgufValueAccess::encode(value, out);
  return out;
}

}  // namespace gguf

// ---- making values

GgufValue::GgufValue(GgufType type, std::span<const std::byte> bytes) : type_(type) {
  own_ = std::make_shared<const std::string>(as_text(bytes));
  body_ = std::as_bytes(std::span(*own_));
}

GgufValue::GgufValue(std::string_view text)
    : GgufValue(GgufType::String, std::as_bytes(std::span(text))) {}

GgufValue GgufValue::own_array(GgufType element, std::uint64_t count, std::string body, int depth) {
  GgufValue value;
  value.type_ = GgufType::Array;
  value.element_ = element;
  value.count_ = count;
  value.depth_ = static_cast<std::uint8_t>(depth);
  value.own_ = std::make_shared<const std::string>(std::move(body));
  value.body_ = std::as_bytes(std::span(*value.own_));
  return value;
}

GgufValue GgufValue::numbers_array(GgufType element, std::uint64_t count,
                                   std::span<const std::byte> bytes) {
  return own_array(element, count, std::string(as_text(bytes)), 1);
}

GgufValue GgufValue::array(std::span<const std::string_view> texts) {
  std::string body;
  for (const std::string_view text : texts) append_text(body, text);
  return own_array(GgufType::String, texts.size(), std::move(body), 1);
}

GgufValue GgufValue::array(std::span<const std::string> texts) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return array(views);
}

GgufValue GgufValue::array(GgufType element, std::span<const GgufValue> items) {
  std::string body;
  int depth = 1;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].type_ != element) {
      throw Error(ErrorKind::BadArgument, "gguf", "element ", i, " of an array of ", element,
                  " is of ", items[i].type_);
    }
    depth = std::max(depth, 1 + items[i].depth_);
    detail::GgufValueAccess::encode(items[i], body);
  }
  if (depth > kMostNesting) {
    throw Error(ErrorKind::BadArgument, "gguf", "arrays nested deeper than ", kMostNesting);
  }
  return own_array(element, items.size(), std::move(body), depth);
}

// ---- asking

template <class... Parts>
void GgufValue::fail(const Parts&... parts) const {
  if (file_.empty()) throw Error(ErrorKind::BadFile, "gguf", "the value ", parts...);
  throw Error(ErrorKind::BadFile, file_, "key ", gguf::Quoted{key_}, " ", parts...);
}

void GgufValue::refuse(std::string_view wanted) const {
  if (type_ == GgufType::String)
    fail("is the string ", gguf::Quoted{as_text(body_)}, ", not ", wanted);
  if (type_ == GgufType::Array) fail("is an ", text(), ", not ", wanted);
  fail("is the ", type_, " ", text(), ", not ", wanted);
}

GgufType GgufValue::element_type() const {
  if (!is_array()) refuse("an array");
  return element_;
}

std::uint64_t GgufValue::count() const {
  if (!is_array()) refuse("an array");
  return count_;
}

template <class T>
T GgufValue::to() const {
  if constexpr (kIsText<T>) {
    if (type_ != GgufType::String) refuse(kWanted<T>);
    return T(as_text(body_));
  } else {
    if (gguf::fixed_size(type_) == 0) refuse(kWanted<T>);
    return visit_number(type_, [&]<class From>() -> T {
      if constexpr (kConvertible<T, From>) {
        if (const auto value = convert<T>(load<From>(body_.data()))) return *value;
        fail("is the ", type_, " ", text(), ", which no ", *detail::gguf_number_type<T>(),
             " holds");
      } else {
        refuse(kWanted<T>);
      }
    });
  }
}

template <class T>
std::vector<T> GgufValue::to_vector() const {
  if (!is_array()) refuse("an array");
  std::vector<T> out;
  if constexpr (kIsText<T>) {
    if (element_ != GgufType::String) fail("is an ", text(), ", not of strings");
    out.reserve(count_);
    gguf::Cursor in(file_, body_, wide_);
    for (std::uint64_t i = 0; i < count_; ++i) out.emplace_back(in.string({"text", "key", key_}));
  } else {
    const auto mismatch = [&] {
      fail("is an ", text(), ", and its elements are not ", kWanted<T>);
    };
    if (gguf::fixed_size(element_) == 0) mismatch();
    visit_number(element_, [&]<class From> {
      if constexpr (kConvertible<T, From>) {
        out.reserve(count_);
        for (std::uint64_t i = 0; i < count_; ++i) {
          const From from = load<From>(body_.data() + i * sizeof(From));
          const auto value = convert<T>(from);
          if (!value) {
            fail("has the ", element_, " ", number_text(from), " as element ", i, ", which no ",
                 *detail::gguf_number_type<T>(), " holds");
          }
          out.push_back(*value);
        }
      } else {
        mismatch();
      }
    });
  }
  return out;
}

void GgufValue::for_each(const std::function<void(const GgufValue&)>& f, std::uint64_t most) const {
  gguf::Cursor in(file_, body_, wide_);
  const std::uint64_t wanted = std::min(most, count());
  for (std::uint64_t i = 0; i < wanted; ++i) {
    GgufValue item = detail::GgufValueAccess::read(in, element_, key_);
    item.own_ = own_;
    f(item);
  }
}

std::vector<GgufValue> GgufValue::items(std::uint64_t most) const {
  std::vector<GgufValue> out;
  for_each([&](const GgufValue& item) { out.push_back(item); }, most);
  return out;
}

std::string GgufValue::text() const {
  if (type_ == GgufType::String) return std::string(as_text(body_));
  if (type_ == GgufType::Array) return join("array of ", count_, " ", element_);
  return visit_number(type_, [&]<class T> { return number_text(load<T>(body_.data())); });
}

bool operator==(const GgufValue& a, const GgufValue& b) {
  return a.type_ == b.type_ && gguf::encode_value(a) == gguf::encode_value(b);
}

std::ostream& operator<<(std::ostream& out, const GgufValue& value) { return out << value.text(); }

template std::uint8_t GgufValue::to() const;
template std::int8_t GgufValue::to() const;
template std::uint16_t GgufValue::to() const;
template std::int16_t GgufValue::to() const;
template std::uint32_t GgufValue::to() const;
template std::int32_t GgufValue::to() const;
template std::uint64_t GgufValue::to() const;
template std::int64_t GgufValue::to() const;
template float GgufValue::to() const;
template double GgufValue::to() const;
template bool GgufValue::to() const;
template std::string_view GgufValue::to() const;
template std::string GgufValue::to() const;

template std::vector<std::uint8_t> GgufValue::to_vector() const;
template std::vector<std::int8_t> GgufValue::to_vector() const;
template std::vector<std::uint16_t> GgufValue::to_vector() const;
template std::vector<std::int16_t> GgufValue::to_vector() const;
template std::vector<std::uint32_t> GgufValue::to_vector() const;
template std::vector<std::int32_t> GgufValue::to_vector() const;
template std::vector<std::uint64_t> GgufValue::to_vector() const;
template std::vector<std::int64_t> GgufValue::to_vector() const;
template std::vector<float> GgufValue::to_vector() const;
template std::vector<double> GgufValue::to_vector() const;
template std::vector<bool> GgufValue::to_vector() const;
template std::vector<std::string_view> GgufValue::to_vector() const;
template std::vector<std::string> GgufValue::to_vector() const;

}  // namespace tl
