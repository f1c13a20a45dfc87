// Module NORM: the row ops of neural networks. A row is read once and written once: a team of
// threads (part of a warp for short rows, a block for long ones) keeps it in registers, sixteen
// elements (f64: eight) to a thread, and only rows too long for that are read again. Everything is
// computed in f32 (f64 for f64) and rounded once.
//
// Rows lie anywhere: a walk gives each row's start in the input and in the output, a step the
// distance between its elements. Rows without gaps move as vectors of 16 bytes.
#define GPU_LEAST_BLOCKS 1
#include "gpu.h"
#include "row_ids.h"
#include "row_math.h"

// ---- a thread's part in a row

template <class T>
struct Part {
  using A = Accumulator<T>;
  static constexpr int kEach = 16 / sizeof(T);
  static constexpr int kHeld = sizeof(T) == 8 ? 8 : 16;  // elements that a thread keeps

  unsigned thread;   // of the team
  unsigned threads;  // in the team
  bool whole;        // the row consists of aligned vectors, here and where it is written

  // Where element k of those this thread holds lies in the row, counted from `first`.
  GPU_INLINE Index position(int k) const {
    if (whole) {
      return static_cast<Index>((static_cast<unsigned>(k / kEach) * threads + thread) * kEach +
                                static_cast<unsigned>(k % kEach));
    }
    return static_cast<Index>(static_cast<unsigned>(k) * threads + thread);
  }
  // The same, for one more pass over the elements: without this the places of all of them, and
  // which exist, would stay in registers from one pass to the next, and there are not that many.
  GPU_INLINE Part again() const { return {forgotten(thread), threads, whole}; }
  GPU_INLINE Index span() const { return static_cast<Index>(threads) * kHeld; }

  // Elements [first, first + span()) of a row of n; `missing` stands for those past the end.
  GPU_INLINE void load(A (&values)[kHeld], const T* row, Index step, Index first, Index n,
                       A missing) const {
    const Part here = again();
    if (whole) {
      GPU_UNROLLED
      for (int k = 0; k < kHeld; k += kEach) {
        const Index at = first + here.position(k);
        if (at < n) {
          const Vec<T, kEach> vec = load_vec<kEach>(row + at);
          GPU_UNROLLED
          for (int j = 0; j < kEach; ++j) values[k + j] = widen(vec.get(j));
        } else {
          GPU_UNROLLED
          for (int j = 0; j < kEach; ++j) values[k + j] = missing;
        }
      }
    } else {
      GPU_UNROLLED
      for (int k = 0; k < kHeld; ++k) {
        const Index at = first + here.position(k);
        values[k] = at < n ? widen(row[at * step]) : missing;
      }
    }
  }
  GPU_INLINE void store(const A (&values)[kHeld], T* row, Index step, Index first, Index n) const {
    const Part here = again();
    if (whole) {
      GPU_UNROLLED
      for (int k = 0; k < kHeld; k += kEach) {
        const Index at = first + here.position(k);
        if (at >= n) continue;
        Vec<T, kEach> vec;
        GPU_UNROLLED
        for (int j = 0; j < kEach; ++j) vec.set(j, narrow<T>(values[k + j]));
        store_vec(row + at, vec);
      }
    } else {
      GPU_UNROLLED
      for (int k = 0; k < kHeld; ++k) {
        const Index at = first + here.position(k);
        if (at < n) row[at * step] = narrow<T>(values[k]);
      }
    }
  }
};

// The steps between the elements of all rows.
struct Steps {
  Index n;  // elements of a row
  Index in;
  Index out;
};

template <class T>
GPU_INLINE Part<T> part_of_row(const T* in, const T* out, const Steps& steps, unsigned thread,
                               unsigned threads) {
  constexpr int kEach = Part<T>::kEach;
  const bool whole = steps.in == 1 && steps.out == 1 && steps.n % kEach == 0 &&
                     is_vec_aligned<kEach>(in) && is_vec_aligned<kEach>(out);
  return {thread, threads, whole};
}

// ---- teams

struct WarpTeam {
  unsigned width;  // a power of two, at most kWarp

  template <class A, class Op>
  GPU_INLINE A reduce(A value, Op op) const {
    GPU_ROLLED
    for (unsigned mask = width / 2; mask > 0; mask /= 2)
      value = op(value, shuffle_xor(value, mask));
    return value;
  }
};
struct BlockTeam {
  template <class A, class Op>
  GPU_INLINE A reduce(A value, Op op) const {
    return block_reduce(value, op);
  }
};

// Calls f(team, part, row, in, out, n) for each row with the warp's teams. Every lane takes part in
// every call: where there is no row left, n is 0.
template <class T, class F>
GPU_INLINE void for_rows_by_warp(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                                 unsigned width, F f) {
  const unsigned team = thread_index() / width, teams = block_threads() / width;
  GPU_ROLLED
  for (Index first = static_cast<Index>(block_index()) * teams; first < rows.count;
       first += static_cast<Index>(block_count()) * teams) {
    const Index row = first + team;
    const bool live = row < rows.count;
    const Offsets<2> at = offsets(rows, live ? row : 0);
    const T* from = in + at.at[0];
    T* to = out + at.at[1];
    f(WarpTeam{width},
      part_of_row(from, static_cast<const T*>(to), steps, thread_index() % width, width), row, from,
      to, live ? steps.n : 0);
  }
}

