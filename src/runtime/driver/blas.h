// The table of functions for matrix products that a vendor's library offers, in neutral terms.
// cublaslt.cpp and rocblas.cpp fill one each; like the drivers, the libraries are opened at run
// time and nothing needs them: what one cannot do is left to our own kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/driver/table.h"
#include "tl/base/dtype.h"

namespace tl::driver {

// C = A * B, or C += A * B, for a batch of matrices, as every BLAS sees it: column-major with
// leading dimensions. Equal forms can share what the library has to work out.
struct BlasForm {
  DType in = DType::F32;   // of A and B
  DType out = DType::F32;  // of C
  bool tf32 = false;       // operands may be rounded to tf32
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;  // C += instead of C =
  bool bias = false;        // a vector of m elements is added to every column of C
  std::uint16_t align_a = 1, align_b = 1,
                align_c = 1;  // of the addresses, a power of two up to 256
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;

  friend bool operator==(const BlasForm&, const BlasForm&) = default;
};

struct BlasOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

// All functions act on the thread's current context. Calls with one handle come one at a time.
struct BlasTable {
  std::string library;

  // A handle for a device; null when the library cannot serve it.
  Handle (*create)(const DeviceProperties& device) = nullptr;
  // What the library has worked out for a form, and the workspace it wants; null when it cannot do
  // that form.
  Handle (*plan)(Handle blas, const BlasForm& form, std::size_t* workspace_bytes) = nullptr;
  void (*forget)(Handle plan) = nullptr;
  // Queues the product on a stream. False when the library refuses; nothing was queued then.
  bool (*run)(Handle blas, Handle plan, const BlasForm& form, const BlasOperands& operands,
              Handle stream) = nullptr;
};

// Opened at the first call and kept. TL_NO_VENDOR_LIBS=1 keeps all of them shut.
const Found<BlasTable>& find_blas(DeviceKind kind);

// Should the library behind the environment variable `own` be left alone? Yes when vendors'
// libraries are switched off, and when the driver was replaced (by `driver`) but the library was
// not: it would look for the driver that is not in use.
std::string why_shut(const char* own, const char* driver);

// The parts, one per file.
Found<BlasTable> open_cublaslt();
Found<BlasTable> open_rocblas();

}  // namespace tl::driver
