// Convolutions against loops over doubles, small known cases, and wrong arguments.
#include "tl/ops/conv.h"

#include <cmath>

#include "ops/conformance.h"
#include "runtime/driver/dnn.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Conv : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Conv);

struct Settings {
  std::vector<std::int64_t> padding, output_padding, stride, dilation;  // per axis
  std::int64_t groups = 1;
};

struct Wanted {
  Host value;
  double scale = 0;  // the largest sum of absolute products: what errors are relative to
};

std::int64_t at(const std::vector<std::int64_t>& v, std::size_t i, std::int64_t otherwise) {
  return v.empty() ? otherwise : v.size() == 1 ? v[0] : v[i];
}

// By the definition: every pair of an input element and a tap adds to one output, whichever way the
// sizes are read.
Wanted reference(bool transposed, const Host& x, const Host& k, const Host* bias,
                 const Settings& s) {
  const auto axes = static_cast<std::size_t>(x.shape.size() - 2);
  const std::int64_t batch = x.shape[0], channels = x.shape[1];
  const std::int64_t outputs = transposed ? k.shape[1] * s.groups : k.shape[0];
  const std::int64_t in_each = channels / s.groups, out_each = outputs / s.groups;
  std::int64_t in[3] = {1, 1, 1}, ks[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  Shape shape{batch, outputs};
  for (std::size_t a = 0; a < axes; ++a) {
    const std::size_t d = 3 - axes + a;
    in[d] = x.shape[static_cast<int>(a) + 2];
    ks[d] = k.shape[static_cast<int>(a) + 2];
    stride[d] = at(s.stride, a, 1);
    pad[d] = at(s.padding, a, 0);
    dilation[d] = at(s.dilation, a, 1);
    out[d] = transposed ? (in[d] - 1) * stride[d] - 2 * pad[d] + dilation[d] * (ks[d] - 1) +
                              at(s.output_padding, a, 0) + 1
                        : (in[d] + 2 * pad[d] - dilation[d] * (ks[d] - 1) - 1) / stride[d] + 1;
    shape.push_back(out[d]);
  }
  const std::int64_t out_plane = out[0] * out[1] * out[2], in_plane = in[0] * in[1] * in[2];
  const std::int64_t taps = ks[0] * ks[1] * ks[2];
  const auto count = static_cast<std::size_t>(batch * outputs * out_plane);
  Wanted wanted{{shape, std::vector<double>(count)}};
  std::vector<double> sizes(count);
  for (std::size_t i = 0; i < count && bias != nullptr; ++i) {
    const auto c = static_cast<std::size_t>(static_cast<std::int64_t>(i) / out_plane % outputs);
    wanted.value.values[i] = bias->values[c];
    sizes[i] = std::abs(bias->values[c]);
  }
  // "small" is the side that steps: outputs of a convolution, inputs of a transposed one.
  const std::int64_t* small = transposed ? in : out;
  const std::int64_t* large = transposed ? out : in;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t co = 0; co < outputs; ++co)
      for (std::int64_t ci = 0; ci < in_each; ++ci)
        for (std::int64_t sz = 0; sz < small[0]; ++sz)
          for (std::int64_t sy = 0; sy < small[1]; ++sy)
            for (std::int64_t sx = 0; sx < small[2]; ++sx)
              for (std::int64_t t = 0; t < taps; ++t) {
                const std::int64_t kz = t / (ks[1] * ks[2]), ky = t / ks[2] % ks[1], kx = t % ks[2];
                const std::int64_t lz = sz * stride[0] - pad[0] + kz * dilation[0];
                const std::int64_t ly = sy * stride[1] - pad[1] + ky * dilation[1];
                const std::int64_t lx = sx * stride[2] - pad[2] + kx * dilation[2];
                if (lz < 0 || ly < 0 || lx < 0 || lz >= large[0] || ly >= large[1] ||
                    lx >= large[2]) {
                  continue;
                }
                const std::int64_t s_at = (sz * small[1] + sy) * small[2] + sx;
                const std::int64_t l_at = (lz * large[1] + ly) * large[2] + lx;
                const std::int64_t group = co / out_each;
                const std::int64_t x_channel = b * channels + group * in_each + ci;
                const auto from =
                    static_cast<std::size_t>(x_channel * in_plane + (transposed ? s_at : l_at));
                const auto to = static_cast<std::size_t>((b * outputs + co) * out_plane +
                                                         (transposed ? l_at : s_at));
                const auto w = static_cast<std::size_t>(
                    transposed ? ((group * in_each + ci) * out_each + co % out_each) * taps + t
                               : (co * in_each + ci) * taps + t);
                const double product = x.values[from] * k.values[w];
                wanted.value.values[to] += product;
                sizes[to] += std::abs(product);
              }
  for (const double size : sizes) wanted.scale = std::max(wanted.scale, size);
  return wanted;
}

