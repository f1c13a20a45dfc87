// Joining, repeating, padding and rearranging, against plain loops over doubles.
#include "tl/ops/join.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "ops/conformance.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Join : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Join);

// A reference: element `at` of the result is element f(at) of x, or `otherwise` where f has none.
using Where = std::function<std::optional<Dims>(const Dims& at)>;

Host mapped(const Host& x, const Shape& shape, const Where& f, double otherwise = 0) {
  Host out{shape, {}};
  Dims at = Dims::repeated(shape.size(), 0);
  const std::int64_t count = element_count("mapped", shape);
  for (std::int64_t i = 0; i < count; ++i) {
    double value = otherwise;
    if (const auto from = f(at)) {
      std::int64_t place = 0;
      for (int d = 0; d < x.shape.size(); ++d) place = place * x.shape[d] + (*from)[d];
      value = x.values[static_cast<std::size_t>(place)];
    }
    out.values.push_back(value);
    for (int d = shape.size() - 1; d >= 0; --d) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

const Shape kShapes[] = {{1}, {7}, {3, 5}, {2, 3, 4}, {4, 0, 2}, {2, 1, 3, 2}, {5, 16}};

TEST_P(Join, CatAlongEachDimensionOfEveryLayout) {
  std::mt19937_64 random(fuzz_seed());
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : kShapes) {
      for (int d = 0; d < shape.size(); ++d) {
        std::vector<Tensor> list;
        std::vector<Host> hosts;
        Shape all = shape;
        all[d] = 0;
        for (std::size_t i = 0; i < 4; ++i) {
          Shape part = shape;
          part[d] = i == 2 ? 0 : static_cast<std::int64_t>(1 + random() % 4);
          all[d] += part[d];
          hosts.push_back(uniform_for(dtype, part, -9, 9, random()));
          list.push_back(arrange(hosts.back(), dtype, kArrangements[i], device()));
        }
        Host want{all, {}};
        {
          // Which part a coordinate falls into, and where.
          Dims at = Dims::repeated(all.size(), 0);
          for (std::int64_t i = 0; i < element_count("cat", all); ++i) {
            std::int64_t rest = at[d];
            std::size_t k = 0;
            while (rest >= hosts[k].shape[d]) rest -= hosts[k++].shape[d];
            std::int64_t place = 0;
            for (int e = 0; e < all.size(); ++e) {
              place = place * hosts[k].shape[e] + (e == d ? rest : at[e]);
            }
            want.values.push_back(hosts[k].values[static_cast<std::size_t>(place)]);
            for (int e = all.size() - 1; e >= 0; --e) {
              if (++at[e] < all[e]) break;
              at[e] = 0;
            }
          }
        }
        const Tensor got = cat(list, d - shape.size());
        EXPECT_TRUE(got.is_contiguous());
        expect_close("cat", got, dtype, want, {0}, describe("cat", dtype, shape));
      }
    }
  }
}

TEST_P(Join, CatOfOneIsItselfWithoutGaps) {
  const Host x = uniform({3, 4}, 0, 1, 1);
  const Tensor got = cat({arrange(x, DType::F32, Arrangement::Transposed, device())}, 1);
  EXPECT_TRUE(got.is_contiguous());
  expect_close("cat", got, DType::F32, rounded(x, DType::F32), {0});
}

TEST_P(Join, StackAddsADimensionAnywhere) {
  const Host a = uniform_for(DType::I32, {2, 3}, 0, 9, 2),
             b = uniform_for(DType::I32, {2, 3}, 0, 9, 3);
  const Tensor x = contiguous_on(a, DType::I32, device());
  const Tensor y = arrange(b, DType::I32, Arrangement::Transposed, device());
  Host both = a;
  both.shape = {2, 2, 3};
  both.values.insert(both.values.end(), b.values.begin(), b.values.end());
  expect_close("stack", stack({x, y}, 0), DType::I32, both, {0});
  expect_close("stack", stack({x, y}, -1), DType::I32,
               mapped(both, {2, 3, 2}, [](const Dims& at) { return Dims{at[2], at[0], at[1]}; }),
               {0});
  const Tensor one = contiguous_on({{}, {5}}, DType::F32, device());
  expect_close("stack", stack({one, one, one}, 0), DType::F32, {{3}, {5, 5, 5}}, {0});
}

