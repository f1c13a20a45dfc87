// Products of quantised rows on GPUs: every path against float64, and batches against single rows.
// Products of f16 and bf16 rows on every device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "quant/gpu/product.h"
#include "runtime/blas.h"
#include "support/on_every_device.h"
#include "tl/ops/copy.h"
#include "tl/quant/qtensor.h"

namespace tl {
namespace {

using gpu::ProductPath;
using gpu::ProductShape;

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& v : x) v = normal(random);
  return x;
}

std::vector<QType> product_types() {
  return {QType::Q4_0,   QType::Q4_1,   QType::Q5_0, QType::Q5_1, QType::Q8_0,
          QType::Q2_K,   QType::Q3_K,   QType::Q4_K, QType::Q5_K, QType::Q6_K,
          QType::IQ4_NL, QType::IQ4_XS, QType::MXFP4};
}
std::vector<QType> piece_types() { return {QType::Q4_K, QType::Q5_K, QType::Q6_K}; }
std::vector<QType> block_types() {
  std::vector<QType> types;
  for (const QFormat& format : q_formats()) {
    if (!is_plain(format.type)) types.push_back(format.type);
  }
  return types;
}

// Random codes with scales that are neither large nor zero.
QTensor weight(QType type, std::int64_t n, std::int64_t k, const Device& device) {
  try {
    return QTensor::quantize(Tensor::from(numbers(n * k, 7), {n, k}), type).to(device);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Unsupported) << error.what();
  }
  std::mt19937_64 random(8);
  std::vector<std::byte> blocks(q_bytes("test", type, n, k));
  for (std::byte& each : blocks) each = static_cast<std::byte>(random() & 0x3f);
  return QTensor::from_blocks(blocks, type, {n, k}, device);
}

std::vector<float> multiply(ProductPath path, const QTensor& w, const std::vector<float>& x,
                            DType dtype = DType::F32) {
  const std::int64_t n = w.shape()[0], k = w.columns();
  const auto m = static_cast<std::int64_t>(x.size()) / k;
  const Tensor from = to_dtype(to(Tensor::from(x, {m, k}), w.device()), dtype);
  Tensor y = Tensor::uninitialized({m, n}, dtype, w.device());
  gpu::product(path, w.type(), w.memory(), ProductShape{n, k, m}, from, y);
  return to_dtype(y, DType::F32).to_vector<float>();
}

// Every element within `bound` times the usual size of a sum of such terms, and `slack`.
void expect_near(const QTensor& w, const std::vector<float>& x, const std::vector<float>& y,
                 double bound, std::string_view what, double slack = 1e-6) {
  const auto values = w.dequantize().to_vector<float>();
  const auto k = static_cast<std::size_t>(w.columns()), n = values.size() / k;
  ASSERT_EQ(y.size(), x.size() / k * n);
  for (std::size_t i = 0; i < x.size() / k; ++i) {
    for (std::size_t r = 0; r < n; ++r) {
      double want = 0, size = 0;
      for (std::size_t j = 0; j < k; ++j) {
        const double term = static_cast<double>(values[r * k + j]) * x[i * k + j];
        want += term;
        size += term * term;
      }
      ASSERT_LE(std::abs(y[i * n + r] - want), bound * std::sqrt(size) + slack)
          << what << ' ' << w << " row " << r << " of x " << i;
    }
  }
}

class GpuProducts : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    OnEveryDevice::SetUp();
    if (device().is_cpu()) GTEST_SKIP() << "for GPUs";
  }
  bool simulated() const { return device().properties().name.starts_with("Simulated"); }
};
TL_ON_EVERY_DEVICE(GpuProducts);

// x is rounded to within 1/254 of the largest of 32, about three times its usual size: an error of
// 0.7 % of each term at most, of which six are allowed.
constexpr double kByteBound = 0.042;
// Halves on both sides: at most three roundings of 2^-12 each of each term, of which six are
// allowed.
constexpr double kHalfBound = 6 * 3.0 / 4096;

