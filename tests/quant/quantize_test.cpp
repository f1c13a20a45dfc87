// Numbers into blocks: byte for byte where the format has a rule, and close enough where it leaves
// a choice.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "support/on_every_device.h"
#include "tl/ops/copy.h"
#include "tl/quant/qtensor.h"

namespace tl {
namespace {

using test::expect_error;

// Numbers of eight magnitudes, blocks of zeros and of one number among them.
std::vector<float> sample() {
  std::uint64_t state = 88172645463325252u;
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<float>(state * 0x2545F4914F6CDD1Du >> 40) * 0x1p-24f - 0.5f;
  };
  std::vector<float> x(16384);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float u = next();
    const float v = next();
    x[i] = (u + v) * std::ldexp(1.0f, static_cast<int>(i / 64 % 8) - 3);
  }
  for (std::size_t i = 0; i < 32; ++i) x[i] = 0;
  x[70] = 0.5f;
  for (std::size_t i = 128; i < 160; ++i) x[i] = 0.25f;
  return x;
}

double relative_error(const std::vector<float>& x, const QTensor& q) {
  const auto y = q.dequantize().to_vector<float>();
  double error = 0, power = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += std::pow(static_cast<double>(x[i]) - y[i], 2);
    power += std::pow(static_cast<double>(x[i]), 2);
  }
  return std::sqrt(error / power);
}

class Quantize : public test::OnEveryDevice {
 protected:
  QTensor quantized(QType type) const {
    return QTensor::quantize(Tensor::from(sample(), {16, 1024}, device()), type);
  }
};
TL_ON_EVERY_DEVICE(Quantize);

// FNV-1a over the bytes that the formats' authors (ggml at b21e4de745) make of the sample.
TEST_P(Quantize, FormatsWithARuleGiveTheSameBytesAsEverywhere) {
  struct Known {
    QType type;
    std::uint64_t hash;
  };
  for (const Known& known :
       {Known{QType::Q4_0, 0xc11257c0628cbc4eu}, Known{QType::Q4_1, 0x1159e7e0bcb41e97u},
        Known{QType::Q5_0, 0x2444240c6c5eee98u}, Known{QType::Q5_1, 0xf8fa8a60b40689a9u},
        Known{QType::Q8_0, 0xaa5b8dad22cc7c1au}, Known{QType::Q8_1, 0x7ac2118a51093bc3u},
        Known{QType::Q8_K, 0x19e24997b2b7a497u}, Known{QType::MXFP4, 0x7bd1ee4d3b61774fu}}) {
    std::uint64_t hash = 1469598103934665603u;
    for (const std::byte each : quantized(known.type).to_blocks()) {
      hash = (hash ^ static_cast<std::uint64_t>(each)) * 1099511628211u;
    }
    EXPECT_EQ(hash, known.hash) << known.type;
  }
}

// What the authors' search without weights of importance leaves of the same sample, in parts of its
// size; ours may not be worse.
TEST_P(Quantize, SearchedScalesAreAtLeastAsGoodAsTheAuthors) {
  struct Known {
    QType type;
    double error;
  };
  for (const Known& known :
       {Known{QType::Q2_K, 0.275699}, Known{QType::Q3_K, 0.139681}, Known{QType::Q4_K, 0.065239},
        Known{QType::Q5_K, 0.032942}, Known{QType::Q6_K, 0.015650}, Known{QType::IQ4_NL, 0.070159},
        Known{QType::IQ4_XS, 0.071000}}) {
    const double error = relative_error(sample(), quantized(known.type));
    RecordProperty(std::string(name(known.type)), std::to_string(error));
    EXPECT_LE(error, known.error) << known.type;
    EXPECT_GT(error, known.error / 3) << known.type;  // fewer bits than that cannot do better
  }
}

TEST_P(Quantize, ErrorsOfACosineAreWithinThePublishedBounds) {
  std::vector<float> x(4096);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1f + 2 * std::cos(static_cast<float>(i));
  const Tensor on = Tensor::from(x, {1, 4096}, device());
  for (const QType type :
       {QType::Q4_0, QType::Q4_1, QType::Q5_0, QType::Q5_1, QType::Q8_0, QType::Q8_1, QType::Q2_K,
        QType::Q3_K, QType::Q4_K, QType::Q5_K, QType::Q6_K, QType::Q8_K}) {
    const auto y = QTensor::quantize(on, type).dequantize().to_vector<float>();
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(static_cast<double>(x[i]) - y[i], 2);
    const double bound = type == QType::Q2_K ? 0.0075 : type == QType::Q3_K ? 0.004 : 0.002;
    EXPECT_LE(std::sqrt(sum) / 4096, bound) << type;
  }
}

