// A file that appears under its name only when it is complete: written beside it and renamed. When
// it is not committed, nothing is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tl::files {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);  // these throw BadFile with the path and the reason
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void patch(std::uint64_t at, std::span<const std::byte> bytes);  // over what is written already
  std::uint64_t size() const noexcept { return size_; }
  void close();   // no more is written; it still has no name
  void commit();  // closes it and gives it its name

 private:
  [[noreturn]] void fail(std::string_view doing) const;
  void write_at(std::uint64_t at, std::span<const std::byte> bytes);

  std::string path_;
  std::string temporary_;
  int file_;  // -1 once it is closed
  bool named_ = false;
  std::uint64_t size_ = 0;
};

}  // namespace tl::files
