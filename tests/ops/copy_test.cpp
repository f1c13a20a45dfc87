// Copies between layouts, dtypes and devices.
#include "tl/ops/copy.h"

#include <algorithm>
#include <limits>

#include "ops/conformance.h"
#include "tl/runtime/label.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

using namespace test;

class Copy : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Copy);

const Shape kShapes[] = {{},
                         {0},
                         {1},
                         {7},
                         {3, 5},
                         {4, 0, 2},
                         {2, 3, 4},
                         {33, 65},
                         {2, 1, 3, 2, 2},
                         {40, 3, 70},
                         {130, 2, 2, 66}};

TEST_P(Copy, ContiguousKeepsTheElementsOfEveryLayout) {
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : kShapes) {
      const Host values = uniform_for(dtype, shape, -100, 100, 1);
      for (const Arrangement how : kArrangements) {
        const Tensor x = arrange(values, dtype, how, device());
        const Tensor y = copy(x);
        EXPECT_TRUE(y.is_contiguous());
        EXPECT_FALSE(y.shares_memory_with(x));
        expect_close("copy", y, dtype, values, {0}, describe("copy", dtype, shape, how));
      }
    }
  }
}

TEST_P(Copy, EveryOrderOfDimensionsIsCopiedRight) {
  const Shape shape{20, 3, 18, 33};
  const Host values = uniform(shape, 0, 1, 8);
  for (const DType dtype : {DType::U8, DType::F16, DType::F32, DType::F64}) {
    const Tensor x = contiguous_on(values, dtype, device());
    const Host from = host_of(x);
    for (const Dims& order : {Dims{0, 1, 3, 2}, Dims{3, 1, 2, 0}, Dims{1, 0, 3, 2},
                              Dims{2, 3, 0, 1}, Dims{3, 2, 1, 0}, Dims{0, 2, 1, 3}}) {
      const Tensor y = x.permute(order);
      Host want{y.shape(), {}};
      const Shape& s = y.shape();
      for (std::int64_t a = 0; a < s[0]; ++a) {
        for (std::int64_t b = 0; b < s[1]; ++b) {
          for (std::int64_t c = 0; c < s[2]; ++c) {
            for (std::int64_t d = 0; d < s[3]; ++d) {
              want.values.push_back(
                  from.values[static_cast<std::size_t>(a * y.strides()[0] + b * y.strides()[1] +
                                                       c * y.strides()[2] + d * y.strides()[3])]);
            }
          }
        }
      }
      expect_close("copy", copy(y), dtype, want, {0}, join(dtype, " ", order));
    }
  }
}

TEST_P(Copy, ContiguousSharesWhatIsContiguous) {
  const Tensor x = contiguous_on(uniform({4, 5}, 0, 1, 2), DType::F32, device());
  EXPECT_TRUE(contiguous(x).shares_memory_with(x));
  EXPECT_TRUE(contiguous(x.narrow(0, 1, 2)).shares_memory_with(x));
  EXPECT_FALSE(contiguous(x.t()).shares_memory_with(x));
}

TEST_P(Copy, ConvertsEveryPairOfDtypesFromEveryLayout) {
  const Host values = uniform({5, 9}, 0, 100, 3);
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      const Host start = rounded(values, from);
      const Host want = from == to ? start : rounded(start, to);
      for (const Arrangement how : kArrangements) {
        const Tensor y = to_dtype(arrange(values, from, how, device()), to);
        expect_close("to_dtype", y, to, want, {0}, join(from, " to ", to));
      }
    }
  }
}

TEST_P(Copy, AssignsIntoAnyPartAndOnlyThere) {
  for (const DType dtype : kDTypes) {
    const Host before = uniform_for(dtype, {6, 7}, 0, 50, 4);
    const Host part = uniform_for(dtype, {3, 2}, 50, 100, 5);
    Tensor x = contiguous_on(before, dtype, device());
    const Tensor sibling = x;
    assign_at(x, x.narrow(0, 2, 3).narrow(1, 4, 2).layout(), contiguous_on(part, dtype, device()));
    Host want = before;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 2; ++j) want.values[(i + 2) * 7 + j + 4] = part.values[i * 2 + j];
    }
    expect_close("assign", x, dtype, want, {0});
    expect_close("assign", sibling, dtype, before, {0});
    fill_at(x, x.t().narrow(0, 0, 1).layout(), 1);
    for (std::size_t i = 0; i < 6; ++i) want.values[i * 7] = 1;
    expect_close("fill", x, dtype, want, {0});
  }
}

