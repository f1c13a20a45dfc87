#include "tl/quant/qtensor.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <sstream>
#include <vector>

#include "support/on_every_device.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/matmul.h"

namespace tl {
namespace {

using test::expect_error;

std::vector<QType> block_types() {
  std::vector<QType> types;
  for (const QFormat& format : q_formats()) {
    if (!is_plain(format.type)) types.push_back(format.type);
  }
  return types;
}

// Random bytes, the same for every type: xorshift64*, of which the top byte is taken.
std::vector<std::byte> random_blocks(QType type, int blocks) {
  std::uint64_t state = 88172645463325252u;
  std::vector<std::byte> bytes(static_cast<std::size_t>(blocks) * format_of(type).bytes);
  for (std::byte& each : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    each = static_cast<std::byte>(state * 0x2545F4914F6CDD1Du >> 56);
  }
  return bytes;
}

QTensor random_tensor(QType type, const Shape& shape, const Device& device) {
  const int blocks = static_cast<int>(element_count("test", shape) / format_of(type).elements);
  return QTensor::from_blocks(random_blocks(type, blocks), type, shape, device);
}

void put_half(std::vector<std::byte>& bytes, std::size_t at, std::uint16_t bits) {
  bytes[at] = static_cast<std::byte>(bits & 255);
  bytes[at + 1] = static_cast<std::byte>(bits >> 8);
}

class QTensors : public test::OnEveryDevice {};
TL_ON_EVERY_DEVICE(QTensors);

// What the dequantiser of the formats' authors (ggml at b21e4de745) makes of 400 random blocks, all
// bit patterns of scales among them: FNV-1a over the f32 bits, -0 taken as 0 and every NaN as one.
TEST_P(QTensors, EveryFormatDecodesAsItsAuthorsDo) {
  struct Known {
    QType type;
    std::uint64_t hash;
  };
  constexpr std::array kKnown = {
      Known{QType::Q4_0, 0x6bf7bd1e9bcb2783u},   Known{QType::Q4_1, 0x19fa28d2c131df07u},
      Known{QType::Q5_0, 0xd76d4470813b8383u},   Known{QType::Q5_1, 0x97fb998b7a6a4514u},
      Known{QType::Q8_0, 0xf82e89a5bf597cc3u},   Known{QType::Q2_K, 0xe216b4aa368ba06bu},
      Known{QType::Q3_K, 0x0e572aec125ce783u},   Known{QType::Q4_K, 0xabdbd4eebea4e87fu},
      Known{QType::Q5_K, 0x2adaa4845b875740u},   Known{QType::Q6_K, 0x1fa7088c11fdf351u},
      Known{QType::Q8_K, 0x7bad44097ef9316bu},   Known{QType::IQ2_XXS, 0x00078a5521718433u},
      Known{QType::IQ2_XS, 0xd9b107509d46e313u}, Known{QType::IQ3_XXS, 0xab698eb95986c603u},
      Known{QType::IQ1_S, 0xb99129fa1c34ec03u},  Known{QType::IQ4_NL, 0x8d426492da237cc3u},
      Known{QType::IQ3_S, 0x9a902921ad6c1583u},  Known{QType::IQ2_S, 0x39e2bb6b6d53dfcfu},
      Known{QType::IQ4_XS, 0x48838d6d10441483u}, Known{QType::IQ1_M, 0x650b50c612dacce3u},
      Known{QType::TQ1_0, 0x6d05a80f1f562383u},  Known{QType::TQ2_0, 0xc2b86ae91d8d8383u},
      Known{QType::MXFP4, 0x94c29a3208515b83u},  Known{QType::NVFP4, 0x4304af771591b383u},
      Known{QType::Q1_0, 0xb0352cf916372383u},   Known{QType::Q2_0, 0xa92e98aac3d97383u}};
  EXPECT_EQ(kKnown.size() + 1, block_types().size());  // Q8_1 has a test of its own
  for (const Known& known : kKnown) {
    const Shape shape{400, format_of(known.type).elements};
    const Tensor values = random_tensor(known.type, shape, device()).dequantize();
    std::uint64_t hash = 1469598103934665603u;
    for (const float value : values.to_vector<float>()) {
      const float plain = value + 0.0f;
      const std::uint32_t bits =
          std::isnan(plain) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(plain);
      hash = (hash ^ bits) * 1099511628211u;
    }
    EXPECT_EQ(hash, known.hash) << known.type;
  }
}

TEST_P(QTensors, Q8_1IsScaleTimesNumberWhateverTheSumBesideIt) {
  std::vector<std::byte> block(36);
  put_half(block, 0, 0x3800);  // 0.5
  put_half(block, 2, 0x7e00);  // a sum that is NaN
  for (std::size_t j = 0; j < 32; ++j) block[4 + j] = static_cast<std::byte>(j * 8 - 128);
  const auto got =
      QTensor::from_blocks(block, QType::Q8_1, {32}, device()).dequantize().to_vector<float>();
  for (int j = 0; j < 32; ++j)
    EXPECT_EQ(got[static_cast<std::size_t>(j)], 0.5f * static_cast<float>(j * 8 - 128));
}

TEST_P(QTensors, ScalesAtTheEdgesGiveWhatTheFormulaGives) {
  // Q4_0 with codes 0, 8 and 15: -8 d, 0 and 7 d.
  const auto decode = [&](std::uint16_t scale) {
    std::vector<std::byte> block(18, static_cast<std::byte>(0xf8));
    put_half(block, 0, scale);
    block[2] = static_cast<std::byte>(0);
    return QTensor::from_blocks(block, QType::Q4_0, {32}, device()).dequantize().to_vector<float>();
  };
  const auto smallest = decode(0x0001);  // 2^-24
  EXPECT_EQ(smallest[0], -0x1p-21f);
  EXPECT_EQ(smallest[1], 0.0f);
  EXPECT_EQ(smallest[17], 7 * 0x1p-24f);
  const auto infinite = decode(0x7c00);
  EXPECT_EQ(infinite[0], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(infinite[1]));  // 0 times infinity
  EXPECT_EQ(infinite[17], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(decode(0x7e00)[0]));

  // MXFP4: exponents 0 and 1 are denormal scales, 255 the largest.
  for (const int e : {0, 1, 2, 127, 254}) {
    std::vector<std::byte> block(17, static_cast<std::byte>(0xf7));  // 12 and -12, halved
    block[0] = static_cast<std::byte>(e);
    const auto got =
        QTensor::from_blocks(block, QType::MXFP4, {32}, device()).dequantize().to_vector<float>();
    EXPECT_EQ(got[0], std::ldexp(6.0f, e - 127)) << e;
    EXPECT_EQ(got[31], std::ldexp(-6.0f, e - 127)) << e;
  }
}

TEST_P(QTensors, HalvesAreTheF32ValuesRoundedOnce) {
  for (const QType type : block_types()) {
    const QTensor q = random_tensor(type, {7, format_of(type).elements * 3}, device());
    const Tensor wide = q.dequantize();
    for (const DType dtype : {DType::F16, DType::BF16}) {
      const auto got = q.dequantize(dtype).reinterpret(DType::I16).to_vector<std::int16_t>();
      const Tensor rounded = to_dtype(wide, dtype);
      EXPECT_EQ(got, rounded.reinterpret(DType::I16).to_vector<std::int16_t>()) << type;
    }
  }
}

TEST_P(QTensors, ManyPiecesAndARaggedEndAreAllWritten) {
  // More than one piece per thread and a last one that is not full.
  const QTensor q = random_tensor(QType::Q8_0, {1031, 96}, device());
  const auto all = q.dequantize().to_vector<float>();
  const auto blocks = q.to_blocks();
  for (const std::size_t row : {std::size_t{0}, std::size_t{517}, std::size_t{1030}}) {
    const std::span<const std::byte> bytes = std::span(blocks).subspan(row * 102, 102);
    const auto alone =
        QTensor::from_blocks(bytes, QType::Q8_0, {96}).dequantize().to_vector<float>();
    for (std::size_t i = 0; i < 96; ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(all[row * 96 + i]),
                std::bit_cast<std::uint32_t>(alone[i]));
    }
  }
}

TEST_P(QTensors, AreValuesThatShareMemory) {
  const QTensor q = random_tensor(QType::Q4_K, {3, 2, 256}, device());
  const QTensor copy = q;
  EXPECT_TRUE(copy.shares_memory_with(q));
  const QTensor second = q.get(1);
  EXPECT_TRUE(second.shares_memory_with(q));
  EXPECT_EQ(second.shape(), (Shape{2, 256}));
  EXPECT_EQ(q.get(-2).to_blocks(), second.to_blocks());
  EXPECT_EQ(second.dequantize().to_vector<float>(),
            contiguous(q.dequantize().get(1)).to_vector<float>());
  EXPECT_EQ(q.to(Device::cpu()).to_blocks(), q.to_blocks());
  EXPECT_EQ(q.to(Device::cpu()).to(device()).dequantize().to_vector<float>(),
            q.dequantize().to_vector<float>());
  EXPECT_TRUE(q.to(device()).shares_memory_with(q));
  EXPECT_EQ(q.rows(), 6);
  EXPECT_EQ(q.row_bytes(), 144u);
  EXPECT_EQ(q.size_bytes(), 6u * 144);
  std::ostringstream text;
  text << q;
  EXPECT_EQ(text.str().substr(0, 14), "Q4_K (3, 2, 25");
}

TEST_P(QTensors, EmptyAndPlainOnesWork) {
  const QTensor none = QTensor::from_blocks({}, QType::Q6_K, {0, 256}, device());
  EXPECT_EQ(none.dequantize().shape(), (Shape{0, 256}));
  EXPECT_EQ(none.rows(), 0);
  EXPECT_EQ(QTensor().dequantize().shape(), (Shape{0}));
  const std::vector<float> values = {1, 2, 3, 4};
  const QTensor plain =
      QTensor::from_blocks(std::as_bytes(std::span(values)), QType::F32, {2, 2}, device());
  EXPECT_EQ(plain.dequantize().to_vector<float>(), values);
  EXPECT_EQ(plain.dequantize(DType::F16).dtype(), DType::F16);
}

TEST_P(QTensors, EmbeddingDecodesTheRowsAskedFor) {
  for (const QType type : {QType::Q4_0, QType::Q6_K, QType::IQ2_S, QType::MXFP4}) {
    const QTensor table = random_tensor(type, {9, 512}, device());
    const Tensor ids = Tensor::from(std::vector<std::uint32_t>{8, 0, 3, 3, 7, 1}, {2, 3}, device());
    const Tensor got = embedding(table, ids, DType::F32);
    EXPECT_EQ(got.shape(), (Shape{2, 3, 512}));
    const Tensor want = embedding(table.dequantize(), ids);
    EXPECT_EQ(got.reinterpret(DType::I32).to_vector<std::int32_t>(),
              want.reinterpret(DType::I32).to_vector<std::int32_t>())
        << type;
  }
}

TEST_P(QTensors, ABadIndexOfAnEmbeddingIsAnError) {
  const QTensor table = random_tensor(QType::Q8_0, {4, 32}, device());
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 4}, device());
  expect_error(ErrorKind::InvalidIndex, "4", [&] {
    embedding(table, ids);
    device().synchronize();
  });
}

