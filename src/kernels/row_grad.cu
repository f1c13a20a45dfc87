// Module ROW_GRAD: gradients of softmax, of cross entropy and of rms and layer norms, over rows
// without gaps. A warp takes a short row, a block a long one; what a row is read for again comes
// from the caches. Everything is computed in f32 (f64 for f64) and rounded once. 256 threads per
// block, any grid.
#include "gpu.h"
#include "row_ids.h"
#include "row_math.h"

// Calls f(row, first, step, reduce) for each row: a thread takes elements first, first + step, ...,
// and reduce(x) is the sum of all threads' x. Every thread of a team is in every call.
template <class F>
GPU_INLINE void for_each_row(Index rows, unsigned by_block, F f) {
  if (by_block) {
    GPU_ROLLED
    for (Index row = block_index(); row < rows; row += block_count()) {
      f(row, thread_index(), block_threads(), [](auto x) { return block_sum(x); });
    }
    return;
  }
  const unsigned teams = block_threads() / kWarp;
  GPU_ROLLED
  for (Index row = static_cast<Index>(block_index()) * teams + warp_index(); row < rows;
       row += static_cast<Index>(block_count()) * teams) {
    f(row, lane(), kWarp, [](auto x) { return warp_sum(x); });
  }
}

// y is the result: y (g - sum(g y)), or g - exp(y) sum(g) for a logarithm.
template <class T, class A = Accumulator<T>>
GPU_INLINE void softmax_grad(const T* y, const T* g, T* out, Index rows, Index n,
                             unsigned logarithm, unsigned by_block) {
  await_earlier();
  for_each_row(rows, by_block, [&](Index row, unsigned first, unsigned step, auto reduce) {
    const T *of = y + row * n, *with = g + row * n;
    T* to = out + row * n;
    A sum = A(0);
    GPU_ROLLED
    for (Index i = first; i < n; i += step) {
      sum += logarithm ? widen(with[i]) : widen(with[i]) * widen(of[i]);
    }
    sum = reduce(sum);
    GPU_ROLLED
    for (Index i = first; i < n; i += step) {
      const A v = widen(of[i]), d = widen(with[i]);
      to[i] = narrow<T>(logarithm ? d - math::exp(v) * sum : v * (d - sum));
    }
  });
}

// The gradients of logits from those of the losses: of each row the softmax, less the share that
// its target has of every class, times the row's own; zeros for rows that do not count. What the
// softmax divides by was found with the losses. Logits may have gaps.
template <class T>
struct CrossEntropyGrad {
  const T* in;
  T* out;
  const Accumulator<T>* g;        // (rows)
  const Accumulator<T>* counted;  // (rows): 1 or 0
  const Accumulator<T>* kept;     // (2, rows): the largest logit, and the sum of exp(x - largest)
  Ids ids;
  Index rows;
  Index n;
  Index row_step;  // of the logits
  Index step;
  double smoothing;
};

template <class T, class A = Accumulator<T>>
GPU_INLINE void cross_entropy_grad(const CrossEntropyGrad<T>& a) {
  await_earlier();
  constexpr int kEach = 16 / sizeof(T);
  const Index n = a.n;
  const A share = static_cast<A>(a.smoothing) / static_cast<A>(n);
  const A own = A(1) - static_cast<A>(a.smoothing);
  GPU_ROLLED
  for (Index row = block_index(); row < a.rows; row += block_count()) {
    const T* from = a.in + row * a.row_step;
    T* to = a.out + row * n;
    const bool live = a.counted[row] != A(0);
    const A g = live ? a.g[row] : A(0), most = a.kept[row];
    const A scale = A(1) / a.kept[a.rows + row];
    const Index target = live ? a.ids.get(row) : -1;
    const auto slope = [&](A x, Index i) {
      A p = math::exp(x - most) * scale - share;
      if (i == target) p -= own;
      return narrow<T>(live ? p * g : A(0));
    };
    const bool whole = a.step == 1 && is_vec_aligned<kEach>(from) && is_vec_aligned<kEach>(to);
    const Index vectors = whole ? n / kEach : 0;
    GPU_ROLLED
    for (Index at = thread_index(); at < vectors; at += block_threads()) {
      const Vec<T, kEach> x = load_vec<kEach>(from + at * kEach);
      Vec<T, kEach> y;
      GPU_UNROLLED
      for (int k = 0; k < kEach; ++k) y.set(k, slope(widen(x.get(k)), at * kEach + k));
      store_vec(to + at * kEach, y);
    }
    GPU_ROLLED
    for (Index i = vectors * kEach + thread_index(); i < n; i += block_threads()) {
      to[i] = slope(widen(from[i * a.step]), i);
    }
  }
}

