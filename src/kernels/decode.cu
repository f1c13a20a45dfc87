// Module DECODE: one token through a whole decoder, in phases.
//
// A phase is a product with up to three matrices, attention, or the look-up of the embedding
// (gpu_decode.h). A launch does one phase or many; between two phases of a launch all its blocks
// meet, so they must all be resident. What a phase computes does not depend on how launches are
// cut. It does depend on how many blocks there are: the host shares rows among warps and splits
// keys by that number, and sums are added in the order that follows.
//
// A product's input is normed and made into bytes (or halves) by every block for itself: that takes
// less than a meeting would. Where the device can bring memory by itself, the weights of the next
// product are on their way to shared memory while blocks meet.
#define GPU_THREADS 512
#define GPU_LEAST_BLOCKS 1
#include "decode_attention.h"
#include "decode_product.h"
#include "decode_room.h"
#include "gpu.h"
#include "gpu_decode.h"
#include "gpu_together.h"
#include "quant_blocks.h"
#include "quant_words.h"

// ---- meetings

// All blocks have come here `times` times. Meanwhile the block sends for the weights of `next`,
// where there is such a product.
GPU_INLINE void meet(const DecodeStep& step, int times, const DecodeLinear* next,
                     const Room& room) {
  barrier();
  if (next != nullptr) {
    begin(*next, 0, static_cast<int>(kWarp), room);
    // A norm's weights are read once for each token, and by then are far away. Each block calls for
    // some: all of them for all would be in each other's way.
    constexpr unsigned kLine = 32;  // floats
    if (next->norm != nullptr && thread_index() == kBlockThreads / 2) {
      GPU_ROLLED
      for (unsigned at = block_index() * kLine; at < static_cast<unsigned>(next->k);
           at += block_count() * kLine) {
        call_line(next->norm + at);
      }
    }
  }
  if (thread_index() == 0) {
    const Bits32 all = step.met_before + static_cast<Bits32>(times) * block_count();
    announce(step.met);
    while (static_cast<int>(observe(step.met) - all) < 0) {
    }
  }
  barrier();
}

// ---- the embedding

template <class Format>
GPU_INLINE void embed_group(const Bits8* row, int group, float scale, float* to) {
  typename words::Words<Format>::Raw raw;
  raw.load(row, group);
  words::Words<Format> w;
  w.open(raw);
  using W = words::Words<Format>;
  GPU_UNROLLED
  for (int j = 0; j < 8; ++j) {
    const Bits32 codes = w.codes(j);
    Vec<float, 4> four;
    GPU_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const Bits32 byte = codes >> 8 * i & 255u;
      const int code =
          W::kSigned ? static_cast<int>(static_cast<signed char>(byte)) : static_cast<int>(byte);
      four.set(i,
               scale * (w.scale(j / 4) * static_cast<float>(code - W::kBias) - w.minimum(j / 4)));
    }
    store_vec(to + 4 * j, four);
  }
}

template <class T>
GPU_INLINE void embed_plain(const Bits8* row, int group, float scale, float* to) {
  const T* from = reinterpret_cast<const T*>(row) + 32 * group;
  for (int i = 0; i < 32; ++i) to[i] = scale * to_float(from[i]);
}