template <class T, class F>
GPU_INLINE void for_rows_by_block(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                                  F f) {
  GPU_ROLLED
  for (Index row = block_index(); row < rows.count; row += block_count()) {
    const Offsets<2> at = offsets(rows, row);
    const T* from = in + at.at[0];
    T* to = out + at.at[1];
    f(BlockTeam{},
      part_of_row(from, static_cast<const T*>(to), steps, thread_index(), block_threads()), row,
      from, to, steps.n);
  }
}

// ---- softmax
//
// The plain formula decides the edges: a row with a NaN or +infinity, or with nothing but
// -infinity, comes out as NaN.

template <class T, class Team, class A = Accumulator<T>>
GPU_INLINE void softmax_held(const Team& team, const Part<T>& part, const T* in, T* out,
                             const Steps& steps, Index n, bool logarithm) {
  constexpr int kHeld = Part<T>::kHeld;
  A values[kHeld];
  part.load(values, in, steps.in, 0, n, -math::infinity<A>());
  A most = values[0];
  GPU_UNROLLED
  for (int k = 1; k < kHeld; ++k) most = math::max(most, values[k]);
  most = team.reduce(most, Max{});
  A sum = A(0);
  GPU_UNROLLED
  for (int k = 0; k < kHeld; ++k) {
    values[k] -= most;
    const A e = math::exp(values[k]);
    sum += e;
    if (!logarithm) values[k] = e;
  }
  sum = team.reduce(sum, Sum{});
  if (logarithm) {
    const A shift = math::log(sum);
    GPU_UNROLLED
    for (int k = 0; k < kHeld; ++k) values[k] -= shift;
  } else {
    const A scale = A(1) / sum;
    GPU_UNROLLED
    for (int k = 0; k < kHeld; ++k) values[k] *= scale;
  }
  part.store(values, out, steps.out, 0, n);
}

template <class T>
GPU_INLINE void softmax_warp(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                             unsigned width, unsigned logarithm) {
  await_earlier();
  for_rows_by_warp(in, out, rows, steps, width,
                   [&](const WarpTeam& team, const Part<T>& part, Index, const T* from, T* to,
                       Index n) { softmax_held(team, part, from, to, steps, n, logarithm != 0); });
}

template <class T>
GPU_INLINE void softmax_block(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                              unsigned logarithm) {
  await_earlier();
  for_rows_by_block(in, out, rows, steps,
                    [&](const BlockTeam& team, const Part<T>& part, Index, const T* from, T* to,
                        Index n) { softmax_held(team, part, from, to, steps, n, logarithm != 0); });
}

// Rows too long to keep. A kernel of its own: its registers would leave room for fewer blocks of
// the other one.
template <class T, class A = Accumulator<T>>
GPU_INLINE void softmax_long(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                             unsigned logarithm) {
  await_earlier();
  for_rows_by_block(
      in, out, rows, steps,
      [&](const BlockTeam& team, const Part<T>& part, Index, const T* from, T* to, Index n) {
        constexpr int kHeld = Part<T>::kHeld;
        A values[kHeld];
        SoftSum<A> mine;
        GPU_ROLLED
        for (Index first = 0; first < n; first += part.span()) {
          part.load(values, from, steps.in, first, n, -math::infinity<A>());
          mine.add(values);
        }
        const A most = team.reduce(mine.most, Max{});
        const A sum = team.reduce(mine.part_of(most), Sum{});
        const A scale = A(1) / sum, shift = math::log(sum);
        GPU_ROLLED
        for (Index first = 0; first < n; first += part.span()) {
          part.load(values, from, steps.in, first, n, A(0));
          GPU_UNROLLED
          for (int k = 0; k < kHeld; ++k) {
            const A x = values[k] - most;
            values[k] = logarithm ? x - shift : math::exp(x) * scale;
          }
          part.store(values, to, steps.out, first, n);
        }
      });
}

