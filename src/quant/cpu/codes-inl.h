// The codes of blocks in vectors, in an order that costs least; the other side of the product is
// brought into the same order. Included after avx2-inl.h or avx512-inl.h, as they are.

// Codes of eight bits are taken with their sign where two products of bytes are added in a word.
template <class Format>
constexpr bool kEightBits = Integers<Format>::kMost > 127;

TL_VECTOR Halved nibbles(Ints bytes) {
  asm("" : "+v"(bytes));  // one load: GCC would read the memory for both
  return {bits_and(bytes, set8(15)), bits_and(right16(bytes, 4), set8(15))};
}

alignas(16) constexpr Bits8 kUnevenCodes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                129, 141, 153, 166, 181, 197, 217, 241};
template <bool kSigned>
TL_VECTOR Halved uneven(Halved codes) {
  Ints table = broadcast16(kUnevenCodes);
  if constexpr (kSigned) table = bits_xor(table, set8(128));
  return {shuffle8(table, codes.low), shuffle8(table, codes.high)};
}

// ---- blocks of 32: one in each lane of the vectors, of which one has the first sixteen codes and
// one the others; at(l) is the block of lane l

template <class At>
TL_VECTOR Ints lanes_of(const At& at, int from) {
  return lanes([&](int l) { return at(l) + from; });
}
// Codes plus 16 where a bit of the four bytes at `from` is set.
template <class At>
TL_VECTOR Halved with_fifth(Halved codes, const At& at, int from) {
  alignas(16) static constexpr Bits8 kFirst[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) static constexpr Bits8 kBit[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                 1, 2, 4, 8, 16, 32, 64, 128};
  const Ints bytes = lanes_of(at, from);
  const Ints first = broadcast16(kFirst), bit = broadcast16(kBit);
  return {add_where(codes.low, shuffle8(bytes, first), bit, set8(16)),
          add_where(codes.high, shuffle8(bytes, add8(first, set8(2))), bit, set8(16))};
}

template <class Format, bool kSigned>
struct Lanes32;
template <bool kSigned>
struct Lanes32<qb::Q4_0, kSigned> {
  TL_VECTOR static Halved from_bytes(Ints bytes) { return nibbles(bytes); }
  template <class At>
  TL_VECTOR static Halved codes(const At& at) {
    return from_bytes(lanes_of(at, 2));
  }
};
template <bool kSigned>
struct Lanes32<qb::Q4_1, kSigned> {
  template <class At>
  TL_VECTOR static Halved codes(const At& at) {
    return nibbles(lanes_of(at, 4));
  }
};
template <bool kSigned>
struct Lanes32<qb::Q5_0, kSigned> {
  template <class At>
  TL_VECTOR static Halved codes(const At& at) {
    return with_fifth(nibbles(lanes_of(at, 6)), at, 2);
  }
};
template <bool kSigned>
struct Lanes32<qb::Q5_1, kSigned> {
  template <class At>
  TL_VECTOR static Halved codes(const At& at) {
    return with_fifth(nibbles(lanes_of(at, 8)), at, 4);
  }
};
template <bool kSigned>
struct Lanes32<qb::Q8_0, kSigned> {
  template <class At>
  TL_VECTOR static Halved codes(const At& at) {
    Halved both = halved([&](int l) { return at(l) + 2; });
    if constexpr (!kSigned) {
      both = {bits_xor(both.low, set8(128)), bits_xor(both.high, set8(128))};
    }
    return both;
  }
};
template <bool kSigned>
struct Lanes32<qb::IQ4_NL, kSigned> {
  TL_VECTOR static Halved from_bytes(Ints bytes) { return uneven<kSigned>(nibbles(bytes)); }
  template <class At>
  TL_VECTOR static Halved codes(const At& at) {
    return from_bytes(lanes_of(at, 2));
  }
};
template <bool kSigned>
struct Lanes32<qb::MXFP4, kSigned> {
  template <class At>
  TL_VECTOR static Halved codes(const At& at) {
    const Halved both = nibbles(lanes_of(at, 1));
    const Ints table = broadcast16(kE2M1);
    return {shuffle8(table, both.low), shuffle8(table, both.high)};
  }
};

// Scales of blocks from their first four bytes.
template <class Format>
TL_VECTOR Floats scales_of(Ints words) {
  if constexpr (std::is_same_v<Format, qb::MXFP4>) {
    const Ints e = bits_and(words, set32(255));
    const Ints small = select_less(e, 1, set32(0x00200000), set32(0x00400000));
    return as_floats(select_less(e, 2, small, left32(sub32(e, set32(1)), 23)));
  } else {
    return from_halves(words);
  }
}

// ---- blocks of 256: kVectors vectors of codes
//
// A load of bytes gives kPlanes vectors, one from each group of bits. The codes come in units of
// kUnit numbers: unit u of plane p of load i is number kPlanes (units per vector i + u) + p.

