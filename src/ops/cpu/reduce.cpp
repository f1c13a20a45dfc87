// Reductions on the CPU.
//
// A reduction is a small struct over the type it computes in: what it keeps, how a chunk of
// elements becomes that, how two of those become one, how the result is stored. Elements come to it
// in chunks that lie side by side and have been converted already. What chunks give is joined
// pairwise, as a binary counter carries, so that the error of a sum grows with the logarithm of its
// length. Chunks and splits depend on the shape alone: any number of threads gives the same bits.
#include "ops/cpu/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include "ops/cpu/chunks.h"
#include "ops/cpu/walk.h"

namespace tl::cpu {

namespace {

using kernels::Index;
using kernels::ReduceMode;
using kernels::Strided;
using ops::ReducePlan;

// ---- reductions

// N is float or double; or an unsigned integer, in which sums wrap as the dtype does.
template <class N>
struct SumOf {
  using Kept = N;
  Kept start() const { return 0; }
  Kept chunk(const N* x, Index n, Index) const { return chunks::sum(x, n); }
  void one(Kept& kept, N x, Index) const { kept = static_cast<N>(kept + x); }
  Kept join(Kept a, Kept b) const { return static_cast<N>(a + b); }
  N result(Kept kept) const {
    if constexpr (std::is_floating_point_v<N>) kept /= static_cast<N>(divisor);
    return kept;
  }
  double divisor;
};

template <class N>
struct ProductOf {
  using Kept = N;
  Kept start() const { return 1; }
  Kept chunk(const N* x, Index n, Index) const { return chunks::product(x, n); }
  void one(Kept& kept, N x, Index) const { kept = join(kept, x); }
  Kept join(Kept a, Kept b) const {
    if constexpr (sizeof(N) == 2) {  // the product of two would be one of signed integers
      return static_cast<N>(static_cast<unsigned>(a) * b);
    } else {
      return static_cast<N>(a * b);
    }
  }
  N result(Kept kept) const { return kept; }
};

// NaN wins.
template <class N, bool kSmallest>
struct ExtremeOf {
  using Kept = N;
  Kept start() const {
    if constexpr (std::is_floating_point_v<N>) {
      return kSmallest ? std::numeric_limits<N>::infinity() : -std::numeric_limits<N>::infinity();
    } else {
      return kSmallest ? std::numeric_limits<N>::max() : std::numeric_limits<N>::min();
    }
  }
  Kept chunk(const N* x, Index n, Index) const {
    return kSmallest ? chunks::smallest(x, n) : chunks::largest(x, n);
  }
  void one(Kept& kept, N x, Index) const { kept = join(kept, x); }
  Kept join(Kept a, Kept b) const {
    const bool better = kSmallest ? b < a : b > a;
    return better || b != b ? b : a;
  }
  N result(Kept kept) const { return kept; }
};

// The first of the best; the first NaN is better than all.
template <class N>
struct Place {
  N value;
  std::uint32_t at;
};
template <class N, bool kSmallest>
struct PlaceOf {
  using Kept = Place<N>;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  Kept start() const { return {ExtremeOf<N, kSmallest>{}.start(), kNone}; }
  Kept chunk(const N* x, Index n, Index first) const {
    const N best = ExtremeOf<N, kSmallest>{}.chunk(x, n, first);
    Index at = 0;
    if (best != best) {
      while (x[at] == x[at]) ++at;
    } else {
      while (x[at] != best) ++at;
    }
    return {best, static_cast<std::uint32_t>(first + at)};
  }
  void one(Kept& kept, N x, Index at) const {
    const bool better = kSmallest ? x < kept.value : x > kept.value;
    if (better || kept.at == kNone || (x != x && kept.value == kept.value)) {
      kept = {x, static_cast<std::uint32_t>(at)};
    }
  }
  Kept join(Kept a, Kept b) const {  // `b` comes later
    if (a.at == kNone) return b;
    const bool better = kSmallest ? b.value < a.value : b.value > a.value;
    return better || (b.value != b.value && a.value == a.value) ? b : a;
  }
  std::uint32_t result(Kept kept) const { return kept.at; }
};

// Of bytes that are 0 or 1.
struct CountOf {
  using Kept = std::int64_t;
  Kept start() const { return 0; }
  Kept chunk(const std::uint8_t* x, Index n, Index) const {
    std::uint32_t count = 0;
    for (Index i = 0; i < n; ++i) count += x[i];
    return count;
  }
  void one(Kept& kept, std::uint8_t x, Index) const { kept += x; }
  Kept join(Kept a, Kept b) const { return a + b; }
  std::int64_t result(Kept kept) const {
    if (mode == ReduceMode::Plain) return kept;
    return kept >= (mode == ReduceMode::Any ? 1 : total) ? 1 : 0;
  }
  ReduceMode mode;
  std::int64_t total;
};

// Mean and sum of squared distances from it, joined by the formula of Chan, Golub and LeVeque.
template <class N>
struct Moments {
  N count;
  N mean;
  N squares;
};
template <class N>
struct VarianceOf {
  using Kept = Moments<N>;
  Kept start() const { return {0, 0, 0}; }
  Kept chunk(const N* x, Index n, Index) const {
    const N mean = chunks::sum(x, n) / static_cast<N>(n);
    return {static_cast<N>(n), mean, chunks::squares(x, n, mean)};
  }
  void one(Kept& kept, N x, Index) const {
    kept.count += 1;
    const N distance = x - kept.mean;
    kept.mean += distance / kept.count;
    kept.squares += distance * (x - kept.mean);
  }
  Kept join(Kept a, Kept b) const {
    const N count = a.count + b.count;
    if (count == 0) return a;
    const N distance = b.mean - a.mean;
    const N share = b.count / count;
    return {count, a.mean + distance * share,
            a.squares + b.squares + distance * distance * a.count * share};
  }
  N result(Kept kept) const {
    const double left = std::max(total - correction, 0.0);
    const N variance = kept.squares / static_cast<N>(left);
    return root ? std::sqrt(variance) : variance;
  }
  double total;
  double correction;
  bool root;
};

// The largest element and the sum of exp(x - shift), where shift is that element, or 0 when it is
// infinite or NaN (so that no difference of infinities is taken).
template <class N>
struct Peak {
  N largest;
  N sum;
};
template <class N>
struct LogSumExpOf {
  using Kept = Peak<N>;
  static N shift(N largest) { return std::isfinite(largest) ? largest : N(0); }
  Kept start() const { return {-std::numeric_limits<N>::infinity(), 0}; }
  Kept chunk(const N* x, Index n, Index) const {
    const N largest = chunks::largest(x, n);
    return {largest, chunks::exp_sum(x, n, shift(largest))};
  }
  void one(Kept& kept, N x, Index) const {
    kept = join(kept, {x, std::isfinite(x) ? N(1) : std::exp(x)});
  }
  Kept join(Kept a, Kept b) const {
    const N largest = ExtremeOf<N, false>{}.join(a.largest, b.largest);
    return {largest, scaled(a, largest) + scaled(b, largest)};
  }
  N result(Kept kept) const { return shift(kept.largest) + std::log(kept.sum); }