// Rows whose elements lie apart while neighbouring rows lie together: 32 rows side by side, so that
// reads and writes are whole lines, and 8 threads to each.
template <class T, class A = Accumulator<T>>
GPU_INLINE void softmax_column(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                               unsigned logarithm) {
  await_earlier();
  constexpr unsigned kColumns = 32, kParts = 8, kBatch = 4;
  GPU_SHARED A most_of[kParts][kColumns];
  GPU_SHARED A sum_of[kParts][kColumns];
  const unsigned column = thread_index() % kColumns, part = thread_index() / kColumns;
  GPU_ROLLED
  for (Index first = static_cast<Index>(block_index()) * kColumns; first < rows.count;
       first += static_cast<Index>(block_count()) * kColumns) {
    const Index row = first + column;
    const bool live = row < rows.count;
    const Offsets<2> at = offsets(rows, live ? row : 0);
    const T* from = in + at.at[0];
    T* to = out + at.at[1];
    const Index n = live ? steps.n : 0;
    SoftSum<A> mine;
    GPU_ROLLED
    for (Index i = part; i < n; i += kParts * kBatch) {
      A values[kBatch];
      GPU_UNROLLED
      for (unsigned k = 0; k < kBatch; ++k) {
        const Index here = i + k * kParts;
        values[k] = here < n ? widen(from[here * steps.in]) : -math::infinity<A>();
      }
      mine.add(values);
    }
    most_of[part][column] = mine.most;
    sum_of[part][column] = mine.sum;
    barrier();
    A most = most_of[0][column], sum = A(0);
    for (unsigned p = 1; p < kParts; ++p) most = math::max(most, most_of[p][column]);
    for (unsigned p = 0; p < kParts; ++p) {
      sum += SoftSum<A>{most_of[p][column], sum_of[p][column]}.part_of(most);
    }
    barrier();
    const A scale = A(1) / sum, shift = math::log(sum);
    GPU_ROLLED
    for (Index i = part; i < n; i += kParts) {
      const A x = widen(from[i * steps.in]) - most;
      to[i * steps.out] = narrow<T>(logarithm ? x - shift : math::exp(x) * scale);
    }
  }
}

// ---- rms norm, layer norm, group norm
//
// Layer norm: the mean first, then the squares of what is left of it, both over registers. Rows
// read in pieces keep mean and squares of each piece and join them as Chan, Golub and LeVeque do,
// which loses nothing however large the mean is.

// Which weight belongs to an element: number (row % period) * channels + position / inner. Plain
// rows have period 1 and inner 1.
struct Channels {
  Index period;
  Index channels;
  Index inner;
  FastDiv fast;  // by inner, when row lengths are below 2^31; else its divisor is 0

  GPU_INLINE Index first_of(Index row) const { return period == 1 ? 0 : row % period * channels; }
  GPU_INLINE Index of(Index position) const {
    if (inner == 1) return position;
    if (fast.divisor != 0) return fast.divide(static_cast<unsigned>(position));
    return position / inner;
  }
};

template <class T>
struct NormArguments {
  const T* weight;  // may be null
  const T* bias;    // may be null
  double epsilon;
  unsigned centered;  // 1: layer norm, 0: rms norm
};

// values = (values - mean) * scale * weight + bias
template <class T, class A = Accumulator<T>, int kHeld = Part<T>::kHeld>
GPU_INLINE void apply_norm(A (&values)[kHeld], const Part<T>& part, Index first, Index n,
                           Index first_channel, const Channels& channels,
                           const NormArguments<T>& arguments, A mean, A scale) {
  GPU_UNROLLED
  for (int k = 0; k < kHeld; ++k) values[k] = (values[k] - mean) * scale;
  if (arguments.weight == nullptr && arguments.bias == nullptr) return;
  constexpr int kEach = Part<T>::kEach;
  const bool vectors = part.whole && channels.inner == 1 && first_channel == 0 &&
                       is_vec_aligned<kEach>(arguments.weight) &&
                       is_vec_aligned<kEach>(arguments.bias);
  const Part<T> here = part.again();
  if (vectors) {  // null is aligned too
    GPU_UNROLLED
    for (int k = 0; k < kHeld; k += kEach) {
      const Index at = first + here.position(k);
      if (at >= n) continue;
      if (arguments.weight != nullptr) {
        const Vec<T, kEach> vec = load_vec<kEach>(arguments.weight + at);
        GPU_UNROLLED
        for (int j = 0; j < kEach; ++j) values[k + j] *= widen(vec.get(j));
      }
      if (arguments.bias != nullptr) {
        const Vec<T, kEach> vec = load_vec<kEach>(arguments.bias + at);
        GPU_UNROLLED
        for (int j = 0; j < kEach; ++j) values[k + j] += widen(vec.get(j));
      }
    }
    return;
  }
  GPU_UNROLLED
  for (int k = 0; k < kHeld; ++k) {
    const Index at = first + here.position(k);
    if (at >= n) continue;
    const Index channel = first_channel + channels.of(at);
    if (arguments.weight != nullptr) values[k] *= widen(arguments.weight[channel]);
    if (arguments.bias != nullptr) values[k] += widen(arguments.bias[channel]);
  }
}

template <class T, class A = Accumulator<T>>
GPU_INLINE A norm_scale(A mean_of_squares, const NormArguments<T>& arguments) {
  return A(1) / math::sqrt(mean_of_squares + static_cast<A>(arguments.epsilon));
}