Dims dims(const std::vector<std::int64_t>& v, std::int64_t otherwise) {
  return v.empty() ? Dims{otherwise} : Dims(std::span<const std::int64_t>(v));
}

Tensor call(bool transposed, const Tensor& x, const Tensor& k, const std::optional<Tensor>& bias,
            const Settings& s) {
  const Dims padding = dims(s.padding, 0), stride = dims(s.stride, 1),
             dilation = dims(s.dilation, 1), extra = dims(s.output_padding, 0);
  switch (x.rank() * 2 + (transposed ? 1 : 0)) {
    case 6:
      return conv1d(x, k, padding, stride, dilation, s.groups, bias);
    case 7:
      return conv_transpose1d(x, k, padding, extra, stride, dilation, s.groups, bias);
    case 8:
      return conv2d(x, k, padding, stride, dilation, s.groups, bias);
    case 9:
      return conv_transpose2d(x, k, padding, extra, stride, dilation, s.groups, bias);
    case 10:
      return conv3d(x, k, padding, stride, dilation, s.groups, bias);
    default:
      return conv_transpose3d(x, k, padding, extra, stride, dilation, s.groups, bias);
  }
}

std::string op_name(bool transposed, const Shape& x) {
  return join(transposed ? "conv_transpose" : "conv", x.size() - 2, "d");
}

// Half an ulp of rounding, and an f32 sum of a few hundred terms, relative to their sizes. Results
// that the dtype holds with fewer digits hide the latter.
// A vendor's library on a GPU rounds a small float before the bias is added. With |bias| <= 1 that
// is half an ulp of a number up to |wanted| + 1 more, in all at most 1.5 of max(|wanted|, 1).
Bound bound_for(DType dtype, double scale, bool biased_on_gpu) {
  const bool small = dtype != DType::F32 && dtype != DType::F64;
  if (!small) return {.units = 8, .scale = scale};
  if (biased_on_gpu) return {.units = 1.5, .scale = 1};
  return {.units = 1, .scale = scale * 1e-4};
}

struct Case {
  bool transposed;
  Shape x;
  Shape k;
  Settings s;
};

void check(const Case& c, DType dtype, const Device& device, bool with_bias,
           Arrangement x_how = Arrangement::Contiguous, Arrangement k_how = Arrangement::Contiguous,
           std::uint64_t seed = 1) {
  const Host x = rounded(uniform(c.x, -1, 1, seed), dtype);
  const Host k = rounded(uniform(c.k, -1, 1, seed + 1), dtype);
  const std::int64_t outputs = c.transposed ? c.k[1] * c.s.groups : c.k[0];
  const Host bias = rounded(uniform({outputs}, -1, 1, seed + 2), dtype);
  const Wanted wanted = reference(c.transposed, x, k, with_bias ? &bias : nullptr, c.s);
  std::optional<Tensor> b;
  if (with_bias) b = arrange(bias, dtype, x_how, device);
  const Tensor got = call(c.transposed, arrange(x, dtype, x_how, device),
                          arrange(k, dtype, k_how, device), b, c.s);
  EXPECT_TRUE(got.is_contiguous());
  const std::string op = op_name(c.transposed, c.x);
  expect_close(op, got, dtype, wanted.value,
               bound_for(dtype, wanted.scale, with_bias && device.is_gpu()),
               join(describe(op, dtype, c.x, x_how), " kernel ", c.k, " ", name(k_how),
                    with_bias ? " with bias" : ""));
}

