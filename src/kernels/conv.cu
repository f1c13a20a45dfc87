// Module CONV: convolution, pooling and resizing. Inputs have any strides, outputs are contiguous.
// 256 threads per block, any grid.
//
// A convolution is a matrix product that is never written down: rows are the output channels of a
// group, columns the output positions of all images, and the depth runs over input channels and
// taps of the kernel. A block computes a tile of rows and columns from slices of the depth that it
// stages in shared memory, fetching each input element where its tap finds it. A transposed
// convolution is the same product with other places to look: every output gathers, so nothing is
// added twice and no order changes a result. Groups with few output channels would leave most of a
// tile empty; there each thread computes one output by itself.
#include "gpu.h"
#include "gpu_conv.h"

using tl::kernels::ConvArgs;
using tl::kernels::ConvAxis;
using tl::kernels::Divider;
using tl::kernels::kPixel;
using tl::kernels::PixelArgs;
using tl::kernels::PoolArgs;
using tl::kernels::PoolAxis;
using tl::kernels::ResizeArgs;
using tl::kernels::ResizeAxis;

// What sums are kept in.
template <class T>
struct WideOf {
  using Type = float;
};
template <>
struct WideOf<double> {
  using Type = double;
};
template <class T>
using Wide = typename WideOf<T>::Type;

template <class T>
GPU_INLINE Wide<T> widen(T x) {
  return convert<Wide<T>>(x);
}

// Takes the last dimension off a position; gives the place in it.
GPU_INLINE int take(Index& rest, const Divider& by, bool narrow) {
  const Index next = by.divide(rest, narrow);
  const int here = static_cast<int>(rest - next * by.size());
  rest = next;
  return here;
}

// ---- convolution

// The output position of a column: which image, and where its taps start on each axis.
struct Column {
  Index image;
  int at[3];
};

template <bool kTransposed>
GPU_INLINE Column column_of(const ConvArgs& a, Index pixel, Index image) {
  const bool narrow = a.narrow != 0;
  int at[3];
  at[2] = take(pixel, a.by_width, narrow);
  at[1] = take(pixel, a.by_height, narrow);
  at[0] = static_cast<int>(pixel);
  Column column = {image, {}};
  for (int d = 0; d < 3; ++d) {
    const ConvAxis& axis = a.axis[d];
    column.at[d] = kTransposed ? at[d] + axis.padding : at[d] * axis.stride - axis.padding;
  }
  return column;
}

// The input position that a tap, `tap` elements into the kernel, reads; -1 when it is outside or,
// transposed, between two elements.
template <bool kTransposed>
GPU_INLINE int source(const ConvAxis& axis, int start, int tap) {
  if constexpr (!kTransposed) {
    const int at = start + tap;
    return at >= 0 && at < axis.in ? at : -1;
  } else {
    const int spread = start - tap;  // a negative one comes out of the division as something else
    const unsigned kept = static_cast<unsigned>(spread) & 0x7fffffffu;
    const unsigned at = axis.by_stride.divide(kept);
    const unsigned back = at * static_cast<unsigned>(axis.stride);
    return at < static_cast<unsigned>(axis.in) && back == static_cast<unsigned>(spread)
               ? static_cast<int>(at)
               : -1;
  }
}

// One place of the depth: an input channel and a tap.
struct Tap {
  Index x_channel;  // offset of the channel in the input
  Index weight;     // offset in the kernel
  int at[3];        // dilated
  int valid;
};

GPU_INLINE Tap tap_of(const ConvArgs& a, int k) {
  if (k >= a.depth) return {};
  const unsigned channel = a.by_taps.divide(static_cast<unsigned>(k));
  const unsigned tap = static_cast<unsigned>(k) - channel * a.by_taps.divisor;
  const unsigned z = a.by_plane_taps.divide(tap);
  const unsigned in_plane = tap - z * a.by_plane_taps.divisor;
  const unsigned y = a.by_row_taps.divide(in_plane);
  const unsigned x = in_plane - y * a.by_row_taps.divisor;
  return {channel * a.x_channel,
          channel * a.w_in + tap,
          {static_cast<int>(z) * a.axis[0].dilation, static_cast<int>(y) * a.axis[1].dilation,
           static_cast<int>(x) * a.axis[2].dilation},
          1};
}

