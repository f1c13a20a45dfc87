// Kernels compiled at run time, kept on disk between runs.
//
// An entry's file is named by the digest of its key: everything that the compiled bytes depend on,
// written out as text. The key stands in the file too and is compared, so a file that is not what
// its name says is never used. Entries are written under a name of their own and renamed into
// place: readers see a whole entry or none, and any number of threads and processes may look up and
// store at once. An entry that is damaged, cut short or foreign is removed and made again.
//
//   0   8  magic "TLCACHE\n"
//   8   4  version, 1 (little-endian, like all numbers here)
//  12   4  K, bytes of the key
//  16   8  P, bytes of the image
//  24  32  SHA-256 of the key and the image
//  56   K  the key
//  56+K P  the image
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tl {

class CompileCache {
 public:
  // TL_CACHE_DIR, else $XDG_CACHE_HOME/tallow/kernels, else $HOME/.cache/tallow/kernels; with none
  // of them, a cache that keeps nothing.
  static CompileCache from_environment();

  // `required`: the user named this directory, so that failing to use it is an error (BadFile, with
  // the directory and the reason). Otherwise the cache is a convenience: what cannot be kept is
  // compiled again.
  CompileCache(std::string directory, bool required)
      : directory_(std::move(directory)), required_(required) {}

  const std::string& directory() const noexcept { return directory_; }

  std::optional<std::vector<std::byte>> find(std::string_view key) const;
  void store(std::string_view key, std::span<const std::byte> image) const;

  // Where the entry of a key is kept.
  std::string path_of(std::string_view key) const;

 private:
  bool make_directory() const;

  std::string directory_;  // empty: nothing is kept
  bool required_;
};

}  // namespace tl
