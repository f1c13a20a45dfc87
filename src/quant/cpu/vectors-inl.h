// What vectors of 256 bits do in every path of products that has them. Included inside an anonymous
// namespace before avx2-inl.h or avx512-inl.h; so no guard, and no includes of its own.

#define TL_VECTOR inline __attribute__((always_inline))

TL_VECTOR __m256i load32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
TL_VECTOR __m128i load16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
// A lane of a vector, given as it is or by its address.
TL_VECTOR __m128i lane(__m128i v) { return v; }
TL_VECTOR __m128i lane(const void* p) { return load16(p); }
template <class Lane>
TL_VECTOR __m256i join16(const Lane& low, const Lane& high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(lane(low)), lane(high), 1);
}

// Eight numbers of two bytes, each in the lower or the upper half of 32 bits.
TL_VECTOR __m256 halves256(__m256i words, bool upper) {
  const __m256i low = _mm256_set_epi64x(-1, 0x0d0c090805040100, -1, 0x0d0c090805040100);
  const __m256i high = _mm256_set_epi64x(-1, 0x0f0e0b0a07060302, -1, 0x0f0e0b0a07060302);
  const __m256i packed = _mm256_shuffle_epi8(words, upper ? high : low);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

// Four bytes at p, p + step, p + 2 step and p + 3 step. Reads sixteen bytes for each of them: 4 r
// bytes before, 12 - 4 r after, so that what is read lies between p and the end of the last four.
TL_VECTOR __m128i four_apart(const Bits8* p, std::int64_t step) {
  __m128i words = load16(p);
  words = _mm_blend_epi32(words, load16(p + step - 4), 2);
  words = _mm_blend_epi32(words, load16(p + 2 * step - 8), 4);
  return _mm_blend_epi32(words, load16(p + 3 * step - 12), 8);
}

// Four rows of eight numbers: in each half, one sum of four numbers per row.
TL_VECTOR __m256i across4_256(const __m256i (&row)[4]) {
  const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(row[0], row[1]),
                                      _mm256_unpackhi_epi32(row[0], row[1]));
  const __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(row[2], row[3]),
                                      _mm256_unpackhi_epi32(row[2], row[3]));
  return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}
// Eight rows of eight numbers: their sums.
TL_VECTOR __m256i across8_256(const __m256i (&row)[8]) {
  const __m256i low = across4_256({row[0], row[1], row[2], row[3]});
  const __m256i high = across4_256({row[4], row[5], row[6], row[7]});
  return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                          _mm256_permute2x128_si256(low, high, 0x31));
}
