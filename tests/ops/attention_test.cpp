// Scaled dot-product attention.
#include "tl/ops/attention.h"

#include <cmath>
#include <limits>
#include <optional>

#include "ops/conformance.h"

namespace tl {
namespace {

using namespace test;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Attention : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Attention);

struct Case {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, depth = 8, values = 8;
  bool causal = false;
  std::optional<std::int64_t> window = std::nullopt;
  std::optional<double> scale = std::nullopt;
  double softcap = 0;
  bool slopes = false;
  int mask = 0;  // 1: bytes, 2: floats, both (b, h, t, s); 3: bytes (s); 4: floats (t, 1)

  std::string text() const {
    return join("b ", batch, " h ", heads, "/", kv_heads, " t ", queries, " s ", keys, " d ", depth,
                "/", values, causal ? " causal" : "", " window ", window.value_or(-1), " cap ",
                softcap, slopes ? " slopes" : "", " mask ", mask);
  }
};

struct Operands {
  Host q, k, v, slopes, mask;
};

Shape mask_shape(const Case& c) {
  if (c.mask == 3) return {c.keys};
  if (c.mask == 4) return {c.queries, 1};
  return {c.batch, c.heads, c.queries, c.keys};
}

Operands make(const Case& c, DType dtype, std::uint64_t seed) {
  Operands o;
  o.q = rounded(uniform({c.batch, c.heads, c.queries, c.depth}, -2, 2, seed), dtype);
  o.k = rounded(uniform({c.batch, c.kv_heads, c.keys, c.depth}, -2, 2, seed + 1), dtype);
  o.v = rounded(uniform({c.batch, c.kv_heads, c.keys, c.values}, -1, 1, seed + 2), dtype);
  o.slopes = rounded(uniform({c.heads}, 0, 0.5, seed + 3), dtype);
  if (c.mask == 1 || c.mask == 3) o.mask = uniform_for(DType::Bool, mask_shape(c), 0, 1, seed + 4);
  if (c.mask == 2 || c.mask == 4) o.mask = rounded(uniform(mask_shape(c), -2, 2, seed + 4), dtype);
  return o;
}

double mask_at(const Case& c, const Host& mask, std::int64_t b, std::int64_t h, std::int64_t i,
               std::int64_t j) {
  std::int64_t at = ((b * c.heads + h) * c.queries + i) * c.keys + j;
  if (c.mask == 3) at = j;
  if (c.mask == 4) at = i;
  return mask.values[static_cast<std::size_t>(at)];
}

Host reference(const Case& c, const Operands& o) {
  Host y{{c.batch, c.heads, c.queries, c.values}, {}};
  const double scale = c.scale.value_or(1 / std::sqrt(static_cast<double>(c.depth)));
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const std::int64_t kv = b * c.kv_heads + h / (c.heads / c.kv_heads);
      for (std::int64_t i = 0; i < c.queries; ++i) {
        const double* q = o.q.values.data() + ((b * c.heads + h) * c.queries + i) * c.depth;
        const std::int64_t own = i + c.keys - c.queries;
        std::vector<long double> scores;
        long double most = -kInfinity, sum = 0;
        for (std::int64_t j = 0; j < c.keys; ++j) {
          const double* k = o.k.values.data() + (kv * c.keys + j) * c.depth;
          long double s = 0;
          for (std::int64_t e = 0; e < c.depth; ++e) s += static_cast<long double>(q[e]) * k[e];
          s *= scale;
          if (c.softcap != 0) s = c.softcap * std::tanh(s / c.softcap);
          if (c.slopes) {
            s += o.slopes.values[static_cast<std::size_t>(h)] * static_cast<long double>(j - own);
          }
          if (c.mask == 1 || c.mask == 3) s = mask_at(c, o.mask, b, h, i, j) == 0 ? -kInfinity : s;
          if (c.mask == 2 || c.mask == 4) s += mask_at(c, o.mask, b, h, i, j);
          if (c.causal && j > own) s = -kInfinity;
          if (c.window.has_value() && j < own - *c.window) s = -kInfinity;
          scores.push_back(s);
          most = std::max(most, s);
        }
        for (long double& s : scores) {
          s = most == -kInfinity ? 0 : std::exp(s - most);
          sum += s;
        }
        for (std::int64_t e = 0; e < c.values; ++e) {
          long double total = 0;
          for (std::int64_t j = 0; j < c.keys; ++j) {
            total += scores[static_cast<std::size_t>(j)] *
                     o.v.values[static_cast<std::size_t>((kv * c.keys + j) * c.values + e)];
          }
          y.values.push_back(static_cast<double>(sum == 0 ? 0 : total / sum));
        }
      }
    }
  }
  return y;
}

