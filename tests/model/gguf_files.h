// What the tests of model files share: GGUF files made byte by byte, a folder to write into, and
// where models made by others lie.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/on_every_device.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/model/gguf.h"

namespace tl::test {

namespace fs = std::filesystem;

// Bytes one after another, and where fields begin.
class Raw {
 public:
  explicit Raw(std::uint32_t version = 3) : version_(version) {}

  template <class T>
  Raw& number(T value) {
    const char* bytes = reinterpret_cast<const char*>(&value);
    text_.append(bytes, sizeof value);
    return *this;
  }
  Raw& u32(std::uint32_t value) { return number(value); }
  Raw& u64(std::uint64_t value) { return number(value); }
  Raw& raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  // A length or a count: its width is the version's.
  Raw& length(std::uint64_t value) {
    return version_ == 1 ? u32(static_cast<std::uint32_t>(value)) : u64(value);
  }
  Raw& string(std::string_view text) { return length(text.size()).raw(text); }
  Raw& start(std::uint64_t tensors, std::uint64_t keys) {
    return raw("GGUF").u32(version_).length(tensors).length(keys);
  }
  Raw& key(std::string_view name, GgufType type) {
    return string(name).u32(static_cast<std::uint32_t>(type));
  }
  Raw& tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
              std::uint64_t offset) {
    string(name).u32(static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) length(size);
    return u32(type).u64(offset);
  }
  Raw& pad(std::size_t alignment = 32) {
    text_.resize((text_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  Raw& data(std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) text_ += static_cast<char>(i);
    return *this;
  }
  std::size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(text_)); }
  // The file is of these bytes: while it is used they must be there.
  GgufFile open() const { return GgufFile::from_memory(bytes(), "f"); }

 private:
  std::uint32_t version_;
  std::string text_;
};

// A folder for the files of one test.
class Folder {
 public:
  Folder() {
    static int made = 0;
    path_ = fs::temp_directory_path() / join("tallow-gguf-", ::getpid(), "-", made++);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

inline void save(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}
inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<std::byte> pattern(std::size_t size, unsigned seed = 1) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7 + seed);
  return out;
}

inline void refused(const Raw& raw, const std::string& text) {
  expect_error(ErrorKind::BadFile, text, [&] { raw.open(); });
}

// The source tree. Where the tests run without one, TL_TEST_ROOT names a folder with the files that
// they read of it (tools/gpu_bundle.sh makes one).
inline fs::path source_folder() {
  const std::string given(environment("TL_TEST_ROOT"));
  return given.empty() ? fs::path(TL_SOURCE) : fs::absolute(given);
}

// The models that come with the project, where they are; an empty path where they are not.
inline fs::path data_folder() {
  fs::path at = source_folder();
  // In the source tree, beside it, or beside the folder that work trees are in.
  for (int up = 0; up < 3; ++up, at = at.parent_path()) {
    if (fs::exists(at / "shared/data/gguf")) return at / "shared/data/gguf";
  }
  return {};
}

// The vocabularies beside them, which may be left out.
inline fs::path vocabulary_folder() {
  const fs::path at = data_folder().parent_path() / "tokenizer";
  return !data_folder().empty() && fs::exists(at) ? at : fs::path();
}

}  // namespace tl::test
