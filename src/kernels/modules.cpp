// The modules and, from names/, the kernels in them.
#include "tl/kernels/modules.h"

#include <array>

#include "kernels/embedded.h"
#include "kernels/names/attention.h"
#include "kernels/names/attention_grad.h"
#include "kernels/names/cache.h"
#include "kernels/names/cast.h"
#include "kernels/names/conv.h"
#include "kernels/names/decode.h"
#include "kernels/names/elementwise.h"
#include "kernels/names/fill.h"
#include "kernels/names/indexing.h"
#include "kernels/names/matmul.h"
#include "kernels/names/norm.h"
#include "kernels/names/quantized.h"
#include "kernels/names/reduce.h"
#include "kernels/names/row_grad.h"
#include "kernels/names/sample.h"
#include "kernels/names/sort.h"
#include "kernels/names/train.h"

namespace tl {
namespace {

constexpr std::array<std::string_view, kModuleCount> kModuleNames = {
    "affine",    "binary", "cast",         "conv",           "fill",        "indexing",
    "quantized", "reduce", "sort",         "ternary",        "unary",       "matmul",
    "attention", "norm",   "quant_vector", "quant_matrix",   "decode",      "sample",
    "cache",     "train",  "row_grad",     "attention_grad", "quant_group", "quant_row"};

constexpr std::span<const std::string_view> kernels_of(ModuleId module) {
  switch (module) {
    case ModuleId::Affine:
      return kernels::kAffineViews;
    case ModuleId::Attention:
      return kernels::kAttentionViews;
    case ModuleId::AttentionGrad:
      return kernels::kAttentionGradViews;
    case ModuleId::Binary:
      return kernels::kBinaryViews;
    case ModuleId::Cache:
      return kernels::kCacheViews;
    case ModuleId::Cast:
      return kernels::kCastViews;
    case ModuleId::Conv:
      return kernels::kConvViews;
    case ModuleId::Decode:
      return kernels::kDecodeViews;
    case ModuleId::Fill:
      return kernels::kFillViews;
    case ModuleId::Indexing:
      return kernels::kIndexingViews;
    case ModuleId::Matmul:
      return kernels::kMatmulViews;
    case ModuleId::Norm:
      return kernels::kNormViews;
    case ModuleId::Quantized:
      return kernels::kQuantizedViews;
    case ModuleId::QuantGroup:
      return kernels::kQuantGroupViews;
    case ModuleId::QuantMatrix:
      return kernels::kQuantMatrixViews;
    case ModuleId::QuantRow:
      return kernels::kQuantRowViews;
    case ModuleId::QuantVector:
      return kernels::kQuantVectorViews;
    case ModuleId::RowGrad:
      return kernels::kRowGradViews;
    case ModuleId::Reduce:
      return kernels::kReduceViews;
    case ModuleId::Sample:
      return kernels::kSampleViews;
    case ModuleId::Sort:
      return kernels::kSortViews;
    case ModuleId::Ternary:
      return kernels::kTernaryViews;
    case ModuleId::Train:
      return kernels::kTrainViews;
    case ModuleId::Unary:
      return kernels::kUnaryViews;
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
