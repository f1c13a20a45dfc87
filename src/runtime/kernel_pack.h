// Kernel packs: compiled kernels for many architectures, and their sources, in one block of bytes.
//
// The library carries one pack inside itself; more can be named by TL_KERNEL_PACKS, so that an
// architecture is added without a rebuild. Both are the same format, and both are read as
// untrusted: every offset and size is checked against the bytes that are left before it is used,
// and a wrong byte is an error that says where, never a crash.
//
// All numbers are little-endian.
//
//   header, 48 bytes
//     0   8  magic "TLPACK\r\n" (the line end catches transfers that rewrite text)
//     8   4  version, 2
//    12   4  number of entries
//    16   8  bytes of the index, which follows the header
//    24   8  bytes of the whole pack
//    32  16  first half of SHA-256 over bytes 0..31 and the index
//   index, one record of 24 + N + A bytes per entry
//     0   1  kind: 0 source, 1 cubin, 2 ptx, 3 hsaco, 4 host
//     1   1  N, bytes of the name
//     2   1  A, bytes of the architecture; 0 for a source
//     3   1  0
//     4   4  bytes of the content
//     8   8  where its frame starts, counted from the start of the pack
//    16   8  bytes of the frame
//    24   N  the name: of the module ("fill") or of the text as an #include spells it ("gpu.h")
//  24+N   A  the architecture ("sm_90", "compute_75", "gfx942", "sim32")
//   frames, one after another
//     zstd, each with its content size and zstd's checksum of the content
//
// Several entries may share a frame: the same image listed under several architectures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tl {

enum class PackKind : std::uint8_t { Source, Cubin, Ptx, Hsaco, Host };

std::string_view name(PackKind kind) noexcept;  // "cubin"
std::optional<PackKind> parse_pack_kind(std::string_view text) noexcept;

struct PackEntry {
  PackKind kind = PackKind::Source;
  std::string name;          // of the module, or of the source text
  std::string architecture;  // empty for a source
  std::size_t bytes = 0;     // of the content
  std::size_t frame_offset = 0;
  std::size_t frame_bytes = 0;
};

class KernelPack {
 public:
  // An image larger than this is taken for damage: no allocation follows a number that came from a
  // file any further.
  static constexpr std::size_t kMaxContent = std::size_t{256} << 20;

  // Reads the index. `bytes` must outlive the pack; `origin` names it in messages. Throws BadFile.
  KernelPack(std::span<const std::byte> bytes, std::string origin);
  // Reads the file into memory, so that nothing that happens to the file later can reach us. Throws
  // BadFile.
  static KernelPack from_file(const std::string& path);

  const std::string& origin() const noexcept { return origin_; }
  std::size_t total_bytes() const noexcept { return bytes_.size(); }
  const std::vector<PackEntry>& entries() const noexcept { return entries_; }

  // The content. Throws BadFile.
  std::vector<std::byte> image(const PackEntry& entry) const;
  std::string text(const PackEntry& entry) const;

 private:
  void read_index();
  void unpack(const PackEntry& entry, void* to) const;

  std::shared_ptr<const std::vector<std::byte>> owned_;  // null when the bytes are someone else's
  std::span<const std::byte> bytes_;
  std::string origin_;
  std::vector<PackEntry> entries_;
};

// Makes the bytes of a pack. Equal contents are stored once.
class PackWriter {
 public:
  static constexpr int kSmallest = 19;
  explicit PackWriter(int level = kSmallest) : level_(level) {}
  // How hard to compress what is added from here on: 1 is quick, kSmallest slow.
  void set_level(int level) { level_ = level; }

  // Throws BadArgument for a name that is empty, too long or not plain text, and for content that
  // is too large.
  void add_image(std::string_view module, std::string_view architecture, PackKind kind,
                 std::span<const std::byte> content);
  void add_source(std::string_view source_name, std::string_view text);

  std::vector<std::byte> finish() const;

 private:
  void add(PackEntry entry, std::span<const std::byte> content);

  int level_;
  std::vector<PackEntry> entries_;  // frame_offset counts from the first frame until finish()
  std::vector<std::byte> frames_;
  std::map<std::string, std::pair<std::size_t, std::size_t>> frame_of_;  // digest -> offset, bytes
};

// A whole file. Throws BadFile with the reason.
std::vector<std::byte> read_whole_file(std::string_view where, const std::string& path);

}  // namespace tl
