// Products of quantised rows on the CPU: against float64, between the paths, and between batch
// sizes.
#include "quant/cpu/product.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quant/cpu/quantize.h"
#include "tl/base/error.h"
#include "tl/quant/qtensor.h"

namespace tl {
namespace {

using cpu::ProductPath;
using cpu::RowOrder;

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& v : x) v = normal(random);
  return x;
}

struct Weights {
  QType type;
  std::int64_t n, k;
  std::vector<std::byte> blocks;
  std::vector<float> values;  // what the blocks hold
};

// Numbers quantised where that can be done, random blocks with tame scales otherwise.
Weights weights(QType type, std::int64_t n, std::int64_t k) {
  Weights w{type, n, k, {}, {}};
  if (cpu::can_quantize(type) || is_plain(type)) {
    w.blocks = QTensor::quantize(Tensor::from(numbers(n * k, 7), {n, k}), type).to_blocks();
  } else {
    std::mt19937_64 random(8);
    w.blocks.resize(q_bytes("test", type, n, k));
    for (std::byte& each : w.blocks) each = static_cast<std::byte>(random() & 0x3f);
  }
  w.values = QTensor::from_blocks(w.blocks, type, {n, k}).dequantize().to_vector<float>();
  return w;
}

std::vector<float> multiply(const Weights& w, const std::vector<float>& x, std::int64_t m,
                            ProductPath path, RowOrder order = cpu::best_row_order()) {
  std::vector<float> y(static_cast<std::size_t>(m * w.n), std::nanf(""));
  cpu::product(w.type, w.blocks.data(), w.n, w.k, x.data(), m, y.data(), path, order);
  return y;
}

std::vector<QType> types() {
  std::vector<QType> all;
  for (const QFormat& format : q_formats()) {
    if (!is_plain(format.type)) all.push_back(format.type);
  }
  return all;
}

TEST(QProduct, EveryTypeIsNearTheProductOfWhatItHolds) {
  for (const QType type : types()) {
    for (const std::int64_t m : {1, 3, 13}) {
      const Weights w = weights(type, 37, 768);
      const auto x = numbers(m * w.k, 9);
      const auto y = multiply(w, x, m, cpu::best_product_path());
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t r = 0; r < w.n; ++r) {
          double want = 0, size = 0;
          for (std::int64_t j = 0; j < w.k; ++j) {
            const double term =
                static_cast<double>(w.values[static_cast<std::size_t>(r * w.k + j)]) *
                x[static_cast<std::size_t>(i * w.k + j)];
            want += term;
            size += term * term;
          }
          // Where products are integers, x is rounded to within 1/254 of its block's largest
          // number, about three times its usual size: an error of 0.7 % of each term, of which six
          // are allowed. Elsewhere only f32 sums round.
          const double got = y[static_cast<std::size_t>(i * w.n + r)];
          const bool has_integers = cpu::detail::portable_product(type) != nullptr;
          EXPECT_LE(std::abs(got - want), (has_integers ? 0.042 : 1e-5) * std::sqrt(size) + 1e-6)
              << type << " row " << r << " of " << m;
        }
      }
    }
  }
}

// The paths of this machine beside the portable one.
std::vector<ProductPath> vector_paths() {
  std::vector<ProductPath> paths;
  for (const ProductPath path :
       {ProductPath::Avx2, ProductPath::Avx512Vnni, ProductPath::AmxInt8}) {
    if (cpu::has_product_path(path)) paths.push_back(path);
  }
  return paths;
}

// Every path beside the portable one, with rows in either order, bit for bit; NaN is NaN, whatever
// its bits.
void expect_the_same_bits(const Weights& w, const std::vector<float>& x, std::int64_t m) {
  const auto want = multiply(w, x, m, ProductPath::Portable);
  for (const ProductPath path : vector_paths()) {
    for (const RowOrder order : {RowOrder::Apart, RowOrder::Together}) {
      if (order != cpu::best_row_order() && m > 4) continue;  // rows of panels have one order
      const auto got = multiply(w, x, m, path, order);
      for (std::size_t at = 0; at < want.size(); ++at) {
        if (std::isnan(want[at]) && std::isnan(got[at])) continue;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(want[at]), std::bit_cast<std::uint32_t>(got[at]))
            << w.type << " path " << static_cast<int>(path) << " order " << static_cast<int>(order)
            << " n " << w.n << " k " << w.k << " m " << m << " at " << at << ": " << want[at]
            << " and " << got[at];
      }
    }
  }
}

