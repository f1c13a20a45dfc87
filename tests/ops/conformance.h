// What the tests of ops share: tensors of doubles as the reference's world, operands in every
// arrangement a tensor can have in memory, and one place where results are judged and the worst
// error of each op, dtype and device is kept (docs/ops.md is made from it).
#pragma once

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/on_every_device.h"
#include "tl/ops/copy.h"
#include "tl/tensor/tensor.h"

namespace tl::test {

// Whether memory is watched here, which makes simulated kernels slow: the longest tests then take
// one dtype of each size. Which address a kernel touches does not depend on more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline bool stands_for_its_size(DType dtype) {
  return dtype == DType::U8 || dtype == DType::F16 || dtype == DType::F32 || dtype == DType::F64;
}

// The reference's tensor: row-major doubles. (i64 values in tests stay below 2^53.)
struct Host {
  Shape shape;
  std::vector<double> values;

  std::int64_t count() const { return static_cast<std::int64_t>(values.size()); }
};

// Elements as doubles in logical order, whatever dtype and layout.
Host host_of(const Tensor& x);

// How an operand lies in memory. All but Contiguous leave elements around and between those of the
// tensor; these are poisoned (NaN, or the largest integer), so reading one shows.
enum class Arrangement : std::uint8_t {
  Contiguous,
  Transposed,  // the first and the last dimension exchanged
  Narrowed,    // part of a larger tensor on every dimension, at an offset
  Stepped,     // every second element of the last dimension
};
inline constexpr Arrangement kArrangements[] = {Arrangement::Contiguous, Arrangement::Transposed,
                                                Arrangement::Narrowed, Arrangement::Stepped};
std::string_view name(Arrangement arrangement);

// A tensor of that dtype with those values (rounded to the dtype by convert()), lying as asked.
Tensor arrange(const Host& values, DType dtype, Arrangement arrangement, const Device& device);
inline Tensor contiguous_on(const Host& values, DType dtype, const Device& device) {
  return arrange(values, dtype, Arrangement::Contiguous, device);
}
// The values as the dtype holds them: what a reference must start from.
Host rounded(const Host& values, DType dtype);

// Random values, the same for a seed. Integers get whole numbers; unsigned ones no negative ones.
Host uniform(const Shape& shape, double low, double high, std::uint64_t seed);
Host uniform_for(DType dtype, const Shape& shape, double low, double high, std::uint64_t seed);
// A small random shape of that rank, sizes 1 to `most`; now and then a size 0 when `zero` is set.
Shape random_shape(std::mt19937_64& random, int rank, std::int64_t most, bool zero = false);
// The seed of fuzzed tests: TL_TEST_SEED when it is set, else a fixed one. Print it on failure.
std::uint64_t fuzz_seed();

// Distance between 1 and the next number of a float dtype; 0 for the others.
double epsilon(DType dtype);

struct Bound {
  // Allowed error of a float result in units of epsilon(dtype) * max(|wanted|, scale). Integers
  // and bools must be equal.
  double units = 1;
  double scale = 0;
};

// What a result is recorded under: the op, and the dtype of its first tensor where that is not the
// dtype of the result: {"eq", dtype}.
struct Tested {
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  Tested(const Text& op) : name(op) {}  // NOLINT(google-explicit-constructor): an op is enough
  Tested(std::string_view op, DType dtype) : name(op), operand(dtype) {}

  std::string_view name;
  std::optional<DType> operand;
};

// Compares shape, dtype and every element. NaN matches NaN only, infinity itself only. Keeps the
// worst error seen for (op, dtype, device). A result beyond the dtype's range must be what
// convert() makes of it.
void expect_close(const Tested& op, const Tensor& got, DType dtype, const Host& wanted,
                  const Bound& bound, const std::string& what = {});
// The same bits.
void expect_equal(const Tested& op, const Tensor& got, const Tensor& wanted,
                  const std::string& what = {});

// Notes that an op refuses a dtype on purpose (for the table), having seen it do so.
void expect_unsupported(std::string_view op, DType dtype, const Device& device,
                        const std::function<void()>& action);

inline std::string describe(std::string_view op, DType dtype, const Shape& shape,
                            Arrangement arrangement = Arrangement::Contiguous) {
  return join(op, " ", dtype, " ", shape, " ", name(arrangement));
}

// All of one kind.
inline constexpr DType kFloats[] = {DType::F8E4M3, DType::F16, DType::BF16, DType::F32, DType::F64};
inline constexpr DType kInts[] = {DType::U8, DType::U32, DType::I16, DType::I32, DType::I64};
// The ten dtypes that have arithmetic (bool has none).
inline constexpr DType kNumbers[] = {DType::U8,  DType::U32,    DType::I16, DType::I32,
                                     DType::I64, DType::F8E4M3, DType::F16, DType::BF16,
                                     DType::F32, DType::F64};

}  // namespace tl::test
