// Vectors of 512 bits with AVX-512 VNNI, under the names that the other -inl.h files of products
// use; avx2-inl.h has the same names. Included inside an anonymous namespace, in code compiled for
// the instruction set; so no guard, and no includes of its own.

using Ints = __m512i;  // of 8, 16 or 32 bits
using Floats = __m512;

constexpr int kLanes = 4;       // of 128 bits
constexpr bool kHasDot = true;  // adds up four products of bytes at once
constexpr int kColumns = 6;     // rows of x at a time in the panels' loop

// ---- loads

TL_VECTOR Ints load(const void* p) { return _mm512_loadu_si512(p); }
TL_VECTOR void store(void* p, Ints v) { _mm512_store_si512(p, v); }
TL_VECTOR Floats load_floats(const float* p) { return _mm512_load_ps(p); }
TL_VECTOR void store_floats(float* p, Floats v) { _mm512_storeu_ps(p, v); }
TL_VECTOR Ints broadcast16(const void* p) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
TL_VECTOR Ints broadcast4(const void* p) {
  int value;
  std::memcpy(&value, p, 4);
  return _mm512_set1_epi32(value);
}
TL_VECTOR Ints join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
// 32 bytes from at(0), at(1).
template <class At>
TL_VECTOR Ints pieces(const At& at) {
  return join(load32(at(0)), load32(at(1)));
}
// 16 bytes from each of at(0) to at(kLanes - 1).
template <class At>
TL_VECTOR Ints lanes(const At& at) {
  return join(join16(at(0), at(1)), join16(at(2), at(3)));
}
// 32 bytes from each of these, as their lower and upper sixteen.
struct Halved {
  Ints low, high;
};
template <class At>
TL_VECTOR Halved halved(const At& at) {
  const Ints a = join(load32(at(0)), load32(at(1))), b = join(load32(at(2)), load32(at(3)));
  return {_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd)};
}
// p[l] in all of lane l, for lanes up to `last`; p[last] in those after it.
TL_VECTOR Ints spread(const std::int32_t* p, int last) {
  if (last == kLanes - 1) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const Ints lane = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    return _mm512_permutexvar_epi32(lane, _mm512_castsi128_si512(four));
  }
  Ints all = _mm512_set1_epi32(p[0]);
  if (last >= 1) all = _mm512_mask_set1_epi32(all, 0xfff0, p[1]);
  if (last >= 2) all = _mm512_mask_set1_epi32(all, 0xff00, p[2]);
  return all;
}
TL_VECTOR Floats spread(const float* p, int last) {
  return _mm512_castsi512_ps(spread(reinterpret_cast<const std::int32_t*>(p), last));
}

// ---- four blocks that lie one after the other, where a few shuffles bring them into lanes

template <int kBytes>
struct Packed {
  static constexpr bool kUsed = false;
};
// Two bytes of a scale, and sixteen of codes.
template <>
struct Packed<18> {
  static constexpr bool kUsed = true;
  Ints first;  // 64 bytes, in which all four scales are
  Ints codes;
  TL_VECTOR static Packed load_four(const Bits8* p) {
    alignas(64) static constexpr std::uint16_t kWord[32] = {
        1,  2,  3,  4,  5,  6,  7,  8,  10, 11, 12, 13, 14, 15, 16, 17,
        19, 20, 21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 36, 37, 38, 39};
    Ints first = load(p);
    asm("" : "+v"(first));  // one load: GCC would read the memory again for the scales
    const Ints last = _mm512_castsi128_si512(load16(p + 56));
    return {first, _mm512_permutex2var_epi16(first, load(kWord), last)};
  }
  // Of four rows: in the lane of a block, one for each row.
  TL_VECTOR static Floats scales(const Packed (&row)[4]) {
    alignas(64) static constexpr std::uint16_t kWord[32] = {0, 32, 9, 41, 18, 50, 27, 59};
    const __m256i dword = _mm256_set_epi32(11, 3, 10, 2, 9, 1, 8, 0);
    const Ints a = _mm512_permutex2var_epi16(row[0].first, load(kWord), row[1].first);
    const Ints b = _mm512_permutex2var_epi16(row[2].first, load(kWord), row[3].first);
    return _mm512_cvtph_ps(
        _mm256_permutex2var_epi32(_mm512_castsi512_si256(a), dword, _mm512_castsi512_si256(b)));
  }
};