const Case kCases[] = {
    // one dimension: plain, padded, strided, dilated, grouped, per group one channel
    {false, {1, 4, 5}, {2, 4, 3}, {}},
    {false,
     {2, 3, 17},
     {5, 3, 4},
     {.padding = {2}, .output_padding = {}, .stride = {3}, .dilation = {2}}},
    {false,
     {1, 6, 9},
     {4, 3, 2},
     {.padding = {1}, .output_padding = {}, .stride = {1}, .dilation = {1}, .groups = 2}},
    {true, {1, 4, 5}, {4, 2, 3}, {}},
    {true,
     {2, 6, 7},
     {6, 2, 3},
     {.padding = {1}, .output_padding = {1}, .stride = {2}, .dilation = {2}, .groups = 3}},
    // two: non-square, per-axis settings
    {false,
     {2, 4, 5, 7},
     {3, 4, 3, 2},
     {.padding = {1, 2}, .output_padding = {}, .stride = {2, 1}, .dilation = {1, 2}}},
    {false,
     {1, 8, 6, 6},
     {8, 1, 3, 3},
     {.padding = {1}, .output_padding = {}, .stride = {1}, .dilation = {1}, .groups = 8}},
    {false,
     {2, 6, 6, 5},
     {12, 3, 3, 3},
     {.padding = {1}, .output_padding = {}, .stride = {2}, .dilation = {1}, .groups = 2}},
    {false,
     {1, 5, 5, 5},
     {5, 5, 5, 5},
     {.padding = {2}, .output_padding = {}, .stride = {1}, .dilation = {1}}},
    {false, {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
    {false, {3, 2, 4, 4}, {10, 2, 1, 1}, {}},
    {true,
     {1, 4, 3, 5},
     {4, 3, 3, 2},
     {.padding = {1, 0}, .output_padding = {1, 0}, .stride = {2, 3}, .dilation = {1, 2}}},
    {true,
     {2, 4, 4, 4},
     {4, 9, 3, 3},
     {.padding = {1}, .output_padding = {1}, .stride = {2}, .dilation = {1}}},
    {true,
     {1, 6, 4, 4},
     {6, 2, 3, 3},
     {.padding = {0}, .output_padding = {0}, .stride = {1}, .dilation = {2}, .groups = 2}},
    // three
    {false,
     {1, 3, 4, 5, 3},
     {4, 3, 2, 3, 2},
     {.padding = {1, 0, 1}, .output_padding = {}, .stride = {1, 2, 1}, .dilation = {1}}},
    {true,
     {1, 3, 2, 3, 2},
     {3, 2, 2, 2, 3},
     {.padding = {0, 1, 1}, .output_padding = {1, 0, 1}, .stride = {2}, .dilation = {1}}},
};

TEST_P(Conv, AgreesWithTheDefinitionForEveryFloat) {
  for (const Case& c : kCases) {
    for (const DType dtype : kFloats) {
      check(c, dtype, device(), false);
      check(c, dtype, device(), true);
    }
  }
}

TEST_P(Conv, TakesInputsKernelsAndBiasesInAnyLayout) {
  for (const Case& c : kCases) {
    for (const Arrangement x_how : kArrangements) {
      for (const Arrangement k_how : kArrangements) {
        check(c, DType::F32, device(), true, x_how, k_how);
        check(c, DType::F64, device(), false, x_how, k_how);
      }
      check(c, DType::F16, device(), true, x_how, x_how);
    }
  }
}

TEST_P(Conv, CrossesTilesAndBlocks) {
  const Case cases[] = {
      {false,
       {2, 19, 13, 11},
       {70, 19, 3, 3},
       {.padding = {1}, .output_padding = {}, .stride = {1}, .dilation = {1}}},
      {false, {1, 70, 300}, {66, 70, 1}, {}},
      {false,
       {1, 2, 40, 40},
       {3, 2, 5, 5},
       {.padding = {2}, .output_padding = {}, .stride = {1}, .dilation = {1}}},
      {false,
       {1, 1, 1000},
       {9, 1, 7},
       {.padding = {3}, .output_padding = {}, .stride = {2}, .dilation = {1}}},
      {true,
       {1, 17, 9, 9},
       {17, 65, 3, 3},
       {.padding = {1}, .output_padding = {1}, .stride = {2}, .dilation = {1}}},
      {true,
       {1, 3, 400},
       {3, 9, 4},
       {.padding = {1}, .output_padding = {0}, .stride = {2}, .dilation = {1}}},
  };
  for (const Case& c : cases) {
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
      check(c, dtype, device(), true);
    }
  }
}

// A library gets images of three channels in another layout where there is enough to do.
TEST_P(Conv, ManyImagesGiveWhatEachGivesAlone) {
  if (driver::find_dnn(device().kind()).table == nullptr) GTEST_SKIP() << "no library";
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const Tensor x = contiguous_on(uniform({13, 3, 224, 230}, -1, 1, 71), dtype, device());
    const Tensor k = contiguous_on(uniform({64, 3, 7, 5}, -1, 1, 72), dtype, device());
    const Settings s{.padding = {3, 2}, .output_padding = {}, .stride = {2}, .dilation = {1}};
    const Tensor all = call(false, x, k, std::nullopt, s);
    for (const std::int64_t i : {0, 5, 12}) {
      const Host alone = host_of(call(false, x.narrow(0, i, 1), k, std::nullopt, s));
      constexpr double kProducts = 3 * 7 * 5;  // each at most 1
      expect_close("conv2d", all.narrow(0, i, 1), dtype, alone, bound_for(dtype, kProducts, false),
                   join(dtype, " image ", i));
    }
  }
}

