// Quantised products with AMX: sixteen rows of the weight, unpacked into a panel as for VNNI, times
// sixteen rows of x, of which a tile instruction takes as many columns as share a scale. The same
// integers as the portable path, and the same sums of floats after them.
#include "quant/cpu/product.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ops/cpu/amx.h"
#include "quant/cpu/activation_tiles.h"
#include "quant/cpu/unpack.h"
#include "quant/formats.h"
#include "tl/base/float_bits.h"

// GCC 12 takes the undefined vectors in its own intrinsics for mistakes (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
// Everything from here on, and nothing that the headers above define, is compiled for it.
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((                                                                                \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,avx2,fma,amx-tile,amx-int8"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,avx2,fma,amx-tile,amx-int8")
#endif

namespace tl::cpu {

namespace {

using qb::Bits8;

// clang-format off: each builds on those before it
#include "quant/cpu/vectors-inl.h"
#include "quant/cpu/avx512-inl.h"
#include "quant/cpu/codes-inl.h"
#include "quant/cpu/panel-inl.h"
// clang-format on

// The largest whole-number scale of a format, either sign, and how many numbers share one.
template <class Format>
struct Scales {};
template <>
struct Scales<qb::Q2_K> {
  static constexpr int kLargest = 15, kPart = 16;
};
template <>
struct Scales<qb::Q3_K> {
  static constexpr int kLargest = 32, kPart = 16;
};
template <>
struct Scales<qb::Q4_K> {
  static constexpr int kLargest = 63, kPart = 32;
};
template <>
struct Scales<qb::Q5_K> {
  static constexpr int kLargest = 63, kPart = 32;
};
template <>
struct Scales<qb::Q6_K> {
  static constexpr int kLargest = 128, kPart = 16;
};
template <>
struct Scales<qb::IQ4_XS> {
  static constexpr int kLargest = 32, kPart = 32;
};

template <class Format>
constexpr int part_of() {
  if constexpr (Integers<Format>::kBlock == 32) {
    return 32;
  } else {
    return Scales<Format>::kPart;
  }
}

// Tiles 0 to 3 take sums, 4 and 5 rows of x, 6 and 7 columns of the panel.
constexpr TileShapes shapes(int part) {
  TileShapes tiles;
  for (int t = 0; t < 4; ++t) tiles.set(t, kTileRows, 64);
  for (int t = 4; t < 6; ++t) tiles.set(t, kTileRows, part);
  for (int t = 6; t < 8; ++t) tiles.set(t, part / 4, 64);
  return tiles;
}

// Codes less their offset, which fit a byte with a sign.
template <class Format>
TL_VECTOR void take_offset(Panel& panel, std::int64_t columns) {
  if constexpr (Integers<Format>::kOffset != 0) {
    const Ints offset = set8(-Integers<Format>::kOffset);
    Bits8* codes = panel.codes.get();
    for (std::int64_t at = 0; at < columns * kPanelRows; at += 64) {
      store(codes + at, add8(load(codes + at), offset));
    }
  }
}

// The product of a part, sixteen rows of x by sixteen of the panel, as integers at `to`. The tiles
// are numbers of the instructions themselves, so each is spelled out.
template <int kSum>
TL_VECTOR void part_product(const std::int8_t* x, const Bits8* codes, int part, std::int32_t* to);
#define TL_PART_PRODUCT(sum, a, b)                                                     \
  template <>                                                                          \
  TL_VECTOR void part_product<sum>(const std::int8_t* x, const Bits8* codes, int part, \
                                   std::int32_t* to) {                                 \
    _tile_zero(sum);                                                                   \
    _tile_loadd(a, x, part);                                                           \
    _tile_loadd(b, codes, 64);                                                         \
    _tile_dpbssd(sum, a, b);                                                           \
    _tile_stored(sum, to, 64);                                                         \
  }
TL_PART_PRODUCT(0, 4, 6)
TL_PART_PRODUCT(1, 5, 7)
#undef TL_PART_PRODUCT

constexpr int kTileInts = kTileRows * kPanelRows;

// ---- blocks of 32

template <class Format>
TL_VECTOR void group32(const Panel& panel, const ActivationTiles& x, std::int64_t group,
                       Floats (&total)[kTileRows]) {
  using Type = Integers<Format>;
  const std::int64_t blocks = x.columns() / 32;
  const std::int8_t* bytes = x.bytes(group);
  const float* dx = x.scales(group);
  const float* sums = x.block_sums(group);
  alignas(64) std::int32_t whole[2][kTileInts];
  const auto multiply = [&](std::int64_t place) {
    const std::int8_t* from = bytes + place * kTileRows * 32;
    const Bits8* codes = panel.codes.get() + place * kPanelRows * 32;
    if (place % 2 == 0) {
      part_product<0>(from, codes, 32, whole[0]);
    } else {
      part_product<1>(from, codes, 32, whole[1]);
    }
  };
  std::int64_t place = 0;
  before_tile_loads();
  if (blocks > 0) multiply(0);
  for (int chain = 0; chain < kChains; ++chain) {
    Floats y[kTileRows];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) y[r] = no_floats();
    for (std::int64_t b = chain; b < blocks; b += kChains, ++place) {
      if (place + 1 < blocks) multiply(place + 1);  // while the last one is added up
      const std::int32_t* now = whole[place % 2];
      const Floats d = load_floats(panel.d.get() + place * kPanelRows);
      const float* scale = dx + place * kTileRows;
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        y[r] = add(y[r], mul(mul(d, set_floats(scale[r])), floats(load(now + r * kPanelRows))));
      }
      if constexpr (Type::kMinimum) {
        const Floats m = load_floats(panel.m.get() + place * kPanelRows);
        const float* sum = sums + place * kTileRows;
#pragma GCC unroll 16
        for (int r = 0; r < kTileRows; ++r) {
          y[r] = add(y[r], mul(mul(m, set_floats(scale[r])), set_floats(sum[r])));
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) total[r] = chain == 0 ? y[r] : add(total[r], y[r]);
  }
}

// ---- blocks of 256

// What a panel has beside codes, as the loop below reads it.
template <class Format>
struct PanelScales {
  static constexpr int kPart = Scales<Format>::kPart, kParts = 256 / kPart;
  explicit PanelScales(std::int64_t columns)
      : scales(aligned<float>(static_cast<std::size_t>(columns / kPart) * kPanelRows)),
        minimums(
            aligned<std::int32_t>(static_cast<std::size_t>(columns / kPart / 2) * kPanelRows)) {}
  Aligned<float> scales;           // [part][row of the panel]
  Aligned<std::int32_t> minimums;  // of two parts as two words, [pair of parts][row of the panel]

  TL_VECTOR void read(const Panel& panel, std::int64_t columns) {
    constexpr int kStep = kPart / 16;  // the panel has them for every sixteen
    for (std::int64_t p = 0; p < columns / kPart; ++p) {
      const Ints scale = load(panel.scales.get() + p * kStep * kPanelRows);
      store_floats(scales.get() + p * kPanelRows, floats(scale));
    }
    if constexpr (Integers<Format>::kMinimum) {
      for (std::int64_t p = 0; p < columns / kPart / 2; ++p) {
        const Ints low = load(panel.minimums.get() + 2 * p * kStep * kPanelRows);
        const Ints high = load(panel.minimums.get() + (2 * p + 1) * kStep * kPanelRows);
        store(minimums.get() + p * kPanelRows,
              bits_or(bits_and(low, set32(0xffff)), left32(high, 16)));
      }
    }
  }
};

template <class Format>
struct Group256 {
  using Type = Integers<Format>;
  static constexpr int kPart = Scales<Format>::kPart, kParts = 256 / kPart;
  // Floats hold whole numbers below 2^24: as many parts as stay below it are added up in floats.
  static constexpr int kCode = std::max(Type::kOffset, Type::kMost - Type::kOffset);
  static constexpr int kExact =
      std::min(kParts, (1 << 24) / (kPart * kCode * 127 * Scales<Format>::kLargest));
  static_assert(kExact >= 1 && kParts % kExact == 0);
  static constexpr int kSums = kParts / kExact;

  const Panel& panel;
  const PanelScales<Format>& more;
  const ActivationTiles& x;

  void to(std::int64_t group, Floats (&total)[kTileRows]) const {
    const std::int64_t blocks = x.columns() / 256;
    alignas(64) std::int32_t part[kParts][kTileInts];
    for (Floats& each : total) each = no_floats();
    before_tile_loads();
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int8_t* bytes = x.bytes(group) + b * kTileRows * 256;
      const Bits8* codes = panel.codes.get() + b * kPanelRows * 256;
      for (int p = 0; p < kParts; p += 2) {
        part_product<0>(bytes + p * kTileRows * kPart, codes + p * kPanelRows * kPart, kPart,
                        part[p]);
        part_product<1>(bytes + (p + 1) * kTileRows * kPart, codes + (p + 1) * kPanelRows * kPart,
                        kPart, part[p + 1]);
      }
      add_block(group, b, part, total);
    }
  }

 private:
  // Rows at a time, so that a scale is loaded once for them.
  static constexpr int kTogether = 4;

  TL_VECTOR void add_block(std::int64_t group, std::int64_t b,
                           const std::int32_t (&part)[kParts][kTileInts],
                           Floats (&total)[kTileRows]) const {
    const float* dx = x.scales(group) + b * kTileRows;
    const float* scales = more.scales.get() + b * kParts * kPanelRows;
    const Floats d = load_floats(panel.d.get() + b * kPanelRows);
#pragma GCC unroll 4
    for (int first = 0; first < kTileRows; first += kTogether) {
      Floats whole[kTogether];
      add_parts(part, scales, first, whole);
#pragma GCC unroll 4
      for (int r = 0; r < kTogether; ++r) {
        const Floats scaled = mul(mul(d, set_floats(dx[first + r])), whole[r]);
        total[first + r] = add(total[first + r], scaled);
      }
      if constexpr (Type::kMinimum) {
        const std::int32_t* pairs = x.pair_sums(group) + b * (kParts / 2) * kTileRows + first;
        const std::int32_t* minimums = more.minimums.get() + b * (kParts / 2) * kPanelRows;
        const Floats m = load_floats(panel.m.get() + b * kPanelRows);
        Ints below[kTogether] = {};
#pragma GCC unroll 8
        for (int p = 0; p < kParts / 2; ++p) {
          const Ints minimum = load(minimums + p * kPanelRows);
#pragma GCC unroll 4
          for (int r = 0; r < kTogether; ++r) {
            below[r] = add_pairs16(below[r], minimum, set32(pairs[p * kTileRows + r]));
          }
        }
#pragma GCC unroll 4
        for (int r = 0; r < kTogether; ++r) {
          const Floats scaled = mul(mul(m, set_floats(dx[first + r])), floats(below[r]));
          total[first + r] = sub(total[first + r], scaled);
        }
      }
    }
  }

  // Whole numbers, rounded once at the end where there are too many parts for floats.
  TL_VECTOR static void add_parts(const std::int32_t (&part)[kParts][kTileInts],
                                  const float* scales, int first, Floats (&whole)[kTogether]) {
    Ints sums[kTogether] = {};
#pragma GCC unroll 16
    for (int s = 0; s < kSums; ++s) {
      Floats sum[kTogether];
#pragma GCC unroll 16
      for (int p = s * kExact; p < (s + 1) * kExact; ++p) {
        const Floats scale = load_floats(scales + p * kPanelRows);
#pragma GCC unroll 4
        for (int r = 0; r < kTogether; ++r) {
          const Floats number = floats(load(part[p] + (first + r) * kPanelRows));
          sum[r] = p == s * kExact ? mul(number, scale) : _mm512_fmadd_ps(number, scale, sum[r]);
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < kTogether; ++r) {
        if constexpr (kSums == 1) {
          whole[r] = sum[r];
        } else if constexpr (kSums == 2) {  // two whole numbers, whose sum is rounded once
          whole[r] = s == 0 ? sum[r] : add(whole[r], sum[r]);
        } else {
          sums[r] = add32(sums[r], _mm512_cvtps_epi32(sum[r]));
        }
      }
    }
    if constexpr (kSums > 2) {
      for (int r = 0; r < kTogether; ++r) whole[r] = floats(sums[r]);
    }
  }
};

// ---- rows

// Panels that are multiplied with the same rows of x one after the other: x is more than a core's
// caches hold, so it should come from beyond them as seldom as may be.
constexpr int kPanels = 4;

// A panel and what it takes to multiply it.
template <class Format>
struct TiledPanel {
  Panel panel;
  explicit TiledPanel(std::int64_t columns) : panel(columns, 32) {}
  void read(const Bits8* w, std::int64_t step, std::int64_t columns) {
    unpack_panel<Format>(w, step, columns, panel);
    take_offset<Format>(panel, columns);
  }
  void multiply(const ActivationTiles& x, std::int64_t group, Floats (&sums)[kTileRows]) const {
    group32<Format>(panel, x, group, sums);
  }
};
template <class Format>
  requires(Integers<Format>::kBlock == 256)
struct TiledPanel<Format> {
  Panel panel;
  PanelScales<Format> scales;
  explicit TiledPanel(std::int64_t columns) : panel(columns, 256), scales(columns) {}
  void read(const Bits8* w, std::int64_t step, std::int64_t columns) {
    unpack_panel<Format>(w, step, columns, panel);
    take_offset<Format>(panel, columns);
    scales.read(panel, columns);
  }
  void multiply(const ActivationTiles& x, std::int64_t group, Floats (&sums)[kTileRows]) const {
    Group256<Format>{panel, scales, x}.to(group, sums);
  }
};

// Rows [first, last) of w, a whole number of panels, times all rows of x.
template <class Format>
void tiled_rows(const std::byte* w, std::int64_t first, std::int64_t last, const ActivationTiles& x,
                float* y, std::int64_t n) {
  const std::int64_t columns = x.columns();
  const std::int64_t step = columns / Format::kElements * Format::kBytes;
  const auto* weights = reinterpret_cast<const Bits8*>(w);
  static constexpr TileShapes kShapes = shapes(part_of<Format>());
  const Tiles tiles(kShapes);
  std::vector<TiledPanel<Format>> panels;
  while (first < last) {
    const std::int64_t count = std::min<std::int64_t>(kPanels, (last - first) / kPanelRows);
    for (std::int64_t p = 0; p < count; ++p) {
      if (p == std::ssize(panels)) panels.emplace_back(columns);
      panels[static_cast<std::size_t>(p)].read(weights + (first + p * kPanelRows) * step, step,
                                               columns);
    }
    for (std::int64_t group = 0; group < x.groups(); ++group) {
      const std::int64_t rows = std::min<std::int64_t>(kTileRows, x.rows() - group * kTileRows);
      for (std::int64_t p = 0; p < count; ++p) {
        Floats sums[kTileRows];
        panels[static_cast<std::size_t>(p)].multiply(x, group, sums);
        float* to = y + group * kTileRows * n + first + p * kPanelRows;
        for (std::int64_t r = 0; r < rows; ++r) store_floats(to + r * n, sums[r]);
      }
    }
    first += count * kPanelRows;
  }
}

struct TiledOf {
  template <class Format>
  detail::TiledProduct operator()(std::type_identity<Format>) const {
    if constexpr (HasIntegers<Format>) {
      return {&tiled_rows<Format>, Integers<Format>::kBlock, part_of<Format>()};
    } else {
      return {};
    }
  }
};

}  // namespace

}  // namespace tl::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#pragma GCC diagnostic pop

namespace tl::cpu {

bool detail::has_amx() { return has_vnni() && has_amx_int8(); }
detail::TiledProduct detail::amx_product(QType type) { return with_blocks(type, TiledOf{}); }

}  // namespace tl::cpu

#else

namespace tl::cpu {

bool detail::has_amx() { return false; }
detail::TiledProduct detail::amx_product(QType) { return {}; }

}  // namespace tl::cpu

#endif
