// Module SAMPLE: the next token of each row of logits. A block has a row; the rows of a launch may
// have different options.
//
// Cuts (top-k, typical, top-p) and the draw all ask for the same: the candidate, in some order, at
// which a running sum reaches a number. Nothing is sorted for that. Over the whole vocabulary
// masses are added into bins in shared memory, by the first digit of the order and then within the
// bin that was found by the next one. When the candidates up to the first bin are few, they become
// a list in shared memory, and in a list each thread adds up what comes before its own candidate. A
// vocabulary of a language model with top-k or top-p is so read two or three times, and from then
// on there is a list. All sums are of integers (gpu_sample.h), so the list may be in any order.
//   sample_greedy  rows that take the largest logit
//   sample_drawn   any rows
//   sample_accept  tokens that were not sampled, for the penalties
#define GPU_THREADS 512
#define GPU_LEAST_BLOCKS 1
#include "gpu.h"
#include "gpu_sample.h"

using tl::kernels::kSampleThreads;
using tl::kernels::sample_counts;
using tl::kernels::SampleOptions;
using tl::kernels::SampleRow;
using tl::kernels::SampleRows;
using tl::kernels::SampleState;
using namespace tl::sampling;

constexpr unsigned kThreads = kBlockThreads;
static_assert(kThreads == kSampleThreads);
constexpr unsigned kListed = kThreads;  // candidates of a list: one per thread
constexpr unsigned kBinsEach = kBins / kThreads;
constexpr Bits64 kEverything = ~0ull;

// ---- a row

struct Row {
  const float* logits;
  const float* bias;
  const Bits32* counts;
  unsigned vocabulary;
  bool is_aligned;
};

// Elements first ... first + 3 of `count`; `missing` stands for those past the end.
template <class T>
GPU_INLINE Vec<T, 4> load_four(const T* from, unsigned first, unsigned count, bool is_aligned,
                               T missing) {
  if (is_aligned && first + 4 <= count) return load_vec<4>(from + first);
  Vec<T, 4> four;
  GPU_UNROLLED
  for (int k = 0; k < 4; ++k) {
    const unsigned at = first + static_cast<unsigned>(k);
    four.set(k, at < count ? from[at] : missing);
  }
  return four;
}

struct Keys {
  Bits32 at[4];
};

// Those of ids first ... first + 3, the logits being here already; 0 past the end.
GPU_INLINE Keys keys_of(const Row& row, const SampleOptions& options, unsigned first,
                        const Vec<float, 4>& logits) {
  float x[4];
  GPU_UNROLLED
  for (int k = 0; k < 4; ++k) x[k] = logits.get(k);
  if (row.bias != nullptr) {
    const auto bias = load_four(row.bias, first, row.vocabulary, true, 0.0f);
    GPU_UNROLLED
    for (int k = 0; k < 4; ++k) x[k] += bias.get(k);
  }
  if (row.counts != nullptr) {
    const auto counts = load_four(row.counts, first, row.vocabulary, true, Bits32{0});
    GPU_UNROLLED
    for (int k = 0; k < 4; ++k) x[k] = penalised(options, x[k], counts.get(k));
  }
  Keys keys;
  GPU_UNROLLED
  for (int k = 0; k < 4; ++k) keys.at[k] = key_of(x[k]);
  return keys;
}

GPU_INLINE Vec<float, 4> logits_of(const Row& row, unsigned first) {
  return load_four(row.logits, first, row.vocabulary, row.is_aligned, bits::float_of(0x7fc00000u));
}

// f(key, id) for the whole vocabulary and some keys of 0 after it. All threads of a block are in
// step, and a warp has ids side by side.
template <int kDeep, class F>
GPU_INLINE void for_keys(const Row& row, const SampleOptions& options, F f) {
  constexpr unsigned kStep = 4 * kThreads;
  GPU_ROLLED
  for (unsigned base = 4 * thread_index(); base - 4 * thread_index() < row.vocabulary;
       base += kDeep * kStep) {
    Vec<float, 4> logits[kDeep];  // all on their way before the first is used
    GPU_UNROLLED
    for (int j = 0; j < kDeep; ++j) {
      logits[j] = logits_of(row, base + static_cast<unsigned>(j) * kStep);
    }
    GPU_UNROLLED
    for (int j = 0; j < kDeep; ++j) {
      const unsigned first = base + static_cast<unsigned>(j) * kStep;
      const Keys keys = keys_of(row, options, first, logits[j]);
      GPU_UNROLLED
      for (int k = 0; k < 4; ++k) f(keys.at[k], first + static_cast<unsigned>(k));
    }
  }
}

