// Convolutions as plain loops, compiled for every instruction set that Highway knows.
//
// With many output channels, vectors run across them: a block of channels and a few places of the
// output are one small matrix product whose sums stay in registers. With few, they run along rows
// of the output, in stretches short enough for their sums to stay in the first cache.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ops/cpu/conv.h"
#include "tl/base/thread_pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/conv_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

constexpr std::int64_t kChannels = 4;
constexpr std::int64_t kStretch = 256;

template <class T>
using Sums = std::array<std::array<T, kStretch>, kChannels>;

// Floor division for a divisor above 0.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// sums[j][o - first] += weights[j] * row[...] for the outputs o in [first, last) that this tap
// reaches.
template <class T>
void add_tap(Sums<T>& sums, const ConvolutionAxis& axis, bool transposed, std::int64_t first,
             std::int64_t last, std::int64_t tap, const std::array<T, kChannels>& weights,
             const T* row) {
  T* const s0 = sums[0].data();
  T* const s1 = sums[1].data();
  T* const s2 = sums[2].data();
  T* const s3 = sums[3].data();
  const T w0 = weights[0], w1 = weights[1], w2 = weights[2], w3 = weights[3];
  if (!transposed) {
    // in = o * stride - padding + tap, within [0, axis.in)
    const std::int64_t shift = tap - axis.padding;
    const std::int64_t from = std::max(first, floor_divide(-shift + axis.stride - 1, axis.stride));
    const std::int64_t to = std::min(last, floor_divide(axis.in - 1 - shift, axis.stride) + 1);
    if (from >= to) return;
    const T* const x = row + from * axis.stride + shift;
    const std::int64_t skip = from - first, count = to - from, step = axis.stride;
    if (step == 1) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T value = x[i];
        s0[skip + i] += w0 * value;
        s1[skip + i] += w1 * value;
        s2[skip + i] += w2 * value;
        s3[skip + i] += w3 * value;
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = x[i * step];
      s0[skip + i] += w0 * value;
      s1[skip + i] += w1 * value;
      s2[skip + i] += w2 * value;
      s3[skip + i] += w3 * value;
    }
    return;
  }
  // o = in * stride - padding + tap, within [first, last)
  const std::int64_t shift = tap - axis.padding;
  const std::int64_t from =
      std::max<std::int64_t>(0, floor_divide(first - shift + axis.stride - 1, axis.stride));
  const std::int64_t to = std::min(axis.in, floor_divide(last - 1 - shift, axis.stride) + 1);
  for (std::int64_t i = from; i < to; ++i) {
    const std::int64_t at = i * axis.stride + shift - first;
    const T value = row[i];
    s0[at] += w0 * value;
    s1[at] += w1 * value;
    s2[at] += w2 * value;
    s3[at] += w3 * value;
  }
}

// The input place that a tap of one axis reads for output `o`; -1 for none.
inline std::int64_t source(const ConvolutionAxis& axis, bool transposed, std::int64_t o,
                           std::int64_t tap) {
  if (!transposed) {
    const std::int64_t at = o * axis.stride - axis.padding + tap * axis.dilation;
    return at >= 0 && at < axis.in ? at : -1;
  }
  const std::int64_t at = o + axis.padding - tap * axis.dilation;
  return at >= 0 && at % axis.stride == 0 && at / axis.stride < axis.in ? at / axis.stride : -1;
}

