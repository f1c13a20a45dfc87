// Types in device memory, what they convert to, and vectors of them. Included by gpu.h.
#pragma once

// ---- storage types: arithmetic happens in float

struct Half {
  Bits16 raw;
};
struct BFloat16 {
  Bits16 raw;
};
struct Float8 {  // e4m3, see float_bits.h
  Bits8 raw;
};
struct Bool {  // one byte; anything but 0 is true
  Bits8 raw;
};

GPU_INLINE float to_float(float x) { return x; }
GPU_INLINE float to_float(Half x) { return f16_to_float(x.raw); }
GPU_INLINE float to_float(BFloat16 x) { return bits::bf16_to_f32(x.raw); }
GPU_INLINE float to_float(Float8 x) { return f8_to_float(x.raw); }

template <class T>
struct FromFloat;
template <>
struct FromFloat<float> {
  GPU_INLINE static float make(float x) { return x; }
};
template <>
struct FromFloat<Half> {
  GPU_INLINE static Half make(float x) { return {float_to_f16(x)}; }
};
template <>
struct FromFloat<BFloat16> {
  GPU_INLINE static BFloat16 make(float x) { return {float_to_bf16(x)}; }
};
template <>
struct FromFloat<Float8> {
  GPU_INLINE static Float8 make(float x) { return {float_to_f8(x)}; }
};
template <class T>
GPU_INLINE T from_float(float x) {
  return FromFloat<T>::make(x);
}

template <class T>
inline constexpr bool kIsSmallFloat = false;
template <>
inline constexpr bool kIsSmallFloat<Half> = true;
template <>
inline constexpr bool kIsSmallFloat<BFloat16> = true;
template <>
inline constexpr bool kIsSmallFloat<Float8> = true;

// Any type to any other by the rules of float_bits.h. A conversion to the type itself copies the
// bits.
template <class To, class From>
GPU_INLINE To convert(From x) {
  if constexpr (bits::kSame<From, Bool>) {
    return convert<To>(x.raw != 0);
  } else if constexpr (bits::kSame<To, From>) {
    return x;
  } else if constexpr (bits::kSame<To, Bool>) {
    return {static_cast<Bits8>(convert<bool>(x) ? 1 : 0)};
  } else if constexpr (kIsSmallFloat<From>) {
    return convert<To>(to_float(x));
  } else if constexpr (kIsSmallFloat<To>) {
    return from_float<To>(bits::round_ready(x));
  } else {
    return bits::convert_number<To>(x);
  }
}

// ---- vectors: kCount elements, 16 bytes at most, read or written by one instruction
//
// Kept as 32-bit registers, out of which elements are shifted: given an array of small elements,
// older compilers go through memory to get at the whole.

template <class T>
GPU_INLINE auto bits_of(T x) {
  if constexpr (sizeof(T) == 8) {
    return __builtin_bit_cast(Bits64, x);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(Bits32, x);
  } else if constexpr (sizeof(T) == 2) {
    return __builtin_bit_cast(Bits16, x);
  } else {
    return __builtin_bit_cast(Bits8, x);
  }
}

template <class T, int kCount>
struct Vec {
  static constexpr int kBytes = sizeof(T) * kCount;
  static constexpr int kPerWord = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  static_assert(kBytes <= 16);
  struct GPU_MAY_ALIAS alignas(kBytes < 4 ? 4 : kBytes) Words {
    Bits32 at[(kBytes + 3) / 4];
  };
  using Short GPU_MAY_ALIAS = Bits16;  // how two bytes are read and written
  Words words = {};

  // k is known when a loop over it is unrolled.
  GPU_INLINE T get(int k) const {
    if constexpr (sizeof(T) == 8) {
      const Bits64 high = words.at[2 * k + 1];
      return __builtin_bit_cast(T, high << 32 | words.at[2 * k]);
    } else {
      const Bits32 word = words.at[k / kPerWord] >> (k % kPerWord * 8 * sizeof(T) & 31);
      return __builtin_bit_cast(T, static_cast<decltype(bits_of(T{}))>(word));
    }
  }
  // Each element is set once.
  GPU_INLINE void set(int k, T x) {
    if constexpr (sizeof(T) == 8) {
      words.at[2 * k] = static_cast<Bits32>(bits_of(x));
      words.at[2 * k + 1] = static_cast<Bits32>(bits_of(x) >> 32);
    } else {
      words.at[k / kPerWord] |= static_cast<Bits32>(bits_of(x))
                                << (k % kPerWord * 8 * sizeof(T) & 31);
    }
  }
};

template <int kCount, class T>
GPU_INLINE bool is_vec_aligned(const T* p) {
  return (reinterpret_cast<Bits64>(p) & (sizeof(T) * kCount - 1)) == 0;
}
template <int kCount, class T>
GPU_INLINE Vec<T, kCount> load_vec(const T* p) {
  using V = Vec<T, kCount>;
  static_assert(V::kBytes >= 2);
  if constexpr (V::kBytes >= 4) {
    return {*reinterpret_cast<const typename V::Words*>(p)};
  } else {
    return {{*reinterpret_cast<const typename V::Short*>(p)}};
  }
}
template <int kCount, class T>
GPU_INLINE void store_vec(T* p, const Vec<T, kCount>& v) {
  using V = Vec<T, kCount>;
  static_assert(V::kBytes >= 2);
  if constexpr (V::kBytes >= 4) {
    *reinterpret_cast<typename V::Words*>(p) = v.words;
  } else {
    *reinterpret_cast<typename V::Short*>(p) = static_cast<typename V::Short>(v.words.at[0]);
  }
}