TEST_P(Copy, AssignReadsTheOldValuesOfASharedSource) {
  Tensor x = contiguous_on({{3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}, DType::F32, device());
  assign(x, x.t());
  expect_close("assign", x, DType::F32, {{3, 3}, {1, 4, 7, 2, 5, 8, 3, 6, 9}}, {0});
}

std::uint64_t live_bytes(const Device& device) {
  for (const DeviceMemoryReport& each : memory_report().devices) {
    if (each.location == device.location()) return each.device.live_bytes;
  }
  return 0;
}

TEST_P(Copy, AWriteOfASharedViewTakesMemoryForTheViewAlone) {
  const Host values = uniform({64, 64}, 0, 1, 9);
  const Host rows = uniform({2, 64}, 1, 2, 10);
  const Tensor x = contiguous_on(values, DType::F32, device());
  const Tensor source = contiguous_on(rows, DType::F32, device());
  const std::uint64_t before = live_bytes(device());
  const std::uint64_t copies = device().driver_calls().device_copies;
  constexpr std::uint64_t kRow = 64 * sizeof(float);
  {
    Tensor view = x.narrow(0, 3, 2);
    assign(view, source);
    EXPECT_EQ(live_bytes(device()) - before, 2 * kRow);
    expect_close("assign", view, DType::F32, rounded(rows, DType::F32), {0});
    Tensor columns = x.narrow(1, 5, 2);
    assign(columns, source.t());
    EXPECT_EQ(live_bytes(device()) - before, 4 * kRow);
    EXPECT_TRUE(columns.is_contiguous());
    expect_equal("assign", columns, source.t());
    Tensor column = x.narrow(1, 5, 1);
    fill(column, 7);
    EXPECT_EQ(live_bytes(device()) - before, 5 * kRow);
    expect_close("fill", column, DType::F32, {{64, 1}, std::vector<double>(64, 7)}, {0});
  }
  EXPECT_EQ(live_bytes(device()), before);
  EXPECT_EQ(device().driver_calls().device_copies, copies);  // nothing old survives
  expect_close("assign", x, DType::F32, rounded(values, DType::F32), {0});
}

TEST_P(Copy, AWriteOfAPartOfASharedViewKeepsTheRestOfTheViewAlone) {
  const Host values = rounded(uniform({64, 64}, 0, 1, 11), DType::F32);
  const Tensor x = contiguous_on(values, DType::F32, device());
  const std::uint64_t before = live_bytes(device());
  Tensor view = x.narrow(0, 3, 2);
  fill_at(view, view.narrow(0, 1, 1).narrow(1, 2, 3).layout(), 7);
  EXPECT_EQ(live_bytes(device()) - before, 2 * 64 * sizeof(float));
  Host want{{2, 64}, {values.values.begin() + 3 * 64, values.values.begin() + 5 * 64}};
  for (std::size_t i = 66; i < 69; ++i) want.values[i] = 7;
  expect_close("fill", view, DType::F32, want, {0});
  assign_at(view, view.get(0).layout(), view.get(1));
  std::copy_n(want.values.begin() + 64, 64, want.values.begin());
  expect_close("assign", view, DType::F32, want, {0});
  EXPECT_EQ(live_bytes(device()) - before, 2 * 64 * sizeof(float));
  expect_close("assign", x, DType::F32, values, {0});
}

TEST_P(Copy, AWriteGivesABroadcastTensorAPlaceForEveryElement) {
  Tensor x = Tensor::zeros({1, 3}, DType::F32, device()).broadcast_as({2, 3});
  assign(x, Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}, device()));
  expect_close("assign", x, DType::F32, {{2, 3}, {1, 2, 3, 4, 5, 6}}, {0});
}

TEST_P(Copy, DetachedMemoryKeepsItsLabel) {
  Tensor x, column;
  {
    const LabelScope weights("weights");
    x = Tensor::zeros({4, 4}, DType::F32, device());
  }
  column = x.narrow(1, 0, 1);
  fill(column, 1);
  EXPECT_EQ(column.memory().label(), "weights");
}

TEST_P(Copy, APartThatIsNoneIsRefused) {
  const Tensor parent = Tensor::zeros({6, 4}, DType::F32, device());
  Tensor x = parent.narrow(0, 2, 2);
  expect_error(ErrorKind::BadArgument, "fill: shape (2, 4)",
               [&] { fill_at(x, parent.narrow(0, 1, 2).layout(), 1); });
  expect_error(ErrorKind::BadArgument, "assign: shape (2, 4)",
               [&] { assign_at(x, parent.narrow(0, 3, 2).layout(), x); });
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect_error(ErrorKind::BadArgument, "fill: shape",
               [&] { fill_at(x, Layout({2, 2}, {most, most}, 8), 1); });
  expect_error(ErrorKind::BadArgument, "fill: shape",
               [&] { fill_at(x, Layout({2}, {1}, -most), 1); });
  fill_at(x, x.narrow(0, 2, 0).layout(), 1);
  expect_close("fill", x, DType::F32, {{2, 4}, std::vector<double>(8)}, {0});
}