// Every kernel once, on the smallest inputs: what an emulator has time for.
TEST_P(GpuProducts, SweepOverEveryKernel) {
  const std::int64_t k = 256;
  for (const QType type : product_types()) {
    const QTensor w = weight(type, 3, k, device());
    for (const std::int64_t m : {1, 2, 4, 8}) {
      const auto x = numbers(m * k, 9);
      expect_near(w, x, multiply(ProductPath::Vector, w, x), kByteBound, "vector");
    }
    const auto one = numbers(k, 9);
    EXPECT_EQ(multiply(ProductPath::Row, w, one), multiply(ProductPath::Vector, w, one)) << type;
    const auto x = numbers(3 * k, 9);
    expect_near(w, x, multiply(ProductPath::Narrow, w, x), kHalfBound, "narrow");
    expect_near(w, x, multiply(ProductPath::Wide, w, x), kHalfBound, "wide");
    expect_near(w, x, multiply(ProductPath::Group, w, x), kHalfBound, "group");
  }
  for (const QType type : piece_types()) {
    const QTensor w = weight(type, 8, k, device());
    const auto x = numbers(k, 9);
    expect_near(w, x, multiply(ProductPath::Pieces, w, x), kByteBound, "pieces");
  }
  for (const QType type : block_types()) {
    const QTensor w = weight(type, 2, k, device());
    const auto x = numbers(k, 9);
    expect_near(w, x, multiply(ProductPath::Decoded, w, x), 1e-5, "decoded");
  }
}

TEST_P(GpuProducts, VectorsOfEveryCountAreNearTheTruth) {
  for (const QType type : product_types()) {
    const std::int64_t k = format_of(type).elements == 32 ? 32 * 37 : 256 * 5;
    for (const std::int64_t n : {1, 2, 9, 33}) {
      const QTensor w = weight(type, n, k, device());
      for (std::int64_t m = 1; m <= 8; m += n == 33 ? 1 : 3) {
        const auto x = numbers(m * k, 9);
        expect_near(w, x, multiply(ProductPath::Vector, w, x), kByteBound, "vector");
      }
    }
  }
}

TEST_P(GpuProducts, AVectorsResultDoesNotDependOnItsCompany) {
  for (const QType type : product_types()) {
    const std::int64_t k = 1280;
    const QTensor w = weight(type, 21, k, device());
    const auto x = numbers(8 * k, 10);
    const auto all = multiply(ProductPath::Vector, w, x);
    for (const std::int64_t m : {1, 2, 3, 6}) {
      const std::vector<float> some(x.begin() + k, x.begin() + k + m * k);
      const auto y = multiply(ProductPath::Vector, w, some);
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], all[21 + i]) << type << ' ' << m;
    }
  }
}

// Rows in one piece and in several, whole and not, more and fewer than there are warps.
TEST_P(GpuProducts, RowsGiveTheBitsOfVectors) {
  for (const QType type : product_types()) {
    const std::int64_t unit = format_of(type).elements;
    for (const std::int64_t k : {unit, 2048 + unit, std::int64_t{4096}, 8192 + 3 * unit}) {
      const std::int64_t n = simulated() && k > 4096 ? 70 : 600;
      const QTensor w = weight(type, n, k, device());
      const auto x = numbers(k, 18);
      const auto y = multiply(ProductPath::Row, w, x);
      expect_near(w, x, y, kByteBound, "row");
      // Long rows of a small matrix are cut there, and added up in another order.
      const bool cut = n < 16 * device().properties().multiprocessors && k >= 2048;
      if (!cut) {
        EXPECT_EQ(y, multiply(ProductPath::Vector, w, x)) << type << ' ' << k;
      }
    }
  }
}

