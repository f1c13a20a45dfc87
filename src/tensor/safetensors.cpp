#include "tl/tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "tensor/atomic_file.h"
#include "tensor/stored.h"
#include "tl/base/mapped_file.h"

namespace tl {

namespace {

using files::Stored;
using Entry = Safetensors::Entry;
using Entries = std::map<std::string, Entry, std::less<>>;

constexpr std::uint64_t kMostHeader = 100'000'000;  // bytes, as other readers limit it
constexpr std::string_view kMetadata = "__metadata__";

struct StoredName {
  std::string_view name;
  unsigned bits;
  std::optional<Stored> type;  // none: known, but no tensor can hold it
};

constexpr std::array<StoredName, 21> kStoredNames = {{
    {"BOOL", 8, Stored::Bool},      {"U8", 8, Stored::U8},        {"I8", 8, Stored::I8},
    {"U16", 16, Stored::U16},       {"I16", 16, Stored::I16},     {"U32", 32, Stored::U32},
    {"I32", 32, Stored::I32},       {"U64", 64, Stored::U64},     {"I64", 64, Stored::I64},
    {"F8_E4M3", 8, Stored::F8E4M3}, {"F16", 16, Stored::F16},     {"BF16", 16, Stored::BF16},
    {"F32", 32, Stored::F32},       {"F64", 64, Stored::F64},     {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},   {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},        {"C64", 64, std::nullopt},    {"C128", 128, std::nullopt},
}};

const StoredName* find_stored(std::string_view name) {
  const auto found = std::find_if(kStoredNames.begin(), kStoredNames.end(),
                                  [&](const StoredName& row) { return row.name == name; });
  return found == kStoredNames.end() ? nullptr : &*found;
}

template <class... Parts>
[[noreturn]] void bad_file(std::string_view file, const Parts&... parts) {
  throw Error(ErrorKind::BadFile, file, parts...);
}

// ---- the header

// Takes the header event by event, so that neither deep nesting nor a large value costs more than
// its text. Depth 1 is the header, 2 a tensor or the metadata, 3 a list of numbers.
class HeaderReader {
 public:
  HeaderReader(const std::string& file, Entries& entries, Metadata& metadata)
      : file_(file), entries_(entries), metadata_(metadata) {}

  bool null() { return scalar("null"); }
  bool boolean(bool) { return scalar("a bool"); }
  bool number_integer(std::int64_t) { return scalar("a negative number"); }
  bool number_float(double, const std::string&) { return scalar("a number that is no integer"); }
  bool binary(nlohmann::json::binary_t&) { return scalar("binary"); }

  bool number_unsigned(std::uint64_t value) {
    if (skipping_) return skipped();
    if (depth_ != 3) return scalar("a number");
    if (field_ == Field::Shape) {
      if (shape_.size() == Dims::kMax) fail("has more than ", Dims::kMax, " dimensions");
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail("has a size of ", value);
      }
      shape_.push_back(static_cast<std::int64_t>(value));
    } else {
      if (offsets_.size() == 2) fail("has more than two data offsets");
      offsets_.push_back(value);
    }
    return true;
  }

  bool string(std::string& value) {
    if (skipping_) return skipped();
    if (depth_ == 2 && in_metadata_) {
      if (!file_metadata_.try_emplace(key_, value).second) {
        bad_file(file_, "the metadata has '", key_, "' twice");
      }
      return true;
    }
    if (depth_ != 2 || field_ != Field::DType) return scalar("a text");
    stored_ = value;
    return true;
  }

  bool key(std::string& value) {
    if (skipping_) return true;
    if (depth_ == 1) {
      name_ = value;
      if (!names_.insert(name_).second) bad_file(file_, "the name '", name_, "' is there twice");
      return true;
    }
    key_ = value;
    if (in_metadata_) return true;
    field_ = value == "dtype"          ? Field::DType
             : value == "shape"        ? Field::Shape
             : value == "data_offsets" ? Field::Offsets
                                       : Field::Other;
    if (field_ == Field::Other) {
      skipping_ = true;  // of a later version of the format
      skip_depth_ = depth_;
      return true;
    }
    auto& seen = seen_[static_cast<std::size_t>(field_)];
    if (seen) fail("has '", value, "' twice");
    seen = true;
    return true;
  }

  bool start_object(std::size_t) {
    if (!skipping_ && depth_ > 1) return scalar("an object");
    ++depth_;
    if (skipping_) return check_depth();
    if (depth_ == 1) return true;
    in_metadata_ = name_ == kMetadata;
    seen_ = {};
    stored_.clear();
    shape_ = {};
    offsets_.clear();
    return true;
  }

  bool end_object() {
    --depth_;
    if (skipping_) return skipped();
    if (depth_ == 1 && !in_metadata_) finish();
    in_metadata_ = false;
    return true;
  }

  bool start_array(std::size_t) {
    const bool wanted =
        depth_ == 2 && !in_metadata_ && (field_ == Field::Shape || field_ == Field::Offsets);
    if (!skipping_ && !wanted) return scalar("a list");
    ++depth_;
    return check_depth();
  }

  bool end_array() {
    --depth_;
    return skipping_ ? skipped() : true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) {
    bad_file(file_, "the header is no JSON at byte ", position + 8, ": ", error.what());
  }

  void settle() {
    for (auto& [name, value] : file_metadata_) metadata_.insert_or_assign(name, value);
  }