template <bool kTransposed, class T>
GPU_INLINE Wide<T> fetch(const T* x, const ConvArgs& a, const Column& column, const Tap& tap) {
  const int z = source<kTransposed>(a.axis[0], column.at[0], tap.at[0]);
  const int y = source<kTransposed>(a.axis[1], column.at[1], tap.at[1]);
  const int w = source<kTransposed>(a.axis[2], column.at[2], tap.at[2]);
  if ((z | y | w) < 0) return 0;
  return widen(
      x[tap.x_channel + z * a.axis[0].x_stride + y * a.axis[1].x_stride + w * a.axis[2].x_stride]);
}

constexpr int kTile = 64;   // rows and columns of a block's tile
constexpr int kSlice = 16;  // of the depth
constexpr int kEach = 4;    // rows and columns of a thread's part

// Blocks are counted over two dimensions of the grid; the first has at most kMostBlocks.
GPU_INLINE Index block_number() {
  return static_cast<Index>(block_index<1>()) * tl::kernels::kMostBlocks + block_index<0>();
}

template <bool kTransposed, class T>
GPU_INLINE void conv_tiled(const T* x, const T* w, const T* bias, T* y, const ConvArgs& a) {
  await_earlier();
  using Value = Wide<T>;
  GPU_SHARED Value weights[kSlice][kTile + 4];
  GPU_SHARED Value inputs[kSlice][kTile];
  GPU_SHARED Tap taps[2][kSlice];
  GPU_SHARED Index places[kTile];  // of each column's first row in the output; -1 for none
  Index rest = block_number();
  if (rest >= a.tiles) return;
  const bool narrow = a.narrow != 0;
  const int thread = static_cast<int>(thread_index());
  const int my_column = thread % kTile, my_depth = thread / kTile;
  const int my_row = thread / kSlice, my_slice = thread % kSlice;
  const int first_row = thread / (kTile / kEach) * kEach;
  const int first_column = thread % (kTile / kEach) * kEach;

  const Index row = static_cast<Index>(take(rest, a.by_row_tiles, narrow)) * kTile;
  const Index group = take(rest, a.by_groups, narrow);
  const Index n = rest * kTile + my_column;
  const Index pixels = a.by_pixels.size();
  const Index image = a.by_pixels.divide(n, narrow);
  const bool inside = n < a.columns;
  const Column column =
      column_of<kTransposed>(a, inside ? n - image * pixels : 0, inside ? image : 0);
  const T* my_x = x + column.image * a.x_batch + group * a.in_channels * a.x_channel;
  const T* my_w = w + group * a.w_group + row * a.w_out;
  const int rows = static_cast<int>(a.by_channels.size() - row);  // from here on
  const Index channel = group * a.by_channels.size() + row;
  if (thread < kTile) {
    const Index channels = a.by_groups.size() * a.by_channels.size();
    places[thread] = inside ? (image * channels + channel) * pixels + (n - image * pixels) : -1;
  }
  if (thread < kSlice) taps[0][thread] = tap_of(a, thread);
  barrier();

  Value sum[kEach][kEach] = {};
  GPU_ROLLED
  for (int k = 0, half = 0; k < a.depth; k += kSlice, half ^= 1) {
    for (int i = 0; i < kTile; i += static_cast<int>(kBlockThreads) / kSlice) {
      const Tap& tap = taps[half][my_slice];
      const bool here = tap.valid && my_row + i < rows;
      weights[my_slice][my_row + i] =
          here ? widen(my_w[(my_row + i) * a.w_out + tap.weight]) : Value(0);
    }
    for (int i = 0; i < kSlice; i += static_cast<int>(kBlockThreads) / kTile) {
      const Tap& tap = taps[half][my_depth + i];
      inputs[my_depth + i][my_column] =
          inside && tap.valid ? fetch<kTransposed>(my_x, a, column, tap) : Value(0);
    }
    if (thread < kSlice) taps[half ^ 1][thread] = tap_of(a, k + kSlice + thread);
    barrier();
    for (int d = 0; d < kSlice; ++d) {
      Value left[kEach], right[kEach];
      for (int i = 0; i < kEach; ++i) left[i] = weights[d][first_row + i];
      for (int i = 0; i < kEach; ++i) right[i] = inputs[d][first_column + i];
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) sum[i][j] = math::fma(left[i], right[j], sum[i][j]);
      }
    }
    barrier();
  }

  for (int i = 0; i < kEach; ++i) {
    const int here = first_row + i;
    if (here >= rows) break;
    const Value extra = bias == nullptr ? Value(0) : widen(bias[(channel + here) * a.bias_stride]);
    for (int j = 0; j < kEach; ++j) {
      const Index place = places[first_column + j];
      if (place >= 0) y[place + here * pixels] = convert<T>(sum[i][j] + extra);
    }
  }
}