// Where a block has numbers of two bytes.
std::vector<int> scale_places(QType type) {
  switch (type) {
    case QType::Q4_1:
    case QType::Q5_1:
    case QType::Q4_K:
    case QType::Q5_K:
      return {0, 2};
    case QType::Q2_K:
      return {80, 82};
    case QType::Q3_K:
      return {108};
    case QType::Q6_K:
      return {208};
    case QType::MXFP4:
      return {};
    default:
      return {0};
  }
}

// Types whose products are integers; the others have one path.
std::vector<QType> integer_types() {
  std::vector<QType> some;
  for (const QType type : types()) {
    if (cpu::detail::portable_product(type) != nullptr) some.push_back(type);
  }
  return some;
}

TEST(QProduct, PathsGiveTheSameBits) {
  if (vector_paths().empty()) GTEST_SKIP() << "this machine has the portable path only";
  for (const QType type : integer_types()) {
    const std::int64_t block = format_of(type).elements;
    // Blocks that fill the lanes of a vector, and that do not; the same for rows.
    for (const std::int64_t blocks : {1, 2, 3, 4, 7}) {
      for (const std::int64_t n : {1, 8, 17, 31}) {
        const Weights w = weights(type, n, blocks * block);
        for (std::int64_t m = 1; m <= 17; ++m) {
          expect_the_same_bits(w, numbers(m * w.k, 10), m);
        }
        expect_the_same_bits(w, numbers(33 * w.k, 10), 33);  // enough for a matrix unit
      }
    }
    // Rows that are some steps of blocks long, with and without some blocks more.
    for (const std::int64_t blocks : {8, 9, 12, 15, 16, 17, 20, 23, 36}) {
      const Weights w = weights(type, 3, blocks * block);
      for (const std::int64_t m : {1, 4}) expect_the_same_bits(w, numbers(m * w.k, 12), m);
    }
    const Weights many = weights(type, 157, 2 * block);
    for (const std::int64_t m : {1, 3, 32, 49})
      expect_the_same_bits(many, numbers(m * many.k, 11), m);
  }
}

// Any bits: scales that are denormal, infinite or no number, and codes of every kind.
TEST(QProduct, PathsGiveTheSameBitsForAnyBlocks) {
  if (vector_paths().empty()) GTEST_SKIP() << "this machine has the portable path only";
  for (const QType type : integer_types()) {
    Weights w{type, 40, 8 * 256, {}, {}};
    w.blocks.resize(q_bytes("test", type, w.n, w.k));
    std::mt19937_64 random(13);
    for (const bool finite : {false, true}) {
      for (std::byte& each : w.blocks) {
        // Without the bits 0x4000 no half is infinite; many are denormal.
        each = static_cast<std::byte>(random() & (finite ? 0xbfu : 0xffu));
      }
      for (const std::int64_t m : {1, 6, 32}) {
        auto x = numbers(m * w.k, 14);
        expect_the_same_bits(w, x, m);
        for (float& v : x) v *= 1e-38f;  // scales of x, and what they give, are denormal
        expect_the_same_bits(w, x, m);
        for (float& v : x) v *= 1e38f * 1e37f;  // and products infinite
        expect_the_same_bits(w, x, m);
      }
    }
  }
}

