// Matrix products of every dtype, layout and size.
#include "tl/ops/matmul.h"

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "ops/conformance.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Matmul : public OnEveryDevice {
 protected:
  Tensor on(const Host& values, DType dtype) const {
    return contiguous_on(values, dtype, device());
  }
};
TL_ON_EVERY_DEVICE(Matmul);

// ---- the reference: doubles, one loop per index

struct Reference {
  Host result;
  double scale = 0;  // the largest sum of magnitudes, against which errors of a sum are measured
};

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Wraps an exact sum to an integer dtype.
double wrapped(double x, DType dtype) {
  if (!is_int(dtype) || dtype == DType::I64) return x;  // i64 values here are small
  const double range = std::ldexp(1.0, static_cast<int>(bits_of(dtype)));
  double y = std::fmod(x, range);
  if (y < 0) y += range;
  const bool is_signed = dtype != DType::U8 && dtype != DType::U32;
  return is_signed && y >= range / 2 ? y - range : y;
}

// Operands of rank 2 or more; the batch broadcasts.
Reference product(const Host& a, const Host& b, DType dtype, const Host* bias = nullptr) {
  const int ra = a.shape.size(), rb = b.shape.size();
  const std::int64_t m = a.shape[ra - 2], k = a.shape[ra - 1], n = b.shape[rb - 1];
  const Shape batch_a(std::span(a.shape.begin(), index(ra - 2)));
  const Shape batch_b(std::span(b.shape.begin(), index(rb - 2)));
  const Shape batch = broadcast_shapes("test", batch_a, batch_b);
  Reference out;
  out.result.shape = batch;
  out.result.shape.push_back(m);
  out.result.shape.push_back(n);
  const std::int64_t items = element_count("test", batch);
  for (std::int64_t item = 0; item < items; ++item) {
    // The batch position of each operand, by taking `item` apart from the last dimension on.
    std::int64_t rest = item, at_a = 0, at_b = 0, step_a = 1, step_b = 1;
    for (int d = 1; d <= batch.size(); ++d) {
      const std::int64_t i = rest % batch[batch.size() - d];
      rest /= batch[batch.size() - d];
      if (d <= batch_a.size()) {
        const std::int64_t size = batch_a[batch_a.size() - d];
        at_a += size == 1 ? 0 : i * step_a;
        step_a *= size;
      }
      if (d <= batch_b.size()) {
        const std::int64_t size = batch_b[batch_b.size() - d];
        at_b += size == 1 ? 0 : i * step_b;
        step_b *= size;
      }
    }
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          const double x =
              a.values[index((at_a * m + i) * k + p)] * b.values[index((at_b * k + p) * n + j)];
          sum += x;
          size += std::abs(x);
        }
        if (bias != nullptr) {
          const int rank = bias->shape.size();
          const std::int64_t columns = rank > 0 ? bias->shape[rank - 1] : 1;
          const std::int64_t rows = rank > 1 ? bias->shape[rank - 2] : 1;
          const double x =
              bias->values[index((rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j))];
          sum += x;
          size += std::abs(x);
        }
        out.result.values.push_back(wrapped(sum, dtype));
        if (std::isfinite(size)) out.scale = std::max(out.scale, size);
      }
    }
  }
  return out;
}

// Half a step for the one rounding of the result. What the sum in f32 (or f64) adds is a few steps
// of that type.
Bound bound_for(DType dtype, double scale) {
  return dtype == DType::F32 || dtype == DType::F64 ? Bound{6, scale} : Bound{0.502, scale};
}

Host values_for(DType dtype, const Shape& shape, std::uint64_t seed) {
  return is_int(dtype) ? uniform_for(dtype, shape, -100, 100, seed)
                       : uniform_for(dtype, shape, -1, 1, seed);
}

void expect_product(const Tensor& got, const Host& a, const Host& b, DType dtype,
                    const std::string& what) {
  const Reference want = product(a, b, dtype);
  expect_close("matmul", got, dtype, want.result, bound_for(dtype, want.scale), what);
  EXPECT_TRUE(got.is_contiguous());
}

// ---- layouts and sizes

struct Sizes {
  std::int64_t m, k, n;
};
// Few rows, few columns, both, vectors, inside one tile and across several.
const Sizes kSizes[] = {{1, 1, 1},   {1, 7, 1}, {1, 40, 9},   {3, 33, 70},  {70, 33, 3},
                        {4, 300, 5}, {5, 3, 4}, {17, 19, 23}, {64, 16, 64}, {65, 50, 66}};

