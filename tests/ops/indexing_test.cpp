// Picking, placing and adding by index, against plain loops over doubles.
#include "tl/ops/indexing.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"
#include "tl/base/thread_pool.h"
#include "tl/ops/copy.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Indexing : public OnEveryDevice {
 protected:
  // What an index that is out of range gives, wherever it is found.
  void expect_bad_index(const std::string& text, const std::function<void()>& action) const {
    expect_error(ErrorKind::InvalidIndex, text, [&] {
      action();
      device().synchronize();
    });
    // The device goes on.
    const Tensor x = contiguous_on({{3}, {1, 2, 3}}, DType::F32, device());
    const Tensor ids = contiguous_on({{2}, {2, 0}}, DType::I64, device());
    expect_close("index_select", index_select(x, 0, ids), DType::F32, {{2}, {3, 1}}, {0});
  }
};
TL_ON_EVERY_DEVICE(Indexing);

// ---- the reference

constexpr double kNothing = -1;  // stands for the sentinel

std::size_t flat(const Shape& shape, const Dims& at) {
  std::int64_t i = 0;
  for (int d = 0; d < shape.size(); ++d) i = i * shape[d] + at[d];
  return static_cast<std::size_t>(i);
}

// f(coordinates, row-major position)
template <class F>
void each(const Shape& shape, F&& f) {
  Dims at = Dims::repeated(shape.size(), 0);
  const std::int64_t count = element_count("each", shape);
  for (std::int64_t i = 0; i < count; ++i) {
    f(at, static_cast<std::size_t>(i));
    for (int d = shape.size() - 1; d >= 0; --d) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

Host gathered(const Host& x, int dim, const Host& ids) {
  Host out{ids.shape, std::vector<double>(ids.values.size())};
  each(ids.shape, [&](Dims at, std::size_t i) {
    if (ids.values[i] == kNothing) return;
    at[dim] = static_cast<std::int64_t>(ids.values[i]);
    out.values[i] = x.values[flat(x.shape, at)];
  });
  return out;
}

Host selected(const Host& x, int dim, const std::vector<double>& ids) {
  Shape shape = x.shape;
  shape[dim] = static_cast<std::int64_t>(ids.size());
  Host spread{shape, std::vector<double>(static_cast<std::size_t>(element_count("t", shape)))};
  each(shape, [&](const Dims& at, std::size_t i) {
    spread.values[i] = ids[static_cast<std::size_t>(at[dim])];
  });
  return gathered(x, dim, spread);
}

Host scattered(Host x, int dim, const Host& ids, const Host& src, bool add) {
  each(ids.shape, [&](Dims at, std::size_t i) {
    if (ids.values[i] == kNothing) return;
    at[dim] = static_cast<std::int64_t>(ids.values[i]);
    double& to = x.values[flat(x.shape, at)];
    to = add ? to + src.values[i] : src.values[i];
  });
  return x;
}

// The same indices for every line.
Host spread(const std::vector<double>& ids, const Shape& shape, int dim) {
  Host out{shape, std::vector<double>(static_cast<std::size_t>(element_count("t", shape)))};
  each(shape, [&](const Dims& at, std::size_t i) {
    out.values[i] = ids[static_cast<std::size_t>(at[dim])];
  });
  return out;
}

Host random_ids(const Shape& shape, std::int64_t size, std::uint64_t seed) {
  return uniform_for(DType::I64, shape, 0, static_cast<double>(size), seed);
}

// With the dtype's largest value for kNothing.
Tensor ids_on(const Host& ids, DType dtype, const Device& device) {
  return visit_dtype("ids", dtype, [&]<class T>() -> Tensor {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      std::vector<T> values;
      for (const double id : ids.values) {
        values.push_back(id == kNothing ? std::numeric_limits<T>::max() : static_cast<T>(id));
      }
      return Tensor::from(values, ids.shape, device);
    } else {
      return {};
    }
  });
}

// Sums of up to `terms` numbers of about 1: f32 and f64 may lose half a unit with each addition,
// the small floats round once.
Bound sum_bound(DType dtype, std::int64_t terms) {
  const bool rounds_once = size_of(dtype) < 4;
  return {rounds_once ? 1.0 : 1 + static_cast<double>(terms) / 2, 1};
}

// ---- picking

TEST_P(Indexing, IndexSelectPicksSlicesOfEveryDtypeAndLayout) {
  const Shape shapes[] = {{5}, {3, 4}, {2, 5, 3}, {3, 2, 8}, {4, 0, 2}, {2, 1, 3, 2}};
  int turn = 0;
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : shapes) {
      const Host x = uniform_for(dtype, shape, -50, 50, 1);
      for (int dim = 0; dim < shape.size(); ++dim) {
        if (shape[dim] == 0) continue;
        const Host ids = random_ids({7}, shape[dim], 2);
        for (const Arrangement how : kArrangements) {
          const DType id_dtype = kInts[static_cast<std::size_t>(turn++ % 5)];
          const Tensor got = index_select(arrange(x, dtype, how, device()), dim - shape.size(),
                                          arrange(ids, id_dtype, how, device()));
          EXPECT_TRUE(got.is_contiguous());
          expect_close("index_select", got, dtype, selected(x, dim, ids.values), {0},
                       describe("index_select", dtype, shape, how));
        }
      }
    }
  }
}

TEST_P(Indexing, EmbeddingTakesIndicesOfAnyShape) {
  for (const DType dtype : {DType::F32, DType::F16, DType::F8E4M3, DType::F64}) {
    // Rows of whole 16-byte pieces, of odd sizes, and longer than a block.
    for (const std::int64_t width : {1, 3, 8, 16, 30, 1100}) {
      const Host table = uniform_for(dtype, {9, width}, -2, 2, 3);
      for (const Shape& shape : {Shape{}, Shape{4}, Shape{2, 3}, Shape{2, 0}, Shape{2, 1, 3}}) {
        const Host ids = random_ids(shape, 9, 4);
        Host want{shape, {}};
        want.shape.push_back(width);
        for (const double id : ids.values) {
          const auto row = table.values.begin() + static_cast<std::ptrdiff_t>(id) * width;
          want.values.insert(want.values.end(), row, row + width);
        }
        for (const Arrangement how : kArrangements) {
          expect_close("embedding",
                       embedding(arrange(table, dtype, how, device()),
                                 arrange(ids, DType::U32, how, device())),
                       dtype, want, {0}, describe("embedding", dtype, table.shape, how));
        }
      }
    }
  }
}

