// Few rows of x: eight rows of w at a time, each block unpacked in registers and multiplied at
// once. Included after codes-inl.h, as it is.

// What is read ahead while eight rows are multiplied: for row r and block b the lines at
// from + b * per_block + r * per_row, as many as are multiplied meanwhile.
struct Ahead {
  const Bits8* from;
  std::int64_t per_block, per_row;

  TL_VECTOR void read(std::int64_t b, int r, int bytes) const {
    // All lines: the processor's own prefetching goes astray when some are left out.
    for (int line = 0; line < bytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(from + b * per_block + r * per_row + line),
                   _MM_HINT_T0);
    }
  }
};

// Four rows of sums of eight products with codes up to kMost: in every lane, one sum of that lane
// per row.
template <int kMost>
TL_VECTOR Ints across4(const Ints (&row)[4]) {
  if constexpr (16 * 127 * kMost <= 32767) {  // so that sums of sixteen products fit a word
    const Ints ab = pairs16(pack16(row[0], row[1]), set16(1));
    const Ints cd = pairs16(pack16(row[2], row[3]), set16(1));
    return pairs16(pack16(ab, cd), set16(1));
  } else {
    const Ints ab = add32(unpack_low32(row[0], row[1]), unpack_high32(row[0], row[1]));
    const Ints cd = add32(unpack_low32(row[2], row[3]), unpack_high32(row[2], row[3]));
    return add32(unpack_low64(ab, cd), unpack_high64(ab, cd));
  }
}

TL_VECTOR Floats add_scaled(Floats y, Floats d, Floats dx, Ints whole) {
  return add(y, mul(mul(d, dx), floats(whole)));
}

// ---- blocks of 32. A lane has a block, and in it one number for each of four rows; with four
// blocks that is one lane for each of the chains of additions (product.h).

template <class Format>
struct FewRows32 {
  using Type = Integers<Format>;
  static constexpr bool kSigned = !kHasDot && kEightBits<Format>;
  static constexpr int kOffset = kSigned ? 0 : Type::kOffset;
  static constexpr int kSteps = kChains / kLanes;

  Floats y[2][kSteps] = {};  // rows 0 to 3 and 4 to 7

  // Adds block b and those after it, up to `last`, of eight rows.
  TL_VECTOR void add_blocks(const Bits8* w, std::int64_t step, const Ahead& ahead,
                            const Activations& x, std::int64_t i, std::int64_t b, int chain,
                            int last) {
    const std::int8_t* bytes = x.bytes(i) + 32 * b;
    const Halved values = halved([&](int l) { return bytes + 32 * std::min(l, last); });
    const Floats dx = spread(x.scales(i) + b, last);
    const Ints sums = spread(x.sums(i) + b, last);
    const Bits8* at = w + b * Format::kBytes;
    for (int g = 0; g < 2; ++g) {
      Four four = {};
      for (int r = 4 * g; r < 4 * g + 4; ++r) ahead.read(b, r, kLanes * Format::kBytes);
      load_four(at + 4 * g * step, step, last, values, four);
      Ints whole = across4<Type::kMost>(four.row);
      if constexpr (kOffset != 0) whole = sub32(whole, times_offset<kOffset>(sums));
      Floats next = add_scaled(y[g][chain], four.d, dx, whole);
      if constexpr (Type::kMinimum) next = add_scaled(next, four.m, dx, sums);
      y[g][chain] = first_lanes(y[g][chain], next, last);
    }
  }

  // Four rows: sums of products, four for each block in a lane, and the blocks' scales.
  struct Four {
    Ints row[4];
    Floats d, m;
  };
  TL_VECTOR static void load_four(const Bits8* at, std::int64_t step, int last,
                                  const Halved& values, Four& four) {
    using Codes = Lanes32<Format, kSigned>;
    using Blocks = Packed<Format::kBytes>;
    if constexpr (Blocks::kUsed) {
      if (last == kLanes - 1) {
        Blocks packed[4];
        for (int r = 0; r < 4; ++r) {
          packed[r] = Blocks::load_four(at + r * step);
          four.row[r] = dot<Type::kMost>(Codes::from_bytes(packed[r].codes), values);
        }
        four.d = Blocks::scales(packed);
        return;
      }
    }
    const auto block = [&](int l) { return at + Format::kBytes * std::min(l, last); };
    for (int r = 0; r < 4; ++r) {
      four.row[r] =
          dot<Type::kMost>(Codes::codes([&](int l) { return block(l) + r * step; }), values);
    }
    const Ints words = lanes([&](int l) { return four_apart(block(l), step); });
    four.d = scales_of<Format>(words);
    if constexpr (Type::kMinimum) four.m = from_halves(right32(words, 16));
  }

