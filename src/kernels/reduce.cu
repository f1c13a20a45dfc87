// Module REDUCE: many elements become one, and running sums and products.
//
// A reduction is a small struct (what it keeps, how it takes elements in, how two of what it keeps
// become one, how the result is stored) that the two forms below are written over:
//   rows      the reduced positions lie side by side: 16-byte loads, a part of a warp or a block
//             per output
//   strided   any other layout: outputs side by side in a block, so that columns are read together
// Where blocks share outputs each writes what it keeps to `partial`, and the last of them to come
// puts all of it together in a fixed order: the same input gives the same bits, and it takes one
// launch. Integers go by element size where signs do not matter, and comparisons go by the keys of
// gpu_order.h. 256 threads per block; grid.y is the number of splits, grid.x any number without
// splits and as many as there are blocks of outputs with them.
#define GPU_LEAST_BLOCKS 2
#include "gpu.h"
#include "gpu_reduce.h"
#include "gpu_together.h"

using tl::kernels::Order;
using tl::kernels::ReduceArgs;
using tl::kernels::ReduceMode;
using tl::kernels::ScanArgs;

constexpr unsigned kThreads = kBlockThreads;

// ---- arithmetic

// What elements are computed in. Integers are unsigned words: sums and products wrap, and their low
// bits are right for either sign.
template <class T>
struct Compute {
  using Type = float;
};
template <>
struct Compute<double> {
  using Type = double;
};
template <>
struct Compute<Bits8> {
  using Type = Bits32;
};
template <>
struct Compute<Bits16> {
  using Type = Bits32;
};
template <>
struct Compute<Bits32> {
  using Type = Bits32;
};
template <>
struct Compute<Bits64> {
  using Type = Bits64;
};
template <class T>
using Number = typename Compute<T>::Type;

template <class T>
GPU_INLINE Number<T> number(T x) {
  if constexpr (kIsSmallFloat<T>) {
    return to_float(x);
  } else {
    return x;
  }
}
template <class T>
GPU_INLINE T element(Number<T> x) {
  if constexpr (kIsSmallFloat<T>) {
    return from_float<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

// exp and log of doubles, which not every compiler has. Errors stay below 2 ulp.
//
// exp: x = k ln 2 + r with |r| <= ln(2) / 2, and exp(r) = 1 + 2 r / (r coth(r / 2) - r), where the
// series of r coth(r / 2) ends below 2^-57.
GPU_INLINE double exponential(double x) {
  if (x != x) return x;
  const double k = math::rint(x * 1.4426950408889634);
  if (k > 1024) return __builtin_bit_cast(double, 0x7ff0000000000000ull);
  if (k < -1075) return 0;
  const double r = math::fma(-k, 1.9082149292705877e-10, math::fma(-k, 0.6931471803691238, x));
  const double z = r * r;
  double series = -691.0 / 653837184000;
  series = math::fma(series, z, 1.0 / 23950080);
  series = math::fma(series, z, -1.0 / 604800);
  series = math::fma(series, z, 1.0 / 15120);
  series = math::fma(series, z, -1.0 / 360);
  series = math::fma(series, z, 1.0 / 6);
  series = math::fma(series, z, 2.0);
  const double sum = 1 + 2 * r / (series - r);
  // 2^k in two factors: k reaches from -1075 to 1024.
  const int half = static_cast<int>(k) / 2;
  const int rest = static_cast<int>(k) - half;
  const double a = __builtin_bit_cast(double, static_cast<Bits64>(half + 1023) << 52);
  const double b = __builtin_bit_cast(double, static_cast<Bits64>(rest + 1023) << 52);
  return sum * a * b;
}
GPU_INLINE float exponential(float x) { return math::exp(x); }

// log: x = 2^k m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), by its
// series, which ends below 2^-57 of s.
template <bool kSubnormals = true>
GPU_INLINE double logarithm(double x) {
  if (!(x > 0)) {
    return __builtin_bit_cast(double, x == 0 ? 0xfff0000000000000ull : 0x7ff8000000000000ull);
  }
  int k = 0;
  if constexpr (kSubnormals) {
    if (x < 2.2250738585072014e-308) {
      x *= 18014398509481984.0;  // 2^54
      k = -54;
    }
  }
  Bits64 word = __builtin_bit_cast(Bits64, x);
  if ((word >> 52) == 0x7ff) return x;  // infinity
  k += static_cast<int>(word >> 52) - 1023;
  word = (word & 0xfffffffffffffull) | 0x3ff0000000000000ull;
  double m = __builtin_bit_cast(double, word);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++k;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  // Rolled, with divisions: two dozen constants in registers would be too many.
  double sum = 0;
  GPU_ROLLED
  for (int odd = 23; odd > 1; odd -= 2) sum = math::fma(sum, z, 2.0 / odd);
  const double tail = math::fma(static_cast<double>(k), 1.9082149292705877e-10, s * z * sum);
  return math::fma(static_cast<double>(k), 0.6931471803691238, 2 * s + tail);
}
GPU_INLINE float logarithm(float x) { return math::log(x); }

// x^p for x >= 0 that is an element of T, and so not subnormal unless T is double.
template <class T>
GPU_INLINE double power(double x, double p) {
  if (x == 0) return p > 0 ? 0 : __builtin_bit_cast(double, 0x7ff0000000000000ull);
  return exponential(p * logarithm<bits::kSame<T, double>>(x));
}

// ---- reductions
//
// take<kCount>(kept, x, args, at) takes in kCount elements of which number k is at position at(k);
// those come in batches so that sums of them form a tree and divisions are shared.

template <class T>
struct SumOf {
  using In = T;
  using Kept = Number<T>;
  GPU_INLINE static Kept start(const ReduceArgs&) { return 0; }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs&, At) {
    Kept sum[kCount];
    for (int k = 0; k < kCount; ++k) sum[k] = number(x[k]);
    for (int width = kCount / 2; width > 0; width /= 2) {
      for (int k = 0; k < width; ++k) sum[k] += sum[k + width];
    }
    kept += sum[0];
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs&) { return a + b; }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs& args) {
    if constexpr (bits::kIsFloat<Kept>) kept /= static_cast<Kept>(args.scalar);
    static_cast<T*>(out)[i] = element<T>(kept);
  }
};

template <class T>
struct ProductOf {
  using In = T;
  using Kept = Number<T>;
  GPU_INLINE static Kept start(const ReduceArgs&) { return 1; }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs&, At) {
    for (int k = 0; k < kCount; ++k) kept *= number(x[k]);
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs&) { return a * b; }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs&) {
    static_cast<T*>(out)[i] = element<T>(kept);
  }
};

// The largest key.
template <class T>
struct ExtremeOf {
  using In = T;
  using Kept = T;
  GPU_INLINE static Kept start(const ReduceArgs&) { return 0; }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs& args, At) {
    for (int k = 0; k < kCount; ++k) kept = join(kept, exact_key(args.order, x[k]), args);
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs&) { return a > b ? a : b; }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs& args) {
    static_cast<T*>(out)[i] = bits_of_key(args.order, kept);
  }
};

