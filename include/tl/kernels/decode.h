// The kernel of module DECODE: phases of one token's way through a decoder.
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

constexpr KernelId decode_kernel() { return {ModuleId::Decode, 0}; }

}  // namespace tl
