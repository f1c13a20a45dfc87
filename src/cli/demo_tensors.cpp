// `tl demo tensors`: tensors, views, broadcasting, a write that detaches and two ops, printed as
// they are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/base/version.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/matmul.h"
#include "tl/ops/random.h"
#include "tl/ops/reduce.h"
#include "tl/ops/softmax.h"
#include "tl/runtime/device.h"
#include "tl/runtime/report.h"
#include "tl/tensor/print.h"

namespace tl::cli {

namespace {

constexpr const char* kWhere = "demo tensors";

void expect(bool claim, const char* otherwise) {
  if (!claim) throw Error(ErrorKind::Device, kWhere, otherwise);
}

// The line of a program, and what it gives.
void show(std::string_view line, const Tensor& result, std::string_view remark = {}) {
  fmt::print("{}{}\n{}\n\n", coloured(stdout, Colour::Bold, line),
             remark.empty() ? std::string()
                            : coloured(stdout, Colour::Dim, fmt::format("  // {}", remark)),
             to_text(result));
}

void tell(const Device& device) {
  const auto in_use = [&, before = device.pool().live_bytes] {
    return format_bytes(device.pool().live_bytes - before);
  };
  const Tensor x = reshape(arange(12, DType::F32, device), {3, 4});
  show("x = reshape(arange(12, f32), {3, 4})", x);

  const Tensor view = x.t().narrow(0, 1, 2);
  expect(view.shares_memory_with(x), "a view was copied");
  show("x.t().narrow(0, 1, 2)", view, "a view: " + in_use() + " in use, for both");

  const Tensor centred = x - mean(x, {1}, true);
  show("x - mean(x, {1}, true)", centred, "(3, 4) and (3, 1) broadcast");

  Tensor y = x;
  expect(y.shares_memory_with(x), "a copy was made before it was needed");
  const std::string before = in_use();
  fill_at(y, y.get(1).layout(), -1);
  show("y = x; fill_at(y, y.get(1).layout(), -1)", y,
       "the write gives y memory of its own: " + before + " in use, then " + in_use());
  expect(!y.shares_memory_with(x), "the written tensor still shares");
  expect(x.get(1).get(0).item<float>() == 4, "the write is visible in the original");
  show("x.get(1)", x.get(1), "x is a value: nothing it shared with can change it");

  const Tensor q = rand_normal(0, 1, {64, 16}, DType::BF16, device);
  const Tensor k = rand_normal(0, 1, {64, 16}, DType::BF16, device);
  show("softmax(matmul(q, k.t()) / 4)", softmax(matmul(q, k.t()) / 4), "q, k (64, 16) of bf16");
}

int demo_tensors(const std::string& name) {
  const Device device = Device::parse(name);
  fmt::print("Tallow {} on {}: {}\n\n", version(), device.text(), device.name());
  tell(device);
  device.synchronize();
  device.trim();
  const MemoryReport report = memory_report();
  fmt::print("{}", report.text());
  expect(report.everything_returned(), "memory is still held after everything was dropped");
  return 0;
}

}  // namespace

void add_demo_tensors(CLI::App& demo, Action& chosen) {
  const auto device = std::make_shared<std::string>("auto");
  CLI::App& command = *demo.add_subcommand("tensors", "make tensors, look at them, compute");
  add_device_option(command, device);
  command.callback([device, &chosen] { chosen = [device] { return demo_tensors(*device); }; });
}

}  // namespace tl::cli