// The largest key and its first position.
template <class T>
struct Place {
  T key;
  Bits32 at;
};
template <class T>
struct PlaceOf {
  using In = T;
  using Key = typename Compute<T>::Type;  // words, so that `Kept` is made of them
  using Kept = Place<Key>;
  GPU_INLINE static Kept start(const ReduceArgs&) { return {0, ~0u}; }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs& args, At at) {
    for (int k = 0; k < kCount; ++k) {
      kept = join(kept, {order_key(args.order, x[k]), static_cast<Bits32>(at(k))}, args);
    }
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs&) {
    return b.key > a.key || (b.key == a.key && b.at < a.at) ? b : a;
  }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs&) {
    static_cast<Bits32*>(out)[i] = kept.at;
  }
};

// How many are not 0.
template <class T>
struct CountOf {
  using In = T;
  using Kept = Bits64;
  GPU_INLINE static Kept start(const ReduceArgs&) { return 0; }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs& args, At) {
    Bits32 count = 0;
    for (int k = 0; k < kCount; ++k) {
      count += (x[k] & static_cast<T>(args.order.magnitude)) != 0 ? 1u : 0u;
    }
    kept += count;
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs&) { return a + b; }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs& args) {
    if (args.mode == ReduceMode::Plain) {
      static_cast<Bits64*>(out)[i] = kept;
    } else {
      const Bits64 enough =
          args.mode == ReduceMode::Any ? 1 : static_cast<Bits64>(args.reduced.count);
      static_cast<Bits8*>(out)[i] = kept >= enough ? 1 : 0;
    }
  }
};

// Mean and sum of squared distances from it, joined by the formula of Chan, Golub and LeVeque.
template <class N>
struct Moments {
  N count;
  N mean;
  N squares;
};
template <class T>
struct VarianceOf {
  using In = T;
  using N = Number<T>;
  using Kept = Moments<N>;
  GPU_INLINE static Kept start(const ReduceArgs&) { return {0, 0, 0}; }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs& args, At) {
    N sum = number(x[0]);
    for (int k = 1; k < kCount; ++k) sum += number(x[k]);
    const N mean = sum * (N(1) / kCount);
    N squares = 0;
    for (int k = 0; k < kCount; ++k) {
      const N distance = number(x[k]) - mean;
      squares = math::fma(distance, distance, squares);
    }
    kept = join(kept, {N(kCount), mean, squares}, args);
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs&) {
    const N count = a.count + b.count;
    if (count == 0) return a;
    const N share = b.count / count;
    const N distance = b.mean - a.mean;
    return {count, math::fma(distance, share, a.mean),
            a.squares + math::fma(distance * distance, a.count * share, b.squares)};
  }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs& args) {
    const double left = static_cast<double>(args.reduced.count) - args.scalar;
    N result = kept.squares / static_cast<N>(left > 0 ? left : 0);
    if (args.mode == ReduceMode::Root) result = math::sqrt(result);
    static_cast<T*>(out)[i] = element<T>(result);
  }
};

// The largest element and the sum of exp(x - shift), where shift is that element, or 0 when it is
// infinite or NaN (so that no difference of infinities is taken).
template <class N>
struct Peak {
  N largest;
  N sum;
};
template <class T>
struct LogSumExpOf {
  using In = T;
  using N = Number<T>;
  using Kept = Peak<N>;
  GPU_INLINE static N infinity() { return static_cast<N>(math::kInfinity); }
  GPU_INLINE static N shift(N largest) {
    return largest - largest == 0 ? largest : N(0);  // NaN for infinities
  }
  GPU_INLINE static Kept start(const ReduceArgs&) { return {-infinity(), 0}; }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs&, At) {
    N largest = kept.largest;
    for (int k = 0; k < kCount; ++k) largest = math::max(largest, number(x[k]));
    const N to = shift(largest);
    if (!(largest == kept.largest)) rescale(kept, largest);
    N sum = 0;
    for (int k = 0; k < kCount; ++k) sum += exponential(number(x[k]) - to);
    kept.sum += sum;
  }
  GPU_INLINE static void rescale(Kept& kept, N largest) {
    if (kept.sum != 0) kept.sum *= exponential(shift(kept.largest) - shift(largest));
    kept.largest = largest;
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs&) {
    const N largest = math::max(a.largest, b.largest);
    rescale(a, largest);
    rescale(b, largest);
    return {largest, a.sum + b.sum};
  }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs&) {
    static_cast<T*>(out)[i] = element<T>(shift(kept.largest) + logarithm(kept.sum));
  }
};

// Norms that need no power.
template <class T>
struct NormOf {
  using In = T;
  using Kept = Number<T>;
  GPU_INLINE static Kept start(const ReduceArgs& args) {
    return args.mode == ReduceMode::Smallest ? static_cast<Kept>(math::kInfinity) : Kept(0);
  }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs& args, At) {
    Kept y[kCount];
    for (int k = 0; k < kCount; ++k) y[k] = math::abs(number(x[k]));
    if (args.mode == ReduceMode::Largest || args.mode == ReduceMode::Smallest) {
      for (int k = 0; k < kCount; ++k) kept = join(kept, y[k], args);
      return;
    }
    if (args.mode == ReduceMode::Square) {
      for (int k = 0; k < kCount; ++k) y[k] *= y[k];
    } else if (args.mode == ReduceMode::Nonzero) {
      for (int k = 0; k < kCount; ++k) y[k] = y[k] != 0 ? Kept(1) : Kept(0);
    }
    for (int width = kCount / 2; width > 0; width /= 2) {
      for (int k = 0; k < width; ++k) y[k] += y[k + width];
    }
    kept += y[0];
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs& args) {
    return args.mode == ReduceMode::Largest    ? math::max(a, b)
           : args.mode == ReduceMode::Smallest ? math::min(a, b)
                                               : a + b;
  }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs& args) {
    if (args.mode == ReduceMode::Square) kept = math::sqrt(kept);
    static_cast<T*>(out)[i] = element<T>(kept);
  }
};

// The others. Powers go through double, whatever the dtype: f32 logarithms would cost digits.
template <class T>
struct PowerOf {
  using In = T;
  using Kept = double;
  GPU_INLINE static Kept start(const ReduceArgs&) { return 0; }
  template <int kCount, class At>
  GPU_INLINE static void take(Kept& kept, const T (&x)[kCount], const ReduceArgs& args, At) {
    static_assert(kCount == 1);
    kept += power<T>(math::abs(static_cast<double>(number(x[0]))), args.scalar);
  }
  GPU_INLINE static Kept join(Kept a, Kept b, const ReduceArgs&) { return a + b; }
  GPU_INLINE static void store(void* out, Index i, Kept kept, const ReduceArgs& args) {
    static_cast<T*>(out)[i] = convert<T>(power<double>(kept, 1 / args.scalar));
  }
};

// Reductions so large that the arguments of a kernel are kept in shared memory instead of
// registers.
template <class R>
inline constexpr bool kIsLarge = false;
template <class T>
inline constexpr bool kIsLarge<PowerOf<T>> = true;
template <>
inline constexpr bool kIsLarge<LogSumExpOf<double>> = true;

