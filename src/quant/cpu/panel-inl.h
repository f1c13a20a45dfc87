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

// Where block b is among `blocks` in the order of chains: those of chain 0, then of chain 1, ...
TL_VECTOR std::int64_t place_in_chains(std::int64_t b, std::int64_t blocks) {
  const std::int64_t chain = b % kChains, longer = blocks % kChains;
  return chain * (blocks / kChains) + std::min(chain, longer) + b / kChains;
}

// Four groups of a row.
TL_VECTOR void put_groups(Panel& panel, std::int64_t group, int row, const Bits8* sixteen) {
  for (int j = 0; j < 4; ++j) {
    std::memcpy(panel.codes.get() + kVectorBytes * (group + j) + 4 * row, sixteen + 4 * j, 4);
  }
}

template <class Format>
constexpr bool kSignedPanel = !kHasDot && kEightBits<Format>;
template <class Format>
constexpr int kPanelOffset = kSignedPanel<Format> ? 0 : Integers<Format>::kOffset;

template <class Format>
void unpack_panel(const Bits8* w, std::int64_t step, std::int64_t columns, Panel& panel) {
  using Type = Integers<Format>;
  constexpr bool kSigned = kSignedPanel<Format>;
  const std::int64_t blocks = columns / Type::kBlock;
  UnpackedBlock beside = {};
  for (int r = 0; r < kPanelRows; ++r) {
    const Bits8* row = w + r * step;
    const auto put_d = [&](std::int64_t place, const Bits8* at) {
      Type::beside(at, beside);
      panel.d[static_cast<std::size_t>(place * kPanelRows + r)] = beside.d;
      if constexpr (Type::kMinimum) {
        panel.m[static_cast<std::size_t>(place * kPanelRows + r)] = beside.m;
      }
      if constexpr (Type::kBlock == 256) {
        for (int p = 0; p < 16; ++p) {
          const auto to = static_cast<std::size_t>((16 * place + p) * kPanelRows + r);
          panel.scales[to] = panel_scale(beside.scale[p]);
          if constexpr (Type::kMinimum) panel.minimums[to] = beside.minimum[p];
        }
      }
    };
    if constexpr (Type::kBlock == 32) {
      for (std::int64_t b = 0; b < blocks; b += kLanes) {
        const int last = static_cast<int>(std::min<std::int64_t>(blocks - b, kLanes)) - 1;
        const Bits8* at = row + b * Format::kBytes;
        const Halved codes = Lanes32<Format, kSigned>::codes(
            [&](int l) { return at + Format::kBytes * std::min(l, last); });
        alignas(64) Bits8 low[kVectorBytes], high[kVectorBytes];
        store(low, codes.low);
        store(high, codes.high);
        for (int l = 0; l <= last; ++l) {
          const std::int64_t place = place_in_chains(b + l, blocks);
          put_groups(panel, 8 * place, r, low + 16 * l);
          put_groups(panel, 8 * place + 4, r, high + 16 * l);
          put_d(place, at + Format::kBytes * l);
        }
      }
    } else {
      using Layout = Super<Format, kSigned>;
      for (std::int64_t b = 0; b < blocks; ++b) {
        const Bits8* at = row + b * Format::kBytes;
        Ints codes[kVectors];
        Layout::codes(at, codes);
        for (int v = 0; v < kVectors; ++v) {
          alignas(64) Bits8 bytes[kVectorBytes];
          store(bytes, codes[v]);
          for (int l = 0; l < kLanes; ++l) {
            put_groups(panel, 64 * b + 4 * unit16<Layout>(v, l), r, bytes + 16 * l);
          }
        }
        put_d(b, at);
      }
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
