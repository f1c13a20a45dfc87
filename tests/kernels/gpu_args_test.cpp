// The layouts that travel into kernels: merging, both widths of the walk, and fast division. The
// code under test is the text the kernels are compiled from.
#include "kernels/gpu_args.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace tl::kernels {
namespace {

TEST(FastDivTest, DividesLikeTheCpu) {
  std::mt19937 random(1);
  std::vector<unsigned> divisors = {1, 2, 3, 5, 7, 641, 65535, 65536, 65537, 0x7fffffffu};
  for (int i = 0; i < 500; ++i) {
    divisors.push_back(1 + (static_cast<unsigned>(random()) >> (1 + i % 31)));
  }
  for (const unsigned d : divisors) {
    const FastDiv fast = make_fast_div(d);
    std::vector<unsigned> numbers = {0, 1, d - 1, d, 0x7fffffffu, 0x7ffffffeu};
    for (unsigned k = 1; k < 50; ++k) {
      const std::uint64_t multiple = std::uint64_t{d} * (static_cast<unsigned>(random()) >> 16);
      if (multiple < 0x7fffffffu) {
        numbers.push_back(static_cast<unsigned>(multiple));
        numbers.push_back(static_cast<unsigned>(multiple) + 1);
        numbers.push_back(static_cast<unsigned>(multiple) - (multiple > 0 ? 1 : 0));
      }
      numbers.push_back(static_cast<unsigned>(random()) >> 1);
    }
    for (const unsigned n : numbers) ASSERT_EQ(fast.divide(n), n / d) << n << " / " << d;
  }
}

TEST(FastDivTest, MultiplyHighIsTheUpperHalf) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t a = random() >> (i % 64), b = random() >> (i % 61);
    __extension__ using Wide = unsigned __int128;
    ASSERT_EQ(multiply_high(a, b), static_cast<std::uint64_t>((Wide{a} * b) >> 64));
  }
}

// Offsets by plain counting through the unmerged shape.
template <int kOperands>
std::vector<std::array<Index, kOperands>> counted(
    const std::vector<Index>& dims, const std::array<std::vector<Index>, kOperands>& strides) {
  std::vector<std::array<Index, kOperands>> result;
  std::vector<Index> at(dims.size(), 0);
  for (const Index d : dims) {
    if (d == 0) return result;
  }
  while (true) {
    std::array<Index, kOperands> here{};
    for (std::size_t k = 0; k < kOperands; ++k) {
      for (std::size_t d = 0; d < dims.size(); ++d) here[k] += at[d] * strides[k][d];
    }
    result.push_back(here);
    std::size_t d = dims.size();
    while (d > 0 && ++at[d - 1] == dims[d - 1]) at[--d] = 0;
    if (d == 0) return result;
  }
}

template <int kOperands>
Strided<kOperands> make(const std::vector<Index>& dims,
                        const std::array<std::vector<Index>, kOperands>& strides) {
  const Index* pointers[kOperands];
  for (std::size_t k = 0; k < kOperands; ++k) pointers[k] = strides[k].data();
  return make_strided(static_cast<int>(dims.size()), dims.data(), pointers);
}

template <int kOperands>
void expect_walk(const std::vector<Index>& dims,
                 const std::array<std::vector<Index>, kOperands>& strides) {
  const auto want = counted<kOperands>(dims, strides);
  Strided<kOperands> walk = make<kOperands>(dims, strides);
  ASSERT_EQ(walk.count, static_cast<Index>(want.size()));
  ASSERT_GE(walk.rank, 1u);
  ASSERT_TRUE(walk.narrow);
  Strided<kOperands> wide = walk;  // the same walk with 64-bit numbers
  wide.narrow = 0;
  for (unsigned d = 0; d < wide.rank; ++d) {
    const unsigned long long size = wide.dim[d].size;
    wide.dim[d].multiplier = wide_multiplier((1ull << wide.dim[d].shift) - size, size);
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Offsets<kOperands> narrow_at = offsets(walk, static_cast<Index>(i));
    const Offsets<kOperands> wide_at = offsets(wide, static_cast<Index>(i));
    for (std::size_t k = 0; k < kOperands; ++k) {
      ASSERT_EQ(narrow_at.at[k], want[i][k]) << "element " << i << ", operand " << k;
      ASSERT_EQ(wide_at.at[k], want[i][k]) << "element " << i << ", operand " << k << ", wide";
      if (walk.contiguous) {
        ASSERT_EQ(want[i][k], static_cast<Index>(i));
      }
    }
  }
}

