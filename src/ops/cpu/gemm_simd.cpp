// Matrix products of floats in vector code: one text, compiled for each kind of CPU and chosen at
// run time.
#include "ops/cpu/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/gemm_simd.cpp"
// Vectors of unknown length cannot be kept in arrays; and what lies between these kinds of CPU
// gains nothing here.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)
#endif
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/cpu/gemm_driver.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// ---- loading any float as f32 (f64 as itself)

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const half* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const bfloat16* p) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto word = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p)));
  return hn::BitCast(d, hn::ShiftLeft<16>(word));
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float8_e4m3* p) {
  // The bits moved to where f16 has them are 2^-8 of the value, subnormals included.
  const hn::Rebind<std::uint8_t, D> d8;
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> half_d;
  const auto b = hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(p)));
  const auto magnitude = hn::And(b, hn::Set(d16, 0x7f));
  auto moved =
      hn::Or(hn::ShiftLeft<8>(hn::And(b, hn::Set(d16, 0x80))), hn::ShiftLeft<7>(magnitude));
  // 0x7f is NaN
  moved = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d16, 0x7f)), hn::Set(d16, 0x7e00), moved);
  return hn::Mul(hn::PromoteTo(d, hn::BitCast(half_d, moved)), hn::Set(d, 256.0f));
}

template <class Wide, class T>
HWY_INLINE Wide load_one(T x) {
  return static_cast<Wide>(x);
}

template <class Wide, class T>
HWY_ATTR void store_row(const Wide* from, T* to, std::int64_t count) {
  std::int64_t i = 0;
#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
  if constexpr (std::is_same_v<T, half>) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; i + lanes <= count; i += lanes) {
      hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d, from + i)), d16,
                 reinterpret_cast<hwy::float16_t*>(to + i));
    }
  }
#endif
  for (; i < count; ++i) to[i] = convert<T>(from[i]);
}

// ---- the kernel for tiles

// Registers for sums are all but a few: 12 rows of two vectors where there are 32 of them, else 6.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kTileRows = 12;
#else
inline constexpr int kTileRows = 6;
#endif

template <class T, class B = T>
struct FloatKernel : PlainB<B> {
  using InA = T;
  using Out = T;
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using PackedA = Sum;
  using PackedB = Sum;
  using D = hn::ScalableTag<Sum>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());
  static constexpr std::int64_t kRows = kTileRows;
  static constexpr std::int64_t kColumns = 2 * kLanes;
  static constexpr std::int64_t kDepth = 256;
  static constexpr std::int64_t kGroup = 1;

  // Lines `line` apart, of which element p is p * deep further on, become [p][line].
  template <std::int64_t kLines, class In>
  static HWY_ATTR void pack(Sum* to, const In* from, std::int64_t line, std::int64_t deep,
                            std::int64_t lines, std::int64_t depth) {
    const D d;
    if (line == 1 && lines == kLines && kLines % kLanes == 0) {
      for (std::int64_t p = 0; p < depth; ++p) {
        for (std::int64_t i = 0; i < kLines; i += kLanes) {
          hn::StoreU(load(d, from + p * deep + i), d, to + p * kLines + i);
        }
      }
      return;
    }
    std::int64_t done = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(Sum) == 4) {
      if (deep == 1) {  // four lines of four elements at a time
        const hn::FixedTag<float, 4> d4;
        const hn::FixedTag<double, 2> d2;
        for (; done + 4 <= lines; done += 4) {
          const In* at = from + done * line;
          std::int64_t p = 0;
          for (; p + 4 <= depth; p += 4) {
            const auto r0 = load(d4, at + p), r1 = load(d4, at + line + p);
            const auto r2 = load(d4, at + 2 * line + p), r3 = load(d4, at + 3 * line + p);
            const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d4, r0, r1));
            const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d4, r2, r3));
            const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d4, r0, r1));
            const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d4, r2, r3));
            float* out = to + p * kLines + done;
            hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, low01, low23)), d4, out);
            hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, low01, low23)), d4, out + kLines);
            hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, high01, high23)), d4,
                       out + 2 * kLines);
            hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, high01, high23)), d4,
                       out + 3 * kLines);
          }
          for (; p < depth; ++p) {
            for (std::int64_t i = 0; i < 4; ++i) {
              to[p * kLines + done + i] = load_one<Sum>(at[i * line + p]);
            }
          }
        }
      }
    }
