// Quantised products with AVX-512 VNNI, whose instruction adds up products of bytes in groups of
// four: the same integers as the portable path, and the same sums of floats after them.
#include "quant/cpu/product.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "quant/cpu/unpack.h"
#include "quant/formats.h"
#include "tl/base/float_bits.h"

// GCC 12 takes the undefined vectors in its own intrinsics for mistakes (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
// Everything from here on, and nothing that the headers above define, is compiled for it.
#if defined(__clang__)
#pragma clang attribute push(                                                               \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,avx2,fma"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,avx2,fma")
#endif

namespace tl::cpu {

namespace {

using qb::Bits8;

// clang-format off: each builds on those before it
#include "quant/cpu/encode-inl.h"
#include "quant/cpu/vectors-inl.h"
#include "quant/cpu/avx512-inl.h"
#include "quant/cpu/codes-inl.h"
#include "quant/cpu/few_rows-inl.h"
#include "quant/cpu/panel-inl.h"
#include "quant/cpu/rows-inl.h"
// clang-format on

}  // namespace

Activations::EncodeBlocks detail::vnni_encode() { return &encode_blocks; }

bool detail::has_vnni() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("f16c");
}

}  // namespace tl::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#pragma GCC diagnostic pop

namespace tl::cpu {

detail::RowsProduct detail::vnni_product(QType type) { return with_blocks(type, RowsOf{}); }

}  // namespace tl::cpu

#else

namespace tl::cpu {

bool detail::has_vnni() { return false; }
Activations::EncodeBlocks detail::vnni_encode() { return nullptr; }
detail::RowsProduct detail::vnni_product(QType) { return nullptr; }

}  // namespace tl::cpu

#endif
