#include "tensor/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/little_endian.h"
#include "tl/base/error.h"

namespace tl::files {

namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kDirectory = 0x02014b50, kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kLocalSize = 30, kDirectorySize = 46, kEndSize = 22, kEnd64Size = 56,
                      kLocator64Size = 20;
constexpr std::uint16_t kStored = 0, kDeflated = 8, kEncrypted = 1, kUtf8 = 1 << 11;
constexpr std::uint16_t kExtra64 = 1;  // the extra field with 64-bit sizes
constexpr std::uint32_t kIn64 = 0xffffffff;
// No deflated byte becomes more than this many.
constexpr std::uint64_t kMostExpansion = 1032;

template <class... Parts>
[[noreturn]] void bad_file(const std::string& file, const Parts&... parts) {
  throw Error(ErrorKind::BadFile, file, parts...);
}

std::uint32_t checksum_of(std::uint32_t before, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Numbers of a record that is known to be there.
struct Record {
  const std::byte* at;
  std::uint16_t u16(std::size_t i) const { return load_number<std::uint16_t>(at + i); }
  std::uint32_t u32(std::size_t i) const { return load_number<std::uint32_t>(at + i); }
  std::uint64_t u64(std::size_t i) const { return load_number<std::uint64_t>(at + i); }
};

// The record at a place that the file names, if it is there.
std::optional<Record> record_at(std::span<const std::byte> bytes, std::uint64_t at,
                                std::size_t size, std::uint32_t signature) {
  if (at > bytes.size() || bytes.size() - at < size) return std::nullopt;
  const Record record{bytes.data() + at};
  if (record.u32(0) != signature) return std::nullopt;
  return record;
}

struct Directory {
  std::uint64_t at, size, count;
};

// The record at the end of the archive, behind which only a comment of up to 64 KiB stands.
Directory find_directory(const std::string& file, std::span<const std::byte> bytes) {
  if (bytes.size() < kEndSize) bad_file(file, "has ", bytes.size(), " bytes, too few for a zip");
  const std::uint64_t last = bytes.size() - kEndSize;
  const std::uint64_t first = last > 0xffff ? last - 0xffff : 0;
  for (std::uint64_t at = last + 1; at-- > first;) {
    const auto end = record_at(bytes, at, kEndSize, kEnd);
    if (!end || end->u16(20) != last - at) continue;
    Directory directory{end->u32(16), end->u32(12), end->u16(10)};
    const auto locator = at < kLocator64Size
                             ? std::nullopt
                             : record_at(bytes, at - kLocator64Size, kLocator64Size, kLocator64);
    if (locator) {
      const auto end64 = record_at(bytes, locator->u64(8), kEnd64Size, kEnd64);
      if (!end64) bad_file(file, "the 64-bit end of the zip is not where it should be");
      directory = {end64->u64(48), end64->u64(40), end64->u64(32)};
    }
    if (directory.at > at || directory.size > at - directory.at) {
      bad_file(file, "the zip's directory lies outside the file");
    }
    return directory;
  }
  bad_file(file, "is no zip: there is no end record");
}

// Takes the 64-bit numbers that stand in for those which are kIn64, in this order.
void read_extra64(const std::string& file, const std::string& name, const Record& extra,
                  std::size_t size, ZipMember& member) {
  for (std::size_t at = 0; at + 4 <= size;) {
    const std::uint16_t id = extra.u16(at), length = extra.u16(at + 2);
    at += 4;
    if (length > size - at) return;  // not ours to judge: the field may be padding
    if (id != kExtra64) {
      at += length;
      continue;
    }
    std::size_t taken = 0;
    for (std::uint64_t* value : {&member.size, &member.packed, &member.offset}) {
      if (*value != kIn64) continue;
      if (taken + 8 > length) bad_file(file, "member '", name, "' lacks its 64-bit sizes");
      *value = extra.u64(at + taken);
      taken += 8;
    }
    return;
  }
}

}  // namespace

ZipIndex read_zip_index(const std::string& file, std::span<const std::byte> bytes) {
  const Directory directory = find_directory(file, bytes);
  const std::span<const std::byte> rows = bytes.subspan(directory.at, directory.size);
  ZipIndex index;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const auto row = record_at(rows, at, kDirectorySize, kDirectory);
    if (!row) bad_file(file, "entry ", i, " of the zip's directory is damaged");
    const std::size_t name_size = row->u16(28), extra_size = row->u16(30);
    const std::size_t whole = kDirectorySize + name_size + extra_size + row->u16(32);
    if (rows.size() - at < whole) bad_file(file, "entry ", i, " of the zip's directory is cut off");
    const std::string name(reinterpret_cast<const char*>(row->at + kDirectorySize), name_size);
    ZipMember member{.offset = row->u32(42),
                     .packed = row->u32(20),
                     .size = row->u32(24),
                     .checksum = row->u32(16),
                     .method = row->u16(10),
                     .flags = row->u16(8)};
    read_extra64(file, name, {row->at + kDirectorySize + name_size}, extra_size, member);
    index.insert_or_assign(name, member);
    at += whole;
  }
  return index;
}

