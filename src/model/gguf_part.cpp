#include "model/gguf_part.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/gguf_cursor.h"
#include "tl/base/error.h"

namespace tl::gguf {

namespace {

constexpr std::uint32_t kMagic = 0x46554747, kReversedMagic = 0x47475546;
constexpr std::uint32_t kLastVersion = 3;
constexpr std::int64_t kMostElements = std::numeric_limits<std::int64_t>::max();
// Counts past this many are not believed enough to reserve memory for; the lists grow instead.
constexpr std::uint64_t kMostReserved = 4096;

std::uint32_t reversed(std::uint32_t value) { return __builtin_bswap32(value); }

std::uint32_t read_version(Cursor& in) {
  const auto magic = in.number<std::uint32_t>(Field("magic"));
  if (magic == kReversedMagic) {
    in.fail(0, "the magic is byte-reversed: a big-endian GGUF file, which cannot be read");
  }
  if (magic != kMagic) in.fail(0, "the magic is not 'GGUF': this is no GGUF file");
  const std::uint64_t at = in.at();
  const auto version = in.number<std::uint32_t>(Field("version"));
  if (version >= 1 && version <= kLastVersion) return version;
  if (reversed(version) >= 1 && reversed(version) <= kLastVersion) {
    in.fail(at, "the version is ", reversed(version),
            " byte-reversed: a big-endian GGUF file, which cannot be read");
  }
  in.fail(at, "the version is ", version, "; 1 to ", kLastVersion, " can be read");
}

std::uint64_t read_alignment(const Cursor& in, const GgufEntry& entry) {
  if (!is_integer(entry.value.type())) {
    in.fail(entry.offset, Field{"value", "key", entry.key}, " is of type ", entry.value.type(),
            ", not an integer");
  }
  const bool negative = entry.value.type() != GgufType::U64 && entry.value.to<std::int64_t>() < 0;
  const std::uint64_t alignment = negative ? 0 : entry.value.to<std::uint64_t>();
  const bool usable =
      alignment == 1 || (alignment >= kLeastAlignment && alignment <= kMostAlignment &&
                         (alignment & (alignment - 1)) == 0);
  if (!usable) {
    in.fail(entry.offset, Field{"value", "key", entry.key}, " is ", entry.value,
            ", not a power of two from ", kLeastAlignment, " to ", kMostAlignment);
  }
  return alignment;
}

using Names = std::map<std::string_view, std::size_t>;  // and their places

// Notes a name, or refuses it. Done name by name, not at the end: a file of nothing but zeros would
// be a list of empty names as long as the file.
void refuse_twice(const Cursor& in, std::uint64_t at, std::string_view what, Names& names,
                  std::string_view name, std::uint64_t index) {
  const auto [place, fresh] = names.try_emplace(name, index);
  if (fresh) return;
  in.fail(at, "the name of ", what, " ", index, " is ", Quoted{name}, ", as that of ", what, " ",
          place->second);
}

// A tensor's row in the header. The offset is still counted from the data's start.
struct Row {
  GgufTensorInfo info;
  std::uint64_t start = 0;      // of the row in the file
  std::uint64_t offset_at = 0;  // of its offset field
};

void read_shape(Cursor& in, GgufTensorInfo& info) {
  const std::uint64_t rank_at = in.at();
  const auto rank = in.number<std::uint32_t>({"rank", "tensor", info.name});
  if (rank > Dims::kMax) {
    in.fail(rank_at, Field{"rank", "tensor", info.name}, " is ", rank, "; at most ", Dims::kMax,
            " can be read");
  }
  // The sizes that are not 0 must have a product, so that no view of the tensor can overflow.
  std::int64_t product = 1;
  for (std::uint32_t d = 0; d < rank; ++d) {
    const Field field{"shape", "tensor", info.name};
    const std::uint64_t at = in.at(), size = in.length(field);
    const bool fits = size <= static_cast<std::uint64_t>(kMostElements);
    if (!fits ||
        (size > 0 && __builtin_mul_overflow(product, static_cast<std::int64_t>(size), &product))) {
      in.fail(at, field, " has ", size, " as size ", d, ", and more than 2^63 elements");
    }
    info.shape.insert(0, static_cast<std::int64_t>(size));
  }
}

// The bytes that shape and type ask for.
std::uint64_t tensor_size(const Cursor& in, std::uint64_t at, const GgufTensorInfo& info) {
  const QFormat& format = format_of(*info.type);
  const std::int64_t columns = info.shape.empty() ? 1 : info.shape.back();
  if (columns % format.elements != 0) {
    in.fail(at, Field{"type", "tensor", info.name}, " is ", format.name, " with blocks of ",
            format.elements, " elements, and its rows have ", columns);
  }
  const auto blocks = static_cast<std::uint64_t>(info.count() / format.elements);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(blocks, std::uint64_t{format.bytes}, &bytes)) {
    in.fail(at, Field{"shape", "tensor", info.name}, " is ", info.shape, " of ", format.name,
            ", more bytes than there can be");
  }
  return bytes;
}

Row read_row(Cursor& in, std::uint64_t index, std::size_t part, Names& names) {
  Row row;
  row.start = in.at();
  GgufTensorInfo& info = row.info;
  const std::string_view name = in.name({"name", "tensor", index});
  refuse_twice(in, row.start, "tensor", names, name, index);
  info.name = name;
  info.part = part;
  read_shape(in, info);
  const std::uint64_t type_at = in.at();
  info.code = in.number<std::uint32_t>({"type", "tensor", info.name});
  info.type = q_type(info.code);
  if (info.type) info.bytes = tensor_size(in, type_at, info);
  row.offset_at = in.at();
  info.offset = in.number<std::uint64_t>({"offset", "tensor", info.name});
  return row;
}

// Offsets aligned and inside the file; afterwards they count from its start.
void place(const Cursor& in, std::vector<Row>& rows, std::uint64_t alignment,
           std::uint64_t file_size) {
  const std::uint64_t past = in.at() % alignment;
  const std::uint64_t start = in.at() + (past == 0 ? 0 : alignment - past);
  // A file with no data need not be padded.
  const std::uint64_t room = start < file_size ? file_size - start : 0;
  for (Row& row : rows) {
    GgufTensorInfo& info = row.info;
    const Field field{"offset", "tensor", info.name};
    const std::uint64_t bytes = info.bytes.value_or(0);
    if (info.offset % alignment != 0) {
      in.fail(row.offset_at, field, " is ", info.offset, ", no multiple of the alignment ",
              alignment);
    }
    if (info.offset > room || bytes > room - info.offset) {
      in.fail(row.offset_at, field, " is ", info.offset, ", and with its ", bytes,
              " bytes it reaches outside the ", room, " bytes of data");
    }
    info.offset += start;
  }
}

void check_overlaps(const Cursor& in, const std::vector<Row>& rows) {
  std::vector<const Row*> sorted;
  for (const Row& row : rows) {
    if (row.info.bytes.value_or(0) > 0) sorted.push_back(&row);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Row* a, const Row* b) { return a->info.offset < b->info.offset; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const GgufTensorInfo& before = sorted[i - 1]->info;
    if (sorted[i]->info.offset - before.offset < *before.bytes) {
      in.fail(sorted[i]->offset_at, Field{"offset", "tensor", sorted[i]->info.name},
              " lies inside the data of tensor ", Quoted{before.name});
    }
  }
}

void check_total(const Cursor& in, const std::vector<Row>& rows) {
  std::int64_t total = 0;
  for (const Row& row : rows) {
    if (__builtin_add_overflow(total, row.info.count(), &total)) {
      in.fail(row.start, Field{"shape", "tensor", row.info.name}, " is ", row.info.shape,
              ", with which there are more than 2^63 elements");
    }
  }
}

}  // namespace