TEST_P(Conv, AgreesWithTheDefinitionForRandomSizes) {
  std::mt19937_64 random(fuzz_seed());
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 60; ++round) {
    const int axes = static_cast<int>(pick(1, 3));
    const std::int64_t groups = pick(1, 3), in_each = pick(1, 4), out_each = pick(1, 9);
    Case c{round % 2 == 1, {pick(1, 2), groups * in_each}, {}, {}};
    c.k = c.transposed ? Shape{groups * in_each, out_each} : Shape{groups * out_each, in_each};
    c.s.groups = groups;
    for (int a = 0; a < axes; ++a) {
      const std::int64_t ks = pick(1, 3), dilation = pick(1, 3), stride = pick(1, 3);
      const std::int64_t reach = dilation * (ks - 1) + 1;
      const std::int64_t padding = pick(0, (reach + 1) / 2);
      std::int64_t in = pick(1, 9);
      if (!c.transposed) in = std::max(in, reach - 2 * padding);
      const std::int64_t extra = pick(0, std::max(stride, dilation) - 1);
      while (c.transposed && (in - 1) * stride - 2 * padding + reach + extra < 1) ++in;
      c.x.push_back(in);
      c.k.push_back(ks);
      c.s.padding.push_back(padding);
      c.s.output_padding.push_back(extra);
      c.s.stride.push_back(stride);
      c.s.dilation.push_back(dilation);
    }
    const DType dtype = kFloats[random() % std::size(kFloats)];
    check(c, dtype, device(), random() % 2 == 0, kArrangements[random() % 4],
          kArrangements[random() % 4], random());
  }
}

// ---- small cases with known results

TEST_P(Conv, SlidesTheKernelWithoutFlippingIt) {
  const Tensor x = contiguous_on({{1, 1, 5}, {1, 2, 3, 4, 5}}, DType::F32, device());
  const Tensor k = contiguous_on({{1, 1, 3}, {1, 10, 100}}, DType::F32, device());
  expect_close("conv1d", conv1d(x, k), DType::F32, {{1, 1, 3}, {321, 432, 543}}, {0});
  expect_close("conv1d", conv1d(x, k, {1}), DType::F32, {{1, 1, 5}, {210, 321, 432, 543, 54}}, {0});
  expect_close("conv1d", conv1d(x, k, {1}, {2}), DType::F32, {{1, 1, 3}, {210, 432, 54}}, {0});
  expect_close("conv1d", conv1d(x, k, {0}, {1}, {2}), DType::F32, {{1, 1, 1}, {531}}, {0});
  expect_close("conv_transpose1d", conv_transpose1d(x.narrow(2, 0, 2), k), DType::F32,
               {{1, 1, 4}, {1, 12, 120, 200}}, {0});
  expect_close("conv_transpose1d", conv_transpose1d(x.narrow(2, 0, 2), k, {0}, {1}, {2}),
               DType::F32, {{1, 1, 6}, {1, 10, 102, 20, 200, 0}}, {0});
}

