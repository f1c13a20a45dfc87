// Gradients against finite differences, in f64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/on_every_device.h"
#include "tl/grad/grad.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"
#include "tl/tensor/tensor.h"

namespace tl::test {

using Function = std::function<Tensor(std::span<const Tensor>)>;

// Numbers that look random, between -bound and bound and never closer to 0 than a tenth of it, all
// different: a difference quotient must not step over a kink.
inline std::vector<double> spread_values(std::int64_t count, std::uint64_t seed, double bound = 1) {
  std::vector<double> out;
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const double unit = static_cast<double>(state >> 11) / 9007199254740992.0;  // [0, 1)
    const double magnitude = bound * (0.1 + 0.9 * unit);
    out.push_back((state >> 7 & 1) != 0 ? magnitude : -magnitude);
  }
  return out;
}

inline Tensor spread(const Shape& shape, std::uint64_t seed, const Device& device,
                     double bound = 1) {
  return Tensor::from(spread_values(element_count("spread", shape), seed, bound), shape, device);
}

// The same elements with gaps and in another order in memory.
inline Tensor strided(const Tensor& x) {
  if (x.rank() == 0 || x.empty()) return x;
  Shape wide = x.shape();
  wide[0] *= 2;
  Tensor room = Tensor::zeros(wide, x.dtype(), x.device());
  Tensor turned = copy(x.rank() > 1 ? x.transpose(0, -1) : x);
  turned = x.rank() > 1 ? turned.transpose(0, -1) : turned;
  const Layout part = room.slice(0, 0, wide[0], 2).layout();
  assign_at(room, part, turned);
  return room.with_layout(part);
}

// A number that depends on every element of a result, each in its own measure.
inline Tensor weigh(const Tensor& result) {
  const Tensor weights = to_dtype(spread(result.shape(), 77, result.device()), result.dtype());
  return sum_all(mul(result, weights));
}

// Compares the gradients of weigh(function(inputs)) with quotients of differences. Inputs that are
// not f64 stay as they are.
inline void expect_gradients(const std::string& what, const Function& function,
                             std::vector<Tensor> inputs, double tolerance = 1e-6,
                             double step = 1e-5) {
  std::vector<Tensor> followed;
  for (const Tensor& x : inputs) {
    followed.push_back(x.dtype() == DType::F64 ? follow(x) : x);
  }
  const Tensor result = function(followed);
  ASSERT_TRUE(result.has_history()) << what << ": no gradient goes through it";
  const Gradients gradients = backward(weigh(result));
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].dtype() != DType::F64) continue;
    const std::vector<double> given = gradients.of(followed[k]).to_vector<double>();
    std::vector<double> values = inputs[k].to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = [&](double x) {
        std::vector<double> moved = values;
        moved[i] = x;
        std::vector<Tensor> all = inputs;
        all[k] = Tensor::from(moved, inputs[k].shape(), inputs[k].device());
        return weigh(function(all)).item<double>();
      };
      const double wanted = (at(values[i] + step) - at(values[i] - step)) / (2 * step);
      ASSERT_NEAR(given[i], wanted, tolerance * std::max(1.0, std::fabs(wanted)))
          << what << ": element " << i << " of input " << k << " of shape "
          << inputs[k].shape().text();
    }
  }
}

// With inputs as they are, and with gaps in memory.
inline void expect_gradients_of_any_layout(const std::string& what, const Function& function,
                                           const std::vector<Tensor>& inputs,
                                           double tolerance = 1e-6) {
  expect_gradients(what, function, inputs, tolerance);
  std::vector<Tensor> with_gaps;
  for (const Tensor& x : inputs) with_gaps.push_back(strided(x));
  expect_gradients(what + " (strided)", function, with_gaps, tolerance);
}

// The gradients of weigh(function(inputs)), as one number that depends on all of them: what
// expect_gradients needs to look at gradients of gradients.
inline Function gradient_of(const Function& function) {
  return [function](std::span<const Tensor> inputs) {
    std::vector<Tensor> all, variables;
    for (const Tensor& x : inputs) {
      all.push_back(x.dtype() == DType::F64 && !x.has_history() ? follow(x) : x);
      if (x.dtype() == DType::F64) variables.push_back(all.back());
    }
    Tensor out;
    for (const Tensor& g : gradients_of(weigh(function(all)), variables, {.follow = true})) {
      out = out.has_history() ? add(out, weigh(g)) : weigh(g);
    }
    return out;
  };
}

}  // namespace tl::test
