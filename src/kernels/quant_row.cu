// Module QUANT_ROW: products of quantised matrices of many rows with one vector.
//
// Every block makes bytes of the vector, as QUANT_VECTOR's kernels have them, while its first rows
// are on their way: so a product is one launch.
//
// row_*: a warp takes a row at a time. A lane adds what it gets in the order of QUANT_VECTOR's
// kernels, and the lanes are added as there: the results have the same bits.
//
// piece_*: for formats whose 32 neighbours share words with others. A lane has 64 columns, those
// that lie in its words, for all rows, and keeps its part of the vector in registers. Rows of
// blocks whose words cannot be loaded several at a time come to shared memory aside, in whole
// lines: each load of a word by all lanes would touch every line (docs/measurements/0005).
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
  // All of x, by all threads of the block. `eight` is what this thread has loaded of it.
  GPU_INLINE void pack_all(Eight& eight, const void* x, int type, int k) const {
    const auto step = 8 * static_cast<int>(block_threads());
    int mine = 8 * static_cast<int>(thread_index());
    pack(eight, mine, k);
    GPU_ROLLED
    for (int past = step; past < k; past += step) {
      mine += step;
      eight.load(x, type, mine, k);
      pack(eight, mine, k);
    }
  }
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

// The rows of w that this block multiplies.
struct RowsOfBlock {
  Index first, end;
  GPU_INLINE explicit RowsOfBlock(const QuantProduct& p) {
    const auto number = static_cast<int>(block_index());
    first = number * p.x_row + (number < p.parts ? number : p.parts);
    end = first + p.x_row + (number < p.parts ? 1 : 0);
  }
};