namespace {

// Fills `out`; `whole` when that must be all there is.
void inflate_into(const std::string& file, const std::string& name,
                  std::span<const std::byte> packed, std::span<std::byte> out, bool whole) {
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    throw Error(ErrorKind::OutOfMemory, file, "no memory to unpack '", name, "'");
  }
  constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
  std::size_t in_at = 0, out_at = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const std::size_t in = std::min(kMost, packed.size() - in_at);
    const std::size_t room = std::min(kMost, out.size() - out_at);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data() + in_at));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + out_at);
    stream.avail_out = static_cast<uInt>(room);
    status = ::inflate(&stream, Z_NO_FLUSH);
    const std::size_t read = in - stream.avail_in, written = room - stream.avail_out;
    in_at += read;
    out_at += written;
    if (read == 0 && written == 0) break;  // more is announced than there is, or the reverse
  }
  ::inflateEnd(&stream);
  if ((whole && status != Z_STREAM_END) || out_at != out.size()) {
    bad_file(file, "member '", name, "' does not unpack to its ", out.size(), " bytes");
  }
}

// The bytes of a member as they lie in the archive; the sizes have been checked against each other.
std::span<const std::byte> packed_bytes(const std::string& file, std::span<const std::byte> bytes,
                                        const std::string& name, const ZipMember& member) {
  if ((member.flags & kEncrypted) != 0) {
    throw Error(ErrorKind::Unsupported, file, "member '", name, "' is encrypted");
  }
  const auto local = record_at(bytes, member.offset, kLocalSize, kLocal);
  if (!local) bad_file(file, "member '", name, "' is not where the zip's directory says");
  const std::uint64_t start = member.offset + kLocalSize + local->u16(26) + local->u16(28);
  if (start > bytes.size() || bytes.size() - start < member.packed) {
    bad_file(file, "member '", name, "' of ", member.packed, " bytes reaches outside the file");
  }
  if (member.method != kStored && member.method != kDeflated) {
    throw Error(ErrorKind::Unsupported, file, "member '", name, "' is packed by method ",
                member.method, "; stored and deflated ones can be read");
  }
  if (member.method == kStored && member.size != member.packed) {
    bad_file(file, "member '", name, "' is stored with two sizes, ", member.packed, " and ",
             member.size);
  }
  if (member.method == kDeflated && member.size / kMostExpansion > member.packed) {
    bad_file(file, "member '", name, "' cannot unpack from ", member.packed, " to ", member.size,
             " bytes");
  }
  return bytes.subspan(start, member.packed);
}

}  // namespace

std::span<const std::byte> read_zip_member_start(const std::string& file,
                                                 std::span<const std::byte> bytes,
                                                 const std::string& name, const ZipMember& member,
                                                 std::size_t most, std::vector<std::byte>& room) {
  const std::span<const std::byte> packed = packed_bytes(file, bytes, name, member);
  const std::size_t size = std::min<std::uint64_t>(most, member.size);
  if (member.method == kStored) return packed.first(size);
  room.resize(size);
  inflate_into(file, name, packed, room, false);
  return room;
}

