// A decoder-only transformer for training, made of ops alone: what the training benchmark times and
// the training test follows.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "tl/grad/grad.h"
#include "tl/grad/optimizer.h"
#include "tl/ops/attention.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/loss.h"
#include "tl/ops/matmul.h"
#include "tl/ops/norm.h"
#include "tl/ops/unary.h"
#include "tl/tensor/tensor.h"

namespace tl::bench {

struct TransformerSizes {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t context = 0;
};

class Transformer {
 public:
  // The same numbers on every device: drawn on the host by a small generator.
  Transformer(const TransformerSizes& sizes, DType dtype, const Device& device)
      : s_(sizes), dtype_(dtype), device_(device) {
    add_weight({s_.vocabulary, s_.width}, 0.02);
    add_weight({s_.context, s_.width}, 0.02);
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      add_norm();
      add_weight({3 * s_.width, s_.width}, 0.02);
      add_weight({s_.width, s_.width}, 0.02 / std::sqrt(2.0 * static_cast<double>(s_.layers)));
      add_norm();
      add_weight({4 * s_.width, s_.width}, 0.02);
      add_weight({s_.width, 4 * s_.width}, 0.02 / std::sqrt(2.0 * static_cast<double>(s_.layers)));
    }
    add_norm();
    add_weight({s_.vocabulary, s_.width}, 0.02);
  }

  std::vector<Tensor>& parameters() { return parameters_; }
  std::int64_t parameter_count() const {
    std::int64_t count = 0;
    for (const Tensor& p : parameters_) count += p.count();
    return count;
  }

  // The mean cross entropy for ids (batch, time) and the ids that follow them.
  Tensor loss(std::span<const Tensor> p, const Tensor& ids, const Tensor& targets) const {
    const auto [batch, time] = ids.dims<2>();
    std::size_t next = 0;
    const auto take = [&]() -> const Tensor& { return p[next++]; };
    const Tensor& table = take();
    Tensor x = add(embedding(table, ids), take().narrow(0, 0, time));
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      x = add(x, attend(p.subspan(next, 4), x, batch, time));
      next += 4;
      x = add(x, feed_forward(p.subspan(next, 4), x));
      next += 4;
    }
    const Tensor scale = take(), shift = take();
    x = layer_norm(x, scale, shift);
    const Tensor logits = linear(reshape(x, {batch * time, s_.width}), take());
    return cross_entropy(logits, reshape(targets, {batch * time}));
  }

  // One step; the loss before it, which stays on the device.
  Tensor step(Optimizer& optimizer, const Tensor& ids, const Tensor& targets) {
    std::vector<Tensor> followed;
    followed.reserve(parameters_.size());
    for (const Tensor& p : parameters_) followed.push_back(follow(p));
    const Tensor value = loss(followed, ids, targets);
    std::vector<Tensor> gradients;
    {
      const Gradients found = backward(value);
      for (const Tensor& p : followed) gradients.push_back(found.of(p));
    }
    followed.clear();
    optimizer.step(parameters_, gradients);
    return value.detach();
  }

 private:
  Tensor attend(std::span<const Tensor> p, const Tensor& x, std::int64_t batch,
                std::int64_t time) const {
    const std::int64_t size = s_.width / s_.heads;
    const Tensor all =
        reshape(linear(layer_norm(x, p[0], p[1]), p[2]), {batch, time, 3, s_.heads, size});
    const Tensor parts = all.permute({2, 0, 3, 1, 4});
    const Tensor seen = attention(parts.get(0), parts.get(1), parts.get(2), std::nullopt, true);
    return linear(reshape(seen.transpose(1, 2), {batch, time, s_.width}), p[3]);
  }
  static Tensor feed_forward(std::span<const Tensor> p, const Tensor& x) {
    return linear(gelu(linear(layer_norm(x, p[0], p[1]), p[2])), p[3]);
  }

  void add_weight(const Shape& shape, double deviation) {
    std::vector<float> values(static_cast<std::size_t>(element_count("parameter", shape)));
    for (float& v : values) {  // a sum of uniform numbers is close enough to a normal one
      double sum = -6;
      for (int i = 0; i < 12; ++i) {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        sum += static_cast<double>(state_ >> 11) / 9007199254740992.0;
      }
      v = static_cast<float>(sum * deviation);
    }
    parameters_.push_back(to_dtype(Tensor::from(values, shape, device_), dtype_));
  }
  void add_norm() {
    parameters_.push_back(ones({s_.width}, dtype_, device_));
    parameters_.push_back(Tensor::zeros({s_.width}, dtype_, device_));
  }

  TransformerSizes s_;
  DType dtype_;
  Device device_;
  std::vector<Tensor> parameters_;
  std::uint64_t state_ = 42;
};

}  // namespace tl::bench