template <class R>
GPU_INLINE const ReduceArgs& settled(const ReduceArgs& args) {
  if constexpr (kIsLarge<R>) {
    GPU_SHARED ReduceArgs shared;
    if (thread_index() == 0) shared = args;
    barrier();
    return shared;
  } else {
    return args;
  }
}

// ---- the forms

template <class T>
GPU_INLINE T shuffle_kept(T value, unsigned source) {
  if constexpr (sizeof(T) <= 8) {
    return shuffle(value, source);
  } else {
    struct Words {
      Bits32 at[sizeof(T) / 4];
    };
    Words words = __builtin_bit_cast(Words, value);
    for (unsigned w = 0; w < sizeof(T) / 4; ++w) words.at[w] = shuffle_word(words.at[w], source);
    return __builtin_bit_cast(T, words);
  }
}

// Over lanes whose numbers differ in the bits from `from` to below `to` (powers of two).
template <class R>
GPU_INLINE typename R::Kept join_lanes(typename R::Kept kept, unsigned from, unsigned to,
                                       const ReduceArgs& args) {
  GPU_ROLLED
  for (unsigned mask = to / 2; mask >= from && mask > 0; mask /= 2) {
    const auto other = shuffle_kept(kept, lane() ^ mask);
    // The lower lane comes first in both, so that both have the same bits.
    kept = (lane() & mask) == 0 ? R::join(kept, other, args) : R::join(other, kept, args);
  }
  return kept;
}

// Over the threads of a block whose numbers are equal modulo `width`, a power of two. The first
// `width` threads have the results. May be called again at once.
template <class R>
GPU_INLINE typename R::Kept join_block(typename R::Kept kept, unsigned width,
                                       const ReduceArgs& args) {
  using Kept = typename R::Kept;
  struct alignas(Kept) Slot {
    unsigned char bytes[sizeof(Kept)];
  };
  GPU_SHARED Slot slots[kThreads];
  const unsigned t = thread_index();
  unsigned at = t;
  unsigned parts = kThreads / width;
  if (width < kWarp) {
    kept = join_lanes<R>(kept, width, kWarp, args);
    at = warp_index() * width + lane();
    parts = kThreads / kWarp;
  }
  if (parts == 1) return kept;
  if (width >= kWarp || lane() < width) slots[at] = __builtin_bit_cast(Slot, kept);
  barrier();
  if (t < width) {
    GPU_ROLLED
    for (unsigned p = 1; p < parts; ++p) {
      kept = R::join(kept, __builtin_bit_cast(Kept, slots[p * width + t]), args);
    }
  }
  barrier();
  return kept;
}

// What this thread has of output i, of the `width` outputs from `first` on that the block has: the
// result, or, where several blocks share them, a part. The last block to come joins the parts, in
// the order of the splits, unless it is the parts that are wanted (a scan does). Called by all
// threads of a block, of which the first `width` have one.
template <class R>
GPU_INLINE void put(void* out, typename R::Kept* partial, Index first, unsigned width,
                    typename R::Kept kept, const ReduceArgs& args) {
  const Index outputs = args.kept.count;
  const unsigned t = thread_index();
  if (partial == nullptr) {
    if (t < width && first + t < outputs) R::store(out, first + t, kept, args);
    return;
  }
  GPU_SHARED unsigned is_last;
  if (t < width && first + t < outputs) {
    partial[static_cast<Index>(block_index<1>()) * outputs + first + t] = kept;
  }
  if (args.arrived == nullptr) return;
  barrier();
  if (t == 0) {
    Bits32* const arrived = args.arrived + block_index();
    is_last = take_turn(arrived) + 1 == static_cast<Bits32>(args.splits) ? 1 : 0;
    if (is_last != 0) *arrived = 0;  // for the next launch
  }
  barrier();
  if (is_last == 0) return;
  const Index i = first + (t & (width - 1));
  kept = R::start(args);
  if (i < outputs) {
    GPU_ROLLED
    for (Index s = t / width; s < args.splits; s += kThreads / width) {
      kept = R::join(kept, partial[s * outputs + i], args);
    }
  }
  kept = join_block<R>(kept, width, args);
  if (t < width && i < outputs) R::store(out, i, kept, args);
}

// Elements [begin, end) of a row, shared by `width` threads of which this is number `t`.
template <class R>
GPU_INLINE typename R::Kept take_row(const typename R::In* row, Index begin, Index end, unsigned t,
                                     unsigned width, const ReduceArgs& args) {
  using In = typename R::In;
  constexpr int kEach = 16 / sizeof(In);
  constexpr int kAtOnce = sizeof(In) >= 4 ? 4 : sizeof(In) == 2 ? 2 : 1;  // vectors in flight
  auto kept = R::start(args);
  const In* x = row + begin;
  const Index count = end - begin;

  // [0, head) up to the first 16-byte boundary, then whole vectors, then `tail` more
  const Index misplaced = static_cast<Index>((reinterpret_cast<Bits64>(x) & 15) / sizeof(In));
  const Index room = misplaced == 0 ? 0 : kEach - misplaced;
  const Index head = room < count ? room : count;
  const Index vectors = (count - head) / kEach;
  const Index tail = count - head - vectors * kEach;
  GPU_ROLLED
  for (Index i = t; i < head + tail; i += width) {
    const Index at = i < head ? i : i + vectors * kEach;
    const In one[1] = {x[at]};
    R::template take<1>(kept, one, args, [&](int) { return begin + at; });
  }

  const In* body = x + head;
  const auto take_vector = [&](const Vec<In, kEach>& vec, Index v) {
    In several[kEach];
    for (int k = 0; k < kEach; ++k) several[k] = vec.get(k);
    R::template take<kEach>(kept, several, args,
                            [&](int k) { return begin + head + v * kEach + k; });
  };
  Index v = t;
  GPU_ROLLED
  for (; v + (kAtOnce - 1) * static_cast<Index>(width) < vectors; v += kAtOnce * width) {
    Vec<In, kEach> loaded[kAtOnce];
    for (int u = 0; u < kAtOnce; ++u) loaded[u] = load_vec<kEach>(body + (v + u * width) * kEach);
    for (int u = 0; u < kAtOnce; ++u) take_vector(loaded[u], v + u * width);
  }
  GPU_ROLLED
  for (; v < vectors; v += width) take_vector(load_vec<kEach>(body + v * kEach), v);
  return kept;
}

