// The matrix unit of Intel's server CPUs (AMX): eight tiles of up to sixteen rows of 64 bytes, and
// instructions that multiply two of them and add to a third.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tl::cpu {

// Whether this CPU multiplies tiles of bytes, of bf16, and the system lets this process use them.
// The first call asks it to.
bool has_amx_int8();
bool has_amx_bf16();

// Rows and bytes of a row of each tile, in the CPU's own layout.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void set(int tile, int tile_rows, int row_bytes) {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    bytes[tile] = static_cast<std::uint16_t>(row_bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

#if defined(__x86_64__)
// While one lives, the tiles of this thread have these shapes. They are given up at its end: a
// thread that holds them costs more to switch to.
class Tiles {
 public:
  // The whole structure is the operand: GCC 12's intrinsic names its first eight bytes only, and
  // the compiler may leave the others unwritten.
  explicit Tiles(const TileShapes& shapes) { asm volatile("ldtilecfg %0" : : "m"(shapes)); }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// Stands before loads of tiles from memory that was written by ordinary code: GCC 12 does not know
// that its intrinsic reads it, and may leave what was written for later.
inline void before_tile_loads() { asm volatile("" : : : "memory"); }
#endif

}  // namespace tl::cpu
