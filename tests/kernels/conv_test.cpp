// What module CONV does for the vendors' libraries; convolutions themselves are tested with the
// ops.
#include "tl/kernels/conv.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/gpu_conv.h"
#include "kernels/launching.h"

namespace tl {
namespace {

class Pixels : public test::OnEveryGpu {};
TL_ON_EVERY_DEVICE(Pixels);

TEST_P(Pixels, ChannelsComeLastAndMissingOnesAreZero) {
  for (const int channels : {1, 3, 4}) {
    for (const test::Index images : {1, 3}) {
      for (const test::Index positions : {1, 49, 1000}) {
        for (const int narrow : {0, 1}) {
          std::vector<std::uint16_t> x(static_cast<std::size_t>(images * channels * positions));
          for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i + 1);
          const auto wanted_count = static_cast<std::size_t>(images * positions * kernels::kPixel);
          constexpr std::size_t kGuard = 8;
          std::vector<std::uint16_t> wanted(wanted_count + kGuard, 0);
          for (test::Index n = 0; n < images; ++n) {
            for (test::Index p = 0; p < positions; ++p) {
              for (int c = 0; c < channels; ++c) {
                wanted[static_cast<std::size_t>((n * positions + p) * kernels::kPixel + c)] =
                    x[static_cast<std::size_t>((n * channels + c) * positions + p)];
              }
            }
          }
          for (std::size_t i = 0; i < kGuard; ++i) wanted[wanted_count + i] = 0x5A5A;
          const auto in = DeviceMemory<std::uint16_t>::from_host(device(), x);
          auto out = DeviceMemory<std::uint16_t>::from_host(
              device(), std::vector<std::uint16_t>(wanted.size(), 0x5A5A));
          const kernels::PixelArgs args{.count = images * positions,
                                        .narrow = narrow,
                                        .channels = channels,
                                        .by_image = kernels::make_divider(positions)};
          run(pixels_kernel(), in.data(device().stream()), out.mutable_data(), args);
          ASSERT_EQ(out.to_vector(), wanted)
              << channels << " channels, " << images << " images of " << positions;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tl