TEST_P(Conv, KeepsChannelsApartFromSpaceWhenAllAreEqual) {
  // c = h = w: a layout mistake shows only here.
  Host x{{1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}};
  Host k{{1, 2, 1, 1}, {1, 10}};
  expect_close(
      "conv2d",
      conv2d(contiguous_on(x, DType::F32, device()), contiguous_on(k, DType::F32, device())),
      DType::F32, {{1, 1, 2, 2}, {40, 51, 62, 73}}, {0});
  const Tensor swapped =
      arrange(x, DType::F32, Arrangement::Contiguous, device()).permute({0, 2, 3, 1});
  expect_close("conv2d", conv2d(swapped, contiguous_on(k, DType::F32, device())), DType::F32,
               {{1, 1, 2, 2}, {20, 64, 31, 75}}, {0});
}

TEST_P(Conv, ReadsATransposedKernelAsItIs) {
  const Host k = uniform({3, 3, 2, 2}, -1, 1, 3);
  const Tensor x = contiguous_on(uniform({1, 3, 4, 4}, -1, 1, 4), DType::F32, device());
  const Tensor kernel = contiguous_on(k, DType::F32, device());
  const Tensor strided = kernel.transpose(0, 1);
  expect_equal("conv2d", conv2d(x, strided), conv2d(x, copy(strided)));
  expect_equal("conv_transpose2d", conv_transpose2d(x, strided),
               conv_transpose2d(x, copy(strided)));
}

TEST_P(Conv, BroadcastKernelsAndInputsWork) {
  const Tensor one = contiguous_on({{1, 1, 1, 1}, {2}}, DType::F32, device());
  const Tensor y = conv2d(one.expand({2, 3, 4, 4}), one.expand({5, 3, 3, 3}));
  expect_close("conv2d", y, DType::F32, {{2, 5, 2, 2}, std::vector<double>(40, 108)}, {0});
}

TEST_P(Conv, NothingInGivesTheBias) {
  const auto zeros = [&](const Shape& shape) { return Tensor::zeros(shape, DType::F32, device()); };
  const Tensor bias = contiguous_on({{2}, {3, -4}}, DType::F32, device());
  EXPECT_EQ(conv2d(zeros({0, 3, 4, 4}), zeros({2, 3, 3, 3})).shape(), (Shape{0, 2, 2, 2}));
  EXPECT_EQ(conv2d(zeros({1, 3, 4, 4}), zeros({0, 3, 3, 3})).shape(), (Shape{1, 0, 2, 2}));
  expect_close("conv1d", conv1d(zeros({1, 0, 3}), zeros({2, 0, 2}), {0}, {1}, {1}, 1, bias),
               DType::F32, {{1, 2, 2}, {3, 3, -4, -4}}, {0});
  expect_close("conv1d", conv1d(zeros({1, 1, 0}), zeros({2, 1, 2}), {1}, {1}, {1}, 1, bias),
               DType::F32, {{1, 2, 1}, {3, -4}}, {0});
  expect_close("conv1d", conv1d(zeros({1, 0, 3}), zeros({2, 0, 2})), DType::F32,
               {{1, 2, 2}, {0, 0, 0, 0}}, {0});
}