template <class Format>
GPU_INLINE void multiply(const Bits8* w, const void* x, void* y, const QuantProduct& p) {
  using W = words::Words<Format>;
  constexpr int kWarps = static_cast<int>(kBlockThreads / kWarp);
  // Groups of a lane, as many as there are registers for.
  constexpr int kAhead = sizeof(typename W::Raw) <= 36 ? 4 : sizeof(typename W::Raw) <= 72 ? 2 : 1;
  const RowsOfBlock rows(p);
  const Index first = rows.first, end = rows.end;
  // The whole of small matrices, and enough of others to begin with.
  call_range<1>(w + first * p.row_bytes, w + end * p.row_bytes, w, thread_index(), kBlockThreads);
  await_earlier();

  // x first: what comes for the rows takes longer, and would keep it waiting.
  const auto k = static_cast<int>(p.k);
  Planes::Eight eight;
  eight.load(x, p.y_type, 8 * static_cast<int>(thread_index()), k);
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
  planes.pack_all(eight, x, p.y_type, k);
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

// ---- pieces of 64 columns: a quarter of a block of 256

// kCount words from an even address; the word behind them is read too.
template <int kCount>
struct EvenWords {
  Bits32 at[kCount + 1];
  GPU_INLINE void load(const Bits8* from) {
    GPU_UNROLLED
    for (int i = 0; i <= kCount; ++i) at[i] = words::word_at(from + 4 * i);
  }
  // `past` is 2 where the bytes begin in the middle of the first word, else 0.
  GPU_INLINE Bits32 word(int i, Bits32 past) const { return bytes_from(at[i], at[i + 1], past); }
};

GPU_INLINE int dot4_of(Bits32 codes, Bits32 x, int sum) {
  return dot4(static_cast<int>(codes), static_cast<int>(x), sum);
}
// The lowest byte as a number, without and with its sign. The unit that converts does a quarter of
// what others do; below 2^24 a number is what its bits are in the sum with 2^23.
GPU_INLINE float byte_of(Bits32 word) {
  return bits::float_of(0x4b000000u | (word & 255u)) - 8388608.0f;
}
GPU_INLINE float signed_byte(Bits32 word) { return byte_of(word ^ 128u) - 128.0f; }

// Sixteen neighbours of the vector in four words: half of a group of 32.
struct XWords {
  Bits32 at[4];
  GPU_INLINE void load(const Bits8* from) {
    const auto vec = load_vec<16>(from);
    GPU_UNROLLED
    for (int j = 0; j < 4; ++j) at[j] = vec.words.at[j];
  }
};

// What a lane has of the vector, and the sum of a block's piece with it. Lane `piece` of the four
// of a block.
template <class Format>
struct Piece;

// Two groups of 32, whose codes are the halves of the same bytes.
struct PieceOfPairs {
  XWords low[2], high[2];  // of each group, the former and the latter half
  float d[2], sum[2];
  int pair;
  GPU_INLINE void keep(const Planes& x, int block, int piece) {
    pair = piece;
    GPU_UNROLLED
    for (int g = 0; g < 2; ++g) {
      const int group = 8 * block + 2 * piece + g;
      low[g].load(x.low + 16 * group);
      high[g].load(x.high + 16 * group);
      const auto scale = load_vec<4>(&x.scales[group].d);
      d[g] = scale.get(0);
      sum[g] = scale.get(3);
    }
  }
  // `codes(half, j, g)`: four codes of group g, from byte 16 half + 4 j on.
  template <class Codes>
  GPU_INLINE float add(const words::Aligned<16, 4>& head, const Codes& codes) const {
    int dot[2] = {0, 0};
    GPU_UNROLLED
    for (int g = 0; g < 2; ++g) {
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) dot[g] = dot4_of(codes(0, j, g), low[g].at[j], dot[g]);
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) dot[g] = dot4_of(codes(1, j, g), high[g].at[j], dot[g]);
    }
    // Scales and minimums of both groups, a byte each.
    const int shift = 16 * (pair & 1);
    const Bits32 first = head.at[1] >> shift, second = head.at[2] >> shift;
    const Bits32 third = head.at[3] >> shift;
    const bool latter = pair >= 2;
    const Bits32 scale = latter ? (third & 0x0f0fu) | (first >> 2 & 0x3030u) : first & 0x3f3fu;
    const Bits32 least =
        latter ? (third >> 4 & 0x0f0fu) | (second >> 2 & 0x3030u) : second & 0x3f3fu;
    const float whole = byte_of(scale) * d[0] * static_cast<float>(dot[0]) +
                        byte_of(scale >> 8) * d[1] * static_cast<float>(dot[1]);
    const float less = byte_of(least) * sum[0] + byte_of(least >> 8) * sum[1];
    return words::half_of(head.at[0]) * whole - words::half_of(head.at[0] >> 16) * less;
  }
};
template <>
struct Piece<blocks::Q4_K> : PieceOfPairs {
  struct Raw {
    words::Aligned<16, 4> head;
    words::Aligned<16, 8> q;
    GPU_INLINE void load(const Bits8* block, int piece) {
      head.load(block);
      q.load(block + 16 + 32 * piece);
    }
  };
  GPU_INLINE float multiply(const Raw& raw) const {
    return add(raw.head, [&](int half, int j, int g) {
      return raw.q.at[4 * half + j] >> 4 * g & words::kNibbles;
    });
  }
};
template <>
struct Piece<blocks::Q5_K> : PieceOfPairs {
  struct Raw {
    words::Aligned<16, 4> head;
    words::Aligned<16, 8> q, fifth;
    GPU_INLINE void load(const Bits8* block, int piece) {
      head.load(block);
      fifth.load(block + 16);
      q.load(block + 48 + 32 * piece);
    }
  };
  GPU_INLINE float multiply(const Raw& raw) const {
    return add(raw.head, [&](int half, int j, int g) {
      const int i = 4 * half + j;
      return (raw.q.at[i] >> 4 * g & words::kNibbles) |
             (raw.fifth.at[i] >> (2 * pair + g) & 0x01010101u) << 4;
    });
  }
};
// Four halves of groups: sixteen bytes of upper bits serve all of them.
template <>
struct Piece<blocks::Q6_K> {
  struct Raw {
    Bits32 past, whole;
    EvenWords<4> first, second, upper;
    EvenWords<2> scales;
    GPU_INLINE void load(const Bits8* block, int piece) {
      const int side = piece >> 1, half = piece & 1;
      past = static_cast<Bits32>(reinterpret_cast<Bits64>(block) & 2u);
      const Bits8* from = block - past;
      first.load(from + 64 * side + 16 * half);
      second.load(from + 64 * side + 16 * half + 32);
      upper.load(from + 128 + 32 * side + 16 * half);
      scales.load(from + 192 + 8 * side);
      whole = words::word_at(from + 208);
    }
  };
  XWords x[4];
  float d[4], bias[4];
  int half;
  GPU_INLINE void keep(const Planes& from, int block, int piece) {
    const int side = piece >> 1;
    half = piece & 1;
    GPU_UNROLLED
    for (int g = 0; g < 4; ++g) {
      const int group = 8 * block + 4 * side + g;
      x[g].load((half != 0 ? from.high : from.low) + 16 * group);
      const auto scale = load_vec<4>(&from.scales[group].d);
      d[g] = scale.get(0);
      bias[g] = -32.0f * (half != 0 ? scale.get(2) : scale.get(1));
    }
  }
  GPU_INLINE float multiply(const Raw& raw) const {
    const Bits32 past = raw.past;
    int dot[4] = {0, 0, 0, 0};
    GPU_UNROLLED
    for (int j = 0; j < 4; ++j) {
      const Bits32 a = raw.first.word(j, past), b = raw.second.word(j, past);
      const Bits32 u = raw.upper.word(j, past);
      dot[0] = dot4_of((a & words::kNibbles) | (u << 4 & 0x30303030u), x[0].at[j], dot[0]);
      dot[1] = dot4_of((b & words::kNibbles) | (u << 2 & 0x30303030u), x[1].at[j], dot[1]);
      dot[2] = dot4_of((a >> 4 & words::kNibbles) | (u & 0x30303030u), x[2].at[j], dot[2]);
      dot[3] = dot4_of((b >> 4 & words::kNibbles) | (u >> 2 & 0x30303030u), x[3].at[j], dot[3]);
    }
    const Bits32 former = raw.scales.word(0, past) >> 8 * half;
    const Bits32 latter = raw.scales.word(1, past) >> 8 * half;
    float sum = signed_byte(former) * (d[0] * static_cast<float>(dot[0]) + bias[0]);
    sum += signed_byte(former >> 16) * (d[1] * static_cast<float>(dot[1]) + bias[1]);
    sum += signed_byte(latter) * (d[2] * static_cast<float>(dot[2]) + bias[2]);
    sum += signed_byte(latter >> 16) * (d[3] * static_cast<float>(dot[3]) + bias[3]);
    return words::half_of(raw.whole >> 8 * past) * sum;
  }
};