TEST_P(Quantize, ImportantColumnsGetTheSmallerErrors) {
  const auto x = sample();
  const Tensor on = Tensor::from(x, {16, 1024}, device());
  std::vector<float> weights(1024, 1.0f);
  for (std::size_t j = 0; j < weights.size(); j += 4) weights[j] = 100.0f;
  const auto error_of = [&](const QTensor& q) {
    const auto y = q.dequantize().to_vector<float>();
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); i += 4)
      sum += std::pow(static_cast<double>(x[i]) - y[i], 2);
    return sum;
  };
  for (const QType type : {QType::Q2_K, QType::Q3_K, QType::Q4_K, QType::Q5_K, QType::Q6_K,
                           QType::IQ4_NL, QType::IQ4_XS}) {
    const double with = error_of(QTensor::quantize(on, type, Tensor::from(weights)));
    EXPECT_LT(with, error_of(QTensor::quantize(on, type))) << type;
  }
}

TEST_P(Quantize, ViewsAndHalvesAreQuantisedAsTheirValues) {
  const Tensor all = Tensor::from(sample(), {64, 256}, device());
  const Tensor view = all.transpose(0, 1).narrow(0, 3, 7).narrow(1, 0, 32);
  for (const QType type : {QType::Q4_0, QType::Q8_1, QType::IQ4_NL, QType::F16}) {
    EXPECT_EQ(QTensor::quantize(view, type).to_blocks(),
              QTensor::quantize(contiguous(view), type).to_blocks())
        << type;
  }
  const Tensor half = to_dtype(all, DType::BF16);
  EXPECT_EQ(QTensor::quantize(half, QType::Q6_K).to_blocks(),
            QTensor::quantize(to_dtype(half, DType::F32), QType::Q6_K).to_blocks());
}

TEST_P(Quantize, ZerosInfinitiesAndNaNsGiveBlocksAndNoHarm) {
  std::vector<float> x(512, 0.0f);
  const Tensor zeros = Tensor::from(x, {2, 256}, device());
  x[5] = std::numeric_limits<float>::infinity();
  x[300] = std::numeric_limits<float>::quiet_NaN();
  x[40] = -3e38f;
  x[41] = 3e38f;
  x[80] = 1e-42f;
  const Tensor odd = Tensor::from(x, {2, 256}, device());
  for (const QFormat& format : q_formats()) {
    const bool read_only = format.name.starts_with("IQ1") || format.name.starts_with("IQ2") ||
                           format.name.starts_with("IQ3") || format.name.starts_with("TQ") ||
                           format.type == QType::NVFP4 || format.type == QType::Q1_0 ||
                           format.type == QType::Q2_0 || format.type == QType::I8;
    if (read_only) {
      expect_error(ErrorKind::Unsupported, std::string(format.name),
                   [&] { QTensor::quantize(zeros, format.type); });
      continue;
    }
    if (format.type == QType::I16 || format.type == QType::I32 || format.type == QType::I64) {
      continue;
    }
    for (const float value :
         QTensor::quantize(zeros, format.type).dequantize().to_vector<float>()) {
      EXPECT_EQ(value, 0.0f) << format.name;
    }
    EXPECT_EQ(QTensor::quantize(odd, format.type).count(), 512) << format.name;
  }
}

TEST_P(Quantize, WrongArgumentsAreErrors) {
  const Tensor x = Tensor::zeros({2, 48}, DType::F32, device());
  expect_error(ErrorKind::BadArgument, "rows of 48 are not a whole number",
               [&] { QTensor::quantize(x, QType::Q4_0); });
  const Tensor whole = Tensor::zeros({2, 32}, DType::I32, device());
  expect_error(ErrorKind::Unsupported, "i32", [&] { QTensor::quantize(whole, QType::Q4_0); });
  const Tensor y = Tensor::zeros({2, 256}, DType::F32, device());
  expect_error(ErrorKind::ShapeMismatch, "256 columns",
               [&] { QTensor::quantize(y, QType::Q4_K, Tensor::zeros({2, 256}, DType::F32)); });
  expect_error(ErrorKind::BadArgument, "column 3", [&] {
    std::vector<float> weights(256, 1.0f);
    weights[3] = -1;
    QTensor::quantize(y, QType::Q4_K, Tensor::from(weights));
  });
}

}  // namespace
}  // namespace tl
