// Functions that change their argument: a followed tensor keeps the history of all its elements,
// and what was computed from it before does not notice.
#include "grad/check.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class WriteGradient : public OnEveryDevice {
 protected:
  Tensor ids(std::initializer_list<std::int64_t> list, const Shape& shape) const {
    return Tensor::from(std::vector<std::int64_t>(list), shape, device());
  }
  Tensor numbers(const Shape& shape, std::uint64_t seed = 1) const {
    return spread(shape, seed, device());
  }
};
TL_ON_EVERY_DEVICE(WriteGradient);

using Write = std::function<void(Tensor& x, const Tensor& value)>;

// The gradients of x after the write and of what it was computed from, with the write into a fresh
// result, into a variable that shares its memory, and of a value that alone is followed.
void expect_write(const std::string& what, const Write& write, const Tensor& x,
                  const Tensor& value) {
  const auto after = [&](Tensor y, const Tensor& v) {
    write(y, v);
    return y;
  };
  expect_gradients_of_any_layout(what, [&](auto in) { return after(in[0], in[1]); }, {x, value});
  expect_gradients(what + " and before",
                   [&](auto in) {
                     const Tensor early = sqr(in[0]);
                     return add(early, after(sin(in[0]), sqr(in[1])));
                   },
                   {x, value});
  expect_gradients(what + " of values", [&](auto in) { return after(x, in[0]); }, {value});
  expect_gradients(what + " twice",
                   gradient_of([&](auto in) { return sqr(after(sin(in[0]), sqr(in[1]))); }),
                   {x, value});
}

TEST_P(WriteGradient, GoesToWhatWasWrittenAndToWhatWasLeft) {
  const Tensor x = numbers({3, 4});
  const Tensor lines = ids({2, 2, 0, 1, 2, 1}, {2, 3}), rows = ids({1, 0, 1}, {3});
  expect_write(
      "scatter_set", [&](Tensor& y, const Tensor& v) { scatter_set(y, 1, lines, v); }, x,
      numbers({2, 3}, 2));
  expect_write(
      "scatter_add_set", [&](Tensor& y, const Tensor& v) { scatter_add_set(y, 1, lines, v); }, x,
      numbers({2, 3}, 2));
  expect_write(
      "index_add_set", [&](Tensor& y, const Tensor& v) { index_add_set(y, 0, rows, v); }, x,
      numbers({3, 4}, 2));
  expect_write(
      "index_copy_set", [&](Tensor& y, const Tensor& v) { index_copy_set(y, 0, rows, v); }, x,
      numbers({3, 4}, 2));
  expect_write(
      "slice_set", [&](Tensor& y, const Tensor& v) { slice_set(y, v, 1, 1); }, x,
      numbers({3, 2}, 2));
}

TEST_P(WriteGradient, GoesThroughEntriesOfEveryKind) {
  const Tensor x = numbers({3, 2, 4});
  const Tensor some = ids({2, 0, 2}, {3}), few = ids({1, 1}, {2});
  const auto check = [&](const std::string& what, std::vector<At> entries, const Shape& value) {
    expect_write(
        what, [&](Tensor& y, const Tensor& v) { assign_index(y, entries, v); }, x,
        numbers(value, 2));
  };
  check("a row", {1}, {2, 4});
  check("a range", {At::all(), 1, At::range(0, 4, 2)}, {3, 2});
  check("one tensor", {some}, {3, 2, 4});
  check("one tensor of a part", {At::range(0, 3, 2), At::all(), ids({3, 0}, {2})}, {2, 2, 2});
  check("a number for all", {some, 1}, {1});
  check("two tensors", {some, At::all(), few}, {3, 2, 2});
  check("two tensors and an axis", {some, At::new_axis(), few}, {2, 4});
}

TEST_P(WriteGradient, ANumberTakesThePlaceAway) {
  const Tensor x = numbers({3, 4});
  const Tensor at = ids({2, 0}, {2});
  expect_gradients("assign_index",
                   [&](auto in) {
                     Tensor y = in[0];
                     assign_index(y, {At::all(), at}, 5);
                     return y;
                   },
                   {x});
  expect_gradients("scatter_set",
                   [&](auto in) {
                     Tensor y = in[0];
                     scatter_set(y, 1, at.unsqueeze(0), 5);
                     return y;
                   },
                   {x});
}

TEST_P(WriteGradient, TheVariableStaysAsItWas) {
  const Tensor x = follow(numbers({4}));
  const std::vector<double> values = x.to_vector<double>();
  Tensor y = x;
  scatter_set(y, 0, ids({1, 2}, {2}), numbers({2}, 2));
  EXPECT_EQ(x.to_vector<double>(), values);
  EXPECT_NE(x.history(), y.history());
  EXPECT_EQ(backward(sum_all(x)).of(x).to_vector<double>(), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(backward(sum_all(y)).of(x).to_vector<double>(), (std::vector<double>{1, 0, 0, 1}));
}

TEST_P(WriteGradient, WritesToItselfReadTheOldElements) {
  expect_gradients("scatter_set of itself",
                   [&](auto in) {
                     Tensor y = sin(in[0]);
                     scatter_set(y, 0, ids({3, 2, 1, 0}, {4}), y);
                     return y;
                   },
                   {numbers({4})});
  expect_gradients("slice_set of itself",
                   [&](auto in) {
                     Tensor y = sin(in[0]);
                     slice_set(y, y.narrow(0, 0, 3), 0, 1);
                     return y;
                   },
                   {numbers({4})});
}

TEST_P(WriteGradient, NothingWrittenChangesNothing) {
  Tensor y = follow(numbers({4}));
  const Tensor x = y;
  scatter_set(y, 0, ids({}, {0}), Tensor::zeros({0}, DType::F64, device()));
  EXPECT_EQ(backward(sum_all(y)).of(x).to_vector<double>(), (std::vector<double>{1, 1, 1, 1}));
}

TEST_P(WriteGradient, AnErrorLeavesTheHistory) {
  Tensor y = follow(numbers({4}));
  const Tensor x = y;
  expect_error(ErrorKind::ShapeMismatch, "scatter",
               [&] { scatter_set(y, 0, ids({1}, {1}), numbers({2})); });
  EXPECT_EQ(y.history(), x.history());
  if (!device().is_cpu()) return;  // which alone sees a bad index before it writes
  expect_error(ErrorKind::InvalidIndex, "scatter",
               [&] { scatter_set(y, 0, ids({4}, {1}), numbers({1})); });
  EXPECT_EQ(y.history(), x.history());
  EXPECT_EQ(y.to_vector<double>(), x.to_vector<double>());
}

TEST_P(WriteGradient, AFollowedTensorIsWrittenInPlace) {
  const Tensor x = follow(numbers({4}));
  Tensor y = sin(x);
  const auto where_is = [&] { return y.read(device().stream()); };
  const std::byte* before = where_is();
  scatter_set(y, 0, ids({1, 2}, {2}), numbers({2}, 2));
  EXPECT_EQ(where_is(), before);
  slice_set(y, numbers({2}, 3), 0, 0);
  EXPECT_EQ(where_is(), before);
  fill_at(y, y.layout().narrow(0, 3, 1), 0);
  EXPECT_EQ(where_is(), before);
  EXPECT_TRUE(y.has_history());
}

}  // namespace
}  // namespace tl