// The largest products: each byte of the blocks the same, and x as large as its bytes can be, with
// one sign or both. Words of sixteen bits overflow here where sums are not taken apart in time.
TEST(QProduct, PathsGiveTheSameBitsForTheLargestCodes) {
  if (vector_paths().empty()) GTEST_SKIP() << "this machine has the portable path only";
  for (const QType type : integer_types()) {
    Weights w{type, 32, 2 * 256, {}, {}};
    w.blocks.resize(q_bytes("test", type, w.n, w.k));
    const QFormat& format = format_of(type);
    for (const unsigned byte : {0x00u, 0x0fu, 0x3fu, 0x77u, 0x7fu, 0x80u, 0x88u, 0xf0u, 0xffu}) {
      for (std::byte& each : w.blocks) each = static_cast<std::byte>(byte);
      // Scales of blocks that are 0.5, so that results are numbers.
      const std::vector<int> halves = scale_places(type);
      for (std::size_t at = 0; at < w.blocks.size(); at += static_cast<std::size_t>(format.bytes)) {
        if (type == QType::MXFP4) w.blocks[at] = std::byte{0x7f};  // a byte, of 2^-1
        for (const int place : halves) {
          w.blocks[at + static_cast<std::size_t>(place)] = std::byte{0x00};
          w.blocks[at + static_cast<std::size_t>(place) + 1] = std::byte{0x38};
        }
      }
      for (const int signs : {0, 1, 2, 3}) {
        for (const std::int64_t m : {1, 5, 32}) {
          std::vector<float> x(static_cast<std::size_t>(m * w.k));
          for (std::size_t j = 0; j < x.size(); ++j) {
            const bool negative =
                signs == 1 || (signs == 2 && j % 2 == 1) || (signs == 3 && j / 16 % 2 == 1);
            x[j] = negative ? -127.0f : 127.0f;
          }
          expect_the_same_bits(w, x, m);
          for (const float y : multiply(w, x, m, ProductPath::Portable)) {
            ASSERT_TRUE(std::isfinite(y)) << type << " byte " << byte;
          }
        }
      }
    }
  }
}

TEST(QProduct, APathThatIsNotThereIsRefused) {
  const Weights w = weights(QType::Q4_0, 8, 32);
  const auto x = numbers(w.k, 15);
  for (const ProductPath path : {ProductPath::Avx2, ProductPath::Avx512Vnni, ProductPath::Amx}) {
    if (cpu::has_product_path(path)) {
      EXPECT_NO_THROW(multiply(w, x, 1, path));
    } else {
      EXPECT_THROW(multiply(w, x, 1, path), Error);
    }
  }
  EXPECT_TRUE(cpu::has_product_path(ProductPath::Portable));
  EXPECT_TRUE(cpu::has_product_path(cpu::best_product_path()));
}

TEST(QProduct, PathsHaveNames) {
  EXPECT_EQ(cpu::product_path("portable"), ProductPath::Portable);
  if (cpu::has_product_path(ProductPath::Avx2)) {
    EXPECT_EQ(cpu::product_path("avx2"), ProductPath::Avx2);
    EXPECT_NE(cpu::product_path(""), ProductPath::Portable);
  }
  for (const char* name : {" ", "AVX2", "sse"}) {
    try {
      cpu::product_path(name);
      FAIL() << "'" << name << "' was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::BadArgument);
      EXPECT_NE(std::string(error.what()).find("portable"), std::string::npos) << error.what();
    }
  }
}

// A row and its place in the weight decide, not how rows are read.
TEST(QProduct, HalvesGiveTheSameBitsInEitherOrderOfRows) {
  for (const QType type : {QType::F16, QType::BF16}) {
    for (const std::int64_t n : {1, 2, 9, 300}) {
      for (const std::int64_t k : {7, 64, 1003}) {
        const Weights w = weights(type, n, k);
        const auto x = numbers(k, 18);
        const ProductPath path = cpu::best_product_path();
        EXPECT_EQ(multiply(w, x, 1, path, RowOrder::Apart),
                  multiply(w, x, 1, path, RowOrder::Together))
            << type << ' ' << n << " x " << k;
      }
    }
  }
}

TEST(QProduct, OrdersOfRowsHaveNames) {
  EXPECT_EQ(cpu::row_order("apart"), RowOrder::Apart);
  EXPECT_EQ(cpu::row_order("together"), RowOrder::Together);
  EXPECT_NO_THROW(cpu::row_order(""));
  try {
    cpu::row_order("Apart");
    FAIL() << "'Apart' was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::BadArgument);
    EXPECT_STREQ(error.what(),
                 "TL_CPU_ROWS: 'Apart' is no order of rows: there are apart, together");
  }
}

// Integers have no rounding: no path sees how many rows there are.
TEST(QProduct, ARowOfABatchIsTheSameBitsAsTheRowAlone) {
  std::vector<ProductPath> paths = vector_paths();
  paths.push_back(ProductPath::Portable);
  for (const ProductPath path : paths) {
    for (const QType type : types()) {
      const Weights w = weights(type, 40, 512);
      constexpr std::int64_t kRows = 34;
      const auto x = numbers(kRows * w.k, 11);
      const auto all = multiply(w, x, kRows, path);
      for (std::int64_t i = 0; i < kRows; ++i) {
        const std::vector<float> row(x.begin() + i * w.k, x.begin() + (i + 1) * w.k);
        const auto alone = multiply(w, row, 1, path);
        for (std::int64_t r = 0; r < w.n; ++r) {
          ASSERT_EQ(alone[static_cast<std::size_t>(r)], all[static_cast<std::size_t>(i * w.n + r)])
              << type << " path " << static_cast<int>(path) << " row " << i;
        }
      }
    }
  }
}