TEST_P(Join, RepeatAlignsItsCountsAtTheLastDimension) {
  for (const DType dtype : {DType::F32, DType::U8, DType::I64, DType::F16, DType::Bool}) {
    for (const Shape& shape : kShapes) {
      const Host x = uniform_for(dtype, shape, 0, 9, 4);
      const int rank = shape.size();
      for (const Dims& counts :
           {Dims{2}, Dims{3, 1}, Dims{2, 1, 3}, Dims{0}, Dims{2, 1, 1, 1, 2}}) {
        Shape all = shape;
        while (all.size() < counts.size()) all.insert(0, 1);
        const int lead = all.size() - counts.size(), extra = all.size() - rank;
        for (int d = 0; d < counts.size(); ++d) all[lead + d] *= counts[d];
        const Host want = mapped(x, all, [&](const Dims& at) {
          Dims from;
          for (int d = 0; d < rank; ++d) from.push_back(at[extra + d] % shape[d]);
          return from;
        });
        for (const Arrangement how : kArrangements) {
          const Tensor got = repeat(arrange(x, dtype, how, device()), counts);
          EXPECT_TRUE(got.is_contiguous());
          expect_close("repeat", got, dtype, want, {0}, describe("repeat", dtype, shape, how));
        }
      }
    }
  }
  // More repeated dimensions than a view has room for.
  const Host x = uniform_for(DType::I32, {2, 1, 2, 1, 2, 1, 2, 3}, 0, 99, 5);
  const Host want = mapped(x, {4, 2, 2, 3, 4, 1, 4, 6}, [&](const Dims& at) {
    Dims from;
    for (int d = 0; d < 8; ++d) from.push_back(at[d] % x.shape[d]);
    return from;
  });
  expect_close("repeat", repeat(contiguous_on(x, DType::I32, device()), {2, 2, 1, 3, 2, 1, 2, 2}),
               DType::I32, want, {0});
  expect_close("repeat", repeat(contiguous_on({{}, {3}}, DType::F32, device()), {2}), DType::F32,
               {{2}, {3, 3}}, {0});
}

TEST_P(Join, RepeatInterleaveRepeatsEachSlice) {
  for (const Shape& shape :
       {Shape{4}, Shape{3, 5}, Shape{2, 0, 3}, Shape{1, 2, 1, 2, 1, 2, 1, 3}}) {
    const Host x = uniform_for(DType::I16, shape, 0, 99, 6);
    for (int d = 0; d < shape.size(); ++d) {
      for (const std::int64_t times : {0, 1, 3}) {
        Shape all = shape;
        all[d] *= times;
        const Host want = mapped(x, all, [&](Dims at) {
          at[d] /= times;
          return at;
        });
        for (const Arrangement how : kArrangements) {
          expect_close("repeat_interleave",
                       repeat_interleave(arrange(x, DType::I16, how, device()), times, d),
                       DType::I16, want, {0});
        }
      }
    }
  }
}

TEST_P(Join, PadsWithConstantsEdgesAndReflections) {
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : {Shape{4}, Shape{3, 5}, Shape{2, 4, 3}, Shape{3, 0}}) {
      const Host x = uniform_for(dtype, shape, 0, 9, 7);
      Dims before, after;
      Shape all = shape;
      for (int d = 0; d < shape.size(); ++d) {
        before.push_back(d % 3);
        after.push_back(2 - d % 2);
        all[d] += before[d] + after[d];
      }
      for (const Arrangement how : kArrangements) {
        const Tensor on = arrange(x, dtype, how, device());
        expect_close("pad", pad(on, before, after, 1), dtype,
                     mapped(
                         x, all,
                         [&](Dims at) -> std::optional<Dims> {
                           for (int d = 0; d < at.size(); ++d) {
                             at[d] -= before[d];
                             if (at[d] < 0 || at[d] >= shape[d]) return std::nullopt;
                           }
                           return at;
                         },
                         1),
                     {0}, describe("pad", dtype, shape, how));
        for (int d = 0; d < shape.size(); ++d) {
          const std::int64_t size = shape[d];
          Shape wide = shape;
          wide[d] += 3;
          expect_close("pad_with_zeros", pad_with_zeros(on, d, 1, 2), dtype,
                       mapped(x, wide,
                              [&](Dims at) -> std::optional<Dims> {
                                at[d] -= 1;
                                if (at[d] < 0 || at[d] >= size) return std::nullopt;
                                return at;
                              }),
                       {0}, describe("pad_with_zeros", dtype, shape, how));
          if (size == 0) continue;
          expect_close("pad_with_same", pad_with_same(on, d, 2, 1), dtype,
                       mapped(x, wide,
                              [&](Dims at) {
                                at[d] = std::clamp<std::int64_t>(at[d] - 2, 0, size - 1);
                                return at;
                              }),
                       {0}, describe("pad_with_same", dtype, shape, how));
          if (size < 3) continue;
          expect_close("pad_reflect", pad_reflect(on, d, 1, 2), dtype,
                       mapped(x, wide,
                              [&](Dims at) {
                                std::int64_t i = at[d] - 1;
                                if (i < 0) i = -i;
                                if (i >= size) i = 2 * (size - 1) - i;
                                at[d] = i;
                                return at;
                              }),
                       {0}, describe("pad_reflect", dtype, shape, how));
        }
      }
    }
  }
}