template <class T, class Team, class A = Accumulator<T>>
GPU_INLINE void norm_held(const Team& team, const Part<T>& part, Index row, const T* in, T* out,
                          const Steps& steps, Index n, const Channels& channels,
                          const NormArguments<T>& arguments) {
  constexpr int kHeld = Part<T>::kHeld;
  A values[kHeld];
  part.load(values, in, steps.in, 0, n, A(0));
  const A count = static_cast<A>(steps.n);
  A mean = A(0);
  if (arguments.centered) {
    A sum = A(0);
    GPU_UNROLLED
    for (int k = 0; k < kHeld; ++k) sum += values[k];
    mean = team.reduce(sum, Sum{}) / count;
  }
  A squares = A(0);
  const Part<T> here = part.again();
  GPU_UNROLLED
  for (int k = 0; k < kHeld; ++k) {
    const A off = here.position(k) < n ? values[k] - mean : A(0);
    squares += off * off;
  }
  const A scale = norm_scale<T>(team.reduce(squares, Sum{}) / count, arguments);
  apply_norm(values, part, 0, n, channels.first_of(row), channels, arguments, mean, scale);
  part.store(values, out, steps.out, 0, n);
}

template <class T>
GPU_INLINE void norm_warp(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                          unsigned width, const Channels& channels,
                          const NormArguments<T>& arguments) {
  await_earlier();
  for_rows_by_warp(
      in, out, rows, steps, width,
      [&](const WarpTeam& team, const Part<T>& part, Index row, const T* from, T* to, Index n) {
        norm_held(team, part, row, from, to, steps, n, channels, arguments);
      });
}

template <class T>
GPU_INLINE void norm_block(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                           const Channels& channels, const NormArguments<T>& arguments) {
  await_earlier();
  for_rows_by_block(
      in, out, rows, steps,
      [&](const BlockTeam& team, const Part<T>& part, Index row, const T* from, T* to, Index n) {
        norm_held(team, part, row, from, to, steps, n, channels, arguments);
      });
}

// As softmax_long.
template <class T, class A = Accumulator<T>>
GPU_INLINE void norm_long(const T* in, T* out, const Strided<2>& rows, const Steps& steps,
                          const Channels& channels, const NormArguments<T>& arguments) {
  await_earlier();
  for_rows_by_block(
      in, out, rows, steps,
      [&](const BlockTeam& team, const Part<T>& part, Index row, const T* from, T* to, Index n) {
        constexpr int kHeld = Part<T>::kHeld;
        A values[kHeld];
        A seen = A(0), mean = A(0), squares = A(0);  // squares of the distances to the mean
        GPU_ROLLED
        for (Index first = 0; first < n; first += part.span()) {
          part.load(values, from, steps.in, first, n, A(0));
          A here = A(0), sum = A(0), around = A(0);
          const Part<T> counted = part.again();
          GPU_UNROLLED
          for (int k = 0; k < kHeld; ++k) {
            if (first + counted.position(k) < n) here += A(1);
            sum += values[k];
          }
          if (here == A(0)) continue;
          const A middle = arguments.centered ? sum / here : A(0);
          const Part<T> squared = part.again();
          GPU_UNROLLED
          for (int k = 0; k < kHeld; ++k) {
            const A off = first + squared.position(k) < n ? values[k] - middle : A(0);
            around += off * off;
          }
          const A apart = middle - mean, all = seen + here;
          mean += apart * (here / all);
          squares += around + apart * apart * (seen * here / all);
          seen = all;
        }
        const A count = static_cast<A>(n);
        const A middle = team.reduce(mean * (seen / count), Sum{});
        const A apart = mean - middle;
        squares = team.reduce(squares + apart * apart * seen, Sum{});
        const A scale = norm_scale<T>(squares / count, arguments);
        const Index first_channel = channels.first_of(row);
        GPU_ROLLED
        for (Index first = 0; first < n; first += part.span()) {
          part.load(values, from, steps.in, first, n, A(0));
          apply_norm(values, part, first, n, first_channel, channels, arguments, middle, scale);
          part.store(values, to, steps.out, first, n);
        }
      });
}

// ---- batch norm with given mean and variance; operand 1 of the walk is the channel

template <class T>
struct BatchNormArguments {
  const T* mean;
  const T* variance;
  const T* weight;  // may be null
  const T* bias;    // may be null
  double epsilon;
};

template <class T, class A = Accumulator<T>>
GPU_INLINE void batch_norm(const T* in, T* out, const Strided<2>& at,
                           const BatchNormArguments<T>& arguments) {
  await_earlier();
  grid_stride(at.count, [&](Index i) {
    const Offsets<2> here = offsets(at, i);
    const Index c = here.at[1];
    A scale = A(1) / math::sqrt(widen(arguments.variance[c]) + static_cast<A>(arguments.epsilon));
    if (arguments.weight != nullptr) scale *= widen(arguments.weight[c]);
    A y = (widen(in[here.at[0]]) - widen(arguments.mean[c])) * scale;
    if (arguments.bias != nullptr) y += widen(arguments.bias[c]);
    out[i] = narrow<T>(y);
  });
}

// ---- rotary embeddings

