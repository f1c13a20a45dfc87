// /metrics, for Prometheus, and /memory, for the page's panel.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/serve/service.h"
#include "tl/base/text.h"
#include "tl/runtime/report.h"

namespace tl::cli::serve {

namespace {

class MetricsText {
 public:
  void head(const char* name, const char* type, const char* help) {
    name_ = name;
    out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  template <class T>
  void value(const T& number, const std::string& labels = {}) {
    out_ += fmt::format("{}{} {}\n", name_, labels.empty() ? "" : "{" + labels + "}", number);
  }
  template <class T>
  void one(const char* name, const char* type, const char* help, const T& number) {
    head(name, type, help);
    value(number);
  }
  void histogram(const char* name, const char* help, const Histogram& times) {
    head(name, "histogram", help);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < Histogram::kClasses; ++i) {
      count += times.counts[i];
      const std::string bound =
          i < std::size(Histogram::kBounds) ? fmt::format("{}", Histogram::kBounds[i]) : "+Inf";
      out_ += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, count);
    }
    out_ += fmt::format("{0}_sum {1}\n{0}_count {2}\n", name, times.sum, count);
  }
  std::string text() { return std::move(out_); }

 private:
  std::string out_;
  const char* name_ = "";
};

void add_memory(MetricsText& text) {
  const MemoryReport report = memory_report();
  const auto each = [&](const char* name, const char* help, auto&& number) {
    text.head(name, "gauge", help);
    for (const DeviceMemoryReport& device : report.devices) {
      text.value(number(device.device), fmt::format("device=\"{}\"", join(device.location)));
    }
  };
  each("tl_memory_live_bytes", "Held by tensors.",
       [](const PoolStatistics& pool) { return pool.live_bytes; });
  each("tl_memory_pooled_bytes", "Kept for reuse.",
       [](const PoolStatistics& pool) { return pool.pooled_bytes; });
  each("tl_memory_peak_bytes", "The most that was held.",
       [](const PoolStatistics& pool) { return pool.peak_bytes; });
  each("tl_memory_mapped_bytes", "Of files, shown in place.",
       [](const PoolStatistics& pool) { return pool.mapped_bytes; });
}

}  // namespace

HttpReply Service::metrics(const HttpRequest&) {
  const SchedulerNumbers now = scheduler_.numbers();
  MetricsText text;
  text.head("tl_http_replies_total", "counter", "Replies by path and status.");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : replies_) {
      text.value(count, fmt::format("path=\"{}\",status=\"{}\"", key.first, key.second));
    }
  }
  text.one("tl_requests_running", "gauge", "Sequences that are being computed.", now.running);
  text.one("tl_requests_queued", "gauge", "Requests that wait.", now.queued);
  text.head("tl_requests_total", "counter", "Requests for text or embeddings by how they ended.");
  text.value(now.finished, "end=\"finished\"");
  text.value(now.cancelled, "end=\"cancelled\"");
  text.value(now.failed, "end=\"failed\"");
  text.one("tl_prompt_tokens_total", "counter", "Tokens of prompts.", now.prompt_tokens);
  text.one("tl_prompt_tokens_reused_total", "counter",
           "Of them, those another request had computed.", now.reused_tokens);
  text.one("tl_generated_tokens_total", "counter", "Tokens of answers.", now.generated_tokens);
  text.histogram("tl_request_seconds", "From a request to its end.", now.request_seconds);
  text.histogram("tl_first_text_seconds", "From a request to its first text.",
                 now.first_text_seconds);
  text.one("tl_prefix_cache_bytes", "gauge", "Keys and values that are kept for requests to come.",
           now.prefix_bytes);
  text.one("tl_prefix_cache_entries", "gauge", "Conversations among them.", now.prefix_entries);
  text.one("tl_connections", "gauge", "Open connections.", connections ? connections() : 0);
  text.one("tl_uptime_seconds", "gauge", "Since the server started.",
           std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count());
  add_memory(text);
  HttpReply reply;
  reply.type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = text.text();
  return reply;
}

HttpReply Service::memory(const HttpRequest&) {
  Json devices = Json::array();
  for (const DeviceMemoryReport& each : memory_report().devices) {
    Json labels = Json::array();
    for (const LabelUse& held : each.held) {
      labels.push_back({{"label", held.label}, {"bytes", held.bytes}, {"blocks", held.blocks}});
    }
    devices.push_back({{"device", join(each.location)},
                       {"live", each.device.live_bytes},
                       {"pooled", each.device.pooled_bytes},
                       {"peak", each.device.peak_bytes},
                       {"mapped", each.device.mapped_bytes},
                       {"labels", std::move(labels)}});
  }
  const SchedulerNumbers now = scheduler_.numbers();
  HttpReply reply;
  reply.body =
      to_text({{"devices", std::move(devices)},
               {"prefix_cache", {{"bytes", now.prefix_bytes}, {"entries", now.prefix_entries}}},
               {"running", now.running},
               {"queued", now.queued},
               {"prompt_tokens", now.prompt_tokens},
               {"reused_tokens", now.reused_tokens},
               {"generated_tokens", now.generated_tokens}});
  return reply;
}

}  // namespace tl::cli::serve
