// Work on single rows that is put off: the same results as op by op, in fewer launches.
#include "model/gpu/row_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "model/layered_cache.h"
#include "support/faulty_driver.h"
#include "support/on_every_device.h"
#include "tl/base/text.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/norm.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

constexpr double kEps = 1e-5;

class RowQueues : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    if (!device().is_cpu()) queue_ = gpu::RowQueue::make(device());
    if (queue_ == nullptr) GTEST_SKIP() << "nothing is put off here";
  }
  gpu::RowQueue& queue() { return *queue_; }

  Tensor row(std::int64_t n, double size = 1) {
    return Tensor::from(numbers(n, size), {1, n}, device());
  }
  Tensor vector(std::int64_t n) { return Tensor::from(numbers(n, 1), {n}, device()); }
  QTensor matrix(std::int64_t rows, std::int64_t columns, QType type = QType::Q4_0) {
    const Tensor all = Tensor::from(numbers(rows * columns, 1 / std::sqrt(double(columns))),
                                    {rows, columns}, device());
    return QTensor::quantize(all, type);
  }

  // Calls of launches, counted from here on.
  void count() { before_ = device().driver_calls().launches; }
  std::uint64_t launches() const { return device().driver_calls().launches - before_; }

  void end() { queue_.reset(); }

 private:
  std::vector<float> numbers(std::int64_t count, double size) {
    std::normal_distribution<double> normal(0, size);
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& x : out) x = static_cast<float>(normal(random_));
    return out;
  }

  std::unique_ptr<gpu::RowQueue> queue_;
  std::mt19937 random_{1};
  std::uint64_t before_ = 0;
};
TL_ON_EVERY_DEVICE(RowQueues);

// Inputs become bytes, each 32 with a scale: what that rounds away, and more where two kernels do
// it differently.
void expect_near(const std::optional<Tensor>& got, const Tensor& wanted, double bound = 0.02) {
  ASSERT_TRUE(got.has_value());
  ASSERT_EQ(got->shape(), wanted.shape());
  const std::vector<float> a = got->to_vector<float>(), b = wanted.to_vector<float>();
  double squares = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += double(b[i]) * b[i];
    apart += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  }
  EXPECT_LE(std::sqrt(apart), bound * std::sqrt(squares));
}

TEST_P(RowQueues, ANormAndProductsOfItAreOnePhase) {
  const Tensor x = row(256), weight = vector(256);
  const QTensor q = matrix(96, 256), k = matrix(33, 256, QType::Q8_0), v = matrix(1, 256);
  const Tensor normed = rms_norm(x, weight, kEps);
  const Tensor expected[] = {linear(normed, q), linear(normed, k), linear(normed, v)};
  device().synchronize();
  count();
  std::optional<Tensor> h = queue().norm(x, weight, kEps);
  const auto a = queue().linear(*h, q), b = queue().linear(*h, k), c = queue().linear(*h, v);
  h.reset();
  EXPECT_EQ(launches(), 0u);
  EXPECT_EQ(queue().size(), 1u);
  expect_near(a, expected[0]);
  expect_near(b, expected[1]);
  expect_near(c, expected[2]);
  EXPECT_EQ(launches(), 1u);
}

TEST_P(RowQueues, EveryFormatWithCodesIsMultiplied) {
  const Tensor x = row(512);
  for (const QType type : {QType::Q4_0, QType::Q4_1, QType::Q5_0, QType::Q5_1, QType::Q8_0,
                           QType::Q4_K, QType::Q5_K, QType::Q6_K, QType::F16, QType::BF16}) {
    const QTensor weight = matrix(65, 512, type);
    expect_near(queue().linear(x, weight), linear(x, weight));
  }
  EXPECT_EQ(queue().linear(x, matrix(8, 512, QType::F32)), std::nullopt);
}

TEST_P(RowQueues, FormatsThatAreNotMultipliedTogetherArePhasesOfTheirOwn) {
  const Tensor x = row(256);
  const QTensor bytes = matrix(32, 256), halves = matrix(32, 256, QType::F16);
  const Tensor expected[] = {linear(x, bytes), linear(x, halves)};
  const auto a = queue().linear(x, bytes), b = queue().linear(x, halves);
  EXPECT_EQ(queue().size(), 2u);
  expect_near(a, expected[0]);
  expect_near(b, expected[1]);
}

