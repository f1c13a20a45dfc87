#include "ops/gpu/loss.h"

#include "ops/gpu/row_launch.h"

namespace tl::gpu {

namespace {

// As in norm.cu.
struct TargetParameters {
  Ids ids{};
  Index ids_step{};
  Index ignored{};
  std::uint32_t has_ignored{};
  std::uint32_t tag{};
  Fault* fault{};
  double smoothing{};
  void* kept{};
};

}  // namespace

void cross_entropy(const Tensor& logits, const Tensor& targets, Tensor& losses, Tensor& counted,
                   const ops::CrossEntropyArguments& arguments) {
  const Device device = losses.device();
  const Stream& stream = device.stream();
  const std::byte* from = logits.read(stream);
  const TargetParameters parameters{
      ids_of(targets, stream),
      1,
      arguments.ignore_index.value_or(0),
      arguments.ignore_index.has_value() ? 1u : 0u,
      fault_tag("cross_entropy"),
      device.fault_word(),
      arguments.smoothing,
      arguments.kept == nullptr ? nullptr : arguments.kept->write(stream)};
  std::byte* to = losses.write(stream);
  std::byte* counts = counted.write(stream);
  const std::int64_t n = logits.shape()[0], classes = logits.shape()[1];
  const Layout rows({n}, {logits.strides()[0]}, 0);
  std::uint32_t threads = 64;
  while (threads < kThreads && threads * held(logits.dtype()) < classes) threads *= 2;
  run(device, norm_kernel(NormFamily::CrossEntropy, logits.dtype()),
      {.grid = {blocks_for(device, n)}, .block = {threads}}, from, to, counts,
      walk<1>({n}, {&rows}), Steps{classes, logits.strides()[1], 1}, parameters);
}

void total(const Tensor& losses, const Tensor& counted, Tensor& out, bool mean) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const std::byte* from = losses.read(stream);
  const std::byte* counts = counted.read(stream);
  std::byte* to = out.write(stream);
  run(device, norm_kernel(NormFamily::CrossEntropyTotal, out.dtype()),
      {.grid = {1}, .block = {kThreads}}, from, counts, to, static_cast<Index>(losses.count()),
      mean ? 1u : 0u);
}

}  // namespace tl::gpu
