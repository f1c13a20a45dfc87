// Reads a GGUF file from its beginning to its end. Whatever is asked for is checked against the
// bytes that are left first; what is not there throws BadFile with the file, the byte and the
// field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "base/little_endian.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/model/gguf_value.h"

namespace tl::gguf {

inline constexpr std::size_t kMostName = 65535;  // bytes of a key or of a tensor's name

// A name in a message: long ones are cut, because a damaged length makes very long ones.
struct Quoted {
  std::string_view text;
};
inline std::ostream& operator<<(std::ostream& out, const Quoted& name) {
  constexpr std::size_t kMost = 100;
  out << '\'' << name.text.substr(0, kMost);
  return out << (name.text.size() > kMost ? "...'" : "'");
}

// What is being read, in words: "the type of key 'general.name'", "the name of tensor 3". Cheap to
// make: it is turned into text only when something is wrong.
struct Field {
  explicit Field(std::string_view field) noexcept : what(field) {}  // of the file itself
  Field(std::string_view field, std::string_view of, std::string_view named) noexcept
      : what(field), owner(of), name(named) {}
  // Of something whose name is not known yet.
  Field(std::string_view field, std::string_view of, std::uint64_t number) noexcept
      : what(field), owner(of), index(number) {}

  std::string_view what;   // "type"
  std::string_view owner;  // "key", "tensor"
  std::optional<std::string_view> name;
  std::uint64_t index = 0;
};
inline std::ostream& operator<<(std::ostream& out, const Field& field) {
  out << "the " << field.what;
  if (field.owner.empty()) return out;
  out << " of " << field.owner << ' ';
  if (!field.name) return out << field.index;
  return out << Quoted{*field.name};
}

// Bytes of a number or bool; 0 for texts and arrays.
inline std::size_t fixed_size(GgufType type) noexcept {
  switch (type) {
    case GgufType::U8:
    case GgufType::I8:
    case GgufType::Bool:
      return 1;
    case GgufType::U16:
    case GgufType::I16:
      return 2;
    case GgufType::U32:
    case GgufType::I32:
    case GgufType::F32:
      return 4;
    case GgufType::U64:
    case GgufType::I64:
    case GgufType::F64:
      return 8;
    case GgufType::String:
    case GgufType::Array:
      return 0;
  }
  return 0;
}

class Cursor {
 public:
  // `wide`: lengths and counts are of 64 bits.
  Cursor(std::string_view file, std::span<const std::byte> bytes, bool wide) noexcept
      : file_(file), bytes_(bytes), wide_(wide) {}

  std::uint64_t at() const noexcept { return at_; }
  std::uint64_t left() const noexcept { return bytes_.size() - at_; }
  bool wide() const noexcept { return wide_; }
  void set_wide(bool wide) noexcept { wide_ = wide; }
  std::string_view file() const noexcept { return file_; }

  template <class... Parts>
  [[noreturn]] void fail(std::uint64_t at, const Parts&... parts) const {
    throw Error(ErrorKind::BadFile, file_, "byte ", at, ": ", parts...);
  }

  std::span<const std::byte> take(std::uint64_t size, const Field& field) {
    if (size > left()) {
      fail(at_, field, " takes ", size, size == 1 ? " byte, " : " bytes, ", left(), " are left");
    }
    const auto bytes = bytes_.subspan(at_, size);
    at_ += size;
    return bytes;
  }
  template <class T>
  T number(const Field& field) {
    return files::load_number<T>(take(sizeof(T), field).data());
  }
  // A length or a count, which is not checked yet.
  std::uint64_t length(const Field& field) {
    return wide_ ? number<std::uint64_t>(field) : number<std::uint32_t>(field);
  }
  std::size_t length_size() const noexcept { return wide_ ? 8 : 4; }
  // A count of things that take at least `least` bytes each.
  std::uint64_t count(std::size_t least, const Field& field) {
    const std::uint64_t start = at_, value = length(field);
    check_count(start, value, least, field);
    return value;
  }
  void check_count(std::uint64_t start, std::uint64_t value, std::size_t least,
                   const Field& field) const {
    if (value > left() / least) {
      fail(start, field, " is ", value, ", and the ", left(), " bytes left have room for ",
           left() / least);
    }
  }
  std::string_view string(const Field& field) {
    const std::uint64_t start = at_, size = length(field);
    if (size > left()) {
      fail(start, field, " has a length of ", size, ", and ", left(), " bytes are left");
    }
    const auto bytes = take(size, field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // A name: a text that must be UTF-8 of at most kMostName bytes.
  std::string_view name(const Field& field) {
    const std::uint64_t start = at_;
    const std::string_view text = string(field);
    if (text.size() > kMostName) {
      fail(start, field, " has a length of ", text.size(), "; at most ", kMostName, " can be read");
    }
    if (const std::size_t bad = first_invalid_utf8(text); bad != text.size()) {
      fail(at_ - text.size() + bad, field, " is not UTF-8");
    }
    return text;
  }
  GgufType type(const Field& field) {
    const std::uint64_t start = at_;
    const auto code = number<std::uint32_t>(field);
    if (const auto type = gguf_type(code)) return *type;
    fail(start, field, " is ", code, ", and no type of value has that code");
  }

 private:
  std::string_view file_;
  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
  bool wide_;
};

// Reads the value of a key, the whole of it checked.
GgufValue read_value(Cursor& in, std::string_view key);
// The value as version 3 writes it: its type, then itself.
std::string encode_value(const GgufValue& value);

}  // namespace tl::gguf