#endif
    for (std::int64_t p = 0; p < depth; ++p) {
      for (std::int64_t i = done; i < lines; ++i) {
        to[p * kLines + i] = load_one<Sum>(from[i * line + p * deep]);
      }
      for (std::int64_t i = lines; i < kLines; ++i) to[p * kLines + i] = 0;
    }
  }
  static void pack_a(PackedA* to, const T* from, std::int64_t line, std::int64_t deep,
                     std::int64_t lines, std::int64_t depth) {
    pack<kRows>(to, from, line, deep, lines, depth);
  }
  static void pack_b(PackedB* to, const B* from, std::int64_t line, std::int64_t deep,
                     std::int64_t lines, std::int64_t depth) {
    pack<kColumns>(to, from, line, deep, lines, depth);
  }

  static HWY_ATTR void multiply(std::int64_t depth, const PackedA* HWY_RESTRICT a,
                                const PackedB* HWY_RESTRICT b, Sum* HWY_RESTRICT c,
                                std::int64_t c_row, bool add) {
    const D d;
    using V = hn::Vec<D>;
    V sum[kRows][2];
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) sum[i][0] = sum[i][1] = hn::Zero(d);
    for (std::int64_t p = 0; p < depth; ++p) {
      const V b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + kLanes);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kRows; ++i) {
        const V x = hn::Set(d, a[i]);
        sum[i][0] = hn::MulAdd(x, b0, sum[i][0]);
        sum[i][1] = hn::MulAdd(x, b1, sum[i][1]);
      }
      a += kRows;
      b += kColumns;
    }
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
      Sum* to = c + i * c_row;
      if (add) {
        sum[i][0] = hn::Add(sum[i][0], hn::LoadU(d, to));
        sum[i][1] = hn::Add(sum[i][1], hn::LoadU(d, to + kLanes));
      }
      hn::StoreU(sum[i][0], d, to);
      hn::StoreU(sum[i][1], d, to + kLanes);
    }
  }
  static void store(const Sum* from, T* to, std::int64_t count) { store_row(from, to, count); }
};

// ---- few rows of A: what counts is reading B once

inline constexpr int kFewRows = 4;

template <class Sum, class T>
void finish(const Gemm& g, std::int64_t row, std::int64_t col, Sum sum) {
  if (g.bias != nullptr) {
    sum += static_cast<Sum>(static_cast<const T*>(g.bias)[row * g.bias_row + col * g.bias_col]);
  }
  static_cast<T*>(g.c)[row * g.c_row + col * g.c_col] = convert<T>(sum);
}

// Sums of kRows products of rows of `x` (packed, `depth` apart) with one contiguous column.
template <int kRows, class Sum, class T>
HWY_ATTR void column_dots(const Sum* HWY_RESTRICT x, std::int64_t apart, const T* HWY_RESTRICT b,
                          std::int64_t depth, Sum* out) {
  const hn::ScalableTag<Sum> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  constexpr int kChains = kRows == 1 ? 4 : 2;  // sums that do not wait for each other
  V sum[kRows][kChains];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int u = 0; u < kChains; ++u) sum[r][u] = hn::Zero(d);
  }
  std::int64_t p = 0;
  for (; p + kChains * lanes <= depth; p += kChains * lanes) {
#pragma GCC unroll 16
    for (int u = 0; u < kChains; ++u) {
      const V y = load(d, b + p + u * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        sum[r][u] = hn::MulAdd(hn::LoadU(d, x + r * apart + p + u * lanes), y, sum[r][u]);
      }
    }
  }
  for (; p + lanes <= depth; p += lanes) {
    const V y = load(d, b + p);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      sum[r][0] = hn::MulAdd(hn::LoadU(d, x + r * apart + p), y, sum[r][0]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    V total = sum[r][0];
#pragma GCC unroll 16
    for (int u = 1; u < kChains; ++u) total = hn::Add(total, sum[r][u]);
    Sum one = hn::GetLane(hn::SumOfLanes(d, total));
    for (std::int64_t q = p; q < depth; ++q) one += x[r * apart + q] * load_one<Sum>(b[q]);
    out[r] = one;
  }
}

