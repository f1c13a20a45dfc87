// Tensors as values: making them, views, what a write changes, and reading them back.
#include "tl/tensor/tensor.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "ops/conformance.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

using namespace test;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

class Tensors : public OnEveryDevice {
 protected:
  template <class T = float>
  Tensor counting(const Shape& shape) const {
    std::vector<T> values(static_cast<std::size_t>(element_count("counting", shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i);
    return Tensor::from(values, shape, device());
  }
};
TL_ON_EVERY_DEVICE(Tensors);

using Floats = std::vector<float>;

// ---- making

TEST_P(Tensors, KeepTheValuesTheyAreMadeFrom) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, -1}, device());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.dtype(), DType::F32);
  EXPECT_EQ(x.location(), device().location());
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Tensor::from(std::vector<std::int16_t>{7, 8}, device()).shape(), (Shape{2}));
  EXPECT_EQ(Tensor::from(std::vector<float>{}, device()).shape(), (Shape{0}));
  EXPECT_EQ(Tensor::from<double>({2.5}, {}, device()).item<double>(), 2.5);
}

TEST_P(Tensors, AreMadeFromVectorsOfVectorsAndReadBackAsThem) {
  using Rows = std::vector<std::vector<float>>;
  using Planes = std::vector<Rows>;
  const Rows rows{{1, 2, 3}, {4, 5, 6}};
  const Tensor x = Tensor::from(rows, device());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.to_vector2<float>(), rows);
  EXPECT_EQ(x.t().to_vector2<float>(), (Rows{{1, 4}, {2, 5}, {3, 6}}));
  const Planes planes{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}};
  const Tensor y = Tensor::from(planes, device());
  EXPECT_EQ(y.shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(y.to_vector3<float>(), planes);
  EXPECT_EQ(Tensor::from(std::vector<Planes>{planes, planes}, device()).shape(),
            (Shape{2, 3, 2, 2}));
  EXPECT_EQ(Tensor::from(Rows{}, device()).shape(), (Shape{0, 0}));
  EXPECT_EQ(Tensor::from(Rows{{}, {}}, device()).shape(), (Shape{2, 0}));
  EXPECT_EQ(Tensor::from(Rows{{}, {}}, device()).to_vector2<float>(), (Rows{{}, {}}));
  expect_error(ErrorKind::ShapeMismatch, "tensor: a row has 1 entries, the first 2",
               [&] { Tensor::from(Rows{{1, 2}, {3}}, device()); });
  expect_error(ErrorKind::ShapeMismatch, "tensor: a row has 2 entries, the first 0",
               [&] { Tensor::from(Planes{{}, {{1}, {2}}}, device()); });
  expect_error(ErrorKind::ShapeMismatch, "to_vector2: needs 2 dimensions, and shape (3, 2, 2) has",
               [&] { y.to_vector2<float>(); });
  expect_error(ErrorKind::ShapeMismatch, "to_vector3", [&] { x.to_vector3<float>(); });
  expect_error(ErrorKind::DTypeMismatch, "the tensor is f32", [&] { x.to_vector2<double>(); });
}

TEST_P(Tensors, ZerosAreZeroInEveryDtype) {
  for (const DType dtype : kDTypes) {
    const Host host = host_of(Tensor::zeros({3, 5}, dtype, device()));
    for (const double value : host.values) EXPECT_EQ(value, 0) << dtype;
  }
}

TEST_P(Tensors, RefuseValuesThatDoNotFillTheShape) {
  expect_error(ErrorKind::ShapeMismatch, "tensor: shape (2, 2) has 4 elements, and there are 3",
               [&] { Tensor::from<float>({1, 2, 3}, {2, 2}, device()); });
  expect_error(ErrorKind::ShapeMismatch, "no size in place of -1",
               [&] { Tensor::from<float>({1, 2, 3}, {2, -1}, device()); });
  expect_error(ErrorKind::BadArgument, "negative",
               [&] { Tensor::zeros({2, -1}, DType::F32, device()); });
  expect_error(ErrorKind::Overflow, "tensor", [&] {
    Tensor::zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}, DType::F32, device());
  });
  expect_error(ErrorKind::Overflow, "tensor",
               [&] { Tensor::zeros({std::int64_t{1} << 62}, DType::F64, device()); });
  const std::byte bytes[7] = {};
  expect_error(ErrorKind::SizeMismatch, "tensor: 7 bytes do not divide into elements of f32",
               [&] { Tensor::from_bytes(bytes, DType::F32, {-1}, device()); });
}