TEST_P(Indexing, RowsThatStartOffAPieceOf16BytesAreMovedRight) {
  const Host all = uniform({6, 40}, 0, 1, 5);
  const Tensor whole = contiguous_on(all, DType::F32, device());
  const Tensor ids = contiguous_on({{3}, {5, 0, 2}}, DType::I64, device());
  for (std::int64_t start = 0; start < 6; ++start) {
    for (const std::int64_t length : {16, 20, 31}) {
      const Tensor x = whole.narrow(1, start, length);
      Host part{{6, length}, {}};
      for (std::int64_t r = 0; r < 6; ++r) {
        for (std::int64_t c = 0; c < length; ++c) {
          part.values.push_back(all.values[static_cast<std::size_t>(r * 40 + start + c)]);
        }
      }
      expect_close("index_select", index_select(x, 0, ids), DType::F32,
                   selected(rounded(part, DType::F32), 0, {5, 0, 2}), {0});
    }
  }
}

TEST_P(Indexing, RowsOfEveryWidthArePickedWhole) {
  for (const DType dtype : {DType::U8, DType::F16, DType::F32, DType::F64}) {
    for (const std::int64_t width : {1, 2, 3, 4, 7, 8, 16, 32, 33, 64, 100}) {
      const Host x = uniform_for(dtype, {3, 20, width}, 0, 9, 37);
      Host ids = random_ids({31}, 20, 38);
      ids.values[0] = ids.values[13] = ids.values[30] = kNothing;
      expect_close(
          "index_select",
          index_select(contiguous_on(x, dtype, device()), 1, ids_on(ids, DType::I16, device())),
          dtype, selected(x, 1, ids.values), {0}, join("rows of ", width, " ", dtype));
    }
  }
}

TEST_P(Indexing, GatherAgreesWithPlainLoopsForSmallerIndicesToo) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 120; ++round) {
    const int rank = 1 + static_cast<int>(random() % 4);
    const Shape shape = random_shape(random, rank, 5);
    const int dim = static_cast<int>(random() % static_cast<unsigned>(rank));
    Shape ids_shape = shape;
    for (int d = 0; d < rank; ++d) {
      if (random() % 2 == 0) ids_shape[d] = static_cast<std::int64_t>(random() % 6);
      if (d != dim) ids_shape[d] = std::min(ids_shape[d], shape[d]);
    }
    const DType dtype = kDTypes[random() % kDTypes.size()];
    const DType id_dtype = kInts[random() % 5];
    const Arrangement how = kArrangements[random() % 4], ids_how = kArrangements[random() % 4];
    const Host x = uniform_for(dtype, shape, -9, 9, random());
    const Host ids = random_ids(ids_shape, shape[dim], random());
    expect_close(
        "gather",
        gather(arrange(x, dtype, how, device()), dim, arrange(ids, id_dtype, ids_how, device())),
        dtype, gathered(x, dim, ids), {0},
        join(describe("gather", dtype, shape, how), " ids ", ids_shape, " ", name(ids_how), " dim ",
             dim));
  }
}

// Lines that a block keeps while it picks from them: whole vectors, and lines that begin off one.
TEST_P(Indexing, GatherFromWholeLinesAgreesWithPlainLoops) {
  for (const DType dtype : {DType::U8, DType::F16, DType::F32, DType::I64}) {
    for (const std::int64_t cut : {0, 1}) {
      const Host x = uniform_for(dtype, {2, 35, 700}, -9, 9, 50);
      Host ids = random_ids({2, 35, 1100}, 700 - cut, 51);
      for (std::size_t i = 0; i < ids.values.size(); i += 13) ids.values[i] = kNothing;
      Host from{{2, 35, 700 - cut}, {}};
      each(from.shape, [&](Dims at, std::size_t) {
        at[2] += cut;
        from.values.push_back(x.values[flat(x.shape, at)]);
      });
      const Tensor lines = contiguous_on(x, dtype, device()).narrow(2, cut, 700 - cut);
      expect_close("gather", gather(lines, 2, ids_on(ids, DType::I16, device())), dtype,
                   gathered(from, 2, ids), {0}, join(dtype, " from ", cut));
    }
  }
  const Tensor x = Tensor::zeros({64, 300}, DType::F32, device());
  Host bad = random_ids({64, 300}, 300, 52);
  bad.values[299] = 300;
  expect_bad_index("gather: index 300 is outside",
                   [&] { gather(x, 1, contiguous_on(bad, DType::I32, device())); });
}

// More than the caches of a simulated device hold: rows are then moved part by part.
TEST_P(Indexing, LargeResultsOfWholeRowsAgreeWithPlainLoops) {
  const Host x = uniform_for(DType::F32, {40, 2048}, -9, 9, 53);
  const Host ids = random_ids({290}, 40, 54);
  const Tensor on = contiguous_on(x, DType::F32, device());
  const Tensor ids_tensor = contiguous_on(ids, DType::I64, device());
  const Host want = selected(rounded(x, DType::F32), 0, ids.values);
  expect_close("index_select", index_select(on, 0, ids_tensor), DType::F32, want, {0});
  expect_close("embedding", embedding(on, ids_tensor.view({29, 10})).view({290, 2048}), DType::F32,
               want, {0});
}

TEST_P(Indexing, TheLargestIndexOfEveryDtypeMeansNothing) {
  const Host x = uniform({300, 3}, 1, 2, 6);  // 255 is an index here, but not for u8
  const Tensor on = contiguous_on(x, DType::F32, device());
  const Host want_x = rounded(x, DType::F32);
  for (const DType dtype : kInts) {
    const std::vector<double> some = {1, kNothing, 0, kNothing, 120};
    const Tensor ids = ids_on({{5}, some}, dtype, device());
    expect_close("index_select", index_select(on, 0, ids), DType::F32, selected(want_x, 0, some),
                 {0});
    expect_close("embedding", embedding(on, ids), DType::F32, selected(want_x, 0, some), {0});
    const Host each_ids = {{2, 3}, {kNothing, 2, 7, 0, kNothing, kNothing}};
    const Tensor lines = ids_on(each_ids, dtype, device());
    expect_close("gather", gather(on, 0, lines), DType::F32, gathered(want_x, 0, each_ids), {0});
    const Host src = {{2, 3}, {1, 2, 3, 4, 5, 6}};
    const Tensor src_on = contiguous_on(src, DType::F32, device());
    expect_close("scatter", scatter(on, 0, lines, src_on), DType::F32,
                 scattered(want_x, 0, each_ids, src, false), {0});
    expect_close("scatter_add", scatter_add(on, 0, lines, src_on), DType::F32,
                 scattered(want_x, 0, each_ids, src, true), {1, 1});
    const Host rows = uniform_for(DType::I32, {5, 3}, 0, 9, 7);
    expect_close("index_add", index_add(on, 0, ids, contiguous_on(rows, DType::F32, device())),
                 DType::F32, scattered(want_x, 0, spread(some, {5, 3}, 0), rows, true), {1, 1});
  }
}

