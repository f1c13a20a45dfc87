// Which kernel images a device can run, told by the names of architectures.
#pragma once

#include <string_view>

namespace tl::driver {

// How well an image built for `image` suits a device that calls itself `device`; 0 means that it
// cannot run there. Best is the image for that very name. An NVIDIA device also runs machine code
// of its own generation for a lower minor number (sm_80 on sm_86), and as a last choice has its
// driver compile PTX that is not newer than itself (compute_75 on sm_90), the newest first.
// Everything else, AMD's included, goes by the exact name.
int suitability(std::string_view image, std::string_view device) noexcept;

}  // namespace tl::driver
