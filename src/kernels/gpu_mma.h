// What products of small tiles are made of: pairs of halves, bytes picked out of words, copies to
// shared memory that run beside the work, and the matrix units. With gpu.h and gpu_together.h the
// only place where the vendors are told apart.
//
// A MatrixUnit multiplies a tile of kRows by 16 with one of 16 by kColumns and adds to a tile of
// f32 that the warp holds together. In which order the 16 are taken does not matter as long as both
// sides agree, so a lane is said to hold kRun elements in a row of the 16:
//
//   row(i)     which row of the left tile the lane's elements i * kRun, ... belong to
//   column()   which column of the right tile its elements belong to
//   deep()     which of the kDeep runs of the 16 they are
//   sum_row(i), sum_column(i)    what the lane's sum i is the sum of
//
// The simulated GPU has the same by way of shuffles. kThere says whether a target has matrix units;
// where not, add() is missing.
//
// Where kTurnsColumns is true, turn_columns() reads what is a column of the right tile from rows in
// shared memory: lane l says where eight neighbours of a row lie (16 bytes, aligned), as row l % 8
// of square l / 8, and gets of each of the four squares the elements of column l / 4 in rows
// 2 (l % 4) and the next. Two squares below each other so are a run, in the order in which a lane's
// sums of two products side by side lie.
#pragma once

#include "gpu.h"

// ---- pairs of halves in a word, the first one low

#if defined(GPU_NVIDIA)
GPU_INLINE Bits32 pair_add(Bits32 a, Bits32 b) {
  Bits32 c;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
GPU_INLINE Bits32 pair_fma(Bits32 a, Bits32 b, Bits32 c) {
  Bits32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
#elif defined(GPU_AMD)
typedef _Float16 HalfPair __attribute__((ext_vector_type(2)));
GPU_INLINE Bits32 pair_add(Bits32 a, Bits32 b) {
  return __builtin_bit_cast(Bits32,
                            __builtin_bit_cast(HalfPair, a) + __builtin_bit_cast(HalfPair, b));
}
GPU_INLINE Bits32 pair_fma(Bits32 a, Bits32 b, Bits32 c) {
  return __builtin_bit_cast(Bits32,
                            __builtin_bit_cast(HalfPair, a) * __builtin_bit_cast(HalfPair, b) +
                                __builtin_bit_cast(HalfPair, c));
}
#else
template <class F>
GPU_INLINE Bits32 pair_of(F f) {
  return float_to_f16(f(0)) | static_cast<Bits32>(float_to_f16(f(16))) << 16;
}
GPU_INLINE float half_at(Bits32 pair, int shift) {
  return f16_to_float(static_cast<Bits16>(pair >> shift));
}
GPU_INLINE Bits32 pair_add(Bits32 a, Bits32 b) {
  return pair_of([&](int s) { return half_at(a, s) + half_at(b, s); });
}
GPU_INLINE Bits32 pair_fma(Bits32 a, Bits32 b, Bits32 c) {
  return pair_of([&](int s) { return half_at(a, s) * half_at(b, s) + half_at(c, s); });
}
#endif
// Two floats as halves.
#if defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 800
GPU_INLINE Bits32 pair_from(float low, float high) {
  Bits32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#else
GPU_INLINE Bits32 pair_from(float low, float high) {
  return float_to_f16(low) | static_cast<Bits32>(float_to_f16(high)) << 16;
}
#endif
GPU_INLINE Bits32 pair_both(float x) {
  const Bits32 h = float_to_f16(x);
  return h | h << 16;
}

// ---- bytes

// Four of the eight bytes of `low` and `high`; byte i of `indices`, 0 to 7, says which.
GPU_INLINE Bits32 pick_bytes(Bits32 low, Bits32 high, Bits32 indices) {
#if defined(GPU_NVIDIA)
  const Bits32 close = indices | indices >> 4;  // the instruction wants four bits each
  return __byte_perm(low, high, (close & 0xffu) | (close >> 8 & 0xff00u));
#elif defined(GPU_AMD)
  return __builtin_amdgcn_perm(high, low, indices);
#else
  const Bits64 both = static_cast<Bits64>(high) << 32 | low;
  Bits32 picked = 0;
  for (int i = 0; i < 32; i += 8) {
    picked |= static_cast<Bits32>(both >> 8 * (indices >> i & 7u) & 0xffu) << i;
  }
  return picked;
#endif
}
template <int kA, int kB, int kC, int kD>
GPU_INLINE Bits32 pick_bytes(Bits32 low, Bits32 high) {
#if defined(GPU_NVIDIA)
  return __byte_perm(low, high, kA | kB << 4 | kC << 8 | kD << 12);
#else
  return pick_bytes(low, high, kA | kB << 8 | kC << 16 | kD << 24);
#endif
}

// Four neighbours of the eight bytes, from number `first` (0 to 4) on.
GPU_INLINE Bits32 bytes_from(Bits32 low, Bits32 high, Bits32 first) {
#if defined(GPU_NVIDIA)
  return __byte_perm(low, high, 0x3210u + 0x1111u * first);
#elif defined(GPU_AMD)
  return __builtin_amdgcn_perm(high, low, 0x03020100u + 0x01010101u * first);
#else
  return static_cast<Bits32>((static_cast<Bits64>(high) << 32 | low) >> 8 * first);
#endif
}

// ---- copies of 16 bytes from global to shared memory, both aligned to 16
//
// Started one by one; copies_close() ends a group of them, and copies_wait<n>() waits until at most
// n groups of this thread are under way. A barrier then shows them to the others. A copy that is
// not wanted leaves the shared bytes undefined, and its source may be anywhere. Where the hardware
// has no such copies they are done at once.

#if defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 800
GPU_INLINE void copy_aside(void* shared, const void* global, bool wanted) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = wanted ? 16 : 0;  // no branch: the rest is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
               : "memory");
}
GPU_INLINE void copies_close() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kUnderWay>
GPU_INLINE void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kUnderWay) : "memory");
}
#else
GPU_INLINE void copy_aside(void* shared, const void* global, bool wanted) {
  if (wanted) {
    store_vec(static_cast<Bits32*>(shared), load_vec<4>(static_cast<const Bits32*>(global)));
  }
}
GPU_INLINE void copies_close() {}
template <int kUnderWay>
GPU_INLINE void copies_wait() {}
#endif

