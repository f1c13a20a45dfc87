#include "tl/model/gguf_writer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "model/gguf_cursor.h"
#include "model/gguf_part.h"
#include "tensor/atomic_file.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl {

namespace {

constexpr std::uint32_t kVersion = 3;
constexpr int kMostRank = 4;
constexpr std::uint64_t kMostParts = 65535;  // split.count is written as u16

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Error(ErrorKind::BadArgument, "gguf", parts...);
}

void check_alignment(std::uint64_t alignment) {
  if (alignment < gguf::kLeastAlignment || alignment > gguf::kMostAlignment ||
      (alignment & (alignment - 1)) != 0) {
    refuse("an alignment of ", alignment, " is no power of two from ", gguf::kLeastAlignment,
           " to ", gguf::kMostAlignment);
  }
}

void check_name(std::string_view what, std::string_view name) {
  if (const std::size_t bad = first_invalid_utf8(name); bad != name.size()) {
    refuse("the name of a ", what, " is not UTF-8 at byte ", bad);
  }
  if (name.size() > gguf::kMostName) {
    refuse("the name of a ", what, " has ", name.size(), " bytes; at most ", gguf::kMostName,
           " are allowed");
  }
}

std::uint64_t aligned(std::uint64_t at, std::uint64_t alignment) {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(at, alignment - 1, &end)) {
    throw Error(ErrorKind::Overflow, "gguf", "the tensors have more bytes than a file can");
  }
  return end & ~(alignment - 1);
}

std::uint64_t tensor_bytes(std::string_view name, const Shape& shape, QType type) {
  if (shape.size() > kMostRank) {
    refuse("tensor ", gguf::Quoted{name}, " of shape ", shape, " has more than ", kMostRank,
           " dimensions");
  }
  const std::string where = join("gguf: tensor '", name, "'");
  const std::int64_t count = element_count(where, shape);
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  return q_bytes(where, type, columns == 0 ? 0 : count / columns, columns);
}

class Header {
 public:
  template <class T>
  Header& number(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return *this;
  }
  Header& string(std::string_view text) {
    number<std::uint64_t>(text.size());
    text_ += text;
    return *this;
  }
  Header& raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  void pad(std::uint64_t alignment) { text_.resize(aligned(text_.size(), alignment)); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

struct GgufWriter::Piece {
  std::size_t begin = 0, end = 0;  // places in items_
  std::uint64_t bytes = 0;         // of data, with its padding
};

GgufWriter::GgufWriter(const Options& options) : options_(options) {
  if (options.alignment) check_alignment(*options.alignment);
}

void GgufWriter::add(std::string_view key, const GgufValue& value) {
  check_name("key", key);
  if (keys_.contains(key)) {
    refuse("the key ", gguf::Quoted{key}, " is there already");
  }
  if (key == gguf::kSplitNumber || key == gguf::kSplitCount || key == gguf::kSplitTensors) {
    refuse("the key '", key, "' is written where a model is split, and only then");
  }
  if (key == gguf::kAlignmentKey) {
    if (!is_integer(value.type())) refuse("the key '", key, "' is of type ", value.type());
    const bool negative = value.type() != GgufType::U64 && value.to<std::int64_t>() < 0;
    const std::uint64_t alignment = negative ? 0 : value.to<std::uint64_t>();
    check_alignment(alignment);
    if (alignment != options_.alignment.value_or(static_cast<std::uint32_t>(alignment))) {
      refuse("the key '", key, "' is ", alignment, ", and the writer was made for ",
             *options_.alignment);
    }
    alignment_key_ = alignment;
  }
  entries_.push_back({std::string(key), gguf::encode_value(value)});
  keys_.emplace(key);
}

void GgufWriter::add_tensor(std::string_view name, const Shape& shape, QType type, Source source) {
  check_name("tensor", name);
  if (names_.contains(name)) refuse("the tensor ", gguf::Quoted{name}, " is there already");
  const std::uint64_t bytes = tensor_bytes(name, shape, type);
  items_.push_back({std::string(name), shape, type, bytes, std::move(source)});
  names_.emplace(name);
}

void GgufWriter::add_tensor(std::string_view name, const Shape& shape, QType type,
                            std::span<const std::byte> bytes) {
  if (const std::uint64_t wanted = tensor_bytes(name, shape, type); wanted != bytes.size()) {
    throw Error(ErrorKind::SizeMismatch, "gguf", "tensor ", gguf::Quoted{name}, " of ", type,
                " and shape ", shape, " has ", wanted, " bytes, not ", bytes.size());
  }
  add_tensor(name, shape, type, [bytes](const Sink& sink) { sink(bytes); });
}

std::uint64_t GgufWriter::alignment() const noexcept {
  if (options_.alignment) return *options_.alignment;
  return alignment_key_.value_or(gguf::kDefaultAlignment);
}

// Fills one part after the other.
std::vector<GgufWriter::Piece> GgufWriter::plan() const {
  std::vector<Piece> pieces(1);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const std::uint64_t bytes = aligned(items_[i].bytes, alignment());
    const std::size_t tensors = pieces.back().end - pieces.back().begin;
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(pieces.back().bytes, bytes, &sum)) {
      throw Error(ErrorKind::Overflow, "gguf", "the tensors have more bytes than a file can");
    }
    const bool full = (options_.max_part_tensors > 0 && tensors >= options_.max_part_tensors) ||
                      (options_.max_part_bytes > 0 && tensors > 0 && sum > options_.max_part_bytes);
    if (full) pieces.push_back({i, i, 0});
    pieces.back().end = i + 1;
    pieces.back().bytes = full ? bytes : sum;
  }
  if (pieces.size() > kMostParts) {
    refuse("the model would have ", pieces.size(), " parts, and ", kMostParts, " are the most");
  }
  return pieces;
}

