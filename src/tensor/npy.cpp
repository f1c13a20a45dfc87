#include "tl/tensor/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "tensor/atomic_file.h"
#include "tensor/stored.h"
#include "tensor/zip.h"
#include "tl/base/mapped_file.h"

namespace tl {

namespace {

using files::Stored;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kMostHeader = 1 << 20;  // bytes; NumPy itself refuses more than 10000

template <class... Parts>
[[noreturn]] void bad_file(std::string_view file, const Parts&... parts) {
  throw Error(ErrorKind::BadFile, file, parts...);
}

struct TypeName {
  std::string_view name;  // without the byte order
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

struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

// The header is the text of a Python dictionary: {'descr': '<f4', 'fortran_order': False,
// 'shape': (2, 3), }.
class HeaderReader {
 public:
  HeaderReader(std::string_view file, std::string_view text) : file_(file), text_(text) {}

  Header read() {
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
  Header header_;
};

// Row-major without gaps, seen with its dimensions in the reverse order.
Tensor reversed(const Tensor& x) {
  Dims order;
  for (int d = x.rank() - 1; d >= 0; --d) order.push_back(d);
  return x.permute(order);
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, const Device& device, std::string_view label) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || bytes.size() < 10) bad_file(label, "is no .npy file");
  const auto version = std::to_integer<unsigned>(bytes[6]);
  if (version < 1 || version > 3) {
    throw Error(ErrorKind::Unsupported, label, "is of version ", version, " of the .npy format");
  }
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix) bad_file(label, "is cut off in its header");
  const std::size_t length = version == 1 ? files::load_number<std::uint16_t>(bytes.data() + 8)
                                          : files::load_number<std::uint32_t>(bytes.data() + 8);
  if (length > kMostHeader || length > bytes.size() - prefix) {
    bad_file(label, "a header of ", length, " bytes does not fit in a file of ", bytes.size());
  }
  const Header header = HeaderReader(label, text.substr(prefix, length)).read();

  const char order = header.descr.empty() ? ' ' : header.descr[0];
  const auto type = std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const TypeName& row) {
    return header.descr.size() == 3 && header.descr.substr(1) == row.name;
  });
  if (type == kTypeNames.end() || std::string_view("<>|=").find(order) == std::string_view::npos) {
    throw Error(ErrorKind::Unsupported, label, "elements of NumPy type '", header.descr,
                "' have no dtype here");
  }
  const std::span<const std::byte> data = bytes.subspan(prefix + length);
  const std::uint64_t count = static_cast<std::uint64_t>(element_count(label, header.shape));
  if (count > data.size() / files::size_of(type->type)) {
    bad_file(label, "has ", data.size(), " bytes for shape ", header.shape, " of '", header.descr,
             "'");
  }
  Shape shape = header.shape;
  if (header.fortran) std::reverse(shape.begin(), shape.end());
  const Tensor x =
      files::make_tensor(label, type->type, order == '>',
                         data.first(count * files::size_of(type->type)), shape, device);
  return header.fortran ? reversed(x) : x;
}

Tensor read_npy(const std::string& path, const Device& device) {
  const MappedFile file(path);
  return parse_npy(file.bytes(), device, path);
}

namespace {

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::U8:
      return "|u1";
    case DType::U32:
      return "<u4";
    case DType::I16:
      return "<i2";
    case DType::I32:
      return "<i4";
    case DType::I64:
      return "<i8";
    case DType::F16:
      return "<f2";
    case DType::F32:
      return "<f4";
    case DType::F64:
      return "<f8";
    case DType::Bool:
      return "|b1";
    default:
      throw Error(ErrorKind::Unsupported, "npy", "NumPy has no type for ", dtype,
                  "; convert to f32 first");
  }
}

// All that stands before the elements, which then start on a multiple of 64 bytes.
std::string npy_header(const Tensor& x) {
  std::string text = join("{'descr': '", type_name(x.dtype()),
                          "', 'fortran_order': False, 'shape': ", x.shape().text(), ", }");
  constexpr std::size_t kPrefix = 10;
  text.append(63 - (kPrefix + text.size()) % 64, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

}  // namespace

void write_npy(const std::string& path, const Tensor& tensor) {
  const std::string header = npy_header(tensor);
  files::AtomicFile file(path);
  file.write(header);
  files::for_each_piece(tensor, [&](std::span<const std::byte> piece) { file.write(piece); });
  file.commit();
}

// ---- npz

struct Npz::State {
  std::string path;
  MappedFile mapped;
  std::span<const std::byte> bytes;
  files::ZipIndex index;
};

Npz::Npz(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Npz::Npz(std::string path) : state_(std::make_unique<State>()) {
  state_->mapped = MappedFile(path);
  state_->path = std::move(path);
  state_->bytes = state_->mapped.bytes();
  state_->index = files::read_zip_index(state_->path, state_->bytes);
}
Npz Npz::from_memory(std::span<const std::byte> bytes, std::string label) {
  auto state = std::make_unique<State>();
  state->path = std::move(label);
  state->bytes = bytes;
  state->index = files::read_zip_index(state->path, bytes);
  return Npz(std::move(state));
}
Npz::Npz(Npz&&) noexcept = default;
Npz& Npz::operator=(Npz&&) noexcept = default;
Npz::~Npz() = default;

std::vector<std::string> Npz::names() const {
  std::vector<std::string> out;
  for (const auto& [name, member] : state_->index) {
    if (name.ends_with(kSuffix)) out.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool Npz::has(std::string_view name) const { return state_->index.contains(join(name, kSuffix)); }

Tensor Npz::load(std::string_view name, const Device& device) const {
  const std::string file = join(name, kSuffix);
  const auto found = state_->index.find(file);
  if (found == state_->index.end()) {
    throw Error(ErrorKind::BadArgument, "npz", "there is no array '", name, "' in ", state_->path);
  }
  std::vector<std::byte> room;
  return parse_npy(files::read_zip_member(state_->path, state_->bytes, file, found->second, room),
                   device, join(state_->path, ": '", name, "'"));
}

NamedTensors Npz::load_all(const Device& device) const {
  NamedTensors out;
  for (const std::string& name : names()) out.emplace(name, load(name, device));
  return out;
}

void write_npz(const std::string& path, const NamedTensors& tensors) {
  // Headers first: what cannot be written is found before there is a file.
  std::vector<std::string> headers;
  for (const auto& [name, tensor] : tensors) headers.push_back(npy_header(tensor));
  files::ZipWriter zip(path);
  auto header = headers.begin();
  for (const auto& [name, tensor] : tensors) {
    zip.begin(join(name, kSuffix), header->size() + tensor.size_bytes());
    zip.add(std::as_bytes(std::span(*header)));
    files::for_each_piece(tensor, [&](std::span<const std::byte> piece) { zip.add(piece); });
    zip.end();
    ++header;
  }
  zip.commit();
}

}  // namespace tl
