// Fills memory on a device from what is read in pieces: a file, above all.
//
// Several threads read at once. For a GPU they read into a few pinned buffers, and while one is on
// its way to the device another is filled; small memories travel together in one buffer. Nothing
// waits for a single memory: a buffer is waited for when it is needed again, and the stream once,
// at the end. For the CPU the threads read straight into the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "tl/runtime/device.h"
#include "tl/runtime/raw_memory.h"

namespace tl {

struct ReadProgress {
  std::uint64_t done = 0;  // bytes
  std::uint64_t total = 0;
  std::size_t index = 0;  // the last memory that bytes went to
};

struct ReadOptions {
  static constexpr int kMostThreads = 64;
  static constexpr std::uint64_t kLeastStaging = std::uint64_t{256} << 10;

  int threads = 0;  // that read: 0 for the CPUs there are, at most 8
  std::uint64_t staging_bytes = std::uint64_t{32} << 20;  // of all buffers together
  // Called on the calling thread as bytes arrive, at the end with all of them. What it throws ends
  // the reading and is thrown on.
  std::function<void(const ReadProgress&)> progress;
};

// Puts the bytes of memory `index` from `offset` on into `to`. Called from several threads.
using ReadSource =
    std::function<void(std::size_t index, std::uint64_t offset, std::span<std::byte> to)>;

// All of every memory is written, on the device's own stream; when it returns, all of it is there.
// Throws what the source, the callback or the device throws first: no thread reads then and no copy
// is under way, and what the memories hold is not said. Throws WrongDevice for memory that is not
// on `device`, BadArgument for options that cannot be.
void read_into(const Device& device, std::span<RawMemory> memories, const ReadSource& source,
               const ReadOptions& options = {});

}  // namespace tl