TEST_P(Join, RollMovesCyclically) {
  for (const DType dtype : {DType::F32, DType::U8, DType::I64, DType::F16}) {
    for (const Shape& shape : kShapes) {
      const Host x = uniform_for(dtype, shape, 0, 9, 8);
      for (int d = 0; d < shape.size(); ++d) {
        for (const std::int64_t shift : {0, 1, -2, 17}) {
          const std::int64_t size = shape[d];
          const Host want = mapped(x, shape, [&](Dims at) {
            at[d] = ((at[d] - shift) % size + size) % size;
            return at;
          });
          for (const Arrangement how : kArrangements) {
            expect_close("roll", roll(arrange(x, dtype, how, device()), shift, d), dtype, want,
                         {0});
          }
        }
      }
    }
  }
}

TEST_P(Join, FlipReversesAnyDimensions) {
  for (const DType dtype : kDTypes) {
    for (const Shape& shape :
         {Shape{}, Shape{9}, Shape{3, 8}, Shape{2, 3, 4}, Shape{4, 0}, Shape{33, 65}}) {
      const Host x = uniform_for(dtype, shape, -9, 9, 9);
      for (unsigned mask = 0; mask < 1U << shape.size(); ++mask) {
        Dims dims;
        for (int d = 0; d < shape.size(); ++d) {
          if ((mask >> d & 1) != 0) dims.push_back(d % 2 == 0 ? d : d - shape.size());
        }
        const Host want = mapped(x, shape, [&](Dims at) {
          for (int d = 0; d < shape.size(); ++d) {
            if ((mask >> d & 1) != 0) at[d] = shape[d] - 1 - at[d];
          }
          return at;
        });
        for (const Arrangement how : kArrangements) {
          const Tensor got = flip(arrange(x, dtype, how, device()), dims);
          EXPECT_TRUE(got.is_contiguous());
          expect_close("flip", got, dtype, want, {0}, describe("flip", dtype, shape, how));
        }
      }
    }
  }
}

TEST_P(Join, Rot90TurnsFromTheFirstToTheSecondDimension) {
  const Tensor x = contiguous_on({{2, 3}, {1, 2, 3, 4, 5, 6}}, DType::F32, device());
  expect_close("rot90", rot90(x), DType::F32, {{3, 2}, {3, 6, 2, 5, 1, 4}}, {0});
  expect_close("rot90", rot90(x, 2), DType::F32, {{2, 3}, {6, 5, 4, 3, 2, 1}}, {0});
  expect_close("rot90", rot90(x, -1), DType::F32, {{3, 2}, {4, 1, 5, 2, 6, 3}}, {0});
  expect_equal("rot90", rot90(rot90(x, 3)), x);
}

TEST_P(Join, MeshgridSpreadsEachVector) {
  const Tensor a = contiguous_on({{2}, {1, 2}}, DType::F32, device());
  const Tensor b = arrange({{3}, {5, 6, 7}}, DType::F32, Arrangement::Stepped, device());
  const Tensor list[] = {a, b};
  const auto ij = meshgrid(list);
  expect_close("meshgrid", ij[0], DType::F32, {{2, 3}, {1, 1, 1, 2, 2, 2}}, {0});
  expect_close("meshgrid", ij[1], DType::F32, {{2, 3}, {5, 6, 7, 5, 6, 7}}, {0});
  const auto xy = meshgrid(list, true);
  expect_close("meshgrid", xy[0], DType::F32, {{3, 2}, {1, 2, 1, 2, 1, 2}}, {0});
  const Tensor with_empty[] = {a, b.narrow(0, 0, 0)};
  EXPECT_EQ(meshgrid(with_empty)[0].shape(), (Shape{2, 0}));
}