GPU_INLINE const Bits8* row_at(const Bits8* first, int row, unsigned row_bytes) {
  return first + static_cast<Bits64>(static_cast<unsigned>(row)) * row_bytes;
}

// What a lane has of some rows: those from `row` on are there after open(), and next() brings those
// to be multiplied after them. `block` is the lane's block of the first row.
template <class Format, bool kAside = tl::kernels::comes_aside(Format::kBytes)>
class Slices {
 public:
  using Raw = typename Piece<Format>::Raw;
  static constexpr int kRows = tl::kernels::kQuantPieceRows;
  GPU_INLINE Slices(const Bits8* block, int piece, unsigned row_bytes, int rows)
      : block_(block), row_bytes_(row_bytes), rows_(rows), piece_(piece) {}
  GPU_INLINE void open(int row) {
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) load(u, row + u);
  }
  GPU_INLINE void next(int) {}
  // Row number u of those at hand; `later` is what comes in its place.
  template <class Multiply>
  GPU_INLINE float use(int u, int, int later, const Multiply& multiply) {
    const float sum = multiply(raw_[u]);
    load(u, later);
    return sum;
  }

 private:
  GPU_INLINE void load(int u, int row) {
    raw_[u].load(row_at(block_, row < rows_ ? row : rows_ - 1, row_bytes_), piece_);
  }
  const Bits8* block_;
  unsigned row_bytes_;
  int rows_;  // that may be asked for
  int piece_;
  Raw raw_[kRows];
};

// By way of shared memory: a turn's rows are multiplied while those of the next turn come.
template <class Format>
class Slices<Format, true> {
 public:
  using Raw = typename Piece<Format>::Raw;
  static constexpr int kRows = tl::kernels::kQuantPieceRows;
  static_assert(tl::kernels::kQuantPieceTurns == 2);
  GPU_INLINE Slices(const Bits8* block, int piece, unsigned row_bytes, int rows, Bits8* memory,
                    const Bits8* slice, const Bits8* end)
      : memory_(memory),
        slice_(slice),
        end_(end),
        row_bytes_(row_bytes),
        rows_(rows),
        offset_(static_cast<int>(block - slice)),
        piece_(piece) {}
  GPU_INLINE void open(int row) { bring(row); }
  GPU_INLINE void next(int row) {
    warp_meet();  // all have read what lay where rows come now
    turn_ ^= 1;
    bring(row);
    turn_ ^= 1;
    copies_wait<1>();
    warp_meet();
  }
  template <class Multiply>
  GPU_INLINE float use(int u, int row, int, const Multiply& multiply) {
    const unsigned before = before_row(row_at(slice_, row, row_bytes_));
    Raw raw;
    raw.load(memory_ + (turn_ * kRows + u) * kRoom + before + offset_, piece_);
    if (u + 1 == kRows) turn_ ^= 1;
    return multiply(raw);
  }

 private:
  static constexpr int kRoom = tl::kernels::piece_room(static_cast<int>(kWarp), Format::kBytes);
  // What lies before the first byte of a row in the same sixteen.
  GPU_INLINE static unsigned before_row(const Bits8* at) {
    return static_cast<unsigned>(reinterpret_cast<Bits64>(at) & 15u);
  }
  GPU_INLINE void bring(int row) {
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) {
      if (row + u < rows_) {
        const Bits8* at = row_at(slice_, row + u, row_bytes_);
        const Bits8* from = at - before_row(at);
        Bits8* to = memory_ + (turn_ * kRows + u) * kRoom;
        GPU_UNROLLED
        for (int i = 0; i < kRoom; i += 16 * static_cast<int>(kWarp)) {
          const int mine = i + 16 * static_cast<int>(lane());
          if (mine < kRoom && from + mine < end_) copy_aside(to + mine, from + mine, true);
        }
      }
    }
    copies_close();
  }
  Bits8* memory_;       // of this warp
  const Bits8* slice_;  // of the first row
  const Bits8* end_;    // of all rows
  unsigned row_bytes_;
  int rows_, offset_, piece_, turn_ = 0;
};

