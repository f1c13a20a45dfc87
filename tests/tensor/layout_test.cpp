// Layouts against brute force: every layout is also a plain list of offsets, and what a view must
// be is computed on the lists.
#include "tl/tensor/layout.h"

#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "support/on_every_device.h"

namespace tl {
namespace {

using Offsets = std::vector<std::int64_t>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::uint64_t seed() {
  const char* text = std::getenv("TL_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20260101;
}

// The offset of every element in logical order.
Offsets offsets(const Layout& layout) {
  Offsets out;
  Dims at = Dims::repeated(layout.rank(), 0);
  for (std::int64_t i = 0; i < layout.count(); ++i) {
    std::int64_t offset = layout.offset();
    for (int d = 0; d < layout.rank(); ++d) offset += at[d] * layout.strides()[d];
    out.push_back(offset);
    for (int d = layout.rank() - 1; d >= 0; --d) {
      if (++at[d] < layout.shape()[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

bool is_row_major(const Layout& layout) {
  const Offsets all = offsets(layout);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != layout.offset() + static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

Layout reversed(const Layout& layout) {
  Dims order;
  for (int d = layout.rank() - 1; d >= 0; --d) order.push_back(d);
  return layout.permute(order);
}

std::int64_t below(std::mt19937_64& random, std::int64_t end) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

// A layout after a chain of views, with its offsets found step by step.
Layout random_layout(std::mt19937_64& random) {
  Shape shape;
  const std::int64_t rank = below(random, 5);
  for (int d = 0; d < rank; ++d) shape.push_back(below(random, 20) == 0 ? 0 : 1 + below(random, 4));
  Layout layout(shape);
  for (std::int64_t steps = below(random, 5); steps > 0 && layout.rank() > 0; --steps) {
    const int d = static_cast<int>(below(random, layout.rank()));
    const int e = static_cast<int>(below(random, layout.rank()));
    const std::int64_t size = layout.shape()[d];
    switch (below(random, 7)) {
      case 0:
        layout = layout.transpose(d, e);
        break;
      case 1: {
        const std::int64_t start = below(random, size + 1);
        layout = layout.narrow(d, start, below(random, size - start + 1));
        break;
      }
      case 2:
        layout = layout.step(d, 1 + below(random, 3));
        break;
      case 3:
        if (size > 0) layout = layout.drop(d, below(random, size));
        break;
      case 4:
        if (layout.rank() < 6)
          layout = layout.insert(static_cast<int>(below(random, layout.rank() + 1)));
        break;
      case 5:
        if (size == 1) {
          Shape to = layout.shape();
          to[d] = below(random, 4);
          layout = layout.broadcast_to(to);
        }
        break;
      default:
        if (size > 0 && layout.rank() < 6) {
          layout = layout.unfold(d, 1 + below(random, size), 1 + below(random, 2));
        }
    }
  }
  return layout;
}

TEST(Layout, ContiguityIsWhatTheOffsetsSay) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 20000; ++round) {
    const Layout layout = random_layout(random);
    ASSERT_EQ(layout.is_contiguous(), is_row_major(layout))
        << layout.shape() << layout.strides() << " seed " << seed();
    ASSERT_EQ(layout.is_fortran_contiguous(), is_row_major(reversed(layout)))
        << layout.shape() << layout.strides();
    const Offsets all = offsets(layout);
    ASSERT_EQ(layout.count(), static_cast<std::int64_t>(all.size()));
    std::int64_t end = 0;
    for (const std::int64_t at : all) end = std::max(end, at - layout.offset() + 1);
    ASSERT_EQ(layout.extent(), end);
    ASSERT_TRUE(layout.fits(layout.offset() + end));
    if (end > 0) {
      ASSERT_FALSE(layout.fits(layout.offset() + end - 1));
    }
  }
}

TEST(Layout, ViewsPickTheRightElements) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 5000; ++round) {
    const Layout layout = random_layout(random);
    if (layout.rank() == 0) continue;
    const int d = static_cast<int>(below(random, layout.rank()));
    const std::int64_t size = layout.shape()[d];
    // Dimension d first: its slices are blocks of the list of offsets.
    Dims order = all_dims(layout.rank());
    order.erase(d);
    order.insert(0, d);
    const Offsets all = offsets(layout.permute(order));
    const std::size_t each = size == 0 ? 0 : all.size() / static_cast<std::size_t>(size);
    const auto block = [&](std::int64_t i) {
      const auto from =
          all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * each);
      return Offsets(from, from + static_cast<std::ptrdiff_t>(each));
    };
    const auto blocks = [&](std::int64_t start, std::int64_t count, std::int64_t step) {
      Offsets out;
      for (std::int64_t i = 0; i < count; ++i) {
        const Offsets one = block(start + i * step);
        out.insert(out.end(), one.begin(), one.end());
      }
      return out;
    };
    const std::int64_t start = below(random, size + 1);
    const std::int64_t length = below(random, size - start + 1);
    const std::int64_t step = 1 + below(random, 3);
    ASSERT_EQ(offsets(layout.narrow(d, start, length).permute(order)), blocks(start, length, 1));
    ASSERT_EQ(offsets(layout.step(d, step).permute(order)),
              blocks(0, (size + step - 1) / step, step));
    if (size > 0) {
      const std::int64_t index = below(random, size);
      ASSERT_EQ(offsets(layout.drop(d, index)), block(index));
      const std::int64_t window = 1 + below(random, size);
      const Layout windows = layout.unfold(d, window, step);
      ASSERT_EQ(windows.shape()[d], (size - window) / step + 1);
      for (std::int64_t w = 0; w < windows.shape()[d]; ++w) {
        for (std::int64_t i = 0; i < window; ++i) {
          ASSERT_EQ(offsets(windows.drop(windows.rank() - 1, i).drop(d, w)), block(w * step + i));
        }
      }
    }
    ASSERT_EQ(offsets(layout.insert(d)), offsets(layout));
  }
}

TEST(Layout, DiagonalsPickTheRightElements) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 2000; ++round) {
    const Layout layout = random_layout(random);
    if (layout.rank() < 2) continue;
    const int a = static_cast<int>(below(random, layout.rank()));
    const int b = static_cast<int>((a + 1 + below(random, layout.rank() - 1)) % layout.rank());
    const std::int64_t shift = below(random, 9) - 4;
    const Layout diagonal = layout.diagonal(a, b, shift);
    std::int64_t length = 0;
    for (std::int64_t i = 0; i < layout.shape()[a]; ++i) {
      const std::int64_t j = i + shift;
      if (j < 0 || j >= layout.shape()[b]) continue;
      const Offsets wanted =
          offsets(layout.drop(std::max(a, b), a > b ? i : j).drop(std::min(a, b), a > b ? j : i));
      if (diagonal.count() > 0) {
        ASSERT_EQ(offsets(diagonal.drop(diagonal.rank() - 1, length)), wanted);
      }
      ++length;
    }
    ASSERT_EQ(diagonal.shape().back(), length);
  }
  for (const std::int64_t shift : {kMost, std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_EQ(Layout({3, 4}).diagonal(0, 1, shift).count(), 0);
  }
}

// Is there any list of strides that puts the elements at those places under that shape? Found
// dimension by dimension: the stride of d is the distance of its first two elements.
bool has_strides(const Offsets& all, const Shape& shape) {
  Dims strides = Dims::repeated(shape.size(), 0);
  std::size_t step = 1;
  for (int d = shape.size() - 1; d >= 0; --d) {
    if (shape[d] > 1) strides[d] = all[step] - all[0];
    step *= static_cast<std::size_t>(shape[d]);
  }
  for (const std::int64_t stride : strides) {
    if (stride < 0) return false;
  }
  return offsets(Layout(shape, strides, all[0])) == all;
}

// Every shape with that many elements and at most `rank` dimensions.
void shapes_of(std::int64_t count, int rank, Shape so_far, std::vector<Shape>& out) {
  if (count == 1) out.push_back(so_far);
  if (rank == 0) return;
  for (std::int64_t size = 1; size <= count; ++size) {
    if (count % size != 0) continue;
    Shape next = so_far;
    next.push_back(size);
    shapes_of(count / size, rank - 1, next, out);
  }
}

TEST(Layout, ReshapesExactlyWhenStridesExist) {
  std::mt19937_64 random(seed());
  int views = 0, copies = 0;
  for (int round = 0; round < 3000; ++round) {
    const Layout layout = random_layout(random);
    if (layout.count() == 0 || layout.count() > 48) continue;
    const Offsets all = offsets(layout);
    std::vector<Shape> shapes;
    shapes_of(layout.count(), 4, {}, shapes);
    for (const Shape& shape : shapes) {
      const auto view = layout.reshape(shape);
      ASSERT_EQ(view.has_value(), has_strides(all, shape))
          << layout.shape() << layout.strides() << " as " << shape << " seed " << seed();
      if (view) {
        ASSERT_EQ(view->shape(), shape);
        ASSERT_EQ(offsets(*view), all) << layout.shape() << layout.strides() << " as " << shape;
        ++views;
      } else {
        ++copies;
      }
    }
  }
  EXPECT_GT(views, 1000);
  EXPECT_GT(copies, 1000);
}

TEST(Layout, ReshapesNothingToAnyShapeOfNothing) {
  const Layout layout = Layout({4, 0, 3}).transpose(0, 2);
  ASSERT_TRUE(layout.reshape({0}).has_value());
  EXPECT_EQ(layout.reshape({7, 0})->shape(), (Shape{7, 0}));
}

TEST(Layout, SplitsADimensionOfANarrowedTensor) {
  const auto view = Layout({4, 6}).narrow(1, 1, 4).reshape({2, 2, 2, 2});
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->strides(), (Dims{12, 6, 2, 1}));
  EXPECT_FALSE(Layout({4, 6}).narrow(1, 1, 4).reshape({16}).has_value());
}

TEST(Layout, BroadcastDimensionsMergeWithEachOtherOnly) {
  const Layout layout = Layout({1, 1, 3}).broadcast_to({2, 4, 3});
  EXPECT_TRUE(layout.reshape({8, 3}).has_value());
  EXPECT_TRUE(layout.reshape({2, 2, 2, 3}).has_value());
  EXPECT_FALSE(layout.reshape({2, 12}).has_value());
}

TEST(Layout, ContiguousAfterChains) {
  const Layout x({2, 3, 4});
  EXPECT_FALSE(x.transpose(0, 1).is_contiguous());
  EXPECT_TRUE(x.transpose(0, 1).transpose(1, 0).is_contiguous());
  EXPECT_TRUE(x.transpose(0, 2).is_fortran_contiguous());
  EXPECT_TRUE(x.permute({2, 0, 1}).permute({1, 2, 0}).is_contiguous());
  EXPECT_TRUE(x.narrow(0, 1, 1).is_contiguous());
  EXPECT_FALSE(x.narrow(1, 0, 2).is_contiguous());
  EXPECT_TRUE(x.narrow(1, 0, 2).narrow(0, 1, 1).is_contiguous());
  EXPECT_TRUE(x.narrow(2, 0, 0).is_contiguous());  // no elements
  EXPECT_TRUE(x.narrow(2, 0, 0).transpose(0, 1).is_fortran_contiguous());
  EXPECT_TRUE(Layout({1, 5}).transpose(0, 1).is_contiguous());
}

TEST(Layout, StepsAndWindowsOfAnyLengthOverflowNothing) {
  const Layout x({5, 4});
  EXPECT_EQ(x.step(0, kMost).shape(), (Shape{1, 4}));
  EXPECT_EQ(x.step(0, kMost).extent(), 4);
  EXPECT_EQ(x.unfold(0, 2, kMost).shape(), (Shape{1, 4, 2}));
  EXPECT_EQ(Layout({0, 3}).step(0, kMost).count(), 0);
  const Layout none({0, kMost, kMost});
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.insert(0).count(), 0);
  EXPECT_EQ(none.transpose(0, 2).diagonal(1, 2, 0).count(), 0);
}

TEST(Layout, FitsIsSafeToAskOfAnything) {
  EXPECT_TRUE(Layout({2, 3}).fits(6));
  EXPECT_FALSE(Layout({2, 3}).fits(5));
  EXPECT_FALSE(Layout({2, 3}, {3, 1}, 1).fits(6));
  EXPECT_FALSE(Layout({2}, {1}, -1).fits(6));
  EXPECT_FALSE(Layout({2}, {-1}, 1).fits(6));
  EXPECT_FALSE(Layout({-2}, {1}, 0).fits(6));
  EXPECT_FALSE(Layout({2, 2}, {1}, 0).fits(6));
  EXPECT_FALSE(Layout({kMost, kMost}, {kMost, kMost}, kMost).fits(kMost));
  EXPECT_FALSE(Layout({kMost, kMost}, {0, 0}, 0).fits(1));  // too many to count
  EXPECT_TRUE(Layout({kMost}, {0}, 0).fits(1));
  EXPECT_TRUE(Layout({0, kMost}, {kMost, kMost}, 0).fits(0));
}

TEST(Layout, OverlapsWhereElementsShareAPlace) {
  const Layout x({4, 6});
  EXPECT_FALSE(Layout().overlaps());
  EXPECT_FALSE(x.overlaps());
  EXPECT_FALSE(x.transpose(0, 1).overlaps());
  EXPECT_FALSE(x.narrow(1, 2, 3).step(1, 2).transpose(0, 1).overlaps());
  EXPECT_FALSE(x.diagonal(0, 1, 1).overlaps());
  EXPECT_FALSE(x.unfold(1, 2, 2).overlaps());
  EXPECT_FALSE(Layout({1}).broadcast_to({1, 1}).overlaps());
  EXPECT_FALSE(Layout({3, 0}, {0, 0}, 0).overlaps());
  EXPECT_TRUE(Layout({6}).broadcast_to({4, 6}).overlaps());
  EXPECT_TRUE(x.unfold(1, 3, 2).overlaps());
}

}  // namespace
}  // namespace tl
