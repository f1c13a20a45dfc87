// Many rows of x: rows of w are unpacked once into a panel, in which a vector holds four codes of
// each row and one number is one row. Included after codes-inl.h, as it is.

constexpr int kPanelRows = 4 * kLanes;
constexpr int kVectorBytes = 16 * kLanes;

// Codes in groups of four: group g of row r at kVectorBytes g + 4 r. Then what the blocks have
// beside codes, the rows side by side. Blocks of 32 lie in the order of their chains.
struct Panel {
  Panel(std::int64_t columns, int block)
      : codes(aligned<Bits8>(static_cast<std::size_t>(columns) * kPanelRows)),
        d(aligned<float>(static_cast<std::size_t>(columns / block) * kPanelRows)),
        m(aligned<float>(static_cast<std::size_t>(columns / block) * kPanelRows)) {
    if (block == 256) {
      scales = aligned<std::int32_t>(static_cast<std::size_t>(columns / 16) * kPanelRows);
      minimums = aligned<std::int32_t>(static_cast<std::size_t>(columns / 16) * kPanelRows);
    }
  }
  Aligned<Bits8> codes;
  Aligned<float> d, m;
  Aligned<std::int32_t> scales, minimums;  // of sixteen numbers each
};

template <class Format>
constexpr bool kSignedPanel = !kHasDot && kEightBits<Format>;
template <class Format>
constexpr int kPanelOffset = kSignedPanel<Format> ? 0 : Integers<Format>::kOffset;

// Puts four rows of codes, sixteen of each row in a lane, into the panel from row `row` on: those
// of lane l from group group(l) on, for lanes up to `last`.
template <class Group>
TL_VECTOR void put_codes(Panel& panel, const Ints (&codes)[4], int row, int last,
                         const Group& group) {
  const Ints a = unpack_low32(codes[0], codes[1]), b = unpack_high32(codes[0], codes[1]);
  const Ints c = unpack_low32(codes[2], codes[3]), d = unpack_high32(codes[2], codes[3]);
  const Ints four[4] = {unpack_low64(a, c), unpack_high64(a, c), unpack_low64(b, d),
                        unpack_high64(b, d)};
  for (int j = 0; j < 4; ++j) {
    alignas(64) Bits8 bytes[kVectorBytes];
    store(bytes, four[j]);
    for (int l = 0; l <= last; ++l) {
      std::memcpy(panel.codes.get() + kVectorBytes * (group(l) + j) + 4 * row, bytes + 16 * l, 16);
    }
  }
}

// Blocks of 32 of four rows.
template <class Format>
TL_VECTOR void unpack_four32(const Bits8* w, std::int64_t step, std::int64_t blocks, int row,
                             Panel& panel) {
  for (std::int64_t b = 0; b < blocks; b += kLanes) {
    const int last = static_cast<int>(std::min<std::int64_t>(blocks - b, kLanes)) - 1;
    const auto block = [&](int l) { return w + Format::kBytes * (b + std::min(l, last)); };
    std::int64_t place[kLanes];
    for (int l = 0; l < kLanes; ++l) place[l] = place_in_chains(b + l, blocks);
    Ints low[4], high[4];
    for (int r = 0; r < 4; ++r) {
      const Halved both =
          Lanes32<Format, kSignedPanel<Format>>::codes([&](int l) { return block(l) + r * step; });
      low[r] = both.low;
      high[r] = both.high;
    }
    put_codes(panel, low, row, last, [&](int l) { return 8 * place[l]; });
    put_codes(panel, high, row, last, [&](int l) { return 8 * place[l] + 4; });
    const Ints words = lanes([&](int l) { return four_apart(block(l), step); });
    const auto put = [&](float* to, Floats numbers) {
      alignas(64) float each[4 * kLanes];
      store_floats(each, numbers);
      for (int l = 0; l <= last; ++l) {
        std::memcpy(to + place[l] * kPanelRows + row, each + 4 * l, 4 * sizeof(float));
      }
    };
    put(panel.d.get(), scales_of<Format>(words));
    if constexpr (Integers<Format>::kMinimum) put(panel.m.get(), from_halves(right32(words, 16)));
  }
}

