#include "tensor/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "tl/base/error.h"

namespace tl::files {

namespace {

// In the same folder, because only there a rename replaces a file at once.
std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> counter = 0;
  return join(path, ".", ::getpid(), ".", counter.fetch_add(1), ".part");
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)),
      temporary_(name_beside(path_)),
      file_(::open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail("cannot be created");
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!named_) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(std::string_view doing) const {
  throw Error(ErrorKind::BadFile, path_, doing, ": ", std::generic_category().message(errno));
}

void AtomicFile::write_at(std::uint64_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    at += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_at(size_, bytes);
  size_ += bytes.size();
}

void AtomicFile::patch(std::uint64_t at, std::span<const std::byte> bytes) { write_at(at, bytes); }

void AtomicFile::close() {
  if (file_ < 0) return;
  // What is renamed must be on the disk, or a crash leaves an empty file under a good name.
  if (::fsync(file_) != 0) fail("cannot be written");
  const int file = file_;
  file_ = -1;
  if (::close(file) != 0) fail("cannot be written");
}

void AtomicFile::commit() {
  close();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be written");
  named_ = true;
}

}  // namespace tl::files