TEST_P(Indexing, TakeAndTakeAlongFollowPositionsAndBroadcast) {
  const Host x = uniform_for(DType::I32, {3, 4}, 0, 100, 8);
  const Tensor on = arrange(x, DType::I32, Arrangement::Transposed, device());
  const Host flat_ids = {{2, 2}, {0, 11, 5, 6}};
  Host want{{2, 2}, {}};
  for (const double i : flat_ids.values) {
    want.values.push_back(x.values[static_cast<std::size_t>(i)]);
  }
  expect_close("take", take(on, contiguous_on(flat_ids, DType::U8, device())), DType::I32, want,
               {0});
  const Host column = {{3, 1}, {2, 0, 3}};
  expect_close("take_along", take_along(on, 1, contiguous_on(column, DType::I64, device())),
               DType::I32, gathered(x, 1, column), {0});
  const Host row = {{1, 2}, {3, 1}};
  Host both{{3, 2}, {3, 1, 3, 1, 3, 1}};
  expect_close("take_along", take_along(on, 1, contiguous_on(row, DType::I64, device())),
               DType::I32, gathered(x, 1, both), {0});
}

TEST_P(Indexing, EmptyAndScalarTensorsWork) {
  const Tensor none = contiguous_on({{0}, {}}, DType::I64, device());
  const Tensor x = contiguous_on(uniform({4, 3}, 0, 1, 9), DType::F32, device());
  EXPECT_EQ(index_select(x, 1, none).shape(), (Shape{4, 0}));
  EXPECT_EQ(embedding(x, none).shape(), (Shape{0, 3}));
  expect_equal("index_add", index_add(x, 0, none, x.narrow(0, 0, 0)), x);
  const Tensor empty = Tensor::zeros({0, 3}, DType::F32, device());
  EXPECT_EQ(index_select(empty, 1, contiguous_on({{2}, {0, 1}}, DType::I64, device())).shape(),
            (Shape{0, 2}));
  EXPECT_EQ(index_select(empty, 0, none).shape(), (Shape{0, 3}));
  // A dimension without elements has no valid index; nothing is still nothing.
  expect_close("index_select",
               index_select(empty, 0, ids_on({{1}, {kNothing}}, DType::U8, device())), DType::F32,
               {{1, 3}, {0, 0, 0}}, {0});
  const Tensor one = contiguous_on({{}, {5}}, DType::F32, device());
  const Tensor zero = contiguous_on({{}, {0}}, DType::I64, device());
  expect_close("gather", gather(one, 0, zero), DType::F32, {{}, {5}}, {0});
  expect_close("scatter_add", scatter_add(one, -1, zero, one), DType::F32, {{}, {10}}, {0});
  EXPECT_EQ(nonzero(one).shape(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(empty).shape(), (Shape{0, 2}));
}

// ---- placing

TEST_P(Indexing, ScatterLetsTheLastAlongTheDimensionStay) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 120; ++round) {
    const int rank = 1 + static_cast<int>(random() % 4);
    const Shape shape = random_shape(random, rank, 5);
    const int dim = static_cast<int>(random() % static_cast<unsigned>(rank));
    Shape ids_shape = shape;
    for (int d = 0; d < rank; ++d) {
      if (random() % 2 == 0) ids_shape[d] = static_cast<std::int64_t>(random() % 9);
      if (d != dim) ids_shape[d] = std::min(ids_shape[d], shape[d]);
    }
    const DType dtype = kDTypes[random() % kDTypes.size()];
    const DType id_dtype = kInts[random() % 5];
    const Arrangement how = kArrangements[random() % 4], ids_how = kArrangements[random() % 4];
    const Host x = uniform_for(dtype, shape, -9, 9, random());
    const Host src = uniform_for(dtype, ids_shape, -9, 9, random());
    const Host ids = random_ids(ids_shape, shape[dim], random());
    const std::string what = join(describe("scatter", dtype, shape, how), " ids ", ids_shape, " ",
                                  name(ids_how), " dim ", dim);
    const Tensor x_on = arrange(x, dtype, how, device());
    const Tensor ids_tensor = arrange(ids, id_dtype, ids_how, device());
    const Tensor src_on = arrange(src, dtype, kArrangements[random() % 4], device());
    expect_close("scatter", scatter(x_on, dim, ids_tensor, src_on), dtype,
                 scattered(x, dim, ids, src, false), {0}, what);
    expect_close("scatter", x_on, dtype, x, {0}, what + ", the operand");
    Tensor in_place = x_on;
    scatter_set(in_place, dim, ids_tensor, src_on);
    expect_close("scatter", in_place, dtype, scattered(x, dim, ids, src, false), {0}, what);
    Host sevens = src;
    for (double& v : sevens.values) v = dtype == DType::Bool ? 1 : 7;
    expect_close("scatter_value", scatter(x_on, dim, ids_tensor, Scalar(7)), dtype,
                 scattered(x, dim, ids, sevens, false), {0}, what);
  }
}

TEST_P(Indexing, ScatterOfManyLinesAndOfLongOnesKeepTheSameRule) {
  // Many lines: a thread walks each. Few and long ones: writers claim their places.
  for (const auto& [shape, ids_shape, dim] :
       {std::tuple{Shape{3, 33000}, Shape{5, 33000}, 0}, std::tuple{Shape{5000}, Shape{9000}, 0},
        std::tuple{Shape{2, 700}, Shape{2, 3000}, 1}}) {
    for (const DType dtype : {DType::U8, DType::I16, DType::I32, DType::I64}) {  // every size
      const Host x = uniform_for(dtype, shape, 0, 200, 10);
      const Host src = uniform_for(dtype, ids_shape, 0, 200, 11);
      const Host ids = random_ids(ids_shape, shape[dim], 12);
      expect_close(
          "scatter",
          scatter(contiguous_on(x, dtype, device()), dim, contiguous_on(ids, DType::I32, device()),
                  contiguous_on(src, dtype, device())),
          dtype, scattered(x, dim, ids, src, false), {0});
    }
  }
}