// args.width threads per output: a part of the smallest warp there is, or the whole block.
template <class R>
GPU_INLINE void reduce_rows(const typename R::In* in, void* out, typename R::Kept* partial,
                            const ReduceArgs& given) {
  await_earlier();
  const ReduceArgs& args = settled<R>(given);
  const Index begin = static_cast<Index>(block_index<1>()) * args.per_split;
  const Index stop = begin + args.per_split;
  const Index end = stop < args.reduced.count ? stop : args.reduced.count;
  const unsigned width = args.width;
  const unsigned t = thread_index() & (width - 1);
  const Index step = grid_threads() / width;
  const Index rows = args.kept.count;
  // Threads that share a warp stay together: rows are counted from the first in the block.
  Index first = static_cast<Index>(block_index()) * (kThreads / width);
  const Index mine = thread_index() / width;
  GPU_ROLLED
  for (; first < rows; first += step) {
    const Index r = first + mine;
    auto kept = R::start(args);
    if (r < rows) kept = take_row<R>(in + offset(args.kept, r), begin, end, t, width, args);
    if (width == kThreads) {
      put<R>(out, partial, first, 1, join_block<R>(kept, 1, args), args);
      continue;
    }
    kept = join_lanes<R>(kept, 1, width, args);
    if (r < rows && t == 0) R::store(out, r, kept, args);
  }
}

// args.width outputs side by side in a block; the other threads share the reduced positions.
template <class R, int kAtOnce>
GPU_INLINE void reduce_strided(const typename R::In* in, void* out, typename R::Kept* partial,
                               const ReduceArgs& given) {
  await_earlier();
  const ReduceArgs& args = settled<R>(given);
  using In = typename R::In;
  const Index begin = static_cast<Index>(block_index<1>()) * args.per_split;
  const Index stop = begin + args.per_split;
  const Index end = stop < args.reduced.count ? stop : args.reduced.count;
  const unsigned width = args.width;
  const unsigned column = thread_index() & (width - 1);
  const Index apart = kThreads / width;
  const Index outputs = args.kept.count;
  GPU_ROLLED
  for (Index first = static_cast<Index>(block_index()) * width; first < outputs;
       first += static_cast<Index>(block_count()) * width) {
    const Index i = first + column;
    auto kept = R::start(args);
    if (i < outputs) {
      const In* base = in + offset(args.kept, i);
      Index r = begin + thread_index() / width;
      GPU_ROLLED
      for (; r + (kAtOnce - 1) * apart < end; r += kAtOnce * apart) {
        In x[kAtOnce];
        GPU_UNROLLED
        for (int k = 0; k < kAtOnce; ++k) x[k] = base[offset(args.reduced, r + k * apart)];
        R::template take<kAtOnce>(kept, x, args, [&](int k) { return r + k * apart; });
      }
      if constexpr (kAtOnce > 1) {
        GPU_ROLLED
        for (; r < end; r += apart) {
          const In x[1] = {base[offset(args.reduced, r)]};
          R::template take<1>(kept, x, args, [&](int) { return r; });
        }
      }
    }
    put<R>(out, partial, first, width, join_block<R>(kept, width, args), args);
  }
}

// ---- scans

template <class T>
struct AddUp {
  using In = T;
  using N = Number<T>;
  GPU_INLINE static N start() { return 0; }
  GPU_INLINE N operator()(N a, N b) const { return a + b; }
};
template <class T>
struct MultiplyUp {
  using In = T;
  using N = Number<T>;
  GPU_INLINE static N start() { return 1; }
  GPU_INLINE N operator()(N a, N b) const { return a * b; }
};

// Adds to `sum` those of the lanes before.
template <class S>
GPU_INLINE typename S::N scan_warp(typename S::N sum) {
  const S join;
  GPU_ROLLED  // unrolled, the comparisons below are more masks than fit registers
      for (unsigned apart = 1; apart < kWarp; apart *= 2) {
    const auto other = shuffle(sum, lane() >= apart ? lane() - apart : lane());
    if (lane() >= apart) sum = join(other, sum);
  }
  return sum;
}

// Lines that lie side by side in both tensors. A warp takes a piece of several elements per lane at
// a time, as vectors that neighbouring lanes load from neighbouring places; the end of a line,
// which is no whole piece, goes element by element. A line belongs to one warp, or to a block whose
// warps take pieces in turn. Where a line has several blocks, `totals` has the sum of each block's
// part.
template <class S>
GPU_INLINE void scan_rows(const typename S::In* in, typename S::In* out,
                          const typename S::N* totals, const ScanArgs& args) {
  await_earlier();
  using T = typename S::In;
  using N = typename S::N;
  constexpr int kEach = 16 / sizeof(T);
  constexpr int kSteps = sizeof(T) >= 4 ? 4 : 1;
  constexpr Index kPiece = static_cast<Index>(kWarp) * kEach * kSteps;
  constexpr unsigned kWarps = kThreads / kWarp;
  GPU_SHARED N sums[kWarps];
  const S join;
  const bool alone = args.by_warp != 0;
  const Index lines = args.lines.count;
  const Index lines_at_once = alone ? kWarps : 1;
  const Index begin = static_cast<Index>(block_index<1>()) * args.per_split;
  const Index stop = begin + args.per_split;
  const Index end = stop < args.count ? stop : args.count;

  GPU_ROLLED
  for (Index first = static_cast<Index>(block_index()) * lines_at_once; first < lines;
       first += static_cast<Index>(block_count()) * lines_at_once) {
    const Index line = first + (alone ? warp_index() : 0);
    if (line >= lines) continue;  // a whole warp, and then no barrier follows
    const Offsets<2> at = offsets(args.lines, line);
    const T* x = in + at.at[0];
    T* y = out + at.at[1];
    const bool vectors = is_vec_aligned<kEach>(x + begin) && is_vec_aligned<kEach>(y + begin);

    N carry = S::start();
    if (totals != nullptr) {
      GPU_ROLLED
      for (Index s = thread_index(); s < block_index<1>(); s += kThreads) {
        carry = join(carry, totals[s * lines + line]);
      }
      carry = block_reduce(carry, join);
    }
    GPU_ROLLED
    for (Index base = begin; base < end; base += alone ? kPiece : kPiece * kWarps) {
      const Index from = base + (alone ? 0 : warp_index() * kPiece);
      const bool whole = from + kPiece <= end;
      N value[kSteps][kEach] = {};
      N running = S::start();  // of this warp's piece
      if (whole) {
        const T* piece = x + from + lane() * kEach;
        GPU_UNROLLED
        for (int s = 0; s < kSteps; ++s) {
          const T* here = piece + s * static_cast<int>(kWarp) * kEach;
          if (vectors) {
            const Vec<T, kEach> vec = load_vec<kEach>(here);
            for (int k = 0; k < kEach; ++k) value[s][k] = number(vec.get(k));
          } else {
            for (int k = 0; k < kEach; ++k) value[s][k] = number(here[k]);
          }
        }
        GPU_UNROLLED
        for (int s = 0; s < kSteps; ++s) {
          for (int k = 1; k < kEach; ++k) value[s][k] = join(value[s][k - 1], value[s][k]);
          const N sum = scan_warp<S>(value[s][kEach - 1]);
          const N before = shuffle(sum, lane() > 0 ? lane() - 1 : 0);
          const N lead = lane() > 0 ? join(running, before) : running;
          for (int k = 0; k < kEach; ++k) value[s][k] = join(lead, value[s][k]);
          running = join(running, shuffle(sum, kWarp - 1));
          keep_order();
        }
      } else {
        GPU_ROLLED
        for (Index i = from + lane(); i < end; i += kWarp) running = join(running, number(x[i]));
        running = warp_reduce(running, join);
      }
      N lead = carry;
      if (alone) {
        carry = join(carry, running);
      } else {
        if (lane() == 0) sums[warp_index()] = running;
        barrier();
        GPU_ROLLED
        for (unsigned w = 0; w < kWarps; ++w) {
          if (w == warp_index()) lead = carry;
          carry = join(carry, sums[w]);
        }
        barrier();
      }
      if (whole) {
        T* piece = y + from + lane() * kEach;
        GPU_UNROLLED
        for (int s = 0; s < kSteps; ++s) {
          T* here = piece + s * static_cast<int>(kWarp) * kEach;
          if (vectors) {
            Vec<T, kEach> vec;
            for (int k = 0; k < kEach; ++k) vec.set(k, element<T>(join(lead, value[s][k])));
            store_vec(here, vec);
          } else {
            for (int k = 0; k < kEach; ++k) here[k] = element<T>(join(lead, value[s][k]));
          }
        }
      } else {
        GPU_ROLLED
        for (Index start = from; start < end; start += kWarp) {
          const Index i = start + lane();
          const N sum = join(lead, scan_warp<S>(i < end ? number(x[i]) : S::start()));
          if (i < end) y[i] = element<T>(sum);
          lead = shuffle(sum, kWarp - 1);
        }
      }
    }
  }
}