TEST_P(Matmul, MultipliesEveryDtypeInEveryLayout) {
  for (const DType dtype : kNumbers) {
    for (const Sizes& s : kSizes) {
      const Host a = values_for(dtype, {s.m, s.k}, 1), b = values_for(dtype, {s.k, s.n}, 2);
      for (const Arrangement how_a : kArrangements) {
        for (const Arrangement how_b : kArrangements) {
          const Tensor x = arrange(a, dtype, how_a, device());
          const Tensor y = arrange(b, dtype, how_b, device());
          expect_product(
              matmul(x, y), a, b, dtype,
              join(dtype, " ", s.m, "x", s.k, "x", s.n, " ", name(how_a), " ", name(how_b)));
        }
      }
    }
  }
}

TEST_P(Matmul, CrossesTilesBlocksAndPanels) {
  const Sizes sizes[] = {
      {129, 257, 131}, {300, 40, 140}, {40, 600, 37}, {2, 1100, 300}, {260, 1030, 1}};
  for (const DType dtype : {DType::F32, DType::BF16, DType::F64, DType::F16, DType::I32}) {
    for (const Sizes& s : sizes) {
      const Host a = values_for(dtype, {s.m, s.k}, 3), b = values_for(dtype, {s.k, s.n}, 4);
      for (const Arrangement how : {Arrangement::Contiguous, Arrangement::Transposed}) {
        expect_product(matmul(on(a, dtype), arrange(b, dtype, how, device())), a, b, dtype,
                       join(dtype, " ", s.m, "x", s.k, "x", s.n, " ", name(how)));
      }
    }
  }
}

TEST_P(Matmul, TakesTransposedMatricesWithALeadingDimension) {
  const DType dtype = DType::F32;
  const Host parent = uniform_for(dtype, {40, 50}, -1, 1, 5);
  const Tensor p = on(parent, dtype);
  const Tensor a = p.narrow(0, 3, 20).narrow(1, 7, 30).t();  // (30, 20), column-major
  const Tensor b = p.narrow(0, 10, 20).narrow(1, 1, 25);     // (20, 25), rows 50 apart
  expect_product(matmul(a, b), host_of(a), host_of(b), dtype, "narrowed and transposed");
  const Tensor c = p.narrow(1, 1, 25).narrow(0, 0, 20).t();  // (25, 20)
  expect_product(matmul(c, b), host_of(c), host_of(b), dtype, "both");
  // Rows that overlap: each starts one element after the one before.
  const Tensor windows = p.get(0).unfold(0, 20, 1);  // (31, 20)
  expect_product(matmul(windows, b), host_of(windows), host_of(b), dtype, "overlapping rows");
  // Every row the same, every column the same.
  const Tensor rows = p.narrow(0, 0, 1).narrow(1, 0, 20).broadcast_as({9, 20});
  expect_product(matmul(rows, b), host_of(rows), host_of(b), dtype, "repeated row");
  const Tensor columns = p.narrow(0, 0, 20).narrow(1, 0, 1).broadcast_as({20, 9});
  expect_product(matmul(a, columns), host_of(a), host_of(columns), dtype, "repeated column");
}

TEST_P(Matmul, BroadcastsTheBatchDimensionByDimension) {
  struct Case {
    Shape a, b;
  };
  const Case cases[] = {
      {{2, 5, 6}, {2, 6, 7}},
      {{3, 5, 6}, {6, 7}},
      {{5, 6}, {3, 6, 7}},
      {{2, 1, 5, 6}, {1, 3, 6, 7}},
      {{2, 3, 5, 6}, {3, 6, 7}},
      {{2, 3, 1, 6}, {2, 3, 6, 9}},
      {{4, 1, 2, 5, 6}, {3, 1, 6, 2}},
      {{2, 2, 2, 2, 2, 2, 3, 4}, {2, 1, 2, 1, 2, 1, 4, 3}},
      {{7, 65, 3}, {7, 3, 66}},
      {{1, 1, 4, 6}, {6, 5}},
  };
  for (const DType dtype : {DType::F32, DType::F16, DType::I64}) {
    for (const Case& c : cases) {
      const Host a = values_for(dtype, c.a, 6), b = values_for(dtype, c.b, 7);
      for (const Arrangement how : kArrangements) {
        expect_product(matmul(arrange(a, dtype, how, device()), arrange(b, dtype, how, device())),
                       a, b, dtype, join(dtype, " ", c.a, " ", c.b, " ", name(how)));
      }
    }
  }
}

