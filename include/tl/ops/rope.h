// Rotary position embeddings.
//
// Pairs of elements turn by an angle that depends on the position: (a, b) becomes
// (a cos - b sin, a sin + b cos). The tables have shape (t', r / 2), whose row i belongs to
// position i of the sequence (t <= t'), or (b, t, r / 2); only the first r <= d elements of each
// head turn, the others pass unchanged. With `positions`, (t) or (b, t) of an index dtype, the
// tables are (t', r / 2) and row positions[i] is taken; its dtype's largest value stands for
// "nothing" and gives zeros. The tables have the dtype of x.
#pragma once

#include <optional>

#include "tl/tensor/tensor.h"

namespace tl {

// Halves: element i turns with element i + r / 2. x (b, h, t, d).
Tensor rope(const Tensor& x, const Tensor& cosines, const Tensor& sines,
            const std::optional<Tensor>& positions = std::nullopt);
// Interleaved: element 2i turns with element 2i + 1. x (b, h, t, d).
Tensor rope_i(const Tensor& x, const Tensor& cosines, const Tensor& sines,
              const std::optional<Tensor>& positions = std::nullopt);
// Halves, for x (b, t, h, d).
Tensor rope_thd(const Tensor& x, const Tensor& cosines, const Tensor& sines,
                const std::optional<Tensor>& positions = std::nullopt);

}  // namespace tl