TEST_P(Indexing, IndexCopyWritesSlicesAndTakesOneIndexManyTimes) {
  for (const DType dtype : kDTypes) {
    const Host x = uniform_for(dtype, {4, 6, 5}, 0, 9, 13);
    const Host src = uniform_for(dtype, {4, 8, 5}, 0, 9, 14);
    const std::vector<double> ids = {3, 1, 3, 0, 0, 5, 1, 3};
    expect_close("index_copy",
                 index_copy(contiguous_on(x, dtype, device()), 1,
                            contiguous_on({{8}, ids}, DType::I64, device()),
                            contiguous_on(src, dtype, device())),
                 dtype, scattered(x, 1, spread(ids, {4, 8, 5}, 1), src, false), {0});
    // A broadcast tensor of indices: all sources go to one place.
    const Tensor two = contiguous_on({{1}, {2}}, DType::I64, device()).broadcast_as({8});
    expect_close(
        "index_copy",
        index_copy(contiguous_on(x, dtype, device()), 1, two, contiguous_on(src, dtype, device())),
        dtype, scattered(x, 1, spread(std::vector<double>(8, 2), {4, 8, 5}, 1), src, false), {0});
  }
}

// ---- adding

TEST_P(Indexing, ScatterAddAgreesWithPlainLoops) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 150; ++round) {
    const int rank = 1 + static_cast<int>(random() % 4);
    const Shape shape = random_shape(random, rank, 5);
    const int dim = static_cast<int>(random() % static_cast<unsigned>(rank));
    Shape ids_shape = shape;
    for (int d = 0; d < rank; ++d) {
      if (random() % 2 == 0) ids_shape[d] = static_cast<std::int64_t>(random() % 12);
      if (d != dim) ids_shape[d] = std::min(ids_shape[d], shape[d]);
    }
    const DType dtype = kNumbers[random() % 10];
    const DType id_dtype = kInts[random() % 5];
    const Arrangement how = kArrangements[random() % 4], ids_how = kArrangements[random() % 4];
    const double low = is_float(dtype) ? -1 : -9, high = is_float(dtype) ? 1 : 9;
    const Host x = uniform_for(dtype, shape, low, high, random());
    const Host src = uniform_for(dtype, ids_shape, low, high, random());
    const Host ids = random_ids(ids_shape, shape[dim], random());
    expect_close("scatter_add",
                 scatter_add(arrange(x, dtype, how, device()), dim,
                             arrange(ids, id_dtype, ids_how, device()),
                             arrange(src, dtype, kArrangements[random() % 4], device())),
                 dtype, scattered(x, dim, ids, src, true), sum_bound(dtype, ids_shape[dim] + 1),
                 join(describe("scatter_add", dtype, shape, how), " ids ", ids_shape, " ",
                      name(ids_how), " dim ", dim));
  }
}

// Each shape takes another way on a GPU: many lines, long lines into few places and into many,
// sorted keys of one, two and three digits over several blocks.
TEST_P(Indexing, ScatterAddOfEveryShapeGivesTheSameSumTwice) {
  struct Case {
    Shape shape, ids;
    int dim;
  };
  const Case cases[] = {{{3, 33000}, {6, 33000}, 0}, {{50}, {6000}, 0},
                        {{70000}, {5000}, 0},        {{3}, {4500}, 0},
                        {{2, 700}, {2, 900}, 1},     {{9000}, {9000}, 0},
                        {{70, 300}, {70, 400}, 1},   {{64, 3}, {64, 500}, 1},
                        {{65, 4100}, {65, 64}, 1},   {{64, 90}, {64, 4200}, 1}};
  for (const DType dtype : {DType::U8, DType::I16, DType::I64, DType::F8E4M3, DType::F16,
                            DType::BF16, DType::F32, DType::F64}) {
    if (kSanitized && !stands_for_its_size(dtype)) continue;
    for (const Case& c : cases) {
      if (is_float(dtype) && size_of(dtype) <= 2 && dtype != DType::F16 && c.shape[0] != 70) {
        continue;  // as f16, but for the conversion
      }
      if (c.shape[0] == 3 && c.ids[0] == 6 && dtype != DType::F32 && dtype != DType::F16) continue;
      const double high = is_float(dtype) ? 1 : 3;
      const Host x = uniform_for(dtype, c.shape, 0, high, 15);
      const Host src = uniform_for(dtype, c.ids, is_float(dtype) ? -1 : 0, high, 16);
      const Host ids = random_ids(c.ids, c.shape[c.dim], 17);
      const Tensor x_on = contiguous_on(x, dtype, device());
      const Tensor ids_tensor = contiguous_on(ids, DType::I32, device());
      const Tensor src_on = contiguous_on(src, dtype, device());
      const Tensor got = scatter_add(x_on, c.dim, ids_tensor, src_on);
      Host want = scattered(x, c.dim, ids, src, true);
      if (is_int(dtype)) {  // wraps
        const double range = std::pow(2.0, static_cast<double>(bits_of(dtype)));
        for (double& v : want.values) v = std::fmod(v, range);
      }
      const std::int64_t terms = c.ids[c.dim] / c.shape[c.dim] * 2 + 30;
      expect_close("scatter_add", got, dtype, want, sum_bound(dtype, terms),
                   describe("scatter_add", dtype, c.shape));
      expect_equal("scatter_add", scatter_add(x_on, c.dim, ids_tensor, src_on), got);
    }
  }
}

// Where a block takes a line, sums are what adding one source after the other gives, however many
// of them meet at one place; also in lines of more sources than it takes at once.
TEST_P(Indexing, LinesAreAddedInTheOrderOfTheirSources) {
  struct Case {
    DType dtype;
    std::int64_t length, used;
  };
  std::vector<Case> cases = {{DType::F32, 4300, 5000},
                             {DType::F32, 4300, 4},
                             {DType::F16, 4300, 300},
                             {DType::F64, 2100, 60},
                             {DType::U8, 4300, 700}};
  for (const DType dtype : {DType::F8E4M3, DType::F16, DType::F32, DType::F64}) {
    for (const std::int64_t used : {1, 3, 40, 5000}) cases.push_back({dtype, 777, used});
  }
  for (const auto& [dtype, length, used] : cases) {
    const double low = is_float(dtype) ? -1 : 0, high = is_float(dtype) ? 1 : 9;
    const Host x = uniform_for(dtype, {66, 5000}, low, high, 55);
    const Host src = uniform_for(dtype, {66, length}, low, high, 56);
    Host ids = random_ids({66, length}, used, 57);
    for (std::size_t i = 0; i < ids.values.size(); i += 11) ids.values[i] = kNothing;
    const auto on = [&](const Host& host, const Device& where) {
      return contiguous_on(host, dtype, where);
    };
    const Device cpu = Device::cpu();
    const Tensor want = scatter_add(on(x, cpu), 1, ids_on(ids, DType::I32, cpu), on(src, cpu));
    const Tensor here = on(x, device()), kept = copy(here);
    const Tensor ids_tensor = ids_on(ids, DType::I32, device()), src_on = on(src, device());
    const std::string what = join(dtype, ": ", length, " into ", used, " places");
    expect_equal("scatter_add", to(scatter_add(here, 1, ids_tensor, src_on), cpu), want, what);
    expect_equal("scatter_add", here, kept, what);
    Tensor in_place = copy(here);
    scatter_add_set(in_place, 1, ids_tensor, src_on);
    expect_equal("scatter_add", to(in_place, cpu), want, what);
    // Fewer lines than there are: the others stay.
    Tensor some = here;
    scatter_add_set(some, 1, ids_tensor.narrow(0, 0, 64), src_on.narrow(0, 0, 64));
    expect_equal("scatter_add", to(some.narrow(0, 64, 2), cpu), to(kept.narrow(0, 64, 2), cpu));
    expect_equal("scatter_add", to(some.narrow(0, 0, 64), cpu), want.narrow(0, 0, 64), what);
  }
}

