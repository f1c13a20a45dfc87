// Picking and placing: duplicates, "nothing", and who is last.
#include "tl/ops/indexing.h"

#include <limits>

#include "grad/check.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class IndexingGradient : public OnEveryDevice {
 protected:
  Tensor ids(std::initializer_list<std::int64_t> list, const Shape& shape) const {
    return Tensor::from(std::vector<std::int64_t>(list), shape, device());
  }
  Tensor ids(std::initializer_list<std::int64_t> list) const {
    return ids(list, {static_cast<std::int64_t>(list.size())});
  }
  Tensor numbers(const Shape& shape, std::uint64_t seed = 1) const {
    return spread(shape, seed, device());
  }
};
TL_ON_EVERY_DEVICE(IndexingGradient);

constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();

TEST_P(IndexingGradient, WhatIsPickedTwiceGetsBoth) {
  const Tensor twice = ids({2, 0, 2, 2});
  const Tensor places = ids({1, 1, 0, 2, 1, 1}, {2, 3});
  const auto check = [&](const std::string& what, const Function& f) {
    expect_gradients_of_any_layout(what, f, {numbers({3, 4})});
  };
  check("index_select 0", [&](auto in) { return index_select(in[0], 0, twice); });
  check("index_select 1", [&](auto in) { return index_select(in[0], 1, twice); });
  check("embedding", [&](auto in) { return embedding(in[0], places); });
  check("gather", [&](auto in) { return gather(in[0], 1, places); });
  check("gather one", [&](auto in) { return gather(in[0], 0, ids({2, 0, 1}, {1, 3})); });
  check("take_along", [&](auto in) { return take_along(in[0], 0, ids({1, 1}, {2, 1})); });
  check("take", [&](auto in) { return take(in[0], ids({11, 0, 11, 5}, {2, 2})); });
}

TEST_P(IndexingGradient, NothingGetsNothing) {
  const Tensor some = ids({1, kNothing, 0});
  const Tensor lines = ids({1, kNothing, kNothing, 0}, {2, 2});
  const auto check = [&](const std::string& what, const Function& f, const Shape& second) {
    expect_gradients(what, f, {numbers({2, 3}), numbers(second, 2)});
  };
  check("index_select", [&](auto in) { return add(index_select(in[0], 0, some), in[1]); }, {3, 3});
  check("gather", [&](auto in) { return add(gather(in[0], 1, lines), in[1]); }, {2, 2});
  check("scatter", [&](auto in) { return scatter(in[0], 1, lines, in[1]); }, {2, 2});
  check("scatter_add", [&](auto in) { return scatter_add(in[0], 1, lines, in[1]); }, {2, 2});
  check("index_copy", [&](auto in) { return index_copy(in[0], 0, some, in[1]); }, {3, 3});
  check("index_add", [&](auto in) { return index_add(in[0], 0, some, in[1]); }, {3, 3});
}

TEST_P(IndexingGradient, OnlyTheLastOfSeveralThatAreWrittenCounts) {
  const Tensor lines = ids({2, 2, 0, 1, 2, 1}, {2, 3});
  const Tensor rows = ids({1, 0, 1, 1});
  const auto check = [&](const std::string& what, const Function& f, const Shape& second) {
    expect_gradients_of_any_layout(what, f, {numbers({3, 4}), numbers(second, 2)});
  };
  check("scatter 1", [&](auto in) { return scatter(in[0], 1, lines, in[1]); }, {2, 3});
  check("scatter 0", [&](auto in) { return scatter(in[0], 0, lines, in[1]); }, {2, 3});
  check("scatter_add", [&](auto in) { return scatter_add(in[0], 1, lines, in[1]); }, {2, 3});
  check("index_copy 0", [&](auto in) { return index_copy(in[0], 0, rows, in[1]); }, {4, 4});
  check("index_copy 1", [&](auto in) { return index_copy(in[0], 1, rows, in[1]); }, {3, 4});
  check("index_add", [&](auto in) { return index_add(in[0], 1, rows, in[1]); }, {3, 4});
}