template <class T>
void convolve_along_rows(const Convolution& c, const T* x, const T* kernel, const T* bias,
                         std::int64_t bias_stride, T* y) {
  const auto& [depth, height, width] = c.axes;
  const std::int64_t taps = depth.kernel * height.kernel * width.kernel;
  const std::int64_t in_plane = depth.in * height.in * width.in;
  const std::int64_t out_plane = depth.out * height.out * width.out;
  const std::int64_t between_outputs = c.transposed ? taps : c.in_channels * taps;
  const std::int64_t between_inputs = c.transposed ? c.out_channels * taps : taps;
  const std::int64_t blocks = (c.out_channels + kChannels - 1) / kChannels;
  const std::int64_t stretches = (width.out + kStretch - 1) / kStretch;
  const std::int64_t pieces = c.batch * c.groups * blocks * depth.out * height.out * stretches;
  const std::int64_t work = std::min(width.out, kStretch) * c.in_channels * taps * kChannels;
  constexpr std::int64_t kWorth = 65536;  // products worth a thread
  const std::int64_t grain = std::max<std::int64_t>(1, kWorth / std::max<std::int64_t>(work, 1));

  ThreadPool::shared().parallel_for(0, pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    Sums<T> sums;
    for (std::int64_t piece = begin; piece < end; ++piece) {
      std::int64_t rest = piece;
      const auto take = [&rest](std::int64_t size) {
        const std::int64_t here = rest % size;
        rest /= size;
        return here;
      };
      const std::int64_t first = take(stretches) * kStretch;
      const std::int64_t last = std::min(first + kStretch, width.out);
      const std::int64_t oy = take(height.out);
      const std::int64_t oz = take(depth.out);
      const std::int64_t channel = take(blocks) * kChannels;
      const std::int64_t group = take(c.groups);
      const std::int64_t image = rest;
      const std::int64_t channels = std::min(kChannels, c.out_channels - channel);
      for (std::int64_t j = 0; j < kChannels; ++j) {
        const T start = bias != nullptr && j < channels
                            ? bias[(group * c.out_channels + channel + j) * bias_stride]
                            : T(0);
        std::fill_n(sums[static_cast<std::size_t>(j)].begin(), last - first, start);
      }

      const T* plane = x + (image * c.groups + group) * c.in_channels * in_plane;
      const T* weights =
          kernel + group * c.in_channels * c.out_channels * taps + channel * between_outputs;
      for (std::int64_t ci = 0; ci < c.in_channels; ++ci) {
        for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
          const std::int64_t iz = source(depth, c.transposed, oz, kz);
          if (iz < 0) continue;
          for (std::int64_t ky = 0; ky < height.kernel; ++ky) {
            const std::int64_t iy = source(height, c.transposed, oy, ky);
            if (iy < 0) continue;
            const T* row = plane + (iz * height.in + iy) * width.in;
            const T* taps_here = weights + (kz * height.kernel + ky) * width.kernel;
            for (std::int64_t kx = 0; kx < width.kernel; ++kx) {
              std::array<T, kChannels> w{};
              for (std::int64_t j = 0; j < channels; ++j) {
                w[static_cast<std::size_t>(j)] = taps_here[j * between_outputs + kx];
              }
              add_tap(sums, width, c.transposed, first, last, kx * width.dilation, w, row);
            }
          }
        }
        plane += in_plane;
        weights += between_inputs;
      }

      for (std::int64_t j = 0; j < channels; ++j) {
        T* to = y + ((image * c.groups + group) * c.out_channels + channel + j) * out_plane +
                (oz * height.out + oy) * width.out;
        std::copy_n(sums[static_cast<std::size_t>(j)].begin(), last - first, to + first);
      }
    }
  });
}

// Vectors as wide as the instruction set's, by the compiler's extension: they may lie anywhere.
constexpr std::size_t kVectorBytes = std::min<std::size_t>(HWY_MAX_BYTES, 64);
template <class T>
struct VectorOf {
  using Type [[gnu::vector_size(kVectorBytes), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  static constexpr std::int64_t kLanes = kVectorBytes / sizeof(T);
};

constexpr std::int64_t kPlaces = 6;   // of the output, worked on together
constexpr std::int64_t kVectors = 2;  // of channels

// The kernel as (group, block of channels, tap, input channel, channel of the block), zeros where a
// block has more channels than there are.
template <class T>
std::vector<T> pack_kernel(const Convolution& c, const T* kernel, std::int64_t block,
                           std::int64_t taps) {
  const std::int64_t blocks = (c.out_channels + block - 1) / block;
  const std::int64_t between_outputs = c.transposed ? taps : c.in_channels * taps;
  const std::int64_t between_inputs = c.transposed ? c.out_channels * taps : taps;
  std::vector<T> packed(static_cast<std::size_t>(c.groups * blocks * taps * c.in_channels * block));
  ThreadPool::shared().parallel_for(
      0, c.groups * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b) {
          const std::int64_t group = b / blocks, first = b % blocks * block;
          const std::int64_t channels = std::min(block, c.out_channels - first);
          const T* from = kernel + group * c.in_channels * c.out_channels * taps;
          T* to = packed.data() + b * taps * c.in_channels * block;
          for (std::int64_t tap = 0; tap < taps; ++tap) {
            for (std::int64_t ci = 0; ci < c.in_channels; ++ci, to += block) {
              for (std::int64_t j = 0; j < channels; ++j) {
                to[j] = from[(first + j) * between_outputs + ci * between_inputs + tap];
              }
            }
          }
        }
      });
  return packed;
}