TEST_P(Indexing, IndexAddSumsRowsWhateverTheIndices) {
  struct Case {
    Shape shape, src;
    int dim;
    std::int64_t used;  // places that are named
  };
  // Short runs, runs over many tiles, one run for all, other dimensions, few columns.
  const Case cases[] = {{{40, 12}, {300, 12}, 0, 40},
                        {{5, 9}, {700, 9}, 0, 3},
                        {{5, 9}, {500, 9}, 0, 1},
                        {{4, 7, 6}, {4, 130, 6}, 1, 7},
                        {{3, 10}, {3, 200}, 1, 10},
                        {{300, 8}, {40, 8}, 0, 300},
                        {{6}, {50}, 0, 6},
                        {{2, 3}, {2, 4}, 1, 3}};
  for (const DType dtype : kNumbers) {
    if (kSanitized && !stands_for_its_size(dtype)) continue;
    for (const Case& c : cases) {
      const double high = is_float(dtype) ? 1 : 3;
      const double low = is_float(dtype) ? -1 : 0;
      const Host x = uniform_for(dtype, c.shape, low, high, 18);
      // f8 and the bytes stay in range: few distinct small values
      const Host src = uniform_for(dtype, c.src, dtype == DType::U8 ? 0 : low,
                                   dtype == DType::U8 ? 1 : high, 19);
      const Host ids = random_ids({c.src[c.dim]}, c.used, 20);
      const std::int64_t terms = 2 * c.src[c.dim] / c.used + 30;
      for (const Arrangement how : kArrangements) {
        const Tensor got =
            index_add(arrange(x, dtype, how, device()), c.dim,
                      arrange(ids, DType::U32, how, device()), arrange(src, dtype, how, device()));
        expect_close("index_add", got, dtype,
                     scattered(x, c.dim, spread(ids.values, c.src, c.dim), src, true),
                     sum_bound(dtype, terms), describe("index_add", dtype, c.shape, how));
      }
    }
  }
}

// Restores the number of threads.
class Threads {
 public:
  Threads() : before_(ThreadPool::shared().threads()) {}
  ~Threads() { ThreadPool::shared().set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  static void set(int threads) { ThreadPool::shared().set_threads(threads); }

 private:
  int before_;
};

// Each shape is shared out among threads another way: by lines, by places, by rows, not at all.
TEST_P(Indexing, SumsAndPlacesDoNotDependOnTheNumberOfThreads) {
  if (!device().is_cpu()) GTEST_SKIP() << "threads are the CPU's";
  struct Case {
    Shape shape, ids;
    int dim;
    bool shares;  // one index for all lines
  };
  constexpr std::int64_t kMany = (1 << 20) + 7;
  const Case cases[] = {{{kMany}, {50000}, 0, false},     {{kMany, 2}, {25000, 2}, 0, false},
                        {{300}, {40000}, 0, false},       {{300, 70}, {600, 70}, 0, false},
                        {{70, 300}, {70, 600}, 1, false}, {{300, 7}, {9000, 7}, 0, true},
                        {{7, 300}, {7, 9000}, 1, true},   {{50, 900}, {60, 900}, 0, true}};
  const Threads restores;
  for (const DType dtype : {DType::F32, DType::BF16, DType::I64}) {
    for (const Case& c : cases) {
      const Host src = uniform_for(dtype, c.ids, -9, 9, 31);
      // Few places, far apart, so that sums have many terms; and some sentinels.
      Host ids = random_ids(c.shares ? Shape{c.ids[c.dim]} : c.ids, 290, 32);
      for (double& id : ids.values) {
        id = id == 5 ? kNothing : id * static_cast<double>(c.shape[c.dim] / 300);
      }
      const Tensor x = contiguous_on(uniform_for(dtype, c.shape, -9, 9, 33), dtype, device());
      const Tensor src_on = contiguous_on(src, dtype, device());
      const Tensor ids_tensor = ids_on(ids, DType::I32, device());
      std::vector<Tensor> sums, places;
      for (const int threads : {1, 2, 5}) {
        Threads::set(threads);
        sums.push_back(c.shares ? index_add(x, c.dim, ids_tensor, src_on)
                                : scatter_add(x, c.dim, ids_tensor, src_on));
        places.push_back(c.shares ? index_copy(x, c.dim, ids_tensor, src_on)
                                  : scatter(x, c.dim, ids_tensor, src_on));
        expect_equal("scatter_add", sums.back(), sums.front());
        expect_equal("scatter", places.back(), places.front());
        Tensor in_place = x;
        c.shares ? index_add_set(in_place, c.dim, ids_tensor, src_on)
                 : scatter_add_set(in_place, c.dim, ids_tensor, src_on);
        expect_equal("scatter_add", in_place, sums.front());
      }
      if (dtype == DType::I64) {
        const Host from = host_of(x);
        const Host over = c.shares ? spread(ids.values, c.ids, c.dim) : ids;
        expect_close("scatter_add", sums.front(), dtype, scattered(from, c.dim, over, src, true),
                     {0});
        expect_close("scatter", places.front(), dtype, scattered(from, c.dim, over, src, false),
                     {0});
      }
    }
  }
}

TEST_P(Indexing, IntegerSumsWrap) {
  for (const DType dtype : kInts) {
    const double top = dtype == DType::U8    ? 255
                       : dtype == DType::I16 ? 32767
                       : dtype == DType::I32 ? 2147483647.0
                       : dtype == DType::U32 ? 4294967295.0
                                             : 9007199254740992.0;
    const double want = dtype == DType::U8 || dtype == DType::U32 ? 1
                        : dtype == DType::I16                     ? -32767
                        : dtype == DType::I32                     ? -2147483647.0
                                                                  : 9007199254740994.0;
    const Tensor x = contiguous_on({{1}, {top}}, dtype, device());
    for (const std::int64_t length : {2, 20}) {
      Host src{{length}, std::vector<double>(static_cast<std::size_t>(length), 0)};
      src.values[0] = src.values[1] = 1;
      expect_close("scatter_add",
                   scatter_add(x, 0, Tensor::zeros({length}, DType::I64, device()),
                               contiguous_on(src, dtype, device())),
                   dtype, {{1}, {want}}, {0});
    }
  }
}

TEST_P(Indexing, SumsKeepInfinitiesNanSubnormalsAndWhatCancels) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double tiny = 0x1p-149;
  const std::vector<std::vector<double>> columns = {
      {1, kInf},     {-kInf, 2},         {kInf, -kInf}, {std::nan(""), 1},     {tiny, tiny},
      {1e30, -1e30}, {0x1p127, 0x1p127}, {1e-20, 1e20}, {-0x1p-126, 0x1p-149}, {3, 4}};
  const auto places = static_cast<std::int64_t>(columns.size());
  Host src{{6 * places}, {}}, ids{{6 * places}, {}}, want{{places}, {}};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    want.values.push_back(columns[i][0] + columns[i][1]);
    for (std::size_t k = 0; k < 6; ++k) {
      src.values.push_back(k < 2 ? columns[i][k] : 0);
      ids.values.push_back(static_cast<double>(i));
    }
  }
  for (const DType dtype : {DType::F32, DType::F64}) {
    Host expected = want;
    if (dtype == DType::F32) expected.values[6] = kInf;
    expect_close(
        "scatter_add",
        scatter_add(Tensor::zeros({places}, dtype, device()), 0,
                    contiguous_on(ids, DType::I64, device()), contiguous_on(src, dtype, device())),
        dtype, expected, {1});
  }
}