// The input, the gradient of the result, a weight or null, and the gradient of the input; what each
// row is shifted and scaled by goes along for the gradient of the weight.
template <class T>
struct NormGrad {
  const T* x;
  const T* g;
  const T* weight;
  T* out;
  Accumulator<T>* means;
  Accumulator<T>* scales;
  Index rows;
  Index n;
  double epsilon;
  unsigned centered;
};

template <class T, class A = Accumulator<T>>
GPU_INLINE void norm_grad(const NormGrad<T>& a, unsigned by_block) {
  await_earlier();
  const Index n = a.n;
  const A count = static_cast<A>(n);
  for_each_row(a.rows, by_block, [&](Index row, unsigned first, unsigned step, auto reduce) {
    const T *x = a.x + row * n, *g = a.g + row * n;
    T* to = a.out + row * n;
    const auto weighted = [&](Index i) {
      const A d = widen(g[i]);
      return a.weight == nullptr ? d : d * widen(a.weight[i]);
    };
    A mean = A(0);
    if (a.centered) {
      GPU_ROLLED
      for (Index i = first; i < n; i += step) mean += widen(x[i]);
      mean = reduce(mean) / count;
    }
    A squares = A(0), sum = A(0), product = A(0);
    GPU_ROLLED
    for (Index i = first; i < n; i += step) {
      const A off = widen(x[i]) - mean, d = weighted(i);
      squares += off * off;
      sum += d;
      product += d * off;
    }
    const A scale = A(1) / math::sqrt(reduce(squares) / count + static_cast<A>(a.epsilon));
    const A shift = a.centered ? reduce(sum) / count : A(0);
    const A slope = reduce(product) / count * scale * scale;
    GPU_ROLLED
    for (Index i = first; i < n; i += step) {
      to[i] = narrow<T>((weighted(i) - shift - (widen(x[i]) - mean) * slope) * scale);
    }
    if (first == 0) {
      a.means[row] = mean;
      a.scales[row] = scale;
    }
  });
}

// Sums over `each` rows at a time of g (x - mean) scale and of g: (parts, n), for a last sum over
// the parts. Blocks of 32 columns and 8 rows side by side; a block for each part of each 32
// columns.
template <class T>
struct NormWeightGrad {
  const T* x;
  const T* g;
  const Accumulator<T>* means;
  const Accumulator<T>* scales;
  Accumulator<T>* weights;
  Accumulator<T>* biases;
  Index rows;
  Index n;
  Index each;
};

template <class T, class A = Accumulator<T>>
GPU_INLINE void norm_weight_grad(const NormWeightGrad<T>& a) {
  await_earlier();
  constexpr unsigned kColumns = 32, kRows = 8;
  GPU_SHARED A weight_of[kRows][kColumns];
  GPU_SHARED A bias_of[kRows][kColumns];
  const unsigned across = thread_index() % kColumns, down = thread_index() / kColumns;
  const Index blocks = (a.n + kColumns - 1) / kColumns, parts = (a.rows + a.each - 1) / a.each;
  GPU_ROLLED
  for (Index block = block_index(); block < blocks * parts; block += block_count()) {
    const Index column = block % blocks * kColumns + across, part = block / blocks;
    const Index last = (part + 1) * a.each < a.rows ? (part + 1) * a.each : a.rows;
    A weight = A(0), bias = A(0);
    GPU_ROLLED
    for (Index row = part * a.each + down; row < last && column < a.n; row += kRows) {
      const A d = widen(a.g[row * a.n + column]);
      weight += d * (widen(a.x[row * a.n + column]) - a.means[row]) * a.scales[row];
      bias += d;
    }
    weight_of[down][across] = weight;
    bias_of[down][across] = bias;
    barrier();
    if (down == 0 && column < a.n) {
      for (unsigned r = 1; r < kRows; ++r) {
        weight += weight_of[r][across];
        bias += bias_of[r][across];
      }
      a.weights[part * a.n + column] = weight;
      a.biases[part * a.n + column] = bias;
    }
    barrier();
  }
}