TEST_P(Matmul, MultipliesAttentionHeadsInPlaceOfPermutedViews) {
  // (batch, time, heads, size) seen as (batch, heads, time, size) and (batch, heads, size, time).
  const Host values = uniform_for(DType::F32, {2, 5, 3, 8}, -1, 1, 8);
  const Tensor x = on(values, DType::F32);
  const Tensor q = x.permute({0, 2, 1, 3}), k = x.permute({0, 2, 3, 1});
  expect_product(matmul(q, k), host_of(q), host_of(k), DType::F32, "heads");
}

TEST_P(Matmul, FoldsTheBatchOfAContiguousLeftIntoRows) {
  const Host a = uniform_for(DType::F32, {3, 2, 10, 12}, -1, 1, 9);
  const Host b = uniform_for(DType::F32, {12, 8}, -1, 1, 10);
  const Tensor x = on(a, DType::F32), y = on(b, DType::F32);
  const std::uint64_t before = device().driver_calls().launches;
  const Tensor got = matmul(x, y);
  if (device().is_gpu()) {
    EXPECT_LE(device().driver_calls().launches - before, 1u);
  }
  expect_product(got, a, b, DType::F32, "folded");
  expect_equal("matmul", reshape(got, {60, 8}), matmul(reshape(x, {60, 12}), y), "folded");
}

TEST_P(Matmul, AgreesWithTheReferenceOnRandomShapes) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 60; ++round) {
    const DType dtype = kNumbers[random() % std::size(kNumbers)];
    const Shape batch = random_shape(random, static_cast<int>(random() % 3), 3);
    const Shape s = random_shape(random, 3, 40);
    Shape sa = batch, sb = batch;
    for (int d = 0; d < batch.size(); ++d) {
      if (random() % 4 == 0) sa[d] = 1;
      if (random() % 4 == 0) sb[d] = 1;
    }
    sa.push_back(s[0]);
    sa.push_back(s[1]);
    sb.push_back(s[1]);
    sb.push_back(s[2]);
    const Host a = values_for(dtype, sa, random()), b = values_for(dtype, sb, random());
    const Arrangement how_a = kArrangements[random() % 4], how_b = kArrangements[random() % 4];
    expect_product(
        matmul(arrange(a, dtype, how_a, device()), arrange(b, dtype, how_b, device())), a, b, dtype,
        join("round ", round, " ", dtype, " ", sa, " ", sb, " ", name(how_a), " ", name(how_b)));
  }
}

// ---- vectors and other forms

TEST_P(Matmul, PromotesVectors) {
  for (const DType dtype : {DType::F32, DType::I32}) {
    const Host v = values_for(dtype, {6}, 11), m = values_for(dtype, {2, 6, 4}, 12);
    const Host w = values_for(dtype, {4}, 13);
    const Tensor tv = on(v, dtype), tm = on(m, dtype), tw = on(w, dtype);
    Reference left = product({{1, 6}, v.values}, m, dtype);
    left.result.shape = {2, 4};
    expect_close("matmul", matmul(tv, tm), dtype, left.result, bound_for(dtype, left.scale));
    Reference right = product(m, {{4, 1}, w.values}, dtype);
    right.result.shape = {2, 6};
    expect_close("matmul", matmul(tm, tw), dtype, right.result, bound_for(dtype, right.scale));
    Reference both = product({{1, 6}, v.values}, {{6, 1}, v.values}, dtype);
    both.result.shape = {};
    expect_close("matmul", matmul(tv, tv), dtype, both.result, bound_for(dtype, both.scale));
  }
}

