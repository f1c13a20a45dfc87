#include "quant/gpu/blocks.h"

#include <cstdint>

#include "ops/gpu/launcher.h"
#include "tl/kernels/quantized.h"

namespace tl::gpu {

void dequantize(QType type, const RawMemory& blocks, Tensor& out) {
  const Device device = out.device();
  const std::int64_t eights = out.count() / 8;
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data(device.stream()));
  std::byte* to = out.write(device.stream());
  run(device, dequantize_kernel(place_in(kernels::kBlockFormats, type), out.dtype()),
      elementwise_shape(eights, 1), from, to, static_cast<Index>(eights));
}

bool can_quantize(QType type) {
  return place_in(kernels::kEncodedFormats, type) < kernels::kEncodedFormats.size();
}

RawMemory quantize(QType type, const Tensor& x) {
  const Device device = x.device();
  const QFormat& format = format_of(type);
  const std::int64_t blocks = x.count() / format.elements;
  RawMemory out(device, static_cast<std::uint64_t>(blocks) * format.bytes);
  if (blocks == 0) return out;
  const auto* from = x.read<float>(device.stream());
  std::byte* to = out.overwrite_data(device.stream());
  run(device, quantize_kernel(place_in(kernels::kEncodedFormats, type)),
      elementwise_shape(blocks, 1), from, to, static_cast<Index>(blocks));
  return out;
}

}  // namespace tl::gpu
