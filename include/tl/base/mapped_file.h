// A file's bytes, mapped into memory for reading. Pages are read when they are touched, so a file
// larger than memory can be opened, and processes that open the same file share its pages.
//
// The bytes are those of the file, not a copy: if someone cuts the file short while it is mapped,
// touching what is gone ends the process with SIGBUS. read() copies without touching the map and
// throws then. Files that are replaced by renaming are safe; the mapping keeps the old one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tl {

class MappedFile {
 public:
  MappedFile() noexcept = default;  // no file, no bytes

  // Throws BadFile with the path and the system's reason; only regular files can be mapped. An
  // empty file has no bytes.
  explicit MappedFile(std::string path);
  ~MappedFile();

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::size_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }

  // Copies bytes of the file. From any thread. Throws BadFile when they cannot be read, above all
  // when the file has become shorter.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  // Tells the system that these bytes are wanted soon. Does not wait for them.
  void prefetch(std::uint64_t offset, std::uint64_t size) const noexcept;

 private:
  void swap(MappedFile& other) noexcept;

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int file_ = -1;  // open while there are bytes, for read()
};

}  // namespace tl