TEST_P(Matmul, DotMvAndOuterAreMatrixProducts) {
  for (const DType dtype : kNumbers) {
    const Host v = values_for(dtype, {70}, 14), w = values_for(dtype, {70}, 15);
    const Host m = values_for(dtype, {9, 70}, 16);
    for (const Arrangement how : kArrangements) {
      const Tensor tv = arrange(v, dtype, how, device()), tw = arrange(w, dtype, how, device());
      const Tensor tm = arrange(m, dtype, how, device());
      Reference d = product({{1, 70}, v.values}, {{70, 1}, w.values}, dtype);
      d.result.shape = {};
      expect_close("dot", dot(tv, tw), dtype, d.result, bound_for(dtype, d.scale));
      Reference p = product(m, {{70, 1}, w.values}, dtype);
      p.result.shape = {9};
      expect_close("mv", mv(tm, tw), dtype, p.result, bound_for(dtype, p.scale));
      const Reference o = product({{70, 1}, v.values}, {{1, 70}, w.values}, dtype);
      expect_close("outer", outer(tv, tw), dtype, o.result, bound_for(dtype, o.scale));
    }
  }
}

Host transposed(const Host& x) {
  const std::int64_t rows = x.shape[0], columns = x.shape[1];
  Host out{{columns, rows}, {}};
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) out.values.push_back(x.values[index(r * columns + c)]);
  }
  return out;
}

TEST_P(Matmul, LinearAddsTheBiasBeforeTheOneRounding) {
  const Shape shapes[] = {{33}, {1, 33}, {5, 33}, {2, 3, 33}, {70, 33}, {0, 33}};
  for (const DType dtype : kNumbers) {
    for (const Shape& shape : shapes) {
      const Host x = values_for(dtype, shape, 17), w = values_for(dtype, {20, 33}, 18);
      const Host bias = values_for(dtype, {20}, 19);
      Host rows = x;
      if (shape.size() == 1) rows.shape = {1, 33};
      for (const Arrangement how : kArrangements) {
        const Tensor tx = arrange(x, dtype, how, device());
        const Tensor tw = arrange(w, dtype, how, device());
        const std::string what = describe("linear", dtype, shape, how);
        Reference plain = product(rows, transposed(w), dtype);
        Reference biased = product(rows, transposed(w), dtype, &bias);
        if (shape.size() == 1) plain.result.shape = biased.result.shape = {20};
        expect_close("linear", linear(tx, tw), dtype, plain.result, bound_for(dtype, plain.scale),
                     what);
        expect_close("linear", linear(tx, tw, arrange(bias, dtype, how, device())), dtype,
                     biased.result, bound_for(dtype, biased.scale), what);
      }
    }
  }
}

TEST_P(Matmul, AddmmBroadcastsItsBias) {
  const Shape biases[] = {{}, {1}, {7}, {1, 7}, {6, 1}, {6, 7}};
  for (const DType dtype : kNumbers) {
    for (const std::int64_t k : {5, 0}) {
      const Host a = values_for(dtype, {6, k}, 20), b = values_for(dtype, {k, 7}, 21);
      for (const Shape& shape : biases) {
        const Host bias = values_for(dtype, shape, 22);
        const Reference want = product(a, b, dtype, &bias);
        for (const Arrangement how : kArrangements) {
          expect_close("addmm",
                       addmm(arrange(bias, dtype, how, device()), on(a, dtype), on(b, dtype)),
                       dtype, want.result, bound_for(dtype, want.scale),
                       describe("addmm", dtype, shape, how));
        }
      }
    }
  }
}

TEST_P(Matmul, AddmmOfLargeMatricesBroadcastsItsBias) {
  const Shape biases[] = {{}, {66}, {1, 66}, {50, 1}, {50, 66}};
  for (const DType dtype : kFloats) {
    const Host a = values_for(dtype, {50, 40}, 35), b = values_for(dtype, {40, 66}, 36);
    for (const Shape& shape : biases) {
      const Host bias = values_for(dtype, shape, 37);
      const Reference want = product(a, b, dtype, &bias);
      for (const Arrangement how : kArrangements) {
        expect_close("addmm",
                     addmm(arrange(bias, dtype, how, device()), arrange(a, dtype, how, device()),
                           arrange(b, dtype, how, device())),
                     dtype, want.result, bound_for(dtype, want.scale),
                     describe("addmm", dtype, shape, how));
      }
    }
  }
}

