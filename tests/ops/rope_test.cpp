// Rotary embeddings and gated units.
#include "tl/ops/rope.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"
#include "tl/ops/glu.h"

namespace tl {
namespace {

using namespace test;

class Rope : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Rope);

Bound bound(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 ? Bound{2, 2} : Bound{0.6, 0.1};
}

// x (b, h, t, d); row_of(b, t) is the row of the tables, negative for "nothing".
template <class RowOf>
Host reference(const Host& x, const Host& c, const Host& s, bool interleaved, RowOf row_of) {
  Host y = x;
  const std::int64_t heads = x.shape[1], length = x.shape[2], d = x.shape[3];
  const std::int64_t half = c.shape.back();
  for (std::int64_t row = 0; d > 0 && row < x.count() / d; ++row) {
    const std::int64_t at = row_of(row / (heads * length), row % length);
    for (std::int64_t i = 0; i < half; ++i) {
      const auto first = static_cast<std::size_t>(row * d + (interleaved ? 2 * i : i));
      const std::size_t second = first + static_cast<std::size_t>(interleaved ? 1 : half);
      const auto entry = static_cast<std::size_t>(at * half + i);
      const double cosine = at < 0 ? 0 : c.values[entry], sine = at < 0 ? 0 : s.values[entry];
      y.values[first] = x.values[first] * cosine - x.values[second] * sine;
      y.values[second] = x.values[first] * sine + x.values[second] * cosine;
    }
  }
  return y;
}

// (b, h, t, d) as (b, t, h, d), or back.
Host exchanged(const Host& x) {
  Host y{{x.shape[0], x.shape[2], x.shape[1], x.shape[3]}, x.values};
  std::size_t at = 0;
  for (std::int64_t b = 0; b < y.shape[0]; ++b) {
    for (std::int64_t i = 0; i < y.shape[1]; ++i) {
      for (std::int64_t j = 0; j < y.shape[2]; ++j) {
        for (std::int64_t k = 0; k < y.shape[3]; ++k) {
          y.values[at++] = x.values[static_cast<std::size_t>(
              ((b * x.shape[1] + j) * x.shape[2] + i) * x.shape[3] + k)];
        }
      }
    }
  }
  return y;
}

TEST_P(Rope, TurnsPairsInEveryFormDtypeAndLayout) {
  const Shape shapes[] = {{1, 1, 1, 2}, {2, 3, 5, 8}, {1, 4, 33, 64}, {2, 1, 3, 7}, {2, 0, 3, 4}};
  for (const DType dtype : kFloats) {
    for (const Shape& shape : shapes) {
      // All of the head, and a part of it.
      for (const std::int64_t half : {shape[3] / 2, (shape[3] + 2) / 4}) {
        const Host values = uniform(shape, -2, 2, 51);
        const Host x = rounded(values, dtype);
        const Host c = rounded(uniform({shape[2] + 2, half}, -1, 1, 52), dtype);
        const Host s = rounded(uniform({shape[2] + 2, half}, -1, 1, 53), dtype);
        const auto by_position = [](std::int64_t, std::int64_t t) { return t; };
        for (const Arrangement how : kArrangements) {
          const Tensor in = arrange(values, dtype, how, device());
          const Tensor cosines = arrange(c, dtype, how, device());
          const Tensor sines = arrange(s, dtype, how, device());
          const std::string what = describe("", dtype, shape, how);
          expect_close("rope", rope(in, cosines, sines), dtype,
                       reference(x, c, s, false, by_position), bound(dtype), what);
          expect_close("rope_i", rope_i(in, cosines, sines), dtype,
                       reference(x, c, s, true, by_position), bound(dtype), what);
          expect_close("rope_thd",
                       rope_thd(arrange(exchanged(values), dtype, how, device()), cosines, sines),
                       dtype, exchanged(reference(x, c, s, false, by_position)), bound(dtype),
                       what);
        }
      }
    }
  }
}

TEST_P(Rope, TakesTablesOfEachBatch) {
  const Host x = rounded(uniform({2, 3, 4, 6}, -1, 1, 54), DType::F32);
  const Host c = rounded(uniform({2, 4, 3}, -1, 1, 55), DType::F32);
  const Host s = rounded(uniform({2, 4, 3}, -1, 1, 56), DType::F32);
  const auto on = [&](const Host& h) { return contiguous_on(h, DType::F32, device()); };
  expect_close("rope", rope(on(x), on(c), on(s)), DType::F32,
               reference(x, c, s, false, [](std::int64_t b, std::int64_t t) { return b * 4 + t; }),
               {2, 2});
}

TEST_P(Rope, TakesPositionsOfEveryIndexDtypeAndZeroForNothing) {
  const Host x = rounded(uniform({2, 3, 4, 6}, -1, 1, 57), DType::F32);
  const Host c = rounded(uniform({9, 2}, -1, 1, 58), DType::F32);
  const Host s = rounded(uniform({9, 2}, -1, 1, 59), DType::F32);
  const auto on = [&](const Host& h) { return contiguous_on(h, DType::F32, device()); };
  for (const DType dtype : kInts) {
    const Host line{{4}, {8, 0, 3, 3}}, both{{2, 4}, {0, 1, 2, 3, 8, 7, 6, 5}};
    expect_close(
        "rope", rope(on(x), on(c), on(s), arrange(line, dtype, Arrangement::Stepped, device())),
        DType::F32,
        reference(x, c, s, false,
                  [&](std::int64_t, std::int64_t t) {
                    return static_cast<std::int64_t>(line.values[static_cast<std::size_t>(t)]);
                  }),
        {2, 2});
    expect_close(
        "rope_i",
        rope_i(on(x), on(c), on(s), arrange(both, dtype, Arrangement::Transposed, device())),
        DType::F32,
        reference(x, c, s, true,
                  [&](std::int64_t b, std::int64_t t) {
                    return static_cast<std::int64_t>(
                        both.values[static_cast<std::size_t>(b * 4 + t)]);
                  }),
        {2, 2});
  }
  const Tensor nothing = Tensor::from<std::uint8_t>({1, 255, 2, 255}, {4}, device());
  expect_close("rope", rope(on(x), on(c), on(s), nothing), DType::F32,
               reference(x, c, s, false,
                         [](std::int64_t, std::int64_t t) {
                           return t % 2 == 1 ? std::int64_t{-1} : t / 2 + 1;
                         }),
               {2, 2});
}

TEST_P(Rope, APositionOutsideTheTablesIsAnError) {
  const Tensor x = contiguous_on(uniform({1, 1, 2, 4}, 0, 1, 60), DType::F32, device());
  const Tensor table = contiguous_on(uniform({3, 2}, 0, 1, 61), DType::F32, device());
  for (const std::int64_t bad : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    const Tensor positions = Tensor::from<std::int64_t>({0, bad}, {2}, device());
    expect_error(ErrorKind::InvalidIndex, join("rope: index ", bad), [&] {
      rope(x, table, table, positions);
      device().synchronize();
    });
  }
}

TEST_P(Rope, WrongArgumentsAreNamed) {
  const auto f32 = [&](const Shape& shape) {
    return contiguous_on(uniform(shape, 0, 1, 62), DType::F32, device());
  };
  const Tensor x = f32({2, 3, 4, 6});
  expect_error(ErrorKind::ShapeMismatch, "rope: x must have 4",
               [&] { rope(f32({3, 4, 6}), f32({4, 3}), f32({4, 3})); });
  expect_error(ErrorKind::ShapeMismatch, "rope_i: tables of shape (3, 3)",
               [&] { rope_i(x, f32({3, 3}), f32({3, 3})); });
  expect_error(ErrorKind::ShapeMismatch, "rope: tables of shape (4, 4)",
               [&] { rope(x, f32({4, 4}), f32({4, 4})); });
  expect_error(ErrorKind::ShapeMismatch, "rope: the tables have shapes",
               [&] { rope(x, f32({4, 3}), f32({4, 2})); });
  expect_error(ErrorKind::Unsupported, "rope: needs an integer tensor",
               [&] { rope(x, f32({4, 3}), f32({4, 3}), f32({4})); });
  expect_error(ErrorKind::DTypeMismatch, "rope",
               [&] { rope(x, to_dtype(f32({4, 3}), DType::F16), f32({4, 3})); });
  for (const DType dtype : kInts) {
    const Tensor i = contiguous_on(uniform_for(dtype, {1, 1, 1, 2}, 0, 4, 63), dtype, device());
    const Tensor c = contiguous_on(uniform_for(dtype, {1, 1}, 0, 4, 63), dtype, device());
    expect_unsupported("rope", dtype, device(), [&] { rope(i, c, c); });
    expect_unsupported("rope_i", dtype, device(), [&] { rope_i(i, c, c); });
    expect_unsupported("rope_thd", dtype, device(), [&] { rope_thd(i, c, c); });
  }
}

class Glu : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Glu);

