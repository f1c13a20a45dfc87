// Running sums and products, with zeros among the factors.
#include "tl/ops/scan.h"

#include "grad/check.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class ScanGradient : public OnEveryDevice {
 protected:
  Tensor lines(const std::vector<double>& values, std::int64_t length) const {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size()) / length, length},
                        device());
  }
};
TL_ON_EVERY_DEVICE(ScanGradient);

TEST_P(ScanGradient, GoesAlongAnyDimension) {
  for (const std::int64_t dim : {0, 1, -1}) {
    const std::vector<Tensor> inputs{spread({2, 3, 4}, 1, device())};
    expect_gradients_of_any_layout("cumsum", [&](auto in) { return cumsum(in[0], dim); }, inputs);
    expect_gradients_of_any_layout("cumprod", [&](auto in) { return cumprod(in[0], dim); }, inputs);
  }
  expect_gradients("cumsum of a number", [](auto in) { return cumsum(in[0], 0); },
                   {spread({}, 1, device())});
  expect_gradients("cumprod of a number", [](auto in) { return cumprod(in[0], 0); },
                   {spread({}, 1, device())});
}

TEST_P(ScanGradient, ProductsWithZeros) {
  const Tensor x = lines({2,  3, 5,    7,  // none
                          0,  3, 5,    7,  // the first
                          2,  0, 5,    7,  // one inside
                          2,  3, 5,    0,  // the last
                          2,  0, 5,    0,  // two
                          0,  0, 0,    0,  // all
                          -2, 0, -0.0, 7},
                         4);
  expect_gradients_of_any_layout("rows", [](auto in) { return cumprod(in[0], 1); }, {x});
  expect_gradients_of_any_layout("columns", [](auto in) { return cumprod(in[0], 0); },
                                 {x.transpose(0, 1)});
}

TEST_P(ScanGradient, HasAGradientItself) {
  const Tensor x = lines({2, 3, 5, 0, 3, 5, 2, 0, 5, 2, 0, 0, 0, 0, 0}, 3);
  expect_gradients("cumprod", gradient_of([](auto in) { return cumprod(in[0], 1); }), {x});
  expect_gradients("cumprod of columns", gradient_of([](auto in) { return cumprod(in[0], 0); }),
                   {x.transpose(0, 1)});
  expect_gradients("cumsum", gradient_of([](auto in) { return sqr(cumsum(sin(in[0]), 1)); }), {x});
}

}  // namespace
}  // namespace tl
