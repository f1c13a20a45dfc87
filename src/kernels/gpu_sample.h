// What the host tells the kernels of module SAMPLE, and the arithmetic of sampling, which the CPU
// shares. Both sides include this file; it is embedded as source for the run-time compilers.
//
// Every device chooses the same token. Candidates are ordered by integers: a logit's bits as a key,
// with the id behind them, so that there are no ties. What is added up is integers too: the mass of
// a candidate is e^(its logit - the largest one), computed by elementary.h to the same bits
// everywhere, as a whole number of 2^-40. Sums of integers are the same in any order, so threads
// may add as they come.
#pragma once

#include "random_numbers.h"

namespace tl::kernels {

using float_bits::Bits32;
using float_bits::Bits64;

inline constexpr unsigned kSampleThreads = 512;
inline constexpr int kSampleRows = 64;    // of a launch
inline constexpr int kSampleIdBits = 22;  // of an id in a code: sums of masses stay below 2^63

struct SampleOptions {
  Bits64 seed;
  Bits64 top_p;      // of 2^64; 0: off
  Bits64 typical_p;  // of 2^64; 0: off
  Bits64 least;      // mass that a candidate needs: min_p; 0: off
  float inverse_temperature;
  float repetition;
  float presence;
  float frequency;
  Bits32 top_k;      // 0: off
  Bits32 greedy;     // 1: the largest logit, and nothing else is looked at
  Bits32 penalised;  // 1: there are counts, and a ring of `window` tokens
  Bits32 window;     // tokens that are counted; 0: all
};

// The memory of a sampler. Where it is penalised, there follow for each id how often it is among
// the last tokens, and those tokens as a ring.
struct alignas(16) SampleState {
  SampleOptions options;
  Bits64 step;  // tokens drawn
  Bits32 next;  // place in the ring
  Bits32 kept;  // tokens in the ring
};

struct SampleRow {
  SampleState* state;
  const float* bias;  // one number for each id, or null
};

struct SampleRows {
  SampleRow at[kSampleRows];
  unsigned vocabulary;
  unsigned tag;  // of the op, for the fault
  Fault* fault;
};

TL_MATH_FN Bits32* sample_counts(SampleState* state) {
  return reinterpret_cast<Bits32*>(state + 1);
}

}  // namespace tl::kernels

namespace tl::sampling {

using float_bits::Bits32;
using float_bits::Bits64;
using kernels::SampleOptions;

// ---- order

// Larger numbers have larger keys, both zeros the same. 0: never chosen, NaN and -infinity.
TL_MATH_FN Bits32 key_of(float x) {
  const Bits32 b = float_bits::bits_of(x), magnitude = b & 0x7fffffffu;
  if (magnitude > 0x7f800000u || b == 0xff800000u) return 0;
  if (magnitude == 0) return 0x80000000u;
  return (b >> 31) != 0 ? ~b : b | 0x80000000u;
}
TL_MATH_FN float number_of(Bits32 key) {
  return float_bits::float_of((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}

// Smaller ranks first, then smaller ids.
TL_MATH_FN Bits64 code_of(Bits32 rank, Bits32 id) {
  return static_cast<Bits64>(rank) << kernels::kSampleIdBits | id;
}

// ---- logits

// Of a token that is `count` times among the last ones
TL_MATH_FN float penalised(const SampleOptions& options, float x, Bits32 count) {
  if (count == 0) return x;
  x = x > 0.0f ? x / options.repetition : elementary::mul(x, options.repetition);
  const float often = elementary::mul(static_cast<float>(count), options.frequency);
  return x - (often + options.presence);
}

// How far a key is below the largest, in nats: 0 or more, perhaps infinity
TL_MATH_FN float depth_of(Bits32 key, Bits32 top) {
  return key == top ? 0.0f : number_of(top) - number_of(key);
}

// ---- masses

inline constexpr float kOne = 0x1p40f;

// Of e^-depth
TL_MATH_FN Bits64 mass_of(float e) { return static_cast<Bits64>(e * kOne); }
TL_MATH_FN Bits64 mass_at(float depth) { return mass_of(elementary::exp(-depth)); }
// The same times the depth; beyond 64 the mass is 0.
TL_MATH_FN Bits64 weighted_depth_of(float e, float depth) {
  return depth > 64.0f ? 0 : mass_of(elementary::mul(e, depth));
}
// The mean of the depths, weighted by mass. The surprise -log(p) of a token is its depth and the
// logarithm of the sum of all e^-depth; so this far the mean surprise, which is the entropy, lies
// above that logarithm.
TL_MATH_FN float mean_depth(Bits64 weighted, Bits64 total) {
  return static_cast<float>(static_cast<double>(weighted) / static_cast<double>(total));
}
// Distance of a token's surprise from the entropy, as an integer of the same order
TL_MATH_FN Bits32 oddness(float depth, float mean) {
  return float_bits::bits_of(elementary::abs(depth - mean));
}

// The least mass that is at least this fraction of the total
TL_MATH_FN Bits64 share(Bits64 fraction, Bits64 total) {
  return kernels::multiply_high(fraction, total) + (fraction * total != 0 ? 1u : 0u);
}
// A number from 1 to total, each as likely: the candidate at which the running sum reaches it is
// drawn.
TL_MATH_FN Bits64 draw(Bits64 seed, Bits64 step, Bits64 total) {
  return kernels::multiply_high(random::pair(random::philox(seed, step), 0), total) + 1;
}

// ---- bins

// Depths (or distances) in steps of 1/64, in the same order as they are; the last bin has all from
// 32 on, the first also what is above the largest that is left: candidates cut before.
inline constexpr unsigned kBins = 2048;

TL_MATH_FN unsigned bin_at(float depth) {
  const float place = depth * 64.0f;
  if (place < 0.0f) return 0;
  return place < static_cast<float>(kBins - 1) ? static_cast<unsigned>(place) : kBins - 1;
}

}  // namespace tl::sampling