TEST_P(Glu, GatesOneHalfByTheOther) {
  const Shape shapes[] = {{2}, {0, 4}, {3, 0}, {3, 10}, {2, 3, 64}, {5, 2080}, {2, 3, 2, 6}};
  for (const DType dtype : kFloats) {
    for (const Shape& shape : shapes) {
      const Host values = uniform(shape, -6, 6, 64);
      const Host x = rounded(values, dtype);
      Shape half_shape = shape;
      half_shape[shape.size() - 1] /= 2;
      const auto n = static_cast<std::size_t>(half_shape.back());
      Host glus{half_shape, {}}, swiglus{half_shape, {}};
      for (std::size_t i = 0; i < x.values.size() / 2; ++i) {
        const std::size_t at = i / n * 2 * n + i % n;
        const double a = x.values[at], b = x.values[at + n];
        glus.values.push_back(a / (1 + std::exp(-b)));
        swiglus.values.push_back(a / (1 + std::exp(-a)) * b);
      }
      const bool wide = dtype == DType::F32 || dtype == DType::F64;
      for (const Arrangement how : kArrangements) {
        const Tensor in = arrange(values, dtype, how, device());
        const Bound bound{wide ? 6 : 0.6, 0};
        expect_close("glu", glu(in), dtype, glus, bound, describe("", dtype, shape, how));
        expect_close("swiglu", swiglu(in), dtype, swiglus, bound, describe("", dtype, shape, how));
      }
    }
  }
}

