#include "tensor/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/little_endian.h"
#include "tl/base/error.h"

namespace tl::files {

namespace {

using Entry = Safetensors::Entry;
using Entries = SafetensorsEntries;

constexpr std::array<StoredName, 21> kStoredNames = {{
    {"BOOL", 8, Stored::Bool},      {"U8", 8, Stored::U8},        {"I8", 8, Stored::I8},
    {"U16", 16, Stored::U16},       {"I16", 16, Stored::I16},     {"U32", 32, Stored::U32},
    {"I32", 32, Stored::I32},       {"U64", 64, Stored::U64},     {"I64", 64, Stored::I64},
    {"F8_E4M3", 8, Stored::F8E4M3}, {"F16", 16, Stored::F16},     {"BF16", 16, Stored::BF16},
    {"F32", 32, Stored::F32},       {"F64", 64, Stored::F64},     {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},   {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},        {"C64", 64, std::nullopt},    {"C128", 128, std::nullopt},
}};

template <class... Parts>
[[noreturn]] void bad_file(std::string_view file, const Parts&... parts) {
  throw Error(ErrorKind::BadFile, file, parts...);
}

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
    in_metadata_ = name_ == kSafetensorsMetadata;
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

}  // namespace

const StoredName* find_stored(std::string_view name) {
  const auto found = std::find_if(kStoredNames.begin(), kStoredNames.end(),
                                  [&](const StoredName& row) { return row.name == name; });
  return found == kStoredNames.end() ? nullptr : &*found;
}

SafetensorsEntries read_safetensors_header(const std::string& file,
                                           std::span<const std::byte> bytes, Metadata& metadata) {
  if (bytes.size() < 8) bad_file(file, "has ", bytes.size(), " bytes, too few for safetensors");
  const auto length = load_number<std::uint64_t>(bytes.data());
  if (length > kMostSafetensorsHeader) {
    bad_file(file, "a header of ", length, " bytes is longer than ", kMostSafetensorsHeader);
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

}  // namespace tl::files
