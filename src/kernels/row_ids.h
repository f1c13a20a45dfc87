// Indices as the row kernels read them. Included by kernels after gpu.h.
#pragma once

// An index of any index dtype, told by its size and sign; the dtype's largest value means "nothing"
// and comes out as -1.
struct Ids {
  const void* at;
  unsigned bytes;
  unsigned is_signed;

  GPU_INLINE Index get(Index i) const {
    switch (bytes) {
      case 1: {
        const Bits8 id = static_cast<const Bits8*>(at)[i];
        return id == 0xffu ? -1 : id;
      }
      case 2: {
        const short id = static_cast<const short*>(at)[i];
        return id == 0x7fff ? -1 : out_of_reach(id);
      }
      case 4: {
        const Bits32 id = static_cast<const Bits32*>(at)[i];
        if (!is_signed) return id == 0xffffffffu ? -1 : static_cast<Index>(id);
        return id == 0x7fffffffu ? -1 : out_of_reach(static_cast<int>(id));
      }
      default: {
        const Index id = static_cast<const Index*>(at)[i];
        return id == 0x7fffffffffffffffll ? -1 : out_of_reach(id);
      }
    }
  }
  // Negative indices are wrong, and must not look like "nothing".
  GPU_INLINE static Index out_of_reach(Index id) { return id < 0 ? id - 1 : id; }
};

GPU_INLINE Index as_given(Index id) { return id < 0 ? id + 1 : id; }
