#include "runtime/compile_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/digest.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl {

namespace {

constexpr std::string_view kWhere = "kernel cache";
constexpr std::string_view kMagic = "TLCACHE\n";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 56;
constexpr std::uint64_t kMaxEntry = std::uint64_t{256} << 20;

class File {
 public:
  File(const std::string& path, int flags)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  explicit operator bool() const noexcept { return descriptor_ >= 0; }
  int get() const noexcept { return descriptor_; }

  bool write(std::span<const std::byte> bytes) const noexcept {
    while (!bytes.empty()) {
      const ::ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return true;
  }
  // As many bytes as there are, at most all of `bytes`; -1 for a failure.
  std::ptrdiff_t read(std::span<std::byte> bytes) const noexcept {
    std::ptrdiff_t total = 0;
    while (!bytes.empty()) {
      const ::ssize_t done = ::read(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return -1;
      if (done == 0) break;
      total += done;
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return total;
  }

 private:
  int descriptor_;
};

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

DigestBytes check_of(std::string_view key, std::span<const std::byte> image) {
  Digest digest;
  digest.add(key);
  digest.add(image);
  return digest.finish();
}

void put(std::byte* to, std::uint64_t value, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

std::array<std::byte, kHeaderBytes> header_of(std::string_view key,
                                              std::span<const std::byte> image) {
  std::array<std::byte, kHeaderBytes> header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  put(header.data() + 8, kVersion, 4);
  put(header.data() + 12, key.size(), 4);
  put(header.data() + 16, image.size(), 8);
  const DigestBytes check = check_of(key, image);
  std::copy(check.begin(), check.end(), header.begin() + 24);
  return header;
}

// The image in an entry's bytes, when they are the whole and sound entry of `key`.
std::optional<std::vector<std::byte>> image_in(std::span<const std::byte> entry,
                                               std::string_view key) {
  if (entry.size() < kHeaderBytes + key.size()) return std::nullopt;
  const auto image = entry.subspan(kHeaderBytes + key.size());
  // The header says nothing that we do not know already: it must be the one we would write.
  const auto header = header_of(key, image);
  const auto stored_key = entry.subspan(kHeaderBytes, key.size());
  if (!std::equal(header.begin(), header.end(), entry.begin())) return std::nullopt;
  if (!std::ranges::equal(stored_key, bytes_of(key))) return std::nullopt;
  return std::vector<std::byte>(image.begin(), image.end());
}

[[noreturn]] void fail(const std::string& what, const std::string& directory, int error) {
  throw Error(ErrorKind::BadFile, kWhere, "cannot ", what, " (TL_CACHE_DIR is ", directory,
              "): ", std::generic_category().message(error));
}

}  // namespace

CompileCache CompileCache::from_environment() {
  if (const auto named = environment("TL_CACHE_DIR"); !named.empty()) {
    return CompileCache(std::string(named), true);
  }
  if (const auto cache = environment("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return CompileCache(join(cache, "/tallow/kernels"), false);
  }
  if (const auto home = environment("HOME"); home.starts_with('/')) {
    return CompileCache(join(home, "/.cache/tallow/kernels"), false);
  }
  return CompileCache({}, false);
}

std::string CompileCache::path_of(std::string_view key) const {
  return join(directory_, "/", hex_digest(key, 32), ".tlk");
}

bool CompileCache::make_directory() const {
  if (directory_.empty()) return false;
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (!error && ::access(directory_.c_str(), R_OK | W_OK | X_OK) != 0) {
    error.assign(errno, std::generic_category());
  }
  if (!error) return true;
  if (required_) fail("use the directory", directory_, error.value());
  return false;
}

std::optional<std::vector<std::byte>> CompileCache::find(std::string_view key) const {
  if (!make_directory()) return std::nullopt;
  const std::string path = path_of(key);
  const File file(path, O_RDONLY);
  if (!file) {
    if (errno != ENOENT && required_) fail("read " + path, directory_, errno);
    return std::nullopt;
  }
  struct ::stat status{};
  const bool known = ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  if (known && status.st_size >= 0 && static_cast<std::uint64_t>(status.st_size) <= kMaxEntry) {
    std::vector<std::byte> entry(static_cast<std::size_t>(status.st_size));
    const std::ptrdiff_t got = file.read(entry);
    if (got < 0) {
      if (required_) fail("read " + path, directory_, errno);
      return std::nullopt;
    }
    entry.resize(static_cast<std::size_t>(got));
    if (auto image = image_in(entry, key)) return image;
  }
  // Damaged. Another process may have replaced it with a sound one since; losing that costs one
  // more compilation.
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  return std::nullopt;
}

void CompileCache::store(std::string_view key, std::span<const std::byte> image) const {
  if (image.size() > kMaxEntry - kHeaderBytes - key.size() || !make_directory()) return;
  static std::atomic<unsigned> serial{0};
  const std::string path = path_of(key);
  const std::string temporary =
      join(path, ".", ::getpid(), ".", serial.fetch_add(1, std::memory_order_relaxed), ".tmp");
  const auto header = header_of(key, image);

  int error = 0;
  {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file || !file.write(header) || !file.write(bytes_of(key)) || !file.write(image)) {
      error = errno;
    }
  }
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    if (required_) fail("write " + path, directory_, error);
  }
}

}  // namespace tl