const GgufValue* Part::find(std::string_view key) const {
  const auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : &entries[found->second].value;
}

Part read_part(std::string_view file, std::span<const std::byte> bytes, std::size_t number) {
  Cursor in(file, bytes, true);
  Part part;
  part.version = read_version(in);
  in.set_wide(part.version > 1);
  // The shortest tensor has no name and rank 0, the shortest value one byte.
  const std::size_t least_tensor = in.length_size() + 4 + 4 + 8;
  const std::size_t least_key = in.length_size() + 4 + 1;
  const std::uint64_t tensors = in.count(least_tensor, Field("tensor count"));
  const std::uint64_t keys = in.count(least_key, Field("key count"));

  part.entries.reserve(std::min(keys, kMostReserved));
  for (std::uint64_t i = 0; i < keys; ++i) {
    const std::uint64_t start = in.at();
    const std::string_view key = in.name({"name", "key", i});
    refuse_twice(in, start, "key", part.by_key, key, i);
    part.entries.push_back({key, read_value(in, key), start});
    if (key == kAlignmentKey) part.alignment = read_alignment(in, part.entries.back());
  }

  std::vector<Row> rows;
  rows.reserve(std::min(tensors, kMostReserved));
  Names names;
  for (std::uint64_t i = 0; i < tensors; ++i) rows.push_back(read_row(in, i, number, names));
  check_total(in, rows);
  place(in, rows, part.alignment, bytes.size());
  check_overlaps(in, rows);
  part.tensors.reserve(rows.size());
  for (Row& row : rows) part.tensors.push_back(std::move(row.info));
  return part;
}

// ---- names of parts

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kSuffix = ".gguf", kOf = "-of-";
  constexpr std::size_t kDigits = 5;
  if (!path.ends_with(kSuffix)) return std::nullopt;
  path.remove_suffix(kSuffix.size());
  const auto number = [&]() -> std::optional<std::uint64_t> {
    if (path.size() < kDigits) return std::nullopt;
    std::uint64_t value = 0;
    for (const char c : path.substr(path.size() - kDigits)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = 10 * value + static_cast<std::uint64_t>(c - '0');
    }
    path.remove_suffix(kDigits);
    return value;
  };
  const auto count = number();
  if (!count || !path.ends_with(kOf)) return std::nullopt;
  path.remove_suffix(kOf.size());
  const auto which = number();
  if (!which || !path.ends_with('-')) return std::nullopt;
  path.remove_suffix(1);
  return SplitName{std::string(path), *which, *count};
}

std::string split_path(std::string_view prefix, std::uint64_t number, std::uint64_t count) {
  const auto digits = [](std::uint64_t value) {
    std::string text = std::to_string(value);
    return text.insert(0, text.size() < 5 ? 5 - text.size() : 0, '0');
  };
  return join(prefix, "-", digits(number), "-of-", digits(count), ".gguf");
}

}  // namespace tl::gguf
