#include "model/gpu/sampler.h"

#include <algorithm>

#include "ops/gpu/launcher.h"
#include "tl/kernels/sample.h"

namespace tl::gpu {

void sample(std::span<const kernels::SampleRow> rows, bool greedy, const Tensor& logits,
            Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const std::int64_t vocabulary = logits.shape()[1];
  const auto* from = logits.read<float>(stream);
  auto* to = out.write<std::uint32_t>(stream);
  kernels::SampleRows given = {};
  given.vocabulary = static_cast<unsigned>(vocabulary);
  given.fault = device.fault_word();
  given.tag = fault_tag("sample");
  const KernelId kernel = sample_kernel(greedy ? SampleKernel::Greedy : SampleKernel::Drawn);
  while (!rows.empty()) {
    const std::size_t count = std::min<std::size_t>(rows.size(), kernels::kSampleRows);
    std::copy_n(rows.begin(), count, given.at);
    run(device, kernel, {.grid = {count}, .block = {kernels::kSampleThreads}}, from, to, given);
    rows = rows.subspan(count);
    from += static_cast<std::int64_t>(count) * vocabulary;
    to += count;
  }
}

void accept(kernels::SampleState* state, std::int64_t vocabulary, const Tensor& tokens) {
  const Device device = tokens.device();
  run(device, sample_kernel(SampleKernel::Accept),
      {.grid = {1}, .block = {kernels::kSampleThreads}},
      tokens.read<std::uint32_t>(device.stream()), static_cast<unsigned>(tokens.count()), state,
      static_cast<unsigned>(vocabulary));
}

}  // namespace tl::gpu