template <bool kTransposed, class T>
GPU_INLINE void conv_direct(const T* x, const T* w, const T* bias, T* y, const ConvArgs& a) {
  await_earlier();
  const Index i = block_number() * kBlockThreads + thread_index();
  if (i >= a.count) return;
  const bool narrow = a.narrow != 0;
  Index rest = a.by_pixels.divide(i, narrow);
  const Index pixel = i - rest * a.by_pixels.size();
  const int channel = take(rest, a.by_channels, narrow);
  const int group = take(rest, a.by_groups, narrow);
  const Column column = column_of<kTransposed>(a, pixel, rest);
  const T* from = x + rest * a.x_batch + static_cast<Index>(group) * a.in_channels * a.x_channel;
  const T* by = w + group * a.w_group + channel * a.w_out;
  const Index place = (group * a.by_channels.size() + channel) * a.bias_stride;
  Wide<T> sum = bias == nullptr ? Wide<T>(0) : widen(bias[place]);
  Tap tap = {};
  GPU_ROLLED
  for (int c = 0; c < a.in_channels; ++c, by += a.w_in, from += a.x_channel) {
    const T* weight = by;
    GPU_ROLLED
    for (int z = 0; z < a.axis[0].taps; ++z) {
      tap.at[0] = z * a.axis[0].dilation;
      GPU_ROLLED
      for (int r = 0; r < a.axis[1].taps; ++r) {
        tap.at[1] = r * a.axis[1].dilation;
        GPU_ROLLED
        for (int s = 0; s < a.axis[2].taps; ++s) {
          tap.at[2] = s * a.axis[2].dilation;
          sum = math::fma(widen(*weight++), fetch<kTransposed>(from, a, column, tap), sum);
        }
      }
    }
  }
  y[i] = convert<T>(sum);
}

// ---- pooling

struct Window {
  int first[2];  // inside the input
  int last[2];   // not included
  Index size;    // by which an average divides
};

GPU_INLINE Window window_of(const PoolArgs& a, int row, int column) {
  const int at[2] = {row, column};
  Window window = {};
  window.size = 1;
  for (int d = 0; d < 2; ++d) {
    const PoolAxis& axis = a.axis[d];
    Index first, last;
    Index whole = axis.kernel;
    if (axis.kernel == 0) {
      const Divider& out = d == 0 ? a.by_height : a.by_width;
      first = out.divide(static_cast<Index>(at[d]) * axis.in, false);
      last = out.divide(static_cast<Index>(at[d] + 1) * axis.in + out.size() - 1, false);
      whole = last - first;
    } else {
      first = static_cast<Index>(at[d]) * axis.stride - axis.padding;
      last = first + axis.kernel;
      first = first < 0 ? 0 : first;
      last = last > axis.in ? axis.in : last;
    }
    window.first[d] = static_cast<int>(first);
    window.last[d] = static_cast<int>(last);
    window.size *= a.count_include_pad ? whole : last - first;
  }
  return window;
}