// The rows of A as Sum, each contiguous.
template <class Sum, class T>
const Sum* packed_rows(const Gemm& g, Scratch& scratch) {
  const auto* a = static_cast<const T*>(g.a);
  if constexpr (std::is_same_v<Sum, T>) {
    if (g.a_col == 1 && (g.m == 1 || g.a_row == g.k)) return a;
  }
  auto* to = static_cast<Sum*>(scratch.take(static_cast<std::size_t>(g.m * g.k) * sizeof(Sum)));
  for (std::int64_t r = 0; r < g.m; ++r) {
    for (std::int64_t p = 0; p < g.k; ++p) {
      to[r * g.k + p] = load_one<Sum>(a[r * g.a_row + p * g.a_col]);
    }
  }
  return to;
}

// What is left of a column behind whole vectors. One function, so that a column's bits do not
// depend on what it is taken with.
template <class Sum, class T>
HWY_NOINLINE HWY_ATTR Sum rest_dot(Sum sum, const Sum* x, const T* b, std::int64_t count) {
  for (std::int64_t q = 0; q < count; ++q) sum += x[q] * load_one<Sum>(b[q]);
  return sum;
}

// What is read ahead while columns are multiplied: for column c, at element p of it, the line at
// from + p * per_element + c * per_column.
struct Ahead {
  const char* from;
  std::int64_t per_element, per_column;
};

// The same for one row of `x` and kCount columns, `apart` elements from each other.
template <int kCount, class Sum, class T>
HWY_ATTR void together_dots(const Sum* HWY_RESTRICT x, const T* HWY_RESTRICT b, std::int64_t apart,
                            std::int64_t depth, const Ahead& ahead, Sum* out) {
  const hn::ScalableTag<Sum> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  V sum[kCount];
#pragma GCC unroll 16
  for (int c = 0; c < kCount; ++c) sum[c] = hn::Zero(d);
  std::int64_t p = 0;
  for (; p + lanes <= depth; p += lanes) {
    const V y = hn::LoadU(d, x + p);
    if (p * static_cast<std::int64_t>(sizeof(T)) % 64 == 0) {
#pragma GCC unroll 16
      for (int c = 0; c < kCount; ++c) {
        __builtin_prefetch(ahead.from + p * ahead.per_element + c * ahead.per_column);
      }
    }
#pragma GCC unroll 16
    for (int c = 0; c < kCount; ++c) sum[c] = hn::MulAdd(load(d, b + c * apart + p), y, sum[c]);
  }
#pragma GCC unroll 16
  for (int c = 0; c < kCount; ++c) {
    out[c] = rest_dot(hn::GetLane(hn::SumOfLanes(d, sum[c])), x + p, b + c * apart + p, depth - p);
  }
}

// One row of A. A column's sum is the same whichever range it is in.
template <class Sum, class T, class B>
void dot_one_row(const Gemm& g) {
  // One column at a time, read ahead within it, would be one stream of memory that stops at each
  // page's end, where the CPU's own reading ahead does. So there are eight of them, an odd number
  // of columns apart, of these at most: at a distance of a power of two they would evict each
  // other. Or two next to each other, and those columns are read ahead that come after them.
  constexpr int kTogether = 8, kNeighbours = 2;
  constexpr std::int64_t kApart = 15;
  constexpr std::int64_t kAhead = 512, kFarAhead = 16384, kSize = sizeof(B);  // bytes
  thread_local Scratch scratch;
  const Sum* x = packed_rows<Sum, T>(g, scratch);
  const auto* b = static_cast<const B*>(g.b);
  const auto bytes_at = [&](std::int64_t col) {
    return reinterpret_cast<const char*>(b + col * g.b_col);
  };
  const auto multiply = [&](std::int64_t col, std::int64_t last) {
    Sum sums[kTogether];
    if (g.order == RowOrder::Together) {
      for (; col + kNeighbours <= last; col += kNeighbours) {
        const Ahead ahead{bytes_at(col) + kFarAhead, kNeighbours * kSize, 64};
        together_dots<kNeighbours>(x, b + col * g.b_col, g.b_col, g.k, ahead, sums);
        for (int c = 0; c < kNeighbours; ++c) finish<Sum, T>(g, 0, col + c, sums[c]);
      }
    }
    while (col + kTogether <= last) {
      const std::int64_t apart = std::min(kApart, ((last - col) / kTogether - 1) | 1);
      for (const std::int64_t end = col + apart; col < end; ++col) {
        const Ahead ahead{bytes_at(col) + kAhead, kSize, apart * g.b_col * kSize};
        together_dots<kTogether>(x, b + col * g.b_col, apart * g.b_col, g.k, ahead, sums);
        for (int c = 0; c < kTogether; ++c) finish<Sum, T>(g, 0, col + c * apart, sums[c]);
      }
      col += (kTogether - 1) * apart;
    }
    for (; col < last; ++col) {
      together_dots<1>(x, b + col * g.b_col, 0, g.k, {bytes_at(col) + kAhead, kSize, 0}, sums);
      finish<Sum, T>(g, 0, col, sums[0]);
    }
  };
  ThreadPool::shared().parallel_for(
      0, (g.n + kTogether - 1) / kTogether, std::max<std::int64_t>(1, 65536 / (kTogether * g.k)),
      [&](std::int64_t first, std::int64_t last) {
        multiply(first * kTogether, std::min<std::int64_t>(last * kTogether, g.n));
      });
}