TEST_P(RowQueues, ABiasIsAdded) {
  const Tensor x = row(64), bias = vector(40);
  const QTensor weight = matrix(40, 64);
  expect_near(queue().linear(x, weight, bias), add(linear(x, weight), bias));
}

TEST_P(RowQueues, AGateIsOnePhaseWhicheverFactorComesFirst) {
  const Tensor x = row(128);
  const QTensor gate = matrix(96, 128), up = matrix(96, 128);
  for (const UnaryOp op : {UnaryOp::Silu, UnaryOp::Gelu}) {
    const Tensor raw = linear(x, gate);
    const Tensor expected = mul(op == UnaryOp::Silu ? silu(raw) : gelu(raw), linear(x, up));
    for (const bool up_first : {false, true}) {
      device().synchronize();
      count();
      std::optional<Tensor> product;
      if (up_first) {
        const auto u = queue().linear(x, up);
        product = queue().multiply(*u, *queue().activate(op, *queue().linear(x, gate)));
      } else {
        const auto active = queue().activate(op, *queue().linear(x, gate));
        product = queue().multiply(*active, *queue().linear(x, up));
      }
      expect_near(product, expected);
      EXPECT_EQ(launches(), 1u);
    }
  }
}

TEST_P(RowQueues, ASumAfterAProductIsPartOfIt) {
  const Tensor x = row(128), stream = row(64);
  const QTensor weight = matrix(64, 128);
  const Tensor expected = add(stream, linear(x, weight));
  for (const bool first : {false, true}) {
    device().synchronize();
    count();
    std::optional<Tensor> part = queue().linear(x, weight);
    const auto sum = first ? queue().add(*part, stream) : queue().add(stream, *part);
    part.reset();
    expect_near(sum, expected);
    EXPECT_EQ(launches(), 1u);
  }
}

TEST_P(RowQueues, WhatSomeoneHoldsIsThereAsWell) {
  const Tensor x = row(128), weight = vector(128), stream = row(96);
  const QTensor gate = matrix(96, 128), up = matrix(96, 128), down = matrix(96, 96);
  const Tensor normed = rms_norm(x, weight, kEps), raw = linear(normed, gate);
  const Tensor passed = linear(normed, up), product = mul(silu(raw), passed);
  const Tensor last = linear(product, down);

  const auto h = queue().norm(x, weight, kEps);
  const auto g = queue().linear(*h, gate);
  const auto s = queue().activate(UnaryOp::Silu, *g);
  const auto u = queue().linear(*h, up);
  const auto m = queue().multiply(*s, *u);
  const auto d = queue().linear(*m, down);
  const auto sum = queue().add(stream, *d);
  expect_near(sum, add(stream, last));
  expect_near(h, normed, 1e-6);
  expect_near(g, raw);
  expect_near(s, silu(raw), 0.03);
  expect_near(u, passed);
  expect_near(m, product, 0.03);
  expect_near(d, last, 0.05);
}

TEST_P(RowQueues, ANormThatIsReadAgainLaterIsStillThat) {
  const Tensor x = row(128), weight = vector(128);
  const QTensor a = matrix(128, 128), b = matrix(64, 128), c = matrix(64, 128);
  const Tensor normed = rms_norm(x, weight, kEps);
  const Tensor expected[] = {linear(linear(normed, a), b), linear(normed, c)};
  const auto h = queue().norm(x, weight, kEps);
  const auto first = queue().linear(*queue().linear(*h, a), b), second = queue().linear(*h, c);
  EXPECT_EQ(queue().size(), 3u);
  expect_near(first, expected[0], 0.03);
  expect_near(second, expected[1]);
  expect_near(h, normed, 1e-6);
}

TEST_P(RowQueues, AnInputThatIsWrittenLaterWasReadBefore) {
  Tensor x = row(128);
  const QTensor weight = matrix(32, 128);
  const Tensor expected = linear(x, weight);
  const auto y = queue().linear(x, weight);
  x.memory().fill("", 1);
  expect_near(y, expected);
  EXPECT_EQ(x.to_vector<float>()[5], 0.0f);
}

