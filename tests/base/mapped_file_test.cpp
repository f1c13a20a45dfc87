#include "tl/base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tl/base/error.h"

namespace tl {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tl_mapped_file_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // The message of the BadFile error that opening `path` must give.
  static std::string refusal(const std::string& path) {
    try {
      const MappedFile file(path);
      ADD_FAILURE() << "opened " << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::BadFile);
      return error.what();
    }
    return {};
  }

  fs::path folder_;
};

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

static_assert(!std::is_copy_constructible_v<MappedFile>);
static_assert(!std::is_copy_assignable_v<MappedFile>);
static_assert(std::is_nothrow_move_constructible_v<MappedFile>);
static_assert(std::is_nothrow_move_assignable_v<MappedFile>);

TEST_F(MappedFileTest, GivesTheBytesOfTheFile) {
  const std::string path = write("a", std::string_view("one\0two", 7));
  const MappedFile file(path);
  EXPECT_EQ(file.size(), 7U);
  EXPECT_EQ(text_of(file), std::string("one\0two", 7));
  EXPECT_EQ(file.path(), path);
}

TEST_F(MappedFileTest, LargerThanAPage) {
  const std::string text(3 * 4096 + 5, 'x');
  const MappedFile file(write("big", text));
  EXPECT_EQ(text_of(file), text);
}

TEST_F(MappedFileTest, EmptyFileHasNoBytes) {
  const MappedFile file(write("empty", ""));
  EXPECT_EQ(file.size(), 0U);
  EXPECT_TRUE(file.bytes().empty());
}

TEST_F(MappedFileTest, DefaultHasNoBytes) {
  const MappedFile file;
  EXPECT_TRUE(file.bytes().empty());
  EXPECT_TRUE(file.path().empty());
}

TEST_F(MappedFileTest, MovingHandsTheMappingOver) {
  MappedFile first(write("a", "first"));
  const std::byte* address = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), address);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move): this is the claim

  MappedFile third(write("b", "third"));
  third = std::move(second);
  EXPECT_EQ(text_of(third), "first");
  EXPECT_TRUE(second.bytes().empty());  // NOLINT(bugprone-use-after-move)
}

TEST_F(MappedFileTest, SelfMoveKeepsTheBytes) {
  MappedFile file(write("a", "same"));
  MappedFile& alias = file;
  file = std::move(alias);
  EXPECT_EQ(text_of(file), "same");
}

TEST_F(MappedFileTest, ReplacedFileKeepsItsOldBytes) {
  const std::string path = write("a", "old");
  const MappedFile file(path);
  fs::rename(write("b", "new"), path);
  EXPECT_EQ(text_of(file), "old");
}

TEST_F(MappedFileTest, ReadsBytesOfTheFileThatWasOpened) {
  const std::string path = write("a", "0123456789");
  const MappedFile file(path);
  fs::rename(write("b", "new"), path);
  std::string some(4, ' ');
  file.read(3, std::as_writable_bytes(std::span(some)));
  EXPECT_EQ(some, "3456");
  file.read(10, {});
  file.prefetch(0, 10);
  file.prefetch(5, ~std::uint64_t{0});
  file.prefetch(11, 1);
  MappedFile().prefetch(0, 1);
}

TEST_F(MappedFileTest, ReadingOutsideIsRefused) {
  const MappedFile file(write("a", "0123456789"));
  std::array<std::byte, 4> some{};
  for (const std::uint64_t offset : {std::uint64_t{7}, std::uint64_t{11}, ~std::uint64_t{0}}) {
    try {
      file.read(offset, some);
      ADD_FAILURE() << "read at " << offset;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::BadArgument) << error.what();
    }
  }
}

TEST_F(MappedFileTest, AFileThatBecameShorterIsAnErrorAndNoSignal) {
  const std::string path = write("a", std::string(100'000, 'x'));
  const MappedFile file(path);
  fs::resize_file(path, 50'000);
  std::vector<std::byte> all(100'000);
  try {
    file.read(0, all);
    ADD_FAILURE() << "read what is gone";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::BadFile);
    EXPECT_EQ(std::string(error.what()), "read file: '" + path +
                                             "' had 100000 bytes when it was opened and ends at "
                                             "byte 50000 now");
  }
}

TEST_F(MappedFileTest, MissingFileNamesPathAndReason) {
  const std::string path = folder_ / "none";
  EXPECT_EQ(refusal(path), "read file: cannot open '" + path + "': No such file or directory");
}

TEST_F(MappedFileTest, DirectoryIsRefused) {
  EXPECT_EQ(refusal(folder_), "read file: cannot read '" + folder_.string() + "': Is a directory");
}

TEST_F(MappedFileTest, PipeIsRefusedWithoutWaiting) {
  const std::string path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << std::strerror(errno);
  EXPECT_EQ(refusal(path), "read file: cannot read '" + path + "': not a regular file");
}

TEST_F(MappedFileTest, UnreadableFileIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  EXPECT_EQ(refusal(path), "read file: cannot open '" + path + "': Permission denied");
}

TEST_F(MappedFileTest, ZeroByteInPathIsRefused) {
  const std::string path = write("a", "x");
  EXPECT_EQ(refusal(path + std::string("\0b", 2)),
            "read file: the path that begins '" + path + "' has a zero byte in it");
}

}  // namespace
}  // namespace tl