// Rows of less than a warp's columns, of as many, and of several warps' with some left; as many
// rows as a block takes at once, and more and fewer. Rows of Q6_K begin anywhere in sixteen bytes.
TEST_P(GpuProducts, PiecesOfRowsAreNearTheTruth) {
  // Of the longest, a block has a part of every row and of x in shared memory.
  const bool has_room = device().properties().shared_memory_per_block_optin > 100U << 10;
  for (const QType type : piece_types()) {
    for (const std::int64_t k : {256, 512, 1280, 2048, 4096, 4352, 8448, 14336}) {
      if (k == 14336 && !has_room) continue;
      for (const std::int64_t n : {8, 40, 120, 1208}) {
        if (n * k > (simulated() ? 600'000 : 6'000'000)) continue;
        const QTensor w = weight(type, n, k, device());
        const auto x = numbers(k, 18);
        const auto y = multiply(ProductPath::Pieces, w, x);
        expect_near(w, x, y, kByteBound, "pieces");
        EXPECT_EQ(y, multiply(ProductPath::Pieces, w, x)) << type << ": not the same bits again";
      }
    }
  }
}

TEST_P(GpuProducts, PiecesNeedRowsThatEndWithSixteenBytes) {
  const QTensor w = weight(QType::Q6_K, 7, 256, device());
  const auto x = numbers(256, 18);
  test::expect_error(ErrorKind::Unsupported, "Q6_K", [&] { multiply(ProductPath::Pieces, w, x); });
  const QTensor plain = weight(QType::Q4_0, 8, 256, device());
  test::expect_error(ErrorKind::Unsupported, "Q4_0",
                     [&] { multiply(ProductPath::Pieces, plain, x); });
  // linear() takes another way.
  const Tensor y = linear(to(Tensor::from(x, {1, 256}), device()), w);
  expect_near(w, x, y.to_vector<float>(), kByteBound, "linear");
}

// A vector anywhere in memory, in every dtype.
TEST_P(GpuProducts, RowsTakeVectorsThatLieAnywhere) {
  const std::int64_t k = 512;
  const QTensor w = weight(QType::Q5_0, 40, k, device());
  const QTensor of_pieces = weight(QType::Q5_K, 40, k, device());
  const Tensor all = to(Tensor::from(numbers(k + 8, 19), {k + 8}), device());
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for (const std::int64_t skip : {0, 1, 4}) {
      const Tensor x = to_dtype(all, dtype).narrow(0, skip, k);
      std::vector<Tensor> results;
      for (const auto path : {ProductPath::Row, ProductPath::Vector}) {
        Tensor y = Tensor::uninitialized({1, 40}, dtype, device());
        gpu::product(path, w.type(), w.memory(), ProductShape{40, k, 1}, x, y);
        results.push_back(y);
      }
      EXPECT_EQ(to_dtype(results[0], DType::F32).to_vector<float>(),
                to_dtype(results[1], DType::F32).to_vector<float>())
          << dtype << ' ' << skip;
      Tensor y = Tensor::uninitialized({1, 40}, dtype, device());
      gpu::product(ProductPath::Pieces, of_pieces.type(), of_pieces.memory(),
                   ProductShape{40, k, 1}, x, y);
      const double rounding = dtype == DType::F32 ? 0 : dtype == DType::F16 ? 0x1p-11 : 0x1p-8;
      expect_near(of_pieces, to_dtype(x, DType::F32).to_vector<float>(),
                  to_dtype(y, DType::F32).to_vector<float>(), kByteBound + 6 * rounding, "pieces");
    }
  }
}

TEST_P(GpuProducts, EveryFormatIsMultipliedAsDecoded) {
  for (const QType type : block_types()) {
    const QTensor w = weight(type, 11, 768, device());
    const auto x = numbers(3 * 768, 11);
    expect_near(w, x, multiply(ProductPath::Decoded, w, x), 1e-5, "decoded");
  }
}

TEST_P(GpuProducts, MatricesOfEverySizeAreNearTheTruth) {
  struct Case {
    ProductPath path;
    std::int64_t n, m;
  };
  for (const QType type : product_types()) {
    // Neither a whole number of chunks nor of what the warps take together.
    const std::int64_t k = format_of(type).elements == 32 ? 32 * 9 : 256;
    for (const Case& each : {Case{ProductPath::Narrow, 1, 1}, Case{ProductPath::Narrow, 35, 41},
                             Case{ProductPath::Wide, 3, 9}, Case{ProductPath::Wide, 150, 131},
                             Case{ProductPath::Group, 3, 9}, Case{ProductPath::Group, 150, 131}}) {
      // Tiles are the same for all types: a few stand for them where a device is simulated.
      if (each.n == 150 && simulated() && type != QType::Q4_0 && type != QType::Q6_K) continue;
      const QTensor w = weight(type, each.n, k, device());
      const auto x = numbers(each.m * k, 12);
      expect_near(w, x, multiply(each.path, w, x), kHalfBound,
                  each.path == ProductPath::Wide    ? "wide"
                  : each.path == ProductPath::Group ? "group"
                                                    : "narrow");
    }
  }
}

TEST_P(GpuProducts, LongRowsUseEveryPart) {
  for (const QType type : {QType::Q4_0, QType::Q6_K}) {
    const std::int64_t k = 4096 + 256;
    const QTensor w = weight(type, 18, k, device());
    const auto x = numbers(8 * k, 13);
    expect_near(w, x, multiply(ProductPath::Vector, w, x), kByteBound, "vector");
    expect_near(w, x, multiply(ProductPath::Narrow, w, x), kHalfBound, "narrow");
    expect_near(w, x, multiply(ProductPath::Wide, w, x), kHalfBound, "wide");
    expect_near(w, x, multiply(ProductPath::Group, w, x), kHalfBound, "group");
  }
}

TEST_P(GpuProducts, SmallFloatsComeAndGo) {
  const std::int64_t k = 512;
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const QTensor w = weight(QType::Q4_K, 19, k, device());
    std::vector<float> x = numbers(4 * k, 14);
    const auto rounded =
        to_dtype(to_dtype(Tensor::from(x, {4, k}), dtype), DType::F32).to_vector<float>();
    const double rounding = dtype == DType::F16 ? 0x1p-11 : 0x1p-8;
    for (const auto path : {ProductPath::Vector, ProductPath::Decoded, ProductPath::Narrow,
                            ProductPath::Wide, ProductPath::Group}) {
      // A result is rounded once more; it is at most a few times the usual size.
      const double bound = (path == ProductPath::Vector ? kByteBound : kHalfBound) + 6 * rounding;
      expect_near(w, rounded, multiply(path, w, x, dtype), bound, name(dtype));
    }
  }
}

