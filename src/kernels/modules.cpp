// The names of all modules and kernels, made at compile time.
#include "tl/kernels/modules.h"

#include <array>

#include "kernels/embedded.h"

namespace tl {
namespace {

// Room for one name, so that a list of them can be a constant.
struct KernelName {
  std::array<char, 32> text{};
  std::size_t length = 0;

  constexpr void append(std::string_view part) {
    if (length > 0) text[length++] = '_';
    for (const char c : part) text[length++] = c;
  }
  constexpr std::string_view view() const { return {text.data(), length}; }
};

// The one naming rule: a family and what it is specialised for, joined by underscores.
template <class... Parts>
constexpr KernelName kernel_name(std::string_view family, Parts... parts) {
  KernelName result;
  result.append(family);
  (result.append(parts), ...);
  return result;
}

constexpr std::array<std::string_view, 4> kFillFamilies = {"fill", "copy2d", "const_set",
                                                           "copy_strided"};
constexpr std::array<std::string_view, 4> kElementSizes = {"1", "2", "4", "8"};

constexpr auto make_fill_names() {
  std::array<KernelName, kFillFamilies.size() * kElementSizes.size()> names;
  std::size_t at = 0;
  for (const std::string_view family : kFillFamilies) {
    for (const std::string_view size : kElementSizes) names[at++] = kernel_name(family, size);
  }
  return names;
}

constexpr auto make_cast_names() {
  std::array<KernelName, kDTypeCount * kDTypeCount> names;
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      names[cast_kernel(from, to).index] = kernel_name("cast", name(from), name(to));
    }
  }
  return names;
}

template <std::size_t kCount>
constexpr std::array<std::string_view, kCount> views(const std::array<KernelName, kCount>& names) {
  std::array<std::string_view, kCount> result;
  for (std::size_t i = 0; i < kCount; ++i) result[i] = names[i].view();
  return result;
}

constexpr auto kFillNames = make_fill_names();
constexpr auto kFillViews = views(kFillNames);
constexpr auto kCastNames = make_cast_names();
constexpr auto kCastViews = views(kCastNames);

static_assert(kFillViews[copy_strided_kernel(2).index] == "copy_strided_2");
static_assert(kCastViews[cast_kernel(DType::F8E4M3, DType::Bool).index] == "cast_f8e4m3_bool");

constexpr std::array<std::string_view, kModuleCount> kModuleNames = {
    "affine",    "binary", "cast", "conv",    "fill", "indexing",
    "quantized", "reduce", "sort", "ternary", "unary"};

constexpr std::span<const std::string_view> kernels_of(ModuleId module) {
  switch (module) {
    case ModuleId::Cast:
      return kCastViews;
    case ModuleId::Fill:
      return kFillViews;
    default:
      return {};
  }
}

constexpr auto make_specs() {
  std::array<ModuleSpec, kModuleCount> specs;
  for (std::uint32_t m = 0; m < kModuleCount; ++m) {
    specs[m] = {m, kModuleNames[m], kernels_of(static_cast<ModuleId>(m))};
  }
  return specs;
}

constexpr auto kSpecs = make_specs();

}  // namespace

const ModuleSpec& module_spec(ModuleId module) {
  kernels::install();  // who has a spec can load it
  return kSpecs[static_cast<std::size_t>(module)];
}

std::string_view name(ModuleId module) { return module_spec(module).name; }

std::span<const std::string_view> kernel_names(ModuleId module) {
  return module_spec(module).kernels;
}

}  // namespace tl
