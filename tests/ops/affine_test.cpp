// Scaling, clamping and choosing.
#include "tl/ops/affine.h"

#include <cmath>

#include "ops/conformance.h"
#include "tl/ops/where.h"

namespace tl {
namespace {

using namespace test;

class Affine : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Affine);
class Where : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Where);

const Shape kShapes[] = {{}, {0}, {7}, {3, 0, 2}, {2, 3, 4}, {33, 65}};

TEST_P(Affine, ScalesEveryDtypeAndLayout) {
  for (const DType dtype : kNumbers) {
    for (const Shape& shape : kShapes) {
      const Host x = rounded(uniform_for(dtype, shape, -9, 10, 1), dtype);
      Host want = x, held = x;
      for (double& v : want.values) v = std::fma(3, v, 2);
      for (double& v : held.values) v = std::min(std::max(v, 2.0), 5.0);
      for (const Arrangement how : kArrangements) {
        const Tensor t = arrange(x, dtype, how, device());
        expect_close("affine", affine(t, 3, 2), dtype, want, {is_float(dtype) ? 0.51 : 0},
                     describe("affine", dtype, shape, how));
        expect_close("clamp", clamp(t, 2, 5.0), dtype, held, {0},
                     describe("clamp", dtype, shape, how));
        const Tensor low = contiguous_on({{}, {2}}, dtype, device());
        const Tensor high = contiguous_on({{1}, {5}}, dtype, device());
        if (shape.empty()) continue;
        expect_close("clamp", clamp(t, low, high), dtype, held, {0});
        expect_close("clamp", clamp(t, low, 5), dtype, held, {0});
        expect_close("clamp", clamp(t, 2, high), dtype, held, {0});
      }
    }
  }
}

TEST_P(Affine, RoundsOnceAndWraps) {
  // 1 + 2^-24 is halfway between floats: the product alone would be rounded down.
  const Tensor x = Tensor::from<float>({1 + 0x1p-12F}, {1}, device());
  EXPECT_EQ(affine(x, 1 + 0x1p-12F, 0x1p-40F).item<float>(),
            std::fma(1 + 0x1p-12F, 1 + 0x1p-12F, 0x1p-40F));
  EXPECT_EQ(affine(Tensor::from<std::uint8_t>({200}, {1}, device()), 2, 1).item<std::uint8_t>(),
            145);
  // Factors keep the precision of f32 for narrower floats.
  const Tensor h = contiguous_on({{1}, {3}}, DType::F16, device());
  expect_close("affine", affine(h, 0.1, 0), DType::F16, {{1}, {3 * 0.1F}}, {0.51});
}

TEST_P(Affine, KeepsNanAndSaysWhatDoesNotFit) {
  const Tensor x = Tensor::from<float>({NAN, 1}, {2}, device());
  EXPECT_TRUE(std::isnan(clamp(x, 0, 1).to_vector<float>()[0]));
  EXPECT_EQ(clamp(x, 3, 2).to_vector<float>()[1], 2);  // the upper bound comes last
  const Tensor i = Tensor::zeros({2}, DType::I32, device());
  expect_error(ErrorKind::BadArgument, "affine: 0.5 is not a whole number, and the tensor is i32",
               [&] { affine(i, 0.5, 0); });
  expect_unsupported("affine", DType::Bool, device(),
                     [&] { affine(Tensor::zeros({2}, DType::Bool, device()), 1, 0); });
}

TEST_P(Where, EveryConditionAndValueDtype) {
  const Shape shape{6, 11};
  for (const DType mask :
       {DType::U8, DType::U32, DType::I16, DType::I32, DType::I64, DType::Bool}) {
    const Host m = uniform_for(mask, shape, 0, 2, 1);
    for (const DType dtype : kDTypes) {
      const Host a = rounded(uniform_for(dtype, shape, 0, 50, 2), dtype);
      const Host b = rounded(uniform_for(dtype, shape, 50, 99, 3), dtype);
      Host want = a, number = a, other = b;
      for (std::size_t i = 0; i < a.values.size(); ++i) {
        want.values[i] = m.values[i] != 0 ? a.values[i] : b.values[i];
        number.values[i] = m.values[i] != 0 ? a.values[i] : 1;
        other.values[i] = m.values[i] != 0 ? 1 : b.values[i];
      }
      for (const Arrangement how : kArrangements) {
        const Tensor c = arrange(m, mask, how, device()), x = arrange(a, dtype, how, device());
        const Tensor y = arrange(b, dtype, Arrangement::Contiguous, device());
        expect_close("where", where(c, x, y), dtype, want, {0}, join(mask, " ", dtype));
        expect_close("where", where(c, x, 1), dtype, number, {0}, join(mask, " ", dtype));
        expect_close("where", where(c, 1, y), dtype, other, {0}, join(mask, " ", dtype));
        expect_close("masked_fill", masked_fill(y, c, 1), dtype, other, {0});
      }
    }
  }
}

TEST_P(Where, Broadcasts) {
  const Tensor m = contiguous_on({{3, 1}, {1, 0, 1}}, DType::U8, device());
  const Tensor a = contiguous_on({{4}, {1, 2, 3, 4}}, DType::F32, device());
  const Tensor b = contiguous_on({{}, {9}}, DType::F32, device());
  expect_close("where", where(m, a, b), DType::F32, {{3, 4}, {1, 2, 3, 4, 9, 9, 9, 9, 1, 2, 3, 4}},
               {0});
  expect_close("where", where(Tensor::zeros({0, 4}, DType::U8, device()), a, b), DType::F32,
               {{0, 4}, {}}, {0});
}

TEST_P(Where, SaysWhatDoesNotFit) {
  const Tensor m = Tensor::zeros({3}, DType::U8, device());
  const Tensor x = Tensor::zeros({3}, DType::F32, device());
  expect_error(ErrorKind::Unsupported, "where: needs an integer or bool condition, got f32",
               [&] { where(x, x, x); });
  expect_error(ErrorKind::DTypeMismatch,
               "where: ", [&] { where(m, x, Tensor::zeros({3}, DType::F64, device())); });
  expect_error(ErrorKind::ShapeMismatch,
               "where: ", [&] { where(m, x, Tensor::zeros({2}, DType::F32, device())); });
  const Tensor i = Tensor::zeros({3}, DType::I64, device());
  for (const auto& action : {std::function<void()>([&] { where(m, i, 0.5); }),
                             std::function<void()>([&] { where(m, 0.5, i); })}) {
    expect_error(ErrorKind::BadArgument, "where: 0.5 is not a whole number, and the tensor is i64",
                 action);
  }
  expect_error(ErrorKind::BadArgument, "masked_fill: 0.5 is not a whole number",
               [&] { masked_fill(i, m, 0.5); });
  expect_error(ErrorKind::ShapeMismatch, "masked_fill: ", [&] {
    masked_fill(Tensor::zeros({1}, DType::F32, device()), m, 0);
  });
}

}  // namespace
}  // namespace tl
