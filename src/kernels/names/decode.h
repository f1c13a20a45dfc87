// The kernels of module DECODE, in the order of their indices.
#pragma once

#include <array>

#include "kernels/kernel_name.h"
#include "tl/kernels/decode.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 1> kDecodeViews = {"decode_step"};

}  // namespace tl::kernels
