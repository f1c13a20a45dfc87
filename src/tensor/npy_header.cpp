#include "tensor/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/little_endian.h"
#include "tl/base/error.h"

namespace tl::files {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostHeader = 1 << 20;  // bytes; NumPy itself refuses more than 10000

template <class... Parts>
[[noreturn]] void bad_file(std::string_view file, const Parts&... parts) {
  throw Error(ErrorKind::BadFile, file, parts...);
}

struct TypeName {
  std::string_view name;  // without the byte order; ends in the bytes of an element
  Stored type;
};

constexpr std::array<TypeName, 12> kTypeNames = {{{"b1", Stored::Bool},
                                                  {"u1", Stored::U8},
                                                  {"i1", Stored::I8},
                                                  {"u2", Stored::U16},
                                                  {"i2", Stored::I16},
                                                  {"u4", Stored::U32},
                                                  {"i4", Stored::I32},
                                                  {"u8", Stored::U64},
                                                  {"i8", Stored::I64},
                                                  {"f2", Stored::F16},
                                                  {"f4", Stored::F32},
                                                  {"f8", Stored::F64}}};

// The header is the text of a Python dictionary: {'descr': '<f4', 'fortran_order': False,
// 'shape': (2, 3), }.
class HeaderReader {
 public:
  HeaderReader(std::string_view file, std::string_view text) : file_(file), text_(text) {}

  NpyHeader read() {
    expect('{');
    bool descr = false, order = false, shape = false;
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      bool& seen = key == "descr"           ? descr
                   : key == "fortran_order" ? order
                   : key == "shape"         ? shape
                                            : unknown(key);
      if (std::exchange(seen, true)) fail("has '", key, "' twice");
      if (&seen == &descr) read_descr();
      if (&seen == &order) header_.fortran = boolean();
      if (&seen == &shape) read_shape();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) fail("lacks 'descr', 'fortran_order' or 'shape'");
    skip();
    if (at_ != text_.size()) fail("goes on after its end");
    return std::move(header_);
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    bad_file(file_, "the header ", parts..., " (character ", at_, ")");
  }
  bool& unknown(const std::string& key) const { fail("has an unknown key '", key, "'"); }

  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail("has no '", c, "' where one must be");
  }
  std::string quoted() {
    skip();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("lacks a text");
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == text_.npos) fail("has a text without end");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  void read_descr() {
    skip();
    if (at_ < text_.size() && text_[at_] == '[') {
      throw Error(ErrorKind::Unsupported, file_, "structured arrays cannot be read");
    }
    header_.descr = quoted();
  }
  bool boolean() {
    skip();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::strlen(word);
        return value;
      }
    }
    fail("has neither True nor False for 'fortran_order'");
  }
  void read_shape() {
    expect('(');
    while (!take(')')) {
      skip();
      std::int64_t size = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("has a size that is no number of elements");
      at_ = static_cast<std::size_t>(end - text_.data());
      take('L');  // Python 2 wrote long integers so
      if (header_.shape.size() == Dims::kMax) {
        throw Error(ErrorKind::Unsupported, file_, "an array with more than ", Dims::kMax,
                    " dimensions cannot be read");
      }
      header_.shape.push_back(size);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view file_;
  std::string_view text_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

// The type of the elements, and how many bytes they take.
void settle_type(std::string_view file, NpyHeader& header) {
  if (header.descr.size() != 3) return;
  const char order = header.descr[0];
  const auto type = std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const TypeName& row) {
    return std::string_view(header.descr).substr(1) == row.name;
  });
  if (type == kTypeNames.end() || std::string_view("<>|=").find(order) == std::string_view::npos) {
    return;
  }
  header.type = type->type;
  header.big_endian = order == '>';
  const auto count = static_cast<std::uint64_t>(element_count(file, header.shape));
  const auto size = static_cast<std::uint64_t>(type->name.back() - '0');
  if (__builtin_mul_overflow(count, size, &header.bytes)) {
    bad_file(file, "the header has the shape ", header.shape, " of '", header.descr,
             "', more bytes than there can be");
  }
}

}  // namespace

NpyHeader read_npy_header(std::string_view label, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || bytes.size() < 10) bad_file(label, "is no .npy file");
  const auto version = std::to_integer<unsigned>(bytes[6]);
  if (version < 1 || version > 3) {
    throw Error(ErrorKind::Unsupported, label, "is of version ", version, " of the .npy format");
  }
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix) bad_file(label, "is cut off in its header");
  const std::size_t length = version == 1 ? load_number<std::uint16_t>(bytes.data() + 8)
                                          : load_number<std::uint32_t>(bytes.data() + 8);
  if (length > kMostHeader || length > bytes.size() - prefix) {
    bad_file(label, "a header of ", length, " bytes does not fit in a file of ", bytes.size());
  }
  NpyHeader header = HeaderReader(label, text.substr(prefix, length)).read();
  header.data = prefix + length;
  settle_type(label, header);
  return header;
}

}  // namespace tl::files