template <class T>
void convolve_across_channels(const Convolution& c, const T* x, const T* kernel, const T* bias,
                              std::int64_t bias_stride, T* y) {
  using Vector = typename VectorOf<T>::Type;
  constexpr std::int64_t kLanes = VectorOf<T>::kLanes;
  constexpr std::int64_t kBlock = kLanes * kVectors;
  const auto& [depth, height, width] = c.axes;
  const std::int64_t taps = depth.kernel * height.kernel * width.kernel;
  const std::int64_t in_plane = depth.in * height.in * width.in;
  const std::int64_t out_plane = depth.out * height.out * width.out;
  const std::int64_t blocks = (c.out_channels + kBlock - 1) / kBlock;
  const std::int64_t steps = (out_plane + kPlaces - 1) / kPlaces;
  const std::vector<T> packed = pack_kernel(c, kernel, kBlock, taps);
  const std::int64_t work = kPlaces * kBlock * c.in_channels * taps;
  constexpr std::int64_t kWorth = 1 << 18;  // products worth a thread
  const std::int64_t grain = std::max<std::int64_t>(1, kWorth / work);
  const T zero = 0;

  ThreadPool::shared().parallel_for(
      0, c.batch * c.groups * blocks * steps, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t piece = begin; piece < end; ++piece) {
          const std::int64_t first = piece % steps * kPlaces;
          const std::int64_t block = piece / steps % blocks;
          const std::int64_t group = piece / steps / blocks % c.groups;
          const std::int64_t image = piece / steps / blocks / c.groups;
          const T* planes = x + (image * c.groups + group) * c.in_channels * in_plane;
          const T* weights =
              packed.data() + (group * blocks + block) * taps * c.in_channels * kBlock;
          Vector sums[kPlaces][kVectors] = {};
          for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
            for (std::int64_t ky = 0; ky < height.kernel; ++ky) {
              for (std::int64_t kx = 0; kx < width.kernel; ++kx) {
                // Where each place finds its input; a zero that stays where it is, if nowhere.
                const T* from[kPlaces];
                std::int64_t step[kPlaces];
                for (std::int64_t j = 0; j < kPlaces; ++j) {
                  const std::int64_t o = first + j;
                  const std::int64_t iz =
                      source(depth, c.transposed, o / (height.out * width.out), kz);
                  const std::int64_t iy =
                      source(height, c.transposed, o / width.out % height.out, ky);
                  const std::int64_t ix = source(width, c.transposed, o % width.out, kx);
                  const bool inside = o < out_plane && iz >= 0 && iy >= 0 && ix >= 0;
                  from[j] = inside ? planes + (iz * height.in + iy) * width.in + ix : &zero;
                  step[j] = inside ? in_plane : 0;
                }
                for (std::int64_t ci = 0; ci < c.in_channels; ++ci, weights += kBlock) {
                  Vector w[kVectors];
                  for (std::int64_t v = 0; v < kVectors; ++v) {
                    w[v] = reinterpret_cast<const Vector*>(weights)[v];
                  }
                  for (std::int64_t j = 0; j < kPlaces; ++j) {
                    const T value = *from[j];
                    from[j] += step[j];
                    for (std::int64_t v = 0; v < kVectors; ++v) sums[j][v] += w[v] * value;
                  }
                }
              }
            }
          }

          const std::int64_t channel = block * kBlock;
          const std::int64_t channels = std::min(kBlock, c.out_channels - channel);
          const std::int64_t places = std::min(kPlaces, out_plane - first);
          for (std::int64_t i = 0; i < channels; ++i) {
            const std::int64_t at = group * c.out_channels + channel + i;
            const T extra = bias != nullptr ? bias[at * bias_stride] : T(0);
            T* to = y + (image * c.groups * c.out_channels + at) * out_plane + first;
            for (std::int64_t j = 0; j < places; ++j) {
              to[j] = sums[j][i / kLanes][i % kLanes] + extra;
            }
          }
        }
      });
}

template <class T>
void convolve(const Convolution& c, const T* x, const T* kernel, const T* bias,
              std::int64_t bias_stride, T* y) {
  // Below this most lanes of a block would be empty.
  if (2 * c.out_channels >= VectorOf<T>::kLanes) {
    convolve_across_channels(c, x, kernel, bias, bias_stride, y);
  } else {
    convolve_along_rows(c, x, kernel, bias, bias_stride, y);
  }
}

void convolve_f32(const Convolution& c, const float* x, const float* kernel, const float* bias,
                  std::int64_t bias_stride, float* y) {
  convolve(c, x, kernel, bias, bias_stride, y);
}
void convolve_f64(const Convolution& c, const double* x, const double* kernel, const double* bias,
                  std::int64_t bias_stride, double* y) {
  convolve(c, x, kernel, bias, bias_stride, y);
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tl::cpu {

HWY_EXPORT(convolve_f32);
HWY_EXPORT(convolve_f64);

void convolve_by_loops(const Convolution& c, const Tensor& x, const Tensor& kernel,
                       const std::optional<Tensor>& bias, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::int64_t bias_stride = bias ? bias->strides()[0] : 0;
  if (c.dtype == DType::F64) {
    HWY_DYNAMIC_DISPATCH(convolve_f64)
    (c, x.read<double>(stream), kernel.read<double>(stream),
     bias ? bias->read<double>(stream) : nullptr, bias_stride, out.write<double>(stream));
  } else {
    HWY_DYNAMIC_DISPATCH(convolve_f32)
    (c, x.read<float>(stream), kernel.read<float>(stream),
     bias ? bias->read<float>(stream) : nullptr, bias_stride, out.write<float>(stream));
  }
}

}  // namespace tl::cpu

#endif