// ---- matrix units

#if defined(GPU_AMD) && (defined(__GFX11__) || defined(__GFX12__))

// A half of the warp holds all 16 (gfx11: both halves the same), or half of them each (gfx12).
struct MatrixUnit {
  static constexpr bool kThere = true, kTurnsColumns = false;
#if defined(__GFX12__)
  static constexpr int kDeep = 2;
#else
  static constexpr int kDeep = 1;
#endif
  static constexpr int kRows = 16, kColumns = 16, kRun = 16 / kDeep, kLaneRows = 1, kSums = 8;
  static constexpr int kLaneWords = kRun / 2;
  typedef _Float16 Elements __attribute__((ext_vector_type(kRun)));
  typedef float Sums __attribute__((ext_vector_type(kSums)));
  GPU_INLINE static int row(int) { return static_cast<int>(lane() % 16); }
  GPU_INLINE static int column() { return static_cast<int>(lane() % 16); }
  GPU_INLINE static int deep() { return kDeep == 1 ? 0 : static_cast<int>(lane() / 16); }
  GPU_INLINE static int sum_row(int i) {
    const int side = static_cast<int>(lane() / 16);
    return kDeep == 1 ? 2 * i + side : 8 * side + i;
  }
  GPU_INLINE static int sum_column(int) { return static_cast<int>(lane() % 16); }
  struct Words {
    Bits32 at[kRun / 2];
  };
  GPU_INLINE static void add(float (&sums)[kSums], const Bits32 (&a)[kLaneWords],
                             const Bits32 (&b)[kRun / 2]) {
    Words left, right;
    Sums c;
    for (int i = 0; i < kRun / 2; ++i) {
      left.at[i] = a[i];
      right.at[i] = b[i];
    }
    for (int i = 0; i < kSums; ++i) c[i] = sums[i];
#if defined(__GFX12__)
    c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(__builtin_bit_cast(Elements, left),
                                                         __builtin_bit_cast(Elements, right), c);
#else
    c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(__builtin_bit_cast(Elements, left),
                                                   __builtin_bit_cast(Elements, right), c);
#endif
    for (int i = 0; i < kSums; ++i) sums[i] = c[i];
  }
};

#else

