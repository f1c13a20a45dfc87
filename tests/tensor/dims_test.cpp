// Lists of sizes and the rules for dimension arguments and shapes.
#include "tl/tensor/dims.h"

#include <limits>
#include <sstream>
#include <vector>

#include "support/on_every_device.h"

namespace tl {
namespace {

using test::expect_error;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(Dims, HoldUpToEight) {
  EXPECT_EQ((Dims{1, 2, 3, 4, 5, 6, 7, 8}).size(), 8);
  expect_error(ErrorKind::BadArgument, "shape: 9 dimensions; tensors have at most 8",
               [] { Dims{1, 2, 3, 4, 5, 6, 7, 8, 9}; });
  expect_error(ErrorKind::BadArgument, "9 dimensions", [] {
    Dims dims = Dims::repeated(8, 1);
    dims.push_back(1);
  });
  expect_error(ErrorKind::BadArgument, "1000 dimensions",
               [] { Dims(std::span<const std::int64_t>(std::vector<std::int64_t>(1000, 1))); });
}

TEST(Dims, InsertAndEraseKeepTheOthersInOrder) {
  Dims dims{1, 2, 3};
  dims.insert(0, 9);
  dims.insert(2, 8);
  dims.insert(5, 7);
  EXPECT_EQ(dims, (Dims{9, 1, 8, 2, 3, 7}));
  dims.erase(5);
  dims.erase(2);
  dims.erase(0);
  EXPECT_EQ(dims, (Dims{1, 2, 3}));
  EXPECT_EQ(dims.back(), 3);
}

TEST(Dims, EqualityIgnoresWhatWasThereBefore) {
  Dims dims{1, 2, 3};
  dims.erase(2);
  EXPECT_EQ(dims, (Dims{1, 2}));
  EXPECT_NE(dims, (Dims{1, 2, 0}));
}

TEST(Dims, TextIsATuple) {
  EXPECT_EQ(Dims{}.text(), "()");
  EXPECT_EQ(Dims{5}.text(), "(5,)");
  std::ostringstream out;
  out << Dims{2, -1, 3};
  EXPECT_EQ(out.str(), "(2, -1, 3)");
}

TEST(ElementCount, MultipliesAndChecks) {
  EXPECT_EQ(element_count("op", {}), 1);
  EXPECT_EQ(element_count("op", {2, 3, 4}), 24);
  EXPECT_EQ(element_count("op", {2, 0, 4}), 0);
  EXPECT_EQ(element_count("op", {kMost}), kMost);
  expect_error(ErrorKind::Overflow, "op: shape (4294967296, 4294967296) has more than",
               [] { element_count("op", {std::int64_t{1} << 32, std::int64_t{1} << 32}); });
  expect_error(ErrorKind::BadArgument, "op: shape (2, -3) has a negative size",
               [] { element_count("op", {2, -3}); });
  // With no elements no product is too large, but a negative size is still one.
  EXPECT_EQ(element_count("op", {kMost, 0, kMost}), 0);
  expect_error(ErrorKind::BadArgument, "negative", [] { element_count("op", {0, kLeast}); });
}

TEST(NormalizeDim, CountsFromEitherEnd) {
  const Shape shape{2, 3, 4};
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(normalize_dim("op", d, shape), d);
    EXPECT_EQ(normalize_dim("op", d - 3, shape), d);
  }
  for (const std::int64_t d : {std::int64_t{3}, std::int64_t{-4}, kMost, kLeast}) {
    expect_error(ErrorKind::BadArgument, join("op: dim ", d, " is outside shape (2, 3, 4)"),
                 [&] { normalize_dim("op", d, shape); });
  }
  expect_error(ErrorKind::BadArgument, "op: dim 0 is outside shape ()",
               [] { normalize_dim("op", 0, {}); });
  expect_error(ErrorKind::BadArgument, "dim -1", [] { normalize_dim("op", -1, {}); });
}

TEST(NormalizeInsertion, AllowsThePlaceAfterTheLast) {
  EXPECT_EQ(normalize_insertion("op", 2, {5, 6}), 2);
  EXPECT_EQ(normalize_insertion("op", -1, {5, 6}), 2);
  EXPECT_EQ(normalize_insertion("op", -3, {5, 6}), 0);
  EXPECT_EQ(normalize_insertion("op", 0, {}), 0);
  EXPECT_EQ(normalize_insertion("op", -1, {}), 0);
  for (const std::int64_t d : {std::int64_t{3}, std::int64_t{-4}, kMost, kLeast}) {
    expect_error(ErrorKind::BadArgument, join("no dimension can be inserted at ", d),
                 [&] { normalize_insertion("op", d, {5, 6}); });
  }
}

TEST(NormalizeDims, SortsAndRefusesTwins) {
  EXPECT_EQ(normalize_dims("op", {-1, 0}, {2, 3, 4}), (Dims{0, 2}));
  EXPECT_EQ(normalize_dims("op", {}, {2, 3}), Dims{});
  expect_error(ErrorKind::BadArgument, "op: dims (1, -2) name a dimension of shape (2, 3, 4) twice",
               [] { normalize_dims("op", {1, -2}, {2, 3, 4}); });
}

TEST(FillHole, ComputesTheOpenSize) {
  EXPECT_EQ(fill_hole("op", {-1}, 6), (Shape{6}));
  EXPECT_EQ(fill_hole("op", {2, -1}, 6), (Shape{2, 3}));
  EXPECT_EQ(fill_hole("op", {-1, 3}, 0), (Shape{0, 3}));
  EXPECT_EQ(fill_hole("op", {2, 3}, 6), (Shape{2, 3}));
  EXPECT_EQ(fill_hole("op", {}, 1), Shape{});
  expect_error(ErrorKind::BadArgument, "op: shape (-1, -1) leaves two sizes open",
               [] { fill_hole("op", {-1, -1}, 6); });
  expect_error(ErrorKind::ShapeMismatch,
               "op: no size in place of -1 gives shape (4, -1) 6 elements",
               [] { fill_hole("op", {4, -1}, 6); });
  expect_error(ErrorKind::ShapeMismatch, "no size in place of -1",
               [] { fill_hole("op", {0, -1}, 0); });
  expect_error(ErrorKind::ShapeMismatch, "op: shape (2, 2) has 4 elements, and there are 6",
               [] { fill_hole("op", {2, 2}, 6); });
  expect_error(ErrorKind::BadArgument, "negative", [] { fill_hole("op", {-2, 3}, 6); });
  expect_error(ErrorKind::Overflow, "op: ", [] { fill_hole("op", {kMost, 2, -1}, 6); });
}

TEST(BroadcastShapes, AlignsRight) {
  EXPECT_EQ(broadcast_shapes("op", {3, 1}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes("op", {4}, {3, 1}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes("op", {}, {2, 0}), (Shape{2, 0}));
  EXPECT_EQ(broadcast_shapes("op", {1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes("op", {2, 3}, {2, 3}), (Shape{2, 3}));
  expect_error(ErrorKind::ShapeMismatch, "op: shapes (2, 3) and (2,) do not broadcast",
               [] { broadcast_shapes("op", {2, 3}, {2}); });
  expect_error(ErrorKind::ShapeMismatch, "do not broadcast",
               [] { broadcast_shapes("op", {0}, {2}); });
}

}  // namespace
}  // namespace tl