TEST_P(Tensors, RefuseMemoryThatIsTooSmallForTheLayout) {
  const RawMemory memory(device(), 24);
  EXPECT_EQ(Tensor::from_memory(memory, DType::F32, Layout({2, 3})).count(), 6);
  EXPECT_EQ(Tensor::from_memory(memory, DType::F32, Layout({3, 2}, {1, 3}, 0)).count(), 6);
  EXPECT_EQ(Tensor::from_memory(memory, DType::F32, Layout({0}, {1}, 100)).count(), 0);
  for (const Layout& layout :
       {Layout({7}), Layout({6}, {1}, 1), Layout({6}, {1}, -1), Layout({2}, {-1}, 3),
        Layout({2}, {kMost}, 0), Layout({kMost, kMost}, {0, 0}, 0), Layout({2, 2}, {1}, 0)}) {
    expect_error(ErrorKind::SizeMismatch, "reaches outside 24 bytes",
                 [&] { Tensor::from_memory(memory, DType::F32, layout); });
  }
}

TEST(TensorDefaults, ATensorOfNothingIsOnTheCpu) {
  const Tensor x;
  EXPECT_EQ(x.shape(), (Shape{0}));
  EXPECT_TRUE(x.empty());
  EXPECT_TRUE(x.device().is_cpu());
  EXPECT_EQ(x.to_vector<float>(), Floats{});
  EXPECT_EQ(x.size_bytes(), 0u);
}

TEST_P(Tensors, WithoutElementsWorkEverywhere) {
  const Tensor x = Tensor::zeros({2, 0, 3}, DType::I32, device());
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.t().shape(), (Shape{2, 3, 0}));
  EXPECT_TRUE(x.t().to_vector<std::int32_t>().empty());
  EXPECT_EQ(x.narrow(0, 2, 0).shape(), (Shape{0, 0, 3}));
  EXPECT_EQ(x.view({0, 7}).shape(), (Shape{0, 7}));
  EXPECT_EQ(x.broadcast_left({4}).shape(), (Shape{4, 2, 0, 3}));
  EXPECT_EQ(x.split(1, 1).size(), 0u);
  EXPECT_EQ(x.chunk(3, 1).size(), 0u);
  EXPECT_EQ(Tensor::zeros({0, kMost, kMost}, DType::F64, device()).count(), 0);
}

// ---- asking

TEST_P(Tensors, AnswerForADimensionFromEitherEnd) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(x.dim(1), 3);
  EXPECT_EQ(x.dim(-2), 2);
  expect_error(ErrorKind::BadArgument, "dim: dim 2 is outside shape (2, 3)", [&] { x.dim(2); });
}

TEST_P(Tensors, UnpackTheirSizesWhenTheRankIsRight) {
  const auto [planes, rows, columns] = counting({4, 2, 3}).dims<3>();
  EXPECT_EQ(planes, 4);
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(columns, 3);
  EXPECT_TRUE(counting({}).dims<0>().empty());
  expect_error(ErrorKind::ShapeMismatch, "dims: needs 2 dimensions, and shape (4, 2, 3) has 3",
               [&] { counting({4, 2, 3}).dims<2>(); });
}

TEST_P(Tensors, ReadsCheckTheDtypeAndTheCount) {
  const Tensor x = counting({2, 2});
  expect_error(ErrorKind::DTypeMismatch, "to_vector: the tensor is f32, not f64",
               [&] { x.to_vector<double>(); });
  expect_error(ErrorKind::ShapeMismatch, "item: needs one element, and shape (2, 2) has 4",
               [&] { x.item<float>(); });
  expect_error(ErrorKind::DTypeMismatch, "item: the tensor is f32, not i64",
               [&] { x.get(0).get(0).item<std::int64_t>(); });
  std::byte few[15];
  expect_error(ErrorKind::SizeMismatch, "read_bytes", [&] { x.read_bytes(few); });
}