std::span<const std::byte> read_zip_member(const std::string& file,
                                           std::span<const std::byte> bytes,
                                           const std::string& name, const ZipMember& member,
                                           std::vector<std::byte>& room) {
  std::span<const std::byte> content = packed_bytes(file, bytes, name, member);
  if (member.method == kDeflated) {
    room.resize(member.size);
    inflate_into(file, name, content, room, true);
    content = room;
  }
  if (checksum_of(0, content) != member.checksum) {
    bad_file(file, "member '", name, "' is damaged: its checksum differs");
  }
  return content;
}

// ---- writing

namespace {

// A record under construction.
class Bytes {
 public:
  Bytes& u16(std::uint64_t value) { return add(static_cast<std::uint16_t>(value)); }
  Bytes& u32(std::uint64_t value) { return add(static_cast<std::uint32_t>(value)); }
  Bytes& u64(std::uint64_t value) { return add(value); }
  Bytes& text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  std::span<const std::byte> view() const { return bytes_; }

 private:
  template <class T>
  Bytes& add(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  std::vector<std::byte> bytes_;
};

constexpr std::uint16_t kVersion = 20, kVersion64 = 45;
constexpr std::uint16_t kDate = 1 << 5 | 1;  // 1 January 1980: equal contents give equal files
constexpr std::size_t kChecksumPlace = 14;   // in a local header

}  // namespace

void ZipWriter::begin(std::string name, std::uint64_t size) {
  if (name.size() > 0xffff) {
    throw Error(ErrorKind::BadArgument, "zip", "a name of ", name.size(), " bytes is too long");
  }
  const ZipMember member{.offset = file_.size(), .packed = size, .size = size, .flags = kUtf8};
  const bool large = size >= large_;
  Bytes header;
  header.u32(kLocal).u16(large ? kVersion64 : kVersion).u16(member.flags).u16(kStored);
  header.u16(0).u16(kDate).u32(0);
  header.u32(large ? kIn64 : size).u32(large ? kIn64 : size);
  header.u16(name.size()).u16(large ? 20 : 0).text(name);
  if (large) header.u16(kExtra64).u16(16).u64(size).u64(size);
  file_.write(header.view());
  members_.emplace_back(std::move(name), member);
}

void ZipWriter::add(std::span<const std::byte> bytes) {
  ZipMember& member = members_.back().second;
  member.checksum = checksum_of(member.checksum, bytes);
  file_.write(bytes);
}

void ZipWriter::end() {
  const ZipMember& member = members_.back().second;
  file_.patch(member.offset + kChecksumPlace, std::as_bytes(std::span(&member.checksum, 1)));
}

void ZipWriter::commit() {
  const std::uint64_t start = file_.size();
  bool large_archive = members_.size() >= 0xffff || start >= large_;
  for (const auto& [name, member] : members_) {
    const bool large = member.size >= large_, far = member.offset >= large_;
    large_archive = large_archive || large || far;
    const std::uint16_t extra = static_cast<std::uint16_t>((large ? 16 : 0) + (far ? 8 : 0));
    Bytes row;
    row.u32(kDirectory).u16(kVersion64).u16(extra > 0 ? kVersion64 : kVersion).u16(member.flags);
    row.u16(kStored).u16(0).u16(kDate).u32(member.checksum);
    row.u32(large ? kIn64 : member.size).u32(large ? kIn64 : member.size);
    row.u16(name.size()).u16(extra > 0 ? extra + 4u : 0u).u16(0).u16(0).u16(0).u32(0);
    row.u32(far ? kIn64 : member.offset).text(name);
    if (extra > 0) row.u16(kExtra64).u16(extra);
    if (large) row.u64(member.size).u64(member.size);
    if (far) row.u64(member.offset);
    file_.write(row.view());
  }
  const std::uint64_t end = file_.size(), size = end - start, count = members_.size();
  Bytes tail;
  if (large_archive) {
    tail.u32(kEnd64).u64(kEnd64Size - 12).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    tail.u64(count).u64(count).u64(size).u64(start);
    tail.u32(kLocator64).u32(0).u64(end).u32(1);
  }
  const std::uint64_t shown = large_archive ? 0xffff : count;
  tail.u32(kEnd).u16(0).u16(0).u16(shown).u16(shown);
  tail.u32(large_archive ? kIn64 : size).u32(large_archive ? kIn64 : start).u16(0);
  file_.write(tail.view());
  file_.commit();
}

}  // namespace tl::files
