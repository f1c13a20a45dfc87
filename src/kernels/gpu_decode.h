// What module DECODE is told: the phases of one token's way through a decoder. Both sides include
// this file.
#pragma once

#include "gpu_args.h"
#include "tl/base/float_bits.h"

namespace tl::kernels {

using float_bits::Bits32;
using float_bits::Bits8;

// Threads of a block that do the work of phases: so many; or so many, where another warp of the
// block brings memory for them (decode_clerk.h), and they have twice the registers.
inline constexpr int kDecodeThreads = 512, kDecodeServed = 256;
inline constexpr int kDecodeWeights = 3;      // matrices of a phase
inline constexpr int kDecodeSums = 2048;      // of the pieces of a block's rows
inline constexpr int kDecodeTotals = 64;      // of these, for a few of attention's
inline constexpr int kDecodeSlots = 16;       // times such pieces that may be under way to a warp
inline constexpr int kDecodeLabel = 16;       // bytes before each of them
inline constexpr int kDecodePieces = 2;       // pieces of rows that a warp takes at a time
inline constexpr int kDecodeRoom = 35 << 10;  // bytes of shared memory for a phase's vectors
inline constexpr int kDecodeWidth = 16 * kDecodeThreads;  // of a vector that is normed
inline constexpr int kDecodeHead = 256;                   // elements of a key or a value
// What a lane takes of a piece at most: groups of 32 columns of a quantised row, groups of 8 of
// another. Lanes of wide warps have few registers left for more, those that are served
// have many.
constexpr int decode_groups(int warp, bool served) { return served ? 4 : warp == 64 ? 2 : 3; }
constexpr int decode_eights(int warp) { return warp == 64 ? 2 : 4; }

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
  int out_at;         // where the first row's product goes
  int rows;
  int each, more;  // every block has `each` rows, and the first `more` blocks one more
  int unit_bytes;  // of a unit of a row
  int format;
};

// y = W * input, where the input is x, or the norm of x. With `added` x is first increased by the
// norm of that, and what comes of it is kept in `kept`, which is not x.
//
// A row is `units` units of 32 or 256 columns. It is taken in 2^share_bits pieces of whole units,
// as equal as can be: a lane takes no more of one than decode_groups() or decode_eights() says. A
// block's rows, of all matrices, are numbered one after the other; piece s of row r has the number
// s * rows + r, and each warp takes pieces with neighbouring numbers.
struct DecodeLinear {
  DecodeRows part[kDecodeWeights];
  const float* x;
  const float* norm;  // weights, or null: x as it is
  const float* added;
  const float* added_norm;
  float* kept;
  int parts;
  int k;  // columns of each matrix
  int units, unit_groups, share_bits;
  float eps;
  DecodeOutput output;  // Gated: part 0 is the gate, part 1 what it lets through
  int is_gelu;
  int halves;     // the input becomes f16 (for f16 and bf16) instead of bytes
  int again;      // more rows with the input of the phase before
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
  float* partial;   // room for teams * splits * heads * (value_size + 2)
  Bits32* arrived;  // zeros, for each team
  Index layer_at;   // bytes from the start of a block
  Index values_at;
  Index key_head_bytes;
  Index value_head_bytes;
  Index window;  // 0: none
  int kv_type;
  int group;                   // heads / kv_heads
  unsigned by_half, by_value;  // 2^20 / (rope_size / 2) and / value_size
  int key_size, value_size;    // multiples of 8
  int key_bits, value_bits;    // 2^bits lanes, 8 to 32, are enough for eight elements each
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
  int meetings;     // that come before it in a step
  int next_linear;  // the next phase of that kind, or the number of phases
  union {
    DecodeLinear linear;
    DecodeAttention attention;
    DecodeEmbed embed;
  };
};

// Which keys the token sees, and who looks at them: a block at a part of `each` keys, for a team of
// `heads` heads that have one key head.
struct DecodeSight {
  Index begin;
  int each;
  int splits;
  int heads, teams;
  int members;        // warps of a block that share a head
  unsigned by_heads;  // 2^20 / heads
};

// One launch: phases first to last - 1, with all blocks meeting between two of them, but not before
// one that has the input of the one before.
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
  int first_linear;  // the first phase of that kind from `first` on
  // Where a device can bring memory to shared memory by itself: a warp's slots, at least 2, each
  // with a label and kDecodePieces pieces, and the room for a piece, a multiple of 16. A block then
  // has kDecodeServed threads and a warp more.
  int slots, piece_bytes;
};

}  // namespace tl::kernels
