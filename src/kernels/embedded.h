// The kernel pack inside the library.
#pragma once

#include <cstddef>
#include <span>

namespace tl::kernels {

// The pack's bytes, as tl-pack wrote them.
std::span<const std::byte> embedded_pack() noexcept;

// Makes the pack known to the runtime. Whoever asks for a module must have called this before, so
// the accessors in modules.cpp do: a static library's object that nobody refers to is not linked,
// and a static initialiser in it would be lost with it. All calls but the first cost one load.
void install();

}  // namespace tl::kernels