 private:
  static N scaled(Kept kept, N largest) {
    if (kept.sum == 0 || kept.largest == largest) return kept.sum;
    return kept.sum * std::exp(shift(kept.largest) - shift(largest));
  }
};

template <class N>
struct NormOf {
  using Kept = N;
  Kept start() const {
    return mode == ReduceMode::Smallest ? std::numeric_limits<N>::infinity() : N(0);
  }
  Kept chunk(const N* x, Index n, Index first) const {
    switch (mode) {
      case ReduceMode::Square:
        return chunks::squares(x, n, N(0));
      case ReduceMode::Absolute:
        return chunks::absolute_sum(x, n);
      case ReduceMode::Largest: {
        const ExtremeOf<N, false> most{};
        return most.join(most.chunk(x, n, first), -ExtremeOf<N, true>{}.chunk(x, n, first));
      }
      default: {
        Kept kept = start();
        for (Index i = 0; i < n; ++i) one(kept, x[i], first + i);
        return kept;
      }
    }
  }
  void one(Kept& kept, N x, Index) const { kept = join(kept, term(std::abs(x))); }
  Kept join(Kept a, Kept b) const {
    if (mode == ReduceMode::Largest) return ExtremeOf<N, false>{}.join(a, b);
    if (mode == ReduceMode::Smallest) return ExtremeOf<N, true>{}.join(a, b);
    return a + b;
  }
  N result(Kept kept) const {
    if (mode == ReduceMode::Square) return std::sqrt(kept);
    if (mode == ReduceMode::Power) return static_cast<N>(std::pow(double{kept}, 1 / p));
    return kept;
  }
  ReduceMode mode;
  double p;