TEST_P(Copy, ReshapesAsAViewWhereStridesAllowIt) {
  const Tensor x = contiguous_on(uniform({4, 6}, 0, 1, 6), DType::F32, device());
  EXPECT_TRUE(reshape(x.narrow(1, 0, 4), {4, 2, 2}).shares_memory_with(x));
  EXPECT_FALSE(reshape(x.t(), {24}).shares_memory_with(x));
  EXPECT_EQ(reshape(x, {2, -1}).shape(), (Shape{2, 12}));
  expect_error(ErrorKind::ShapeMismatch, "reshape: shape (5, 5) has 25 elements, and there are 24",
               [&] { reshape(x, {5, 5}); });
}

TEST_P(Copy, FlattensAnyRunOfDimensions) {
  const Tensor x = contiguous_on(uniform({2, 3, 4, 5}, 0, 1, 9), DType::F32, device());
  EXPECT_EQ(flatten(x).shape(), (Shape{120}));
  EXPECT_EQ(flatten(x, 1).shape(), (Shape{2, 60}));
  EXPECT_EQ(flatten(x, 0, -2).shape(), (Shape{24, 5}));
  EXPECT_EQ(flatten(x, 1, 2).shape(), (Shape{2, 12, 5}));
  EXPECT_TRUE(flatten(x, 1, 2).shares_memory_with(x));
  EXPECT_EQ(flatten(x, 2, 1).shape(), x.shape());
  EXPECT_EQ(flatten(x.get(0).get(0).get(0).get(0)).shape(), (Shape{1}));
  expect_equal("flatten", flatten(x.transpose(1, 2), 1, 2), flatten(copy(x.transpose(1, 2)), 1, 2));
  EXPECT_EQ(flatten(Tensor::zeros({2, 0, 3}, DType::F32, device()), 1).shape(), (Shape{2, 0}));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect_error(ErrorKind::Overflow, "flatten: shape",
               [&] { flatten(Tensor::zeros({0, most, 2}, DType::F32, device()), 1); });
}

TEST_P(Copy, ASourceInsideALargerTensorIsCopiedToItsEndAndNoFurther) {
  for (const DType dtype : kDTypes) {
    const Host all = uniform_for(dtype, {9, 5}, 0, 50, 10);
    const Host before = uniform_for(dtype, {7, 5}, 50, 100, 11);
    Tensor x = contiguous_on(before, dtype, device());
    // Rows 2 and 3 of a tensor that goes on: contiguous, with elements behind them.
    assign_at(x, x.narrow(0, 1, 2).layout(), contiguous_on(all, dtype, device()).narrow(0, 2, 2));
    Host want = before;
    for (std::size_t i = 0; i < 10; ++i) want.values[5 + i] = all.values[10 + i];
    expect_close("assign", x, dtype, want, {0});
  }
}

TEST_P(Copy, FillRefusesANumberTheDtypeHasNot) {
  Tensor x = Tensor::from<std::int32_t>({1, 2}, {2}, device());
  expect_error(ErrorKind::BadArgument, "fill: 0.5 is not a whole number, and the tensor is i32",
               [&] { fill(x, 0.5); });
  EXPECT_EQ(x.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2}));
  fill(x, 3.0);
  EXPECT_EQ(x.to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, 3}));
}

TEST_P(Copy, MovesOnlyWhatAViewAddresses) {
  const Host values = uniform({64, 64}, 0, 1, 7);
  const Tensor x = contiguous_on(values, DType::F32, Device::cpu());
  const Tensor moved = to(x.narrow(0, 3, 2), device());
  EXPECT_EQ(moved.location(), device().location());
  if (!device().is_cpu()) {
    EXPECT_EQ(moved.memory().bytes(), 2 * 64 * sizeof(float));
  }
  const Tensor column = to(to(x, device()).narrow(1, 5, 1), Device::cpu());
  const Host back = host_of(column);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(back.values[i], rounded({{1}, {values.values[i * 64 + 5]}}, DType::F32).values[0]);
  }
}

}  // namespace
}  // namespace tl
