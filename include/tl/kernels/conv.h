// The kernels of module CONV.
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

// Families by float dtype, then max_pool by number dtype, then nearest by element size,
// then pixels of elements of two bytes.
enum class ConvFamily : std::uint8_t {
  Tiled,
  TransposedTiled,
  Direct,
  TransposedDirect,
  AvgPool,
  Bilinear,
  MaxPool,
  Nearest
};

inline constexpr std::uint16_t kConvFloats = 5;
inline constexpr std::uint16_t kConvNumbers = 10;

constexpr KernelId conv_module_kernel(ConvFamily family, unsigned place) {
  const unsigned before_floats = static_cast<unsigned>(family) * kConvFloats;
  const unsigned start =
      family == ConvFamily::Nearest
          ? static_cast<unsigned>(ConvFamily::MaxPool) * kConvFloats + kConvNumbers
          : before_floats;
  return {ModuleId::Conv, static_cast<std::uint16_t>(start + place)};
}

// Floats and numbers stand together in DType, the numbers first.
constexpr KernelId conv_float_kernel(ConvFamily family, DType dtype) {
  return conv_module_kernel(family,
                            static_cast<unsigned>(dtype) - static_cast<unsigned>(DType::F8E4M3));
}
constexpr KernelId max_pool_kernel(DType dtype) {
  return conv_module_kernel(ConvFamily::MaxPool, static_cast<unsigned>(dtype));
}
constexpr KernelId nearest_kernel(std::size_t element_size) {
  return conv_module_kernel(ConvFamily::Nearest, element_size == 1   ? 0
                                                 : element_size == 2 ? 1
                                                 : element_size == 4 ? 2
                                                                     : 3);
}
constexpr KernelId pixels_kernel() { return conv_module_kernel(ConvFamily::Nearest, 4); }

}  // namespace tl
