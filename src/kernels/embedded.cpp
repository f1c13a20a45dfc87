#include "kernels/embedded.h"

#include <cstdint>

#include "runtime/pack_registry.h"

// TL_KERNEL_PACK is the file's name, given by the build. The assembler copies the file as it is;
// as an array in C++ it would take a compiler minutes and gigabytes.
asm(".pushsection .rodata, \"a\"\n"
    ".balign 16\n"
    ".globl tl_kernel_pack\n"
    ".hidden tl_kernel_pack\n"
    "tl_kernel_pack:\n"
    ".incbin \"" TL_KERNEL_PACK
    "\"\n"
    "0:\n"
    ".balign 8\n"
    ".globl tl_kernel_pack_bytes\n"
    ".hidden tl_kernel_pack_bytes\n"
    "tl_kernel_pack_bytes:\n"
    ".quad 0b - tl_kernel_pack\n"
    ".popsection\n");

extern "C" {
extern const std::byte tl_kernel_pack[];
extern const std::uint64_t tl_kernel_pack_bytes;
}

namespace tl::kernels {

std::span<const std::byte> embedded_pack() noexcept {
  return {tl_kernel_pack, static_cast<std::size_t>(tl_kernel_pack_bytes)};
}

void install() {
  [[maybe_unused]] static const bool once = [] {
    register_pack(embedded_pack(), "built in");
    return true;
  }();
}

}  // namespace tl::kernels
