// Zip archives, as far as .npz needs them: members that are stored or deflated, with 64-bit sizes
// where they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/atomic_file.h"

namespace tl::files {

struct ZipMember {
  std::uint64_t offset = 0;  // of its local header
  std::uint64_t packed = 0;  // bytes in the archive
  std::uint64_t size = 0;    // bytes unpacked
  std::uint32_t checksum = 0;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
};

using ZipIndex = std::map<std::string, ZipMember, std::less<>>;

// The members by name; of two with one name the later counts. Throws BadFile.
ZipIndex read_zip_index(const std::string& file, std::span<const std::byte> bytes);
// The bytes of a member: in the archive itself when it is stored, else unpacked into `room`. The
// checksum has been compared.
std::span<const std::byte> read_zip_member(const std::string& file,
                                           std::span<const std::byte> bytes,
                                           const std::string& name, const ZipMember& member,
                                           std::vector<std::byte>& room);

// The first bytes of a member, `most` or all of them. They are not compared with the checksum.
std::span<const std::byte> read_zip_member_start(const std::string& file,
                                                 std::span<const std::byte> bytes,
                                                 const std::string& name, const ZipMember& member,
                                                 std::size_t most, std::vector<std::byte>& room);

class ZipWriter {
 public:
  // Sizes and places from `large` on are written as 64-bit ones.
  explicit ZipWriter(std::string path, std::uint64_t large = 0xffffffff)
      : file_(std::move(path)), large_(large) {}

  // A member of exactly `size` bytes, which the calls of add() bring.
  void begin(std::string name, std::uint64_t size);
  void add(std::span<const std::byte> bytes);
  void end();
  void commit();  // writes the directory

 private:
  AtomicFile file_;
  std::uint64_t large_;
  std::vector<std::pair<std::string, ZipMember>> members_;
};

}  // namespace tl::files
