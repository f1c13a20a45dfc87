// Vectors of 256 bits with AVX2, under the names that the other -inl.h files of products use;
// avx512-inl.h has the same names. Included inside an anonymous namespace, in code compiled for the
// instruction set; so no guard, and no includes of its own.
//
// There is no instruction here for four products of bytes. Two are added up in a word, which
// saturates: as many words are added up as codes up to kMost cannot overflow, and codes of eight
// bits are taken with their sign, so that two products are at most 2 * 128 * 127.

using Ints = __m256i;  // of 8, 16 or 32 bits
using Floats = __m256;

constexpr int kLanes = 2;  // of 128 bits
constexpr bool kHasDot = false;
constexpr int kColumns = 4;  // rows of x at a time in the panels' loop

// ---- loads

TL_VECTOR Ints load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
TL_VECTOR void store(void* p, Ints v) { _mm256_store_si256(static_cast<__m256i*>(p), v); }
TL_VECTOR Floats load_floats(const float* p) { return _mm256_load_ps(p); }
TL_VECTOR void store_floats(float* p, Floats v) { _mm256_storeu_ps(p, v); }
TL_VECTOR Ints broadcast16(const void* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
TL_VECTOR Ints broadcast4(const void* p) {
  int value;
  std::memcpy(&value, p, 4);
  return _mm256_set1_epi32(value);
}
// 32 bytes from at(0).
template <class At>
TL_VECTOR Ints pieces(const At& at) {
  return load32(at(0));
}
// 16 bytes from each of at(0) and at(1).
template <class At>
TL_VECTOR Ints lanes(const At& at) {
  return join16(at(0), at(1));
}
// 32 bytes from each of these, as their lower and upper sixteen.
struct Halved {
  Ints low, high;
};
template <class At>
TL_VECTOR Halved halved(const At& at) {
  const Ints a = load32(at(0)), b = load32(at(1));
  return {_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)};
}
// p[l] in all of lane l, for lanes up to `last`; p[last] in those after it.
TL_VECTOR Floats spread(const float* p, int last) {
  return _mm256_set_m128(_mm_set1_ps(p[last == 0 ? 0 : 1]), _mm_set1_ps(p[0]));
}
TL_VECTOR Ints spread(const std::int32_t* p, int last) {
  return _mm256_set_m128i(_mm_set1_epi32(p[last == 0 ? 0 : 1]), _mm_set1_epi32(p[0]));
}

// ---- blocks that lie one after the other, where a few shuffles bring them into lanes: none here

template <int kBytes>
struct Packed {
  static constexpr bool kUsed = false;
};

// ---- bits