// ---- what is left of it

// What is left of the vocabulary.
struct Cuts {
  Bits64 order;  // codes of candidates by their keys up to this one
  Bits64 odd;    // and by their distance from the mean
  float mean;
  Bits32 mean_top;  // the key from which depths were counted for the mean
  Bits32 top;       // the largest key
};

GPU_INLINE bool is_left(const Cuts& cuts, Bits32 key, Bits32 id) {
  if (key == 0 || code_of(~key, id) > cuts.order) return false;
  return cuts.odd == kEverything ||
         code_of(oddness(depth_of(key, cuts.mean_top), cuts.mean), id) <= cuts.odd;
}

// One of the cuts: the order in which it goes through candidates, and what it adds up. rank() and
// bin() go the same way.
struct Cut {
  enum Kind : unsigned { TopK, Typical, TopP, kCount };
  unsigned kind;
  Bits32 top;
  float mean;

  GPU_INLINE Bits32 rank(Bits32 key) const {
    return kind == Typical ? oddness(depth_of(key, top), mean) : ~key;
  }
  GPU_INLINE unsigned bin(Bits32 key) const {
    const float depth = depth_of(key, top);
    return bin_at(kind == Typical ? math::abs(depth - mean) : depth);
  }
  GPU_INLINE Bits64 mass(const Cuts& cuts, Bits32 key, Bits32 id) const {
    if (!is_left(cuts, key, id)) return 0;
    return kind == TopK ? 1 : mass_at(depth_of(key, top));
  }
  GPU_INLINE Bits64 target(const SampleOptions& options, Bits64 total) const {
    if (kind == TopK) return total < options.top_k ? total : options.top_k;
    return share(kind == Typical ? options.typical_p : options.top_p, total);
  }
};

// ---- what a block has in shared memory

struct Room {
  Bits64 bins[kBins];
  Bits64 mass[kListed];
  Bits64 code[kListed];
  Bits32 key[kListed];
  Bits32 id[kListed];
  Bits64 warp_sums[kThreads / kWarp];
  Bits64 found;
  Bits64 before;
  Bits32 listed;
  SampleState state;
  // The same for all threads; here it takes no registers.
  Row row;
  Cuts cuts;
  Cut cut;  // the one at work
};

// ---- candidates

// f(key, id) for all candidates: those of the list where there is one, else the whole vocabulary.
// The threads of a warp are in step, so that f may exchange values; the key is 0 past the end.
template <class F>
GPU_INLINE void for_candidates(const Room& room, bool has_list, unsigned first, unsigned last,
                               F f) {
  GPU_ROLLED
  for (unsigned base = first; base < last; base += kThreads) {
    const unsigned i = base + thread_index();
    Bits32 key = 0, id = i;
    if (i < last && has_list) {
      key = room.key[i];
      id = room.id[i];
    } else if (i < last) {
      const Row& row = room.row;
      float x = row.logits[i];
      if (row.bias != nullptr) x += row.bias[i];
      if (row.counts != nullptr) x = penalised(room.state.options, x, row.counts[i]);
      key = key_of(x);
    }
    f(key, id);
  }
}
template <class F>
GPU_INLINE void for_candidates(const Room& room, bool has_list, F f) {
  for_candidates(room, has_list, 0, has_list ? room.listed : room.row.vocabulary, f);
}

// ---- bins

GPU_INLINE void clear_bins(Room& room) {
  barrier();  // whoever still reads them
  for (unsigned i = 0; i < kBinsEach; ++i) room.bins[i * kThreads + thread_index()] = 0;
  barrier();
}

// Lanes often have the same bin, whose sum then goes there at once. All lanes take part.
GPU_INLINE void add_to_bin(Room& room, unsigned bin, Bits64 mass) {
  const Bits64 busy = warp_ballot(mass != 0);
  if (busy == 0) return;
  const unsigned leader = count_bits((busy & (~busy + 1)) - 1);
  const bool is_same = bin == shuffle(bin, leader);
  const Bits64 sum = warp_sum(is_same ? mass : 0);
  if (lane() == leader) atomic_add(&room.bins[bin], sum);
  if (mass != 0 && !is_same) atomic_add(&room.bins[bin], mass);
}

GPU_INLINE Bits64 sum_of_bins(Room& room) {
  barrier();
  Bits64 sum = 0;
  for (unsigned i = 0; i < kBinsEach; ++i) sum += room.bins[i * kThreads + thread_index()];
  return block_sum(sum);
}

