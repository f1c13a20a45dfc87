// Is this a kernel image at all?
//
// Drivers are given an image without its size and trust the offsets inside, so a truncated or
// foreign file can crash the process there. Images of packs are covered by a checksum, but a pack
// may have been made from a damaged file; so what goes to a driver is looked over first: every
// table and section must lie within the bytes there are.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tl {

// Empty when the bytes are a whole ELF file (machine code of either vendor) or PTX text; else what
// is wrong with them.
std::string image_problem(std::span<const std::byte> image);

}  // namespace tl