TL_VECTOR Ints zero() { return _mm256_setzero_si256(); }
TL_VECTOR Ints set8(int v) { return _mm256_set1_epi8(static_cast<char>(v)); }
TL_VECTOR Ints set16(int v) { return _mm256_set1_epi16(static_cast<short>(v)); }
TL_VECTOR Ints set32(int v) { return _mm256_set1_epi32(v); }
TL_VECTOR Ints bits_and(Ints a, Ints b) { return _mm256_and_si256(a, b); }
TL_VECTOR Ints bits_or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
TL_VECTOR Ints bits_xor(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
// (a & mask) | b
TL_VECTOR Ints and_or(Ints a, Ints mask, Ints b) { return bits_or(bits_and(a, mask), b); }
TL_VECTOR Ints right16(Ints a, int by) { return _mm256_srli_epi16(a, by); }
TL_VECTOR Ints left16(Ints a, int by) { return _mm256_slli_epi16(a, by); }
TL_VECTOR Ints right32(Ints a, int by) { return _mm256_srli_epi32(a, by); }
TL_VECTOR Ints left32(Ints a, int by) { return _mm256_slli_epi32(a, by); }
TL_VECTOR Ints right32_each(Ints a, Ints by) { return _mm256_srlv_epi32(a, by); }
TL_VECTOR Ints shuffle8(Ints a, Ints control) { return _mm256_shuffle_epi8(a, control); }
TL_VECTOR Ints pack16(Ints a, Ints b) { return _mm256_packs_epi32(a, b); }
TL_VECTOR Ints unpack_high8(Ints a, Ints b) { return _mm256_unpackhi_epi8(a, b); }
TL_VECTOR Ints unpack_low32(Ints a, Ints b) { return _mm256_unpacklo_epi32(a, b); }
TL_VECTOR Ints unpack_high32(Ints a, Ints b) { return _mm256_unpackhi_epi32(a, b); }
TL_VECTOR Ints unpack_low64(Ints a, Ints b) { return _mm256_unpacklo_epi64(a, b); }
TL_VECTOR Ints unpack_high64(Ints a, Ints b) { return _mm256_unpackhi_epi64(a, b); }
// The same 32 bytes in every piece: there is one.
TL_VECTOR Ints shifted_pieces(__m256i bytes, int) { return bytes; }

// ---- integers

TL_VECTOR Ints add8(Ints a, Ints b) { return _mm256_add_epi8(a, b); }
TL_VECTOR Ints add16(Ints a, Ints b) { return _mm256_add_epi16(a, b); }
TL_VECTOR Ints add32(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
TL_VECTOR Ints sub32(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
template <int kOffset>
TL_VECTOR Ints times_offset(Ints a) {
  return _mm256_mullo_epi32(a, set32(kOffset));
}
// Sums of two products: of bytes without and with a sign, which saturate; and of words.
TL_VECTOR Ints pairs8(Ints a, Ints b) { return _mm256_maddubs_epi16(a, b); }
TL_VECTOR Ints pairs16(Ints a, Ints b) { return _mm256_madd_epi16(a, b); }
TL_VECTOR Ints add_pairs16(Ints sum, Ints a, Ints b) { return add32(sum, pairs16(a, b)); }
// Both with a sign, and b not -128.
TL_VECTOR Ints signed_pairs8(Ints a, Ints b) {
  return _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
}
// Bytes plus n where a bit is set.
TL_VECTOR Ints add_where(Ints a, Ints bytes, Ints bit, Ints n) {
  return add8(a, bits_and(_mm256_cmpeq_epi8(bits_and(bytes, bit), bit), n));
}
// a where `number` is less than `limit`, else b; of 32 bits.
TL_VECTOR Ints select_less(Ints number, int limit, Ints a, Ints b) {
  return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi32(set32(limit), number));
}

// Words that hold kGroups sums of two products with codes up to kMost; none for codes that are
// taken with their sign.
template <int kMost>
constexpr int kGroupsInAWord = kMost > 127 ? 0 : 32767 / (2 * 127 * kMost);

// Sums of four products for each 32 bits, of two vectors of codes up to kMost.
template <int kMost>
TL_VECTOR Ints dot(const Halved& codes, const Halved& x) {
  if constexpr (kGroupsInAWord<kMost> >= 2) {
    return pairs16(add16(pairs8(codes.low, x.low), pairs8(codes.high, x.high)), set16(1));
  } else {
    static_assert(kGroupsInAWord<kMost> == 0);
    return add_pairs16(pairs16(signed_pairs8(codes.low, x.low), set16(1)),
                       signed_pairs8(codes.high, x.high), set16(1));
  }
}

// Adds kGroups groups of four codes of a panel times those of each row of x, times words.
template <int kMost, int kGroups, int kCount>
TL_VECTOR void add_groups_times(Ints (&sum)[kCount], const Bits8* codes,
                                const std::int8_t* const (&x)[kCount], std::int64_t at, Ints by) {
  constexpr int kFit = kGroupsInAWord<kMost>;
  constexpr int kTogether = kFit == 0 ? 1 : kFit < kGroups ? kFit : kGroups;
  for (int first = 0; first < kGroups; first += kTogether) {
    Ints words[kCount];
    for (int g = first; g < first + kTogether && g < kGroups; ++g) {
      const Ints w = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + 32 * g));
      for (int c = 0; c < kCount; ++c) {
        const Ints bytes = broadcast4(x[c] + at + 4 * g);
        const Ints pairs = kFit == 0 ? signed_pairs8(w, bytes) : pairs8(w, bytes);
        words[c] = g == first ? pairs : add16(words[c], pairs);
      }
    }
    for (int c = 0; c < kCount; ++c) sum[c] = add_pairs16(sum[c], words[c], by);
  }
}
template <int kMost, int kGroups, int kCount>
TL_VECTOR void add_groups(Ints (&sum)[kCount], const Bits8* codes,
                          const std::int8_t* const (&x)[kCount], std::int64_t at) {
  add_groups_times<kMost, kGroups>(sum, codes, x, at, set16(1));
}
// Adds scales, which panel_scales() has made, times groups of four codes less kOffset times those
// of each row of x, of which part p has the sum sums[c][p].
TL_VECTOR std::int32_t twice16(int number) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(number) & 0xffffu) * 0x10001u);
}
TL_VECTOR __m128i panel_scales(__m128i scales) {
  return _mm_blend_epi16(scales, _mm_slli_epi32(scales, 16), 0xaa);
}
template <int kMost, int kOffset, int kGroups, int kCount>
TL_VECTOR void add_scaled_groups(Ints (&sum)[kCount], const Bits8* codes,
                                 const std::int8_t* const (&x)[kCount],
                                 const std::int32_t* const (&sums)[kCount], std::int64_t p,
                                 Ints scale) {
  add_groups_times<kMost, kGroups>(sum, codes, x, 4 * kGroups * p, scale);
  if constexpr (kOffset != 0) {
    static_assert(kOffset % 2 == 0 && kOffset / 2 * 4 * kGroups * 127 <= 32767);  // fits a word
    for (int c = 0; c < kCount; ++c) {
      sum[c] = add_pairs16(sum[c], scale, set32(twice16(-kOffset / 2 * sums[c][p])));
    }
  }
}