TEST_P(RowQueues, OtherOpsReadWhatWasPutOff) {
  const Tensor x = row(128);
  const QTensor weight = matrix(32, 128);
  const Tensor expected = mul(linear(x, weight), 3.0);
  const auto y = queue().linear(x, weight);
  expect_near(mul(*y, 3.0), expected);
}

// Who asks for it has the error; who asks again does not take what lies there for a result.
TEST_P(RowQueues, WhatCouldNotBeLaunchedIsNoNumber) {
  const Tensor x = row(128);
  const QTensor weight = matrix(32, 128);
  const Tensor expected = linear(x, weight);
  device().synchronize();
  device().trim();  // so that the driver is asked for memory
  const auto y = queue().linear(x, weight);
  {
    test::FaultyDriver driver(device().kind());
    driver.fail_from(1, 1000);
    test::expect_error(ErrorKind::OutOfMemory, "", [&] { y->to_vector<float>(); });
  }
  for (const float each : y->to_vector<float>()) EXPECT_TRUE(std::isnan(each));
  expect_near(queue().linear(x, weight), expected);
}

TEST_P(RowQueues, ManyStepsAreLaunchedWhileMoreAreAdded) {
  Tensor x = row(64, 0.1);
  const QTensor weight = matrix(64, 64);
  Tensor expected = x;
  for (int i = 0; i < 100; ++i) expected = add(expected, linear(expected, weight));
  device().synchronize();
  count();
  for (int i = 0; i < 100; ++i) {
    const auto product = queue().linear(x, weight);
    x = *queue().add(x, *product);
  }
  EXPECT_GT(launches(), 0u);
  EXPECT_LT(queue().size(), 100u);
  expect_near(x, expected, 0.2);
}

TEST_P(RowQueues, StepsThatNobodyLetsGoOfDoNotPileUp) {
  const Tensor x = row(64), weight = vector(64);
  const Tensor expected = rms_norm(x, weight, kEps);
  device().synchronize();
  std::vector<Tensor> held;
  std::size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    held.push_back(*queue().norm(x, weight, kEps));
    most = std::max(most, queue().size());
  }
  EXPECT_GT(most, 100u);
  EXPECT_LT(most, 300u);
  for (const std::size_t i : {0u, 3u, 999u}) expect_near(held[i], expected, 1e-6);
}

TEST_P(RowQueues, WhatIsNotForItIsLeftToOps) {
  const QTensor weight = matrix(32, 64);
  EXPECT_EQ(queue().linear(Tensor::zeros({2, 64}, DType::F32, device()), weight), std::nullopt);
  EXPECT_EQ(queue().linear(Tensor::zeros({1, 64}, DType::F16, device()), weight), std::nullopt);
  EXPECT_EQ(queue().linear(row(128).narrow(1, 1, 64), weight), std::nullopt) << "not aligned";
  EXPECT_EQ(queue().linear(row(32), weight), std::nullopt) << "another size";
  EXPECT_EQ(queue().norm(row(60), vector(60), kEps), std::nullopt);
  EXPECT_EQ(queue().activate(UnaryOp::Silu, row(64)), std::nullopt);
  EXPECT_EQ(queue().multiply(row(64), row(64)), std::nullopt);
  EXPECT_EQ(queue().add(row(64), row(64)), std::nullopt);
  const auto y = queue().linear(row(64), weight);
  EXPECT_EQ(queue().activate(UnaryOp::Exp, *y), std::nullopt);
  EXPECT_EQ(queue().multiply(*y, *y), std::nullopt);
  EXPECT_EQ(queue().add(*y, row(1)), std::nullopt);
}

TEST_P(RowQueues, AProductAndItselfAreAdded) {
  const Tensor x = row(64);
  const QTensor weight = matrix(32, 64);
  const Tensor once = linear(x, weight);
  const auto y = queue().linear(x, weight);
  const auto sum = queue().add(*y, *y);
  expect_near(sum, add(once, once));
}

TEST_P(RowQueues, ThereIsOneForAStream) {
  EXPECT_EQ(gpu::RowQueue::make(device()), nullptr);
  end();
  EXPECT_NE(gpu::RowQueue::make(device()), nullptr);
}