// The first bin at which the running sum reaches `target`, from 1 to the sum of all; room.before is
// the sum before it.
GPU_INLINE unsigned find_bin(Room& room, Bits64 target) {
  barrier();
  const unsigned first = thread_index() * kBinsEach;
  Bits64 own = 0;
  for (unsigned i = 0; i < kBinsEach; ++i) own += room.bins[first + i];
  Bits64 sum = own;
  GPU_ROLLED
  for (unsigned apart = 1; apart < kWarp; apart *= 2) {
    const Bits64 other = shuffle(sum, lane() >= apart ? lane() - apart : lane());
    if (lane() >= apart) sum += other;
  }
  if (lane() == kWarp - 1) room.warp_sums[warp_index()] = sum;
  barrier();
  Bits64 before = sum - own;
  GPU_ROLLED
  for (unsigned w = 0; w < warp_index(); ++w) before += room.warp_sums[w];
  if (before < target && target - before <= own) {
    unsigned bin = first;
    GPU_ROLLED
    while (before + room.bins[bin] < target) before += room.bins[bin++];
    room.found = bin;
    room.before = before;
  }
  barrier();
  return static_cast<unsigned>(room.found);
}

// ---- lists

// Candidates up to a bin become the list, if there is room for them all.
GPU_INLINE bool make_list(Room& room, unsigned bin) {
  barrier();
  if (thread_index() == 0) room.listed = 0;
  barrier();
  for_keys<4>(room.row, room.state.options, [&](Bits32 key, Bits32 id) {
    if (key == 0 || room.cut.bin(key) > bin || !is_left(room.cuts, key, id)) return;
    const Bits32 place = atomic_add(&room.listed, Bits32{1});
    if (place >= kListed) return;
    room.key[place] = key;
    room.id[place] = id;
  });
  barrier();
  return room.listed <= kListed;
}

// The code in the list at which the running sum reaches `target`: this thread has a candidate of
// that code and mass, if any.
GPU_INLINE Bits64 select_listed(Room& room, Bits64 code, Bits64 mass, Bits64 target) {
  const unsigned t = thread_index(), count = room.listed;
  room.mass[t] = mass;
  room.code[t] = code;
  barrier();
  if (mass != 0) {
    Bits64 sum = 0;
    GPU_ROLLED
    for (unsigned i = 0; i < count; ++i) {
      if (room.code[i] <= code) sum += room.mass[i];
    }
    if (sum >= target && sum - mass < target) room.found = code;
  }
  barrier();
  return room.found;
}

// ---- cuts

// The last code that the cut leaves. Where there is no list, and candidates up to there are few
// enough for one, they become the list.
GPU_INLINE Bits64 last_left(Room& room, Bits32 thread_top, bool& has_list) {
  const SampleOptions& options = room.state.options;
  const Cuts& cuts = room.cuts;
  const Cut& cut = room.cut;
  Bits64 target = 0, rest = 0;
  unsigned bin = 0;
  // For the k largest it is often enough to look at the largest of each thread, which reads a part
  // of the row: candidates below the k-th of these are not among the k largest.
  GPU_ROLLED
  for (bool by_threads = cut.kind == Cut::TopK; !has_list; by_threads = false) {
    clear_bins(room);
    if (by_threads) {
      add_to_bin(room, thread_top != 0 ? cut.bin(thread_top) : 0, thread_top != 0 ? 1 : 0);
    } else {
      for_candidates(room, false, [&](Bits32 key, Bits32 id) {
        const Bits64 mass = cut.mass(cuts, key, id);
        add_to_bin(room, mass != 0 ? cut.bin(key) : 0, mass);
      });
    }
    const Bits64 total = sum_of_bins(room);
    if (by_threads && total < options.top_k) continue;
    target = cut.target(options, total);
    bin = find_bin(room, target);
    rest = target - room.before;
    has_list = make_list(room, bin);
    if (!by_threads) break;
  }
  if (has_list) {
    Bits64 code = 0, mass = 0;
    if (thread_index() < room.listed) {
      const Bits32 key = room.key[thread_index()], id = room.id[thread_index()];
      code = code_of(cut.rank(key), id);
      mass = cut.mass(cuts, key, id);
    }
    if (target == 0) target = cut.target(options, block_sum(mass));  // there was a list
    return select_listed(room, code, mass, target);
  }
  // Digit by digit within the bin: 11, 11 and 10 bits of the rank, twice 11 of the id.
  Bits64 prefix = 0;
  unsigned shift = 32 + tl::kernels::kSampleIdBits;
  GPU_ROLLED
  for (unsigned digit = 0; digit < 5; ++digit) {
    const unsigned above = shift;
    shift -= digit == 2 ? 10 : 11;
    clear_bins(room);
    for_candidates(room, false, [&](Bits32 key, Bits32 id) {
      const Bits64 code = code_of(cut.rank(key), id);
      const bool fits = key != 0 && code >> above == prefix && cut.bin(key) == bin;
      const unsigned place = static_cast<unsigned>(code >> shift) & ((1u << (above - shift)) - 1);
      add_to_bin(room, place, fits ? cut.mass(cuts, key, id) : 0);
    });
    prefix = prefix << (above - shift) | find_bin(room, rest);
    rest -= room.before;
  }
  return prefix;
}