// ---- floats

TL_VECTOR Floats no_floats() { return _mm256_setzero_ps(); }
TL_VECTOR Floats set_floats(float v) { return _mm256_set1_ps(v); }
TL_VECTOR Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
TL_VECTOR Floats sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
TL_VECTOR Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
TL_VECTOR Floats floats(Ints a) { return _mm256_cvtepi32_ps(a); }
TL_VECTOR Floats as_floats(Ints a) { return _mm256_castsi256_ps(a); }
// The lower halves of 32 bits as numbers of two bytes.
TL_VECTOR Floats from_halves(Ints a) { return halves256(a, false); }
// Lanes up to `last` of `next`, the others of `now`.
TL_VECTOR Floats first_lanes(Floats now, Floats next, int last) {
  return last == 0 ? _mm256_blend_ps(now, next, 0x0f) : next;
}
// The lanes added up in order.
TL_VECTOR __m128 lanes_in_order(const Floats (&a)[2]) {
  __m128 sum = _mm256_castps256_ps128(a[0]);
  sum = _mm_add_ps(sum, _mm256_extractf128_ps(a[0], 1));
  sum = _mm_add_ps(sum, _mm256_castps256_ps128(a[1]));
  return _mm_add_ps(sum, _mm256_extractf128_ps(a[1], 1));
}

// ---- 256 bits

TL_VECTOR __m256i sum256(Ints a) { return a; }
// A vector as lanes of 256 bits, kLanes / 2 of them.
TL_VECTOR void split256(Ints a, __m256i* to) { to[0] = a; }
// Of sixteen words, those that the first or the second half of a block's vectors need, eight in
// every lane.
template <int kPlanes>
TL_VECTOR Ints scale_table(__m256i words, bool second) {
  return second ? _mm256_permute4x64_epi64(words, 0xee) : _mm256_permute4x64_epi64(words, 0x44);
}
