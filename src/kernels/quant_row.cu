// Module QUANT_ROW: products of quantised matrices of many rows with one vector.
//
// Every block makes bytes of the vector, as QUANT_VECTOR's kernels have them, while its first rows
// are on their way: so a product is one launch. A warp takes a row at a time. A lane adds what it
// gets in the order of QUANT_VECTOR's kernels, and the lanes are added as there: the results have
// the same bits.
#define GPU_THREADS 512
#define GPU_LEAST_BLOCKS 2
#include "gpu.h"
#include "gpu_quant.h"
#include "gpu_together.h"
#include "quant_blocks.h"
#include "quant_dot.h"
#include "quant_words.h"

namespace blocks = tl::quant_blocks;
using tl::kernels::QuantProduct;
using tl::kernels::QuantScale;

static_assert(kBlockThreads == tl::kernels::kQuantRowThreads);

// The vector as bytes, in shared memory: 16 of each 32 in the first plane, 16 in the second.
struct Planes {
  Bits8 *low, *high;
  QuantScale* scales;
  GPU_INLINE Planes(void* memory, int groups)
      : low(static_cast<Bits8*>(memory)),
        high(low + 16 * groups),
        scales(reinterpret_cast<QuantScale*>(high + 16 * groups)) {}
  // Eight elements of x, from i on, for this thread; zeros past the end.
  struct Eight {
    float at[8];
    template <class T>
    GPU_INLINE void load(const T* x, int i, int k) {
      constexpr int kTogether = sizeof(T) == 4 ? 4 : 8;
      const bool aligned = reinterpret_cast<Bits64>(x) % 16 == 0;
      GPU_UNROLLED
      for (int j = 0; j < 8; ++j) at[j] = 0.0f;
      if (i >= k) return;
      GPU_UNROLLED
      for (int first = 0; first < 8; first += kTogether) {
        Vec<T, kTogether> from;
        if (aligned) {
          from = load_vec<kTogether>(x + i + first);
        } else {
          GPU_UNROLLED
          for (int j = 0; j < kTogether; ++j) from.set(j, x[i + first + j]);
        }
        GPU_UNROLLED
        for (int j = 0; j < kTogether; ++j) at[first + j] = to_float(from.get(j));
      }
    }
    GPU_INLINE void load(const void* x, int type, int i, int k) {
      if (type == 0) {
        load(static_cast<const float*>(x), i, k);
      } else if (type == 1) {
        load(static_cast<const Half*>(x), i, k);
      } else {
        load(static_cast<const BFloat16*>(x), i, k);
      }
    }
  };
  // By whole warps: four lanes make 32 elements.
  GPU_INLINE void pack(const Eight& eight, int i, int k) const {
    const PackedBytes<8> packed = pack_bytes(eight.at);
    if (i >= k) return;
    const int group = i / 32, within = i % 32;
    store_vec(reinterpret_cast<Bits32*>((within < 16 ? low : high) + 16 * group + within % 16),
              Vec<Bits32, 2>{{{packed.words[0], packed.words[1]}}});
    if (within == 0) scales[group] = packed.scale;
  }
};

template <class Format>
GPU_INLINE void multiply(const Bits8* w, const void* x, void* y, const QuantProduct& p) {
  using W = words::Words<Format>;
  constexpr int kWarps = static_cast<int>(kBlockThreads / kWarp);
  // Groups of a lane, as many as there are registers for.
  constexpr int kAhead = sizeof(typename W::Raw) <= 36 ? 4 : sizeof(typename W::Raw) <= 72 ? 2 : 1;
  const auto number = static_cast<int>(block_index());
  const Index first = number * p.x_row + (number < p.parts ? number : p.parts);
  const Index end = first + p.x_row + (number < p.parts ? 1 : 0);
  // The whole of small matrices, and enough of others to begin with.
  call_range<1>(w + first * p.row_bytes, w + end * p.row_bytes, w, thread_index(), kBlockThreads);
  await_earlier();

  // x first: what comes for the rows takes longer, and would keep it waiting.
  const auto k = static_cast<int>(p.k);
  const int mine = 8 * static_cast<int>(thread_index());
  Planes::Eight eight;
  eight.load(x, p.y_type, mine, k);
  const int groups = static_cast<int>(p.k / 32);
  const auto own = static_cast<int>(lane());
  // What is at hand: some groups of a row, from number `group` on.
  Index row = first + warp_index();
  int group = own;
  typename W::Raw raw[kAhead];
  const auto load = [&] {
    if (row >= end) return;
    const Bits8* from = w + row * p.row_bytes;
    GPU_UNROLLED
    for (int u = 0; u < kAhead; ++u) {
      const int wanted = group + u * static_cast<int>(kWarp);
      raw[u].load(from, wanted < groups ? wanted : groups - 1);
    }
  };
  load();
  const Planes planes(dynamic_shared(), groups);
  planes.pack(eight, mine, k);
  GPU_ROLLED
  for (int past = 8 * static_cast<int>(kBlockThreads); past < k;
       past += 8 * static_cast<int>(kBlockThreads)) {
    eight.load(x, p.y_type, past + mine, k);
    planes.pack(eight, past + mine, k);
  }
  barrier();
  float sum = 0.0f;
  GPU_ROLLED
  while (row < end) {
    GPU_UNROLLED
    for (int u = 0; u < kAhead; ++u) {
      const int wanted = group + u * static_cast<int>(kWarp);
      const int there = wanted < groups ? wanted : groups - 1;
      PackedGroup with;
      with.load(planes.low + 16 * there, planes.high + 16 * there, planes.scales + there);
      W of;
      of.open(raw[u]);
      const float more = with.add(sum, of);
      if (wanted < groups) sum = more;
    }
    const Index done = row;
    group += kAhead * static_cast<int>(kWarp);
    const bool last = group - own >= groups;
    if (last) {
      group = own;
      row += kWarps;
    }
    load();
    if (last) {
      sum = warp_sum(sum);
      if (own == 0) words::store(y, p.y_type, done, sum);
      sum = 0.0f;
    }
  }
}

GPU_KERNEL void row_q4_0(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q4_0>(w, x, y, p);
}
GPU_KERNEL void row_q4_1(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q4_1>(w, x, y, p);
}
GPU_KERNEL void row_q5_0(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q5_0>(w, x, y, p);
}
GPU_KERNEL void row_q5_1(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q5_1>(w, x, y, p);
}
GPU_KERNEL void row_q8_0(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q8_0>(w, x, y, p);
}
GPU_KERNEL void row_q2_k(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q2_K>(w, x, y, p);
}
GPU_KERNEL void row_q3_k(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q3_K>(w, x, y, p);
}
GPU_KERNEL void row_q4_k(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q4_K>(w, x, y, p);
}
GPU_KERNEL void row_q5_k(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q5_K>(w, x, y, p);
}
GPU_KERNEL void row_q6_k(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::Q6_K>(w, x, y, p);
}
GPU_KERNEL void row_iq4_nl(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::IQ4_NL>(w, x, y, p);
}
GPU_KERNEL void row_iq4_xs(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::IQ4_XS>(w, x, y, p);
}
GPU_KERNEL void row_mxfp4(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply<blocks::MXFP4>(w, x, y, p);
}