TEST_P(QTensors, DecodingMakesNoCopyToTheHostAndWaitsForNothing) {
  if (device().is_cpu()) return;
  const QTensor q = random_tensor(QType::Q5_K, {4, 512}, device());
  const Tensor ids = Tensor::from(std::vector<std::uint32_t>{3, 1}, device());
  embedding(q, ids);
  const auto before = device().driver_calls();
  const Tensor a = q.dequantize(DType::F16);
  const Tensor b = embedding(q, ids);
  const auto after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

TEST_P(QTensors, LinearIsNearTheProductWithTheDecodedWeight) {
  for (const QType type : {QType::Q4_0, QType::Q5_1, QType::Q4_K, QType::Q6_K, QType::IQ4_XS,
                           QType::MXFP4, QType::F16}) {
    std::vector<float> values(24 * 512);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i * i % 977));
    }
    const QTensor w = QTensor::quantize(Tensor::from(values, {24, 512}, device()), type);
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
      std::vector<float> numbers(3 * 512 * 2);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::cos(static_cast<float>(i));
      // Every second row, and a leading dimension.
      const Tensor x =
          to_dtype(Tensor::from(numbers, {1, 6, 512}, device()).slice(1, 0, 6, 2), dtype);
      const Tensor y = linear(x, w);
      EXPECT_EQ(y.shape(), (Shape{1, 3, 24}));
      EXPECT_EQ(y.dtype(), dtype);
      const auto got = to_dtype(y, DType::F32).to_vector<float>();
      const auto want =
          linear(contiguous(to_dtype(x, DType::F32)), w.dequantize()).to_vector<float>();
      // Both sides have a size of about 0.7, so a product one of sqrt(512) / 2.
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.25) << type;
    }
  }
}