TEST_P(Join, SliceSetWritesAPartAndReadsOldValues) {
  for (const DType dtype : kDTypes) {
    const Host before = uniform_for(dtype, {4, 5}, 0, 9, 10);
    const Host part = uniform_for(dtype, {4, 2}, 0, 9, 11);
    Tensor x = contiguous_on(before, dtype, device());
    const Tensor sibling = x;
    slice_set(x, arrange(part, dtype, Arrangement::Transposed, device()), 1, 2);
    Host want = before;
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t c = 0; c < 2; ++c) want.values[r * 5 + 2 + c] = part.values[r * 2 + c];
    }
    expect_close("slice_set", x, dtype, want, {0});
    expect_close("slice_set", sibling, dtype, before, {0});
    // Its own values, moved over themselves: a value, not a reference.
    Tensor y = sibling;
    slice_set(y, y.narrow(1, 0, 4), 1, 1);
    expect_close("slice_set", y, dtype,
                 mapped(before, {4, 5},
                        [](Dims at) {
                          at[1] = std::max<std::int64_t>(0, at[1] - 1);
                          return at;
                        }),
                 {0});
    slice_set(y, y, 0, 0);
    Tensor z = arrange(before, dtype, Arrangement::Narrowed, device());
    slice_set(z, contiguous_on(part, dtype, device()), 1, 2);
    expect_close("slice_set", z, dtype, want, {0});
    expect_close("slice_scatter",
                 slice_scatter(sibling, contiguous_on(part, dtype, device()), 1, 2), dtype, want,
                 {0});
    const Range box[] = {{1, 3}, {std::nullopt, -1, 2}};
    Host assigned = before;
    for (const std::size_t r : {1U, 2U}) {
      for (const std::size_t c : {0U, 2U}) assigned.values[r * 5 + c] = 1;
    }
    expect_close("slice_assign",
                 slice_assign(sibling, box, contiguous_on({{}, {1}}, dtype, device())), dtype,
                 assigned, {0});
  }
}

TEST_P(Join, SliceScatterWritesAlongEachDimensionAndLeavesWhatFollows) {
  const Host x = uniform({4, 5, 6}, 0, 1, 12);
  const Tensor on = contiguous_on(x, DType::F32, device());
  for (int d = 0; d < 3; ++d) {
    Shape part = x.shape;
    part[d] = 2;
    const Host src = uniform(part, 2, 3, 13);
    for (const Arrangement how : kArrangements) {
      Host want = rounded(x, DType::F32);
      std::size_t i = 0;
      mapped(src, part, [&](Dims at) -> std::optional<Dims> {
        at[d] += 1;
        want.values[static_cast<std::size_t>((at[0] * 5 + at[1]) * 6 + at[2])] =
            static_cast<float>(src.values[i++]);
        return std::nullopt;
      });
      const Tensor got = slice_scatter(on, arrange(src, DType::F32, how, device()), d, 1);
      EXPECT_TRUE(got.is_contiguous());
      expect_close("slice_scatter", got, DType::F32, want, {0}, join("dim ", d, " ", name(how)));
    }
  }
}

