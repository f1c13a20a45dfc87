#include "ops/cpu/gated.h"

#include <algorithm>
#include <array>

#include "ops/cpu/loops.h"
#include "tl/base/thread_pool.h"
#include "tl/ops/copy.h"

namespace tl::cpu {

void gate_in_place(UnaryOp activation, Tensor& gate, const Tensor& up) {
  constexpr std::int64_t kPiece = 1024;  // stays in the first cache between the two steps
  const Tensor straight = contiguous(up);
  const Stream stream = gate.device().stream();
  const auto* factors = straight.read<float>(stream);
  auto* numbers = gate.write<float>(stream);
  const UnaryLoop activate = unary_loop(activation, DType::F32);
  const BinaryLoop multiply = binary_loop(BinaryOp::Mul, DType::F32);
  const std::int64_t count = gate.count();
  ThreadPool::shared().parallel_for(
      0, (count + kPiece - 1) / kPiece, 16, [&](std::int64_t first, std::int64_t last) {
        // Filled by activate(). NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
        alignas(64) std::array<float, kPiece> active;
        constexpr float kNoParameter = 0;
        for (std::int64_t at = first * kPiece; at < std::min(last * kPiece, count); at += kPiece) {
          const std::int64_t n = std::min(kPiece, count - at);
          activate(numbers + at, active.data(), n, &kNoParameter);
          multiply(active.data(), factors + at, numbers + at, n);
        }
      });
}

}  // namespace tl::cpu
