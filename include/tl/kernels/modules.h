// The kernel modules and the kernels in them.
//
// A kernel is known to the host by its module and its place in that module's list, so that a launch
// does no string work; the lists of names exist to load modules and to be compared with the kernel
// files by a test. Every name comes from one function, kernel_name() in src/kernels/kernel_name.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tl/base/dtype.h"
#include "tl/runtime/module_store.h"  // ModuleSpec

namespace tl {

enum class ModuleId : std::uint8_t {
  Affine,
  Binary,
  Cast,
  Conv,
  Fill,
  Indexing,
  Quantized,
  Reduce,
  Sort,
  Ternary,
  Unary,
  Matmul,
  Attention,
  Norm,
  QuantVector,
  QuantMatrix,
  Decode,
  Sample,
  Cache,
  Train,
  RowGrad,
  AttentionGrad,
  QuantGroup,
  QuantRow
};

inline constexpr int kModuleCount = 24;

// "cast": the module's source is src/kernels/cast.cu and its image cast.<architecture>.
std::string_view name(ModuleId module);

// The kernels of a module in the order of their indices; empty for a module not written yet.
std::span<const std::string_view> kernel_names(ModuleId module);

// What the module store asks for.
const ModuleSpec& module_spec(ModuleId module);

struct KernelId {
  ModuleId module;
  std::uint16_t index;  // into kernel_names(module)

  friend constexpr bool operator==(KernelId, KernelId) = default;
};

// ---- FILL: by element size, which is 1, 2, 4 or 8 bytes

enum class FillFamily : std::uint8_t {
  Fill,
  Copy2d,
  ConstSet,
  CopyStrided,
  CopyBetween,
  Transpose,
  Band
};

constexpr KernelId fill_module_kernel(FillFamily family, std::size_t element_size) {
  const unsigned log2_size = element_size == 1   ? 0
                             : element_size == 2 ? 1
                             : element_size == 4 ? 2
                                                 : 3;
  return {ModuleId::Fill,
          static_cast<std::uint16_t>(static_cast<unsigned>(family) * 4 + log2_size)};
}
constexpr KernelId fill_kernel(std::size_t element_size) {
  return fill_module_kernel(FillFamily::Fill, element_size);
}
constexpr KernelId copy2d_kernel(std::size_t element_size) {
  return fill_module_kernel(FillFamily::Copy2d, element_size);
}
constexpr KernelId const_set_kernel(std::size_t element_size) {
  return fill_module_kernel(FillFamily::ConstSet, element_size);
}
constexpr KernelId copy_strided_kernel(std::size_t element_size) {
  return fill_module_kernel(FillFamily::CopyStrided, element_size);
}
constexpr KernelId copy_between_kernel(std::size_t element_size) {
  return fill_module_kernel(FillFamily::CopyBetween, element_size);
}

constexpr KernelId transpose_kernel(std::size_t element_size) {
  return fill_module_kernel(FillFamily::Transpose, element_size);
}
constexpr KernelId band_kernel(std::size_t element_size) {
  return fill_module_kernel(FillFamily::Band, element_size);
}

// What makes elements goes by dtype, in the order of kDTypes: every number, the floats alone, or
// the integers alone.
enum class MakeFamily : std::uint8_t { Arange, Linspace, RandUniform, RandNormal, Randint };

constexpr KernelId make_kernel(MakeFamily family, DType dtype) {
  const unsigned number = static_cast<unsigned>(dtype), first_float = 5;
  const unsigned before = 7 * 4;  // the families by size
  const unsigned index = family == MakeFamily::Arange ? number
                         : family == MakeFamily::Randint
                             ? 25 + number
                             : 5 + 5 * static_cast<unsigned>(family) + (number - first_float);
  return {ModuleId::Fill, static_cast<std::uint16_t>(before + index)};
}

// ---- CAST: every dtype to every dtype

constexpr KernelId cast_kernel(DType from, DType to) {
  const unsigned row = static_cast<unsigned>(from), column = static_cast<unsigned>(to);
  return {ModuleId::Cast, static_cast<std::uint16_t>(row * kDTypeCount + column)};
}

}  // namespace tl
