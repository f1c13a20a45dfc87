// The parts of quantising a model that do not depend on where it comes from: which type a tensor
// gets, and writing its rows in that type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "tl/model/gguf_writer.h"
#include "tl/model/quantize.h"

namespace tl {

// What of a model decides about types.
struct QuantModel {
  std::int64_t layers = 0, experts = 0, heads_per_value = 1;
  bool is_tied = false;  // the embedding is the output too
  bool is_large = false;
};

// The type that a recipe gives a tensor, which now has the type `now`.
QType planned_type(const QuantRecipe& recipe, const QuantModel& model, std::string_view name,
                   const Shape& shape, QType now);

// `count` rows from the row `first` on, valid until it is called again.
using RowReader = std::function<std::span<const std::byte>(std::int64_t first, std::int64_t count)>;

// All rows in another type, or in their own, a few at a time.
void convert_rows(const RowReader& read, std::int64_t rows, std::int64_t columns, QType from,
                  QType to, const GgufWriter::Sink& sink);

}  // namespace tl