TEST_P(Matmul, UsesTheVendorsLibraryWhereThereIsOne) {
  const char* file = std::getenv("TL_CUBLASLT");
  if (file == nullptr || !device().is_cuda()) GTEST_SKIP() << "no simulated library";
  const Tensor x = on(uniform_for(DType::F32, {2, 3, 65, 66}, -1, 1, 38), DType::F32);
  matmul(x, x.t());
  void* library = ::dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) GTEST_SKIP() << "switched off";
  using Count = std::uint64_t();
  auto* const products = reinterpret_cast<Count*>(::dlsym(library, "simgpu_blas_products"));
  if (products == nullptr) GTEST_SKIP() << "not the simulated library";
  const std::uint64_t before = products();
  matmul(x, x.t());  // one call for the whole batch
  EXPECT_EQ(products() - before, 1u);
  matmul(x.permute({1, 0, 2, 3}), x.permute({1, 0, 2, 3}).t());  // a loop over two
  EXPECT_EQ(products() - before, 3u);
  matmul(x.narrow(3, 0, 3), x.narrow(3, 0, 3).t());  // too small
  EXPECT_EQ(products() - before, 3u);
}

TEST_P(Matmul, BmmTakesRankThreeOnly) {
  const Host a = uniform_for(DType::F32, {3, 4, 5}, -1, 1, 23);
  const Host b = uniform_for(DType::F32, {3, 5, 6}, -1, 1, 24);
  expect_product(bmm(on(a, DType::F32), on(b, DType::F32)), a, b, DType::F32, "bmm");
  expect_error(ErrorKind::ShapeMismatch, "bmm: the left operand must have 3 dimensions",
               [&] { bmm(on(a, DType::F32).get(0), on(b, DType::F32)); });
  expect_error(ErrorKind::ShapeMismatch, "bmm: shapes (1, 4, 5) and (3, 5, 6)",
               [&] { bmm(on(a, DType::F32).narrow(0, 0, 1), on(b, DType::F32)); });
}

TEST_P(Matmul, SqueezedMatricesMultiply) {
  const Host a = uniform_for(DType::F32, {1, 4, 5}, -1, 1, 25);
  const Host b = uniform_for(DType::F32, {5, 1, 6}, -1, 1, 26);
  const Tensor got = matmul(on(a, DType::F32).squeeze(0), on(b, DType::F32).squeeze(1));
  expect_product(got, {{4, 5}, a.values}, {{5, 6}, b.values}, DType::F32, "squeezed");
}

// ---- numbers

TEST_P(Matmul, IntegersWrap) {
  for (const DType dtype : kInts) {
    if (dtype == DType::I64) continue;
    const double top = dtype == DType::U8    ? 255
                       : dtype == DType::I16 ? 32767
                       : dtype == DType::I32 ? 2147483647.0
                                             : 4294967295.0;
    const Host a{{1, 2}, {top, top}}, b{{2, 1}, {2, 3}};
    expect_close("matmul", matmul(on(a, dtype), on(b, dtype)), dtype,
                 {{1, 1}, {wrapped(5 * top, dtype)}}, {});
  }
  const std::int64_t top = std::numeric_limits<std::int64_t>::max();
  const Tensor a = Tensor::from({top, top}, {1, 2}, device());
  const Tensor b = Tensor::from<std::int64_t>({2, 3}, {2, 1}, device());
  EXPECT_EQ(matmul(a, b).to_vector<std::int64_t>()[0], top - 4);
}

TEST_P(Matmul, NanAndInfinityReachTheirRowAndColumnOnly) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    for (const Sizes& s : {Sizes{3, 20, 9}, Sizes{70, 20, 70}}) {
      Host a = uniform_for(dtype, {s.m, s.k}, 0.5, 1, 27);
      Host b = uniform_for(dtype, {s.k, s.n}, 0.5, 1, 28);
      a.values[3] = nan;
      a.values[index(s.k + 2)] = inf;
      b.values[5] = -inf;
      b.values[index(2 * s.n + 1)] = 0;  // inf * 0
      expect_product(matmul(on(a, dtype), on(b, dtype)), a, b, dtype, join(dtype));
    }
  }
}

TEST_P(Matmul, SumsHalvesInF32) {
  // In f16 the sum would stop at 2048, where adding 1 changes nothing.
  const Host ones{{1, 60000}, std::vector<double>(60000, 1)};
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const Tensor x = on(ones, dtype);
    const double want = rounded({{1}, {60000}}, dtype).values[0];
    EXPECT_EQ(host_of(matmul(x, x.t())).values[0], want);
    const Tensor many = x.broadcast_as({8, 60000});
    EXPECT_EQ(host_of(matmul(many, many.t())).values[37], want);
  }
}