 private:
  enum class Field : std::uint8_t { DType, Shape, Offsets, Other };
  static constexpr int kMostDepth = 16;

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    bad_file(file_, "tensor '", name_, "' ", parts...);
  }

  // A value where none of its kind can be.
  bool scalar(std::string_view what) {
    if (skipping_) return skipped();
    if (depth_ == 0) bad_file(file_, "the header is ", what, ", not an object");
    if (in_metadata_) bad_file(file_, "the metadata '", key_, "' is ", what, ", not a text");
    if (depth_ == 1) bad_file(file_, "'", name_, "' is ", what, ", not an object");
    fail("has ", what, " in '", key_, "'");
  }

  bool skipped() {
    if (depth_ == skip_depth_) skipping_ = false;
    return true;
  }
  bool check_depth() const {
    if (depth_ > kMostDepth) bad_file(file_, "the header is nested deeper than ", kMostDepth);
    return true;
  }

  void finish() {
    for (const auto& [field, name] :
         {std::pair{Field::DType, "dtype"}, std::pair{Field::Shape, "shape"},
          std::pair{Field::Offsets, "data_offsets"}}) {
      if (!seen_[static_cast<std::size_t>(field)]) fail("has no '", name, "'");
    }
    if (offsets_.size() != 2) fail("has ", offsets_.size(), " data offsets, not two");
    entries_[name_] = {
        .stored = stored_, .shape = shape_, .begin = offsets_[0], .end = offsets_[1]};
  }

  const std::string& file_;
  Entries& entries_;
  Metadata& metadata_;
  Metadata file_metadata_;
  std::set<std::string> names_;
  int depth_ = 0;
  bool in_metadata_ = false;
  bool skipping_ = false;
  int skip_depth_ = 0;
  std::string name_;  // of the tensor
  std::string key_;   // in it
  Field field_ = Field::Other;
  std::array<bool, 4> seen_{};
  std::string stored_;
  Shape shape_;
  std::vector<std::uint64_t> offsets_;
};

// Do the bytes of an entry match its dtype and shape?
void check_size(const std::string& file, const std::string& name, const Entry& entry) {
  const StoredName* type = find_stored(entry.stored);
  if (type == nullptr) return;  // not known: load() will say so
  bool none = false;
  for (const std::int64_t size : entry.shape) none = none || size == 0;
  std::uint64_t bits = none ? 0 : type->bits;
  bool too_large = false;
  for (const std::int64_t size : entry.shape) {
    too_large = too_large || __builtin_mul_overflow(bits, static_cast<std::uint64_t>(size), &bits);
  }
  if (too_large || bits % 8 != 0 || bits / 8 != entry.end - entry.begin) {
    bad_file(file, "tensor '", name, "' of ", entry.stored, " and shape ", entry.shape, " has ",
             entry.end - entry.begin, " bytes");
  }
}

void check_overlaps(const std::string& file, const Entries& entries) {
  std::vector<const Entries::value_type*> sorted;
  for (const auto& entry : entries) {
    if (entry.second.begin != entry.second.end) sorted.push_back(&entry);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->second.begin < b->second.begin; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->second.begin < sorted[i - 1]->second.end) {
      bad_file(file, "tensors '", sorted[i - 1]->first, "' and '", sorted[i]->first,
               "' share bytes");
    }
  }
}

// The entries of one file, with places counted from its start.
Entries read_header(const std::string& file, std::span<const std::byte> bytes, Metadata& metadata) {
  if (bytes.size() < 8) bad_file(file, "has ", bytes.size(), " bytes, too few for safetensors");
  const auto length = files::load_number<std::uint64_t>(bytes.data());
  if (length > kMostHeader) {
    bad_file(file, "a header of ", length, " bytes is longer than ", kMostHeader);
  }
  if (length > bytes.size() - 8) {
    bad_file(file, "a header of ", length, " bytes does not fit in a file of ", bytes.size());
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + 8);
  Entries entries;
  HeaderReader reader(file, entries, metadata);
  nlohmann::json::sax_parse(text, text + length, &reader);
  reader.settle();

  const std::uint64_t start = 8 + length;
  const std::uint64_t room = bytes.size() - start;
  for (auto& [name, entry] : entries) {
    if (entry.begin > entry.end || entry.end > room) {
      bad_file(file, "tensor '", name, "' lies at bytes ", entry.begin, " to ", entry.end, " of ",
               room);
    }
    check_size(file, name, entry);
    entry.begin += start;
    entry.end += start;
  }
  check_overlaps(file, entries);
  return entries;
}

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
    for (auto& [name, entry] : read_header(files.back().path, files.back().bytes, metadata)) {
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
  Entries entries;
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
  const StoredName* type = find_stored(entry.stored);
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

Tensor Safetensors::load(std::string_view name, const Device& device) const {
  const Entry& found = entry(name);
  const State::File& file = state_->files[found.file];
  return files::make_tensor(join(file.path, ": tensor '", name, "'"), stored_type(name, found),
                            false, file.bytes.subspan(found.begin, found.end - found.begin),
                            found.shape, device);
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
    if (tensor.first == kMetadata) {
      throw Error(ErrorKind::BadArgument, "safetensors", "no tensor can be named ", kMetadata);
    }
    order.push_back(&tensor);
  }
  // Widest elements first, so that all of them are aligned.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
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
  if (text.size() > kMostHeader) {
    throw Error(ErrorKind::BadArgument, "safetensors", "the header would have ", text.size(),
                " bytes, and ", kMostHeader, " are allowed");
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
