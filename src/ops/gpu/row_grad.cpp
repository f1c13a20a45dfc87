#include "ops/gpu/row_grad.h"

#include "ops/gpu/row_launch.h"
#include "tl/kernels/row_grad.h"

namespace tl::gpu {

namespace {

// As in row_grad.cu.
struct NormGrad {
  const std::byte* x;
  const std::byte* g;
  const std::byte* weight;
  std::byte* out;
  std::byte* means;
  std::byte* scales;
  Index rows;
  Index n;
  double epsilon;
  std::uint32_t centered;
};
struct CrossEntropyGrad {
  const std::byte* in{};
  std::byte* out{};
  const std::byte* g{};
  const std::byte* counted{};
  const std::byte* kept{};
  Ids ids{};
  Index rows{};
  Index n{};
  Index row_step{};
  Index step{};
  double smoothing{};
};
struct NormWeightGrad {
  const std::byte* x;
  const std::byte* g;
  const std::byte* means;
  const std::byte* scales;
  std::byte* weights;
  std::byte* biases;
  Index rows;
  Index n;
  Index each;
};

// A warp for rows up to this length, a block for longer ones.
constexpr std::int64_t kLongestOfWarp = 1024;

LaunchShape row_shape(const Device& device, std::int64_t rows, bool by_block) {
  const std::int64_t teams = by_block ? 1 : kThreads / device.properties().warp_width;
  return {.grid = {blocks_for(device, (rows + teams - 1) / teams)}, .block = {kThreads}};
}

}  // namespace

void softmax_gradient(const Tensor& y, const Tensor& g, Tensor& out, bool logarithm) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Index n = y.dim(-1), rows = y.count() / n;
  const bool by_block = n > kLongestOfWarp;
  run(device, row_grad_kernel(RowGradFamily::Softmax, y.dtype()), row_shape(device, rows, by_block),
      y.read(stream), g.read(stream), out.write(stream), rows, n, logarithm ? 1u : 0u,
      by_block ? 1u : 0u);
}

void cross_entropy_gradient(const ops::CrossEntropyGradient& arguments, Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Tensor& logits = arguments.logits;
  const CrossEntropyGrad parameters{logits.read(stream),
                                    out.write(stream),
                                    arguments.g.read(stream),
                                    arguments.counted.read(stream),
                                    arguments.kept.read(stream),
                                    ids_of(arguments.ids, stream),
                                    logits.dim(0),
                                    logits.dim(1),
                                    logits.strides()[0],
                                    logits.strides()[1],
                                    arguments.smoothing};
  std::uint32_t threads = 64;
  while (threads < kThreads && threads * held(out.dtype()) < out.dim(1)) threads *= 2;
  run(device, row_grad_kernel(RowGradFamily::CrossEntropy, out.dtype()),
      {.grid = {blocks_for(device, out.dim(0))}, .block = {threads}}, parameters);
}

void norm_gradient(const ops::NormGradientArguments& arguments, Tensor& out, Tensor& means,
                   Tensor& scales) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Index rows = out.dim(0), n = out.dim(1);
  const bool by_block = n > kLongestOfWarp;
  const Tensor* weight = arguments.weight;
  const NormGrad parameters{arguments.x->read(stream),
                            arguments.g->read(stream),
                            weight == nullptr ? nullptr : weight->read(stream),
                            out.write(stream),
                            means.write(stream),
                            scales.write(stream),
                            rows,
                            n,
                            arguments.epsilon,
                            arguments.centered ? 1u : 0u};
  run(device, row_grad_kernel(RowGradFamily::Norm, out.dtype()), row_shape(device, rows, by_block),
      parameters, by_block ? 1u : 0u);
}

void norm_weight_gradient(const ops::NormWeightArguments& arguments, Tensor& weights,
                          Tensor& biases) {
  const Device device = weights.device();
  const Stream& stream = device.stream();
  const Index rows = arguments.x->dim(0), n = arguments.x->dim(1);
  const NormWeightGrad parameters{arguments.x->read(stream),
                                  arguments.g->read(stream),
                                  arguments.means->read(stream),
                                  arguments.scales->read(stream),
                                  weights.write(stream),
                                  biases.write(stream),
                                  rows,
                                  n,
                                  arguments.each};
  constexpr Index kColumns = 32;
  const LaunchShape shape{
      .grid = {blocks_for(device, (n + kColumns - 1) / kColumns * weights.dim(0))},
      .block = {kThreads}};
  run(device, row_grad_kernel(RowGradFamily::NormWeight, arguments.x->dtype()), shape, parameters);
}

}  // namespace tl::gpu
