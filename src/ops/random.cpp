#include "tl/ops/random.h"

#include <cmath>

#include "ops/check.h"
#include "ops/cpu/random.h"
#include "ops/gpu/random.h"
#include "ops/rows.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/where.h"

namespace tl {

namespace {

void expect_float_dtype(std::string_view op, DType dtype) {
  if (!is_float(dtype)) throw Error(ErrorKind::Unsupported, op, "makes floats, not ", dtype);
}

// A number as the dtype holds it.
double in_dtype(double x, DType dtype) {
  return visit_float("random", dtype,
                     [&]<class T>() { return static_cast<double>(convert<T>(x)); });
}

// The largest number of the dtype below x, which the dtype holds.
double number_below(double x, DType dtype) {
  return visit_float("random", dtype, [&]<class T>() {
    // Steps of 2^-60 of the exponent are too small for any dtype, so halving the way from a number
    // that is surely below finds it.
    double low = x - std::max(std::abs(x), 1e-300) * 0.5, high = x;
    if constexpr (std::is_same_v<T, double>) {
      return std::nextafter(x, -std::numeric_limits<double>::infinity());
    } else if constexpr (std::is_same_v<T, float>) {
      return static_cast<double>(
          std::nextafter(static_cast<float>(x), -std::numeric_limits<float>::infinity()));
    } else {
      if (x == 0) return -static_cast<double>(std::numeric_limits<T>::denorm_min());
      for (int i = 0; i < 64; ++i) {
        const double middle = low + (high - low) / 2;
        (static_cast<double>(convert<T>(middle)) < x ? low : high) = middle;
      }
      return static_cast<double>(convert<T>(low));
    }
  });
}

std::uint64_t blocks_for(std::int64_t count, int per_block) {
  return static_cast<std::uint64_t>((count + per_block - 1) / per_block);
}

}  // namespace

Tensor rand_uniform(double low, double high, const Shape& shape, DType dtype,
                    const Device& device) {
  expect_float_dtype("rand_uniform", dtype);
  const double from = in_dtype(low, dtype), to = in_dtype(high, dtype);
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(from) || !std::isfinite(to) ||
      low > high || !std::isfinite(to - from)) {
    throw Error(ErrorKind::BadArgument, "rand_uniform", "numbers from ", low, " to ", high,
                " cannot be made as ", dtype);
  }
  if (from == to) return full(shape, from, dtype, device);
  Tensor out = Tensor::uninitialized(shape, dtype, device);
  if (out.empty()) return out;
  const std::uint64_t seed = device.current_seed();
  const std::uint64_t start =
      device.take_random(blocks_for(out.count(), dtype == DType::F64 ? 2 : 4));
  const double last = number_below(to, dtype);
  if (device.is_cpu()) {
    cpu::rand_uniform(out, seed, start, from, to - from, last);
  } else {
    gpu::rand_uniform(out, seed, start, from, to - from, last);
  }
  return out;
}

Tensor rand_normal(double mean, double deviation, const Shape& shape, DType dtype,
                   const Device& device) {
  expect_float_dtype("rand_normal", dtype);
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation < 0) {
    throw Error(ErrorKind::BadArgument, "rand_normal", "a mean of ", mean, " and a deviation of ",
                deviation);
  }
  if (deviation == 0) return full(shape, mean, dtype, device);
  Tensor out = Tensor::uninitialized(shape, dtype, device);
  if (out.empty()) return out;
  const std::uint64_t seed = device.current_seed();
  const std::uint64_t start =
      device.take_random(blocks_for(out.count(), dtype == DType::F64 ? 2 : 4));
  if (device.is_cpu()) {
    cpu::rand_normal(out, seed, start, mean, deviation);
  } else {
    gpu::rand_normal(out, seed, start, mean, deviation);
  }
  return out;
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
               const Device& device) {
  if (!is_int(dtype)) throw Error(ErrorKind::Unsupported, "randint", "makes integers, not ", dtype);
  if (low >= high) {
    throw Error(ErrorKind::BadArgument, "randint", "there is no integer from ", low, " to below ",
                high);
  }
  const bool fits = visit_dtype("randint", dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<std::int64_t>(static_cast<T>(low)) == low &&
             static_cast<std::int64_t>(static_cast<T>(high - 1)) == high - 1;
    } else {
      return false;
    }
  });
  if (!fits) {
    throw Error(ErrorKind::BadArgument, "randint", "integers from ", low, " to below ", high,
                " do not fit ", dtype);
  }
  Tensor out = Tensor::uninitialized(shape, dtype, device);
  if (out.empty()) return out;
  const std::uint64_t seed = device.current_seed();
  const std::uint64_t start = device.take_random(blocks_for(out.count(), 2));
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (device.is_cpu()) {
    cpu::randint(out, seed, start, low, range);
  } else {
    gpu::randint(out, seed, start, low, range);
  }
  return out;
}

Tensor bernoulli(double probability, const Shape& shape, DType dtype, const Device& device) {
  if (!(probability >= 0 && probability <= 1)) {
    throw Error(ErrorKind::BadArgument, "bernoulli", probability, " is not a probability");
  }
  return to_dtype(lt(rand_uniform(0, 1, shape, DType::F32, device), probability), dtype);
}

Tensor dropout(const Tensor& x, double probability) {
  if (!(probability >= 0 && probability <= 1)) {
    throw Error(ErrorKind::BadArgument, "dropout", probability, " is not a probability");
  }
  ops::expect_float("dropout", x);
  if (probability == 0) return x;
  const Tensor dropped = lt(rand_uniform(0, 1, x.shape(), DType::F32, x.device()), probability);
  return masked_fill(probability == 1 ? x : mul(x, 1 / (1 - probability)), dropped, 0);
}

Tensor rand_like(const Tensor& x, double low, double high) {
  return rand_uniform(low, high, x.shape(), x.dtype(), x.device());
}
Tensor randn_like(const Tensor& x, double mean, double deviation) {
  return rand_normal(mean, deviation, x.shape(), x.dtype(), x.device());
}

namespace ops {

std::span<const OpRow> random_rows() {
  static constexpr OpRow kRows[] = {
      {"rand_uniform", "random", "(low, high, shape, dtype, device)", kFloatSet,
       "Random numbers in [low, high).", call<&rand_uniform>},
      {"rand_normal", "random", "(mean, deviation, shape, dtype, device)", kFloatSet,
       "Random numbers of a normal distribution.", call<&rand_normal>},
      {"randint", "random", "(low, high, shape, dtype, device)", kIntSet,
       "Random integers in [low, high).", call<&randint>},
      {"bernoulli", "random", "(probability, shape, dtype, device)", kAnySet,
       "1 with a probability, else 0.", call<&bernoulli>},
      {"dropout", "random", "(x, probability)", kFloatSet,
       "Elements set to 0 with a probability, the others scaled up.", call<&dropout>},
      {"rand_like", "random", "(x, low = 0, high = 1)", kFloatSet,
       "Random numbers in [low, high) with the shape, dtype and device of x.", call<&rand_like>},
      {"randn_like", "random", "(x, mean = 0, deviation = 1)", kFloatSet,
       "Normal random numbers with the shape, dtype and device of x.", call<&randn_like>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