GPU_INLINE float mean_of(Room& room, bool has_list) {
  const Cuts& cuts = room.cuts;
  Bits64 total = 0, weighted = 0;
  for_candidates(room, has_list, [&](Bits32 key, Bits32 id) {
    if (!is_left(cuts, key, id)) return;
    const float depth = depth_of(key, cuts.top);
    const float e = tl::elementary::exp(-depth);
    total += mass_of(e);
    weighted += weighted_depth_of(e, depth);
  });
  total = block_sum(total);
  return mean_depth(block_sum(weighted), total);
}

GPU_INLINE Bits32 top_left(Room& room, bool has_list) {
  Bits32 top = 0;
  for_candidates(room, has_list, [&](Bits32 key, Bits32 id) {
    if (key > top && is_left(room.cuts, key, id)) top = key;
  });
  return block_max(top);
}

// ---- the draw

// Candidates in the order of their ids. With no list a bin has first 2048 of them and then one.
GPU_INLINE unsigned draw_token(Room& room, bool has_list) {
  const SampleOptions& options = room.state.options;
  const Cuts& cuts = room.cuts;
  constexpr unsigned kShift = 11;
  static_assert(kBins == 1u << kShift && 2 * kShift == tl::kernels::kSampleIdBits);
  const auto drawn_mass = [&](Bits32 key, Bits32 id) -> Bits64 {
    if (!is_left(cuts, key, id)) return 0;
    const float depth = depth_of(key, cuts.top);
    if (options.least != 0 && mass_at(depth) < options.least) return 0;
    return mass_at(math::mul(depth, options.inverse_temperature));
  };
  Bits64 own_mass = 0, own_id = 0;  // of the list
  if (!has_list) clear_bins(room);
  for_candidates(room, has_list, [&](Bits32 key, Bits32 id) {
    const Bits64 mass = drawn_mass(key, id);
    if (has_list) {
      own_mass = mass;
      own_id = id;
    } else {
      add_to_bin(room, (id >> kShift) & (kBins - 1), mass);
    }
  });
  const Bits64 total = has_list ? block_sum(own_mass) : sum_of_bins(room);
  const Bits64 target = draw(options.seed, room.state.step, total);
  if (has_list) return static_cast<unsigned>(select_listed(room, own_id, own_mass, target));
  const unsigned first = find_bin(room, target) << kShift;
  const Bits64 rest = target - room.before;
  clear_bins(room);
  const unsigned end = room.row.vocabulary - first < kBins ? room.row.vocabulary : first + kBins;
  for_candidates(room, false, first, end, [&](Bits32 key, Bits32 id) {
    if (key != 0) room.bins[id - first] = drawn_mass(key, id);
  });
  return first + find_bin(room, rest);
}

GPU_INLINE unsigned pick(Room& room, Bits32 top, Bits32 thread_top) {
  const SampleOptions& options = room.state.options;
  const bool is_first = thread_index() == 0;
  if (is_first) room.cuts = {kEverything, kEverything, 0.0f, 0, top};
  bool has_list = false;
  GPU_ROLLED
  for (unsigned kind = 0; kind < Cut::kCount; ++kind) {
    const bool is_on = kind == Cut::TopK      ? options.top_k != 0
                       : kind == Cut::Typical ? options.typical_p != 0
                                              : options.top_p != 0;
    if (!is_on) continue;
    barrier();
    if (is_first) room.cut = {kind, room.cuts.top, 0.0f};
    if (kind == Cut::Typical) {
      const float mean = mean_of(room, has_list);
      if (is_first) room.cut.mean = mean;
    }
    barrier();
    const Bits64 last = last_left(room, thread_top, has_list);
    barrier();
    if (is_first && kind != Cut::Typical) room.cuts.order = last;
    if (kind != Cut::Typical) continue;
    if (is_first) {
      room.cuts.odd = last;
      room.cuts.mean = room.cut.mean;
      room.cuts.mean_top = room.cut.top;
    }
    barrier();
    const Bits32 left = top_left(room, has_list);  // the largest may have gone
    if (is_first) room.cuts.top = left;
  }
  barrier();
  return draw_token(room, has_list);
}