// Folds each window with `op`, then finish(value, elements) -> T. With `spread` the lanes of a warp
// take the elements in turn.
template <class T, class Value, class Op, class Finish>
GPU_INLINE void pool(const T* x, T* y, const PoolArgs& a, Value start, Op op, Finish finish) {
  const bool narrow = a.narrow != 0;
  const unsigned width = a.spread ? kWarp : 1, mine = a.spread ? lane() : 0;
  const Index step = grid_threads() / width;
  GPU_ROLLED
  for (Index i = global_thread() / width; i < a.count; i += step) {
    Index rest = i;
    const int column = take(rest, a.by_width, narrow);
    const int row = take(rest, a.by_height, narrow);
    const int channel = take(rest, a.by_channels, narrow);
    const Window window = window_of(a, row, column);
    const T* from = x + rest * a.x_batch + channel * a.x_channel;
    Value value = start;
    if (!a.spread) {
      GPU_ROLLED
      for (int h = window.first[0]; h < window.last[0]; ++h) {
        const T* line = from + h * a.axis[0].x_stride;
        Value part = start;
        GPU_ROLLED
        for (int w = window.first[1]; w < window.last[1]; ++w) {
          part = op(part, line[w * a.axis[1].x_stride]);
        }
        value = Op::join(value, part);
      }
      y[i] = finish(value, window.size);
      continue;
    }
    const unsigned wide = static_cast<unsigned>(window.last[1] - window.first[1]);
    const unsigned elements = wide * static_cast<unsigned>(window.last[0] - window.first[0]);
    // Parts of 64 elements per lane, so that the error of a sum grows with their number only.
    GPU_ROLLED
    for (unsigned e = mine; e < elements;) {
      Value part = start;
      GPU_ROLLED
      for (int k = 0; k < 64 && e < elements; ++k, e += kWarp) {
        const int h = window.first[0] + static_cast<int>(e / wide);
        const int w = window.first[1] + static_cast<int>(e % wide);
        part = op(part, from[h * a.axis[0].x_stride + w * a.axis[1].x_stride]);
      }
      value = Op::join(value, part);
    }
    value = warp_reduce(value, [](Value p, Value q) { return Op::join(p, q); });
    if (mine == 0) y[i] = finish(value, window.size);
  }
}

template <class T>
struct AddWide {
  using Value = Wide<T>;
  GPU_INLINE Value operator()(Value sum, T x) const { return sum + widen(x); }
  GPU_INLINE static Value join(Value p, Value q) { return p + q; }
};

template <class T>
GPU_INLINE void avg_pool(const T* x, T* y, const PoolArgs& a) {
  await_earlier();
  pool(x, y, a, Wide<T>(0), AddWide<T>{}, [](Wide<T> sum, Index elements) {
    return convert<T>(sum / static_cast<Wide<T>>(elements));
  });
}

// Small floats are compared as float, which holds them exactly. NaN wins.
template <class T, class V>
struct KeepLarger {
  using Value = V;
  GPU_INLINE Value operator()(Value p, T x) const { return math::max(p, convert<Value>(x)); }
  GPU_INLINE static Value join(Value p, Value q) { return math::max(p, q); }
};

template <class T, class Value>
GPU_INLINE void max_pool(const T* x, T* y, const PoolArgs& a, Value least) {
  await_earlier();
  pool(x, y, a, least, KeepLarger<T, Value>{},
       [](Value value, Index) { return convert<T>(value); });
}

// ---- resizing

template <class T>
GPU_INLINE void nearest(const T* x, T* y, const ResizeArgs& a) {
  await_earlier();
  const bool narrow = a.narrow != 0;
  grid_stride(a.count, [&](Index i) {
    Index rest = i;
    const Index column = take(rest, a.by_width, narrow);
    const Index row = take(rest, a.by_height, narrow);
    const int channel = take(rest, a.by_channels, narrow);
    // floor(i * in / out) is below `in`, as i is below `out`
    const Index h = a.by_height.divide(row * a.axis[0].in, narrow);
    const Index w = a.by_width.divide(column * a.axis[1].in, narrow);
    y[i] = x[rest * a.x_batch + channel * a.x_channel + h * a.axis[0].x_stride +
             w * a.axis[1].x_stride];
  });
}

// The two elements between which a position lies, and how far towards the second.
template <class W>
struct Between {
  Index first;
  Index second;
  W part;
};

template <class W>
GPU_INLINE Between<W> between(const ResizeAxis& axis, int i) {
  double at = math::fma(axis.scale, static_cast<double>(i), axis.shift);
  at = at < 0 ? 0 : at;
  int first = static_cast<int>(at);
  first = first < axis.in - 1 ? first : axis.in - 1;
  const int second = first < axis.in - 1 ? first + 1 : first;
  double part = at - first;
  part = part > 1 ? 1 : part;
  return {first * axis.x_stride, second * axis.x_stride, static_cast<W>(part)};
}

