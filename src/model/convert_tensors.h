// Which tensors a model of each family has, under which names on either side, in which shapes, and
// what is done to them on the way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint.h"
#include "model/convert_config.h"

namespace tl::saved {

enum class Change : std::uint8_t {
  None,
  // Rows of each head are reordered. The checkpoint rotates number i of a head with number
  // i + half; readers of llama in GGUF rotate neighbours.
  QueryHeads,
  KeyHeads,
  AddOne,  // the model multiplies with one more than is stored; readers of GGUF do not add it
};

struct PlannedTensor {
  std::string name;    // in the GGUF file
  std::string source;  // in the checkpoint
  Shape shape;         // of what is written: the first rows of the source, where it has more
  Change change = Change::None;
};

// In the order in which they are written. Throws BadFile with the name for a tensor that is
// missing, has another shape, or is none of this model.
std::vector<PlannedTensor> plan_tensors(const Checkpoint& checkpoint, const ModelConfig& config);

// The row of the source that becomes `row`, for heads of `head_dim` rows.
constexpr std::int64_t source_row(Change change, std::int64_t row, std::int64_t head_dim) {
  if (change != Change::QueryHeads && change != Change::KeyHeads) return row;
  const std::int64_t inside = row % head_dim;
  return row - inside + inside % 2 * (head_dim / 2) + inside / 2;
}

}  // namespace tl::saved
