// Which instruction sets the loops are compiled for: what every x86-64 has, AVX2 with FMA, and
// AVX-512. (The ones between would take as long to compile and gain little.) Stands before
// hwy/foreach_target.h in each file that is compiled several times.
#pragma once

// Sanitizers and clang-tidy look at one of them, the one that the compiler's flags name
// (HWY_COMPILE_ONLY_STATIC in cmake/strict.cmake): the code is the same, and compiling it is most
// of their time.
#include <hwy/detect_targets.h>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