constexpr int kVectors = 16 / kLanes;

// The pairs of six bits of Q4_K and Q5_K, four bytes into a block, for one row in each lane: eight
// scales and eight minimums.
TL_VECTOR Ints six_bits(Ints header) {
  alignas(16) static constexpr Bits8 kPlain[16] = {4, 5, 6,  7,  12, 13, 14, 15,
                                                   8, 9, 10, 11, 12, 13, 14, 15};
  alignas(16) static constexpr Bits8 kTop[16] = {128, 128, 128, 128, 4, 5, 6,  7,
                                                 128, 128, 128, 128, 8, 9, 10, 11};
  alignas(16) static constexpr Bits8 kMask[16] = {63, 63, 63, 63, 15, 15, 15, 15,
                                                  63, 63, 63, 63, 15, 15, 15, 15};
  alignas(16) static constexpr std::int32_t kShift[4] = {0, 0, 0, 4};
  const Ints plain = right32_each(shuffle8(header, broadcast16(kPlain)), broadcast16(kShift));
  const Ints top = bits_and(right16(shuffle8(header, broadcast16(kTop)), 2), set8(0x30));
  return and_or(plain, broadcast16(kMask), top);
}

// codes(): of a block. kHeader: where its sixteen bytes are that give scales() for one row in each
// lane; kD: where the scales of the whole block are, in the lower or the upper half of four bytes.
template <class Format, bool kSigned>
struct Super;