// Of block formats with blocks of either size, of one that is decoded, of halves and of floats;
// with rows that are few and many, and more of the weight than one thread takes at a time.
TEST_P(QTensors, LinearOfSeveralWeightsGivesTheBitsOfEach) {
  const std::int64_t k = 512;
  std::vector<float> values(static_cast<std::size_t>(300 * k));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i % 977));
  const Tensor all = Tensor::from(values, {300, k}, device());
  std::vector<QTensor> weights;
  std::int64_t rows = 300;
  for (const QType type : {QType::Q4_0, QType::Q6_K, QType::F16, QType::Q8_1, QType::F32,
                           QType::Q4_0, QType::BF16, QType::Q4_K}) {
    weights.push_back(QTensor::quantize(contiguous(all.narrow(0, 0, rows)), type));
    rows = rows * 2 / 3;
  }
  weights.push_back(QTensor::from_blocks({}, QType::Q8_0, {0, k}, device()));
  std::vector<const QTensor*> every;
  for (const QTensor& each : weights) every.push_back(&each);
  // Those that a CPU takes as one piece of work, and all.
  const std::vector<const QTensor*> some{every[0], every[1], every[2], every[3], every[7]};
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const std::int64_t m : {1, 4, 5, 40}) {
      const Tensor x = to_dtype(contiguous(all.narrow(0, 100, m)), dtype);
      for (const auto& chosen : {some, every}) {
        const std::vector<Tensor> together = linear(x, chosen);
        ASSERT_EQ(together.size(), chosen.size());
        for (std::size_t i = 0; i < chosen.size(); ++i) {
          const Tensor alone = linear(x, *chosen[i]);
          EXPECT_EQ(together[i].dtype(), dtype);
          EXPECT_EQ(together[i].shape(), alone.shape());
          EXPECT_EQ(to_dtype(together[i], DType::F32).to_vector<float>(),
                    to_dtype(alone, DType::F32).to_vector<float>())
              << chosen[i]->type() << " number " << i << ", " << m << " rows of " << dtype;
        }
      }
    }
  }
  EXPECT_TRUE(linear(all, std::span<const QTensor* const>()).empty());
}

