// Sums over sparse tensors against einsum over the same tensors made dense.
#include "lang/sparse.h"

#include <gtest/gtest.h>

#include <random>

#include "lang/surroundings.h"
#include "tl/grad/grad.h"
#include "tl/ops/binary.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"

namespace tl::test {
namespace {

using namespace lang;  // NOLINT(google-build-using-namespace)

class Sparse : public OnEveryDevice {
 protected:
  // A quarter of the elements, in any order.
  SparseTensor some(std::vector<std::int64_t> sizes) {
    SparseTensor out;
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = i;
    std::shuffle(all.begin(), all.end(), random_);
    std::vector<float> values;
    for (std::size_t i = 0; i < all.size() / 4; ++i) {
      std::vector<std::int64_t> places(sizes.size());
      std::int64_t rest = all[i];
      for (std::size_t d = sizes.size(); d-- > 0;) {
        places[d] = rest % sizes[d];
        rest /= sizes[d];
      }
      out.places.insert(out.places.end(), places.begin(), places.end());
      values.push_back(std::uniform_real_distribution<float>(-1, 1)(random_));
    }
    out.sizes = std::move(sizes);
    out.values = tl::Tensor::from(values, device());
    return out;
  }
  tl::Tensor dense(const Shape& shape) {
    std::vector<float> values(static_cast<std::size_t>(element_count("test", shape)));
    for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random_);
    return tl::Tensor::from(values, shape, device());
  }
  static void expect_near(const tl::Tensor& a, const tl::Tensor& b) {
    ASSERT_EQ(a.shape(), b.shape());
    const auto x = a.to_vector<float>();
    const auto y = b.to_vector<float>();
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5) << i;
  }
  // The same sum three ways: dense, sparse into dense, sparse into sparse.
  void expect_same(const std::vector<Factor>& factors, const std::string& output) {
    std::vector<Factor> made;
    for (const Factor& f : factors) {
      const auto* sparse = std::get_if<SparseTensor>(&f.value);
      made.push_back({f.letters, sparse != nullptr ? to_dense(context_, *sparse) : f.value});
    }
    const tl::Tensor wanted = contract(context_, made, output);
    expect_near(contract(context_, factors, output), wanted);
    expect_near(to_dense(context_, contract_sparse(context_, factors, output)), wanted);
  }

  std::mt19937 random_{5};
  TestContext context_{device()};
};
TL_ON_EVERY_DEVICE(Sparse);

TEST_P(Sparse, JoinsAreTheSumsOfEinsum) {
  expect_same({{"ab", some({7, 9})}, {"bc", some({9, 5})}}, "ac");
  expect_same({{"ab", some({7, 9})}, {"bc", some({9, 5})}, {"ca", some({5, 7})}}, "b");
  expect_same({{"ab", some({7, 9})}, {"cd", some({4, 5})}}, "dbac");
  expect_same({{"abc", some({4, 5, 6})}, {"b", some({5})}}, "ca");
  expect_same({{"ab", some({7, 9})}, {"ab", some({7, 9})}}, "");
}

TEST_P(Sparse, ALetterTwiceIsTheDiagonal) {
  expect_same({{"aa", some({8, 8})}}, "a");
  expect_same({{"aa", some({8, 8})}, {"ab", some({8, 3})}}, "b");
}

TEST_P(Sparse, DenseFactorsArePicked) {
  expect_same({{"ab", some({7, 9})}, {"bc", dense({9, 3})}, {"cd", dense({3, 2})}}, "ad");
  expect_same({{"ab", some({7, 9})}, {"bcb", dense({9, 3, 9})}}, "ca");
  expect_same({{"ab", some({7, 9})}, {"cd", dense({3, 2})}}, "dc");
  expect_same({{"ab", some({7, 9})}, {"ba", dense({9, 7})}}, "");
}

TEST_P(Sparse, NothingThereGivesZeros) {
  SparseTensor none{{6, 6}, {}, tl::Tensor::from(std::vector<float>(), device())};
  expect_same({{"ab", none}, {"bc", some({6, 4})}}, "ac");
  expect_same({{"ab", none}, {"bc", dense({6, 4})}}, "ac");
}

TEST_P(Sparse, SumsOfTwoAreSumsByPlace) {
  const SparseTensor a = some({6, 7});
  const SparseTensor b = some({6, 7});
  expect_near(to_dense(context_, add_sparse(context_, a, b)),
              add(to_dense(context_, a), to_dense(context_, b)));
}

TEST_P(Sparse, SoftElementsAreThoseOfTheWholeTensor) {
  SoftTensor soft{dense({3, 4}), {dense({5, 3}), dense({6, 4})}};
  const SparseTensor other = some({6, 4});
  const tl::Tensor wanted = contract(
      context_, std::vector<Factor>{{"ab", soft.dense()}, {"bc", to_dense(context_, other)}}, "ac");
  expect_near(contract(context_, std::vector<Factor>{{"ab", soft}, {"bc", other}}, "ac"), wanted);
  SoftTensor diagonal{dense({3}), {dense({5, 3}), dense({5, 3}), dense({2, 3})}};
  expect_near(contract(context_, std::vector<Factor>{{"abc", diagonal}}, "cab"),
              einsum("abc->cab", {diagonal.dense()}));
}

TEST_P(Sparse, GradientsAreThoseOfTheDenseSum) {
  SparseTensor a = some({5, 6});
  const SparseTensor b = some({6, 4});
  const tl::Tensor values = follow(a.values);
  a.values = values;
  const std::vector<Factor> factors = {{"ab", a}, {"bc", b}, {"c", dense({4})}};
  const tl::Tensor loss = sum_all(contract(context_, factors, "a"));
  const auto found = backward(loss).of(values).to_vector<float>();
  // The sum is linear in each value: its slope is what it gives for that value alone.
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::vector<float> one(found.size());
    one[i] = 1;
    SparseTensor alone = a;
    alone.values = tl::Tensor::from(one, device());
    const std::vector<Factor> with = {{"ab", alone}, factors[1], factors[2]};
    EXPECT_NEAR(found[i], sum_all(contract(context_, with, "a")).item().real(), 1e-5);
  }
}

TEST(LargeTensors, AreThoseBeyondTheLimit) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_FALSE(is_large(Sizes{4096, 4096}));
  EXPECT_TRUE(is_large(Sizes{4096, 4097}));
  EXPECT_TRUE(is_large(Sizes{1 << 30, 1 << 30, 1 << 30}));
  EXPECT_FALSE(is_large(Sizes{1 << 30, 1 << 30, 0}));
  EXPECT_FALSE(is_large(Sizes{}));
}

}  // namespace
}  // namespace tl::test
