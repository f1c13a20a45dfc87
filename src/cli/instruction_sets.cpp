// Which of the instruction sets that loops are compiled for this CPU has: two functions of Highway,
// which come with its library for everyone else. The library measures the clock when it is loaded,
// for four milliseconds; `tl --version` is to take less than that. What is defined here is not
// looked for there, so the linker leaves the library out.
#include <hwy/targets.h>

#include <cstdint>

namespace hwy {

// NOLINTBEGIN(readability-identifier-naming): Highway's names

std::int64_t SupportedTargets() {
#if defined(__x86_64__)
  std::int64_t targets = HWY_ENABLED_BASELINE;
  if (!__builtin_cpu_supports("ssse3")) return targets;
  targets |= HWY_SSSE3;
  if (!__builtin_cpu_supports("sse4.1") || !__builtin_cpu_supports("sse4.2") ||
      !__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) {
    return targets;
  }
  targets |= HWY_SSE4;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") ||
      !__builtin_cpu_supports("f16c") || !__builtin_cpu_supports("lzcnt")) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd")) {
    targets |= HWY_AVX3;
  }
  return targets;
#else
  return HWY_TARGETS;  // one set is compiled for, and the program would not run without it
#endif
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

// NOLINTEND(readability-identifier-naming)

}  // namespace hwy
