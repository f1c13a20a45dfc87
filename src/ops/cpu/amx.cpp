#include "ops/cpu/amx.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tl::cpu {

namespace {

// The kernel grants the tiles' 8 KiB of state to processes that ask (arch_prctl(2)).
bool ask_for_tiles() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// What cpuid says of AMX, in edx of leaf 7; 0 where it cannot be used.
unsigned amx_bits() {
  constexpr unsigned kTiles = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return 0;
  return (d & kTiles) != 0 && ask_for_tiles() ? d : 0;
}

bool has_bit(int bit) {
  static const unsigned bits = amx_bits();
  return (bits >> bit & 1u) != 0;
}

}  // namespace

bool has_amx_int8() { return has_bit(25); }
bool has_amx_bf16() { return has_bit(22); }

}  // namespace tl::cpu

#else

namespace tl::cpu {

bool has_amx_int8() { return false; }
bool has_amx_bf16() { return false; }

}  // namespace tl::cpu

#endif
