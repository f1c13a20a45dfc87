// Views: none of them is in the op table, and each has a gradient.
#include "grad/check.h"
#include "tl/ops/matmul.h"

namespace tl {
namespace {

using namespace test;

class ViewGradient : public OnEveryDevice {
 protected:
  void check(const std::string& what, const Function& function, const Shape& shape) const {
    expect_gradients_of_any_layout(what, function, {spread(shape, 3, device())});
  }
};
TL_ON_EVERY_DEVICE(ViewGradient);

TEST_P(ViewGradient, OfOrderAndShape) {
  check("transpose", [](auto in) { return in[0].transpose(0, 2); }, {2, 3, 4});
  check("t", [](auto in) { return in[0].t(); }, {3, 4});
  check("permute", [](auto in) { return in[0].permute({2, 0, 1}); }, {2, 3, 4});
  check("move_dim", [](auto in) { return in[0].move_dim(0, 2); }, {2, 3, 4});
  check("squeeze", [](auto in) { return in[0].squeeze(1); }, {3, 1, 2});
  check("unsqueeze", [](auto in) { return in[0].unsqueeze(-1); }, {3, 2});
  check("view", [](auto in) { return contiguous(in[0]).view({4, 3}); }, {2, 6});
  check("reshape", [](auto in) { return reshape(in[0], {4, 3}); }, {2, 6});
}

TEST_P(ViewGradient, OfParts) {
  check("narrow", [](auto in) { return in[0].narrow(1, 1, 2); }, {2, 4});
  check("slice", [](auto in) { return in[0].slice(1, 1, 6, 2); }, {2, 7});
  check("get", [](auto in) { return in[0].get(1); }, {3, 2});
  check("get_on_dim", [](auto in) { return in[0].get_on_dim(-1, -1); }, {3, 2});
  check("chunk", [](auto in) { return in[0].chunk(2, 0)[1]; }, {5, 2});
  check("split", [](auto in) { return in[0].split(2, 1)[2]; }, {2, 5});
  check("no elements", [](auto in) { return add(in[0], sum_all(in[0].narrow(0, 1, 0))); }, {2, 2});
}

TEST_P(ViewGradient, OfElementsThatAreSeenSeveralTimes) {
  check("broadcast_as", [](auto in) { return in[0].broadcast_as({4, 3, 2}); }, {3, 1});
  check("broadcast_left", [](auto in) { return in[0].broadcast_left({2}); }, {3});
  check("unfold", [](auto in) { return in[0].unfold(0, 3, 1); }, {5, 2});
  check("unfold in steps", [](auto in) { return in[0].unfold(1, 2, 3); }, {2, 8});
}

TEST_P(ViewGradient, OfDiagonals) {
  check("diagonal", [](auto in) { return in[0].diagonal(); }, {3, 4});
  check("diagonal above", [](auto in) { return in[0].diagonal(1); }, {3, 4});
  check("einsum ii->i", [](auto in) { return einsum("ii->i", in); }, {3, 3});
  check("einsum iij->j", [](auto in) { return einsum("iij->j", in); }, {3, 3, 2});
}

// Any layout over the memory: with gaps, and where several elements share a place.
TEST_P(ViewGradient, OfAnyLayout) {
  expect_gradients("every second",
                   [](auto in) { return contiguous(in[0]).with_layout(Layout({2, 2}, {3, 2}, 1)); },
                   {spread({2, 4}, 1, device())});
  expect_gradients("overlapping",
                   [](auto in) { return contiguous(in[0]).with_layout(Layout({3, 3}, {1, 2}, 0)); },
                   {spread({8}, 1, device())});
  // The tensor it is a view of sees its elements twice: both share what comes back.
  expect_gradients("of a broadcast",
                   [](auto in) {
                     const Tensor wide = contiguous(in[0]).broadcast_as({2, 3});
                     return wide.with_layout(Layout({3}, {1}, 0));
                   },
                   {spread({3}, 1, device())});
}

}  // namespace
}  // namespace tl
