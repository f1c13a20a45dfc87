// The kernel packs of this process: the one inside the library, and the files named by
// TL_KERNEL_PACKS.
//
// The runtime does not know the kernels (they are to its right), so the pack inside the library is
// handed in by them with register_pack() before the first module is asked for. Nothing is read
// until then: registering costs a pointer.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel_pack.h"

namespace tl {

struct RegisteredPack {
  KernelPack pack;
  bool embedded = false;  // part of the program, not a file
};

struct SourceText {
  std::string name;
  std::string text;
};

class PackRegistry {
 public:
  // `files` is a list separated by colons, as in TL_KERNEL_PACKS.
  explicit PackRegistry(std::string files) : files_(std::move(files)) {}
  static PackRegistry& global();

  // Adds bytes that live as long as the process.
  void add(std::span<const std::byte> bytes, std::string origin);

  // All packs, files first, so that a file can replace what is built in. What a pack that cannot be
  // read is, and where, is thrown as BadFile, at every call. The pointers stay good for the life of
  // the registry.
  std::vector<const RegisteredPack*> packs();

  // Every source text of every pack; of texts with one name the first counts.
  std::vector<SourceText> sources();

 private:
  struct Waiting {
    std::span<const std::byte> bytes;
    std::string origin;
  };

  std::mutex mutex_;
  std::string files_;
  std::vector<Waiting> waiting_;          // registered and not yet read
  std::list<RegisteredPack> from_files_;  // lists, because pointers into them are handed out
  std::list<RegisteredPack> embedded_;
};

// Adds a pack to the global registry.
void register_pack(std::span<const std::byte> bytes, std::string origin);

}  // namespace tl
