// Slopes of activations in one pass, beside the same made of ops, in every dtype.
#include "grad/check.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class Slopes : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Slopes);

using Activation = Tensor (*)(const Tensor&);

TEST_P(Slopes, AreThoseOfTheOpsTheyReplace) {
  const std::pair<const char*, Activation> functions[] = {
      {"gelu", &gelu}, {"gelu_erf", &gelu_erf}, {"silu", &silu}};
  const std::pair<DType, double> dtypes[] = {
      {DType::F64, 1e-12}, {DType::F32, 2e-6}, {DType::F16, 2e-3}, {DType::BF16, 2e-2}};
  for (const auto& [name, function] : functions) {
    for (const auto& [dtype, tolerance] : dtypes) {
      const Tensor x = follow(to_dtype(spread({300}, 1, device(), 6), dtype));
      const Tensor seed = to_dtype(spread({300}, 2, device()), dtype);
      const Tensor fused = backward(function(x), seed).of(x);
      EXPECT_EQ(fused.dtype(), dtype);
      const Tensor wide = follow(to_dtype(x.detach(), DType::F64));
      const Tensor composed =
          backward(function(wide), to_dtype(seed, DType::F64), {.follow = true}).of(wide);
      const auto a = to_dtype(fused, DType::F64).to_vector<double>();
      const auto b = composed.to_vector<double>();
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], tolerance) << name << " " << dtype << " element " << i;
      }
    }
  }
}

TEST_P(Slopes, AreFlatFarOut) {
  const float far = std::numeric_limits<float>::infinity();
  for (const Activation function : {&gelu, &gelu_erf, &silu}) {
    const Tensor x = follow(Tensor::from({-1e30F, -200.0F, 200.0F, 1e30F, far}, {5}, device()));
    const Tensor seed = Tensor::from({1.0F, 1.0F, 1.0F, 1.0F, 1.0F}, {5}, device());
    const auto slopes = backward(function(x), seed).of(x).to_vector<float>();
    for (int i = 0; i < 4; ++i) {
      EXPECT_FLOAT_EQ(slopes[static_cast<std::size_t>(i)], i < 2 ? 0.0F : 1.0F) << i;
    }
  }
}

}  // namespace
}  // namespace tl