// ---- bits

TL_VECTOR Ints zero() { return _mm512_setzero_si512(); }
TL_VECTOR Ints set8(int v) { return _mm512_set1_epi8(static_cast<char>(v)); }
TL_VECTOR Ints set16(int v) { return _mm512_set1_epi16(static_cast<short>(v)); }
TL_VECTOR Ints set32(int v) { return _mm512_set1_epi32(v); }
TL_VECTOR Ints bits_and(Ints a, Ints b) { return _mm512_and_si512(a, b); }
TL_VECTOR Ints bits_or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
TL_VECTOR Ints bits_xor(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
// (a & mask) | b
TL_VECTOR Ints and_or(Ints a, Ints mask, Ints b) {
  return _mm512_ternarylogic_epi32(a, mask, b, 0xea);
}
TL_VECTOR Ints right16(Ints a, int by) { return _mm512_srli_epi16(a, static_cast<unsigned>(by)); }
TL_VECTOR Ints left16(Ints a, int by) { return _mm512_slli_epi16(a, static_cast<unsigned>(by)); }
TL_VECTOR Ints right32(Ints a, int by) { return _mm512_srli_epi32(a, static_cast<unsigned>(by)); }
TL_VECTOR Ints left32(Ints a, int by) { return _mm512_slli_epi32(a, static_cast<unsigned>(by)); }
TL_VECTOR Ints right32_each(Ints a, Ints by) { return _mm512_srlv_epi32(a, by); }
TL_VECTOR Ints shuffle8(Ints a, Ints control) { return _mm512_shuffle_epi8(a, control); }
TL_VECTOR Ints pack16(Ints a, Ints b) { return _mm512_packs_epi32(a, b); }
TL_VECTOR Ints unpack_high8(Ints a, Ints b) { return _mm512_unpackhi_epi8(a, b); }
TL_VECTOR Ints unpack_low32(Ints a, Ints b) { return _mm512_unpacklo_epi32(a, b); }
TL_VECTOR Ints unpack_high32(Ints a, Ints b) { return _mm512_unpackhi_epi32(a, b); }
TL_VECTOR Ints unpack_low64(Ints a, Ints b) { return _mm512_unpacklo_epi64(a, b); }
TL_VECTOR Ints unpack_high64(Ints a, Ints b) { return _mm512_unpackhi_epi64(a, b); }
// The same 32 bytes in every piece, the second of them shifted.
TL_VECTOR Ints shifted_pieces(__m256i bytes, int by) {
  return join(bytes, _mm256_srli_epi16(bytes, by));
}

// ---- integers

TL_VECTOR Ints add8(Ints a, Ints b) { return _mm512_add_epi8(a, b); }
TL_VECTOR Ints add16(Ints a, Ints b) { return _mm512_add_epi16(a, b); }
TL_VECTOR Ints add32(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
TL_VECTOR Ints sub32(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
template <int kOffset>
TL_VECTOR Ints times_offset(Ints a) {
  return _mm512_mullo_epi32(a, set32(kOffset));
}
// Sums of two products: of bytes without and with a sign, which saturate; and of words.
TL_VECTOR Ints pairs8(Ints a, Ints b) { return _mm512_maddubs_epi16(a, b); }
TL_VECTOR Ints pairs16(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }
TL_VECTOR Ints add_pairs16(Ints sum, Ints a, Ints b) { return _mm512_dpwssd_epi32(sum, a, b); }
// Both with a sign, and b not -128.
TL_VECTOR Ints signed_pairs8(Ints a, Ints b) {
  const Ints with_sign = _mm512_mask_sub_epi8(b, _mm512_movepi8_mask(a), zero(), b);
  return _mm512_maddubs_epi16(_mm512_abs_epi8(a), with_sign);
}
// Bytes plus n where a bit is set.
TL_VECTOR Ints add_where(Ints a, Ints bytes, Ints bit, Ints n) {
  return _mm512_mask_add_epi8(a, _mm512_test_epi8_mask(bytes, bit), a, n);
}
// a where `number` is less than `limit`, else b; of 32 bits.
TL_VECTOR Ints select_less(Ints number, int limit, Ints a, Ints b) {
  return _mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(number, set32(limit)), b, a);
}

// Sums of four products for each 32 bits, of two vectors of codes up to kMost.
template <int kMost>
TL_VECTOR Ints dot(const Halved& codes, const Halved& x) {
  return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero(), codes.low, x.low), codes.high, x.high);
}