TEST_P(Glu, ExtremesStayWhatTheyAre) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x =
      contiguous_on({{4, 2}, {1000, 2, -1000, 2, 3, -inf, std::nan(""), 1}}, DType::F32, device());
  expect_close("swiglu", swiglu(x), DType::F32, {{4, 1}, {2000, -0.0, -inf, std::nan("")}}, {1});
  expect_close(
      "glu", glu(x), DType::F32,
      {{4, 1}, {1000 / (1 + std::exp(-2.0)), -1000 / (1 + std::exp(-2.0)), 0, std::nan("")}}, {2});
}

TEST_P(Glu, WrongArgumentsAreNamed) {
  const Tensor x = contiguous_on(uniform({2, 3}, 0, 1, 65), DType::F32, device());
  expect_error(ErrorKind::ShapeMismatch, "glu: the last dimension of shape (2, 3)",
               [&] { glu(x); });
  expect_error(ErrorKind::ShapeMismatch, "swiglu: the last dimension of shape ()",
               [&] { swiglu(x.get(0).get(0)); });
  for (const DType dtype : kInts) {
    const Tensor i = contiguous_on({{2, 2}, {1, 2, 3, 4}}, dtype, device());
    expect_unsupported("glu", dtype, device(), [&] { glu(i); });
    expect_unsupported("swiglu", dtype, device(), [&] { swiglu(i); });
  }
}

TEST_P(Glu, AndRopeStayOnTheDevice) {
  const Tensor x = contiguous_on(uniform({1, 2, 3, 8}, -1, 1, 66), DType::F32, device());
  const Tensor c = contiguous_on(uniform({5, 4}, -1, 1, 67), DType::F32, device());
  const Tensor p = contiguous_on({{3}, {1, 2, 3}}, DType::I32, device());
  const DriverCalls before = device().driver_calls();
  const Tensor y = swiglu(rope_i(rope(x, c, c, p), c, c));
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