void check(const Case& c, DType dtype, const Device& device,
           Arrangement how = Arrangement::Contiguous) {
  const Operands o = make(c, dtype, 81);
  AttentionOptions options{
      .causal = c.causal, .window = c.window, .scale = c.scale, .softcap = c.softcap};
  if (c.slopes) options.slopes = arrange(o.slopes, dtype, how, device);
  if (c.mask == 1) options.mask = arrange(o.mask, DType::Bool, how, device);
  if (c.mask == 3) options.mask = arrange(o.mask, DType::U8, how, device);
  if (c.mask == 2 || c.mask == 4) options.mask = arrange(o.mask, dtype, how, device);
  const Tensor y = scaled_dot_product_attention(arrange(o.q, dtype, how, device),
                                                arrange(o.k, dtype, how, device),
                                                arrange(o.v, dtype, how, device), options);
  EXPECT_TRUE(y.is_contiguous());
  // Results are averages of values of size 1; scores reach about 10 and carry their rounding into
  // the weights.
  const bool wide = dtype == DType::F32 || dtype == DType::F64;
  expect_close("attention", y, dtype, reference(c, o), {wide ? 24 : 0.6, wide ? 1 : 0.1},
               join(c.text(), " ", dtype, " ", name(how)));
}

// One and few queries, many; tiles of 64 not full; sizes of heads.
const Case kCases[] = {
    {},
    {.batch = 2, .heads = 3, .kv_heads = 3, .queries = 5, .keys = 7},
    {.batch = 2, .heads = 4, .kv_heads = 2, .queries = 9, .keys = 13, .depth = 5, .values = 3},
    {.batch = 1, .heads = 2, .kv_heads = 1, .queries = 70, .keys = 131, .depth = 40, .values = 72},
    {.batch = 1, .heads = 6, .kv_heads = 2, .queries = 1, .keys = 700, .depth = 64, .values = 64},
    {.batch = 1, .heads = 2, .kv_heads = 2, .queries = 3, .keys = 65, .depth = 200, .values = 130},
    {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 17, .keys = 20, .depth = 130, .values = 260},
};

TEST_P(Attention, MatchesTheReferenceForEveryDtype) {
  for (const DType dtype : kFloats) {
    for (const Case& c : kCases) check(c, dtype, device());
  }
}

TEST_P(Attention, TakesEveryLayout) {
  for (const DType dtype : {DType::F16, DType::F32, DType::F64}) {
    for (Case c : {kCases[1], kCases[2], kCases[5]}) {
      c.mask = 2;
      c.slopes = true;
      for (const Arrangement how : kArrangements) check(c, dtype, device(), how);
    }
  }
}

TEST_P(Attention, TheCausalEdgeIsAlignedToTheEnd) {
  for (const DType dtype : {DType::BF16, DType::F32, DType::F64}) {
    for (Case c : kCases) {
      c.causal = true;
      check(c, dtype, device());
      c.window = 4;
      check(c, dtype, device());
      c.causal = false;
      check(c, dtype, device());
    }
    // More queries than keys: the first see nothing.
    check({.queries = 12, .keys = 5, .causal = true}, dtype, device());
    check({.queries = 6, .keys = 2, .causal = true}, dtype, device());
    check({.heads = 2, .queries = 130, .keys = 200, .causal = true, .window = 0}, dtype, device());
    check({.heads = 2, .queries = 1, .keys = 1000, .causal = true, .window = 100}, dtype, device());
  }
}

TEST_P(Attention, MasksCapsAndSlopes) {
  for (const DType dtype : {DType::F8E4M3, DType::F16, DType::F32, DType::F64}) {
    for (Case c : {kCases[1], kCases[2], kCases[4]}) {
      for (const int mask : {1, 2, 3, 4}) {
        c.mask = mask;
        check(c, dtype, device());
      }
      c.mask = 0;
      c.softcap = 2;
      check(c, dtype, device());
      c.slopes = true;
      c.scale = 0.25;
      c.causal = true;
      check(c, dtype, device());
    }
  }
}

TEST_P(Attention, FuzzedCases) {
  std::mt19937_64 random(fuzz_seed());
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 40; ++round) {
    Case c;
    c.kv_heads = pick(1, 3);
    c.heads = c.kv_heads * pick(1, 5);
    c.batch = pick(1, 2);
    c.queries = pick(0, 1) == 0 ? pick(1, 8) : pick(9, 70);
    c.keys = pick(1, 150);
    c.depth = pick(1, 70);
    c.values = pick(1, 70);
    c.causal = pick(0, 1) == 0;
    if (pick(0, 3) == 0) c.window = pick(0, 40);
    if (pick(0, 3) == 0) c.softcap = 3;
    c.slopes = pick(0, 3) == 0;
    c.mask = static_cast<int>(pick(0, 4));
    check(c, kFloats[random() % 5], device(), kArrangements[random() % 4]);
  }
}

// A transposed (b, t, h, d), as projections give it, is read where it lies.
TEST_P(Attention, ReadsHeadsInsideRowsWithoutCopies) {
  const Case c{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 11, .keys = 19};
  const Operands o = make(c, DType::F32, 82);
  const auto by_row = [&](const Host& h) {
    return to_dtype(copy(contiguous_on(h, DType::F32, device()).transpose(1, 2)), DType::F32)
        .transpose(1, 2);
  };
  const Tensor q = by_row(o.q), k = by_row(o.k), v = by_row(o.v);
  const DriverCalls before = device().driver_calls();
  const Tensor y = attention(q, k, v);
  const DriverCalls after = device().driver_calls();
  if (!device().is_cpu()) {
    EXPECT_EQ(after.launches, before.launches + 1);
  }
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
  expect_close("attention", y, DType::F32, reference(c, o), {24, 1});
}

