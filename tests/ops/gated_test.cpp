// Gates of feed-forward layers: the bits of the two ops they are made of, in the gate's own memory
// where it may be written over.
#include "ops/gated.h"

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "ops/conformance.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class Gated : public OnEveryDevice {
 protected:
  Tensor numbers(const Shape& shape, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, 2);
    std::vector<float> values(static_cast<std::size_t>(element_count("test", shape)));
    for (float& each : values) each = normal(random);
    return Tensor::from(values, shape, device());
  }
};
TL_ON_EVERY_DEVICE(Gated);

Tensor composed(UnaryOp activation, const Tensor& gate, const Tensor& up) {
  return mul(activation == UnaryOp::Silu ? silu(gate) : gelu(gate), up);
}

TEST_P(Gated, TheSameBitsInTheGatesOwnMemory) {
  for (const UnaryOp activation : {UnaryOp::Silu, UnaryOp::Gelu}) {
    // Less than a vector, not a whole number of them, more than a piece or a block.
    for (const std::int64_t columns : {1, 7, 64, 1023, 4099}) {
      Tensor gate = numbers({3, columns}, 1);
      const Tensor up = numbers({3, columns}, 2);
      const auto want = composed(activation, gate, up).to_vector<float>();
      const void* place = gate.memory().data();
      const Tensor got = ops::gated(activation, std::move(gate), up);
      EXPECT_EQ(got.to_vector<float>(), want) << columns;
      EXPECT_EQ(got.memory().data(), place) << columns;
    }
  }
}

TEST_P(Gated, AGateThatIsSharedKeepsItsNumbers) {
  const Tensor gate = numbers({5, 33}, 3), up = numbers({5, 33}, 4);
  const auto before = gate.to_vector<float>();
  const Tensor got = ops::gated(UnaryOp::Silu, gate, up);
  EXPECT_EQ(gate.to_vector<float>(), before);
  EXPECT_EQ(got.to_vector<float>(), composed(UnaryOp::Silu, gate, up).to_vector<float>());
}

TEST_P(Gated, AnyLayoutDtypeAndShapeThatTheOpsTake) {
  const Tensor wide = numbers({4, 6}, 5), row = numbers({6}, 6);
  const Tensor turned = numbers({6, 4}, 7).transpose(0, 1);
  EXPECT_EQ(ops::gated(UnaryOp::Gelu, wide, row).to_vector<float>(),
            composed(UnaryOp::Gelu, wide, row).to_vector<float>());
  EXPECT_EQ(ops::gated(UnaryOp::Gelu, numbers({4, 6}, 5), turned).to_vector<float>(),
            composed(UnaryOp::Gelu, wide, turned).to_vector<float>());
  const Tensor small = to_dtype(wide, DType::BF16), other = to_dtype(turned, DType::BF16);
  EXPECT_EQ(to_dtype(ops::gated(UnaryOp::Silu, small, other), DType::F32).to_vector<float>(),
            to_dtype(composed(UnaryOp::Silu, small, other), DType::F32).to_vector<float>());
  EXPECT_EQ(ops::gated(UnaryOp::Silu, numbers({0, 6}, 8), numbers({0, 6}, 9)).shape(),
            Shape({0, 6}));
  EXPECT_THROW(ops::gated(UnaryOp::Silu, wide, numbers({5}, 10)), Error);
  EXPECT_THROW(ops::gated(UnaryOp::Exp, numbers({4, 6}, 5), wide), Error);
}

}  // namespace
}  // namespace tl
