// Whole runs of training: the loss they reach, the same on every device, and the memory they take.
#include <atomic>
#include <cmath>
#include <functional>
#include <string>

#include "grad/check.h"
#include "grad/transformer.h"
#include "support/sim_guard.h"
#include "tl/ops/unary.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

using namespace test;

class Training : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Training);

// ---- a network of two layers learns a function of two numbers

double mlp_loss(const Device& device, int steps) {
  const std::int64_t count = 64, hidden = 16;
  const Tensor x = to_dtype(spread({count, 2}, 5, device), DType::F32);
  const Tensor product = mul(x.narrow(1, 0, 1), x.narrow(1, 1, 1));
  const Tensor y = sub(mul(product, 2), mul(x.narrow(1, 0, 1), 0.5));
  std::vector<Tensor> p;
  p.push_back(to_dtype(spread({2, hidden}, 6, device), DType::F32));
  p.push_back(Tensor::zeros({hidden}, DType::F32, device));
  p.push_back(to_dtype(spread({hidden, 1}, 7, device, 0.5), DType::F32));
  p.push_back(Tensor::zeros({1}, DType::F32, device));
  const auto optimizer = make_adam({.rate = 0.02});
  double last = 0;
  for (int i = 0; i < steps; ++i) {
    std::vector<Tensor> w;
    for (const Tensor& each : p) w.push_back(follow(each));
    const Tensor out = add(matmul(tanh(add(matmul(x, w[0]), w[1])), w[2]), w[3]);
    const Tensor loss = mse_loss(out, y);
    last = loss.item().real();
    const Gradients found = backward(loss);
    std::vector<Tensor> gradients;
    for (const Tensor& each : w) gradients.push_back(found.of(each));
    optimizer->step(p, gradients);
  }
  return last;
}

TEST_P(Training, OfANetworkReachesTheSameLossEverywhere) {
  const double loss = mlp_loss(device(), 150);
  EXPECT_LT(loss, 0.01);
  EXPECT_NEAR(loss, mlp_loss(Device::cpu(), 150), 1e-3);
}

// ---- a transformer of two layers learns the letters of a sentence

std::vector<double> transformer_losses(const Device& device, int steps) {
  const std::string text = "the cat sat on the mat and the dog sat on the log and they sat still ";
  const std::int64_t time = 16, batch = 3;
  bench::Transformer model(
      {.vocabulary = 27, .width = 16, .layers = 2, .heads = 2, .context = time}, DType::F32,
      device);
  const auto code = [&](std::int64_t i) {
    const char c = text[static_cast<std::size_t>(i) % text.size()];
    return c == ' ' ? std::int64_t{0} : std::int64_t{c - 'a' + 1};
  };
  const auto optimizer = make_adamw({.rate = 0.01});
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    std::vector<std::int64_t> ids, targets;
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t start = (i * 7 + b * 23) % static_cast<std::int64_t>(text.size());
      for (std::int64_t t = 0; t < time; ++t) {
        ids.push_back(code(start + t));
        targets.push_back(code(start + t + 1));
      }
    }
    losses.push_back(model
                         .step(*optimizer, Tensor::from(ids, {batch, time}, device),
                               Tensor::from(targets, {batch, time}, device))
                         .item()
                         .real());
  }
  return losses;
}

TEST_P(Training, OfATransformerReachesTheSameLossEverywhere) {
  const bool is_slow = device().kind() != DeviceKind::Cpu && !simulated_drivers().empty();
  const int steps = is_slow ? 12 : 150;
  const auto losses = transformer_losses(device(), steps);
  EXPECT_NEAR(losses.front(), std::log(27.0), 0.1);
  const auto same = transformer_losses(Device::cpu(), steps);
  for (int i = 0; i < steps; ++i) {
    EXPECT_NEAR(losses[static_cast<std::size_t>(i)], same[static_cast<std::size_t>(i)], 1e-3)
        << "step " << i;
  }
  EXPECT_LT(losses.back(), is_slow ? 2.8 : 0.5);
}

// ---- memory

// Twenty layers, each of which keeps one result.
struct Chain {
  static constexpr std::int64_t kSize = 128, kLayers = 20;
  static constexpr std::uint64_t kBytes = kSize * kSize * 4;

  explicit Chain(const Device& device) {
    for (std::int64_t i = 0; i < kLayers; ++i) {
      weights.push_back(to_dtype(spread({kSize, kSize}, 1, device, 0.1), DType::F32));
    }
    input = to_dtype(spread({kSize, kSize}, 3, device), DType::F32);
  }