// ---- the kernels

GPU_KERNEL void softmax_grad_f8e4m3(const Float8* y, const Float8* g, Float8* out, Index rows,
                                    Index n, unsigned logarithm, unsigned by_block) {
  softmax_grad(y, g, out, rows, n, logarithm, by_block);
}
GPU_KERNEL void cross_entropy_grad_f8e4m3(CrossEntropyGrad<Float8> arguments) {
  cross_entropy_grad(arguments);
}
GPU_KERNEL void norm_grad_f8e4m3(NormGrad<Float8> arguments, unsigned by_block) {
  norm_grad(arguments, by_block);
}
GPU_KERNEL void norm_weight_grad_f8e4m3(NormWeightGrad<Float8> arguments) {
  norm_weight_grad(arguments);
}

GPU_KERNEL void softmax_grad_f16(const Half* y, const Half* g, Half* out, Index rows, Index n,
                                 unsigned logarithm, unsigned by_block) {
  softmax_grad(y, g, out, rows, n, logarithm, by_block);
}
GPU_KERNEL void cross_entropy_grad_f16(CrossEntropyGrad<Half> arguments) {
  cross_entropy_grad(arguments);
}
GPU_KERNEL void norm_grad_f16(NormGrad<Half> arguments, unsigned by_block) {
  norm_grad(arguments, by_block);
}
GPU_KERNEL void norm_weight_grad_f16(NormWeightGrad<Half> arguments) {
  norm_weight_grad(arguments);
}

GPU_KERNEL void softmax_grad_bf16(const BFloat16* y, const BFloat16* g, BFloat16* out, Index rows,
                                  Index n, unsigned logarithm, unsigned by_block) {
  softmax_grad(y, g, out, rows, n, logarithm, by_block);
}
GPU_KERNEL void cross_entropy_grad_bf16(CrossEntropyGrad<BFloat16> arguments) {
  cross_entropy_grad(arguments);
}
GPU_KERNEL void norm_grad_bf16(NormGrad<BFloat16> arguments, unsigned by_block) {
  norm_grad(arguments, by_block);
}
GPU_KERNEL void norm_weight_grad_bf16(NormWeightGrad<BFloat16> arguments) {
  norm_weight_grad(arguments);
}

GPU_KERNEL void softmax_grad_f32(const float* y, const float* g, float* out, Index rows, Index n,
                                 unsigned logarithm, unsigned by_block) {
  softmax_grad(y, g, out, rows, n, logarithm, by_block);
}
GPU_KERNEL void cross_entropy_grad_f32(CrossEntropyGrad<float> arguments) {
  cross_entropy_grad(arguments);
}
GPU_KERNEL void norm_grad_f32(NormGrad<float> arguments, unsigned by_block) {
  norm_grad(arguments, by_block);
}
GPU_KERNEL void norm_weight_grad_f32(NormWeightGrad<float> arguments) {
  norm_weight_grad(arguments);
}

GPU_KERNEL void softmax_grad_f64(const double* y, const double* g, double* out, Index rows, Index n,
                                 unsigned logarithm, unsigned by_block) {
  softmax_grad(y, g, out, rows, n, logarithm, by_block);
}
GPU_KERNEL void cross_entropy_grad_f64(CrossEntropyGrad<double> arguments) {
  cross_entropy_grad(arguments);
}
GPU_KERNEL void norm_grad_f64(NormGrad<double> arguments, unsigned by_block) {
  norm_grad(arguments, by_block);
}
GPU_KERNEL void norm_weight_grad_f64(NormWeightGrad<double> arguments) {
  norm_weight_grad(arguments);
}