TEST_P(Indexing, SmallFloatsAreRoundedOnceAndNotAtEveryStep) {
  // 2048 + 1 + 1 + ... in f16 would stay 2048 when rounded at every step.
  for (const Shape& lines : {Shape{64}, Shape{64, 40}, Shape{3, 1}}) {
    Shape shape = lines;
    shape[0] = 1;
    const Tensor x = contiguous_on(
        {shape, std::vector<double>(static_cast<std::size_t>(element_count("t", shape)), 2048)},
        DType::F16, device());
    const Tensor ones =
        to_dtype(contiguous_on({{1}, {1}}, DType::F32, device()).broadcast_as(lines), DType::F16);
    const Tensor got = scatter_add(x, 0, Tensor::zeros(lines, DType::I64, device()), ones);
    const double want = lines[0] == 64 ? 2112 : 2052;  // 2051 rounds to even
    for (const double v : host_of(got).values) EXPECT_EQ(v, want);
  }
}

// ---- values, not references

TEST_P(Indexing, InPlaceFormsChangeNothingElse) {
  const Host values = uniform_for(DType::I32, {4, 3}, 0, 9, 21);
  Tensor x = contiguous_on(values, DType::I32, device());
  const Tensor sibling = x;
  const Tensor ids =
      contiguous_on({{4, 3}, {3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0}}, DType::I64, device());
  scatter_set(x, 0, ids, x);  // reads its own old values
  Host want = values;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 3; ++c) want.values[r * 3 + c] = values.values[(3 - r) * 3 + c];
  }
  expect_close("scatter", x, DType::I32, want, {0});
  expect_close("scatter", sibling, DType::I32, values, {0});
  scatter_add_set(x, 0, ids, x);
  for (std::size_t i = 0; i < 12; ++i) want.values[i] += values.values[i];
  expect_close("scatter_add", x, DType::I32, want, {0});
  Tensor wide = contiguous_on({{1, 3}, {1, 2, 3}}, DType::I32, device()).broadcast_as({4, 3});
  index_add_set(wide, 0, contiguous_on({{1}, {2}}, DType::I64, device()),
                contiguous_on({{1, 3}, {10, 10, 10}}, DType::I32, device()));
  expect_close("index_add", wide, DType::I32, {{4, 3}, {1, 2, 3, 1, 2, 3, 11, 12, 13, 1, 2, 3}},
               {0});
}

// ---- bad indices

TEST_P(Indexing, AnIndexOutOfRangeIsReportedAndTheDeviceGoesOn) {
  const Tensor x = contiguous_on(uniform({5, 3}, 0, 1, 22), DType::F32, device());
  const Tensor src = contiguous_on(uniform({2, 3}, 0, 1, 23), DType::F32, device());
  const auto id = [&](double a, double b) {
    return contiguous_on({{2}, {a, b}}, DType::I64, device());
  };
  const auto lines = [&](double a) {
    return contiguous_on({{2, 3}, {0, 1, 2, 3, 4, a}}, DType::I32, device());
  };
  expect_bad_index("index_select: index 5 is outside a dimension of size 5",
                   [&] { index_select(x, 0, id(0, 5)); });
  expect_bad_index("index_select: index -1 is outside", [&] { index_select(x, 0, id(-1, 2)); });
  expect_bad_index("embedding: index 7 is outside", [&] { embedding(x, id(7, 0)); });
  expect_bad_index("gather: index 9 is outside", [&] { gather(x, 0, lines(9)); });
  expect_bad_index("scatter: index 6 is outside", [&] { scatter(x, 0, lines(6), src); });
  expect_bad_index("scatter_add: index -2 is outside", [&] { scatter_add(x, 0, lines(-2), src); });
  expect_bad_index("index_add: index 5 is outside", [&] { index_add(x, 0, id(5, 0), src); });
  expect_bad_index("take: index 15 is outside a dimension of size 15",
                   [&] { take(x, id(14, 15)); });
  Tensor kept = x;
  expect_bad_index("assign_index: index 8 is outside",
                   [&] { assign_index(kept, {id(8, 0)}, src); });
  if (device().is_cpu()) expect_equal("assign_index", kept, x);
}

