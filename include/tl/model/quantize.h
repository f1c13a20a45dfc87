// Another model file with smaller numbers: which type each tensor gets, and writing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/gguf.h"
#include "tl/quant/format.h"

namespace tl {

// A way to choose types that people know by name: "Q4_K_M" is Q4_K for most tensors and Q6_K for
// those where errors hurt most.
struct QuantRecipe {
  std::string_view name;
  std::uint32_t file_type;  // general.file_type
  QType base;
  std::string_view help;
};

std::span<const QuantRecipe> quant_recipes();
// The name in any case; Q3_K, Q4_K and Q5_K stand for their _M. Throws BadArgument and lists them.
const QuantRecipe& find_quant_recipe(std::string_view name);

// The type that a recipe gives each tensor of a file, in their order. Tensors that are no matrices,
// norms and routers keep theirs; rows that a type has no whole blocks for get one that has.
std::vector<QType> quant_types(const GgufFile& file, const QuantRecipe& recipe);

struct QuantizeOptions {
  bool requantize = false;  // also from tensors that are in blocks already, which loses twice
  bool dry_run = false;     // everything but the file
  // Called before each tensor.
  std::function<void(std::size_t index, const GgufTensorInfo& tensor, QType to)> progress;
};

struct QuantizeResult {
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of tensors
  std::size_t changed = 0;                          // tensors
};

// Copies the metadata, with the recipe's type in it, and the tensors, a few rows at a time. Throws
// BadArgument when a tensor is in blocks already and requantize is not set, and when `to` is one of
// the file's own parts.
QuantizeResult quantize_gguf(const GgufFile& file, const std::string& to, const QuantRecipe& recipe,
                             const QuantizeOptions& options = {});

}  // namespace tl