  TL_VECTOR __m256 product(const Bits8* w, std::int64_t step, const Ahead& ahead,
                           const Activations& x, std::int64_t i) {
    const std::int64_t blocks = x.columns() / 32;
    std::int64_t b = 0;
    for (; b + kChains <= blocks; b += kChains) {
      for (int s = 0; s < kSteps; ++s)
        add_blocks(w, step, ahead, x, i, b + s * kLanes, s, kLanes - 1);
    }
    for (int s = 0; b < blocks; ++s, b += kLanes) {
      add_blocks(w, step, ahead, x, i, b, s,
                 static_cast<int>(std::min<std::int64_t>(blocks - b, kLanes)) - 1);
    }
    return _mm256_set_m128(lanes_in_order(y[1]), lanes_in_order(y[0]));
  }
};

// ---- blocks of 256. Headers are decoded for several rows at once, a row in each lane, in an order
// in which the two rows of 256 bits are four apart.

constexpr int kRowOfLane[8] = {0, 4, 1, 5, 2, 6, 3, 7};
constexpr int kLaneOfRow[8] = {0, 2, 4, 6, 1, 3, 5, 7};

// What brings the scale of each sixteen numbers to their words.
template <class Layout>
struct ScaleControls {
  alignas(64) Bits8 bytes[kVectors][16 * kLanes];
  constexpr ScaleControls() : bytes{} {
    for (int v = 0; v < kVectors; ++v) {
      for (int j = 0; j < 16 * kLanes; ++j) {
        const int unit = unit16<Layout>(v, j / 16);
        // From eight bytes, of two units each, without a sign; or from eight words.
        const int from = Layout::kPairs ? (j % 2 == 0 ? unit / 2 : 128) : 2 * (unit % 8) + j % 2;
        bytes[v][j] = static_cast<Bits8>(from);
      }
    }
  }
};

template <class Format>
struct FewRows256 {
  using Type = Integers<Format>;
  static constexpr bool kSigned = kEightBits<Format>;
  static constexpr int kOffset = kSigned ? 0 : Type::kOffset;
  using Layout = Super<Format, kSigned>;
  static constexpr ScaleControls<Layout> kControls{};

  // Bytes of x in the order of the codes.
  TL_VECTOR static void values_of(const std::int8_t* bytes, Ints (&values)[kVectors]) {
    for (int v = 0; v < kVectors; ++v) {
      const std::int8_t* from = bytes + 16 * unit16<Layout>(v, 0);
      constexpr int kStep = Layout::kPlanes * Layout::kUnit;
      if constexpr (Layout::kUnit == 32) {
        values[v] = pieces([&](int k) { return from + kStep * k; });
      } else {
        values[v] = lanes([&](int l) { return from + kStep * l; });
      }
    }
  }

