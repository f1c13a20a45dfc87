#include "quant/gpu/dequantize.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "ops/gpu/launcher.h"
#include "tl/base/error.h"
#include "tl/kernels/quantized.h"

namespace tl::gpu {

namespace {

// The place of a format in the list of kernels, which goes by its name.
unsigned kernel_place(QType type) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  const std::string_view wanted = name(type);
  const auto& all = kernels::kBlockFormats;
  const auto found = std::find_if(all.begin(), all.end(), [&](std::string_view each) {
    return std::equal(wanted.begin(), wanted.end(), each.begin(), each.end(), same);
  });
  if (found == all.end()) {
    throw Error(ErrorKind::Unsupported, "dequantize", wanted, " has no kernel");
  }
  return static_cast<unsigned>(found - all.begin());
}

}  // namespace

void dequantize(QType type, const RawMemory& blocks, Tensor& out) {
  const Device device = out.device();
  const std::int64_t eights = out.count() / 8;
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data(device.stream()));
  std::byte* to = out.write(device.stream());
  run(device, dequantize_kernel(kernel_place(type), out.dtype()), elementwise_shape(eights, 1),
      from, to, static_cast<Index>(eights));
}

}  // namespace tl::gpu
