// Products with quantised weights. Inputs: x and the weight's blocks as bytes. Settings: the type
// of the blocks and the shape of the weight, which has no gradient itself.
#include <algorithm>

#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/rules/windows.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"
#include "tl/quant/qtensor.h"

namespace tl::grad {

namespace {

// The dtype to multiply in, as it is for the product itself: small floats of 16 bits stay.
DType product_dtype(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F64 ? dtype : DType::F32;
}

Tensor decoded(const QTensor& weight, DType dtype) {
  return dtype == DType::F64 ? to_dtype(weight.dequantize(DType::F32), dtype)
                             : weight.dequantize(dtype);
}

// g * weight, with some rows of the weight decoded at a time, so that no large one ever is whole.
void quantized_linear_rule(Flow& flow) {
  const QTensor weight =
      QTensor::from_memory(flow.input(1).memory(), parse_q_type(flow.text(0)), flow.dims(1));
  const DType dtype = product_dtype(flow.dtype(0));
  const Tensor g = to_dtype(flow.gradient(), dtype);
  const std::int64_t rows = weight.shape()[0], columns = weight.columns();
  constexpr std::int64_t kMost = 1 << 24;  // elements
  const std::int64_t together =
      std::max<std::int64_t>(1, kMost / std::max<std::int64_t>(columns, 1));
  if (rows == 0) return;
  Tensor total;
  for (std::int64_t row = 0; row < rows; row += together) {
    const std::int64_t count = std::min(together, rows - row);
    const Tensor part =
        matmul(g.narrow(-1, row, count), decoded(weight.some_rows(row, count), dtype));
    if (together >= rows) return flow.give(0, part);
    total = row == 0 ? widened(part) : add(total, widened(part));
  }
  flow.give(0, total);
}

}  // namespace

std::span<const Rule> quant_rules() {
  static constexpr Rule kRules[] = {{"quantized_linear", quantized_linear_rule, keeps_input(1)}};
  return kRules;
}

}  // namespace tl::grad
