#include "runtime/kernel_pack.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "runtime/digest.h"
#include "tl/base/error.h"

namespace tl {

namespace {

constexpr std::string_view kWhere = "kernel pack";
constexpr std::string_view kMagic = "TLPACK\r\n";
constexpr std::uint32_t kVersion = 2;  // 1: kernels need not have waited for earlier ones
constexpr std::size_t kHeaderBytes = 48;
constexpr std::size_t kCheckAt = 32;  // where the digest stands; it covers what is before it
constexpr std::size_t kCheckBytes = 16;
constexpr std::size_t kRecordBytes = 24;  // without the names
constexpr std::size_t kMaxName = 255;

constexpr std::array<std::string_view, 5> kKindNames{"source", "cubin", "ptx", "hsaco", "host"};

std::uint64_t little_endian(const std::byte* at, std::size_t bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(at[i]);
  return value;
}

void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put(std::vector<std::byte>& out, std::string_view text) {
  for (const char c : text) out.push_back(static_cast<std::byte>(c));
}

bool plain_text(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

std::array<std::byte, kCheckBytes> check_of(std::span<const std::byte> header,
                                            std::span<const std::byte> index) {
  Digest digest;
  digest.add(header.first(kCheckAt));
  digest.add(index);
  const DigestBytes whole = digest.finish();
  std::array<std::byte, kCheckBytes> half{};
  std::copy_n(whole.begin(), half.size(), half.begin());
  return half;
}

// Throws BadFile for a place in a pack.
class Complaint {
 public:
  explicit Complaint(const std::string& origin) : origin_(origin) {}

  template <class... Parts>
  [[noreturn]] void operator()(std::size_t at, const Parts&... parts) const {
    throw Error(ErrorKind::BadFile, kWhere, origin_, ", byte ", at, ": ", parts...);
  }

 private:
  const std::string& origin_;
};

}  // namespace

std::string_view name(PackKind kind) noexcept { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<PackKind> parse_pack_kind(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == text) return static_cast<PackKind>(i);
  }
  return std::nullopt;
}

std::vector<std::byte> read_whole_file(std::string_view where, const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> bytes;
  if (in) {
    std::array<char, 1 << 16> part{};
    while (in.read(part.data(), part.size()) || in.gcount() > 0) {
      const auto* from = reinterpret_cast<const std::byte*>(part.data());
      bytes.insert(bytes.end(), from, from + in.gcount());
    }
  }
  if (!in.eof()) {
    throw Error(ErrorKind::BadFile, where, "cannot read ", path, ": ",
                errno == 0 ? "input error" : std::strerror(errno));
  }
  return bytes;
}

KernelPack::KernelPack(std::span<const std::byte> bytes, std::string origin)
    : bytes_(bytes), origin_(std::move(origin)) {
  read_index();
}

KernelPack KernelPack::from_file(const std::string& path) {
  auto owned = std::make_shared<const std::vector<std::byte>>(read_whole_file(kWhere, path));
  KernelPack pack(*owned, path);
  pack.owned_ = std::move(owned);
  return pack;
}

void KernelPack::read_index() {
  const Complaint complain(origin_);
  if (bytes_.size() < kHeaderBytes) {
    complain(bytes_.size(), "the pack ends inside its header of ", kHeaderBytes, " bytes");
  }
  const std::byte* header = bytes_.data();
  if (std::memcmp(header, kMagic.data(), kMagic.size()) != 0) complain(0, "this is no kernel pack");
  if (const auto version = little_endian(header + 8, 4); version != kVersion) {
    complain(8, "the pack is of version ", version, ", this program reads version ", kVersion);
  }
  const std::uint64_t count = little_endian(header + 12, 4);
  const std::uint64_t index_bytes = little_endian(header + 16, 8);
  const std::uint64_t total = little_endian(header + 24, 8);
  if (total != bytes_.size()) {
    complain(24, "the pack should have ", total, " bytes and has ", bytes_.size());
  }
  if (index_bytes > total - kHeaderBytes) {
    complain(16, "an index of ", index_bytes, " bytes does not fit in a pack of ", total);
  }
  const auto index = bytes_.subspan(kHeaderBytes, static_cast<std::size_t>(index_bytes));
  const auto check = check_of(bytes_, index);
  if (!std::equal(check.begin(), check.end(), header + kCheckAt)) {
    complain(kCheckAt, "the checksum of the index is wrong");
  }
  if (count > index_bytes / kRecordBytes) {
    complain(12, count, " entries do not fit in an index of ", index_bytes, " bytes");
  }

  const std::uint64_t frames_at = kHeaderBytes + index_bytes;
  entries_.reserve(static_cast<std::size_t>(count));
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t place = kHeaderBytes + at;
    if (index.size() - at < kRecordBytes) complain(place, "the index ends inside entry ", i);
    const std::byte* record = index.data() + at;
    at += kRecordBytes;
    const auto kind = static_cast<std::size_t>(little_endian(record, 1));
    const auto name_bytes = static_cast<std::size_t>(little_endian(record + 1, 1));
    const auto architecture_bytes = static_cast<std::size_t>(little_endian(record + 2, 1));
    if (kind >= kKindNames.size()) complain(place, "entry ", i, " is of unknown kind ", kind);
    if (index.size() - at < name_bytes + architecture_bytes) {
      complain(place, "the index ends inside the names of entry ", i);
    }
    const char* names = reinterpret_cast<const char*>(index.data() + at);
    at += name_bytes + architecture_bytes;

    PackEntry entry;
    entry.kind = static_cast<PackKind>(kind);
    entry.name.assign(names, name_bytes);
    entry.architecture.assign(names + name_bytes, architecture_bytes);
    if (entry.name.empty() || !plain_text(entry.name) || !plain_text(entry.architecture) ||
        entry.architecture.empty() != (entry.kind == PackKind::Source)) {
      complain(place, "entry ", i, " has an unusable name");
    }
    const std::uint64_t content = little_endian(record + 4, 4);
    const std::uint64_t offset = little_endian(record + 8, 8);
    const std::uint64_t stored = little_endian(record + 16, 8);
    if (content > kMaxContent) {
      complain(place + 4, "entry ", i, " claims ", content, " bytes, more than ", kMaxContent);
    }
    if (offset < frames_at || offset > total || stored > total - offset) {
      complain(place + 8, "entry ", i, " points to bytes ", offset, " + ", stored, " of a pack of ",
               total);
    }
    entry.bytes = static_cast<std::size_t>(content);
    entry.frame_offset = static_cast<std::size_t>(offset);
    entry.frame_bytes = static_cast<std::size_t>(stored);
    entries_.push_back(std::move(entry));
  }
  if (at != index.size()) complain(kHeaderBytes + at, "the index goes on after its last entry");
}