// Adds kGroups groups of four codes of a panel times those of each row of x.
template <int kMost, int kGroups, int kCount>
TL_VECTOR void add_groups(Ints (&sum)[kCount], const Bits8* codes,
                          const std::int8_t* const (&x)[kCount], std::int64_t at) {
  for (int g = 0; g < kGroups; ++g) {
    const Ints w = _mm512_load_si512(codes + 64 * g);
    for (int c = 0; c < kCount; ++c) {
      sum[c] = _mm512_dpbusd_epi32(sum[c], w, broadcast4(x[c] + at + 4 * g));
    }
  }
}
// Adds scales, which panel_scales() has made, times groups of four codes less kOffset times those
// of each row of x, of which part p has the sum sums[c][p].
TL_VECTOR __m128i panel_scales(__m128i scales) { return scales; }
template <int kMost, int kOffset, int kGroups, int kCount>
TL_VECTOR void add_scaled_groups(Ints (&sum)[kCount], const Bits8* codes,
                                 const std::int8_t* const (&x)[kCount],
                                 const std::int32_t* const (&sums)[kCount], std::int64_t p,
                                 Ints scale) {
  Ints part[kCount];
  for (int c = 0; c < kCount; ++c) part[c] = set32(-kOffset * sums[c][p]);
  add_groups<kMost, kGroups>(part, codes, x, 4 * kGroups * p);
  for (int c = 0; c < kCount; ++c) sum[c] = add32(sum[c], _mm512_mullo_epi32(part[c], scale));
}

// ---- floats

TL_VECTOR Floats no_floats() { return _mm512_setzero_ps(); }
TL_VECTOR Floats set_floats(float v) { return _mm512_set1_ps(v); }
TL_VECTOR Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
TL_VECTOR Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
TL_VECTOR Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
TL_VECTOR Floats floats(Ints a) { return _mm512_cvtepi32_ps(a); }
TL_VECTOR Floats as_floats(Ints a) { return _mm512_castsi512_ps(a); }
// The lower halves of 32 bits as numbers of two bytes.
TL_VECTOR Floats from_halves(Ints a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }
// Lanes up to `last` of `next`, the others of `now`.
TL_VECTOR Floats first_lanes(Floats now, Floats next, int last) {
  if (last == kLanes - 1) return next;
  return _mm512_mask_mov_ps(now, static_cast<__mmask16>((16 << 4 * last) - 1), next);
}
// The lanes added up in order.
TL_VECTOR __m128 lanes_in_order(const Floats (&a)[1]) {
  __m128 sum = _mm512_castps512_ps128(a[0]);
  sum = _mm_add_ps(sum, _mm512_extractf32x4_ps(a[0], 1));
  sum = _mm_add_ps(sum, _mm512_extractf32x4_ps(a[0], 2));
  return _mm_add_ps(sum, _mm512_extractf32x4_ps(a[0], 3));
}

// ---- 256 bits

TL_VECTOR __m256i sum256(Ints a) {
  return _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
}
// A vector as lanes of 256 bits, kLanes / 2 of them.
TL_VECTOR void split256(Ints a, __m256i* to) {
  to[0] = _mm512_castsi512_si256(a);
  to[1] = _mm512_extracti64x4_epi64(a, 1);
}
// Of sixteen words, those that the first or the second half of a block's vectors need, eight in
// every lane. A vector of four planes has lanes in both halves of the block.
template <int kPlanes>
TL_VECTOR Ints scale_table(__m256i words, bool second) {
  const Ints wide = _mm512_castsi256_si512(words);
  if constexpr (kPlanes == 4) return _mm512_shuffle_i32x4(wide, wide, 0x50);
  return second ? _mm512_shuffle_i32x4(wide, wide, 0x55) : _mm512_shuffle_i32x4(wide, wide, 0);
}