// ---- tokens

// One more token; the oldest of a full ring goes.
GPU_INLINE void count_token(SampleState* state, unsigned vocabulary, unsigned token) {
  Bits32* counts = sample_counts(state);
  const unsigned window = state->options.window, next = state->next;
  if (window != 0) {
    Bits32* ring = counts + vocabulary;
    if (state->kept == window) {
      counts[ring[next]] -= 1;
    } else {
      state->kept += 1;
    }
    ring[next] = token;
    state->next = next + 1 == window ? 0 : next + 1;
  }
  counts[token] += 1;
}

// Largest keys win, then the lowest id.
struct Best {
  Bits32 key = 0;
  Bits32 id = 0;

  GPU_INLINE void take(Bits32 other_key, Bits32 other_id) {  // ids come in order
    if (other_key <= key) return;
    key = other_key;
    id = other_id;
  }
  GPU_INLINE Bits64 code() const { return static_cast<Bits64>(key) << 32 | (~id & 0xffffffffu); }
};

// `room` is null where every row takes the largest logit.
GPU_INLINE void sample_row(Room* room, const float* logits, Bits32* out, const SampleRows& rows) {
  await_earlier();
  SampleState* state = rows.at[block_index()].state;
  const SampleOptions& options = state->options;
  Row row;
  row.vocabulary = rows.vocabulary;
  row.logits = logits + static_cast<Index>(block_index()) * rows.vocabulary;
  row.bias = rows.at[block_index()].bias;
  row.counts = options.penalised != 0 ? sample_counts(state) : nullptr;
  row.is_aligned = is_vec_aligned<4>(row.logits);

  Best best;
  for_keys<8>(row, options, [&](Bits32 key, Bits32 id) { best.take(key, id); });
  const Bits64 code = block_reduce(best.code(), Max{});
  const Bits32 top = static_cast<Bits32>(code >> 32);
  unsigned token = ~static_cast<Bits32>(code);
  if (room != nullptr && top != 0 && options.greedy == 0) {
    if (thread_index() == 0) {
      room->state = *state;
      room->row = row;
    }
    barrier();
    token = pick(*room, top, best.key);
  }
  if (thread_index() != 0) return;
  state->step += 1;
  if (top == 0) {
    report_bad_index(rows.fault, rows.tag, -1, rows.vocabulary);
    token = 0;
  } else if (options.penalised != 0) {
    count_token(state, rows.vocabulary, token);
  }
  out[block_index()] = token;
}

GPU_KERNEL void sample_greedy(const float* logits, Bits32* out, SampleRows rows) {
  sample_row(nullptr, logits, out, rows);
}

GPU_KERNEL void sample_drawn(const float* logits, Bits32* out, SampleRows rows) {
  GPU_SHARED Room room;
  sample_row(&room, logits, out, rows);
}

// One block. At most as many tokens as the window has.
GPU_KERNEL void sample_accept(const Bits32* tokens, unsigned count, SampleState* state,
                              unsigned vocabulary) {
  await_earlier();
  Bits32* counts = sample_counts(state);
  const unsigned window = state->options.window, next = state->next, kept = state->kept;
  if (window != 0) {
    Bits32* ring = counts + vocabulary;
    const unsigned gone = count > window - kept ? count - (window - kept) : 0;
    const unsigned oldest = next >= kept ? next - kept : next + window - kept;
    GPU_ROLLED
    for (unsigned i = thread_index(); i < gone; i += kThreads) {
      const unsigned place = oldest + i < window ? oldest + i : oldest + i - window;
      atomic_add(&counts[ring[place]], ~Bits32{0});  // one less
    }
    barrier();
    GPU_ROLLED
    for (unsigned i = thread_index(); i < count; i += kThreads) {
      ring[next + i < window ? next + i : next + i - window] = tokens[i];
    }
    if (thread_index() == 0) {
      state->next = next + count < window ? next + count : next + count - window;
      state->kept = kept + count - gone;
    }
  }
  GPU_ROLLED
  for (unsigned i = thread_index(); i < count; i += kThreads) {
    atomic_add(&counts[tokens[i]], Bits32{1});
  }
}