// Any other lines: each belongs to one thread (or one per part), and neighbouring threads have
// neighbouring lines.
template <class S>
GPU_INLINE void scan_lines(const typename S::In* in, typename S::In* out,
                           const typename S::N* totals, const ScanArgs& args) {
  await_earlier();
  using T = typename S::In;
  using N = typename S::N;
  constexpr int kAtOnce = 8;
  const S join;
  const Index begin = static_cast<Index>(block_index<1>()) * args.per_split;
  const Index stop = begin + args.per_split;
  const Index end = stop < args.count ? stop : args.count;
  grid_stride(args.lines.count, [&](Index line) {
    const Offsets<2> at = offsets(args.lines, line);
    const T* x = in + at.at[0];
    T* y = out + at.at[1];
    N carry = S::start();
    if (totals != nullptr) {
      GPU_ROLLED
      for (Index s = 0; s < block_index<1>(); ++s) {
        carry = join(carry, totals[s * args.lines.count + line]);
      }
    }
    Index i = begin;
    GPU_ROLLED
    for (; i + kAtOnce <= end; i += kAtOnce) {
      T loaded[kAtOnce];
      for (int k = 0; k < kAtOnce; ++k) loaded[k] = x[(i + k) * args.in_step];
      for (int k = 0; k < kAtOnce; ++k) {
        carry = join(carry, number(loaded[k]));
        y[(i + k) * args.out_step] = element<T>(carry);
      }
    }
    GPU_ROLLED
    for (; i < end; ++i) {
      carry = join(carry, number(x[i * args.in_step]));
      y[i * args.out_step] = element<T>(carry);
    }
  });
}

// ---- kernels