template <bool kSigned>
struct Super<qb::Q2_K, kSigned> {
  static constexpr int kPlanes = 4, kUnit = 32, kHeader = 0, kD = 80;
  static constexpr bool kPairs = false, kUpper = false;
  TL_VECTOR static void codes(const Bits8* b, Ints (&c)[kVectors]) {
    for (int i = 0; i < kVectors / 4; ++i) {
      const Ints bytes = load(b + 16 + 16 * kLanes * i);
      for (int p = 0; p < 4; ++p) c[4 * i + p] = bits_and(right16(bytes, 2 * p), set8(3));
    }
  }
  TL_VECTOR static Ints scales(Ints header) { return bits_and(header, set8(15)); }
  TL_VECTOR static Ints minimums(Ints header) { return bits_and(right16(header, 4), set8(15)); }
};
template <bool kSigned>
struct Super<qb::Q3_K, kSigned> {
  static constexpr int kPlanes = 4, kUnit = 32, kHeader = 94, kD = 106;
  static constexpr bool kPairs = false, kUpper = true;
  TL_VECTOR static void codes(const Bits8* b, Ints (&c)[kVectors]) {
    const Ints high = shifted_pieces(load32(b), 4);
    for (int i = 0; i < kVectors / 4; ++i) {
      const Ints bytes = load(b + 32 + 16 * kLanes * i);
      for (int p = 0; p < 4; ++p) {
        const int bit = 4 * i + p;
        const Ints third = bit < 2 ? left16(high, 2 - bit) : right16(high, bit - 2);
        c[4 * i + p] = and_or(third, set8(4), bits_and(right16(bytes, 2 * p), set8(3)));
      }
    }
  }
  TL_VECTOR static Ints scales(Ints header) {  // their twelve bytes are at 2
    alignas(16) static constexpr Bits8 kLow[16] = {2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9};
    alignas(16) static constexpr Bits8 kHigh[16] = {10, 11, 12, 13, 10, 11, 12, 13,
                                                    10, 11, 12, 13, 10, 11, 12, 13};
    alignas(16) static constexpr std::int32_t kLowShift[4] = {0, 0, 4, 4};
    alignas(16) static constexpr std::int32_t kHighShift[4] = {0, 2, 4, 6};
    const Ints low = right32_each(shuffle8(header, broadcast16(kLow)), broadcast16(kLowShift));
    const Ints high = right32_each(shuffle8(header, broadcast16(kHigh)), broadcast16(kHighShift));
    const Ints top = left16(bits_and(high, set8(3)), 4);
    return add8(and_or(low, set8(15), top), set8(-32));
  }
};
template <bool kSigned>
struct Super<qb::Q4_K, kSigned> {
  static constexpr int kPlanes = 2, kUnit = 32, kHeader = 0, kD = 0;
  static constexpr bool kPairs = true, kUpper = false;
  TL_VECTOR static void codes(const Bits8* b, Ints (&c)[kVectors]) {
    for (int i = 0; i < kVectors / 2; ++i) {
      const Halved both = nibbles(load(b + 16 + 16 * kLanes * i));
      c[2 * i] = both.low;
      c[2 * i + 1] = both.high;
    }
  }
  TL_VECTOR static Ints scales(Ints header) { return six_bits(header); }
};
template <bool kSigned>
struct Super<qb::Q5_K, kSigned> {
  static constexpr int kPlanes = 2, kUnit = 32, kHeader = 0, kD = 0;
  static constexpr bool kPairs = true, kUpper = false;
  TL_VECTOR static void codes(const Bits8* b, Ints (&c)[kVectors]) {
    const Ints high = shifted_pieces(load32(b + 16), 2);
    for (int i = 0; i < kVectors / 2; ++i) {
      const Halved both = nibbles(load(b + 48 + 16 * kLanes * i));
      for (int p = 0; p < 2; ++p) {
        const int bit = kLanes * i + p;
        const Ints fifth = bit < 4 ? left16(high, 4 - bit) : right16(high, bit - 4);
        c[2 * i + p] = and_or(fifth, set8(16), p == 0 ? both.low : both.high);
      }
    }
  }
  TL_VECTOR static Ints scales(Ints header) { return six_bits(header); }
};
template <bool kSigned>
struct Super<qb::Q6_K, kSigned> {
  static constexpr int kPlanes = 4, kUnit = 32, kHeader = 192, kD = 206;
  static constexpr bool kPairs = false, kUpper = true;
  TL_VECTOR static void codes(const Bits8* b, Ints (&c)[kVectors]) {
    const Ints top = set8(0x30);
    for (int i = 0; i < kVectors / 4; ++i) {
      const Bits8* low = b + 64 * i;
      const Halved even = nibbles(pieces([&](int k) { return low + 64 * k; }));
      const Halved odd = nibbles(pieces([&](int k) { return low + 64 * k + 32; }));
      const Ints high = load(b + 128 + 16 * kLanes * i);
      c[4 * i] = and_or(left16(high, 4), top, even.low);
      c[4 * i + 1] = and_or(left16(high, 2), top, odd.low);
      c[4 * i + 2] = and_or(high, top, even.high);
      c[4 * i + 3] = and_or(right16(high, 2), top, odd.high);
    }
  }
  TL_VECTOR static Ints scales(Ints header) { return header; }
};
template <bool kSigned>
struct Super<qb::IQ4_XS, kSigned> {
  static constexpr int kPlanes = 2, kUnit = 16, kHeader = 0, kD = 0;
  static constexpr bool kPairs = false, kUpper = false;
  TL_VECTOR static void codes(const Bits8* b, Ints (&c)[kVectors]) {
    for (int i = 0; i < kVectors / 2; ++i) {
      const Halved both = uneven<kSigned>(nibbles(load(b + 8 + 16 * kLanes * i)));
      c[2 * i] = both.low;
      c[2 * i + 1] = both.high;
    }
  }
  TL_VECTOR static Ints scales(Ints header) {  // two bits of each at 2, four at 4
    alignas(16) static constexpr Bits8 kLow[16] = {4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7};
    alignas(16) static constexpr Bits8 kHigh[16] = {2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
    // Of four bytes the first two take the lower bits; of eight, two at a time.
    const Ints low = shuffle8(header, broadcast16(kLow));
    Ints bits = bits_and(low, set32(0x00000f0f));
    bits = and_or(right16(low, 4), set32(0x0f0f0000), bits);
    const Ints high = shuffle8(header, broadcast16(kHigh));
    alignas(16) static constexpr Bits8 kQuarter[4][16] = {
        {0x30, 0x30, 0, 0, 0, 0, 0, 0, 0x30, 0x30, 0, 0, 0, 0, 0, 0},
        {0, 0, 0x30, 0x30, 0, 0, 0, 0, 0, 0, 0x30, 0x30, 0, 0, 0, 0},
        {0, 0, 0, 0, 0x30, 0x30, 0, 0, 0, 0, 0, 0, 0x30, 0x30, 0, 0},
        {0, 0, 0, 0, 0, 0, 0x30, 0x30, 0, 0, 0, 0, 0, 0, 0x30, 0x30}};
    bits = and_or(left16(high, 4), broadcast16(kQuarter[0]), bits);
    bits = and_or(left16(high, 2), broadcast16(kQuarter[1]), bits);
    bits = and_or(high, broadcast16(kQuarter[2]), bits);
    bits = and_or(right16(high, 2), broadcast16(kQuarter[3]), bits);
    return add8(bits, set8(-32));
  }
};

// Which sixteen numbers of a block lane l of vector v holds.
template <class Layout>
constexpr int unit16(int v, int l) {
  constexpr int kLanesPerUnit = Layout::kUnit / 16;
  const int load = v / Layout::kPlanes, plane = v % Layout::kPlanes;
  const int unit = kLanes / kLanesPerUnit * load + l / kLanesPerUnit;
  return kLanesPerUnit * (Layout::kPlanes * unit + plane) + l % kLanesPerUnit;
}
