// The values that the metadata of a GGUF file holds: numbers, bools, texts, and arrays of them, as
// deep as 64.
//
// A value keeps its encoded bytes and decodes what is asked for, so that a vocabulary of 150,000
// texts costs nothing until it is read, and then one view per text. The bytes of a value that was
// read belong to its file: use it, and the views it gives, while the GgufFile lives. Values made
// here own theirs; their views live as long as a copy of the value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tl {

// The values are the codes in the files.
enum class GgufType : std::uint8_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};

std::string_view name(GgufType type) noexcept;  // "u8", "string", "array"
std::ostream& operator<<(std::ostream& out, GgufType type);
std::optional<GgufType> gguf_type(std::uint32_t code) noexcept;  // nothing for an unknown code
bool is_integer(GgufType type) noexcept;                         // bool is none

namespace detail {

template <class T>
constexpr std::optional<GgufType> gguf_number_type() {
  if (std::is_same_v<T, std::uint8_t>) return GgufType::U8;
  if (std::is_same_v<T, std::int8_t>) return GgufType::I8;
  if (std::is_same_v<T, std::uint16_t>) return GgufType::U16;
  if (std::is_same_v<T, std::int16_t>) return GgufType::I16;
  if (std::is_same_v<T, std::uint32_t>) return GgufType::U32;
  if (std::is_same_v<T, std::int32_t>) return GgufType::I32;
  if (std::is_same_v<T, float>) return GgufType::F32;
  if (std::is_same_v<T, bool>) return GgufType::Bool;
  if (std::is_same_v<T, std::uint64_t>) return GgufType::U64;
  if (std::is_same_v<T, std::int64_t>) return GgufType::I64;
  if (std::is_same_v<T, double>) return GgufType::F64;
  return std::nullopt;
}

struct GgufValueAccess;  // for the reader and the writer

}  // namespace detail

// The C++ types of numbers and bools; others do not convert, so that what is stored is what was
// written in the program.
template <class T>
concept GgufNumber = detail::gguf_number_type<T>().has_value();

class GgufValue {
 public:
  static constexpr int kMostNesting = 64;  // arrays in arrays

  // ---- making values
  template <GgufNumber T>
  GgufValue(T number)  // NOLINT(google-explicit-constructor)
      : GgufValue(*detail::gguf_number_type<T>(), std::as_bytes(std::span(&number, 1))) {}
  GgufValue(std::string_view text);                                          // NOLINT
  GgufValue(const char* text) : GgufValue(std::string_view(text)) {}         // NOLINT
  GgufValue(const std::string& text) : GgufValue(std::string_view(text)) {}  // NOLINT
  template <GgufNumber T>
  static GgufValue array(std::span<const T> numbers) {
    return numbers_array(*detail::gguf_number_type<T>(), numbers.size(), std::as_bytes(numbers));
  }
  static GgufValue array(std::span<const std::string_view> texts);
  static GgufValue array(std::span<const std::string> texts);
  // Any elements, arrays among them. Throws BadArgument for one that is not of that type, and for
  // more nesting than files may have.
  static GgufValue array(GgufType element, std::span<const GgufValue> items);

  // ---- asking
  GgufType type() const noexcept { return type_; }
  bool is_array() const noexcept { return type_ == GgufType::Array; }
  // Of an array. These throw BadFile, naming the key, for anything else.
  GgufType element_type() const;
  std::uint64_t count() const;

  // The value as T: one of the eight integers, which takes any stored integer it can hold; float or
  // double, from either; bool; std::string_view or std::string. Anything else throws BadFile with
  // the key, the stored type and the value. Texts are the bytes of the file: nobody promises UTF-8.
  template <class T>
  T to() const;
  // The elements of an array by the same rules.
  template <class T>
  std::vector<T> to_vector() const;
  // The first elements of an array as values; the way into arrays of arrays. for_each() has one
  // value at a time, where a list of all would be many times the array.
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  std::vector<GgufValue> items(std::uint64_t most = kAll) const;
  void for_each(const std::function<void(const GgufValue&)>& f, std::uint64_t most = kAll) const;

  // Numbers in the fewest digits that give them back, texts as they are, "array of 3 u32".
  std::string text() const;

  // Equal types and equal bytes: a NaN equals itself, 3 as u8 is not 3 as u32.
  friend bool operator==(const GgufValue& a, const GgufValue& b);

 private:
  friend struct detail::GgufValueAccess;
  GgufValue() noexcept = default;
  GgufValue(GgufType type, std::span<const std::byte> bytes);
  static GgufValue numbers_array(GgufType element, std::uint64_t count,
                                 std::span<const std::byte> bytes);
  static GgufValue own_array(GgufType element, std::uint64_t count, std::string body, int depth);

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const;
  [[noreturn]] void refuse(std::string_view wanted) const;

  GgufType type_ = GgufType::U8;
  GgufType element_ = GgufType::U8;  // of an array
  bool wide_ = true;                 // lengths inside are of 64 bits; 32 in version 1
  std::uint8_t depth_ = 0;           // how many arrays are inside each other
  std::uint64_t count_ = 0;          // of an array
  std::span<const std::byte> body_;  // the number, the text, or the elements one after another
  std::shared_ptr<const std::string> own_;  // what body_ shows, when no file holds it
  std::string_view file_;                   // for messages; empty for values made here
  std::string_view key_;
};

std::ostream& operator<<(std::ostream& out, const GgufValue& value);

}  // namespace tl
