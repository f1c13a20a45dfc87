// What the kernels of module CONV are told: sizes of a convolution, a pooling or a resize, by
// value.
//
// Both sides include this file. Convolutions have three spatial axes (depth, height, width); fewer
// are preceded by axes of size 1. Positions along an axis, padding included, are below 2^31; counts
// of elements are 64-bit numbers, divided by multiplication where they are below 2^31.
#pragma once

#include "gpu_args.h"

namespace tl::kernels {

// Divides counts by a size in [1, 2^31) without a division: by FastDiv's numbers where the count is
// below 2^31, by 64-bit ones otherwise (see Strided).
struct Divider {
  unsigned long long wide_multiplier;
  FastDiv fast;

  TL_FN Index divide(Index n, bool narrow) const {
    if (narrow) return static_cast<Index>(fast.divide(static_cast<unsigned>(n)));
    const auto count = static_cast<unsigned long long>(n);
    return static_cast<Index>((multiply_high(count, wide_multiplier) + count) >> fast.shift);
  }
  TL_FN Index size() const { return fast.divisor; }
};

TL_FN Divider make_divider(Index size) {
  const FastDiv fast = make_fast_div(static_cast<unsigned>(size < 1 ? 1 : size));
  return {wide_multiplier((1ull << fast.shift) - fast.divisor, fast.divisor), fast};
}

// Blocks of a convolution along the first dimension of the grid; more go along the second.
inline constexpr Index kMostBlocks = 1 << 20;

struct ConvAxis {
  int in;
  int taps;
  int stride;
  int padding;
  int dilation;
  Index x_stride;
  FastDiv by_stride;  // transposed only
};

// Images of up to kPixel channels become images of kPixel, with the channels of a position side by
// side and zeros for those that there are not.
inline constexpr int kPixel = 4;
struct PixelArgs {
  Index count;  // positions of all images
  int narrow;   // 1: count is below 2^31
  int channels;
  Divider by_image;  // positions of an image
};

struct ConvArgs {
  ConvAxis axis[3];
  Index count;       // of outputs
  int narrow;        // 1: count is below 2^31
  int in_channels;   // of one group
  int depth;         // in_channels * taps: products in one output
  Divider by_width;  // of the output
  Divider by_height;
  Divider by_pixels;    // positions of the output
  Divider by_channels;  // output channels of one group
  Divider by_groups;
  Divider by_row_tiles;  // tiles over the output channels of one group
  Index tiles;           // in all
  Index columns;         // output positions of all images
  FastDiv by_taps;       // of the kernel, in all
  FastDiv by_plane_taps;
  FastDiv by_row_taps;
  Index x_batch;  // strides of the input
  Index x_channel;
  Index w_group;  // strides of the kernel; taps lie side by side
  Index w_out;
  Index w_in;
  Index bias_stride;
};

// Windows over the last two dimensions of (batch, channels, height, width).
struct PoolAxis {
  int in;
  int kernel;  // 0: adaptive, from floor(i * in / out) to ceil((i + 1) * in / out)
  int stride;
  int padding;
  Index x_stride;
};

struct PoolArgs {
  PoolAxis axis[2];
  Index count;  // of outputs
  int narrow;
  int spread;             // 1: the lanes of a warp share a window
  int count_include_pad;  // averages divide by the whole window
  Divider by_width;       // of the output
  Divider by_height;
  Divider by_channels;
  Index x_batch;
  Index x_channel;
};

// Where a resize along one axis finds its source: scale * i + shift, not below 0.
struct ResizeAxis {
  int in;
  double scale;
  double shift;
  Index x_stride;
};

struct ResizeArgs {
  ResizeAxis axis[2];
  Index count;
  int narrow;  // count, and for nearest size * position, are below 2^31
  Divider by_width;
  Divider by_height;
  Divider by_channels;
  Index x_batch;
  Index x_channel;
};

}  // namespace tl::kernels
