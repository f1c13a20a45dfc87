#pragma once

#include <cstddef>
#include <cstdint>

#include "tl/quant/format.h"

namespace tl::cpu {

// Whether numbers can be put into blocks of that type here (the other IQ types need codebook
// searches and are only read).
bool can_quantize(QType type);

// Rows of `columns` numbers, whole blocks of them. `importance` has a weight for each column, or is
// null: how much an error there counts in the search for scales. Formats without a search do not
// look at it. On all threads of the pool.
void quantize(QType type, const float* x, std::int64_t rows, std::int64_t columns,
              const float* importance, std::byte* out);

}  // namespace tl::cpu