// Columns of B contiguous. Long ones are summed in stretches of a fixed length, so that one column
// can keep all threads busy and the result does not depend on how many there are.
template <class Sum, class T, class B>
void dot_columns(const Gemm& g) {
  constexpr std::int64_t kStretch = 32768;
  if (g.m == 1 && g.k <= kStretch) return dot_one_row<Sum, T, B>(g);
  thread_local Scratch scratch, partial_scratch;
  const Sum* x = packed_rows<Sum, T>(g, scratch);
  const std::int64_t stretches = (g.k + kStretch - 1) / kStretch;
  auto* const partial = static_cast<Sum*>(
      partial_scratch.take(static_cast<std::size_t>(g.n * stretches * kFewRows) * sizeof(Sum)));
  const auto* b = static_cast<const B*>(g.b);
  const std::int64_t each = std::min(g.k, kStretch) * g.m;
  ThreadPool::shared().parallel_for(0, g.n * stretches, std::max<std::int64_t>(1, 65536 / each),
                                    [&](std::int64_t first, std::int64_t last) {
                                      for (std::int64_t i = first; i < last; ++i) {
                                        const std::int64_t col = i / stretches,
                                                           p = i % stretches * kStretch;
                                        const std::int64_t depth = std::min(kStretch, g.k - p);
                                        const B* column = b + col * g.b_col + p;
                                        Sum* to = partial + i * kFewRows;
                                        switch (g.m) {
                                          case 1:
                                            column_dots<1>(x + p, g.k, column, depth, to);
                                            break;
                                          case 2:
                                            column_dots<2>(x + p, g.k, column, depth, to);
                                            break;
                                          case 3:
                                            column_dots<3>(x + p, g.k, column, depth, to);
                                            break;
                                          default:
                                            column_dots<4>(x + p, g.k, column, depth, to);
                                            break;
                                        }
                                        if (stretches > 1) continue;
                                        for (std::int64_t r = 0; r < g.m; ++r)
                                          finish<Sum, T>(g, r, col, to[r]);
                                      }
                                    });
  if (stretches == 1) return;
  for (std::int64_t col = 0; col < g.n; ++col) {
    for (std::int64_t r = 0; r < g.m; ++r) {
      Sum sum = 0;
      for (std::int64_t s = 0; s < stretches; ++s) {
        sum += partial[(col * stretches + s) * kFewRows + r];
      }
      finish<Sum, T>(g, r, col, sum);
    }
  }
}

