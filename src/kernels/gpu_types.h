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

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vec {
  static_assert(sizeof(T) * kCount <= 16);
  T at[kCount];
  GPU_INLINE T& operator[](int i) { return at[i]; }
  GPU_INLINE const T& operator[](int i) const { return at[i]; }
};

template <int kCount, class T>
GPU_INLINE bool is_vec_aligned(const T* p) {
  return (reinterpret_cast<Bits64>(p) & (sizeof(T) * kCount - 1)) == 0;
}
template <int kCount, class T>
GPU_INLINE Vec<T, kCount> load_vec(const T* p) {
  return load_whole<Vec<T, kCount>>(p);
}
template <int kCount, class T>
GPU_INLINE void store_vec(T* p, const Vec<T, kCount>& v) {
  store_whole(p, v);
}
