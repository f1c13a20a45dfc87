// Gradients through products with quantised weights.
#include "grad/check.h"
#include "tl/ops/matmul.h"
#include "tl/quant/qtensor.h"

namespace tl {
namespace {

using namespace test;

class QuantGradient : public OnEveryDevice {
 protected:
  Tensor made(const Shape& shape, std::uint64_t seed, DType dtype = DType::F32) const {
    return to_dtype(spread(shape, seed, device()), dtype);
  }
};
TL_ON_EVERY_DEVICE(QuantGradient);

TEST_P(QuantGradient, OfXIsAProductWithTheDecodedWeight) {
  for (const QType type : {QType::Q8_0, QType::Q4_0, QType::F16, QType::F32}) {
    SCOPED_TRACE(name(type));
    const QTensor weight = QTensor::quantize(made({3, 32}, 2), type);
    const Tensor x = follow(made({2, 2, 32}, 1)), g = made({2, 2, 3}, 3);
    const Tensor y = linear(x, weight);
    ASSERT_TRUE(y.has_history());
    const Tensor got = backward(y, g).of(x);
    const Tensor wanted = matmul(g, weight.dequantize());
    EXPECT_EQ(got.shape(), x.shape());
    EXPECT_LT(norm_all(sub(got, wanted)).item<float>(), 1e-5 * norm_all(wanted).item<float>());
  }
}

TEST_P(QuantGradient, HasTheDtypeOfX) {
  const QTensor weight = QTensor::quantize(made({3, 32}, 2), QType::Q8_0);
  for (const DType dtype : {DType::F16, DType::BF16, DType::F64}) {
    SCOPED_TRACE(name(dtype));
    const Tensor x = follow(made({2, 32}, 1, dtype)), g = made({2, 3}, 3, dtype);
    const Tensor got = backward(linear(x, weight), g).of(x);
    ASSERT_EQ(got.dtype(), dtype);
    const Tensor wanted = matmul(to_dtype(g, DType::F32), weight.dequantize());
    EXPECT_LT(norm_all(sub(to_dtype(got, DType::F32), wanted)).item<float>(),
              0.01 * norm_all(wanted).item<float>());
  }
}

TEST_P(QuantGradient, GoesThroughSeveralLayers) {
  const QTensor first = QTensor::quantize(made({32, 32}, 2), QType::Q8_0);
  const QTensor second = QTensor::quantize(made({4, 32}, 3), QType::Q8_0);
  const Tensor x = follow(made({2, 32}, 1)), g = made({2, 4}, 4);
  const Tensor got = backward(linear(linear(x, first), second), g).of(x);
  const Tensor wanted = matmul(matmul(g, second.dequantize()), first.dequantize());
  EXPECT_LT(norm_all(sub(got, wanted)).item<float>(), 1e-4 * norm_all(wanted).item<float>());
}

TEST_P(QuantGradient, StopsAtATableOfEmbeddings) {
  const QTensor table = QTensor::quantize(made({3, 32}, 2), QType::Q8_0);
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{2, 0}, {2}, device());
  EXPECT_FALSE(embedding(table, ids).has_history());
}

}  // namespace
}  // namespace tl