// Tiles of bf16 are nearer to the truth than bytes: both sides are rounded to within 1/512, which
// is 0.16 % of a usual term; six of that are allowed. Numbers of rows and columns that fill tiles,
// panels and blocks, and that do not.
TEST(QProduct, TilesAreNearTheTruthForEveryNumberOfRowsAndColumns) {
  if (!cpu::has_product_path(ProductPath::Amx)) GTEST_SKIP() << "this machine has no such tiles";
  for (const QType type : integer_types()) {
    for (const std::int64_t n : {1, 31, 33, 580}) {
      const std::int64_t k = n == 580 ? 256 : 1280;
      const Weights w = weights(type, n, k);
      for (const std::int64_t m : {96, 129, 530}) {
        if (m == 530 && n > 33) continue;
        const auto x = numbers(m * k, 16);
        const auto y = multiply(w, x, m, ProductPath::Amx);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t r = 0; r < n; ++r) {
            double want = 0, size = 0;
            for (std::int64_t j = 0; j < k; ++j) {
              const double term =
                  static_cast<double>(w.values[static_cast<std::size_t>(r * k + j)]) *
                  x[static_cast<std::size_t>(i * k + j)];
              want += term;
              size += term * term;
            }
            ASSERT_NEAR(y[static_cast<std::size_t>(i * n + r)], want,
                        0.0141 * std::sqrt(size) + 1e-6)
                << type << " n " << n << " m " << m << " at " << i << ", " << r;
          }
        }
      }
    }
  }
}

TEST(QProduct, TilesGiveARowTheSameBitsInEveryBatch) {
  if (!cpu::has_product_path(ProductPath::Amx)) GTEST_SKIP() << "this machine has no such tiles";
  for (const QType type : integer_types()) {
    const Weights w = weights(type, 70, 768);
    constexpr std::int64_t kRows = 140;
    const auto x = numbers(kRows * w.k, 17);
    const auto all = multiply(w, x, kRows, ProductPath::Amx);
    for (const std::int64_t m : {96, 99, 128}) {
      const std::vector<float> last(x.end() - m * w.k, x.end());
      const auto some = multiply(w, last, m, ProductPath::Amx);
      for (std::size_t at = 0; at < some.size(); ++at) {
        ASSERT_EQ(some[at], all[all.size() - some.size() + at]) << type << " of " << m;
      }
    }
  }
}

// The bounds of section 5.4 for vectors 0.1 + 2 cos(i), and for ramps that would overflow sixteen
// bits.
TEST(QProduct, DotsAreWithinThePublishedBounds) {
  struct Bound {
    QType type;
    double error;
  };
  for (const Bound& bound :
       {Bound{QType::Q4_0, 0.001143}, Bound{QType::Q4_1, 0.008}, Bound{QType::Q5_0, 0.001353},
        Bound{QType::Q5_1, 0.00149}, Bound{QType::Q8_0, 0.000092}, Bound{QType::Q2_K, 0.004086},
        Bound{QType::Q3_K, 0.017}, Bound{QType::Q4_K, 0.002425}, Bound{QType::Q5_K, 0.00074},
        Bound{QType::Q6_K, 0.000952}}) {
    for (const bool ramp : {false, true}) {
      std::vector<float> a(4096), b(4096);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const auto at = static_cast<float>(i);
        a[i] = ramp ? at / 4096 : 0.1f + 2 * std::cos(at);
        b[i] = ramp ? at / 4096 : 0.1f + 2 * std::cos(at + 1);
      }
      const auto blocks = QTensor::quantize(Tensor::from(a, {1, 4096}), bound.type).to_blocks();
      float got = 0;
      cpu::product(bound.type, blocks.data(), 1, 4096, b.data(), 1, &got);
      double want = 0;
      for (std::size_t i = 0; i < a.size(); ++i) want += static_cast<double>(a[i]) * b[i];
      EXPECT_LE(std::abs(got - want) / 4096, (bound.error + 1e-5) * (ramp ? 2 : 1))
          << bound.type << (ramp ? " ramp" : "");
    }
  }
}

