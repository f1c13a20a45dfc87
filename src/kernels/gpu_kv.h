// Keys and values as a cache keeps them: rows of one head, 64 positions to a block.
#pragma once

#include "gpu.h"

namespace kv {

inline constexpr int kBlock = 64;   // positions
inline constexpr int kScaled = 32;  // bytes that share a scale

struct Eight {
  float at[8];
};

// Eight elements, from a multiple of eight, of rows of a kind (below).
template <class Rows>
GPU_INLINE Eight eight_of(const Bits8* head, int size, int position, int element) {
  typename Rows::Packed packed;
  packed.load(head, size, position, element);
  Eight eight;
  GPU_UNROLLED
  for (int i = 0; i < 8; ++i) eight.at[i] = packed.get(i);
  return eight;
}

// How one head's rows of `size` elements lie; `head` is where they begin. Elements are read eight
// at a time, from a multiple of eight.
template <class T>
struct Rows {
  // As they are kept.
  struct Packed {
    static constexpr int kParts = sizeof(T) == 4 ? 2 : 1;
    Vec<T, 8 / kParts> part[kParts];
    GPU_INLINE void load(const Bits8* head, int size, int position, int element) {
      const T* from = reinterpret_cast<const T*>(head) + position * size + element;
      GPU_UNROLLED
      for (int i = 0; i < kParts; ++i) part[i] = load_vec<8 / kParts>(from + i * (8 / kParts));
    }
    GPU_INLINE float get(int i) const {
      return to_float(part[i / (8 / kParts)].get(i % (8 / kParts)));
    }
  };
  GPU_INLINE static float get(const Bits8* head, int size, int position, int element) {
    return to_float(reinterpret_cast<const T*>(head)[position * size + element]);
  }
  // By all lanes of a warp at once, with neighbouring elements (and `live` where there is one).
  // Gives what will be read; with no `head` nothing is written.
  GPU_INLINE static float put(Bits8* head, int size, int position, int element, float value,
                              bool live) {
    const T kept = from_float<T>(value);
    if (live && head != nullptr) reinterpret_cast<T*>(head)[position * size + element] = kept;
    return to_float(kept);
  }
};

// Bytes, and after those of all positions the scales as f16.
struct Scaled {};
template <>
struct Rows<Scaled> {
  GPU_INLINE static float scale(const Bits8* head, int size, int position, int element) {
    const auto* scales = reinterpret_cast<const Half*>(head + kBlock * size);
    return to_float(scales[position * (size / kScaled) + element / kScaled]);
  }
  struct Packed {
    Vec<Bits8, 8> bytes;
    float d;
    GPU_INLINE void load(const Bits8* head, int size, int position, int element) {
      bytes = load_vec<8>(head + position * size + element);
      d = scale(head, size, position, element);
    }
    GPU_INLINE float get(int i) const {
      return d * static_cast<float>(static_cast<signed char>(bytes.get(i)));
    }
  };
  GPU_INLINE static float get(const Bits8* head, int size, int position, int element) {
    return scale(head, size, position, element) *
           static_cast<float>(static_cast<signed char>(head[position * size + element]));
  }
  GPU_INLINE static float put(Bits8* head, int size, int position, int element, float value,
                              bool live) {
    float largest = live ? math::abs(value) : 0.0f;
    for (unsigned mask = 16; mask > 0; mask /= 2) {
      largest = math::max(largest, shuffle_xor(largest, mask));
    }
    const Half d = from_float<Half>(largest / 127.0f);
    const float inverse = to_float(d) > 0.0f ? 1.0f / to_float(d) : 0.0f;
    const float q = math::rint(value * inverse);
    const float kept = q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q;
    const float result = to_float(d) * kept;
    if (!live || head == nullptr) return result;
    head[position * size + element] = static_cast<Bits8>(static_cast<signed char>(kept));
    if (element % kScaled == 0) {
      reinterpret_cast<Half*>(head +
                              kBlock * size)[position * (size / kScaled) + element / kScaled] = d;
    }
    return result;
  }
};

// Element `i` of a head's row after it was turned: `get` has the elements before.
template <class Get>
GPU_INLINE float turned(Get get, int i, int rope_size, bool halves, const float* cosines,
                        const float* sines) {
  if (i >= rope_size) return get(i);
  const int half = rope_size / 2;
  const int pair = halves ? i % half : i / 2;
  const bool first = halves ? i < half : i % 2 == 0;
  const int other = halves ? (first ? i + half : i - half) : i ^ 1;
  const float c = cosines[pair], s = sines[pair];
  return first ? get(i) * c - get(other) * s : get(other) * s + get(i) * c;
}

}  // namespace kv