TEST_P(Join, WrongArgumentsAreRefusedWithTheirShapes) {
  const Tensor x = Tensor::zeros({4, 3}, DType::F32, device());
  const Tensor y = Tensor::zeros({4, 2}, DType::F32, device());
  expect_error(ErrorKind::BadArgument, "cat: the list is empty",
               [&] { cat(std::span<const Tensor>(), 0); });
  expect_error(ErrorKind::ShapeMismatch,
               "cat: tensor 3 of 3 has shape (4, 2), which does not go with (4, 3)",
               [&] { cat({x, x, y}, 0); });
  expect_error(ErrorKind::ShapeMismatch, "cat: tensor 2 of 2 has shape (3,)",
               [&] { cat({x, x.get(0)}, 0); });
  expect_error(ErrorKind::BadArgument, "cat", [&] { cat({x, x}, 2); });
  expect_error(ErrorKind::DTypeMismatch, "cat",
               [&] { cat({x, Tensor::zeros({4, 3}, DType::F16, device())}, 0); });
  expect_error(ErrorKind::ShapeMismatch, "stack: tensor 2 of 2", [&] { stack({x, y}, 0); });
  expect_error(ErrorKind::BadArgument, "repeat: counts (-1,) are negative",
               [&] { repeat(x, {-1}); });
  expect_error(ErrorKind::BadArgument, "pad_with_same: dimension 0 of shape (0, 3) has no slice",
               [&] { pad_with_same(x.narrow(0, 0, 0), 0, 1, 0); });
  expect_error(ErrorKind::BadArgument, "pad_reflect: a padding of 4 and 0",
               [&] { pad_reflect(x, 0, 4, 0); });
  expect_error(ErrorKind::BadArgument, "pad_with_zeros: a padding of -1 and 0 is negative",
               [&] { pad_with_zeros(x, 0, -1, 0); });
  expect_error(ErrorKind::BadArgument, "pad: 0.5 is not a whole number, and the tensor is u8",
               [&] { pad(Tensor::zeros({2}, DType::U8, device()), {1}, {1}, 0.5); });
  expect_error(ErrorKind::BadArgument, "cat: dim 2 is outside shape (4, 3)", [&] { cat({x}, 2); });
  expect_error(ErrorKind::BadArgument, "stack: the list is empty",
               [&] { stack(std::span<const Tensor>(), 0); });
  expect_error(ErrorKind::BadArgument, "meshgrid: the list is empty",
               [&] { meshgrid(std::span<const Tensor>()); });
  expect_error(ErrorKind::BadArgument, "slice_scatter: dim 0 is outside shape ()",
               [&] { slice_scatter(x.get(0).get(0), x.get(0).get(0), 0, 0); });
  expect_error(ErrorKind::BadArgument, "reach outside dimension 0 of shape (4, 3)",
               [&] { slice_scatter(x, x, 0, std::numeric_limits<std::int64_t>::max()); });
  expect_error(ErrorKind::Overflow, "pad",
               [&] { pad(x, {std::numeric_limits<std::int64_t>::max(), 0}, {0, 0}); });
  expect_error(ErrorKind::BadArgument, "flip: dims (0, -2) name a dimension",
               [&] { flip(x, {0, -2}); });
  expect_error(ErrorKind::BadArgument, "slice_set: 2 slices at 2 reach outside dimension 1", [&] {
    Tensor z = x;
    slice_set(z, y, 1, 2);
  });
  expect_error(ErrorKind::ShapeMismatch, "slice_scatter: a source of shape (4, 2)",
               [&] { slice_scatter(x, y, 0, 0); });
  const Range one[] = {{0, 1}};
  expect_error(ErrorKind::BadArgument, "slice_assign: 1 ranges for shape (4, 3)",
               [&] { slice_assign(x, one, y); });
  const Range none[] = {{2, 2}, {}};
  expect_error(ErrorKind::BadArgument, "slice_assign: the range for dimension 0 of shape (4, 3)",
               [&] { slice_assign(x, none, y); });
}

TEST_P(Join, NoOpCopiesToTheHostOrWaits) {
  const Tensor x = Tensor::zeros({6, 8}, DType::F32, device());
  const DriverCalls before = device().driver_calls();
  cat({x, x.t().t(), x}, 1);
  stack({x, x}, 0);
  repeat(x, {2, 3});
  repeat_interleave(x, 2, 0);
  pad(x, {1, 2}, {3, 4}, 5);
  pad_with_same(x, 0, 1, 1);
  pad_reflect(x, 1, 2, 2);
  roll(x, 3, 1);
  flip(x, {0, 1});
  slice_scatter(x, x, 0, 0);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

TEST_P(Join, TheTableCallsThem) {
  const Tensor x = Tensor::zeros({2, 3}, DType::F32, device());
  const OpValue arguments[] = {std::vector<Tensor>{x, x}, Scalar(0)};
  EXPECT_EQ(call_op("cat", arguments).at(0).shape(), (Shape{4, 3}));
  const OpValue turn[] = {x};
  EXPECT_EQ(call_op("rot90", turn).at(0).shape(), (Shape{3, 2}));
}

}  // namespace
}  // namespace tl