template <class T>
GPU_INLINE void bilinear(const T* x, T* y, const ResizeArgs& a) {
  await_earlier();
  using W = Wide<T>;
  const bool narrow = a.narrow != 0;
  grid_stride(a.count, [&](Index i) {
    Index rest = i;
    const int column = take(rest, a.by_width, narrow);
    const int row = take(rest, a.by_height, narrow);
    const int channel = take(rest, a.by_channels, narrow);
    const Between<W> h = between<W>(a.axis[0], row);
    const Between<W> w = between<W>(a.axis[1], column);
    const T* from = x + rest * a.x_batch + channel * a.x_channel;
    const auto mix = [](W p, W q, W part) { return p * (W(1) - part) + q * part; };
    const W left = mix(widen(from[h.first + w.first]), widen(from[h.second + w.first]), h.part);
    const W right = mix(widen(from[h.first + w.second]), widen(from[h.second + w.second]), h.part);
    y[i] = convert<T>(mix(left, right, w.part));
  });
}

// ---- layouts

// (images, channels, positions) to (images, positions, kPixel)
template <class T>
GPU_INLINE void pixels(const T* x, T* y, const PixelArgs& a) {
  await_earlier();
  grid_stride(a.count, [&](Index i) {
    const Index image = a.by_image.divide(i, a.narrow != 0);
    const Index positions = a.by_image.size();
    const T* from = x + image * a.channels * positions + (i - image * positions);
    Vec<T, kPixel> pixel;
    GPU_UNROLLED
    for (int c = 0; c < kPixel; ++c) pixel.set(c, c < a.channels ? from[c * positions] : T{0});
    store_vec(y + i * kPixel, pixel);
  });
}

GPU_KERNEL void conv_tiled_f8e4m3(const Float8* x, const Float8* w, const Float8* bias, Float8* y,
                                  ConvArgs a) {
  conv_tiled<false>(x, w, bias, y, a);
}
GPU_KERNEL void conv_tiled_f16(const Half* x, const Half* w, const Half* bias, Half* y,
                               ConvArgs a) {
  conv_tiled<false>(x, w, bias, y, a);
}
GPU_KERNEL void conv_tiled_bf16(const BFloat16* x, const BFloat16* w, const BFloat16* bias,
                                BFloat16* y, ConvArgs a) {
  conv_tiled<false>(x, w, bias, y, a);
}
GPU_KERNEL void conv_tiled_f32(const float* x, const float* w, const float* bias, float* y,
                               ConvArgs a) {
  conv_tiled<false>(x, w, bias, y, a);
}
GPU_KERNEL void conv_tiled_f64(const double* x, const double* w, const double* bias, double* y,
                               ConvArgs a) {
  conv_tiled<false>(x, w, bias, y, a);
}

GPU_KERNEL void transposed_conv_tiled_f8e4m3(const Float8* x, const Float8* w, const Float8* bias,
                                             Float8* y, ConvArgs a) {
  conv_tiled<true>(x, w, bias, y, a);
}
GPU_KERNEL void transposed_conv_tiled_f16(const Half* x, const Half* w, const Half* bias, Half* y,
                                          ConvArgs a) {
  conv_tiled<true>(x, w, bias, y, a);
}
GPU_KERNEL void transposed_conv_tiled_bf16(const BFloat16* x, const BFloat16* w,
                                           const BFloat16* bias, BFloat16* y, ConvArgs a) {
  conv_tiled<true>(x, w, bias, y, a);
}
GPU_KERNEL void transposed_conv_tiled_f32(const float* x, const float* w, const float* bias,
                                          float* y, ConvArgs a) {
  conv_tiled<true>(x, w, bias, y, a);
}
GPU_KERNEL void transposed_conv_tiled_f64(const double* x, const double* w, const double* bias,
                                          double* y, ConvArgs a) {
  conv_tiled<true>(x, w, bias, y, a);
}

GPU_KERNEL void conv_direct_f8e4m3(const Float8* x, const Float8* w, const Float8* bias, Float8* y,
                                   ConvArgs a) {
  conv_direct<false>(x, w, bias, y, a);
}
GPU_KERNEL void conv_direct_f16(const Half* x, const Half* w, const Half* bias, Half* y,
                                ConvArgs a) {
  conv_direct<false>(x, w, bias, y, a);
}
GPU_KERNEL void conv_direct_bf16(const BFloat16* x, const BFloat16* w, const BFloat16* bias,
                                 BFloat16* y, ConvArgs a) {
  conv_direct<false>(x, w, bias, y, a);
}
GPU_KERNEL void conv_direct_f32(const float* x, const float* w, const float* bias, float* y,
                                ConvArgs a) {
  conv_direct<false>(x, w, bias, y, a);
}
GPU_KERNEL void conv_direct_f64(const double* x, const double* w, const double* bias, double* y,
                                ConvArgs a) {
  conv_direct<false>(x, w, bias, y, a);
}

