// Joining, padding and rearranging, with settings that the table of ops does not try.
#include "tl/ops/join.h"

#include "grad/check.h"
#include "tl/ops/create.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class JoinGradient : public OnEveryDevice {
 protected:
  Tensor numbers(const Shape& shape, std::uint64_t seed = 1) const {
    return spread(shape, seed, device());
  }
  void check(const std::string& what, const Function& f, const Shape& shape) const {
    expect_gradients_of_any_layout(what, f, {numbers(shape)});
  }
};
TL_ON_EVERY_DEVICE(JoinGradient);

TEST_P(JoinGradient, EveryPartGetsItsOwn) {
  const std::vector<Tensor> parts{numbers({2, 1, 3}), numbers({2, 4, 3}, 2), numbers({2, 0, 3}, 3),
                                  numbers({2, 2, 3}, 4)};
  expect_gradients_of_any_layout("cat", [](auto in) { return cat(in, 1); }, parts);
  expect_gradients("cat with a constant",
                   [&](auto in) { return cat({parts[0], in[0], parts[3]}, -2); }, {parts[1]});
  expect_gradients("cat with itself", [](auto in) { return cat({in[0], in[0]}, 0); }, {parts[0]});
  expect_gradients("stack", [](auto in) { return stack(in, -1); },
                   {numbers({2, 3}), numbers({2, 3}, 2)});
}

TEST_P(JoinGradient, ManyPartsAreJoinedInOneStep) {
  std::vector<Tensor> parts;
  for (std::uint64_t i = 0; i < 40; ++i) parts.push_back(numbers({1, 2}, i));
  expect_gradients("cat", [](auto in) { return cat(in, 0); }, parts);
}

TEST_P(JoinGradient, RepeatsAreSummed) {
  check("repeat", [](auto in) { return repeat(in[0], {2, 3, 1, 2}); }, {2, 1, 3});
  check("repeat short", [](auto in) { return repeat(in[0], {2}); }, {2, 3});
  check("repeat_interleave", [](auto in) { return repeat_interleave(in[0], 3, 1); }, {2, 3, 2});
  Shape wide = Shape::repeated(Dims::kMax, 1);
  wide[1] = 2;
  Dims counts = Dims::repeated(Dims::kMax, 1);
  counts[0] = 2;
  counts[1] = 3;
  check("repeat wide", [&](auto in) { return repeat(in[0], counts); }, wide);
  check("repeat_interleave wide", [](auto in) { return repeat_interleave(in[0], 2, 1); }, wide);
}

TEST_P(JoinGradient, PaddingGivesBackWhatItRepeats) {
  check("pad", [](auto in) { return pad(in[0], {1, 0, 2}, {0, 3, 1}, 5); }, {2, 3, 2});
  check("pad_with_zeros", [](auto in) { return pad_with_zeros(in[0], 0, 2, 1); }, {2, 3});
  check("pad_with_same", [](auto in) { return pad_with_same(in[0], 1, 2, 3); }, {2, 3});
  check("pad_with_same left", [](auto in) { return pad_with_same(in[0], 0, 2, 0); }, {2, 3});
  check("pad_reflect", [](auto in) { return pad_reflect(in[0], 1, 3, 2); }, {2, 4});
  check("pad_reflect right", [](auto in) { return pad_reflect(in[0], 0, 0, 2); }, {3, 2});
}

TEST_P(JoinGradient, EveryElementFindsItsWayBack) {
  for (const std::int64_t shift : {-7, -1, 0, 2, 5}) {
    check("roll", [&](auto in) { return roll(in[0], shift, 1); }, {2, 5});
  }
  check("flip", [](auto in) { return flip(in[0], {0, 2}); }, {2, 3, 4});
  for (const std::int64_t times : {-1, 0, 1, 2, 3}) {
    check("rot90", [&](auto in) { return rot90(in[0], times, 0, 2); }, {2, 3, 4});
  }
  for (const std::int64_t diagonal : {-1, 0, 2}) {
    check("tril", [&](auto in) { return tril(in[0], diagonal); }, {2, 3, 4});
    check("triu", [&](auto in) { return triu(in[0], diagonal); }, {2, 3, 4});
  }
}

TEST_P(JoinGradient, EveryAxisOfAGridGetsItsSums) {
  const std::vector<Tensor> axes{numbers({2}), numbers({3}, 2), numbers({2}, 3)};
  for (const bool xy : {false, true}) {
    for (std::size_t k = 0; k < axes.size(); ++k) {
      expect_gradients_of_any_layout(
          "meshgrid", [&](auto in) { return meshgrid(in, xy)[k]; }, axes);
    }
  }
}

TEST_P(JoinGradient, SlicesTakeThePlaceOfOthers) {
  expect_gradients_of_any_layout("slice_scatter",
                                 [](auto in) { return slice_scatter(in[0], in[1], 1, 1); },
                                 {numbers({2, 4}), numbers({2, 2}, 2)});
  const std::vector<Range> box{{.start = 1}, {.start = 0, .end = 5, .step = 2}};
  expect_gradients_of_any_layout("slice_assign",
                                 [&](auto in) { return slice_assign(in[0], box, in[1]); },
                                 {numbers({3, 5}), numbers({3}, 2)});
}

TEST_P(JoinGradient, HasAGradientItself) {
  const auto check_twice = [&](const std::string& what, const Function& f) {
    expect_gradients(what, gradient_of([&](auto in) { return sqr(f(in)); }),
                     {numbers({2, 3}), numbers({2, 3}, 2)});
  };
  check_twice("cat", [](auto in) { return cat({sin(in[0]), in[1], in[0]}, 1); });
  check_twice("pad", [](auto in) { return pad(mul(in[0], in[1]), {1, 0}, {0, 2}, 3); });
  check_twice("pad_reflect", [](auto in) { return pad_reflect(mul(in[0], in[1]), 1, 1, 2); });
  check_twice("roll", [](auto in) { return mul(roll(in[0], 1, 1), in[1]); });
  check_twice("tril", [](auto in) { return add(tril(sin(in[0])), in[1]); });
  check_twice("slice_scatter",
              [](auto in) { return slice_scatter(sin(in[0]), sqr(in[1].narrow(1, 0, 2)), 1, 1); });
}

}  // namespace
}  // namespace tl