GPU_INLINE void embed(const DecodeEmbed& p, const DecodeStep& step) {
  Index token = *step.token;
  if (token >= p.rows) {
    if (global_thread() == 0) report_bad_index(step.fault, step.fault_tag, token, p.rows);
    token = 0;
  }
  const Bits8* row = p.table + token * p.row_bytes;
  grid_stride(p.width / 32, [&](Index at) {
    const int group = static_cast<int>(at);
    float* to = p.x + 32 * at;
    switch (p.format) {
      case 0:
        return embed_group<blocks::Q4_0>(row, group, p.scale, to);
      case 1:
        return embed_group<blocks::Q4_1>(row, group, p.scale, to);
      case 2:
        return embed_group<blocks::Q5_0>(row, group, p.scale, to);
      case 3:
        return embed_group<blocks::Q5_1>(row, group, p.scale, to);
      case 4:
        return embed_group<blocks::Q8_0>(row, group, p.scale, to);
      case 5:
        return embed_group<blocks::Q2_K>(row, group, p.scale, to);
      case 6:
        return embed_group<blocks::Q3_K>(row, group, p.scale, to);
      case 7:
        return embed_group<blocks::Q4_K>(row, group, p.scale, to);
      case 8:
        return embed_group<blocks::Q5_K>(row, group, p.scale, to);
      case 9:
        return embed_group<blocks::Q6_K>(row, group, p.scale, to);
      case 10:
        return embed_group<blocks::IQ4_NL>(row, group, p.scale, to);
      case 11:
        return embed_group<blocks::IQ4_XS>(row, group, p.scale, to);
      case 12:
        return embed_group<blocks::MXFP4>(row, group, p.scale, to);
      case kDecodeF16:
        return embed_plain<Half>(row, group, p.scale, to);
      default:
        return embed_plain<BFloat16>(row, group, p.scale, to);
    }
  });
}

// ---- the kernel

// Phases are read into shared memory ahead of their time: two after the one at hand.
struct Ticket {
  Bits64 word;
  GPU_INLINE void load(const DecodePhase* phase, bool there) {
    static_assert(sizeof(DecodePhase) % 8 == 0 && sizeof(DecodePhase) / 8 <= kDecodeThreads);
    const unsigned i = thread_index();
    if (there && i < sizeof(DecodePhase) / 8) word = reinterpret_cast<const Word*>(phase)[i].at;
  }
  GPU_INLINE void store(DecodePhase* to) const {
    const unsigned i = thread_index();
    if (i < sizeof(DecodePhase) / 8) reinterpret_cast<Word*>(to)[i].at = word;
  }

 private:
  struct GPU_MAY_ALIAS Word {
    Bits64 at;
  };
};

GPU_INLINE void all_phases(const DecodeStep& step) {
  GPU_SHARED Chunk vectors[kDecodeRoom / sizeof(Chunk)];
  GPU_SHARED float sums[kDecodeSums];
  GPU_SHARED Tile tiles[kDecodeTiles];
  GPU_SHARED Delivery deliveries[kDecodeSlots];
  GPU_SHARED Bits64 phases[4][sizeof(DecodePhase) / 8];
  const auto place = [&](int i) { return reinterpret_cast<DecodePhase*>(phases[i % 4]); };
  const Room room{vectors, sums, tiles, deliveries, static_cast<Bits8*>(dynamic_shared())};
  Ticket ticket = {};
  for (int i = step.first; i < step.first + 2 && i < step.last; ++i) {
    ticket.load(step.phases + i, true);
    ticket.store(place(i));
  }
  if (thread_index() < kDecodeSlots) deliveries[thread_index()].open();
  barrier();
  Bits32 turns = 0;
  int begun = -1;  // the product whose weights are on their way
  GPU_ROLLED
  for (int i = step.first; i < step.last; ++i) {
    const DecodePhase& phase = *place(i);
    ticket.load(step.phases + i + 2, i + 2 < step.last);
    if (phase.kind == DecodeKind::Linear) {
      if (begun != i) {
        begin(phase.linear, 0, 0, room);
        barrier();
      }
      linear(phase.linear, step, room, turns);
    } else if (phase.kind == DecodeKind::Attention) {
      attention(phase.attention, step, room);
    } else {
      embed(phase.embed, step);
    }
    if (i + 1 == step.last) break;
    ticket.store(place(i + 2));
    barrier();
    // The next product comes now, or after what is next.
    const int next = place(i + 1)->kind == DecodeKind::Linear ? i + 1 : i + 2;
    const bool known = begun != next && next < step.last;
    if (known) begun = next;
    meet(step, i + 1 - step.first, known ? &place(next)->linear : nullptr, room);
  }
}

// Where it would be all memory and no registers there is nothing here, and the host does not ask.
GPU_KERNEL void decode_step(DecodeStep step) {
  if constexpr (kManyRegisters) all_phases(step);
}
