// Random tensors.
//
// The numbers depend on the seed of the device handle (Device::set_seed) and on how many were taken
// since, and not on the device: the same seed gives the same bits on a CPU and on any GPU. Floats
// of every width; f8, f16 and bf16 are made as f32 and rounded.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

// In [low, high), on every dtype; low == high gives a constant. Throws BadArgument for low > high
// or an end that is not finite in the dtype.
Tensor rand_uniform(double low, double high, const Shape& shape, DType dtype,
                    const Device& device = Device::cpu());
// Throws BadArgument for a deviation that is negative or a parameter that is not finite.
Tensor rand_normal(double mean, double deviation, const Shape& shape, DType dtype,
                   const Device& device = Device::cpu());
// Integers in [low, high).
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
               const Device& device = Device::cpu());
// 1 with that probability, else 0; any dtype.
Tensor bernoulli(double probability, const Shape& shape, DType dtype,
                 const Device& device = Device::cpu());
// x with each element set to 0 with that probability and the others scaled by 1 / (1 -
// probability).
Tensor dropout(const Tensor& x, double probability);

Tensor rand_like(const Tensor& x, double low = 0, double high = 1);
Tensor randn_like(const Tensor& x, double mean = 0, double deviation = 1);

}  // namespace tl