  TL_VECTOR static __m256 product(const Bits8* w, std::int64_t step, const Ahead& ahead,
                                  const Activations& x, std::int64_t i) {
    const std::int64_t blocks = x.columns() / 256;
    __m256 y = _mm256_setzero_ps();
    for (std::int64_t b = 0; b < blocks; ++b) {
      const Bits8* at = w + b * Format::kBytes;
      const std::int32_t* parts = x.sums(i) + 16 * b;
      // Sums of sixteen fit a word, and those of 32.
      const __m256i sums =
          _mm256_permute4x64_epi64(_mm256_packs_epi32(load32(parts), load32(parts + 8)), 0xd8);
      const __m256i sums_of_two = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
      alignas(32) std::int16_t sums32[16];
      _mm256_store_si256(
          reinterpret_cast<__m256i*>(sums32),
          _mm256_permute4x64_epi64(_mm256_packs_epi32(sums_of_two, sums_of_two), 0xd8));
      Ints values[kVectors];
      values_of(x.bytes(i) + 256 * b, values);

      alignas(64) Bits8 scales[8][16], minimums[8][16];
      __m256i below4[4], below[8];
      for (int g = 0; g < 8 / kLanes; ++g) {
        const Ints header =
            lanes([&](int l) { return at + kRowOfLane[kLanes * g + l] * step + Layout::kHeader; });
        const Ints bytes = Layout::scales(header);
        store(scales[kLanes * g], bytes);
        if constexpr (Layout::kPairs) {
          split256(pairs16(unpack_high8(bytes, zero()), broadcast16(sums32)),
                   below4 + kLanes / 2 * g);
        } else if constexpr (Type::kMinimum) {
          store(minimums[kLanes * g], Layout::minimums(header));
        }
      }

      __m256i row[8];
      for (int r = 0; r < 8; ++r) {
        const Bits8* block = at + r * step;
        ahead.read(b, r, Format::kBytes);
        Ints codes[kVectors];
        Layout::codes(block, codes);
        const Bits8* own = scales[kLaneOfRow[r]];
        const __m256i words = _mm256_cvtepi8_epi16(load16(own));
        Ints total = zero();
        for (int v = 0; v < kVectors; ++v) {
          Ints table;
          if constexpr (Layout::kPairs) {
            table = broadcast16(own);
          } else {
            table = scale_table<Layout::kPlanes>(words, v >= kVectors / 2);
          }
          const Ints pairs =
              kSigned ? signed_pairs8(codes[v], values[v]) : pairs8(codes[v], values[v]);
          total = add_pairs16(total, pairs, shuffle8(table, load(kControls.bytes[v])));
        }
        row[r] = sum256(total);
        if constexpr (kOffset != 0) {
          const __m256i sum = _mm256_madd_epi16(words, sums);
          row[r] = _mm256_sub_epi32(row[r], _mm256_mullo_epi32(sum, _mm256_set1_epi32(kOffset)));
        }
        if constexpr (Type::kMinimum && !Layout::kPairs) {
          below[r] = _mm256_madd_epi16(_mm256_cvtepi8_epi16(load16(minimums[kLaneOfRow[r]])), sums);
        }
      }

      const Bits8* d = at + Layout::kD;
      const __m256i both = _mm256_set_m128i(four_apart(d + 4 * step, step), four_apart(d, step));
      const __m256 dx = _mm256_set1_ps(x.scales(i)[b]);
      const auto scaled = [&](bool upper, __m256i whole) {
        return _mm256_mul_ps(_mm256_mul_ps(halves256(both, upper), dx), _mm256_cvtepi32_ps(whole));
      };
      y = _mm256_add_ps(y, scaled(Layout::kUpper, across8_256(row)));
      if constexpr (Layout::kPairs) {
        y = _mm256_sub_ps(y, scaled(true, across4_256(below4)));
      } else if constexpr (Type::kMinimum) {
        y = _mm256_sub_ps(y, scaled(true, across8_256(below)));
      }
    }
    return y;
  }
};

// Each of eight rows of w, `step` bytes apart, is read ahead by itself.
template <class Format>
Ahead along_each(const Bits8* w, std::int64_t step) {
  constexpr int kBytes = 384;
  return {w + kBytes, Format::kBytes, step};
}
// While eight rows in a line are multiplied the next eight are called for, in the order in which
// they lie: one stream.
template <class Format>
Ahead next_eight(const Bits8* w, std::int64_t step) {
  constexpr int kAtOnce = Integers<Format>::kBlock == 32 ? kLanes : 1;  // blocks of a row
  return {w + 8 * step, 8 * Format::kBytes, kAtOnce * Format::kBytes};
}

// Eight rows of w, `step` bytes apart, times row i of x.
template <class Format>
TL_VECTOR __m256 eight_rows(const Bits8* w, std::int64_t step, const Ahead& ahead,
                            const Activations& x, std::int64_t i) {
  if constexpr (Integers<Format>::kBlock == 32) {
    FewRows32<Format> rows = {};
    return rows.product(w, step, ahead, x, i);
  } else {
    return FewRows256<Format>::product(w, step, ahead, x, i);
  }
}