struct RopeArguments {
  Index mate_in;  // from the first element of a pair to the second
  Index mate_out;
  Ids ids;           // positions; their `at` may be null
  Index table_step;  // from one row of the tables to the next
  Index table_rows;
  Fault* fault;
  unsigned tag;
  unsigned back;  // 1: turn the other way, as gradients do
};

// The pairs, with operands input, output, table and ids; then the elements that are not rotated.
template <class T, class A = Accumulator<T>>
GPU_INLINE void rope(const T* in, const T* cosines, const T* sines, T* out, const Strided<4>& pairs,
                     const Strided<2>& rest, Index rest_in, Index rest_out,
                     const RopeArguments& arguments) {
  await_earlier();
  grid_stride(pairs.count, [&](Index i) {
    const Offsets<4> at = offsets(pairs, i);
    Index row = 0;
    bool live = true;
    if (arguments.ids.at != nullptr) {
      row = arguments.ids.get(at.at[3]);
      live = row >= 0 && row < arguments.table_rows;
      if (!live && row != -1) {
        report_bad_index(arguments.fault, arguments.tag, as_given(row), arguments.table_rows);
      }
    }
    const Index entry = at.at[2] + (live ? row : 0) * arguments.table_step;
    const A c = live ? widen(cosines[entry]) : A(0), sine = live ? widen(sines[entry]) : A(0);
    const A s = arguments.back ? -sine : sine;
    const A a = widen(in[at.at[0]]), b = widen(in[at.at[0] + arguments.mate_in]);
    out[at.at[1]] = narrow<T>(a * c - b * s);
    out[at.at[1] + arguments.mate_out] = narrow<T>(a * s + b * c);
  });
  grid_stride(rest.count, [&](Index i) {
    const Offsets<2> at = offsets(rest, i);
    out[at.at[1] + rest_out] = in[at.at[0] + rest_in];
  });
}

// ---- gated units: the walk goes over the first half of the last dimension, in vectors of `each`

enum GluKind : unsigned { kGlu, kSwiglu };

template <class A>
GPU_INLINE A sigmoid(A x) {
  return A(1) / (A(1) + math::exp(-x));
}

template <class T, class A = Accumulator<T>>
GPU_INLINE T gated(T first, T second, unsigned kind) {
  const A a = widen(first), b = widen(second);
  return narrow<T>(kind == kSwiglu ? a * sigmoid(a) * b : a * sigmoid(b));
}

template <class T>
GPU_INLINE void glu(const T* in, T* out, const Strided<1>& at, Index half, unsigned each,
                    unsigned kind) {
  await_earlier();
  constexpr int kEach = 16 / sizeof(T);
  if (each == 1) {
    grid_stride(at.count, [&](Index i) {
      const Index here = offset(at, i);
      out[i] = gated(in[here], in[here + half], kind);
    });
    return;
  }
  grid_stride(at.count, [&](Index i) {
    const Index here = offset(at, i);
    const Vec<T, kEach> a = load_vec<kEach>(in + here), b = load_vec<kEach>(in + here + half);
    Vec<T, kEach> y;
    GPU_UNROLLED
    for (int k = 0; k < kEach; ++k) y.set(k, gated(a.get(k), b.get(k), kind));
    store_vec(out + i * kEach, y);
  });
}

// ---- cross entropy

struct TargetArguments {
  Ids ids;  // the class of each row
  Index ids_step;
  Index ignored;  // this class means "leave the row out" when has_ignored is 1
  unsigned has_ignored;
  unsigned tag;
  Fault* fault;
  double smoothing;
  // Where each row's largest logit and, `rows` further, the sum of exp(x - largest) are left for
  // its gradient; null: nowhere. Of the type of the losses.
  void* kept;
};

// Each row's loss, 0 for a row that is left out, and whether it counts (1 or 0). A block per row.
template <class T, class A = Accumulator<T>>
GPU_INLINE void cross_entropy(const T* in, A* losses, A* counted, const Strided<1>& rows,
                              const Steps& steps, const TargetArguments& targets) {
  await_earlier();
  const Index n = steps.n;
  GPU_ROLLED
  for (Index row = block_index(); row < rows.count; row += block_count()) {
    const T* from = in + offset(rows, row);
    const Index id = targets.ids.get(row * targets.ids_step);
    bool live = id >= 0 && id < n;
    if (targets.has_ignored && as_given(id) == targets.ignored) {
      live = false;
    } else if (!live && id != -1 && thread_index() == 0) {
      report_bad_index(targets.fault, targets.tag, as_given(id), n);
    }
    const Part<T> part = part_of_row(from, from, {n, steps.in, 1}, thread_index(), block_threads());
    constexpr int kHeld = Part<T>::kHeld;
    A values[kHeld];
    SoftSum<A> mine;
    A total = A(0);
    GPU_ROLLED
    for (Index first = 0; first < n && live; first += part.span()) {
      part.load(values, from, steps.in, first, n, -math::infinity<A>());
      mine.add(values);
      if (targets.smoothing != 0) {
        const Part<T> here = part.again();
        GPU_UNROLLED
        for (int k = 0; k < kHeld; ++k) {
          if (first + here.position(k) < n) total += values[k];
        }
      }
    }
    const A most = block_max(mine.most);
    const A sum = block_sum(mine.part_of(most));
    total = targets.smoothing != 0 ? block_sum(total) : A(0);
    if (thread_index() == 0) {
      // With smoothing e: -(1 - e) log p[target] - e * mean of log p.
      const A smooth = static_cast<A>(targets.smoothing);
      const A all = math::log(sum);
      const A own = live ? widen(from[id * steps.in]) - most : A(0);
      A loss = all - own;
      if (smooth != A(0)) {
        loss = (A(1) - smooth) * loss + smooth * (all + most - total / static_cast<A>(n));
      }
      losses[row] = live ? loss : A(0);
      counted[row] = live ? A(1) : A(0);
      if (targets.kept != nullptr) {
        static_cast<A*>(targets.kept)[row] = most;
        static_cast<A*>(targets.kept)[rows.count + row] = sum;
      }
    }
  }
}