TEST(StridedTest, WalksLikeCounting) {
  expect_walk<1>({3, 4, 5}, {{{20, 5, 1}}});
  expect_walk<1>({3, 4, 5}, {{{1, 3, 12}}});
  expect_walk<1>({2, 2, 2, 2, 2, 2, 2, 2}, {{{1, 2, 4, 8, 16, 32, 64, 128}}});
  expect_walk<1>({3, 4, 5}, {{{0, 5, 1}}});
  expect_walk<1>({3, 1, 5, 1}, {{{7, 99, 1, 99}}});
  expect_walk<1>({}, {{{}}});
  expect_walk<1>({1, 1}, {{{4, 9}}});
  expect_walk<1>({5, 0, 3}, {{{3, 3, 1}}});
  expect_walk<2>({3, 4, 5}, {{{20, 5, 1}, {1, 3, 12}}});
  expect_walk<4>({3, 4, 5}, {{{20, 5, 1}, {5, 15, 1}, {0, 0, 3}, {4, 1, 0}}});
}

TEST(StridedTest, RandomLayoutsWalkLikeCounting) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<Index> dims(random() % 9);
    std::array<std::vector<Index>, 3> strides;
    for (Index& d : dims) d = static_cast<Index>(1 + random() % 4);
    for (auto& s : strides) {
      for (std::size_t d = 0; d < dims.size(); ++d) s.push_back(static_cast<Index>(random() % 20));
    }
    strides[0].assign(dims.size(), 0);  // row-major
    Index step = 1;
    for (std::size_t d = dims.size(); d-- > 0; step *= dims[d]) strides[0][d] = step;
    expect_walk<3>(dims, strides);
  }
}

TEST(StridedTest, MergesWhatEveryOperandWalksAsOne) {
  EXPECT_EQ(make<1>({3, 4, 5}, {{{20, 5, 1}}}).rank, 1u);
  EXPECT_EQ(make<1>({3, 4, 5}, {{{40, 5, 1}}}).rank, 2u);
  EXPECT_EQ(make<1>({3, 4, 5}, {{{0, 0, 0}}}).rank, 1u);
  EXPECT_EQ(make<2>({3, 4, 5}, {{{20, 5, 1}, {0, 5, 1}}}).rank, 2u);
  EXPECT_EQ(make<2>({3, 4, 5}, {{{20, 5, 1}, {1, 3, 12}}}).rank, 3u);
}

TEST(StridedTest, ContiguousMeansEveryOperand) {
  EXPECT_TRUE(make<1>({3, 4}, {{{4, 1}}}).contiguous);
  EXPECT_TRUE(make<1>({1, 1}, {{{40, 7}}}).contiguous);
  EXPECT_TRUE(make<1>({0, 4}, {{{40, 7}}}).contiguous);
  EXPECT_TRUE(make_contiguous<3>(10).contiguous);
  EXPECT_FALSE(make<1>({4}, {{{2}}}).contiguous);
  EXPECT_FALSE(make<2>({3, 4}, {{{4, 1}, {0, 1}}}).contiguous);
}

TEST(StridedTest, LargeTensorsTakeTheWideWalk) {
  const Index giga = Index{1} << 30;
  EXPECT_FALSE(make<1>({4, giga}, {{{2 * giga, 2}}}).narrow);  // too many elements
  EXPECT_FALSE(make<1>({3, 5}, {{{1, giga}}}).narrow);         // offsets too large
  EXPECT_TRUE(make<1>({3, 2}, {{{1, giga}}}).narrow);
  const Strided<1> walk = make<1>({3, 5, giga}, {{{1, 4 * giga, 3}}});
  const Index last = walk.count - 1;
  EXPECT_EQ(offset(walk, last), 2 + 4 * 4 * giga + 3 * (giga - 1));
  EXPECT_EQ(offset(walk, last - giga), 2 + 3 * 4 * giga + 3 * (giga - 1));
  EXPECT_EQ(offset(walk, giga - 1), 3 * (giga - 1));
}

// A compiler may evaluate a layout ahead of time: nothing in it depends on the machine.
constexpr Index kDims[] = {3, 4, 5};
constexpr Index kStrides[] = {1, 3, 12};
constexpr const Index* const kOperand[1] = {kStrides};
static_assert(offset(make_strided(3, kDims, kOperand), 7) == 1 * 3 + 2 * 12);
static_assert(sizeof(Strided<1>) == 272 && sizeof(Strided<4>) == 464);

}  // namespace
}  // namespace tl::kernels