TEST_P(RowQueues, ResultsOutliveIt) {
  const Tensor x = row(64);
  const QTensor weight = matrix(32, 64);
  const Tensor expected = linear(x, weight);
  const auto y = queue().linear(x, weight);
  end();
  expect_near(y, expected);
}

// ---- attention

class RowAttentions : public RowQueues {
 protected:
  struct Form {
    std::int64_t heads = 4, kv_heads = 2, size = 32;
    std::int64_t window = 0;
    double softcap = 0;
    KvType type = KvType::F32;
    std::int64_t layers = 2;
  };

  // A step of all layers: what each finds.
  std::vector<Tensor> step(model::LayeredCache& cache, const Form& form, std::int64_t rows,
                           gpu::RowQueue* with, unsigned seed) {
    std::vector<Tensor> found;
    for (std::int64_t layer = 0; layer < form.layers; ++layer) {
      const auto values = [&](std::int64_t heads, unsigned kind) {
        std::mt19937 random(seed * 64 + kind * 8 + static_cast<unsigned>(layer));
        std::normal_distribution<float> normal;
        std::vector<float> out(static_cast<std::size_t>(rows * heads * form.size));
        for (float& x : out) x = normal(random);
        return Tensor::from(out, {rows, heads, form.size}, device());
      };
      // The first layer turns nothing, and only it has a window.
      model::LayerSight sight{.scale = 0.2, .softcap = form.softcap};
      if (layer == 0) {
        sight.window = form.window;
      } else {
        const std::int64_t positions = cache.length(layer) + rows;
        std::vector<float> cosines, sines;
        for (std::int64_t p = 0; p < positions; ++p) {
          for (std::int64_t i = 0; i < form.size / 2; ++i) {
            cosines.push_back(static_cast<float>(std::cos(0.1 * double(p * (i + 1)))));
            sines.push_back(static_cast<float>(std::sin(0.1 * double(p * (i + 1)))));
          }
        }
        sight.cosines = Tensor::from(cosines, {positions, form.size / 2}, device());
        sight.sines = Tensor::from(sines, {positions, form.size / 2}, device());
      }
      found.push_back(cache.attend(layer, values(form.heads, 0), values(form.kv_heads, 1),
                                   values(form.kv_heads, 2), sight, with));
    }
    return found;
  }
};
TL_ON_EVERY_DEVICE(RowAttentions);

TEST_P(RowAttentions, IsThatOfTheOtherKernels) {
  for (const Form& form : {Form{}, Form{.heads = 3, .kv_heads = 3, .size = 8},
                           Form{.heads = 8, .kv_heads = 1, .size = 64, .type = KvType::F16},
                           Form{.window = 5, .softcap = 2.0}}) {
    const KvShape shape{form.layers, form.kv_heads, form.size, form.size, form.type};
    const auto own = std::make_shared<model::LayeredCache>(device(), shape);
    const auto other = std::make_shared<model::LayeredCache>(device(), shape);
    unsigned seed = 0;
    for (const std::int64_t rows : {std::int64_t{7}, std::int64_t{1}, std::int64_t{1},
                                    std::int64_t{60}, std::int64_t{1}, std::int64_t{1}}) {
      ++seed;
      const std::vector<Tensor> got = step(*own, form, rows, &queue(), seed);
      const std::vector<Tensor> wanted = step(*other, form, rows, nullptr, seed);
      for (std::size_t i = 0; i < got.size(); ++i) expect_near(got[i], wanted[i], 0.003);
    }
    expect_near(to_dtype(own->keys(1), DType::F32), to_dtype(other->keys(1), DType::F32), 1e-3);
    expect_near(to_dtype(own->values(0), DType::F32), to_dtype(other->values(0), DType::F32), 1e-3);
  }
}

TEST_P(RowAttentions, ACacheThatIsGoneIsWrittenBeforeItsMemoryIsUsedAgain) {
  const Form form;
  auto cache = std::make_shared<model::LayeredCache>(
      device(), KvShape{form.layers, form.kv_heads, form.size, form.size, form.type});
  const std::vector<Tensor> found = step(*cache, form, 1, &queue(), 1);
  cache.reset();
  device().trim();
  EXPECT_FALSE(std::isnan(found[0].to_vector<float>()[0]));
}

}  // namespace
}  // namespace tl