TEST_P(IndexingGradient, AScatterTakesItsPlaceAndAScatterAddDoesNot) {
  const Tensor x = follow(numbers({4})), src = follow(numbers({2}, 2));
  const Tensor at = ids({3, 1});
  const Tensor seed = Tensor::from({1.0, 2.0, 3.0, 4.0}, {4}, device());
  const Gradients set = backward(scatter(x, 0, at, src), seed);
  EXPECT_EQ(set.of(x).to_vector<double>(), (std::vector<double>{1, 0, 3, 0}));
  EXPECT_EQ(set.of(src).to_vector<double>(), (std::vector<double>{4, 2}));
  const Gradients added = backward(scatter_add(x, 0, at, src), seed);
  EXPECT_EQ(added.of(x).to_vector<double>(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(added.of(src).to_vector<double>(), (std::vector<double>{4, 2}));
  const Gradients value = backward(scatter(x, 0, at, 7), seed);
  EXPECT_EQ(value.of(x).to_vector<double>(), (std::vector<double>{1, 0, 3, 0}));
}

TEST_P(IndexingGradient, OneNumberIsALine) {
  expect_gradients("gather", [&](auto in) { return gather(in[0], 0, ids({0}, {})); },
                   {numbers({})});
  expect_gradients("scatter_add",
                   [&](auto in) { return scatter_add(in[0], 0, ids({0}, {}), in[1]); },
                   {numbers({}), numbers({}, 2)});
}

TEST_P(IndexingGradient, MasksMayBeBroadcast) {
  const Tensor mask = to_dtype(ids({1, 0, 1, 0}), DType::Bool);
  const auto select = [&](auto in) { return masked_select(in[0], mask); };
  expect_gradients_of_any_layout("masked_select", select, {numbers({3, 4})});
  expect_gradients("masked_select of a column", select, {numbers({3, 1})});
  expect_gradients_of_any_layout("masked_scatter",
                                 [&](auto in) { return masked_scatter(in[0], mask, in[1]); },
                                 {numbers({3, 4}), numbers({2, 5}, 2)});
}

TEST_P(IndexingGradient, EntriesOfEveryKindShowAPart) {
  const Tensor some = ids({2, 0, 2}), few = ids({1, 1});
  const auto check = [&](const std::string& what, std::vector<At> entries) {
    expect_gradients_of_any_layout(what, [&](auto in) { return index(in[0], entries); },
                                   {numbers({3, 2, 5})});
  };
  check("integers and ranges", {1, At::all(), At::range(0, 5, 2)});
  check("one tensor", {some, At::new_axis(), 1});
  check("two tensors", {some, At::rest(), few});
}

TEST_P(IndexingGradient, IndicesMayBeOfAnyDtype) {
  for (const DType dtype : {DType::U8, DType::U32, DType::I16, DType::I32}) {
    const Tensor lines = to_dtype(ids({2, 2, 0, 1, 2, 1}, {2, 3}), dtype);
    expect_gradients("gather", [&](auto in) { return gather(in[0], 1, lines); }, {numbers({3, 4})});
    expect_gradients("scatter", [&](auto in) { return scatter(in[0], 1, lines, in[1]); },
                     {numbers({3, 4}), numbers({2, 3}, 2)});
  }
}

TEST_P(IndexingGradient, HasAGradientItself) {
  const Tensor lines = ids({2, 2, 0, 1, 2, 1}, {2, 3});
  const Tensor rows = ids({1, 0, 1});
  const auto check = [&](const std::string& what, const Function& f,
                         const std::vector<Tensor>& inputs) {
    expect_gradients(what, gradient_of(f), inputs);
  };
  check("index_select", [&](auto in) { return sqr(index_select(sin(in[0]), 0, rows)); },
        {numbers({2, 3})});
  check("embedding", [&](auto in) { return sqr(embedding(sin(in[0]), lines)); }, {numbers({3, 2})});
  check("gather", [&](auto in) { return sqr(gather(sin(in[0]), 1, lines)); }, {numbers({2, 3})});
  check("scatter", [&](auto in) { return sqr(scatter(sin(in[0]), 1, lines, sqr(in[1]))); },
        {numbers({2, 3}), numbers({2, 3}, 2)});
  check("scatter_add", [&](auto in) { return sqr(scatter_add(sin(in[0]), 1, lines, sqr(in[1]))); },
        {numbers({2, 3}), numbers({2, 3}, 2)});
}

}  // namespace
}  // namespace tl
