// In which order the rows of a weight are read where one row of x is multiplied with all of them:
// then memory is what takes the time, and processors differ in what they read fastest.
#pragma once

#include <cstdint>
#include <string_view>

namespace tl::cpu {

// Of the rows that are multiplied at the same time. Apart: as eight streams, each read ahead by
// itself. Together: they are next to each other, and memory is read ahead in one stream. The bits
// of a product are the same.
enum class RowOrder : std::uint8_t { Apart, Together };
// "apart" or "together"; for an empty name what was measured to be quicker on CPUs like this one
// (docs/measurements/0011). Throws BadArgument for another.
RowOrder row_order(std::string_view name);
// The one that TL_CPU_ROWS names when it is first asked for.
RowOrder best_row_order();

}  // namespace tl::cpu