// Long enough for vectors of indices and for threads; sentinels before the bad one.
TEST_P(Indexing, ABadIndexLeavesWhatIsWrittenInPlaceAsItWas) {
  if (!device().is_cpu()) GTEST_SKIP() << "a GPU tells of it later";
  const Threads restores;
  Threads::set(5);
  for (const DType dtype : kInts) {
    for (const double bad : {100.0, -3.0}) {
      if (bad < 0 && (dtype == DType::U8 || dtype == DType::U32)) continue;
      const std::string text = join("index ", bad, " is outside a dimension of size 100");
      for (const Shape& shape : {Shape{40000}, Shape{1000, 40}}) {
        Host ids = random_ids(shape, 100, 34);
        for (std::size_t i = 0; i < ids.values.size(); i += 7) ids.values[i] = kNothing;
        ids.values[ids.values.size() - 2] = bad;
        const Host row = {{shape[0]}, {ids.values.end() - shape[0], ids.values.end()}};
        Shape x_shape = shape;
        x_shape[0] = 100;
        for (const DType of : {DType::F32, DType::F16}) {
          const Tensor x = contiguous_on(uniform(x_shape, -1, 1, 35), of, device());
          const Tensor src = contiguous_on(uniform(shape, -1, 1, 36), of, device());
          const Tensor each_id = ids_on(ids, dtype, device()), rows = ids_on(row, dtype, device());
          Tensor to = copy(x);
          expect_bad_index(text, [&] { scatter_set(to, 0, each_id, src); });
          expect_bad_index(text, [&] { scatter_add_set(to, 0, each_id, src); });
          expect_bad_index(text, [&] { index_add_set(to, 0, rows, src); });
          expect_bad_index(text, [&] { index_copy_set(to, 0, rows, src); });
          expect_equal("scatter", to, x);
          expect_bad_index(text, [&] { scatter_add(x, 0, each_id, src); });
          expect_bad_index(text, [&] { index_copy(x, 0, rows, src); });
          expect_bad_index(text, [&] { index_select(x, 0, rows); });
        }
      }
    }
  }
}

TEST_P(Indexing, WhatABadIndexWouldPickIsZeroOnAGpu) {
  if (device().is_cpu()) GTEST_SKIP() << "the CPU throws at once";
  const Tensor x = contiguous_on({{3}, {1, 2, 3}}, DType::F32, device());
  const Tensor y = index_select(x, 0, contiguous_on({{3}, {2, 3, 0}}, DType::I64, device()));
  EXPECT_THROW(device().synchronize(), Error);
  expect_close("index_select", y, DType::F32, {{3}, {3, 0, 1}}, {0});
}

// ---- masks

TEST_P(Indexing, MaskedSelectKeepsTheOrderOfEveryLayout) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5}, Shape{2, 0}, Shape{4, 33, 50}}) {
    for (const DType dtype : {DType::F32, DType::U8, DType::I64, DType::Bool, DType::F16}) {
      const Host x = uniform_for(dtype, shape, 0, 100, 24);
      const Host mask = uniform_for(DType::Bool, shape, 0, 1, 25);
      Host want{{0}, {}};
      for (std::size_t i = 0; i < x.values.size(); ++i) {
        if (mask.values[i] != 0) want.values.push_back(x.values[i]);
      }
      want.shape = {want.count()};
      for (const Arrangement how : kArrangements) {
        for (const DType mask_dtype : {DType::Bool, DType::U8}) {
          expect_close("masked_select",
                       masked_select(arrange(x, dtype, how, device()),
                                     arrange(mask, mask_dtype, how, device())),
                       dtype, want, {0}, describe("masked_select", dtype, shape, how));
        }
      }
    }
  }
  const Tensor x = contiguous_on({{2, 3}, {1, 2, 3, 4, 5, 6}}, DType::F32, device());
  const Tensor row = contiguous_on({{3}, {1, 0, 1}}, DType::Bool, device());
  expect_close("masked_select", masked_select(x, row), DType::F32, {{4}, {1, 3, 4, 6}}, {0});
}

TEST_P(Indexing, NonzeroListsTheIndicesOfEveryDtype) {
  for (const DType dtype : kDTypes) {
    Host x = uniform_for(dtype, {3, 4, 50}, -2, 2, 26);
    for (std::size_t i = 0; i < x.values.size(); i += 3) x.values[i] = 0;
    if (is_float(dtype)) {
      x.values[1] = -0.0;
      x.values[2] = std::nan("");
    }
    Host want{{0, 3}, {}};
    each(x.shape, [&](const Dims& at, std::size_t i) {
      if (x.values[i] == 0) return;
      for (const std::int64_t c : at) want.values.push_back(static_cast<double>(c));
      ++want.shape[0];
    });
    for (const Arrangement how : kArrangements) {
      expect_close({"nonzero", dtype}, nonzero(arrange(x, dtype, how, device())), DType::I64, want,
                   {0}, describe("nonzero", dtype, x.shape, how));
    }
  }
}

TEST_P(Indexing, MaskedScatterPutsTheSourceInOrder) {
  const Tensor x = contiguous_on({{2, 3}, {1, 2, 3, 4, 5, 6}}, DType::F32, device());
  const Tensor mask = contiguous_on({{2, 3}, {0, 1, 1, 0, 0, 1}}, DType::Bool, device());
  const Tensor src = contiguous_on({{4}, {10, 20, 30, 40}}, DType::F32, device());
  expect_close("masked_scatter", masked_scatter(x, mask, src), DType::F32,
               {{2, 3}, {1, 10, 20, 4, 5, 30}}, {0});
  expect_error(ErrorKind::ShapeMismatch, "masked_scatter: the mask asks for 3 elements",
               [&] { masked_scatter(x, mask, src.narrow(0, 0, 2)); });
}

// ---- index(x, {...})

TEST_P(Indexing, EntriesMakeViewsAndPicks) {
  Host values{{3, 4, 5}, {}};
  for (int i = 0; i < 60; ++i) values.values.push_back(i);
  const Tensor x = contiguous_on(values, DType::I32, device());
  const Tensor ids = contiguous_on({{3}, {2, 0, 2}}, DType::I64, device());
  EXPECT_TRUE(index(x, {1, At::range(0, 2)}).shares_memory_with(x));
  EXPECT_EQ(index(x, {1}).shape(), (Shape{4, 5}));
  EXPECT_EQ(index(x, {-1, 2, 3}).item<std::int32_t>(), 2 * 20 + 2 * 5 + 3);
  EXPECT_EQ(index(x, {At::all(), At::from(1), At::until(-1)}).shape(), (Shape{3, 3, 4}));
  EXPECT_EQ(index(x, {At::range(2, 1)}).shape(), (Shape{0, 4, 5}));
  EXPECT_EQ(index(x, {At::rest(), 0}).shape(), (Shape{3, 4}));
  EXPECT_EQ(index(x, {At::new_axis(), At::all(), 0}).shape(), (Shape{1, 3, 5}));
  EXPECT_EQ(index(x, {At::all(), At::range(0, 4, 2)}).shape(), (Shape{3, 2, 5}));
  expect_close("index", index(x, {ids, 1, At::range(0, 2)}), DType::I32,
               {{3, 2}, {45, 46, 5, 6, 45, 46}}, {0});
  expect_close("index", index(x, {ids, ids, 4}), DType::I32,
               {{3, 3}, {54, 44, 54, 14, 4, 14, 54, 44, 54}}, {0});
  expect_error(ErrorKind::BadArgument, "index: 4 entries for shape (3, 4, 5)",
               [&] { index(x, {0, 0, 0, 0}); });
  expect_error(ErrorKind::BadArgument, "slice", [&] { index(x, {At::range(0, 9)}); });
}

