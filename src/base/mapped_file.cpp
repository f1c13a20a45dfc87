#include "tl/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

#include "tl/base/error.h"

namespace tl {

namespace {

constexpr const char* kWhere = "read file";

[[noreturn]] void fail(const std::string& path, const char* step, int error) {
  throw Error(ErrorKind::BadFile, kWhere, "cannot ", step, " '", path,
              "': ", std::generic_category().message(error));
}

// Closes on every way out but the one that keeps it.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  // The system would cut the path at a zero byte and open another file.
  if (path_.find('\0') != std::string::npos) {
    throw Error(ErrorKind::BadFile, kWhere, "the path that begins '", path_.c_str(),
                "' has a zero byte in it");
  }
  // O_NONBLOCK so that a named pipe is refused below instead of waiting for a writer.
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path_, "open", errno);

  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fail(path_, "look at", errno);
  if (S_ISDIR(info.st_mode)) fail(path_, "read", EISDIR);
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::BadFile, kWhere, "cannot read '", path_, "': not a regular file");
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size == 0) return;  // mmap refuses a length of zero
  if (size > std::numeric_limits<std::size_t>::max()) fail(path_, "read", EFBIG);

  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail(path_, "read", errno);
  data_ = static_cast<const std::byte*>(address);
  size_ = size;
  file_ = file.release();
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  ::munmap(const_cast<std::byte*>(data_), size_);
  ::close(file_);
}

void MappedFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  if (offset > size_ || to.size() > size_ - offset) {
    throw Error(ErrorKind::BadArgument, kWhere, "bytes ", offset, " to ", offset, " + ", to.size(),
                " are outside the ", size_, " of '", path_, "'");
  }
  while (!to.empty()) {
    const ssize_t got = ::pread(file_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, "read", errno);
    if (got == 0) {
      throw Error(ErrorKind::BadFile, kWhere, "'", path_, "' had ", size_,
                  " bytes when it was opened and ends at byte ", offset, " now");
    }
    offset += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

void MappedFile::prefetch(std::uint64_t offset, std::uint64_t size) const noexcept {
  if (offset >= size_ || size == 0) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t start = offset / page * page;
  const std::uint64_t end = offset + std::min<std::uint64_t>(size, size_ - offset);
  // Advice only: when the system does not take it, pages come one by one as they are touched.
  ::madvise(const_cast<std::byte*>(data_) + start, end - start, MADV_WILLNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept { swap(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile taken(std::move(other));
  swap(taken);
  return *this;
}

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(file_, other.file_);
}

}  // namespace tl