template <class Format>
GPU_INLINE void multiply_pieces(const Bits8* w, const void* x, void* y, const QuantProduct& p) {
  constexpr int kRows = tl::kernels::kQuantPieceRows;
  static_assert(kRows == 2);
  const RowsOfBlock rows(p);
  call_range<1>(w + rows.first * p.row_bytes, w + rows.end * p.row_bytes, w, thread_index(),
                block_threads());
  await_earlier();

  const auto k = static_cast<int>(p.k);
  Planes::Eight eight;
  eight.load(x, p.y_type, 8 * static_cast<int>(thread_index()), k);
  // Warps share a row, and sets of them take rows by turns.
  const int pieces = k / 64, across = tl::kernels::piece_warps(k, static_cast<int>(kWarp));
  const auto warps = static_cast<int>(block_threads() / kWarp);
  const int sets = warps / across;
  const auto warp = static_cast<int>(warp_index());
  const int set = warp / across, column = warp % across;
  const int wanted = column * static_cast<int>(kWarp) + static_cast<int>(lane());
  const int mine = wanted < pieces ? wanted : pieces - 1;
  // Not a condition: the compiler would branch around each row, and take them one after the other.
  const Bits32 kept = wanted < pieces ? ~Bits32{0} : 0;
  auto* shared = static_cast<Bits8*>(dynamic_shared());
  const Planes planes(shared, k / 32);
  shared += tl::kernels::row_vector_bytes(k / 32);
  constexpr int kSlices = tl::kernels::slice_bytes(static_cast<int>(kWarp), Format::kBytes);
  auto* partial = reinterpret_cast<float*>(shared + warps * kSlices);

  // From here on rows are counted from the block's first.
  const auto row_bytes = static_cast<unsigned>(p.row_bytes);
  const int count = static_cast<int>(rows.end - rows.first);
  const Bits8* own_rows = w + rows.first * p.row_bytes;
  const Bits8* block = own_rows + mine / 4 * Format::kBytes;
  auto slices = [&] {
    if constexpr (kSlices != 0) {
      const Bits8* slice = own_rows + column * (static_cast<int>(kWarp) / 4 * Format::kBytes);
      return Slices<Format>(block, mine % 4, row_bytes, count, shared + warp * kSlices, slice,
                            w + p.n * p.row_bytes);
    } else {
      return Slices<Format>(block, mine % 4, row_bytes, count);
    }
  }();
  const int step = kRows * sets;
  int row = kRows * set;
  slices.open(row);
  planes.pack_all(eight, x, p.y_type, k);
  barrier();
  Piece<Format> piece;
  piece.keep(planes, mine / 4, mine % 4);
  GPU_ROLLED
  for (; row < count; row += step) {
    slices.next(row + step);
    float sum[kRows];
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) {
      sum[u] = slices.use(u, row + u, row + step + u,
                          [&](const auto& raw) { return piece.multiply(raw); });
      sum[u] = bits::float_of(bits::bits_of(sum[u]) & kept);
    }
    // Half of the lanes for each row.
    const bool latter = lane() >= kWarp / 2;
    float own = latter ? sum[1] : sum[0];
    own += shuffle_xor(latter ? sum[0] : sum[1], kWarp / 2);
    GPU_UNROLLED
    for (unsigned mask = kWarp / 4; mask > 0; mask /= 2) own += shuffle_xor(own, mask);
    const int at = row + (latter ? 1 : 0);
    if (lane() % (kWarp / 2) == 0 && at < count) partial[at * across + column] = own;
  }
  barrier();
  GPU_ROLLED
  for (auto at = static_cast<int>(thread_index()); at < count;
       at += static_cast<int>(block_threads())) {
    const float* from = partial + at * across;
    float sum = from[0];
    for (int c = 1; c < across; ++c) sum += from[c];
    words::store(y, p.y_type, rows.first + at, sum);
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

GPU_KERNEL void piece_q4_k(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply_pieces<blocks::Q4_K>(w, x, y, p);
}
GPU_KERNEL void piece_q5_k(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply_pieces<blocks::Q5_K>(w, x, y, p);
}
GPU_KERNEL void piece_q6_k(const Bits8* w, const void* x, void* y, QuantProduct p) {
  multiply_pieces<blocks::Q6_K>(w, x, y, p);
}
