#include "ops/gpu/rope.h"

#include "ops/gpu/row_launch.h"

namespace tl::gpu {

namespace {

// As in norm.cu.
struct RopeParameters {
  Index mate_in{};
  Index mate_out{};
  Ids ids{};
  Index table_step{};
  Index table_rows{};
  Fault* fault{};
  std::uint32_t tag{};
  std::uint32_t back{};
};

}  // namespace

void rope(const Tensor& in, Tensor& out, const ops::RopeArguments& arguments) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Shape& shape = arguments.in.shape();  // (b, h, t, d)
  const std::int64_t half = arguments.rotated / 2;
  const Dims& from = arguments.in.strides();
  const Dims& to = arguments.out.strides();
  const std::int64_t next = arguments.interleaved ? 2 : 1;
  const std::int64_t apart = arguments.interleaved ? 1 : half;

  RopeParameters parameters{apart * from[3],           apart * to[3], {}, half,
                            arguments.cosines->dim(0), nullptr,       0,  arguments.back ? 1u : 0u};
  Dims entry{arguments.batch_rows * half, 0, half, 1};  // of the tables
  Dims position{0, 0, 0, 0};
  if (const Tensor* positions = arguments.positions; positions != nullptr) {
    parameters.ids = ids_of(*positions, stream);
    parameters.fault = device.fault_word();
    parameters.tag = fault_tag(arguments.op);
    entry = {0, 0, 0, 1};
    position = {positions->rank() == 2 ? shape[2] : 0, 0, 1, 0};
  }
  const Shape pairs{shape[0], shape[1], shape[2], half};
  const Layout x(pairs, {from[0], from[1], from[2], from[3] * next}, 0);
  const Layout y(pairs, {to[0], to[1], to[2], to[3] * next}, 0);
  const Layout tables(pairs, entry, 0), rows(pairs, position, 0);
  const Shape rest{shape[0], shape[1], shape[2], shape[3] - arguments.rotated};
  const Layout rest_in(rest, from, 0), rest_out(rest, to, 0);

  const std::byte* source = in.read(stream);
  const std::byte* cosines = arguments.cosines->read(stream);
  const std::byte* sines = arguments.sines->read(stream);
  std::byte* target = out.write(stream);
  run(device, norm_kernel(NormFamily::Rope, in.dtype()), elementwise_shape(in.count(), 2), source,
      cosines, sines, target, walk<4>(pairs, {&x, &y, &tables, &rows}),
      walk<2>(rest, {&rest_in, &rest_out}), Index{arguments.rotated * from[3]},
      Index{arguments.rotated * to[3]}, parameters);
}

}  // namespace tl::gpu
