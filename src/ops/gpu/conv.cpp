// A convolution goes to the vendor's library where there is one that takes it, and to our own
// kernels otherwise.
#include "ops/gpu/conv.h"

#include <map>
#include <mutex>
#include <unordered_map>

#include "kernels/gpu_conv.h"
#include "ops/gpu/launcher.h"
#include "ops/spatial.h"
#include "runtime/context.h"
#include "tl/kernels/conv.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"

namespace tl::gpu {

namespace {

using driver::Convolution;
using driver::ConvolutionAxis;
using driver::ConvolutionPlan;
using kernels::ConvArgs;

// A library's plans on one device. Choosing an engine takes milliseconds, so plans are kept, and
// refusals too.
class Plans {
 public:
  explicit Plans(std::unique_ptr<driver::DnnSession> session) : session_(std::move(session)) {}

  // Null when the library refuses.
  std::shared_ptr<ConvolutionPlan> find(const Convolution& c) {
    if (session_ == nullptr) return nullptr;
    if (const auto known = plans_.find(c); known != plans_.end()) return known->second;
    if (plans_.size() >= kMost) plans_.clear();
    std::shared_ptr<ConvolutionPlan> plan = session_->plan(c);
    plans_.emplace(c, plan);
    return plan;
  }
  void refuse(const Convolution& c) { plans_[c] = nullptr; }

  std::mutex mutex;  // held while a plan is made or run

