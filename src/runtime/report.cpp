#include "tl/runtime/report.h"

#include <algorithm>
#include <atomic>

#include "runtime/context.h"
#include "runtime/contexts.h"
#include "runtime/pool.h"
#include "tl/base/text.h"

namespace tl {

std::atomic<MemoryHook> memory_hook{nullptr};

MemoryHook set_memory_hook(MemoryHook hook) noexcept { return memory_hook.exchange(hook); }

MemoryReport memory_report() {
  MemoryReport report;
  for (Context* context : opened_contexts()) {
    DeviceMemoryReport device;
    device.location = context->location();
    device.device = context->pool().statistics();
    device.pinned = context->host_pool().statistics();
    device.held = context->pool().live_by_label();
    for (LabelUse& use : context->host_pool().live_by_label()) {
      use.label = use.label.empty() ? "pinned host memory" : use.label + " (pinned host)";
      device.held.push_back(std::move(use));
    }
    std::stable_sort(device.held.begin(), device.held.end(),
                     [](const LabelUse& a, const LabelUse& b) { return a.bytes > b.bytes; });
    report.devices.push_back(std::move(device));
  }
  return report;
}

bool MemoryReport::everything_returned() const noexcept {
  return std::all_of(devices.begin(), devices.end(), [](const DeviceMemoryReport& d) {
    return d.device.live_blocks == 0 && d.device.mapped_blocks == 0 && d.pinned.live_blocks == 0;
  });
}

std::string MemoryReport::text() const {
  std::string out;
  for (const DeviceMemoryReport& d : devices) {
    const PoolStatistics& s = d.device;
    out += join(d.location, ": ", format_bytes(s.live_bytes), " live in ",
                format_count(s.live_blocks), s.live_blocks == 1 ? " block" : " blocks", ", peak ",
                format_bytes(s.peak_bytes), ", pooled ", format_bytes(s.pooled_bytes), "; ",
                format_count(s.allocations), " taken (", format_count(s.hits), " from the pool), ",
                format_count(s.returns), " returned\n");
    if (s.mapped_blocks != 0) {
      out += join("  mapped: ", format_bytes(s.mapped_bytes), " in ", format_count(s.mapped_blocks),
                  s.mapped_blocks == 1 ? " block\n" : " blocks\n");
    }
    if (d.pinned.allocations != 0) {
      out += join("  pinned host memory: ", format_bytes(d.pinned.live_bytes), " live, peak ",
                  format_bytes(d.pinned.peak_bytes), ", pooled ",
                  format_bytes(d.pinned.pooled_bytes), "\n");
    }
    if (s.failures != 0) {
      out += join("  ", format_count(s.failures), " driver failures while returning memory\n");
    }
    for (const LabelUse& use : d.held) {
      out += join("  held: ", format_bytes(use.bytes), " in ", format_count(use.blocks),
                  use.blocks == 1 ? " block by " : " blocks by ",
                  use.label.empty() ? "(no label)" : use.label, "\n");
    }
    if (d.held.empty()) out += "  everything was returned\n";
  }
  if (devices.empty()) out = "no device was used\n";
  return out;
}

}  // namespace tl