GPU_KERNEL void transposed_conv_direct_f8e4m3(const Float8* x, const Float8* w, const Float8* bias,
                                              Float8* y, ConvArgs a) {
  conv_direct<true>(x, w, bias, y, a);
}
GPU_KERNEL void transposed_conv_direct_f16(const Half* x, const Half* w, const Half* bias, Half* y,
                                           ConvArgs a) {
  conv_direct<true>(x, w, bias, y, a);
}
GPU_KERNEL void transposed_conv_direct_bf16(const BFloat16* x, const BFloat16* w,
                                            const BFloat16* bias, BFloat16* y, ConvArgs a) {
  conv_direct<true>(x, w, bias, y, a);
}
GPU_KERNEL void transposed_conv_direct_f32(const float* x, const float* w, const float* bias,
                                           float* y, ConvArgs a) {
  conv_direct<true>(x, w, bias, y, a);
}
GPU_KERNEL void transposed_conv_direct_f64(const double* x, const double* w, const double* bias,
                                           double* y, ConvArgs a) {
  conv_direct<true>(x, w, bias, y, a);
}

GPU_KERNEL void avg_pool_f8e4m3(const Float8* x, Float8* y, PoolArgs a) { avg_pool(x, y, a); }
GPU_KERNEL void avg_pool_f16(const Half* x, Half* y, PoolArgs a) { avg_pool(x, y, a); }
GPU_KERNEL void avg_pool_bf16(const BFloat16* x, BFloat16* y, PoolArgs a) { avg_pool(x, y, a); }
GPU_KERNEL void avg_pool_f32(const float* x, float* y, PoolArgs a) { avg_pool(x, y, a); }
GPU_KERNEL void avg_pool_f64(const double* x, double* y, PoolArgs a) { avg_pool(x, y, a); }

GPU_KERNEL void max_pool_u8(const Bits8* x, Bits8* y, PoolArgs a, Bits8 least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_u32(const Bits32* x, Bits32* y, PoolArgs a, Bits32 least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_i16(const short* x, short* y, PoolArgs a, short least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_i32(const int* x, int* y, PoolArgs a, int least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_i64(const Index* x, Index* y, PoolArgs a, Index least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_f8e4m3(const Float8* x, Float8* y, PoolArgs a, float least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_f16(const Half* x, Half* y, PoolArgs a, float least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_bf16(const BFloat16* x, BFloat16* y, PoolArgs a, float least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_f32(const float* x, float* y, PoolArgs a, float least) {
  max_pool(x, y, a, least);
}
GPU_KERNEL void max_pool_f64(const double* x, double* y, PoolArgs a, double least) {
  max_pool(x, y, a, least);
}

GPU_KERNEL void nearest_1(const Bits8* x, Bits8* y, ResizeArgs a) { nearest(x, y, a); }
GPU_KERNEL void nearest_2(const Bits16* x, Bits16* y, ResizeArgs a) { nearest(x, y, a); }
GPU_KERNEL void nearest_4(const Bits32* x, Bits32* y, ResizeArgs a) { nearest(x, y, a); }
GPU_KERNEL void nearest_8(const Bits64* x, Bits64* y, ResizeArgs a) { nearest(x, y, a); }

GPU_KERNEL void bilinear_f8e4m3(const Float8* x, Float8* y, ResizeArgs a) { bilinear(x, y, a); }
GPU_KERNEL void bilinear_f16(const Half* x, Half* y, ResizeArgs a) { bilinear(x, y, a); }
GPU_KERNEL void bilinear_bf16(const BFloat16* x, BFloat16* y, ResizeArgs a) { bilinear(x, y, a); }
GPU_KERNEL void bilinear_f32(const float* x, float* y, ResizeArgs a) { bilinear(x, y, a); }
GPU_KERNEL void bilinear_f64(const double* x, double* y, ResizeArgs a) { bilinear(x, y, a); }

GPU_KERNEL void pixels_2(const Bits16* x, Bits16* y, PixelArgs a) { pixels(x, y, a); }