// sums[0 ... count) of one row of C: adds x[p] times row p of B, four rows at a time.
template <class Sum, class T>
HWY_ATTR void add_rows(const Sum* x, const T* b, std::int64_t b_row, std::int64_t depth,
                       std::int64_t count, Sum* HWY_RESTRICT sums) {
  const hn::ScalableTag<Sum> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t p = 0;
  for (; p + 4 <= depth; p += 4) {
    const T* b0 = b + p * b_row;
    const T *b1 = b0 + b_row, *b2 = b1 + b_row, *b3 = b2 + b_row;
    const auto x0 = hn::Set(d, x[p]), x1 = hn::Set(d, x[p + 1]);
    const auto x2 = hn::Set(d, x[p + 2]), x3 = hn::Set(d, x[p + 3]);
    std::int64_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      auto sum = hn::MulAdd(x0, load(d, b0 + j), hn::LoadU(d, sums + j));
      auto more = hn::Mul(x1, load(d, b1 + j));
      sum = hn::MulAdd(x2, load(d, b2 + j), sum);
      more = hn::MulAdd(x3, load(d, b3 + j), more);
      hn::StoreU(hn::Add(sum, more), d, sums + j);
    }
    for (; j < count; ++j) {
      sums[j] += x[p] * load_one<Sum>(b0[j]) + x[p + 1] * load_one<Sum>(b1[j]) +
                 (x[p + 2] * load_one<Sum>(b2[j]) + x[p + 3] * load_one<Sum>(b3[j]));
    }
  }
  for (; p < depth; ++p) {
    const T* row = b + p * b_row;
    for (std::int64_t j = 0; j < count; ++j) sums[j] += x[p] * load_one<Sum>(row[j]);
  }
}

// Rows of B contiguous: every thread walks down its own stripe of columns.
template <class Sum, class T>
void sum_rows(const Gemm& g) {
  constexpr std::int64_t kStripe = 512, kBlock = 64;
  thread_local Scratch scratch;
  const Sum* x = packed_rows<Sum, T>(g, scratch);
  const auto* b = static_cast<const T*>(g.b);
  const std::int64_t threads = ThreadPool::shared().threads();
  const bool one = g.n * g.k * g.m < 65536;
  const std::int64_t stripe =
      std::min(kStripe, one ? kStripe : round_up((g.n + threads - 1) / threads, 64));
  ThreadPool::shared().parallel_for(
      0, (g.n + stripe - 1) / stripe, one ? g.n : 1, [&](std::int64_t first, std::int64_t last) {
        alignas(64) Sum sums[kFewRows][kStripe];
        for (std::int64_t i = first; i < last; ++i) {
          const std::int64_t j = i * stripe, count = std::min(stripe, g.n - j);
          for (std::int64_t r = 0; r < g.m; ++r) std::fill_n(sums[r], count, Sum{0});
          // A block of B stays in the cache while the rows of A take turns.
          for (std::int64_t p = 0; p < g.k; p += kBlock) {
            const std::int64_t depth = std::min(kBlock, g.k - p);
            for (std::int64_t r = 0; r < g.m; ++r) {
              add_rows(x + r * g.k + p, b + p * g.b_row + j, g.b_row, depth, count, sums[r]);
            }
          }
          for (std::int64_t r = 0; r < g.m; ++r) {
            for (std::int64_t t = 0; t < count; ++t) finish<Sum, T>(g, r, j + t, sums[r][t]);
          }
        }
      });
}

template <class T>
void gemm_of(const Gemm& g) {
  using Sum = typename FloatKernel<T>::Sum;
  if (g.m <= kFewRows && g.b_row == 1) return dot_columns<Sum, T, T>(g);
  if (g.m <= kFewRows && g.b_col == 1) return sum_rows<Sum, T>(g);
  gemm_blocks<FloatKernel<T>>(g);
}

void gemm(const Gemm& g) {
  visit_float("matmul", g.dtype, [&]<class T> { gemm_of<T>(g); });
}

template <class B>
void mixed_of(const Gemm& g) {
  if (g.m <= kFewRows) return dot_columns<float, float, B>(g);
  gemm_blocks<FloatKernel<float, B>>(g);
}

void mixed_gemm(const Gemm& g, DType b) {
  b == DType::F16 ? mixed_of<half>(g) : mixed_of<bfloat16>(g);
}

}  // namespace HWY_NAMESPACE
}  // namespace tl::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(gemm);
HWY_EXPORT(mixed_gemm);

void gemm_float(const Gemm& g) { HWY_DYNAMIC_DISPATCH(gemm)(g); }
void gemm_float(const Gemm& g, DType b) { HWY_DYNAMIC_DISPATCH(mixed_gemm)(g, b); }

}  // namespace tl::cpu
#endif