// However the columns of a product of one row are shared out, and with rows that end within a
// vector.
TEST_P(QTensors, AColumnOfHalvesHasTheSameBitsInAnyCompany) {
  if (device().is_gpu()) GTEST_SKIP() << "there it is the vendor's library's or decoded";
  const std::int64_t n = 301, k = 1003;
  std::vector<float> values(static_cast<std::size_t>(n * k));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i % 971));
  const Tensor all = Tensor::from(values, {n, k}, device());
  const Tensor x =
      Tensor::from(std::vector<float>(values.begin() + 5, values.begin() + 5 + k), {1, k});
  for (const QType type : {QType::F16, QType::BF16}) {
    const QTensor w = QTensor::quantize(all, type);
    const auto whole = linear(x, w).to_vector<float>();
    for (const std::int64_t count : {1, 7, 8, 9, 15, 120, 200}) {
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{3}, n - count}) {
        const auto part = linear(x, w.some_rows(first, count)).to_vector<float>();
        const auto from = whole.begin() + first;
        EXPECT_EQ(part, std::vector<float>(from, from + count))
            << type << ' ' << first << ' ' << count;
      }
    }
  }
}

TEST_P(QTensors, LinearOfSeveralWeightsChecksEachOfThem) {
  const QTensor w = random_tensor(QType::Q8_0, {5, 32}, device());
  const QTensor wide = random_tensor(QType::Q8_0, {5, 64}, device());
  const std::vector<const QTensor*> both{&w, &wide};
  expect_error(ErrorKind::ShapeMismatch, "(5, 64)",
               [&] { linear(Tensor::zeros({2, 32}, DType::F32, device()), both); });
}