TEST_P(Indexing, AssignsToWhatEntriesShow) {
  for (const DType dtype : kDTypes) {
    const Host zeros{{3, 4}, std::vector<double>(12, 0)};
    Tensor x = contiguous_on(zeros, dtype, device());
    const Tensor sibling = x;
    assign_index(x, {1}, Scalar(1));
    expect_close("assign_index", x, dtype, {{3, 4}, {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0}}, {0});
    const Tensor ids = contiguous_on({{2}, {3, 0}}, DType::I16, device());
    Tensor y = sibling;
    assign_index(y, {At::from(1), ids}, contiguous_on({{2}, {1, 0}}, dtype, device()));
    expect_close("assign_index", y, dtype, {{3, 4}, {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}}, {0});
    Tensor z = sibling;
    const Tensor rows = contiguous_on({{2}, {2, 1}}, DType::I64, device());
    assign_index(z, {rows, ids}, contiguous_on({{2, 2}, {1, 0, 0, 1}}, dtype, device()));
    expect_close("assign_index", z, dtype, {{3, 4}, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1}}, {0});
    expect_close("assign_index", sibling, dtype, zeros, {0});
  }
}

// ---- wrong arguments, and what an op costs

TEST_P(Indexing, WrongArgumentsAreRefusedWithTheirShapes) {
  const Tensor x = Tensor::zeros({4, 3}, DType::F32, device());
  const Tensor ids = Tensor::zeros({2}, DType::I64, device());
  const Tensor lines = Tensor::zeros({2, 3}, DType::I64, device());
  expect_error(ErrorKind::BadArgument, "index_select", [&] { index_select(x, 2, ids); });
  expect_error(ErrorKind::ShapeMismatch, "index_select: the tensor of indices must have 1",
               [&] { index_select(x, 0, lines); });
  expect_error(ErrorKind::Unsupported, "index_select: needs an integer tensor of indices, got f32",
               [&] { index_select(x, 0, Tensor::zeros({2}, DType::F32, device())); });
  expect_error(ErrorKind::ShapeMismatch, "gather: indices of shape (2,) do not go with dimension 0",
               [&] { gather(x, 0, ids); });
  expect_error(ErrorKind::ShapeMismatch, "gather: indices of shape (2, 4)",
               [&] { gather(x, 0, Tensor::zeros({2, 4}, DType::I64, device())); });
  expect_error(ErrorKind::ShapeMismatch,
               "scatter: sources of shape (4, 3) for indices of shape (2, 3)",
               [&] { scatter(x, 0, lines, x); });
  expect_error(ErrorKind::DTypeMismatch, "scatter: one operand is f32, another i64",
               [&] { scatter(x, 0, lines, lines); });
  expect_error(ErrorKind::ShapeMismatch, "index_add: sources of shape (4, 3) for 2 slices",
               [&] { index_add(x, 0, ids, x); });
  expect_error(ErrorKind::ShapeMismatch, "embedding: the table must have 2 dimensions",
               [&] { embedding(ids, ids); });
  expect_error(ErrorKind::Unsupported, "masked_select: needs a mask of bool or u8, got f32",
               [&] { masked_select(x, x); });
  const Tensor yes = Tensor::zeros({2, 3}, DType::Bool, device());
  expect_unsupported("scatter_add", DType::Bool, device(), [&] {
    scatter_add(Tensor::zeros({4, 3}, DType::Bool, device()), 0, lines, yes);
  });
  if (!device().is_cpu()) {
    expect_error(ErrorKind::WrongDevice, "gather",
                 [&] { gather(x, 0, Tensor::zeros({2, 3}, DType::I64)); });
  }
  // Shapes before devices before dtypes.
  expect_error(ErrorKind::ShapeMismatch, "gather",
               [&] { gather(x, 0, Tensor::zeros({2}, DType::F32)); });
}

TEST_P(Indexing, NoOpCopiesToTheHostOrWaits) {
  const Tensor x = contiguous_on(uniform({50, 9}, 0, 1, 27), DType::F32, device());
  const Tensor ids = contiguous_on(random_ids({80}, 50, 28), DType::I64, device());
  const Tensor lines = contiguous_on(random_ids({80, 9}, 50, 29), DType::I64, device());
  const Tensor src = contiguous_on(uniform({80, 9}, 0, 1, 30), DType::F32, device());
  const DriverCalls before = device().driver_calls();
  index_select(x, 0, ids);
  embedding(x, ids);
  gather(x, 0, lines);
  scatter(x, 0, lines, src);
  scatter(x, 0, lines, Scalar(1));
  scatter_add(x, 0, lines, src);
  index_add(x, 0, ids, src);
  index_copy(x, 0, ids, src);
  scatter_add(to_dtype(x, DType::F64), 0, lines, to_dtype(src, DType::F64));
  Tensor y = x;
  assign_index(y, {ids}, src);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

TEST_P(Indexing, AWriteIntoASharedViewTakesMemoryForTheViewAlone) {
  const Tensor x = Tensor::zeros({64, 64}, DType::F32, device());
  const Tensor ids = Tensor::from<std::int64_t>({1}, {1}, device());
  Tensor view = x.narrow(0, 3, 2);
  index_add_set(view, 0, ids, contiguous_on(uniform({1, 64}, 1, 1, 40), DType::F32, device()));
  EXPECT_EQ(view.memory().bytes(), 2 * 64 * sizeof(float));
  Host want{{2, 64}, std::vector<double>(128)};
  std::fill(want.values.begin() + 64, want.values.end(), 1);
  expect_close("index_add", view, DType::F32, want, {0});
  Tensor rows = x.narrow(0, 3, 2);
  assign_index(rows, {0, At::range(1, 3)}, 5);
  EXPECT_EQ(rows.memory().bytes(), 2 * 64 * sizeof(float));
  EXPECT_EQ(host_of(rows).values[2], 5);
  expect_close("assign", x, DType::F32, {{64, 64}, std::vector<double>(64 * 64)}, {0});
}

TEST_P(Indexing, TheTableCallsThem) {
  const OpValue arguments[] = {Tensor::zeros({4, 3}, DType::F32, device()), Scalar(0),
                               Tensor::zeros({2}, DType::U8, device())};
  EXPECT_EQ(call_op("index_select", arguments).at(0).shape(), (Shape{2, 3}));
}

}  // namespace
}  // namespace tl