TEST_P(Matmul, F32KeepsAllItsBits) {
  // 1 + 2^-20 has 21 bits: shorter formats for the operands would lose it.
  const double fine = 1 + std::ldexp(1, -20);
  Host a{{80, 4}, std::vector<double>(320, fine)}, b{{4, 80}, std::vector<double>(320, 1)};
  for (const double x : host_of(matmul(on(a, DType::F32), on(b, DType::F32))).values) {
    ASSERT_EQ(x, 4 * fine);
  }
}

TEST_P(Matmul, Tf32IsOffUntilAskedForAndSetPerDevice) {
  EXPECT_FALSE(allow_tf32(device()));
  set_allow_tf32(device(), true);
  EXPECT_TRUE(allow_tf32(device()));
  const Host a = uniform_for(DType::F32, {64, 64}, -1, 1, 29);
  const Reference want = product(a, a, DType::F32);
  expect_close("matmul_tf32", matmul(on(a, DType::F32), on(a, DType::F32)), DType::F32, want.result,
               {std::ldexp(1, 13), want.scale});
  set_allow_tf32(device(), false);
  EXPECT_FALSE(allow_tf32(device()));
}

TEST_P(Matmul, GivesTheSameBitsEveryTime) {
  for (const Sizes& s : {Sizes{70, 900, 70}, Sizes{1, 5000, 40}}) {
    const Tensor a = on(uniform_for(DType::F32, {s.m, s.k}, -1, 1, 30), DType::F32);
    const Tensor b = on(uniform_for(DType::F32, {s.k, s.n}, -1, 1, 31), DType::F32);
    const Tensor first = matmul(a, b);
    for (int i = 0; i < 3; ++i) expect_equal("matmul", matmul(a, b), first, "again");
  }
}

// ---- nothing, and what does not fit

TEST_P(Matmul, EmptyProductsAreZerosOrEmpty) {
  for (const DType dtype : kNumbers) {
    const auto empty = [&](const Shape& shape) { return Tensor::zeros(shape, dtype, device()); };
    EXPECT_EQ(matmul(empty({0, 3}), empty({3, 4})).shape(), (Shape{0, 4}));
    EXPECT_EQ(matmul(empty({2, 3}), empty({3, 0})).shape(), (Shape{2, 0}));
    EXPECT_EQ(matmul(empty({0, 2, 3}), empty({3, 4})).shape(), (Shape{0, 2, 4}));
    EXPECT_EQ(matmul(empty({0, 2, 3}), empty({1, 3, 4})).shape(), (Shape{0, 2, 4}));
    expect_close("matmul", matmul(empty({2, 0}), empty({0, 3})), dtype,
                 {{2, 3}, std::vector<double>(6, 0)}, {});
    expect_close("dot", dot(empty({0}), empty({0})), dtype, {{}, {0}}, {});
    expect_close("mv", mv(empty({2, 0}), empty({0})), dtype, {{2}, {0, 0}}, {});
    EXPECT_EQ(outer(empty({0}), empty({3})).shape(), (Shape{0, 3}));
    EXPECT_EQ(linear(empty({2, 0}), empty({5, 0})).shape(), (Shape{2, 5}));
  }
}

TEST_P(Matmul, ChecksShapesThenDevicesThenDtypesOfEmptyOperandsToo) {
  for (const std::int64_t m : {0, 2}) {
    for (const std::int64_t k : {0, 3}) {
      const Tensor a = Tensor::zeros({m, k}, DType::F32, device());
      const Tensor wrong = Tensor::zeros({k + 1, 4}, DType::F16, Device::cpu());
      expect_error(ErrorKind::ShapeMismatch,
                   join("matmul: shapes ", a.shape(), " and ", wrong.shape(), " do not fit"),
                   [&] { matmul(a, wrong); });
      const Tensor other = Tensor::zeros({k, 4}, DType::F16, device());
      expect_error(ErrorKind::DTypeMismatch, "matmul: one operand is f32, another f16",
                   [&] { matmul(a, other); });
      if (device().is_gpu()) {
        const Tensor there = Tensor::zeros({k, 4}, DType::F16, Device::cpu());
        expect_error(ErrorKind::WrongDevice, "matmul: one operand is on ",
                     [&] { matmul(a, there); });
      }
    }
  }
}