void KernelPack::unpack(const PackEntry& entry, void* to) const {
  const Complaint complain(origin_);
  const std::string what =
      entry.architecture.empty() ? entry.name : join(entry.name, " for ", entry.architecture);
  const auto frame = bytes_.subspan(entry.frame_offset, entry.frame_bytes);
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != entry.bytes ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    complain(entry.frame_offset, "the frame of ", what, " does not agree with the index");
  }
  const std::size_t got = ZSTD_decompress(to, entry.bytes, frame.data(), frame.size());
  if (ZSTD_isError(got) != 0) {
    complain(entry.frame_offset, "cannot unpack ", what, ": ", ZSTD_getErrorName(got));
  }
  if (got != entry.bytes) {
    complain(entry.frame_offset, what, " unpacks to ", got, " bytes instead of ", entry.bytes);
  }
}

std::vector<std::byte> KernelPack::image(const PackEntry& entry) const {
  std::vector<std::byte> out(entry.bytes);
  unpack(entry, out.data());
  return out;
}

std::string KernelPack::text(const PackEntry& entry) const {
  std::string out(entry.bytes, '\0');
  unpack(entry, out.data());
  return out;
}

void PackWriter::add_image(std::string_view module, std::string_view architecture, PackKind kind,
                           std::span<const std::byte> content) {
  if (kind == PackKind::Source || architecture.empty()) {
    throw Error(ErrorKind::BadArgument, kWhere, "an image of ", module,
                " needs an architecture and the kind of an image");
  }
  add({kind, std::string(module), std::string(architecture), 0, 0, 0}, content);
}

