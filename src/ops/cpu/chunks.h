// Sums and the like over elements that lie side by side, a few thousand at a time: the inner loops
// of reductions. Those over floats are compiled for several instruction sets, of which the best one
// is chosen at run time; those over integers are plain loops that compilers vectorise by
// themselves.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tl/base/dtype.h"

namespace tl::cpu::chunks {

// All take at least one element. Sums add lanes in parallel and then pairwise.
float sum(const float* x, std::int64_t n);
double sum(const double* x, std::int64_t n);
float product(const float* x, std::int64_t n);
double product(const double* x, std::int64_t n);
// NaN where there is one.
float largest(const float* x, std::int64_t n);
double largest(const double* x, std::int64_t n);
float smallest(const float* x, std::int64_t n);
double smallest(const double* x, std::int64_t n);
// The sum of (x - center)^2.
float squares(const float* x, std::int64_t n, float center);
double squares(const double* x, std::int64_t n, double center);
float absolute_sum(const float* x, std::int64_t n);
double absolute_sum(const double* x, std::int64_t n);
// The sum of exp(x - shift).
float exp_sum(const float* x, std::int64_t n, float shift);
double exp_sum(const double* x, std::int64_t n, double shift);

// f16 and bf16 to f32.
void widen(const half* from, std::int64_t n, float* to);
void widen(const bfloat16* from, std::int64_t n, float* to);

// ---- integers

template <class N>
  requires std::is_unsigned_v<N>
N sum(const N* x, std::int64_t n) {
  using Word = std::conditional_t<sizeof(N) == 8, std::uint64_t, std::uint32_t>;
  Word total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += x[i];
  return static_cast<N>(total);
}
template <class N>
  requires std::is_unsigned_v<N>
N product(const N* x, std::int64_t n) {
  using Word = std::conditional_t<sizeof(N) == 8, std::uint64_t, std::uint32_t>;
  Word total = 1;
  for (std::int64_t i = 0; i < n; ++i) total *= x[i];
  return static_cast<N>(total);
}
template <class N>
  requires std::is_integral_v<N>
N largest(const N* x, std::int64_t n) {
  N best = x[0];
  for (std::int64_t i = 1; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}
template <class N>
  requires std::is_integral_v<N>
N smallest(const N* x, std::int64_t n) {
  N best = x[0];
  for (std::int64_t i = 1; i < n; ++i) best = x[i] < best ? x[i] : best;
  return best;
}

// ---- elements from anywhere

// An element of T of which only matters whether it is 0.
template <class T>
struct Truth {
  T value;
};

template <class N, class T>
N element(T x) {
  return convert<N>(x);
}
template <class N, class T>
N element(Truth<T> x) {
  return convert<bool>(x.value) ? N(1) : N(0);
}

// n elements that lie `step` apart, as N and side by side: where they lie if they are so already,
// else in `room`.
template <class N, class T>
const N* gather(const T* x, std::int64_t n, std::int64_t step, N* room) {
  if constexpr (std::is_same_v<T, N> ||
                (std::is_integral_v<T> && std::is_integral_v<N> && sizeof(T) == sizeof(N))) {
    if (step == 1) return reinterpret_cast<const N*>(x);
  }
  if constexpr (std::is_same_v<N, float> &&
                (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)) {
    if (step == 1) {
      widen(x, n, room);
      return room;
    }
  }
  if (step == 1) {
    for (std::int64_t i = 0; i < n; ++i) room[i] = element<N>(x[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) room[i] = element<N>(x[i * step]);
  }
  return room;
}

}  // namespace tl::cpu::chunks