// Rows far outside the range of f16 are scaled into it, each by itself.
TEST_P(GpuProducts, RowsOfAnySizeKeepTheirPrecision) {
  const std::int64_t k = 256;
  const QTensor w = weight(QType::Q8_0, 20, k, device());
  std::vector<float> x = numbers(12 * k, 15);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] *= std::ldexp(1.0f, 10 * static_cast<int>(i / static_cast<std::size_t>(k)) - 60);
  }
  for (const auto path : {ProductPath::Narrow, ProductPath::Wide, ProductPath::Group}) {
    expect_near(w, x, multiply(path, w, x), kHalfBound, "rows of many sizes", 0);
  }
}

TEST_P(GpuProducts, ZeroRowsAreZeroAndInfinitiesStay) {
  const std::int64_t k = 256;
  const QTensor w = weight(QType::Q4_0, 5, k, device());
  for (const auto path :
       {ProductPath::Vector, ProductPath::Narrow, ProductPath::Wide, ProductPath::Group}) {
    std::vector<float> x(static_cast<std::size_t>(3 * k), 0.0f);
    for (std::int64_t j = 0; j < k; ++j) x[static_cast<std::size_t>(k + j)] = 1.0f;
    x[static_cast<std::size_t>(2 * k + 5)] = INFINITY;
    const auto y = multiply(path, w, x);
    for (std::size_t r = 0; r < 5; ++r) {
      EXPECT_EQ(y[r], 0.0f);
      EXPECT_TRUE(std::isfinite(y[5 + r])) << "a neighbour's infinity stays with it";
      EXPECT_FALSE(std::isfinite(y[10 + r]));
    }
  }
}

TEST_P(GpuProducts, LinearTakesTheCodesAndTouchesNoHost) {
  const QTensor w = weight(QType::Q4_K, 64, 512, device());
  for (const std::int64_t m : {1, 8, 9, 70}) {
    const auto x = numbers(m * 512, 16);
    const Tensor from = to(Tensor::from(x, {m, 512}), device());
    device().synchronize();
    const auto before = device().driver_calls();
    const Tensor y = linear(from, w);
    const auto after = device().driver_calls();
    EXPECT_EQ(before.uploads, after.uploads);
    EXPECT_EQ(before.downloads, after.downloads);
    EXPECT_EQ(before.synchronizations, after.synchronizations);
    expect_near(w, x, y.to_vector<float>(), kByteBound, "linear");
  }
}

TEST_P(GpuProducts, PathsThatCannotTakeAShapeSaySo) {
  const QTensor w = weight(QType::IQ2_XS, 4, 256, device());
  const auto x = numbers(9 * 256, 17);
  test::expect_error(ErrorKind::Unsupported, "IQ2_XS", [&] { multiply(ProductPath::Wide, w, x); });
  test::expect_error(ErrorKind::Unsupported, "9 rows",
                     [&] { multiply(ProductPath::Decoded, w, x); });
}