TEST_P(Attention, WhatIsFullyMaskedIsZero) {
  for (const std::int64_t queries : {2, 20}) {
    const Case c{.queries = queries, .keys = 6, .mask = 1};
    Operands o = make(c, DType::F32, 83);
    std::fill(o.mask.values.begin(), o.mask.values.end(), 0);
    const auto on = [&](const Host& h) { return contiguous_on(h, DType::F32, device()); };
    const Tensor y =
        attention(on(o.q), on(o.k), on(o.v), contiguous_on(o.mask, DType::Bool, device()));
    const Host zeros{{1, 1, queries, 8},
                     std::vector<double>(static_cast<std::size_t>(queries * 8))};
    expect_close("attention", y, DType::F32, zeros, {0});
    std::fill(o.mask.values.begin(), o.mask.values.end(), -kInfinity);
    expect_close("attention", attention(on(o.q), on(o.k), on(o.v), on(o.mask)), DType::F32, zeros,
                 {0});
  }
}

TEST_P(Attention, NanInAQueryStaysInItsRow) {
  for (const std::int64_t queries : {3, 70}) {
    const Case c{.heads = 2, .kv_heads = 1, .queries = queries, .keys = 90};
    Operands o = make(c, DType::F32, 84);
    const auto on = [&](const Host& h) { return contiguous_on(h, DType::F32, device()); };
    Host want = reference(c, o);
    o.q.values[8] = std::nan("");
    std::fill_n(want.values.begin() + 8, 8, std::nan(""));
    expect_close("attention", attention(on(o.q), on(o.k), on(o.v)), DType::F32, want, {24, 1});
  }
}

TEST_P(Attention, NothingToSeeOrToSay) {
  const auto f32 = [&](const Shape& shape) { return Tensor::zeros(shape, DType::F32, device()); };
  expect_close("attention", attention(f32({1, 2, 3, 4}), f32({1, 2, 0, 4}), f32({1, 2, 0, 2})),
               DType::F32, {{1, 2, 3, 2}, std::vector<double>(12)}, {0});
  EXPECT_EQ(attention(f32({0, 2, 3, 4}), f32({0, 2, 5, 4}), f32({0, 2, 5, 2})).shape(),
            (Shape{0, 2, 3, 2}));
  EXPECT_EQ(attention(f32({1, 2, 3, 4}), f32({1, 2, 5, 4}), f32({1, 2, 5, 0})).shape(),
            (Shape{1, 2, 3, 0}));
  // No elements to multiply: the mean of the values.
  const Tensor v = contiguous_on({{1, 1, 2, 1}, {1, 3}}, DType::F32, device());
  expect_close("attention", attention(f32({1, 1, 1, 0}), f32({1, 1, 2, 0}), v), DType::F32,
               {{1, 1, 1, 1}, {2}}, {1});
}

TEST_P(Attention, WrongArgumentsAreNamed) {
  const auto f32 = [&](const Shape& shape) { return Tensor::zeros(shape, DType::F32, device()); };
  const Tensor q = f32({1, 4, 3, 8}), k = f32({1, 2, 5, 8}), v = f32({1, 2, 5, 8});
  expect_error(ErrorKind::ShapeMismatch, "attention: q must have 4",
               [&] { attention(q.get(0), k, v); });
  expect_error(ErrorKind::ShapeMismatch, "attention: q (1, 4, 3, 8), k (1, 3, 5, 8)",
               [&] { attention(q, f32({1, 3, 5, 8}), f32({1, 3, 5, 8})); });
  expect_error(ErrorKind::ShapeMismatch, "do not fit together",
               [&] { attention(q, k, f32({1, 2, 6, 8})); });
  expect_error(ErrorKind::ShapeMismatch, "attention", [&] { attention(q, k, v, f32({4, 5})); });
  expect_error(ErrorKind::ShapeMismatch, "attention",
               [&] { attention(q, k, v, f32({7, 4, 3, 5})); });
  expect_error(ErrorKind::DTypeMismatch, "attention: a mask is u8, bool or f32, not i64",
               [&] { attention(q, k, v, Tensor::zeros({3, 5}, DType::I64, device())); });
  expect_error(ErrorKind::BadArgument, "attention: softcap",
               [&] { attention(q, k, v, std::nullopt, false, std::nullopt, -1); });
  expect_error(ErrorKind::BadArgument, "attention: a window",
               [&] { attention(q, k, v, std::nullopt, false, std::nullopt, 0, -2); });
  expect_error(ErrorKind::ShapeMismatch, "attention: slopes have shape (3,)", [&] {
    attention(q, k, v, std::nullopt, false, std::nullopt, 0, std::nullopt, f32({3}));
  });
  for (const DType dtype : kInts) {
    const Tensor x = Tensor::zeros({1, 1, 1, 1}, dtype, device());
    expect_unsupported("attention", dtype, device(), [&] { attention(x, x, x); });
  }
}

}  // namespace
}  // namespace tl