 private:
  static constexpr std::size_t kMost = 4096;
  std::unique_ptr<driver::DnnSession> session_;
  std::unordered_map<Convolution, std::shared_ptr<ConvolutionPlan>, driver::ConvolutionHash> plans_;
};

// The plans of a device, or null where there is no library. They live as long as the process, like
// the contexts they belong to.
Plans* plans_on(const Device& device) {
  const auto& found = driver::find_dnn(device.kind());
  if (found.table == nullptr) return nullptr;
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::map<std::pair<DeviceKind, int>, Plans>;
  const std::lock_guard lock(*mutex);
  const std::pair key{device.kind(), device.index()};
  auto known = all->find(key);
  if (known == all->end()) {
    const CurrentContext current(device.context());
    known = all->try_emplace(key, found.table->open()).first;
  }
  return &known->second;
}

constexpr std::uintptr_t kAlignment = 16;  // bytes; what the libraries' plans are made for

// Contiguous and aligned.
Tensor plain(const Tensor& x, const Stream& stream) {
  const Tensor result = contiguous(x);
  return reinterpret_cast<std::uintptr_t>(result.read(stream)) % kAlignment == 0 ? result
                                                                                 : copy(result);
}

bool fits_library(const Convolution& c) {
  // The libraries count in 32 bits here and there.
  const auto small = [](std::int64_t count) { return count <= ops::kMostPlaces; };
  std::int64_t in = c.batch * c.groups * c.in_channels;
  std::int64_t out = c.batch * c.groups * c.out_channels;
  std::int64_t weights = c.groups * c.in_channels * c.out_channels;
  for (const ConvolutionAxis& axis : c.axes) {
    if (!small(in) || !small(out) || !small(weights)) return false;
    in *= axis.in;
    out *= axis.out;
    weights *= axis.kernel;
  }
  return small(in) && small(out) && small(weights) && in > 0 && weights > 0;
}

// False when the library refuses, fails, or has not the memory it wants.
bool run_plan(Plans& plans, const Convolution& c, const std::byte* x, const std::byte* kernel,
              Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const CurrentContext current(device.context());
  const auto plan = plans.find(c);
  if (plan == nullptr) return false;
  RawMemory workspace;
  try {
    workspace = RawMemory(device, plan->workspace_bytes());
  } catch (const OutOfMemory&) {
    return false;  // our own kernels need none
  }
  std::byte* const scratch =
      plan->workspace_bytes() > 0 ? workspace.overwrite_data(stream) : nullptr;
  if (plan->run(stream.native(), x, kernel, out.write(stream), scratch)) return true;
  plans.refuse(c);
  return false;
}

// Images of three channels, which no tensor core can load as they are: a library converts them, and
// its engines for four channels with the channels last are twice as fast as those for three. So
// they are given to it like that, where there is enough to do (docs/measurements/0002).
bool is_of_pixels(const Convolution& c) {
  constexpr std::int64_t kLeastProducts = 1 << 30;
  if (c.transposed || c.groups != 1 || size_of(c.dtype) != 2 || c.in_channels != 3 ||
      c.axes[0] != ConvolutionAxis{}) {
    return false;
  }
  std::int64_t products = c.batch * c.in_channels * c.out_channels;
  for (const ConvolutionAxis& axis : c.axes) products *= axis.out;  // fits: the output does
  return products >= kLeastProducts / (c.axes[1].kernel * c.axes[2].kernel);
}

Convolution with_pixels(Convolution c) {
  c.channels_last = true;
  c.in_channels = kernels::kPixel;
  return c;
}

// (images, channels, positions...), contiguous, to (images, positions..., kPixel)
RawMemory to_pixels(const Tensor& x) {
  const Device device = x.device();
  std::int64_t positions = 1;
  for (int d = 2; d < x.rank(); ++d) positions *= x.shape()[d];
  kernels::PixelArgs a{};
  a.count = x.shape()[0] * positions;
  a.narrow = a.count <= ops::kMostPlaces ? 1 : 0;
  a.channels = static_cast<int>(x.shape()[1]);
  a.by_image = kernels::make_divider(positions);
  RawMemory result(device,
                   static_cast<std::uint64_t>(a.count) * kernels::kPixel * size_of(x.dtype()));
  run(device, pixels_kernel(), elementwise_shape(a.count, 1), x.read(device.stream()),
      result.overwrite_data(device.stream()), a);
  return result;
}

bool convolve_pixels(Plans& plans, const Convolution& c, const Tensor& x, const Tensor& kernel,
                     Tensor& out) {
  const Convolution pixels = with_pixels(c);
  if (!fits_library(pixels)) return false;
  {
    const CurrentContext current(out.device().context());
    if (plans.find(pixels) == nullptr) return false;
  }
  try {
    const RawMemory wide_x = to_pixels(x);
    const RawMemory wide_kernel = to_pixels(kernel);
    const Stream& stream = out.device().stream();
    return run_plan(plans, pixels, wide_x.data(stream), wide_kernel.data(stream), out);
  } catch (const OutOfMemory&) {
    return false;
  }
}

bool convolve_by_library(const Convolution& c, const Tensor& x, const Tensor& kernel,
                         const std::optional<Tensor>& bias, Tensor& out) {
  const Device device = out.device();
  Plans* const plans = fits_library(c) ? plans_on(device) : nullptr;
  if (plans == nullptr) return false;
  const Stream& stream = device.stream();
  const Tensor plain_x = plain(x, stream);
  const Tensor plain_kernel = plain(kernel, stream);
  {
    const std::lock_guard lock(plans->mutex);
    const bool done = (is_of_pixels(c) && convolve_pixels(*plans, c, plain_x, plain_kernel, out)) ||
                      run_plan(*plans, c, plain_x.read(stream), plain_kernel.read(stream), out);
    if (!done) return false;
  }
  if (bias) {
    Shape per_channel = Shape::repeated(out.rank(), 1);
    per_channel[1] = c.groups * c.out_channels;
    out = add(out, reshape(*bias, per_channel));
  }
  return true;
}

constexpr std::int64_t kTile = 64;  // output channels and positions of a block, as in conv.cu

ConvArgs describe(std::string_view op, const Convolution& c, const Tensor& x, const Tensor& out) {
  ConvArgs a{};
  std::int64_t taps = 1;
  std::int64_t pixels = 1;
  // The tensor's spatial dimensions are the last of the three axes.
  const int axes = x.rank() - 2;
  for (int d = 0; d < 3; ++d) {
    const ConvolutionAxis& axis = c.axes[static_cast<std::size_t>(d)];
    const int dim = d - (3 - axes) + 2;
    a.axis[d] = {.in = static_cast<int>(axis.in),
                 .taps = static_cast<int>(axis.kernel),
                 .stride = static_cast<int>(axis.stride),
                 .padding = static_cast<int>(axis.padding),
                 .dilation = static_cast<int>(axis.dilation),
                 .x_stride = dim < 2 ? 0 : x.strides()[dim],
                 .by_stride = kernels::make_fast_div(static_cast<unsigned>(axis.stride))};
    taps *= axis.kernel;  // cannot overflow: the kernel and the output are tensors
    pixels *= axis.out;
  }
  const std::int64_t depth = c.in_channels * taps;
  constexpr std::int64_t kRoom = 64;  // a tile may look that far past the end
  if (pixels > ops::kMostPlaces || depth > ops::kMostPlaces - kRoom) {
    throw Error(ErrorKind::Unsupported, op, "output ", out.shape(), " has ", pixels,
                " places and sums over ", depth, ", more than ", ops::kMostPlaces - kRoom);
  }
  a.count = out.count();
  a.narrow = out.count() <= ops::kMostPlaces - kRoom ? 1 : 0;
  a.in_channels = static_cast<int>(c.in_channels);
  a.depth = static_cast<int>(depth);
  a.by_width = kernels::make_divider(c.axes[2].out);
  a.by_height = kernels::make_divider(c.axes[1].out);
  a.by_pixels = kernels::make_divider(pixels);
  a.by_channels = kernels::make_divider(c.out_channels);
  a.by_groups = kernels::make_divider(c.groups);
  const auto tiles_over = [](std::int64_t count) { return (count + kTile - 1) / kTile; };
  a.by_row_tiles = kernels::make_divider(tiles_over(c.out_channels));
  a.columns = c.batch * pixels;
  a.tiles = tiles_over(c.out_channels) * c.groups * tiles_over(a.columns);
  a.by_taps = kernels::make_fast_div(static_cast<unsigned>(taps));
  a.by_plane_taps =
      kernels::make_fast_div(static_cast<unsigned>(c.axes[1].kernel * c.axes[2].kernel));
  a.by_row_taps = kernels::make_fast_div(static_cast<unsigned>(c.axes[2].kernel));
  a.x_batch = x.strides()[0];
  a.x_channel = x.strides()[1];
  a.w_group = c.in_channels * c.out_channels * taps;
  a.w_out = c.transposed ? taps : depth;
  a.w_in = c.transposed ? c.out_channels * taps : taps;
  return a;
}

}  // namespace

void convolve(std::string_view op, const Convolution& c, const Tensor& x, const Tensor& kernel,
              const std::optional<Tensor>& bias, Tensor& out) {
  if (convolve_by_library(c, x, kernel, bias, out)) return;
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Tensor plain_kernel = contiguous(kernel);
  ConvArgs a = describe(op, c, x, out);
  if (bias) a.bias_stride = bias->strides()[0];
  const std::byte* none = nullptr;
  const std::byte* from = x.read(stream);
  const std::byte* weights = plain_kernel.read(stream);
  const std::byte* extra = bias ? bias->read(stream) : none;
  std::byte* to = out.write(stream);

  // Below this a tile of 64 output channels is mostly empty.
  constexpr std::int64_t kFewChannels = 8;
  const bool direct = c.out_channels < kFewChannels;
  const ConvFamily family =
      c.transposed ? direct ? ConvFamily::TransposedDirect : ConvFamily::TransposedTiled
      : direct     ? ConvFamily::Direct
                   : ConvFamily::Tiled;
  const std::int64_t blocks = direct ? (a.count + kThreads - 1) / kThreads : a.tiles;
  const std::int64_t lines = (blocks + kernels::kMostBlocks - 1) / kernels::kMostBlocks;
  run(device, conv_float_kernel(family, c.dtype),
      {.grid = {static_cast<std::uint64_t>(std::min<std::int64_t>(blocks, kernels::kMostBlocks)),
                static_cast<std::uint64_t>(lines)},
       .block = {kThreads}},
      from, weights, extra, to, a);
}

}  // namespace tl::gpu