TEST_P(Matmul, RefusesWhatDoesNotFit) {
  const auto f = [&](const Shape& shape) { return Tensor::zeros(shape, DType::F32, device()); };
  expect_error(ErrorKind::ShapeMismatch,
               "matmul: shapes (2, 3, 4, 5) and (3, 2, 5, 6) do not broadcast",
               [&] { matmul(f({2, 3, 4, 5}), f({3, 2, 5, 6})); });
  expect_error(ErrorKind::ShapeMismatch, "matmul: shapes () and (3, 3): both need at least one",
               [&] { matmul(f({}), f({3, 3})); });
  expect_error(ErrorKind::ShapeMismatch, "matmul: shapes (3,) and (4,) do not fit",
               [&] { matmul(f({3}), f({4})); });
  expect_error(ErrorKind::ShapeMismatch, "dot: the right operand must have 1 dimensions",
               [&] { dot(f({3}), f({3, 1})); });
  expect_error(ErrorKind::ShapeMismatch, "mv: the matrix must have 2 dimensions",
               [&] { mv(f({1, 3, 3}), f({3})); });
  expect_error(ErrorKind::ShapeMismatch, "linear: shapes (2, 3) and (4, 5)",
               [&] { linear(f({2, 3}), f({4, 5})); });
  expect_error(ErrorKind::ShapeMismatch, "linear: a bias of shape (3,)",
               [&] { linear(f({2, 5}), f({4, 5}), f({3})); });
  expect_error(ErrorKind::ShapeMismatch, "addmm: a bias of shape (3, 4) does not broadcast",
               [&] { addmm(f({3, 4}), f({2, 3}), f({3, 4})); });
  const Tensor b = Tensor::zeros({3, 3}, DType::Bool, device());
  expect_unsupported("matmul", DType::Bool, device(), [&] { matmul(b, b); });
  expect_unsupported("linear", DType::Bool, device(), [&] { linear(b, b); });
}

TEST_P(Matmul, MakesNoHostCopyAndDoesNotWait) {
  const Tensor a = on(uniform_for(DType::F32, {9, 33}, -1, 1, 32), DType::F32);
  const Tensor b = on(uniform_for(DType::F32, {33, 40}, -1, 1, 33), DType::F32);
  matmul(a, b);  // loads what is loaded once
  linear(a, b.t());
  const DriverCalls before = device().driver_calls();
  const Tensor c = matmul(a, b);
  const Tensor d = linear(a, b.t(), b.get(0));
  const Tensor e = mv(a, b.narrow(1, 0, 1).squeeze(1));
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

TEST_P(Matmul, IsInTheTableOfOps) {
  const Tensor a = on(uniform_for(DType::F32, {2, 3}, -1, 1, 34), DType::F32);
  const std::vector<OpValue> two = {a, a.t()};
  expect_equal("matmul", call_op("matmul", two)[0], matmul(a, a.t()));
  const std::vector<OpValue> same = {a, a};
  expect_equal("linear", call_op("linear", same)[0], linear(a, a));
}

// Enough large tiles for any device: batches of products that cross the tiles' edges.
TEST_P(Matmul, ManyLargeTilesGiveWholeNumbersExactly) {
  for (const DType dtype : {DType::F8E4M3, DType::F16, DType::BF16, DType::F32}) {
    const std::int64_t batch = 40, m = 130, k = 5, n = 129;
    Host a = uniform({batch, m, k}, -1.4, 1.4, 93), b = uniform({batch, k, n}, -1.4, 1.4, 94);
    for (double& v : a.values) v = std::round(v);
    for (double& v : b.values) v = std::round(v);
    Host wanted{{batch, m, n}, std::vector<double>(static_cast<std::size_t>(batch * m * n))};
    for (std::int64_t at = 0; at < wanted.count(); ++at) {
      const std::int64_t row = at / n, column = at % n, which = row / m;
      for (std::int64_t i = 0; i < k; ++i) {
        wanted.values[static_cast<std::size_t>(at)] +=
            a.values[static_cast<std::size_t>(row * k + i)] *
            b.values[static_cast<std::size_t>((which * k + i) * n + column)];
      }
    }
    expect_close("matmul",
                 matmul(contiguous_on(a, dtype, device()), contiguous_on(b, dtype, device())),
                 dtype, wanted, {0});
  }
}

}  // namespace
}  // namespace tl
