#include "runtime/compile_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/scratch.h"
#include "tl/base/error.h"

namespace tl {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto view = std::as_bytes(std::span<const char>(text.data(), text.size()));
  return {view.begin(), view.end()};
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

void overwrite(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::string refusal(const CompileCache& cache) {
  try {
    cache.find("key");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::BadFile);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class CompileCacheTest : public testing::Test {
 protected:
  const ScratchFolder folder_;
  const CompileCache cache_{folder_.file("a/b/c"), true};
};

TEST_F(CompileCacheTest, FindsWhatWasStoredAndNothingElse) {
  EXPECT_FALSE(cache_.find("key one"));
  cache_.store("key one", bytes_of("image one"));
  cache_.store("key two", bytes_of("image two"));
  cache_.store("empty", {});
  EXPECT_EQ(cache_.find("key one"), bytes_of("image one"));
  EXPECT_EQ(cache_.find("key two"), bytes_of("image two"));
  EXPECT_EQ(cache_.find("empty"), Bytes{});
  EXPECT_FALSE(cache_.find("key three"));
  EXPECT_EQ(files_in(cache_.directory()), 3u) << "no temporary file stays behind";
}

TEST_F(CompileCacheTest, AnotherProcessFindsItToo) {
  cache_.store("key", bytes_of("image"));
  EXPECT_EQ(CompileCache(cache_.directory(), false).find("key"), bytes_of("image"));
}

TEST_F(CompileCacheTest, AnyChangeOfAnEntryIsFoundAndTheEntryRemoved) {
  cache_.store("key", bytes_of("image"));
  const std::string path = cache_.path_of("key");
  const std::string good = contents(path);
  ASSERT_EQ(good.size(), 56u + 3 + 5);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    overwrite(path, bad);
    ASSERT_FALSE(cache_.find("key")) << at;
    ASSERT_FALSE(fs::exists(path)) << at;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    overwrite(path, std::string_view(good).substr(0, size));
    ASSERT_FALSE(cache_.find("key")) << size;
  }
  overwrite(path, good + "x");
  EXPECT_FALSE(cache_.find("key"));

  cache_.store("key", bytes_of("again"));
  EXPECT_EQ(cache_.find("key"), bytes_of("again"));
}

TEST_F(CompileCacheTest, AnEntryOfAnotherKeyIsNotUsed) {
  cache_.store("key one", bytes_of("image one"));
  fs::copy_file(cache_.path_of("key one"), cache_.path_of("key two"));  // as if two names met
  EXPECT_FALSE(cache_.find("key two"));
  EXPECT_EQ(cache_.find("key one"), bytes_of("image one"));
}

TEST_F(CompileCacheTest, AFolderInTheWayOfAnEntryIsRemoved) {
  fs::create_directories(cache_.path_of("key") + "/sub");
  EXPECT_FALSE(cache_.find("key"));
  cache_.store("key", bytes_of("image"));
  EXPECT_EQ(cache_.find("key"), bytes_of("image"));
}

TEST_F(CompileCacheTest, ReadersNeverSeeHalfAnEntry) {
  const Bytes one(100000, std::byte{1});
  const Bytes two(300000, std::byte{2});
  std::atomic<bool> stop{false};
  std::atomic<int> found{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) cache_.store("key", t == 0 ? one : two);
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        if (const auto image = cache_.find("key")) {
          ASSERT_TRUE(*image == one || *image == two);
          ++found;
        }
      }
    });
  }
  threads[0].join();
  threads[1].join();
  stop = true;
  threads[2].join();
  threads[3].join();
  EXPECT_TRUE(cache_.find("key")) << "a whole entry was taken for a damaged one";
  EXPECT_EQ(files_in(cache_.directory()), 1u);
}

TEST_F(CompileCacheTest, ProcessesMayRace) {
  std::vector<::pid_t> children;
  for (int p = 0; p < 4; ++p) {
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool good = true;
      for (int i = 0; i < 50; ++i) {
        const std::string key = "key " + std::to_string(i % 5);
        const Bytes image = bytes_of(key + std::string(20000, 'x'));
        const auto found = cache_.find(key);
        good = good && (!found || *found == image);
        cache_.store(key, image);
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const ::pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files_in(cache_.directory()), 5u);
}

// A path below a plain file can be neither made nor read, whoever asks; permissions would not stop
// a test that runs as root.
TEST_F(CompileCacheTest, ADirectoryTheUserNamedMustWork) {
  overwrite(folder_.file("plain"), "");
  const std::string impossible = folder_.file("plain/cache");
  const ScopedVariable variable("TL_CACHE_DIR", impossible);
  const CompileCache cache = CompileCache::from_environment();
  EXPECT_EQ(refusal(cache), "kernel cache: cannot use the directory (TL_CACHE_DIR is " +
                                impossible + "): Not a directory");
  EXPECT_THROW(cache.store("key", bytes_of("image")), Error);
}

TEST_F(CompileCacheTest, WithoutRightsTheReasonSaysSo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::create_directory(folder_.file("locked"));
  fs::permissions(folder_.file("locked"), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_NE(refusal(CompileCache(folder_.file("locked"), true)).find("Permission denied"),
            std::string::npos);
}

TEST_F(CompileCacheTest, ADefaultDirectoryThatDoesNotWorkIsNotMissed) {
  overwrite(folder_.file("plain"), "");
  const ScopedVariable named("TL_CACHE_DIR", nullptr);
  const ScopedVariable cache_home("XDG_CACHE_HOME", folder_.file("plain"));
  const CompileCache cache = CompileCache::from_environment();
  EXPECT_NO_THROW(cache.store("key", bytes_of("image")));
  EXPECT_FALSE(cache.find("key"));
}

TEST_F(CompileCacheTest, TheDirectoryComesFromTheEnvironment) {
  const ScopedVariable home("HOME", "/home/someone");
  const ScopedVariable no_cache_home("XDG_CACHE_HOME", nullptr);
  const ScopedVariable not_named("TL_CACHE_DIR", nullptr);
  EXPECT_EQ(CompileCache::from_environment().directory(), "/home/someone/.cache/tallow/kernels");
  {
    const ScopedVariable cache_home("XDG_CACHE_HOME", "/var/cache/someone");
    EXPECT_EQ(CompileCache::from_environment().directory(), "/var/cache/someone/tallow/kernels");
    const ScopedVariable named("TL_CACHE_DIR", "/elsewhere");
    EXPECT_EQ(CompileCache::from_environment().directory(), "/elsewhere");
  }
  const ScopedVariable homeless("HOME", nullptr);
  const CompileCache none = CompileCache::from_environment();
  EXPECT_EQ(none.directory(), "");
  EXPECT_NO_THROW(none.store("key", bytes_of("image")));
  EXPECT_FALSE(none.find("key"));
}

}  // namespace
}  // namespace tl
