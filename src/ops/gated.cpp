#include "ops/gated.h"

#include <utility>

#include "ops/check.h"
#include "ops/cpu/gated.h"
#include "ops/gpu/binary.h"
#include "ops/gpu/unary.h"
#include "tl/ops/binary.h"
#include "tl/ops/unary.h"

namespace tl::ops {

Tensor gated(UnaryOp activation, Tensor gate, const Tensor& up) {
  if (activation != UnaryOp::Silu && activation != UnaryOp::Gelu) {
    throw Error(ErrorKind::Unsupported, "gated", name(activation), " is no activation of a gate");
  }
  const bool own = gate.memory().is_unique() && gate.is_contiguous() && !has_history(gate) &&
                   !has_history(up) && gate.dtype() == DType::F32 && up.dtype() == DType::F32 &&
                   gate.shape() == up.shape() && gate.location() == up.location() && !gate.empty();
  if (!own) return mul(activation == UnaryOp::Silu ? silu(gate) : gelu(gate), up);
  if (gate.location().is_cpu()) {
    cpu::gate_in_place(activation, gate, up);
  } else {
    // Every thread of these kernels reads the elements it writes, and no others.
    gpu::unary(activation, gate, gate, 0);
    gpu::binary(BinaryOp::Mul, gate, &gate.layout(), up, &up.layout(), 0, gate);
  }
  return gate;
}

}  // namespace tl::ops
