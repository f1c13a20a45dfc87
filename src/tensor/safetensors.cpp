#include "tl/tensor/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tensor/atomic_file.h"
#include "tensor/safetensors_header.h"
#include "tensor/stored.h"
#include "tl/base/mapped_file.h"

namespace tl {

namespace {

using files::Stored;
using Entry = Safetensors::Entry;

}  // namespace

// ---- reading

struct Safetensors::State {
  struct File {
    std::string path;
    MappedFile mapped;
    std::span<const std::byte> bytes;
  };

  void add(File file) {
    files.push_back(std::move(file));
    for (auto& [name, entry] :
         files::read_safetensors_header(files.back().path, files.back().bytes, metadata)) {
      entry.file = files.size() - 1;
      entries.insert_or_assign(name, std::move(entry));
    }
  }
  void add_path(std::string path) {
    MappedFile mapped(path);
    const std::span<const std::byte> bytes = mapped.bytes();
    add({std::move(path), std::move(mapped), bytes});
  }

  std::vector<File> files;
  files::SafetensorsEntries entries;
  Metadata metadata;
};

Safetensors::Safetensors(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Safetensors::Safetensors(std::string path) : state_(std::make_unique<State>()) {
  state_->add_path(std::move(path));
}
Safetensors::Safetensors(const std::vector<std::string>& paths)
    : state_(std::make_unique<State>()) {
  for (const std::string& path : paths) state_->add_path(path);
}
Safetensors Safetensors::from_memory(std::span<const std::byte> bytes, std::string label) {
  auto state = std::make_unique<State>();
  state->add({std::move(label), {}, bytes});
  return Safetensors(std::move(state));
}
Safetensors::Safetensors(Safetensors&&) noexcept = default;
Safetensors& Safetensors::operator=(Safetensors&&) noexcept = default;
Safetensors::~Safetensors() = default;

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : state_->entries) out.push_back(name);
  return out;
}

bool Safetensors::has(std::string_view name) const { return state_->entries.contains(name); }

const Metadata& Safetensors::metadata() const noexcept { return state_->metadata; }

const Safetensors::Entry& Safetensors::entry(std::string_view name) const {
  const auto found = state_->entries.find(name);
  if (found == state_->entries.end()) {
    throw Error(ErrorKind::BadArgument, "safetensors", "there is no tensor '", name, "' in ",
                state_->files.empty() ? "no file" : state_->files.front().path,
                state_->files.size() > 1 ? " and the files with it" : "");
  }
  return found->second;
}

namespace {

Stored stored_type(std::string_view name, const Entry& entry) {
  const files::StoredName* type = files::find_stored(entry.stored);
  if (type == nullptr || !type->type) {
    throw Error(ErrorKind::Unsupported, "safetensors", "tensor '", name, "' is of ", entry.stored,
                ", which no dtype here holds");
  }
  return *type->type;
}

}  // namespace

DType Safetensors::dtype(std::string_view name) const {
  return files::loaded_dtype(stored_type(name, entry(name)));
}

std::span<const std::byte> Safetensors::bytes(std::string_view name) const {
  const Entry& found = entry(name);
  return state_->files[found.file].bytes.subspan(found.begin, found.end - found.begin);
}

Tensor Safetensors::load(std::string_view name, const Device& device) const {
  const Entry& found = entry(name);
  return files::make_tensor(join(state_->files[found.file].path, ": tensor '", name, "'"),
                            stored_type(name, found), false, bytes(name), found.shape, device);
}

NamedTensors Safetensors::load_all(const Device& device) const {
  NamedTensors out;
  for (const auto& [name, entry] : state_->entries) out.emplace(name, load(name, device));
  return out;
}

// ---- writing

namespace {

std::string_view stored_name(DType dtype) {
  switch (dtype) {
    case DType::U8:
      return "U8";
    case DType::U32:
      return "U32";
    case DType::I16:
      return "I16";
    case DType::I32:
      return "I32";
    case DType::I64:
      return "I64";
    case DType::F8E4M3:
      return "F8_E4M3";
    case DType::F16:
      return "F16";
    case DType::BF16:
      return "BF16";
    case DType::F32:
      return "F32";
    case DType::F64:
      return "F64";
    case DType::Bool:
      return "BOOL";
  }
  return "";
}

}  // namespace

void write_safetensors(const std::string& path, const NamedTensors& tensors,
                       const Metadata& metadata) {
  std::vector<const NamedTensors::value_type*> order;
  for (const auto& tensor : tensors) {
    if (tensor.first == files::kSafetensorsMetadata) {
      throw Error(ErrorKind::BadArgument, "safetensors", "no tensor can be named ",
                  files::kSafetensorsMetadata);
    }
    order.push_back(&tensor);
  }
  // Widest elements first, so that all of them are aligned.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[files::kSafetensorsMetadata] = metadata;
  std::uint64_t at = 0;
  for (const auto* tensor : order) {
    const Tensor& x = tensor->second;
    const std::uint64_t end = at + x.size_bytes();
    header[tensor->first] = {
        {"dtype", stored_name(x.dtype())},
        {"shape", std::vector<std::int64_t>(x.shape().begin(), x.shape().end())},
        {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::BadArgument, "safetensors", "a name or the metadata is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > files::kMostSafetensorsHeader) {
    throw Error(ErrorKind::BadArgument, "safetensors", "the header would have ", text.size(),
                " bytes, and ", files::kMostSafetensorsHeader, " are allowed");
  }

  files::AtomicFile file(path);
  const std::uint64_t length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const auto* tensor : order) {
    files::for_each_piece(tensor->second,
                          [&](std::span<const std::byte> piece) { file.write(piece); });
  }
  file.commit();
}

}  // namespace tl