// Sixteen scales or minimums of a block of each of four rows.
template <class Scale>
TL_VECTOR void put_bytes(std::int32_t* to, const Bits8 (&bytes)[4][16], const Scale& scale) {
  const __m128i a = _mm_unpacklo_epi8(load16(bytes[0]), load16(bytes[1]));
  const __m128i b = _mm_unpackhi_epi8(load16(bytes[0]), load16(bytes[1]));
  const __m128i c = _mm_unpacklo_epi8(load16(bytes[2]), load16(bytes[3]));
  const __m128i d = _mm_unpackhi_epi8(load16(bytes[2]), load16(bytes[3]));
  alignas(16) Bits8 four[16][4];
  _mm_store_si128(reinterpret_cast<__m128i*>(four[0]), _mm_unpacklo_epi16(a, c));
  _mm_store_si128(reinterpret_cast<__m128i*>(four[4]), _mm_unpackhi_epi16(a, c));
  _mm_store_si128(reinterpret_cast<__m128i*>(four[8]), _mm_unpacklo_epi16(b, d));
  _mm_store_si128(reinterpret_cast<__m128i*>(four[12]), _mm_unpackhi_epi16(b, d));
  for (int p = 0; p < 16; ++p) {
    std::int32_t bits;
    std::memcpy(&bits, four[p], 4);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + p * kPanelRows),
                     scale(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(bits))));
  }
}

// Blocks of 256 of four rows.
template <class Format>
TL_VECTOR void unpack_four256(const Bits8* w, std::int64_t step, std::int64_t blocks, int row,
                              Panel& panel) {
  using Layout = Super<Format, kSignedPanel<Format>>;
  for (std::int64_t b = 0; b < blocks; ++b, w += Format::kBytes) {
    Ints codes[4][kVectors];
    for (int r = 0; r < 4; ++r) Layout::codes(w + r * step, codes[r]);
    for (int v = 0; v < kVectors; ++v) {
      put_codes(panel, {codes[0][v], codes[1][v], codes[2][v], codes[3][v]}, row, kLanes - 1,
                [&](int l) { return 64 * b + 4 * unit16<Layout>(v, l); });
    }
    alignas(64) Bits8 scales[4][16], minimums[4][16];
    for (int g = 0; g < 4 / kLanes; ++g) {
      const Ints header =
          lanes([&](int l) { return w + (kLanes * g + l) * step + Layout::kHeader; });
      const Ints bytes = Layout::scales(header);
      if constexpr (Layout::kPairs) {
        alignas(16) static constexpr Bits8 kTwice[16] = {0, 0, 1, 1, 2, 2, 3, 3,
                                                         4, 4, 5, 5, 6, 6, 7, 7};
        const Ints twice = broadcast16(kTwice);
        store(scales[kLanes * g], shuffle8(bytes, twice));
        store(minimums[kLanes * g], shuffle8(bytes, add8(twice, set8(8))));
      } else {
        store(scales[kLanes * g], bytes);
        if constexpr (Integers<Format>::kMinimum) {
          store(minimums[kLanes * g], Layout::minimums(header));
        }
      }
    }
    const std::int64_t at = 16 * b * kPanelRows + row;
    put_bytes(panel.scales.get() + at, scales, [](__m128i four) { return panel_scales(four); });
    const __m256i words = _mm256_castsi128_si256(four_apart(w + Layout::kD, step));
    const auto put = [&](float* to, bool upper) {
      _mm_storeu_ps(to + b * kPanelRows + row, _mm256_castps256_ps128(halves256(words, upper)));
    };
    put(panel.d.get(), Layout::kUpper);
    if constexpr (Integers<Format>::kMinimum) {
      put_bytes(panel.minimums.get() + at, minimums, [](__m128i four) { return four; });
      put(panel.m.get(), true);
    }
  }
}

template <class Format>
void unpack_panel(const Bits8* w, std::int64_t step, std::int64_t columns, Panel& panel) {
  const std::int64_t blocks = columns / Integers<Format>::kBlock;
  for (int row = 0; row < kPanelRows; row += 4) {
    if constexpr (Integers<Format>::kBlock == 32) {
      unpack_four32<Format>(w + row * step, step, blocks, row, panel);
    } else {
      unpack_four256<Format>(w + row * step, step, blocks, row, panel);
    }
  }
}

