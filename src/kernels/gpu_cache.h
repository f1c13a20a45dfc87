// What module CACHE is told: which rows of a batch belong where, and how one layer attends. Both
// sides include this file.
#pragma once

#include "gpu_args.h"
#include "tl/base/float_bits.h"

namespace tl::kernels {

using float_bits::Bits8;

inline constexpr int kCacheWarps = 4;      // of a block that attends
inline constexpr int kCachePairs = 64;     // (token, head) pairs of such a block
inline constexpr int kCacheUnit = 32;      // queries have room for a multiple of this
inline constexpr int kCacheThreads = 256;  // of a block that keeps a row

// Where a row's key and value go: a block of the cache, and the position in the sequence.
struct CacheRow {
  Bits8* block;
  Index position;
};

struct CacheSequence {
  Index first_block;  // its place in CacheAttention::blocks
  int position;       // of its first row
  int first_row;
  int rows;
  int fill;
};

// What a block does, for each key head: kCachePairs pairs of one sequence, or those that are left.
// Pair p is head p % group of row p / group.
struct CacheWork {
  int sequence;
  int first_pair;
};

struct CacheAttention {
  const CacheRow* rows;
  Bits8* const* blocks;
  const CacheSequence* sequences;
  const CacheWork* work;  // those with the most keys first
  const float* cosines;   // (positions, rope_size / 2)
  const float* sines;
  Index layer_at;  // bytes from the start of a block
  Index values_at;
  Index key_head_bytes;
  Index value_head_bytes;
  int window;  // 0: none
  int heads, kv_heads;
  int key_size, value_size;
  int query_size;  // key_size with zeros after it, up to a multiple of kCacheUnit
  int rope_size;
  int rope_halves;
  // Exponents are of 2. A product p of a turned query, multiplied by query_scale, and a key is the
  // score itself, or with a cap the score is cap * (1 - 2 / (1 + 2^p)), which is cap * tanh.
  float query_scale;
  float cap;  // 0: none
};

}  // namespace tl::kernels