// Four runs of four. A warp of 32 has eight columns and two rows per lane, one of 64 sixteen
// columns and one row.
struct MatrixUnit {
  static constexpr int kDeep = 4, kRun = 4;
  static constexpr int kRows = 16, kColumns = kWarp == 32 ? 8 : 16;
  static constexpr int kLaneRows = kWarp == 32 ? 2 : 1, kSums = 4;
  static constexpr int kLaneWords = kLaneRows * kRun / 2;
  GPU_INLINE static int lane_of(int line, int deep) {
    return kWarp == 32 ? line * 4 + deep : deep * 16 + line;
  }
  GPU_INLINE static int row(int i) {
    return static_cast<int>(kWarp == 32 ? lane() / 4 + 8 * static_cast<unsigned>(i) : lane() % 16);
  }
  GPU_INLINE static int column() {
    return static_cast<int>(kWarp == 32 ? lane() / 4 : lane() % 16);
  }
  GPU_INLINE static int deep() { return static_cast<int>(kWarp == 32 ? lane() % 4 : lane() / 16); }
  GPU_INLINE static int sum_row(int i) {
    return kWarp == 32 ? static_cast<int>(lane() / 4) + 8 * (i / 2)
                       : static_cast<int>(lane() / 16) * 4 + i;
  }
  GPU_INLINE static int sum_column(int i) {
    return kWarp == 32 ? static_cast<int>(lane() % 4) * 2 + i % 2 : static_cast<int>(lane() % 16);
  }
#if defined(GPU_NVIDIA)
  static constexpr bool kTurnsColumns = true;
  GPU_INLINE static void turn_columns(Bits32 (&to)[4], const Half* row) {
    const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
  }
#elif defined(GPU_AMD)
  static constexpr bool kTurnsColumns = false;
#else
  static constexpr bool kTurnsColumns = kWarp == 32;
  GPU_INLINE static void turn_columns(Bits32 (&to)[4], const Half* row) {
    for (unsigned square = 0; square < 4; ++square) {
      const unsigned source = square * 8 + lane() % 4 * 2;
      const Half* low = shuffle(row, source);
      const Half* high = shuffle(row, source + 1);
      to[square] = low[lane() / 4].raw | static_cast<Bits32>(high[lane() / 4].raw) << 16;
    }
  }
#endif
#if defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 800
  static constexpr bool kThere = true;
  // a: the two words of row(0), then those of row(1)
  GPU_INLINE static void add(float (&sums)[kSums], const Bits32 (&a)[kLaneWords],
                             const Bits32 (&b)[kRun / 2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[2]), "r"(a[1]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#elif defined(GPU_NVIDIA)
  static constexpr bool kThere = true;
  GPU_INLINE static void add(float (&sums)[kSums], const Bits32 (&a)[kLaneWords],
                             const Bits32 (&b)[kRun / 2]) {
    for (int half = 0; half < 2; ++half) {
      asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
          "{%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a[half]), "r"(a[2 + half]), "r"(b[half]));
    }
  }
#elif defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || \
    defined(__gfx942__) || defined(__gfx950__)
  static constexpr bool kThere = true;
  typedef _Float16 Elements __attribute__((ext_vector_type(4)));
  typedef float Sums __attribute__((ext_vector_type(4)));
  GPU_INLINE static void add(float (&sums)[kSums], const Bits32 (&a)[kLaneWords],
                             const Bits32 (&b)[kRun / 2]) {
    const Bits64 left = static_cast<Bits64>(a[1]) << 32 | a[0];
    const Bits64 right = static_cast<Bits64>(b[1]) << 32 | b[0];
    Sums c = {sums[0], sums[1], sums[2], sums[3]};
    c = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(Elements, left),
                                              __builtin_bit_cast(Elements, right), c, 0, 0, 0);
    for (int i = 0; i < kSums; ++i) sums[i] = c[i];
  }
#elif defined(GPU_AMD)
  static constexpr bool kThere = false;
#else
  static constexpr bool kThere = true;
  // Four halves each.
  GPU_INLINE static float product(Bits64 a, Bits64 b, float sum) {
    for (int shift = 0; shift < 64; shift += 16) {
      sum += f16_to_float(static_cast<Bits16>(a >> shift)) *
             f16_to_float(static_cast<Bits16>(b >> shift));
    }
    return sum;
  }
  GPU_INLINE static void add(float (&sums)[kSums], const Bits32 (&a)[kLaneWords],
                             const Bits32 (&b)[kRun / 2]) {
    // A lane's sums are those of two rows and two columns, or of four rows and one column.
    constexpr int kSumRows = kWarp == 32 ? 2 : 4, kSumColumns = kSums / kSumRows;
    const Bits64 run = static_cast<Bits64>(b[1]) << 32 | b[0];
    for (int d = 0; d < kDeep; ++d) {
      Bits64 left[kSumRows], right[kSumColumns];
      for (int r = 0; r < kSumRows; ++r) {
        const int at = kWarp == 32 ? 2 * r : 0;
        const int line = kWarp == 32 ? sum_row(0) : sum_row(r);
        left[r] = gpu_host_api->shuffle(static_cast<Bits64>(a[at + 1]) << 32 | a[at],
                                        static_cast<unsigned>(lane_of(line, d)));
      }
      for (int c = 0; c < kSumColumns; ++c) {
        right[c] = gpu_host_api->shuffle(run, static_cast<unsigned>(lane_of(sum_column(c), d)));
      }
      for (int i = 0; i < kSums; ++i) {
        sums[i] = product(left[i / kSumColumns], right[i % kSumColumns], sums[i]);
      }
    }
  }
#endif
};

#endif