TEST_P(Conv, NanAndInfinityReachTheOutputsThatReadThem) {
  const double nan = std::nan("");
  const Tensor x = contiguous_on({{1, 1, 4}, {1, nan, 2, 3}}, DType::F32, device());
  const Tensor k = contiguous_on({{1, 1, 2}, {1, 1}}, DType::F32, device());
  const Host got = host_of(conv1d(x, k));
  EXPECT_TRUE(std::isnan(got.values[0]) && std::isnan(got.values[1]));
  EXPECT_EQ(got.values[2], 5);
  const Tensor big = contiguous_on({{1, 1, 2}, {60000, 60000}}, DType::F16, device());
  const Tensor ones = contiguous_on({{1, 1, 2}, {1, 1}}, DType::F16, device());
  EXPECT_TRUE(std::isinf(host_of(conv1d(big, ones)).values[0]));
}

TEST_P(Conv, TheTableCallsThemWithDefaults) {
  const Tensor x = contiguous_on({{1, 1, 5}, {1, 2, 3, 4, 5}}, DType::F32, device());
  const Tensor k = contiguous_on({{1, 1, 3}, {1, 10, 100}}, DType::F32, device());
  const OpValue plain[] = {x, k};
  expect_equal("conv1d", call_op("conv1d", plain)[0], conv1d(x, k));
  const OpValue padded[] = {x, k, Scalar(1), Dims{2}};
  expect_equal("conv1d", call_op("conv1d", padded)[0], conv1d(x, k, {1}, {2}));
}

// ---- what is refused

TEST_P(Conv, RefusesSizesThatDoNotFit) {
  const auto zeros = [&](const Shape& shape) { return Tensor::zeros(shape, DType::F32, device()); };
  const Tensor x = zeros({1, 4, 5, 5}), k = zeros({6, 4, 3, 3});
  expect_error(ErrorKind::ShapeMismatch,
               "conv2d: kernel (6, 4, 7, 7) with dilation (1, 1) is larger than input (1, 4, 5, 5) "
               "with padding (0, 0)",
               [&] { conv2d(x, zeros({6, 4, 7, 7})); });
  expect_error(ErrorKind::ShapeMismatch, "conv2d: kernel", [&] { conv2d(x, k, {0}, {1}, {3}); });
  expect_error(ErrorKind::BadArgument, "conv2d: stride (0,) must be from 1",
               [&] { conv2d(x, k, {0}, {0}); });
  expect_error(ErrorKind::BadArgument, "conv2d: dilation (0,) must be from 1",
               [&] { conv2d(x, k, {0}, {1}, {0}); });
  expect_error(ErrorKind::BadArgument, "conv2d: padding (-1,) must be from 0",
               [&] { conv2d(x, k, {-1}); });
  expect_error(ErrorKind::BadArgument, "conv2d: padding (1, 1, 1) must have 1 or 2 entries",
               [&] { conv2d(x, k, {1, 1, 1}); });
  expect_error(ErrorKind::BadArgument, "conv2d: stride () must have 1 or 2 entries",
               [&] { conv2d(x, k, {0}, {}); });
  expect_error(ErrorKind::BadArgument, "conv2d: groups must be 1 or more",
               [&] { conv2d(x, k, {0}, {1}, {1}, 0); });
  expect_error(ErrorKind::ShapeMismatch, "conv2d: 3 groups do not divide the 4 channels of input",
               [&] { conv2d(x, k, {0}, {1}, {1}, 3); });
  expect_error(ErrorKind::ShapeMismatch, "conv2d: 4 groups do not divide the 6 channels of kernel",
               [&] { conv2d(x, zeros({6, 1, 3, 3}), {0}, {1}, {1}, 4); });
  expect_error(ErrorKind::ShapeMismatch, "does not go with input (1, 4, 5, 5) in 2 groups",
               [&] { conv2d(x, k, {0}, {1}, {1}, 2); });
  expect_error(ErrorKind::ShapeMismatch, "conv2d: bias must have shape (6,), not (4,)",
               [&] { conv2d(x, k, {0}, {1}, {1}, 1, zeros({4})); });
  expect_error(ErrorKind::ShapeMismatch, "conv2d: input must have 4 dimensions",
               [&] { conv2d(zeros({4, 5, 5}), k); });
  expect_error(ErrorKind::ShapeMismatch, "conv1d: kernel must have 3 dimensions",
               [&] { conv1d(zeros({1, 4, 5}), k); });
  expect_error(ErrorKind::ShapeMismatch, "kernel (6, 4, 0, 3) has no elements",
               [&] { conv2d(x, zeros({6, 4, 0, 3})); });
  expect_error(ErrorKind::BadArgument, "padding", [&] { conv2d(x, k, {std::int64_t{1} << 62}); });
  expect_error(ErrorKind::Unsupported, "more than",
               [&] { conv2d(x, k, {std::int64_t{1} << 30}, {1 << 30}); });
}