GPU_KERNEL void sum_rows_1(const Bits8* in, void* out, SumOf<Bits8>::Kept* partial,
                           ReduceArgs args) {
  reduce_rows<SumOf<Bits8>>(in, out, partial, args);
}
GPU_KERNEL void sum_rows_2(const Bits16* in, void* out, SumOf<Bits16>::Kept* partial,
                           ReduceArgs args) {
  reduce_rows<SumOf<Bits16>>(in, out, partial, args);
}
GPU_KERNEL void sum_rows_4(const Bits32* in, void* out, SumOf<Bits32>::Kept* partial,
                           ReduceArgs args) {
  reduce_rows<SumOf<Bits32>>(in, out, partial, args);
}
GPU_KERNEL void sum_rows_8(const Bits64* in, void* out, SumOf<Bits64>::Kept* partial,
                           ReduceArgs args) {
  reduce_rows<SumOf<Bits64>>(in, out, partial, args);
}
GPU_KERNEL void sum_rows_f8e4m3(const Float8* in, void* out, SumOf<Float8>::Kept* partial,
                                ReduceArgs args) {
  reduce_rows<SumOf<Float8>>(in, out, partial, args);
}
GPU_KERNEL void sum_rows_f16(const Half* in, void* out, SumOf<Half>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<SumOf<Half>>(in, out, partial, args);
}
GPU_KERNEL void sum_rows_bf16(const BFloat16* in, void* out, SumOf<BFloat16>::Kept* partial,
                              ReduceArgs args) {
  reduce_rows<SumOf<BFloat16>>(in, out, partial, args);
}
GPU_KERNEL void sum_rows_f32(const float* in, void* out, SumOf<float>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<SumOf<float>>(in, out, partial, args);
}
GPU_KERNEL void sum_rows_f64(const double* in, void* out, SumOf<double>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<SumOf<double>>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_1(const Bits8* in, void* out, SumOf<Bits8>::Kept* partial,
                              ReduceArgs args) {
  reduce_strided<SumOf<Bits8>, 8>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_2(const Bits16* in, void* out, SumOf<Bits16>::Kept* partial,
                              ReduceArgs args) {
  reduce_strided<SumOf<Bits16>, 8>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_4(const Bits32* in, void* out, SumOf<Bits32>::Kept* partial,
                              ReduceArgs args) {
  reduce_strided<SumOf<Bits32>, 8>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_8(const Bits64* in, void* out, SumOf<Bits64>::Kept* partial,
                              ReduceArgs args) {
  reduce_strided<SumOf<Bits64>, 8>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_f8e4m3(const Float8* in, void* out, SumOf<Float8>::Kept* partial,
                                   ReduceArgs args) {
  reduce_strided<SumOf<Float8>, 8>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_f16(const Half* in, void* out, SumOf<Half>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<SumOf<Half>, 8>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_bf16(const BFloat16* in, void* out, SumOf<BFloat16>::Kept* partial,
                                 ReduceArgs args) {
  reduce_strided<SumOf<BFloat16>, 8>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_f32(const float* in, void* out, SumOf<float>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<SumOf<float>, 8>(in, out, partial, args);
}
GPU_KERNEL void sum_strided_f64(const double* in, void* out, SumOf<double>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<SumOf<double>, 8>(in, out, partial, args);
}

GPU_KERNEL void prod_rows_1(const Bits8* in, void* out, ProductOf<Bits8>::Kept* partial,
                            ReduceArgs args) {
  reduce_rows<ProductOf<Bits8>>(in, out, partial, args);
}
GPU_KERNEL void prod_rows_2(const Bits16* in, void* out, ProductOf<Bits16>::Kept* partial,
                            ReduceArgs args) {
  reduce_rows<ProductOf<Bits16>>(in, out, partial, args);
}
GPU_KERNEL void prod_rows_4(const Bits32* in, void* out, ProductOf<Bits32>::Kept* partial,
                            ReduceArgs args) {
  reduce_rows<ProductOf<Bits32>>(in, out, partial, args);
}
GPU_KERNEL void prod_rows_8(const Bits64* in, void* out, ProductOf<Bits64>::Kept* partial,
                            ReduceArgs args) {
  reduce_rows<ProductOf<Bits64>>(in, out, partial, args);
}
GPU_KERNEL void prod_rows_f8e4m3(const Float8* in, void* out, ProductOf<Float8>::Kept* partial,
                                 ReduceArgs args) {
  reduce_rows<ProductOf<Float8>>(in, out, partial, args);
}
GPU_KERNEL void prod_rows_f16(const Half* in, void* out, ProductOf<Half>::Kept* partial,
                              ReduceArgs args) {
  reduce_rows<ProductOf<Half>>(in, out, partial, args);
}
GPU_KERNEL void prod_rows_bf16(const BFloat16* in, void* out, ProductOf<BFloat16>::Kept* partial,
                               ReduceArgs args) {
  reduce_rows<ProductOf<BFloat16>>(in, out, partial, args);
}
GPU_KERNEL void prod_rows_f32(const float* in, void* out, ProductOf<float>::Kept* partial,
                              ReduceArgs args) {
  reduce_rows<ProductOf<float>>(in, out, partial, args);
}
GPU_KERNEL void prod_rows_f64(const double* in, void* out, ProductOf<double>::Kept* partial,
                              ReduceArgs args) {
  reduce_rows<ProductOf<double>>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_1(const Bits8* in, void* out, ProductOf<Bits8>::Kept* partial,
                               ReduceArgs args) {
  reduce_strided<ProductOf<Bits8>, 4>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_2(const Bits16* in, void* out, ProductOf<Bits16>::Kept* partial,
                               ReduceArgs args) {
  reduce_strided<ProductOf<Bits16>, 4>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_4(const Bits32* in, void* out, ProductOf<Bits32>::Kept* partial,
                               ReduceArgs args) {
  reduce_strided<ProductOf<Bits32>, 4>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_8(const Bits64* in, void* out, ProductOf<Bits64>::Kept* partial,
                               ReduceArgs args) {
  reduce_strided<ProductOf<Bits64>, 4>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_f8e4m3(const Float8* in, void* out, ProductOf<Float8>::Kept* partial,
                                    ReduceArgs args) {
  reduce_strided<ProductOf<Float8>, 4>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_f16(const Half* in, void* out, ProductOf<Half>::Kept* partial,
                                 ReduceArgs args) {
  reduce_strided<ProductOf<Half>, 4>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_bf16(const BFloat16* in, void* out, ProductOf<BFloat16>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<ProductOf<BFloat16>, 4>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_f32(const float* in, void* out, ProductOf<float>::Kept* partial,
                                 ReduceArgs args) {
  reduce_strided<ProductOf<float>, 4>(in, out, partial, args);
}
GPU_KERNEL void prod_strided_f64(const double* in, void* out, ProductOf<double>::Kept* partial,
                                 ReduceArgs args) {
  reduce_strided<ProductOf<double>, 4>(in, out, partial, args);
}

GPU_KERNEL void extreme_rows_1(const Bits8* in, void* out, ExtremeOf<Bits8>::Kept* partial,
                               ReduceArgs args) {
  reduce_rows<ExtremeOf<Bits8>>(in, out, partial, args);
}
GPU_KERNEL void extreme_rows_2(const Bits16* in, void* out, ExtremeOf<Bits16>::Kept* partial,
                               ReduceArgs args) {
  reduce_rows<ExtremeOf<Bits16>>(in, out, partial, args);
}
GPU_KERNEL void extreme_rows_4(const Bits32* in, void* out, ExtremeOf<Bits32>::Kept* partial,
                               ReduceArgs args) {
  reduce_rows<ExtremeOf<Bits32>>(in, out, partial, args);
}
GPU_KERNEL void extreme_rows_8(const Bits64* in, void* out, ExtremeOf<Bits64>::Kept* partial,
                               ReduceArgs args) {
  reduce_rows<ExtremeOf<Bits64>>(in, out, partial, args);
}
GPU_KERNEL void extreme_strided_1(const Bits8* in, void* out, ExtremeOf<Bits8>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<ExtremeOf<Bits8>, 8>(in, out, partial, args);
}
GPU_KERNEL void extreme_strided_2(const Bits16* in, void* out, ExtremeOf<Bits16>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<ExtremeOf<Bits16>, 8>(in, out, partial, args);
}
GPU_KERNEL void extreme_strided_4(const Bits32* in, void* out, ExtremeOf<Bits32>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<ExtremeOf<Bits32>, 8>(in, out, partial, args);
}
GPU_KERNEL void extreme_strided_8(const Bits64* in, void* out, ExtremeOf<Bits64>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<ExtremeOf<Bits64>, 8>(in, out, partial, args);
}

GPU_KERNEL void place_rows_1(const Bits8* in, void* out, PlaceOf<Bits8>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<PlaceOf<Bits8>>(in, out, partial, args);
}
GPU_KERNEL void place_rows_2(const Bits16* in, void* out, PlaceOf<Bits16>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<PlaceOf<Bits16>>(in, out, partial, args);
}
GPU_KERNEL void place_rows_4(const Bits32* in, void* out, PlaceOf<Bits32>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<PlaceOf<Bits32>>(in, out, partial, args);
}
GPU_KERNEL void place_rows_8(const Bits64* in, void* out, PlaceOf<Bits64>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<PlaceOf<Bits64>>(in, out, partial, args);
}
GPU_KERNEL void place_strided_1(const Bits8* in, void* out, PlaceOf<Bits8>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<PlaceOf<Bits8>, 4>(in, out, partial, args);
}
GPU_KERNEL void place_strided_2(const Bits16* in, void* out, PlaceOf<Bits16>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<PlaceOf<Bits16>, 4>(in, out, partial, args);
}
GPU_KERNEL void place_strided_4(const Bits32* in, void* out, PlaceOf<Bits32>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<PlaceOf<Bits32>, 4>(in, out, partial, args);
}
GPU_KERNEL void place_strided_8(const Bits64* in, void* out, PlaceOf<Bits64>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<PlaceOf<Bits64>, 4>(in, out, partial, args);
}

GPU_KERNEL void count_rows_1(const Bits8* in, void* out, CountOf<Bits8>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<CountOf<Bits8>>(in, out, partial, args);
}
GPU_KERNEL void count_rows_2(const Bits16* in, void* out, CountOf<Bits16>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<CountOf<Bits16>>(in, out, partial, args);
}
GPU_KERNEL void count_rows_4(const Bits32* in, void* out, CountOf<Bits32>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<CountOf<Bits32>>(in, out, partial, args);
}
GPU_KERNEL void count_rows_8(const Bits64* in, void* out, CountOf<Bits64>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<CountOf<Bits64>>(in, out, partial, args);
}
GPU_KERNEL void count_strided_1(const Bits8* in, void* out, CountOf<Bits8>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<CountOf<Bits8>, 8>(in, out, partial, args);
}
GPU_KERNEL void count_strided_2(const Bits16* in, void* out, CountOf<Bits16>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<CountOf<Bits16>, 8>(in, out, partial, args);
}
GPU_KERNEL void count_strided_4(const Bits32* in, void* out, CountOf<Bits32>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<CountOf<Bits32>, 8>(in, out, partial, args);
}
GPU_KERNEL void count_strided_8(const Bits64* in, void* out, CountOf<Bits64>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<CountOf<Bits64>, 8>(in, out, partial, args);
}

GPU_KERNEL void var_rows_f8e4m3(const Float8* in, void* out, VarianceOf<Float8>::Kept* partial,
                                ReduceArgs args) {
  reduce_rows<VarianceOf<Float8>>(in, out, partial, args);
}
GPU_KERNEL void var_rows_f16(const Half* in, void* out, VarianceOf<Half>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<VarianceOf<Half>>(in, out, partial, args);
}
GPU_KERNEL void var_rows_bf16(const BFloat16* in, void* out, VarianceOf<BFloat16>::Kept* partial,
                              ReduceArgs args) {
  reduce_rows<VarianceOf<BFloat16>>(in, out, partial, args);
}
GPU_KERNEL void var_rows_f32(const float* in, void* out, VarianceOf<float>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<VarianceOf<float>>(in, out, partial, args);
}
GPU_KERNEL void var_rows_f64(const double* in, void* out, VarianceOf<double>::Kept* partial,
                             ReduceArgs args) {
  reduce_rows<VarianceOf<double>>(in, out, partial, args);
}
GPU_KERNEL void var_strided_f8e4m3(const Float8* in, void* out, VarianceOf<Float8>::Kept* partial,
                                   ReduceArgs args) {
  reduce_strided<VarianceOf<Float8>, 4>(in, out, partial, args);
}
GPU_KERNEL void var_strided_f16(const Half* in, void* out, VarianceOf<Half>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<VarianceOf<Half>, 4>(in, out, partial, args);
}
GPU_KERNEL void var_strided_bf16(const BFloat16* in, void* out, VarianceOf<BFloat16>::Kept* partial,
                                 ReduceArgs args) {
  reduce_strided<VarianceOf<BFloat16>, 4>(in, out, partial, args);
}
GPU_KERNEL void var_strided_f32(const float* in, void* out, VarianceOf<float>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<VarianceOf<float>, 4>(in, out, partial, args);
}
GPU_KERNEL void var_strided_f64(const double* in, void* out, VarianceOf<double>::Kept* partial,
                                ReduceArgs args) {
  reduce_strided<VarianceOf<double>, 4>(in, out, partial, args);
}

GPU_KERNEL void logsumexp_rows_f8e4m3(const Float8* in, void* out,
                                      LogSumExpOf<Float8>::Kept* partial, ReduceArgs args) {
  reduce_rows<LogSumExpOf<Float8>>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_rows_f16(const Half* in, void* out, LogSumExpOf<Half>::Kept* partial,
                                   ReduceArgs args) {
  reduce_rows<LogSumExpOf<Half>>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_rows_bf16(const BFloat16* in, void* out,
                                    LogSumExpOf<BFloat16>::Kept* partial, ReduceArgs args) {
  reduce_rows<LogSumExpOf<BFloat16>>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_rows_f32(const float* in, void* out, LogSumExpOf<float>::Kept* partial,
                                   ReduceArgs args) {
  reduce_rows<LogSumExpOf<float>>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_rows_f64(const double* in, void* out, LogSumExpOf<double>::Kept* partial,
                                   ReduceArgs args) {
  reduce_rows<LogSumExpOf<double>>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_strided_f8e4m3(const Float8* in, void* out,
                                         LogSumExpOf<Float8>::Kept* partial, ReduceArgs args) {
  reduce_strided<LogSumExpOf<Float8>, 4>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_strided_f16(const Half* in, void* out, LogSumExpOf<Half>::Kept* partial,
                                      ReduceArgs args) {
  reduce_strided<LogSumExpOf<Half>, 4>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_strided_bf16(const BFloat16* in, void* out,
                                       LogSumExpOf<BFloat16>::Kept* partial, ReduceArgs args) {
  reduce_strided<LogSumExpOf<BFloat16>, 4>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_strided_f32(const float* in, void* out, LogSumExpOf<float>::Kept* partial,
                                      ReduceArgs args) {
  reduce_strided<LogSumExpOf<float>, 4>(in, out, partial, args);
}
GPU_KERNEL void logsumexp_strided_f64(const double* in, void* out,
                                      LogSumExpOf<double>::Kept* partial, ReduceArgs args) {
  reduce_strided<LogSumExpOf<double>, 4>(in, out, partial, args);
}

GPU_KERNEL void norm_rows_f8e4m3(const Float8* in, void* out, NormOf<Float8>::Kept* partial,
                                 ReduceArgs args) {
  reduce_rows<NormOf<Float8>>(in, out, partial, args);
}
GPU_KERNEL void norm_rows_f16(const Half* in, void* out, NormOf<Half>::Kept* partial,
                              ReduceArgs args) {
  reduce_rows<NormOf<Half>>(in, out, partial, args);
}
GPU_KERNEL void norm_rows_bf16(const BFloat16* in, void* out, NormOf<BFloat16>::Kept* partial,
                               ReduceArgs args) {
  reduce_rows<NormOf<BFloat16>>(in, out, partial, args);
}
GPU_KERNEL void norm_rows_f32(const float* in, void* out, NormOf<float>::Kept* partial,
                              ReduceArgs args) {
  reduce_rows<NormOf<float>>(in, out, partial, args);
}
GPU_KERNEL void norm_rows_f64(const double* in, void* out, NormOf<double>::Kept* partial,
                              ReduceArgs args) {
  reduce_rows<NormOf<double>>(in, out, partial, args);
}
GPU_KERNEL void norm_strided_f8e4m3(const Float8* in, void* out, NormOf<Float8>::Kept* partial,
                                    ReduceArgs args) {
  reduce_strided<NormOf<Float8>, 4>(in, out, partial, args);
}
GPU_KERNEL void norm_strided_f16(const Half* in, void* out, NormOf<Half>::Kept* partial,
                                 ReduceArgs args) {
  reduce_strided<NormOf<Half>, 4>(in, out, partial, args);
}
GPU_KERNEL void norm_strided_bf16(const BFloat16* in, void* out, NormOf<BFloat16>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<NormOf<BFloat16>, 4>(in, out, partial, args);
}
GPU_KERNEL void norm_strided_f32(const float* in, void* out, NormOf<float>::Kept* partial,
                                 ReduceArgs args) {
  reduce_strided<NormOf<float>, 4>(in, out, partial, args);
}
GPU_KERNEL void norm_strided_f64(const double* in, void* out, NormOf<double>::Kept* partial,
                                 ReduceArgs args) {
  reduce_strided<NormOf<double>, 4>(in, out, partial, args);
}

GPU_KERNEL void power_strided_f8e4m3(const Float8* in, void* out, PowerOf<Float8>::Kept* partial,
                                     ReduceArgs args) {
  reduce_strided<PowerOf<Float8>, 1>(in, out, partial, args);
}
GPU_KERNEL void power_strided_f16(const Half* in, void* out, PowerOf<Half>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<PowerOf<Half>, 1>(in, out, partial, args);
}
GPU_KERNEL void power_strided_bf16(const BFloat16* in, void* out, PowerOf<BFloat16>::Kept* partial,
                                   ReduceArgs args) {
  reduce_strided<PowerOf<BFloat16>, 1>(in, out, partial, args);
}
GPU_KERNEL void power_strided_f32(const float* in, void* out, PowerOf<float>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<PowerOf<float>, 1>(in, out, partial, args);
}
GPU_KERNEL void power_strided_f64(const double* in, void* out, PowerOf<double>::Kept* partial,
                                  ReduceArgs args) {
  reduce_strided<PowerOf<double>, 1>(in, out, partial, args);
}

GPU_KERNEL void cumsum_rows_1(const Bits8* in, Bits8* out, const AddUp<Bits8>::N* totals,
                              ScanArgs args) {
  scan_rows<AddUp<Bits8>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_rows_2(const Bits16* in, Bits16* out, const AddUp<Bits16>::N* totals,
                              ScanArgs args) {
  scan_rows<AddUp<Bits16>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_rows_4(const Bits32* in, Bits32* out, const AddUp<Bits32>::N* totals,
                              ScanArgs args) {
  scan_rows<AddUp<Bits32>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_rows_8(const Bits64* in, Bits64* out, const AddUp<Bits64>::N* totals,
                              ScanArgs args) {
  scan_rows<AddUp<Bits64>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_rows_f8e4m3(const Float8* in, Float8* out, const AddUp<Float8>::N* totals,
                                   ScanArgs args) {
  scan_rows<AddUp<Float8>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_rows_f16(const Half* in, Half* out, const AddUp<Half>::N* totals,
                                ScanArgs args) {
  scan_rows<AddUp<Half>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_rows_bf16(const BFloat16* in, BFloat16* out,
                                 const AddUp<BFloat16>::N* totals, ScanArgs args) {
  scan_rows<AddUp<BFloat16>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_rows_f32(const float* in, float* out, const AddUp<float>::N* totals,
                                ScanArgs args) {
  scan_rows<AddUp<float>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_rows_f64(const double* in, double* out, const AddUp<double>::N* totals,
                                ScanArgs args) {
  scan_rows<AddUp<double>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_1(const Bits8* in, Bits8* out, const AddUp<Bits8>::N* totals,
                               ScanArgs args) {
  scan_lines<AddUp<Bits8>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_2(const Bits16* in, Bits16* out, const AddUp<Bits16>::N* totals,
                               ScanArgs args) {
  scan_lines<AddUp<Bits16>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_4(const Bits32* in, Bits32* out, const AddUp<Bits32>::N* totals,
                               ScanArgs args) {
  scan_lines<AddUp<Bits32>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_8(const Bits64* in, Bits64* out, const AddUp<Bits64>::N* totals,
                               ScanArgs args) {
  scan_lines<AddUp<Bits64>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_f8e4m3(const Float8* in, Float8* out, const AddUp<Float8>::N* totals,
                                    ScanArgs args) {
  scan_lines<AddUp<Float8>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_f16(const Half* in, Half* out, const AddUp<Half>::N* totals,
                                 ScanArgs args) {
  scan_lines<AddUp<Half>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_bf16(const BFloat16* in, BFloat16* out,
                                  const AddUp<BFloat16>::N* totals, ScanArgs args) {
  scan_lines<AddUp<BFloat16>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_f32(const float* in, float* out, const AddUp<float>::N* totals,
                                 ScanArgs args) {
  scan_lines<AddUp<float>>(in, out, totals, args);
}
GPU_KERNEL void cumsum_lines_f64(const double* in, double* out, const AddUp<double>::N* totals,
                                 ScanArgs args) {
  scan_lines<AddUp<double>>(in, out, totals, args);
}

GPU_KERNEL void cumprod_rows_1(const Bits8* in, Bits8* out, const MultiplyUp<Bits8>::N* totals,
                               ScanArgs args) {
  scan_rows<MultiplyUp<Bits8>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_rows_2(const Bits16* in, Bits16* out, const MultiplyUp<Bits16>::N* totals,
                               ScanArgs args) {
  scan_rows<MultiplyUp<Bits16>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_rows_4(const Bits32* in, Bits32* out, const MultiplyUp<Bits32>::N* totals,
                               ScanArgs args) {
  scan_rows<MultiplyUp<Bits32>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_rows_8(const Bits64* in, Bits64* out, const MultiplyUp<Bits64>::N* totals,
                               ScanArgs args) {
  scan_rows<MultiplyUp<Bits64>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_rows_f8e4m3(const Float8* in, Float8* out,
                                    const MultiplyUp<Float8>::N* totals, ScanArgs args) {
  scan_rows<MultiplyUp<Float8>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_rows_f16(const Half* in, Half* out, const MultiplyUp<Half>::N* totals,
                                 ScanArgs args) {
  scan_rows<MultiplyUp<Half>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_rows_bf16(const BFloat16* in, BFloat16* out,
                                  const MultiplyUp<BFloat16>::N* totals, ScanArgs args) {
  scan_rows<MultiplyUp<BFloat16>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_rows_f32(const float* in, float* out, const MultiplyUp<float>::N* totals,
                                 ScanArgs args) {
  scan_rows<MultiplyUp<float>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_rows_f64(const double* in, double* out, const MultiplyUp<double>::N* totals,
                                 ScanArgs args) {
  scan_rows<MultiplyUp<double>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_1(const Bits8* in, Bits8* out, const MultiplyUp<Bits8>::N* totals,
                                ScanArgs args) {
  scan_lines<MultiplyUp<Bits8>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_2(const Bits16* in, Bits16* out, const MultiplyUp<Bits16>::N* totals,
                                ScanArgs args) {
  scan_lines<MultiplyUp<Bits16>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_4(const Bits32* in, Bits32* out, const MultiplyUp<Bits32>::N* totals,
                                ScanArgs args) {
  scan_lines<MultiplyUp<Bits32>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_8(const Bits64* in, Bits64* out, const MultiplyUp<Bits64>::N* totals,
                                ScanArgs args) {
  scan_lines<MultiplyUp<Bits64>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_f8e4m3(const Float8* in, Float8* out,
                                     const MultiplyUp<Float8>::N* totals, ScanArgs args) {
  scan_lines<MultiplyUp<Float8>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_f16(const Half* in, Half* out, const MultiplyUp<Half>::N* totals,
                                  ScanArgs args) {
  scan_lines<MultiplyUp<Half>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_bf16(const BFloat16* in, BFloat16* out,
                                   const MultiplyUp<BFloat16>::N* totals, ScanArgs args) {
  scan_lines<MultiplyUp<BFloat16>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_f32(const float* in, float* out, const MultiplyUp<float>::N* totals,
                                  ScanArgs args) {
  scan_lines<MultiplyUp<float>>(in, out, totals, args);
}
GPU_KERNEL void cumprod_lines_f64(const double* in, double* out,
                                  const MultiplyUp<double>::N* totals, ScanArgs args) {
  scan_lines<MultiplyUp<double>>(in, out, totals, args);
}
