// What is held where, for the C interface.
#include <nlohmann/json.hpp>
#include <string>

#include "capi/tensors.h"
#include "tl/runtime/report.h"

namespace tl::capi {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const DeviceMemoryReport& report) {
  Json held = Json::array();
  for (const LabelUse& use : report.held) {
    held.push_back({{"label", use.label}, {"bytes", use.bytes}, {"blocks", use.blocks}});
  }
  const PoolStatistics& pool = report.device;
  return {{"device", report.location.text()},
          {"live_bytes", pool.live_bytes},
          {"live_blocks", pool.live_blocks},
          {"peak_bytes", pool.peak_bytes},
          {"pooled_bytes", pool.pooled_bytes},
          {"reserved_bytes", pool.reserved_bytes},
          {"mapped_bytes", pool.mapped_bytes},
          {"pinned_bytes", report.pinned.live_bytes},
          {"held", std::move(held)}};
}

}  // namespace

}  // namespace tl::capi

namespace capi = tl::capi;

tl_status tl_memory(tl_device device, tl_memory_use* use) {
  return capi::guarded([&] {
    capi::expect(use, "tl_memory", "use");
    const tl::PoolStatistics pool = capi::device_of_c("tl_memory", device).pool();
    *use = {pool.live_bytes, pool.live_blocks, pool.peak_bytes, pool.pooled_bytes,
            pool.mapped_bytes};
  });
}

tl_status tl_memory_reset_peak(tl_device device) {
  return capi::guarded([&] { capi::device_of_c("tl_memory_reset_peak", device).reset_peak(); });
}

tl_status tl_memory_trim(tl_device device, uint64_t* bytes) {
  return capi::guarded([&] {
    const std::uint64_t returned = capi::device_of_c("tl_memory_trim", device).trim();
    if (bytes != nullptr) *bytes = returned;
  });
}

tl_status tl_memory_json(char** json) {
  return capi::guarded([&] {
    capi::expect(json, "tl_memory_json", "json");
    capi::Json all = {{"devices", capi::Json::array()}};
    for (const tl::DeviceMemoryReport& each : tl::memory_report().devices) {
      all["devices"].push_back(capi::json_of(each));
    }
    *json = capi::new_text(all.dump(-1, ' ', false, capi::Json::error_handler_t::replace));
  });
}