// One row, few rows and many take different ways; so do whole bundles of columns and what is left.
TEST(QProduct, HalvesAreNearTheTruthForEveryNumberOfRowsAndColumns) {
  for (const QType type : {QType::F16, QType::BF16}) {
    for (const std::int64_t n : {1, 7, 40, 83, 160}) {
      for (const std::int64_t k : {1, 15, 64, 517, 2048, 40000}) {
        if (n * k > 1 << 19) continue;
        const Weights w = weights(type, n, k);
        for (const std::int64_t m : {1, 2, 4, 5, 17}) {
          const auto x = numbers(m * k, 13);
          const auto y = multiply(w, x, m, cpu::best_product_path());
          for (std::int64_t r = 0; r < m; ++r) {
            for (std::int64_t c = 0; c < n; ++c) {
              double want = 0, size = 0;
              for (std::int64_t p = 0; p < k; ++p) {
                const double each =
                    static_cast<double>(x[static_cast<std::size_t>(r * k + p)]) *
                    static_cast<double>(w.values[static_cast<std::size_t>(c * k + p)]);
                want += each;
                size += std::abs(each);
              }
              ASSERT_NEAR(y[static_cast<std::size_t>(r * n + c)], want, 2e-6 * size)
                  << type << " n " << n << " k " << k << " m " << m << " at " << r << ", " << c;
            }
          }
        }
      }
    }
  }
}

TEST(QProduct, HalvesAreNotMadeFloatsAsAWhole) {
  const Device device = Device::cpu();
  constexpr std::int64_t kRows = 1024, kColumns = 1024;
  for (const QType type : {QType::F16, QType::BF16}) {
    const QTensor w =
        QTensor::quantize(Tensor::from(numbers(kRows * kColumns, 3), {kRows, kColumns}), type);
    const Tensor x = Tensor::from(numbers(kColumns, 4), {1, kColumns});
    const std::uint64_t before = device.pool().live_bytes;
    device.reset_peak();
    linear(x, w);
    EXPECT_LT(device.pool().peak_bytes - before, 64U << 10) << type;
  }
}

TEST(QProduct, NumbersThatAreNotFiniteStayInTheirRow) {
  const Weights w = weights(QType::Q4_K, 24, 256);
  for (const std::int64_t m : {3, 100}) {
    auto x = numbers(m * w.k, 12);
    x[static_cast<std::size_t>(w.k) + 5] = std::numeric_limits<float>::infinity();
    const auto y = multiply(w, x, m, cpu::best_product_path());
    for (std::size_t at = 0; at < y.size(); ++at) {
      EXPECT_EQ(std::isfinite(y[at]), at / 24 != 1) << m << " rows, at " << at;
      // Where x is rounded to bytes, the row's scale is no number.
      if (m == 3 && at / 24 == 1) {
        EXPECT_TRUE(std::isnan(y[at]));
      }
    }
  }
}

// f16 and bf16 by tiles, whose terms are NaN where a number is not finite: what comes out is what
// vectors give.
TEST(QProduct, HalvesThatAreNotFiniteGiveWhatTheyShould) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const QType type : {QType::F16, QType::BF16}) {
    for (const std::int64_t m : {1, 40}) {
      Weights w = weights(type, 3, 64);
      const std::uint16_t endless = type == QType::F16 ? 0x7c00 : 0x7f80;
      std::memcpy(w.blocks.data() + 2 * w.k * 2 + 2 * 7, &endless, 2);  // number 7 of row 2
      auto x = numbers(m * w.k, 18);
      for (std::int64_t i = 0; i < m; ++i) x[static_cast<std::size_t>(i * w.k + 7)] = 2;
      x[3] = -infinity;
      const auto y = multiply(w, x, m, cpu::best_product_path());
      for (int r = 0; r < 2; ++r) {
        EXPECT_EQ(y[static_cast<std::size_t>(r)],
                  w.values[static_cast<std::size_t>(r * w.k + 3)] > 0 ? -infinity : infinity);
      }
      for (std::int64_t i = 1; i < m; ++i) {
        EXPECT_TRUE(std::isfinite(y[static_cast<std::size_t>(i * 3)]));
        EXPECT_EQ(y[static_cast<std::size_t>(i * 3 + 2)], infinity) << i;
      }
    }
  }
}

}  // namespace
}  // namespace tl