  static Tensor layers(std::span<const Tensor> in) {  // an input and weights
    Tensor x = in[0];
    for (const Tensor& w : in.subspan(1)) x = tanh(matmul(x, w));
    return x;
  }

  // One step; the gradients are the caller's.
  std::vector<Tensor> gradients(std::int64_t per_checkpoint) const {
    std::vector<Tensor> w;
    for (const Tensor& each : weights) w.push_back(follow(each));
    Tensor x = input;
    for (std::int64_t i = 0; i < kLayers; i += std::max<std::int64_t>(per_checkpoint, 1)) {
      if (per_checkpoint == 0) {
        x = tanh(matmul(x, w[static_cast<std::size_t>(i)]));
        continue;
      }
      std::vector<Tensor> in{x};
      for (std::int64_t k = i; k < i + per_checkpoint; ++k) {
        in.push_back(w[static_cast<std::size_t>(k)]);
      }
      x = checkpoint(layers, std::move(in));
    }
    const Tensor loss = mean_all(x);
    x = Tensor();
    const Gradients found = backward(loss);
    std::vector<Tensor> out;
    for (const Tensor& each : w) out.push_back(found.of(each));
    return out;
  }

  std::vector<Tensor> weights;
  Tensor input;
};

std::uint64_t peak_of(const Device& device, const std::function<void()>& action) {
  device.synchronize();
  device.reset_peak();
  action();
  device.synchronize();
  return device.pool().peak_bytes;
}

TEST_P(Training, TakesWhatItKeepsAndNoMore) {
  device().synchronize();
  const std::uint64_t before = device().pool().live_bytes;
  {
    Chain chain(device());
    const auto optimizer = make_adam({});
    const auto step = [&] {
      const auto gradients = chain.gradients(0);
      optimizer->step(chain.weights, gradients);
    };
    step();  // the optimiser has its state now
    const std::uint64_t peak = peak_of(device(), step) - before;
    // Weights, their two moments, the input, and, when the last gradient is computed, either the
    // kept results or the gradients that replaced them, whichever were more; and three results in
    // the hands of the op that runs.
    const std::uint64_t kept = Chain::kBytes * (3 * Chain::kLayers + 1 + Chain::kLayers + 3);
    EXPECT_LE(peak, kept + kept / 20);
    EXPECT_GE(peak, kept - kept / 20);
    device().synchronize();
    EXPECT_EQ(device().pool().live_bytes - before, Chain::kBytes * (3 * Chain::kLayers + 1));
  }
  device().synchronize();
  EXPECT_EQ(device().pool().live_bytes, before);
}

TEST_P(Training, GivesTheSameGradientsWithCheckpoints) {
  const Chain chain(device());
  const auto plain = chain.gradients(0), again = chain.gradients(5);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i].to_vector<float>(), again[i].to_vector<float>()) << "layer " << i;
  }
}

TEST_P(Training, LeavesFewResultsBehindWithCheckpoints) {
  const Chain chain(device());
  std::vector<Tensor> w;
  for (const Tensor& each : chain.weights) w.push_back(follow(each));
  device().synchronize();
  const std::uint64_t before = device().pool().live_bytes;
  Tensor x = chain.input;
  for (std::size_t i = 0; i < w.size(); i += 5) {
    std::vector<Tensor> in{x};
    in.insert(in.end(), w.begin() + static_cast<std::ptrdiff_t>(i),
              w.begin() + static_cast<std::ptrdiff_t>(i) + 5);
    x = checkpoint(Chain::layers, std::move(in));
  }
  device().synchronize();
  EXPECT_EQ(device().pool().live_bytes - before, 4 * Chain::kBytes);
  x = chain.input;
  for (const Tensor& each : w) x = tanh(matmul(x, each));
  device().synchronize();
  EXPECT_EQ(device().pool().live_bytes - before, 20 * Chain::kBytes);
}

std::atomic<int> detaches{0};

TEST_P(Training, CopiesNothingForClones) {
  const Chain chain(device());
  detaches = 0;
  const MemoryHook before = set_memory_hook([](const MemoryEvent& event) noexcept {
    if (event.kind == MemoryEvent::Kind::Detach) ++detaches;
  });
  const Chain clone = chain;
  clone.gradients(0);
  device().synchronize();
  EXPECT_EQ(detaches, 0);
  Tensor written = clone.weights[0];  // the counter counts
  fill_at(written, written.layout().narrow(0, 0, 1), 0);
  device().synchronize();
  EXPECT_EQ(detaches, 1);
  set_memory_hook(before);
}

}  // namespace
}  // namespace tl