std::string GgufWriter::header(const Piece& piece, std::size_t number, std::size_t parts) const {
  // The metadata is the first part's; the others have what they need to be read.
  std::vector<Entry> own;
  const bool first = number == 0;
  if (alignment() != gguf::kDefaultAlignment && (!first || !alignment_key_)) {
    own.push_back({std::string(gguf::kAlignmentKey),
                   gguf::encode_value(static_cast<std::uint32_t>(alignment()))});
  }
  if (parts > 1) {
    own.push_back(
        {std::string(gguf::kSplitNumber), gguf::encode_value(static_cast<std::uint16_t>(number))});
    own.push_back(
        {std::string(gguf::kSplitCount), gguf::encode_value(static_cast<std::uint16_t>(parts))});
    own.push_back({std::string(gguf::kSplitTensors),
                   gguf::encode_value(static_cast<std::int32_t>(items_.size()))});
  }
  Header out;
  out.raw("GGUF").number(kVersion);
  out.number<std::uint64_t>(piece.end - piece.begin);
  out.number<std::uint64_t>(own.size() + (first ? entries_.size() : 0));
  if (first) {
    for (const Entry& entry : entries_) out.string(entry.key).raw(entry.value);
  }
  for (const Entry& entry : own) out.string(entry.key).raw(entry.value);
  std::uint64_t offset = 0;
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    const Item& item = items_[i];
    out.string(item.name).number(static_cast<std::uint32_t>(item.shape.size()));
    for (int d = item.shape.size() - 1; d >= 0; --d) out.number(item.shape[d]);
    out.number(static_cast<std::uint32_t>(item.type)).number(offset);
    offset += aligned(item.bytes, alignment());
  }
  out.pad(alignment());
  return out.take();
}

std::string GgufWriter::metadata_file() const { return header(Piece{}, 0, 1); }

std::vector<std::string> GgufWriter::write(const std::string& path) const {
  const std::vector<Piece> pieces = plan();
  const std::string_view suffix = ".gguf";
  const std::string_view prefix =
      std::string_view(path).substr(0, path.size() - (path.ends_with(suffix) ? suffix.size() : 0));
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    paths.push_back(pieces.size() == 1 ? path : gguf::split_path(prefix, i + 1, pieces.size()));
  }

  std::vector<std::unique_ptr<files::AtomicFile>> files;
  const std::vector<std::byte> padding(alignment());
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    files.push_back(std::make_unique<files::AtomicFile>(paths[p]));
    files::AtomicFile& file = *files.back();
    file.write(header(pieces[p], p, pieces.size()));
    for (std::size_t i = pieces[p].begin; i < pieces[p].end; ++i) {
      const Item& item = items_[i];
      std::uint64_t given = 0;
      const auto mismatch = [&] {
        throw Error(ErrorKind::SizeMismatch, "gguf", "tensor ", gguf::Quoted{item.name}, " has ",
                    item.bytes, " bytes, and its source gave ", given);
      };
      item.source([&](std::span<const std::byte> piece) {
        given += piece.size();
        if (given > item.bytes) mismatch();
        file.write(piece);
      });
      if (given != item.bytes) mismatch();
      file.write(std::span(padding).first(aligned(given, alignment()) - given));
    }
    file.close();
  }
  // The first part last: who finds it finds them all.
  for (auto file = files.rbegin(); file != files.rend(); ++file) (*file)->commit();
  return paths;
}

}  // namespace tl
