#include "ops/cpu/row_order.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::cpu {

namespace {

// AMD's CPUs since Zen 5. Zen 4 and Intel's with AMX were measured with rows apart alone.
bool reads_one_stream_best() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAuth = 0x68747541;  // of "AuthenticAMD"
  if (__get_cpuid(0, &a, &b, &c, &d) == 0 || b != kAuth) return false;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  const unsigned family = (a >> 8 & 15) + (a >> 20 & 255);
  constexpr unsigned kZen5 = 26;
  return family >= kZen5;
#else
  return false;
#endif
}

}  // namespace

RowOrder row_order(std::string_view name) {
  if (name == "apart") return RowOrder::Apart;
  if (name == "together") return RowOrder::Together;
  if (!name.empty()) {
    throw Error(ErrorKind::BadArgument, "TL_CPU_ROWS", "'", name,
                "' is no order of rows: there are apart, together");
  }
  return reads_one_stream_best() ? RowOrder::Together : RowOrder::Apart;
}

RowOrder best_row_order() {
  static const RowOrder best = row_order(environment("TL_CPU_ROWS"));
  return best;
}

}  // namespace tl::cpu
