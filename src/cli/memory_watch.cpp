#include "cli/memory_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/runtime/report.h"

namespace tl::cli {

namespace {

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// More than before, or nothing.
std::uint64_t growth(std::uint64_t now, std::uint64_t before) {
  return now > before ? now - before : 0;
}

}  // namespace

std::string MemoryUse::text() const {
  return fmt::format("model {}, cache {}, peak {}, {}", format_bytes(model), format_bytes(cache),
                     format_bytes(peak),
                     missing == 0 ? "all returned" : format_bytes(missing) + " not returned");
}

MemoryWatch::MemoryWatch(const Device& device, bool reports)
    : device_(device), reports_(reports || std::getenv("TL_MEMORY_CHECK") != nullptr) {
  device_.reset_peak();
  before_ = device_.pool();
  pinned_before_ = device_.pinned_pool().live_bytes;
  if (!reports_) return;
  const char* kind = device_.is_gpu() ? "GPU" : "CPU";
  fmt::print(stderr,
             "\n=== {0} Memory Check: Before Execution ===\n"
             "{0} memory allocated: {1:.2f} MB\n"
             "==========================================\n\n",
             kind, mebibytes(before_.live_bytes));
}

void MemoryWatch::note_cache(std::uint64_t bytes) { use_.cache = std::max(use_.cache, bytes); }

MemoryUse MemoryWatch::finish() {
  try {
    device_.synchronize();  // and lets go of copies that nobody waited for
  } catch (const Error&) {
    // Work on it has failed, which was reported where it did; what is held can still be counted.
  }
  const PoolStatistics now = device_.pool();
  // A file that is used where it is mapped is not the pool's, so its bytes come on top.
  const bool is_mapped = device_.is_cpu();
  use_.peak = growth(now.peak_bytes, before_.live_bytes) + (is_mapped ? use_.model : 0);
  const std::uint64_t live = growth(now.live_bytes, before_.live_bytes);
  use_.missing = live + growth(now.mapped_bytes, before_.mapped_bytes) +
                 growth(device_.pinned_pool().live_bytes, pinned_before_);
  if (!reports_ && use_.missing == 0) return use_;

  const char* kind = device_.is_gpu() ? "GPU" : "CPU";
  const DriverCalls calls = device_.driver_calls();
  fmt::print(stderr,
             "\n=== {0} Memory Check: After Execution ===\n"
             "{0} memory allocated: {1:.2f} MB\n"
             "Memory change: {2:+.2f} MB\n\n"
             "Buffer Pool Stats:\n"
             "  Pooled buffers: {3}\n"
             "  Pool memory: {4:.2f} MB\n",
             kind, mebibytes(now.live_bytes),
             mebibytes(now.live_bytes) - mebibytes(before_.live_bytes),
             growth(calls.allocations, calls.frees), mebibytes(now.pooled_bytes));
  if (now.allocations > 0) {
    fmt::print(stderr, "  Reuse rate: {:.1f}%\n",
               100 * static_cast<double>(now.hits) / static_cast<double>(now.allocations));
  }
  if (use_.missing == 0) {
    fmt::print(stderr,
               "\n✅ No memory leaks detected\n"
               "   All {} memory properly released.\n"
               "=========================================\n",
               kind);
    return use_;
  }
  fmt::print(stderr,
             "\n⚠️  WARNING: {0} memory leak detected!\n"
             "   {1:.2f} MB of {0} memory was not freed after execution.\n"
             "🔧 Attempting to force-release {0} memory...\n",
             kind, mebibytes(use_.missing));
  for (const DeviceMemoryReport& report : memory_report().devices) {
    if (report.location != device_.location()) continue;
    for (const LabelUse& held : report.held) {
      fmt::print(stderr, "   {:.2f} MB in {} block(s) taken by {}\n", mebibytes(held.bytes),
                 held.blocks, held.label.empty() ? "(no label)" : held.label);
    }
  }
  const std::uint64_t freed = device_.trim();
  fmt::print(stderr, "   After purge: {:.2f} MB ({:+.2f} MB freed)\n\n",
             mebibytes(device_.pool().reserved_bytes), mebibytes(freed));
  return use_;
}

}  // namespace tl::cli