TEST_P(Conv, RefusesTransposedSizesThatDoNotFit) {
  const auto zeros = [&](const Shape& shape) { return Tensor::zeros(shape, DType::F32, device()); };
  const Tensor x = zeros({1, 4, 2}), k = zeros({4, 3, 3});
  expect_error(ErrorKind::ShapeMismatch, "conv_transpose1d: kernel (3, 3, 3) does not go with",
               [&] { conv_transpose1d(x, zeros({3, 3, 3})); });
  expect_error(ErrorKind::ShapeMismatch, "leave no output", [&] { conv_transpose1d(x, k, {4}); });
  expect_error(
      ErrorKind::BadArgument,
      "conv_transpose1d: output padding (2,) must be less than stride (2,) or dilation (1,)",
      [&] { conv_transpose1d(x, k, {0}, {2}, {2}); });
  expect_error(ErrorKind::BadArgument, "stride", [&] { conv_transpose1d(x, k, {0}, {0}, {0}); });
  expect_error(ErrorKind::Unsupported, "more than",
               [&] { conv_transpose1d(x, k, {0}, {0}, {(std::int64_t{1} << 31) - 1}, {2}); });
}

TEST_P(Conv, RefusesOtherDtypesAndMixedOperands) {
  for (const DType dtype : kDTypes) {
    if (is_float(dtype)) continue;
    const Tensor x = Tensor::zeros({1, 1, 3}, dtype, device());
    expect_unsupported("conv1d", dtype, device(), [&] { conv1d(x, x); });
    expect_unsupported("conv_transpose1d", dtype, device(), [&] { conv_transpose1d(x, x); });
    const Tensor p = Tensor::zeros({1, 1, 3, 3}, dtype, device());
    expect_unsupported("conv2d", dtype, device(), [&] { conv2d(p, p); });
    expect_unsupported("conv_transpose2d", dtype, device(), [&] { conv_transpose2d(p, p); });
    const Tensor v = Tensor::zeros({1, 1, 3, 3, 3}, dtype, device());
    expect_unsupported("conv3d", dtype, device(), [&] { conv3d(v, v); });
    expect_unsupported("conv_transpose3d", dtype, device(), [&] { conv_transpose3d(v, v); });
  }
  const Tensor x = Tensor::zeros({1, 1, 3}, DType::F32, device());
  expect_error(ErrorKind::DTypeMismatch, "conv1d",
               [&] { conv1d(x, Tensor::zeros({1, 1, 3}, DType::F16, device())); });
  expect_error(ErrorKind::DTypeMismatch, "conv1d",
               [&] { conv1d(x, x, {0}, {1}, {1}, 1, Tensor::zeros({1}, DType::F64, device())); });
  if (!device().is_cpu()) {
    expect_error(ErrorKind::WrongDevice, "conv1d",
                 [&] { conv1d(x, Tensor::zeros({1, 1, 3}, DType::F32, Device::cpu())); });
  }
}

TEST_P(Conv, CopiesNothingToTheHostAndDoesNotWait) {
  if (device().is_cpu()) GTEST_SKIP() << "on the CPU there is nothing to wait for";
  const Tensor x = contiguous_on(uniform({1, 4, 6, 6}, -1, 1, 1), DType::F32, device());
  const Tensor k = contiguous_on(uniform({8, 4, 3, 3}, -1, 1, 2), DType::F32, device());
  const Tensor bias = contiguous_on(uniform({8}, -1, 1, 3), DType::F32, device());
  conv2d(x, k);  // loads the module
  const DriverCalls before = device().driver_calls();
  const Tensor y = conv2d(x, k.transpose(2, 3), {1}, {1}, {1}, 1, bias);
  const Tensor z = conv_transpose2d(y, k);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