// A weight in the middle of a block of memory lies where words cannot be read: still right.
TEST_P(GpuProducts, AWeightAtAnOddAddressIsMultipliedToo) {
  const QTensor w = weight(QType::Q4_K, 6, 256, device());
  const auto blocks = w.to_blocks();
  RawMemory memory(device(), blocks.size() + 8);
  memory.upload(8, blocks.data(), blocks.size());
  const QTensor odd = QTensor::from_memory(memory.slice(8, blocks.size()), QType::Q4_K, {6, 256});
  for (const std::int64_t m : {2, 12}) {
    const auto x = numbers(m * 256, 18);
    const Tensor y = linear(to(Tensor::from(x, {m, 256}), device()), odd);
    expect_near(w, x, y.to_vector<float>(), kByteBound, "odd");
  }
}

// ---- weights that are plain floats

class PlainWeights : public test::OnEveryDevice {
 protected:
  bool has_library() const { return device().is_gpu() && Blas::of(device()) != nullptr; }
  // A vendor's library takes x in the weight's type: at most half a unit in the last place of each
  // term, of which six are allowed. Elsewhere it is f32 throughout.
  double bound(QType type) const {
    if (!has_library()) return 1e-5;
    return 6 * (type == QType::F16 ? 0x1p-11 : 0x1p-8);
  }
  Tensor on_device(const std::vector<float>& x, std::int64_t k) const {
    return to(Tensor::from(x, {static_cast<std::int64_t>(x.size()) / k, k}), device());
  }
};
TL_ON_EVERY_DEVICE(PlainWeights);

// Rows inside and far outside the range of f16, among each other and alone.
std::vector<float> rows_of_many_sizes(std::int64_t m, std::int64_t k) {
  constexpr float kSizes[] = {1.0f, 1e6f, 1e-9f, 1e30f, 1e-30f};
  std::vector<float> x = numbers(m * k, 20);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] *= kSizes[(i / static_cast<std::size_t>(k) + static_cast<std::size_t>(m)) % 5];
  }
  return x;
}

TEST_P(PlainWeights, RowsOfAnySizeAndCountAreNearTheTruth) {
  struct Case {
    std::int64_t n, k;
  };
  for (const QType type : {QType::F16, QType::BF16}) {
    // The last three are for our own kernels: the simulated library has no algorithm for a multiple
    // of seven, and the others are not whole vectors.
    for (const auto& [n, k] : {Case{20, 256}, Case{64, 72}, Case{28, 64}, Case{21, 64}, {20, 36}}) {
      const QTensor w = weight(type, n, k, device());
      for (const std::int64_t m : {1, 2, 3, 8, 70}) {
        const auto x = rows_of_many_sizes(m, k);
        const auto y = linear(on_device(x, k), w).to_vector<float>();
        expect_near(w, x, y, bound(type), join(m, " rows"), 0);
      }
    }
  }
}

TEST_P(PlainWeights, InfinitiesStayInTheirRows) {
  const std::int64_t n = 8, k = 64;
  for (const QType type : {QType::F16, QType::BF16}) {
    const QTensor w = weight(type, n, k, device());
    std::vector<float> x = rows_of_many_sizes(3, k);
    x[static_cast<std::size_t>(k + 5)] = INFINITY;
    const auto y = linear(on_device(x, k), w).to_vector<float>();
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isfinite(y[i]), i / static_cast<std::size_t>(n) != 1) << type << ' ' << i;
    }
  }
}

TEST_P(PlainWeights, GoToTheVendorsLibraryWhereThereIsOne) {
  if (device().is_cpu()) GTEST_SKIP() << "for GPUs";
  const std::int64_t n = 20, k = 256;
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const QTensor w = weight(dtype == DType::F16 ? QType::F16 : QType::BF16, n, k, device());
    for (const std::int64_t m : {1, 70}) {
      const auto x = rows_of_many_sizes(m, k);
      Tensor y = Tensor::uninitialized({m, n}, DType::F32, device());
      ASSERT_EQ(gpu::plain_product(dtype, w.memory(), {n, k, m}, on_device(x, k), y), has_library())
          << dtype;
      if (has_library()) expect_near(w, x, y.to_vector<float>(), bound(w.type()), name(dtype), 0);
    }
  }
}

}  // namespace
}  // namespace tl