// A panel times kCount rows of x from row i on.
template <class Format, int kCount>
struct PanelProduct {
  using Type = Integers<Format>;
  static constexpr int kOffset = kPanelOffset<Format>;
  const Panel& panel;
  const std::int8_t* bytes[kCount] = {};
  const float* dx[kCount] = {};
  const std::int32_t* sums[kCount] = {};

  PanelProduct(const Panel& p, const Activations& x, std::int64_t i) : panel(p) {
    for (int c = 0; c < kCount; ++c) {
      bytes[c] = x.bytes(i + c);
      dx[c] = x.scales(i + c);
      sums[c] = x.sums(i + c);
    }
  }

  // Block b of 32, which is at `place`.
  TL_VECTOR void add_block32(Floats (&y)[kCount], std::int64_t b, std::int64_t place) const {
    Ints whole[kCount];
    for (int c = 0; c < kCount; ++c) whole[c] = set32(-kOffset * sums[c][b]);
    add_groups<Type::kMost, 8>(whole, panel.codes.get() + kVectorBytes * 8 * place, bytes, 32 * b);
    const Floats d = load_floats(panel.d.get() + place * kPanelRows);
    for (int c = 0; c < kCount; ++c) y[c] = add_scaled(y[c], d, set_floats(dx[c][b]), whole[c]);
    if constexpr (Type::kMinimum) {
      const Floats m = load_floats(panel.m.get() + place * kPanelRows);
      for (int c = 0; c < kCount; ++c) {
        y[c] = add_scaled(y[c], m, set_floats(dx[c][b]), set32(sums[c][b]));
      }
    }
  }

  TL_VECTOR void add_block256(Floats (&y)[kCount], std::int64_t b) const {
    Ints whole[kCount], below[kCount];
    for (int c = 0; c < kCount; ++c) whole[c] = below[c] = zero();
    for (std::int64_t p = 16 * b; p < 16 * b + 16; ++p) {
      add_scaled_groups<Type::kMost, kOffset, 4>(whole, panel.codes.get() + kVectorBytes * 4 * p,
                                                 bytes, sums, p,
                                                 load(panel.scales.get() + kPanelRows * p));
      if constexpr (Type::kMinimum) {
        const Ints minimum = load(panel.minimums.get() + kPanelRows * p);
        for (int c = 0; c < kCount; ++c) {
          // Minimums fill the lower of two words, so that the upper one of the sum does not matter.
          below[c] = add_pairs16(below[c], minimum, set32(sums[c][p]));
        }
      }
    }
    const Floats d = load_floats(panel.d.get() + b * kPanelRows);
    for (int c = 0; c < kCount; ++c) y[c] = add_scaled(y[c], d, set_floats(dx[c][b]), whole[c]);
    if constexpr (Type::kMinimum) {
      const Floats m = load_floats(panel.m.get() + b * kPanelRows);
      for (int c = 0; c < kCount; ++c) {
        y[c] = sub(y[c], mul(mul(m, set_floats(dx[c][b])), floats(below[c])));
      }
    }
  }

  void to(float* y, std::int64_t n, std::int64_t columns) const {
    const std::int64_t blocks = columns / Type::kBlock;
    Floats out[kCount];
    if constexpr (Type::kBlock == 32) {
      std::int64_t place = 0;
      for (int chain = 0; chain < kChains; ++chain) {
        Floats sum[kCount];
        for (Floats& each : sum) each = no_floats();
        for (std::int64_t b = chain; b < blocks; b += kChains) add_block32(sum, b, place++);
        for (int c = 0; c < kCount; ++c) out[c] = chain == 0 ? sum[c] : add(out[c], sum[c]);
      }
    } else {
      for (Floats& each : out) each = no_floats();
      for (std::int64_t b = 0; b < blocks; ++b) add_block256(out, b);
    }
    for (int c = 0; c < kCount; ++c) store_floats(y + c * n, out[c]);
  }
};

// A panel times all rows of x.
template <class Format>
void panel_product(const Panel& panel, const Activations& x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kColumns <= x.rows(); i += kColumns) {
    PanelProduct<Format, kColumns>(panel, x, i).to(y + i * n, n, x.columns());
  }
  for (; i + 2 <= x.rows(); i += 2) {
    PanelProduct<Format, 2>(panel, x, i).to(y + i * n, n, x.columns());
  }
  for (; i < x.rows(); ++i) PanelProduct<Format, 1>(panel, x, i).to(y + i * n, n, x.columns());
}