 private:
  N term(N x) const {  // x is not negative
    switch (mode) {
      case ReduceMode::Square:
        return x * x;
      case ReduceMode::Nonzero:
        return x != 0 ? N(1) : N(0);
      case ReduceMode::Power:
        return static_cast<N>(std::pow(double{x}, p));
      default:
        return x;
    }
  }
};

// ---- the walk

// Elements a chunk has at most: it stays in the first-level cache once converted.
constexpr Index kChunk = 2048;
// Columns that are reduced side by side: few rows have more, and memory is then read in order.
constexpr Index kColumns = 4096;
// Rows this short are not worth a chunk.
constexpr Index kShortRow = 16;
// Reduced positions that a thread takes at least where threads share an output.
constexpr Index kSplit = 1 << 16;
// Outputs that are enough to keep all threads busy without sharing any.
constexpr Index kManyOutputs = 256;

// Joins what comes in order like a binary counter: 2^k chunks become one before they meet others.
template <class R>
class Carry {
 public:
  explicit Carry(const R& op) : op_(op) {}
  void add(typename R::Kept kept) {
    for (std::uint64_t bit = 1; (count_ & bit) != 0; bit <<= 1) {
      kept = op_.join(level_[--used_], kept);
    }
    level_[used_++] = kept;
    ++count_;
  }
  typename R::Kept total() const {
    if (used_ == 0) return op_.start();
    typename R::Kept kept = level_[used_ - 1];
    for (int i = used_ - 2; i >= 0; --i) kept = op_.join(level_[i], kept);
    return kept;
  }

 private:
  const R& op_;
  typename R::Kept level_[64]{};
  int used_ = 0;
  std::uint64_t count_ = 0;
};

// Offsets of positions one after the other, in runs along the innermost dimension.
class Runs {
 public:
  Runs(const Strided<1>& walk, Index first)
      : walk_(walk), inner_(static_cast<Index>(walk.dim[0].size)) {
    Index rest = first;
    for (unsigned d = 0; d < walk.rank; ++d) {
      const Index size = static_cast<Index>(walk.dim[d].size);
      at_[d] = d + 1 < walk.rank ? rest % size : rest;
      rest /= size;
      offset_ += at_[d] * walk.stride[0][d];
    }
  }
  Index offset() const { return offset_; }
  Index left() const { return inner_ - at_[0]; }
  void advance(Index count) {
    at_[0] += count;
    offset_ += count * walk_.stride[0][0];
    for (unsigned d = 0; d + 1 < walk_.rank && at_[d] == static_cast<Index>(walk_.dim[d].size);
         ++d) {
      offset_ += walk_.stride[0][d + 1] - at_[d] * walk_.stride[0][d];
      at_[d] = 0;
      ++at_[d + 1];
    }
  }