// One block: the sum of the losses, or their mean over the rows that count.
template <class T, class A = Accumulator<T>>
GPU_INLINE void cross_entropy_total(const A* losses, const A* counted, T* out, Index rows,
                                    unsigned mean) {
  await_earlier();
  A sum = A(0), rest = A(0), count = A(0);
  GPU_ROLLED
  for (Index i = thread_index(); i < rows; i += block_threads()) {
    // Kahan: what the addition rounds away goes into the next one.
    const A x = losses[i] - rest, next = sum + x;
    rest = next - sum == next - sum ? (next - sum) - x : A(0);
    sum = next;
    count += counted[i];
  }
  sum = block_sum(sum);
  count = block_sum(count);
  if (thread_index() == 0) out[0] = narrow<T>(mean ? sum / count : sum);
}
// ---- the kernels

GPU_KERNEL void softmax_warp_f8e4m3(const Float8* in, Float8* out, Strided<2> rows, Steps steps,
                                    unsigned width, unsigned logarithm) {
  softmax_warp(in, out, rows, steps, width, logarithm);
}
GPU_KERNEL void softmax_block_f8e4m3(const Float8* in, Float8* out, Strided<2> rows, Steps steps,
                                     unsigned logarithm) {
  softmax_block(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_long_f8e4m3(const Float8* in, Float8* out, Strided<2> rows, Steps steps,
                                    unsigned logarithm) {
  softmax_long(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_column_f8e4m3(const Float8* in, Float8* out, Strided<2> rows, Steps steps,
                                      unsigned logarithm) {
  softmax_column(in, out, rows, steps, logarithm);
}
GPU_KERNEL void norm_warp_f8e4m3(const Float8* in, Float8* out, Strided<2> rows, Steps steps,
                                 unsigned width, Channels channels,
                                 NormArguments<Float8> arguments) {
  norm_warp(in, out, rows, steps, width, channels, arguments);
}
GPU_KERNEL void norm_block_f8e4m3(const Float8* in, Float8* out, Strided<2> rows, Steps steps,
                                  Channels channels, NormArguments<Float8> arguments) {
  norm_block(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void norm_long_f8e4m3(const Float8* in, Float8* out, Strided<2> rows, Steps steps,
                                 Channels channels, NormArguments<Float8> arguments) {
  norm_long(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void batch_norm_f8e4m3(const Float8* in, Float8* out, Strided<2> at,
                                  BatchNormArguments<Float8> arguments) {
  batch_norm(in, out, at, arguments);
}
GPU_KERNEL void rope_f8e4m3(const Float8* in, const Float8* cosines, const Float8* sines,
                            Float8* out, Strided<4> pairs, Strided<2> rest, Index rest_in,
                            Index rest_out, RopeArguments arguments) {
  rope(in, cosines, sines, out, pairs, rest, rest_in, rest_out, arguments);
}
GPU_KERNEL void glu_f8e4m3(const Float8* in, Float8* out, Strided<1> at, Index half, unsigned each,
                           unsigned kind) {
  glu(in, out, at, half, each, kind);
}
GPU_KERNEL void cross_entropy_f8e4m3(const Float8* in, float* losses, float* counted,
                                     Strided<1> rows, Steps steps, TargetArguments targets) {
  cross_entropy(in, losses, counted, rows, steps, targets);
}
GPU_KERNEL void cross_entropy_total_f8e4m3(const float* losses, const float* counted, Float8* out,
                                           Index rows, unsigned mean) {
  cross_entropy_total(losses, counted, out, rows, mean);
}

GPU_KERNEL void softmax_warp_f16(const Half* in, Half* out, Strided<2> rows, Steps steps,
                                 unsigned width, unsigned logarithm) {
  softmax_warp(in, out, rows, steps, width, logarithm);
}
GPU_KERNEL void softmax_block_f16(const Half* in, Half* out, Strided<2> rows, Steps steps,
                                  unsigned logarithm) {
  softmax_block(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_long_f16(const Half* in, Half* out, Strided<2> rows, Steps steps,
                                 unsigned logarithm) {
  softmax_long(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_column_f16(const Half* in, Half* out, Strided<2> rows, Steps steps,
                                   unsigned logarithm) {
  softmax_column(in, out, rows, steps, logarithm);
}
GPU_KERNEL void norm_warp_f16(const Half* in, Half* out, Strided<2> rows, Steps steps,
                              unsigned width, Channels channels, NormArguments<Half> arguments) {
  norm_warp(in, out, rows, steps, width, channels, arguments);
}
GPU_KERNEL void norm_block_f16(const Half* in, Half* out, Strided<2> rows, Steps steps,
                               Channels channels, NormArguments<Half> arguments) {
  norm_block(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void norm_long_f16(const Half* in, Half* out, Strided<2> rows, Steps steps,
                              Channels channels, NormArguments<Half> arguments) {
  norm_long(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void batch_norm_f16(const Half* in, Half* out, Strided<2> at,
                               BatchNormArguments<Half> arguments) {
  batch_norm(in, out, at, arguments);
}
GPU_KERNEL void rope_f16(const Half* in, const Half* cosines, const Half* sines, Half* out,
                         Strided<4> pairs, Strided<2> rest, Index rest_in, Index rest_out,
                         RopeArguments arguments) {
  rope(in, cosines, sines, out, pairs, rest, rest_in, rest_out, arguments);
}
GPU_KERNEL void glu_f16(const Half* in, Half* out, Strided<1> at, Index half, unsigned each,
                        unsigned kind) {
  glu(in, out, at, half, each, kind);
}
GPU_KERNEL void cross_entropy_f16(const Half* in, float* losses, float* counted, Strided<1> rows,
                                  Steps steps, TargetArguments targets) {
  cross_entropy(in, losses, counted, rows, steps, targets);
}
GPU_KERNEL void cross_entropy_total_f16(const float* losses, const float* counted, Half* out,
                                        Index rows, unsigned mean) {
  cross_entropy_total(losses, counted, out, rows, mean);
}

GPU_KERNEL void softmax_warp_bf16(const BFloat16* in, BFloat16* out, Strided<2> rows, Steps steps,
                                  unsigned width, unsigned logarithm) {
  softmax_warp(in, out, rows, steps, width, logarithm);
}
GPU_KERNEL void softmax_block_bf16(const BFloat16* in, BFloat16* out, Strided<2> rows, Steps steps,
                                   unsigned logarithm) {
  softmax_block(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_long_bf16(const BFloat16* in, BFloat16* out, Strided<2> rows, Steps steps,
                                  unsigned logarithm) {
  softmax_long(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_column_bf16(const BFloat16* in, BFloat16* out, Strided<2> rows, Steps steps,
                                    unsigned logarithm) {
  softmax_column(in, out, rows, steps, logarithm);
}
GPU_KERNEL void norm_warp_bf16(const BFloat16* in, BFloat16* out, Strided<2> rows, Steps steps,
                               unsigned width, Channels channels,
                               NormArguments<BFloat16> arguments) {
  norm_warp(in, out, rows, steps, width, channels, arguments);
}
GPU_KERNEL void norm_block_bf16(const BFloat16* in, BFloat16* out, Strided<2> rows, Steps steps,
                                Channels channels, NormArguments<BFloat16> arguments) {
  norm_block(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void norm_long_bf16(const BFloat16* in, BFloat16* out, Strided<2> rows, Steps steps,
                               Channels channels, NormArguments<BFloat16> arguments) {
  norm_long(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void batch_norm_bf16(const BFloat16* in, BFloat16* out, Strided<2> at,
                                BatchNormArguments<BFloat16> arguments) {
  batch_norm(in, out, at, arguments);
}
GPU_KERNEL void rope_bf16(const BFloat16* in, const BFloat16* cosines, const BFloat16* sines,
                          BFloat16* out, Strided<4> pairs, Strided<2> rest, Index rest_in,
                          Index rest_out, RopeArguments arguments) {
  rope(in, cosines, sines, out, pairs, rest, rest_in, rest_out, arguments);
}
GPU_KERNEL void glu_bf16(const BFloat16* in, BFloat16* out, Strided<1> at, Index half,
                         unsigned each, unsigned kind) {
  glu(in, out, at, half, each, kind);
}
GPU_KERNEL void cross_entropy_bf16(const BFloat16* in, float* losses, float* counted,
                                   Strided<1> rows, Steps steps, TargetArguments targets) {
  cross_entropy(in, losses, counted, rows, steps, targets);
}
GPU_KERNEL void cross_entropy_total_bf16(const float* losses, const float* counted, BFloat16* out,
                                         Index rows, unsigned mean) {
  cross_entropy_total(losses, counted, out, rows, mean);
}

GPU_KERNEL void softmax_warp_f32(const float* in, float* out, Strided<2> rows, Steps steps,
                                 unsigned width, unsigned logarithm) {
  softmax_warp(in, out, rows, steps, width, logarithm);
}
GPU_KERNEL void softmax_block_f32(const float* in, float* out, Strided<2> rows, Steps steps,
                                  unsigned logarithm) {
  softmax_block(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_long_f32(const float* in, float* out, Strided<2> rows, Steps steps,
                                 unsigned logarithm) {
  softmax_long(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_column_f32(const float* in, float* out, Strided<2> rows, Steps steps,
                                   unsigned logarithm) {
  softmax_column(in, out, rows, steps, logarithm);
}
GPU_KERNEL void norm_warp_f32(const float* in, float* out, Strided<2> rows, Steps steps,
                              unsigned width, Channels channels, NormArguments<float> arguments) {
  norm_warp(in, out, rows, steps, width, channels, arguments);
}
GPU_KERNEL void norm_block_f32(const float* in, float* out, Strided<2> rows, Steps steps,
                               Channels channels, NormArguments<float> arguments) {
  norm_block(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void norm_long_f32(const float* in, float* out, Strided<2> rows, Steps steps,
                              Channels channels, NormArguments<float> arguments) {
  norm_long(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void batch_norm_f32(const float* in, float* out, Strided<2> at,
                               BatchNormArguments<float> arguments) {
  batch_norm(in, out, at, arguments);
}
GPU_KERNEL void rope_f32(const float* in, const float* cosines, const float* sines, float* out,
                         Strided<4> pairs, Strided<2> rest, Index rest_in, Index rest_out,
                         RopeArguments arguments) {
  rope(in, cosines, sines, out, pairs, rest, rest_in, rest_out, arguments);
}
GPU_KERNEL void glu_f32(const float* in, float* out, Strided<1> at, Index half, unsigned each,
                        unsigned kind) {
  glu(in, out, at, half, each, kind);
}
GPU_KERNEL void cross_entropy_f32(const float* in, float* losses, float* counted, Strided<1> rows,
                                  Steps steps, TargetArguments targets) {
  cross_entropy(in, losses, counted, rows, steps, targets);
}
GPU_KERNEL void cross_entropy_total_f32(const float* losses, const float* counted, float* out,
                                        Index rows, unsigned mean) {
  cross_entropy_total(losses, counted, out, rows, mean);
}

GPU_KERNEL void softmax_warp_f64(const double* in, double* out, Strided<2> rows, Steps steps,
                                 unsigned width, unsigned logarithm) {
  softmax_warp(in, out, rows, steps, width, logarithm);
}
GPU_KERNEL void softmax_block_f64(const double* in, double* out, Strided<2> rows, Steps steps,
                                  unsigned logarithm) {
  softmax_block(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_long_f64(const double* in, double* out, Strided<2> rows, Steps steps,
                                 unsigned logarithm) {
  softmax_long(in, out, rows, steps, logarithm);
}
GPU_KERNEL void softmax_column_f64(const double* in, double* out, Strided<2> rows, Steps steps,
                                   unsigned logarithm) {
  softmax_column(in, out, rows, steps, logarithm);
}
GPU_KERNEL void norm_warp_f64(const double* in, double* out, Strided<2> rows, Steps steps,
                              unsigned width, Channels channels, NormArguments<double> arguments) {
  norm_warp(in, out, rows, steps, width, channels, arguments);
}
GPU_KERNEL void norm_block_f64(const double* in, double* out, Strided<2> rows, Steps steps,
                               Channels channels, NormArguments<double> arguments) {
  norm_block(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void norm_long_f64(const double* in, double* out, Strided<2> rows, Steps steps,
                              Channels channels, NormArguments<double> arguments) {
  norm_long(in, out, rows, steps, channels, arguments);
}
GPU_KERNEL void batch_norm_f64(const double* in, double* out, Strided<2> at,
                               BatchNormArguments<double> arguments) {
  batch_norm(in, out, at, arguments);
}
GPU_KERNEL void rope_f64(const double* in, const double* cosines, const double* sines, double* out,
                         Strided<4> pairs, Strided<2> rest, Index rest_in, Index rest_out,
                         RopeArguments arguments) {
  rope(in, cosines, sines, out, pairs, rest, rest_in, rest_out, arguments);
}
GPU_KERNEL void glu_f64(const double* in, double* out, Strided<1> at, Index half, unsigned each,
                        unsigned kind) {
  glu(in, out, at, half, each, kind);
}
GPU_KERNEL void cross_entropy_f64(const double* in, double* losses, double* counted,
                                  Strided<1> rows, Steps steps, TargetArguments targets) {
  cross_entropy(in, losses, counted, rows, steps, targets);
}
GPU_KERNEL void cross_entropy_total_f64(const double* losses, const double* counted, double* out,
                                        Index rows, unsigned mean) {
  cross_entropy_total(losses, counted, out, rows, mean);
}
