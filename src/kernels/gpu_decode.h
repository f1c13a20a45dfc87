// What module DECODE is told: the phases of one token's way through a decoder. Both sides include
// this file.
#pragma once

#include "gpu_args.h"
#include "tl/base/float_bits.h"

namespace tl::kernels {

using float_bits::Bits32;
using float_bits::Bits8;

inline constexpr int kDecodeThreads = 512;
inline constexpr int kDecodeShares = 4;       // warps that may share a row
inline constexpr int kDecodeWeights = 3;      // matrices of a phase
inline constexpr int kDecodeSums = 2048;      // of a block's rows, times the warps that share one
inline constexpr int kDecodeTiles = 48;       // pieces in which a block takes its rows
inline constexpr int kDecodeSlots = 8;        // pieces that may be under way
inline constexpr int kDecodeRoom = 35 << 10;  // bytes of shared memory for a phase's vectors
inline constexpr int kDecodeWidth = 16 * kDecodeThreads;  // of a vector that is normed
inline constexpr int kDecodeValues = 256;                 // elements of a head's value

enum class DecodeKind : int { Embed, Linear, Attention };
enum class DecodeOutput : int { Store, Add, Gated };

// Formats are places in kProductFormats, and these two.
inline constexpr int kDecodeF16 = 13, kDecodeBF16 = 14;
// How keys and values are kept: places in KvType.
inline constexpr int kDecodeKvF16 = 0, kDecodeKvBF16 = 1, kDecodeKvQ8 = 2, kDecodeKvF32 = 3;

// Some rows of a matrix and where their products go.
struct DecodeRows {
  const Bits8* weight;
  Index row_bytes;
  const float* bias;  // or null
  float* out;         // null: DecodeStep::logits
  int rows;
  int each, more;  // every block has `each` rows, and the first `more` blocks one more
  int format;
};

// Neighbouring matrices of one format, whose rows are taken together.
struct DecodeRun {
  int first, last;  // matrices
  int tiles;        // pieces in which a block takes its share
};

// y = W * input, where the input is x, or the norm of x. With `added` x is first increased by the
// norm of that, and what comes of it is kept in `kept`, which is not x.
struct DecodeLinear {
  DecodeRows part[kDecodeWeights];
  DecodeRun run[kDecodeWeights];
  const float* x;
  const float* norm;  // weights, or null: x as it is
  const float* added;
  const float* added_norm;
  float* kept;
  int parts, runs;
  int tiles;       // of all runs
  int sums_each;   // room for sums of each matrix
  int chunks;      // a block's rows are summed up in so many turns
  int slots;       // pieces under way in shared memory; 0: rows are read where they are
  int slot_bytes;  // a multiple of 16
  int k;           // columns of each matrix
  int warps;       // that share a row
  float eps;
  DecodeOutput output;  // Gated: part 0 is the gate, part 1 what it lets through
  int is_gelu;
  int halves;     // the input becomes f16 (for f16 and bf16) instead of bytes
  float softcap;  // of what is stored; 0: none
};

struct DecodeAttention {
  const float* q;  // all heads' queries, the new key and value
  const float* k;
  const float* v;
  const float* q_norm;  // or null
  const float* k_norm;
  const float* cosines;  // (positions, rope_size / 2)
  const float* sines;
  float* out;
  float* partial;   // room for kv_heads * splits * group * (value_size + 2)
  Bits32* arrived;  // kv_heads zeros
  Index layer_at;   // bytes from the start of a block
  Index values_at;
  Index key_head_bytes;
  Index value_head_bytes;
  Index window;  // 0: none
  int kv_type;
  int kv_heads;
  int group;                             // heads / kv_heads
  int members;                           // warps of a block that share a head
  unsigned by_group, by_half, by_value;  // 2^20 / group, / (rope_size / 2) and / value_size
  int key_size, value_size;
  int rope_size;
  int rope_halves;
  float eps;
  float scale;
  float softcap;
};

struct DecodeEmbed {
  const Bits8* table;
  Index row_bytes;
  float* x;
  int width;
  int format;
  int rows;
  float scale;
};

struct DecodePhase {
  DecodeKind kind;
  int fill;
  union {
    DecodeLinear linear;
    DecodeAttention attention;
    DecodeEmbed embed;
  };
};

// Which keys the token sees, and how they are cut into parts of `each`, a multiple of 32.
struct DecodeSight {
  Index begin;
  int each;
  int splits;
};

// One launch: phases first to last - 1, with all blocks meeting between two of them.
struct DecodeStep {
  const DecodePhase* phases;
  const Bits32* token;
  Bits8* const* blocks;  // of the cache
  Bits32* met;           // counts the blocks that have come to a meeting
  float* logits;         // where a product without a place of its own goes
  Fault* fault;
  Index position;         // of the token
  DecodeSight seen;       // without a window,
  DecodeSight seen_near;  // and with it
  Bits32 met_before;
  unsigned fault_tag;
  int first, last;
};

}  // namespace tl::kernels
