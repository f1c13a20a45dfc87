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

// Where something in shared memory is.
GPU_INLINE Bits64 shared_place(const void* shared) {
#if defined(GPU_NVIDIA)
  return __cvta_generic_to_shared(shared);
#else
  return reinterpret_cast<Bits64>(shared);
#endif
}

// ---- the matrix unit of four warps
//
// Where kThere is true, four warps side by side (whose first is a multiple of four) multiply 64
// rows by 16 with 16 by kColumns. Each holds its 16 rows of the left side as for MatrixUnit: two
// words of row lane / 4 and two of the row 8 below. The right side is in shared memory: for each
// column 64 halves, of which number `step` of four runs of 16 is meant, in rows of 128 bytes from
// an address that 1024 divides. The eight pieces of 16 bytes change places with the number of the
// column. A lane holds the words of elements 2 d, 2 d + 1 and 2 d + 8, 2 d + 9 of the 16, d being
// lane % 4; its sum i is that of row lane / 4 + 8 (i / 2 % 2) and column 8 (i / 4) + 2 d + i % 2.
//
// The unit works beside the warps: between begin(), which is told what lanes hold for them, and
// close() stand the products of a group; wait<n>() waits until at most n groups are under way.
// Until then neither what lanes hold nor what is in shared memory may be changed, nor sums be read.

#if defined(GPU_NVIDIA) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
struct GroupUnit {
  static constexpr bool kThere = true;
  static constexpr int kColumns = 128;
  // `words` are made before this.
  GPU_INLINE static void keep(Bits32 (&words)[4][4]) {
    GPU_UNROLLED
    for (int i = 0; i < 16; ++i) asm volatile("" : "+r"(words[i / 4][i % 4])::"memory");
  }
  GPU_INLINE static void begin(Bits32 (&words)[4][4]) {
    keep(words);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  }
  GPU_INLINE static void close() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  template <int kUnderWay>
  GPU_INLINE static void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kUnderWay) : "memory");
  }
  GPU_INLINE static void add(float (&sums)[64], const Bits32 (&a)[4], const Half* columns,
                             int step) {
    // Where it starts, eight columns being 1024 bytes apart from the next eight, and how pieces
    // change places: all in units of 16 bytes.
    const auto from = static_cast<unsigned>(__cvta_generic_to_shared(columns)) + 32u * step;
    const Bits64 right =
        Bits64{1} << 62 | Bits64{64} << 32 | Bits64{1} << 16 | (from >> 4 & 0x3fffu);
    asm volatile(
        "{ .reg .pred add; setp.eq.b32 add, 0, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, add, 1, 1, 0; }"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
          "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]),
          "+f"(sums[11]), "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]),
          "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]),
          "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]), "+f"(sums[24]), "+f"(sums[25]),
          "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]),
          "+f"(sums[31]), "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]),
          "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]),
          "+f"(sums[41]), "+f"(sums[42]), "+f"(sums[43]), "+f"(sums[44]), "+f"(sums[45]),
          "+f"(sums[46]), "+f"(sums[47]), "+f"(sums[48]), "+f"(sums[49]), "+f"(sums[50]),
          "+f"(sums[51]), "+f"(sums[52]), "+f"(sums[53]), "+f"(sums[54]), "+f"(sums[55]),
          "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59]), "+f"(sums[60]),
          "+f"(sums[61]), "+f"(sums[62]), "+f"(sums[63])
        : "r"(a[0]), "r"(a[2]), "r"(a[1]), "r"(a[3]), "l"(right));
  }
};
#elif defined(GPU_SIMULATED)
struct GroupUnit {
  static constexpr bool kThere = kWarp == 32;
  static constexpr int kColumns = 128;
  GPU_INLINE static void keep(Bits32 (&)[4][4]) {}
  GPU_INLINE static void begin(Bits32 (&)[4][4]) {}
  GPU_INLINE static void close() {}
  template <int kUnderWay>
  GPU_INLINE static void wait() {
    warp_ballot(true);  // all lanes are done with it
  }
  GPU_INLINE static void add(float (&sums)[64], const Bits32 (&a)[4], const Half* columns,
                             int step) {
    float left[2][16];  // of both rows
    for (unsigned d = 0; d < 4; ++d) {
      for (unsigned word = 0; word < 4; ++word) {
        const Bits32 pair = shuffle_word(a[word], lane() / 4 * 4 + d);
        const unsigned first = 2 * d + 8 * (word % 2);
        left[word / 2][first] = f16_to_float(static_cast<Bits16>(pair));
        left[word / 2][first + 1] = f16_to_float(static_cast<Bits16>(pair >> 16));
      }
    }
    for (int i = 0; i < 64; ++i) {
      const int column = 8 * (i / 4) + 2 * static_cast<int>(lane() % 4) + i % 2;
      for (int e = 0; e < 16; ++e) {
        const int piece = (2 * step + e / 8) ^ (column & 7);
        const float right = to_float(columns[64 * column + 8 * piece + e % 8]);
        sums[i] = math::fma(left[i / 2 % 2][e], right, sums[i]);
      }
    }
  }
};
#else
struct GroupUnit {
  static constexpr bool kThere = false;
  static constexpr int kColumns = 128;
};
#endif