 private:
  const Strided<1>& walk_;
  Index inner_;
  Index at_[kernels::kMaxRank] = {};
  Index offset_ = 0;
};

// Positions [begin, end) of one output.
template <class R, class T, class N>
typename R::Kept reduce_row(const R& op, const T* x, const Strided<1>& reduced, Index begin,
                            Index end, N* room) {
  const Index step = reduced.stride[0][0];
  if (reduced.rank == 1 && end - begin <= kShortRow) {
    typename R::Kept kept = op.start();
    for (Index i = begin; i < end; ++i) op.one(kept, chunks::element<N>(x[i * step]), i);
    return kept;
  }
  if (reduced.rank == 1 && end - begin <= kChunk) {
    const N* chunk = chunks::gather<N>(x + begin * step, end - begin, step, room);
    return op.chunk(chunk, end - begin, begin);
  }
  Carry<R> carry(op);
  Runs runs(reduced, begin);
  for (Index at = begin; at < end;) {
    // Short runs share a chunk.
    Index filled = 0;
    const Index want = std::min(kChunk, end - at);
    const N* chunk = room;
    while (filled < want) {
      const Index run = std::min(want - filled, runs.left());
      const N* part = chunks::gather<N>(x + runs.offset(), run, step, room + filled);
      runs.advance(run);
      if (part != room + filled) {  // not copied: side by side and of the right type already
        if (run == want) {
          chunk = part;
        } else {
          std::copy(part, part + run, room + filled);
        }
      }
      filled += run;
    }
    carry.add(op.chunk(chunk, want, at));
    at += want;
  }
  return carry.total();
}

// One element for each column. A function of its own, so that compilers see a plain loop.
template <class R, class N>
void take_row(const R& op, const N* __restrict row, Index columns, Index at,
              typename R::Kept* __restrict kept) {
  const R local = op;
  for (Index c = 0; c < columns; ++c) local.one(kept[c], row[c], at);
}

// Positions [begin, end) of `columns` outputs that lie `apart` from each other. Blocks of rows are
// joined pairwise, too.
template <class R, class T, class N>
void reduce_columns(const R& op, const T* x, Index columns, Index apart, const Strided<1>& reduced,
                    Index begin, Index end, N* room, typename R::Kept* result) {
  using Kept = typename R::Kept;
  constexpr Index kBlock = 64;
  constexpr int kLevels = 48;
  std::unique_ptr<Kept[]> levels[kLevels];
  int used = 0;
  std::uint64_t count = 0;
  Runs runs(reduced, begin);
  for (Index at = begin; at < end;) {
    if (!levels[used])
      levels[used] = std::make_unique_for_overwrite<Kept[]>(static_cast<std::size_t>(columns));
    Kept* kept = levels[used].get();
    std::fill(kept, kept + columns, op.start());
    const Index stop = std::min(at + kBlock, end);
    for (; at < stop; ++at) {
      const N* row = chunks::gather<N>(x + runs.offset(), columns, apart, room);
      take_row(op, row, columns, at, kept);
      runs.advance(1);
    }
    for (std::uint64_t bit = 1; (count & bit) != 0; bit <<= 1) {
      --used;
      Kept* below = levels[used].get();
      const Kept* above = levels[used + 1].get();
      for (Index c = 0; c < columns; ++c) below[c] = op.join(below[c], above[c]);
    }
    ++used;
    ++count;
  }
  if (used == 0) {
    std::fill(result, result + columns, op.start());
    return;
  }
  for (int level = used - 2; level >= 0; --level) {
    Kept* below = levels[level].get();
    const Kept* above = levels[level + 1].get();
    for (Index c = 0; c < columns; ++c) below[c] = op.join(below[c], above[c]);
  }
  std::copy(levels[0].get(), levels[0].get() + columns, result);
}

// T is the dtype's element, N what it is computed in, Out what the result is stored as.
template <class T, class N, class Out, class R>
void reduce_with(const R& op, const ReducePlan& plan, const Tensor& x, Tensor& out) {
  using Kept = typename R::Kept;
  const Stream stream = out.device().stream();
  const T* in = x.read<T>(stream);
  Out* to = out.write<Out>(stream);
  const Index outputs = plan.kept.count, count = plan.reduced.count;
  const Index inner = static_cast<Index>(plan.kept.dim[0].size);
  const Index apart = plan.kept.stride[0][0];
  const bool columns = inner >= 4 && count > 1 && apart < plan.reduced.stride[0][0];
  // What is done at a time: some columns of one run of outputs, or one output.
  const Index tile = columns ? std::min(inner, kColumns) : 1;
  const Index tiles_per_run = columns ? (inner + tile - 1) / tile : 1;
  const Index tiles = columns ? outputs / inner * tiles_per_run : outputs;

  const Index wanted = tiles >= kManyOutputs ? 1 : (kManyOutputs + tiles - 1) / tiles;
  const Index per_split = std::max((count + wanted - 1) / wanted,
                                   columns ? std::max<Index>(kSplit / tile, 64) : kSplit);
  const Index splits = std::max<Index>((count + per_split - 1) / per_split, 1);
  std::unique_ptr<Kept[]> partial;
  if (splits > 1) {
    partial = std::make_unique_for_overwrite<Kept[]>(static_cast<std::size_t>(outputs * splits));
  }
  const auto store = [&](Index i, Kept kept) { to[i] = convert<Out>(op.result(kept)); };
  // An input without elements has no memory, so no place in it may be computed.
  const auto at = [&](Index i) { return count == 0 ? in : in + offset(plan.kept, i); };

  const Index work = std::max<Index>(tile * std::min(per_split, count), 1);
  ThreadPool::shared().parallel_for(
      0, tiles * splits, std::max<Index>(kGrain / work, 1), [&](Index first, Index last) {
        const auto room =
            std::make_unique_for_overwrite<N[]>(static_cast<std::size_t>(std::max(kChunk, tile)));
        const auto kept = std::make_unique_for_overwrite<Kept[]>(static_cast<std::size_t>(tile));
        for (Index unit = first; unit < last; ++unit) {
          const Index t = unit / splits, split = unit % splits;
          const Index begin = split * per_split;
          const Index end = std::min(begin + per_split, count);
          Index i = t, width = 1;
          if (columns) {
            const Index column = t % tiles_per_run * tile;
            i = t / tiles_per_run * inner + column;
            width = std::min(tile, inner - column);
            reduce_columns(op, at(i), width, apart, plan.reduced, begin, end, room.get(),
                           kept.get());
          } else {
            kept[0] = reduce_row(op, at(i), plan.reduced, begin, end, room.get());
          }
          for (Index c = 0; c < width; ++c) {
            if (splits == 1) {
              store(i + c, kept[static_cast<std::size_t>(c)]);
            } else {
              partial[static_cast<std::size_t>((i + c) * splits + split)] =
                  kept[static_cast<std::size_t>(c)];
            }
          }
        }
      });
  if (splits == 1) return;
  for (Index i = 0; i < outputs; ++i) {
    Carry<R> carry(op);
    for (Index s = 0; s < splits; ++s) carry.add(partial[static_cast<std::size_t>(i * splits + s)]);
    store(i, carry.total());
  }
}

// What elements are computed in.
template <class T>
using Number = std::conditional_t<kIsSmallFloat<T>, float, T>;
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<Number<T>>>::type;

template <class F>
void visit_number(DType dtype, F&& f) {
  visit_dtype("reduce", dtype, [&]<class T> {
    if constexpr (!std::is_same_v<T, bool>) f.template operator()<T>();
  });
}

void count_nonzero(const ReducePlan& plan, const Tensor& x, Tensor& out) {
  const CountOf op{plan.mode, plan.reduced.count};
  visit_dtype("count_nonzero", x.dtype(), [&]<class T> {
    if (plan.mode == ReduceMode::Plain) {
      reduce_with<chunks::Truth<T>, std::uint8_t, std::int64_t>(op, plan, x, out);
    } else {
      reduce_with<chunks::Truth<T>, std::uint8_t, std::uint8_t>(op, plan, x, out);
    }
  });
}

}  // namespace

void reduce(const ReducePlan& plan, const Tensor& x, Tensor& out) {
  switch (plan.op) {
    case ReduceOp::Sum:
      return visit_number(x.dtype(), [&]<class T> {
        using N = Wrapping<T>;
        reduce_with<T, N, T>(SumOf<N>{plan.scalar}, plan, x, out);
      });
    case ReduceOp::Prod:
      return visit_number(x.dtype(), [&]<class T> {
        using N = Wrapping<T>;
        reduce_with<T, N, T>(ProductOf<N>{}, plan, x, out);
      });
    case ReduceOp::Extreme:
      return visit_number(x.dtype(), [&]<class T> {
        using N = Number<T>;
        if (plan.smallest) {
          reduce_with<T, N, T>(ExtremeOf<N, true>{}, plan, x, out);
        } else {
          reduce_with<T, N, T>(ExtremeOf<N, false>{}, plan, x, out);
        }
      });
    case ReduceOp::Place:
      return visit_number(x.dtype(), [&]<class T> {
        using N = Number<T>;
        if (plan.smallest) {
          reduce_with<T, N, std::uint32_t>(PlaceOf<N, true>{}, plan, x, out);
        } else {
          reduce_with<T, N, std::uint32_t>(PlaceOf<N, false>{}, plan, x, out);
        }
      });
    case ReduceOp::Count:
      return count_nonzero(plan, x, out);
    case ReduceOp::Var:
      return visit_float("var", x.dtype(), [&]<class T> {
        using N = Number<T>;
        reduce_with<T, N, T>(VarianceOf<N>{static_cast<double>(plan.reduced.count), plan.scalar,
                                           plan.mode == ReduceMode::Root},
                             plan, x, out);
      });
    case ReduceOp::LogSumExp:
      return visit_float("logsumexp", x.dtype(), [&]<class T> {
        using N = Number<T>;
        reduce_with<T, N, T>(LogSumExpOf<N>{}, plan, x, out);
      });
    case ReduceOp::Norm:
    case ReduceOp::Power:
      return visit_float("norm", x.dtype(), [&]<class T> {
        // Powers may leave the range of f32 while the norm does not.
        if (plan.op == ReduceOp::Power) {
          reduce_with<T, double, T>(NormOf<double>{plan.mode, plan.scalar}, plan, x, out);
        } else {
          using N = Number<T>;
          reduce_with<T, N, T>(NormOf<N>{plan.mode, plan.scalar}, plan, x, out);
        }
      });
  }
}

}  // namespace tl::cpu
