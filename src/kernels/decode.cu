// Module DECODE: one token through a whole decoder, in phases.
//
// A phase is a product with up to three matrices, attention, or the look-up of the embedding
// (gpu_decode.h). A launch does one phase or many; between two phases of a launch all its blocks
// meet, so they must all be resident. What a phase computes does not depend on how launches are
// cut. It does depend on how many blocks there are: the host cuts rows and keys into parts by that
// number, and sums are added in the order that follows.
//
// A product's input is normed and made into bytes (or halves) by every block for itself: that takes
// less than a meeting would. Where the device can bring memory by itself, weights are on their way
// to shared memory all the time, also while blocks meet (decode_clerk.h).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define GPU_THREADS 288  // kDecodeServed and the clerk
#else
#define GPU_THREADS 512
#endif
#define GPU_LEAST_BLOCKS 1
#include "decode_attention.h"
#include "decode_clerk.h"
#include "decode_product.h"
#include "decode_room.h"
#include "gpu.h"
#include "gpu_decode.h"
#include "gpu_together.h"
#include "quant_blocks.h"
#include "quant_words.h"

// ---- meetings

// Asks for what the next phase reads and this one does not write to be brought nearer: all blocks
// for some of it.
GPU_INLINE void call_ahead(const DecodePhase& next, const DecodeStep& step, const Room& room) {
  constexpr int kLine = 128;  // bytes
  if (next.kind == DecodeKind::Linear && next.linear.norm != nullptr) {
    constexpr unsigned kFloats = kLine / sizeof(float);
    if (thread_index() == kWarp) {
      GPU_ROLLED
      for (unsigned at = block_index() * kFloats; at < static_cast<unsigned>(next.linear.k);
           at += block_count() * kFloats) {
        call_line(next.linear.norm + at);
      }
    }
  } else if (next.kind == DecodeKind::Attention) {
    call_keys(next.attention, step, room);
  }
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

// All blocks have come to the end of the phase before `next`.
GPU_INLINE void wait_for_all(const DecodeStep& step, const DecodePhase& next) {
  const Bits32 all = step.met_before + static_cast<Bits32>(next.meetings) * block_count();
  while (static_cast<int>(observe(step.met) - all) < 0) {
  }
}

constexpr unsigned kFirst = sizeof(DecodePhase) / 8;  // threads that bring a phase

// What the threads of the phases do.
GPU_INLINE void all_phases(const DecodeStep& step, const Room& room) {
  Slots slots(step, room, warp_index(), 0);
  GPU_ROLLED
  for (int i = step.first; i < step.last; ++i) {
    const DecodePhase& phase = room.phases[i];
    if (phase.kind == DecodeKind::Linear) {
      linear(phase.linear, step, room, slots);
    } else if (phase.kind == DecodeKind::Attention) {
      attention(phase.attention, step, room);
    } else {
      embed(phase.embed, step);
    }
    if (i + 1 == step.last) break;
    // A meeting, and the phase after those that are in shared memory.
    const DecodePhase& next = room.phases[i + 1];
    const bool meets = next.kind != DecodeKind::Linear || next.linear.again == 0;
    room.meet();
    if (meets && thread_index() == 0) announce(step.met);
    Ticket<1> ticket = {};
    ticket.load(step.phases + i + 2, i + 2 < step.last, thread_index(), kFirst);
    if (meets) call_ahead(next, step, room);
    if (meets && thread_index() == 0) wait_for_all(step, next);
    ticket.store(room.phases[i + 2], thread_index(), kFirst);
    room.meet();
  }
}

GPU_INLINE void run(const DecodeStep& step) {
  GPU_SHARED Chunk vectors[kDecodeRoom / sizeof(Chunk)];
  GPU_SHARED float sums[kDecodeSums];
  GPU_SHARED float squares[kMostWarps];
  GPU_SHARED float scale;
  GPU_SHARED Delivery filled[kServed * kDecodeSlots];
  GPU_SHARED Delivery emptied[kServed * kDecodeSlots];
  GPU_SHARED Bits64 phases[kPlaces][sizeof(DecodePhase) / 8];
  GPU_SHARED Bits64 order[sizeof(DecodePhase) / 8];
  const bool served = kMustDeliver || (kDelivers && step.slots != 0);
  const int threads = served ? kDecodeServed : kDecodeThreads;
  const Room room{
      threads, threads / static_cast<int>(kWarp),     vectors, sums, squares, &scale, filled,
      emptied, reinterpret_cast<DecodePhase*>(order), {phases}};
  for (int i = step.first; i < step.first + 2 && i < step.last; ++i) {
    Ticket<1> ticket = {};
    ticket.load(step.phases + i, true, thread_index(), kFirst);
    ticket.store(room.phases[i], thread_index(), kFirst);
  }
  if (kDelivers && thread_index() < kServed * kDecodeSlots) {
    filled[thread_index()].open();
    emptied[thread_index()].open();
  }
  barrier();
  if (thread_index() < static_cast<unsigned>(threads)) {
    all_phases(step, room);
  } else if constexpr (kDelivers) {
    clerk(step, room);
  }
}

// Where it would be all memory and no registers there is nothing here, and the host does not ask.
GPU_KERNEL void decode_step(DecodeStep step) {
  await_earlier();
  if constexpr (kManyRegisters) run(step);
}