TEST_P(Tensors, GiveTheirOneElementInAnyDtype) {
  for (const DType dtype : kDTypes) {
    const Tensor x = to_dtype(Tensor::from<float>({0, 1, 0}, {3}, device()), dtype).get(1);
    EXPECT_EQ(x.item().real(), 1) << dtype;
    EXPECT_EQ(x.item().is_integer(), !is_float(dtype)) << dtype;
  }
  const std::uint8_t seven[] = {7};  // as a bool it is neither of the two
  EXPECT_EQ(Tensor::from_bytes(std::as_bytes(std::span(seven)), DType::Bool, {1}, device())
                .item()
                .integer(),
            1);
  EXPECT_TRUE(
      Tensor::from_bytes(std::as_bytes(std::span(seven)), DType::Bool, {1}, device()).item<bool>());
  expect_error(ErrorKind::DTypeMismatch, "item: the tensor is u8, not bool",
               [&] { Tensor::from<std::uint8_t>({1}, {1}, device()).item<bool>(); });
}

// ---- views

TEST_P(Tensors, ViewsShareMemoryAndShowTheRightElements) {
  const Tensor x = counting({3, 4});
  const auto check = [&](const Tensor& view, const Shape& shape, const Floats& values) {
    EXPECT_TRUE(view.shares_memory_with(x));
    EXPECT_EQ(view.shape(), shape);
    EXPECT_EQ(view.to_vector<float>(), values);
  };
  check(x.t(), {4, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  check(x.transpose(-1, 0), {4, 3}, x.t().to_vector<float>());
  check(x.transpose(1, 1), {3, 4}, x.to_vector<float>());
  check(x.narrow(1, 1, 2), {3, 2}, {1, 2, 5, 6, 9, 10});
  check(x.narrow(-2, 2, 1), {1, 4}, {8, 9, 10, 11});
  check(x.slice(1, 0, 4, 3), {3, 2}, {0, 3, 4, 7, 8, 11});
  check(x.slice(0, -2, 3), {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11});
  check(x.slice(0, -3, -1, 2), {1, 4}, {0, 1, 2, 3});
  check(x.get(1), {4}, {4, 5, 6, 7});
  check(x.get(-1), {4}, {8, 9, 10, 11});
  check(x.get_on_dim(1, -2), {3}, {2, 6, 10});
  check(x.unsqueeze(1), {3, 1, 4}, x.to_vector<float>());
  check(x.unsqueeze(-1).squeeze(-1), {3, 4}, x.to_vector<float>());
  check(x.squeeze(0), {3, 4}, x.to_vector<float>());
  check(x.get(0).broadcast_as({2, 4}), {2, 4}, {0, 1, 2, 3, 0, 1, 2, 3});
  check(x.get(0).get(3).expand({3}), {3}, {3, 3, 3});
  check(x.narrow(0, 0, 1).broadcast_left({2}), {2, 1, 4}, {0, 1, 2, 3, 0, 1, 2, 3});
  check(x.get(0).unfold(0, 2, 1), {3, 2}, {0, 1, 1, 2, 2, 3});
  check(x.unfold(1, 3, 2), {3, 1, 3}, {0, 1, 2, 4, 5, 6, 8, 9, 10});
  check(x.diagonal(), {3}, {0, 5, 10});
  check(x.diagonal(1), {3}, {1, 6, 11});
  check(x.diagonal(-2), {1}, {8});
  check(x.diagonal(0, 1, 0), {3}, {0, 5, 10});
  check(x.view({2, 6}), {2, 6}, x.to_vector<float>());
  check(x.view({-1}), {12}, x.to_vector<float>());
  check(x.narrow(1, 0, 2).view({3, 1, 2}), {3, 1, 2}, {0, 1, 4, 5, 8, 9});
  const Tensor y = counting({2, 3, 4});
  EXPECT_EQ(y.permute({2, 0, 1}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(y.permute({-1, 0, -2}).layout(), y.permute({2, 0, 1}).layout());
  EXPECT_EQ(y.move_dim(0, 2).shape(), (Shape{3, 4, 2}));
  EXPECT_EQ(y.move_dim(-1, 0).layout(), y.permute({2, 0, 1}).layout());
  EXPECT_EQ(x.diagonal(4).count(), 0);
  EXPECT_EQ(x.slice(0, 2, 1).shape(), (Shape{0, 4}));
  EXPECT_EQ(x.slice(0, 0, 3, kMost).shape(), (Shape{1, 4}));
  EXPECT_EQ(x.reinterpret(DType::U32).dtype(), DType::U32);
}

TEST_P(Tensors, PiecesCoverADimensionOnce) {
  const Tensor x = counting({7, 2});
  const auto sizes = [](const std::vector<Tensor>& pieces) {
    std::vector<std::int64_t> out;
    for (const Tensor& piece : pieces) out.push_back(piece.dim(0));
    return out;
  };
  EXPECT_EQ(sizes(x.chunk(3, 0)), (std::vector<std::int64_t>{3, 2, 2}));
  EXPECT_EQ(sizes(x.chunk(10, 0)), std::vector<std::int64_t>(7, 1));
  EXPECT_EQ(sizes(x.split(3, -2)), (std::vector<std::int64_t>{3, 3, 1}));
  EXPECT_EQ(sizes(x.split(kMost, 0)), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(x.chunk(3, 0)[1].to_vector<float>(), (Floats{6, 7, 8, 9}));
  EXPECT_EQ(x.split(3, 0)[2].to_vector<float>(), (Floats{12, 13}));
}

TEST_P(Tensors, RefuseViewsThatDoNotExist) {
  const Tensor x = counting({3, 4});
  const auto refuses = [&](const std::string& text, auto&& action) {
    expect_error(ErrorKind::BadArgument, text, action);
  };
  refuses("transpose: dim 2 is outside shape (3, 4)", [&] { x.transpose(0, 2); });
  refuses("t: shape (4,) has fewer than two dimensions", [&] { x.get(0).t(); });
  refuses("permute: order (0,) does not name every dimension of shape (3, 4)",
          [&] { x.permute({0}); });
  refuses("permute: dims (0, 0) name a dimension", [&] { x.permute({0, 0}); });
  refuses("narrow: elements 2 to 2 + 2 are outside dimension 0 of shape (3, 4)",
          [&] { x.narrow(0, 2, 2); });
  refuses("narrow", [&] { x.narrow(0, -1, 1); });
  refuses("narrow", [&] { x.narrow(0, 1, -1); });
  refuses("narrow", [&] { x.narrow(0, 1, kMost); });
  refuses("narrow", [&] { x.narrow(0, kMost, 1); });
  refuses("slice: index 4 is outside dimension 0 of shape (3, 4)", [&] { x.slice(0, 0, 4); });
  refuses("slice: index -4", [&] { x.slice(0, -4, 1); });
  refuses("slice: a step of 0 is not positive", [&] { x.slice(0, 0, 3, 0); });
  refuses("slice: a step of -1 is not positive", [&] { x.slice(0, 0, 3, -1); });
  refuses("get: index 3 is outside dimension 0 of shape (3, 4)", [&] { x.get(3); });
  refuses("get: index -4", [&] { x.get(-4); });
  refuses("get: dim 0 is outside shape ()", [&] { x.get(0).get(0).get(0); });
  refuses("squeeze: dim 5", [&] { x.squeeze(5); });
  refuses("unsqueeze: no dimension can be inserted at 3", [&] { x.unsqueeze(3); });
  refuses("unfold: windows of 5 with step 1 do not fit dimension 1 of shape (3, 4)",
          [&] { x.unfold(1, 5, 1); });
  refuses("unfold", [&] { x.unfold(1, 0, 1); });
  refuses("unfold", [&] { x.unfold(1, 2, 0); });
  refuses("diagonal: dims 0 and -2 are the same", [&] { x.diagonal(0, 0, -2); });
  refuses("chunk: cannot cut into 0 pieces", [&] { x.chunk(0, 0); });
  refuses("split: pieces of size 0", [&] { x.split(0, 0); });
  refuses("view: shape (4, 3) with strides (1, 4) cannot be seen as (12,) without a copy",
          [&] { x.t().view({12}); });
  expect_error(ErrorKind::ShapeMismatch, "broadcast_as: shape (3, 4) does not broadcast to (4,)",
               [&] { x.broadcast_as({4}); });
  expect_error(ErrorKind::ShapeMismatch, "broadcast_as", [&] { x.broadcast_as({6, 4}); });
  expect_error(ErrorKind::ShapeMismatch, "view: shape (5, 5) has 25 elements, and there are 12",
               [&] { x.view({5, 5}); });
  expect_error(ErrorKind::DTypeMismatch, "reinterpret: f32 and f64 have elements of different",
               [&] { x.reinterpret(DType::F64); });
  refuses("broadcast_as: shape (-1, 4) has a negative size", [&] { x.broadcast_as({-1, 4}); });
}

TEST_P(Tensors, HaveAtMostEightDimensions) {
  const Tensor x = counting({1, 1, 1, 1, 1, 1, 1, 2});
  EXPECT_EQ(x.rank(), 8);
  expect_error(ErrorKind::BadArgument, "9 dimensions", [&] { x.unsqueeze(0); });
  expect_error(ErrorKind::BadArgument, "9 dimensions", [&] { x.unfold(7, 1, 1); });
  expect_error(ErrorKind::BadArgument, "9 dimensions", [&] { x.broadcast_left({3}); });
  EXPECT_EQ(x.permute({7, 6, 5, 4, 3, 2, 1, 0}).to_vector<float>(), (Floats{0, 1}));
}

// ---- values

TEST_P(Tensors, AWriteIsSeenByNoOther) {
  Tensor x = counting({3, 4});
  const Floats before = x.to_vector<float>();
  Tensor clone = x;
  Tensor view = x.narrow(0, 1, 2);
  const Tensor column = x.t().get(2);
  fill_at(x, x.get(1).layout(), 100);
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1, 2, 3, 100, 100, 100, 100, 8, 9, 10, 11}));
  EXPECT_EQ(clone.to_vector<float>(), before);
  EXPECT_EQ(view.to_vector<float>(), (Floats{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(column.to_vector<float>(), (Floats{2, 6, 10}));
  fill(view, -1);
  EXPECT_EQ(view.to_vector<float>(), Floats(8, -1.0f));
  EXPECT_EQ(clone.to_vector<float>(), before);
  fill(clone, 7);
  EXPECT_EQ(column.to_vector<float>(), (Floats{2, 6, 10}));
  EXPECT_FALSE(clone.shares_memory_with(x));
  EXPECT_FALSE(view.shares_memory_with(clone));
}

TEST_P(Tensors, RandomWritesAmongSharersChangeOnlyTheOneWritten) {
  std::mt19937_64 random(fuzz_seed());
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> tensors{counting({4, 6})};
    std::vector<Floats> models{tensors[0].to_vector<float>()};
    for (int step = 0; step < 30; ++step) {
      const auto i = static_cast<std::size_t>(below(static_cast<std::int64_t>(tensors.size())));
      Tensor& x = tensors[i];
      switch (below(4)) {
        case 0:
          tensors.push_back(x);
          break;
        case 1:
          tensors.push_back(x.rank() > 1 ? x.t() : x);
          break;
        case 2: {
          if (x.rank() == 0 || x.dim(0) == 0) continue;
          const std::int64_t start = below(x.dim(0));
          tensors.push_back(x.narrow(0, start, 1 + below(x.dim(0) - start)));
          break;
        }
        default:
          fill(x, 1000 + step);
          models[i].assign(models[i].size(), static_cast<float>(1000 + step));
          continue;
      }
      models.push_back(tensors.back().to_vector<float>());
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_EQ(tensors[i].to_vector<float>(), models[i])
          << "tensor " << i << ", round " << round << ", seed " << fuzz_seed();
    }
  }
}

TEST_P(Tensors, AnUnsharedWriteStaysInPlace) {
  Tensor x = counting({64});
  const std::uint64_t generation = x.memory().generation();
  const DriverCalls before = device().driver_calls();
  fill(x, 3);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.device_copies, before.device_copies);
#if !defined(TL_STRESS)
  EXPECT_EQ(x.memory().generation(), generation);
#endif
}

TEST_P(Tensors, AWholeWriteToASharedTensorCopiesNothing) {
  Tensor x = counting({64});
  const Tensor sibling = x;
  const DriverCalls before = device().driver_calls();
  fill(x, 3);
  EXPECT_EQ(device().driver_calls().device_copies, before.device_copies);
  EXPECT_EQ(sibling.to_vector<float>()[5], 5);
}

// ---- reading

TEST_P(Tensors, ReadBackFromEveryLayout) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 300; ++round) {
    const Shape shape = random_shape(random, static_cast<int>(random() % 5), 5, true);
    const DType dtype = kDTypes[random() % kDTypes.size()];
    const Host values = uniform_for(dtype, shape, 0, 100, random());
    for (const Arrangement how : kArrangements) {
      const Host got = host_of(arrange(values, dtype, how, device()));
      ASSERT_EQ(got.values, values.values) << shape << name(how);
    }
  }
}

TEST_P(Tensors, ReadOnlyWhatAViewWithWideGapsAddresses) {
  // 4 MiB; rows lie 16 KiB apart, planes 1 MiB.
  const Tensor x = counting<std::int32_t>({4, 64, 4096});
  const auto downloads = [&](const Tensor& view, const std::vector<std::int32_t>& wanted) {
    const std::uint64_t before = device().driver_calls().downloads;
    EXPECT_EQ(view.to_vector<std::int32_t>(), wanted);
    return device().driver_calls().downloads - before;
  };
  const std::int32_t plane = 64 * 4096;
  const bool gpu = device().is_gpu();
  // One element of each plane: a download each, and none for what lies between.
  const std::vector<std::int32_t> corner{5, plane + 5, 2 * plane + 5, 3 * plane + 5};
  EXPECT_EQ(downloads(x.get_on_dim(1, 0).get_on_dim(1, 5), corner), gpu ? 4u : 0u);
  // The same from a transposed view, where the planes are the last dimension.
  std::vector<std::int32_t> pairs;
  for (const std::int32_t column : {5, 6}) {
    for (std::int32_t p = 0; p < 4; ++p) pairs.push_back(p * plane + column);
  }
  EXPECT_EQ(downloads(x.get_on_dim(1, 0).narrow(1, 5, 2).t(), pairs), gpu ? 4u : 0u);
  // Small gaps travel along: a column of one plane is one download.
  EXPECT_EQ(x.get(1).get_on_dim(1, 7).to_vector<std::int32_t>()[63], plane + 63 * 4096 + 7);
  // A broadcast element is read once.
  EXPECT_LE(downloads(x.get(3).get(0).get(1).broadcast_as({3, 2}),
                      std::vector<std::int32_t>(6, 3 * plane + 1)),
            1u);
}

TEST_P(Tensors, ReadMoreThanIsStagedAtATime) {
  // 40 MiB of i16 seen through every second element, and transposed.
  const Tensor x = counting<std::int16_t>({5, 4 << 20});
  const std::vector<std::int16_t> got = x.slice(1, 1, 4 << 20, 2).t().to_vector<std::int16_t>();
  ASSERT_EQ(got.size(), std::size_t{5} * (2 << 20));
  for (std::size_t i = 0; i < got.size(); i += 977) {
    const std::size_t column = 2 * (i / 5) + 1, row = i % 5;
    ASSERT_EQ(got[i], static_cast<std::int16_t>(row * (4 << 20) + column)) << i;
  }
}

TEST_P(Tensors, ReadOverlappingWindows) {
  const Tensor x = counting({6});
  EXPECT_EQ(x.unfold(0, 3, 2).t().to_vector<float>(), (Floats{0, 2, 1, 3, 2, 4}));
}

// ---- scalars

TEST(Scalars, KeepWhatWasWritten) {
  EXPECT_TRUE(Scalar(3).is_integer());
  EXPECT_FALSE(Scalar(3.0).is_integer());
  EXPECT_TRUE(Scalar(3.0).is_integral());
  EXPECT_FALSE(Scalar(3.5).is_integral());
  EXPECT_FALSE(Scalar(1e19).is_integral());
  EXPECT_FALSE(Scalar(std::numeric_limits<double>::quiet_NaN()).is_integral());
  EXPECT_EQ(Scalar(kMost).integer(), kMost);
  EXPECT_EQ(Scalar(-4.0).integer(), -4);
  EXPECT_EQ(Scalar(half(1.5f)).real(), 1.5);
  EXPECT_EQ(Scalar(true).integer(), 1);
  EXPECT_EQ(Scalar(300).to<std::uint8_t>(), convert<std::uint8_t>(std::int64_t{300}));
  EXPECT_EQ(join(Scalar(3), " ", Scalar(2.5)), "3 2.5");
  // Beyond 63 bits: a number of about that size, not a negative one.
  const Scalar huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(huge.is_integral());
  EXPECT_EQ(huge.real(), 0x1p64);
  EXPECT_EQ(huge.to<float>(), 0x1p64F);
  EXPECT_EQ(Scalar(std::uint64_t{1} << 62).integer(), std::int64_t{1} << 62);
  expect_error(ErrorKind::BadArgument, "scalar: 0.5 is not an integer of 64 bits",
               [] { static_cast<void>(Scalar(0.5).integer()); });
}

}  // namespace
}  // namespace tl