TEST_P(QTensors, LinearOfNothingIsZerosOrEmpty) {
  const QTensor w = random_tensor(QType::Q8_0, {5, 32}, device());
  EXPECT_EQ(linear(Tensor::zeros({0, 32}, DType::F32, device()), w).shape(), (Shape{0, 5}));
  const QTensor none = QTensor::from_blocks({}, QType::Q8_0, {0, 32}, device());
  EXPECT_EQ(linear(Tensor::zeros({2, 32}, DType::F32, device()), none).shape(), (Shape{2, 0}));
  const QTensor thin = QTensor::from_blocks({}, QType::Q8_0, {3, 0}, device());
  EXPECT_EQ(linear(Tensor::zeros({2, 0}, DType::F32, device()), thin).to_vector<float>(),
            std::vector<float>(6));
}

TEST_P(QTensors, LinearOfWrongShapesAndDtypesIsAnError) {
  const QTensor w = random_tensor(QType::Q8_0, {5, 32}, device());
  expect_error(ErrorKind::ShapeMismatch, "(2, 64)",
               [&] { linear(Tensor::zeros({2, 64}, DType::F32, device()), w); });
  expect_error(ErrorKind::ShapeMismatch, "(5, 32)",
               [&] { linear(Tensor::zeros({}, DType::F32, device()), w); });
  expect_error(ErrorKind::Unsupported, "i64",
               [&] { linear(Tensor::zeros({2, 32}, DType::I64, device()), w); });
}

TEST_P(QTensors, SomeRowsOfAMatrixShareIt) {
  // Rows of 18 bytes: a part may begin where no word does.
  const QTensor q = random_tensor(QType::Q4_0, {7, 32}, device());
  const QTensor part = q.some_rows(1, 3);
  EXPECT_TRUE(part.shares_memory_with(q));
  EXPECT_EQ(part.shape(), (Shape{3, 32}));
  EXPECT_EQ(part.dequantize().to_vector<float>(),
            contiguous(q.dequantize().narrow(0, 1, 3)).to_vector<float>());
  const Tensor x = Tensor::from(std::vector<float>(2 * 32, 0.5f), {2, 32}, device());
  const auto whole = contiguous(linear(x, q).narrow(1, 1, 3)).to_vector<float>();
  const auto alone = linear(x, part).to_vector<float>();
  ASSERT_EQ(alone.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(alone[i], whole[i], 1e-3f * (1 + std::abs(whole[i])));
  }
  EXPECT_EQ(q.some_rows(7, 0).count(), 0);
  expect_error(ErrorKind::InvalidIndex, "3 rows from 5 on are outside 0 to 6",
               [&] { q.some_rows(5, 3); });
  expect_error(ErrorKind::InvalidIndex, "outside", [&] { q.some_rows(-1, 1); });
  expect_error(ErrorKind::InvalidIndex, "outside", [&] { q.some_rows(0, -1); });
  expect_error(ErrorKind::ShapeMismatch, "is no matrix's", [&] { q.get(0).some_rows(0, 1); });
}

TEST_P(QTensors, WrongSizesAndDtypesAreErrors) {
  const std::vector<std::byte> bytes(36);
  expect_error(ErrorKind::ShapeMismatch, "is 54 bytes, and there are 36",
               [&] { QTensor::from_blocks(bytes, QType::Q4_0, {3, 32}, device()); });
  expect_error(ErrorKind::BadArgument, "not a whole number",
               [&] { QTensor::from_blocks(bytes, QType::Q4_0, {2, 33}, device()); });
  const QTensor q = QTensor::from_blocks(bytes, QType::Q4_0, {2, 32}, device());
  expect_error(ErrorKind::Unsupported, "not f64", [&] { q.dequantize(DType::F64); });
  expect_error(ErrorKind::InvalidIndex, "outside 0 to 1", [&] { q.get(2); });
  expect_error(ErrorKind::ShapeMismatch, "2 dimensions",
               [&] { embedding(q.get(0), Tensor::from(std::vector<std::uint32_t>{0}, device())); });
  expect_error(ErrorKind::ShapeMismatch, "no matrices", [&] { q.get(0).get(0); });
}

}  // namespace
}  // namespace tl