void PackWriter::add_source(std::string_view source_name, std::string_view text) {
  add({PackKind::Source, std::string(source_name), {}, 0, 0, 0},
      std::as_bytes(std::span<const char>(text.data(), text.size())));
}

void PackWriter::add(PackEntry entry, std::span<const std::byte> content) {
  for (const std::string* text : {&entry.name, &entry.architecture}) {
    if (text->size() > kMaxName || !plain_text(*text)) {
      throw Error(ErrorKind::BadArgument, kWhere, "'", *text, "' cannot be a name in a pack");
    }
  }
  if (entry.name.empty()) throw Error(ErrorKind::BadArgument, kWhere, "an entry needs a name");
  if (content.size() > KernelPack::kMaxContent) {
    throw Error(ErrorKind::BadArgument, kWhere, entry.name, " has ", content.size(),
                " bytes, more than ", KernelPack::kMaxContent);
  }
  entry.bytes = content.size();
  const auto [known, fresh] = frame_of_.try_emplace(hex_digest(content));
  if (fresh) {
    const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> zstd(ZSTD_createCCtx(),
                                                                       &ZSTD_freeCCtx);
    ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_compressionLevel, level_);
    ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_checksumFlag, 1);
    const std::size_t offset = frames_.size();
    frames_.resize(offset + ZSTD_compressBound(content.size()));
    const std::size_t stored =
        ZSTD_compress2(zstd.get(), frames_.data() + offset, frames_.size() - offset, content.data(),
                       content.size());
    if (ZSTD_isError(stored) != 0) {
      throw Error(ErrorKind::BadArgument, kWhere, "cannot compress ", entry.name, ": ",
                  ZSTD_getErrorName(stored));
    }
    frames_.resize(offset + stored);
    known->second = {offset, stored};
  }
  entry.frame_offset = known->second.first;
  entry.frame_bytes = known->second.second;
  entries_.push_back(std::move(entry));
}

std::vector<std::byte> PackWriter::finish() const {
  std::size_t index_bytes = 0;
  for (const PackEntry& e : entries_) {
    index_bytes += kRecordBytes + e.name.size() + e.architecture.size();
  }
  const std::size_t frames_at = kHeaderBytes + index_bytes;

  std::vector<std::byte> out;
  out.reserve(frames_at + frames_.size());
  put(out, kMagic);
  put(out, kVersion, 4);
  put(out, entries_.size(), 4);
  put(out, index_bytes, 8);
  put(out, frames_at + frames_.size(), 8);
  out.resize(kHeaderBytes);  // the digest comes when the index is known
  for (const PackEntry& e : entries_) {
    put(out, static_cast<std::uint64_t>(e.kind), 1);
    put(out, e.name.size(), 1);
    put(out, e.architecture.size(), 1);
    put(out, 0, 1);
    put(out, e.bytes, 4);
    put(out, frames_at + e.frame_offset, 8);
    put(out, e.frame_bytes, 8);
    put(out, e.name);
    put(out, e.architecture);
  }
  const auto check = check_of(out, std::span(out).subspan(kHeaderBytes));
  std::copy(check.begin(), check.end(), out.begin() + kCheckAt);
  out.insert(out.end(), frames_.begin(), frames_.end());
  return out;
}

}  // namespace tl
