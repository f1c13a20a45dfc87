#include "tl/tensor/npy.h"

#include <algorithm>
#include <utility>

#include "tensor/atomic_file.h"
#include "tensor/npy_header.h"
#include "tensor/stored.h"
#include "tensor/zip.h"
#include "tl/base/mapped_file.h"

namespace tl {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kSuffix = ".npy";

template <class... Parts>
[[noreturn]] void bad_file(std::string_view file, const Parts&... parts) {
  throw Error(ErrorKind::BadFile, file, parts...);
}

NpyInfo info_of(files::NpyHeader header) {
  NpyInfo info{.stored = std::move(header.descr),
               .shape = header.shape,
               .fortran = header.fortran,
               .bytes = std::nullopt,
               .offset = header.data};
  if (header.type) info.bytes = header.bytes;
  return info;
}

// Row-major without gaps, seen with its dimensions in the reverse order.
Tensor reversed(const Tensor& x) {
  Dims order;
  for (int d = x.rank() - 1; d >= 0; --d) order.push_back(d);
  return x.permute(order);
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, const Device& device, std::string_view label) {
  const files::NpyHeader header = files::read_npy_header(label, bytes);
  if (!header.type) {
    throw Error(ErrorKind::Unsupported, label, "elements of NumPy type '", header.descr,
                "' have no dtype here");
  }
  const std::span<const std::byte> data = bytes.subspan(header.data);
  if (header.bytes > data.size()) {
    bad_file(label, "has ", data.size(), " bytes for shape ", header.shape, " of '", header.descr,
             "'");
  }
  Shape shape = header.shape;
  if (header.fortran) std::reverse(shape.begin(), shape.end());
  const Tensor x = files::make_tensor(label, *header.type, header.big_endian,
                                      data.first(header.bytes), shape, device);
  return header.fortran ? reversed(x) : x;
}

NpyInfo npy_info(const std::string& path) {
  const MappedFile file(path);
  return info_of(files::read_npy_header(path, file.bytes()));
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

  const files::ZipMember& member(std::string_view name) const;  // throws BadArgument
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

const files::ZipMember& Npz::State::member(std::string_view name) const {
  const auto found = index.find(join(name, kSuffix));
  if (found == index.end()) {
    throw Error(ErrorKind::BadArgument, "npz", "there is no array '", name, "' in ", path);
  }
  return found->second;
}

NpyInfo Npz::info(std::string_view name) const {
  std::vector<std::byte> room;
  const auto start =
      files::read_zip_member_start(state_->path, state_->bytes, join(name, kSuffix),
                                   state_->member(name), files::kMostNpyHeader, room);
  return info_of(files::read_npy_header(join(state_->path, ": '", name, "'"), start));
}

Tensor Npz::load(std::string_view name, const Device& device) const {
  std::vector<std::byte> room;
  return parse_npy(files::read_zip_member(state_->path, state_->bytes, join(name, kSuffix),
                                          state_->member(name), room),
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
