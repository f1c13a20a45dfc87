// Opens each vendor's library for matrix products once, at the first question about it.
#include "runtime/driver/blas.h"

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::driver {

std::string why_shut(const char* own, const char* driver) {
  if (environment("TL_NO_VENDOR_LIBS") == "1") return "TL_NO_VENDOR_LIBS=1";
  if (!environment(driver).empty() && environment(own).empty()) {
    return join(driver, " names another driver, and ", own, " no library for it");
  }
  return {};
}

const Found<BlasTable>& find_blas(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::Cuda: {
      static const auto* const found = new Found<BlasTable>(open_cublaslt());
      return *found;
    }
    case DeviceKind::Rocm: {
      static const auto* const found = new Found<BlasTable>(open_rocblas());
      return *found;
    }
    default: {
      static const auto* const none = new Found<BlasTable>{nullptr, "the CPU has its own"};
      return *none;
    }
  }
}

}  // namespace tl::driver
