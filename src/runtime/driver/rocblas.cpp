// Fills the table of matrix products from rocBLAS (ROCm 5 to 7), opened at run time. TL_ROCBLAS
// names another file to open.
#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "runtime/driver/blas.h"
#include "runtime/driver/library.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::driver {

namespace {

namespace fs = std::filesystem;

struct Raw {
  Status (*create)(Handle* handle);
  Status (*set_stream)(Handle handle, Handle stream);
  Status (*set_atomics)(Handle handle, int mode);
  Status (*gemm)(Handle handle, int transpose_a, int transpose_b, std::int32_t m, std::int32_t n,
                 std::int32_t k, const void* alpha, const void* a, int a_type, std::int32_t lda,
                 std::int64_t stride_a, const void* b, int b_type, std::int32_t ldb,
                 std::int64_t stride_b, const void* beta, const void* c, int c_type,
                 std::int32_t ldc, std::int64_t stride_c, void* d, int d_type, std::int32_t ldd,
                 std::int64_t stride_d, std::int32_t batch, int compute_type, int algorithm,
                 std::int32_t solution, std::uint32_t flags);
};
Raw raw;

constexpr int kTypeF16 = 150, kTypeF32 = 151, kTypeF64 = 152, kTypeBf16 = 168;
constexpr int kNoTranspose = 111, kTranspose = 112;
constexpr int kAtomicsNotAllowed = 0;  // sums in a fixed order
constexpr int kStandardAlgorithm = 0;

int type_of(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return kTypeF16;
    case DType::BF16:
      return kTypeBf16;
    case DType::F32:
      return kTypeF32;
    case DType::F64:
      return kTypeF64;
    default:
      return -1;
  }
}

// Does the folder with the library's kernels have any for that GPU? Asked first, because the
// library ends the process when it finds none.
bool has_kernels_in(const fs::path& folder, std::string_view architecture) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::size_t found = name.find(architecture);
    if (found == std::string::npos) continue;
    const std::size_t after = found + architecture.size();
    if (after == name.size() || std::isxdigit(static_cast<unsigned char>(name[after])) == 0) {
      return true;
    }
  }
  return false;
}

bool has_kernels(std::string_view architecture) {
  const std::string_view bare = architecture.substr(0, architecture.find(':'));
  if (const auto named = environment("ROCBLAS_TENSILE_LIBPATH"); !named.empty()) {
    return has_kernels_in(fs::path(named), bare);
  }
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(raw.create), &info) == 0) return false;
  std::error_code error;
  const fs::path beside = fs::canonical(info.dli_fname, error).parent_path() / "rocblas";
  if (error) return false;
  if (has_kernels_in(beside / "library", bare)) return true;
  // Debian puts a version between the two.
  for (fs::directory_iterator at(beside, error), end; !error && at != end; at.increment(error)) {
    if (has_kernels_in(at->path() / "library", bare)) return true;
  }
  return false;
}

Handle create(const DeviceProperties& device) {
  if (!has_kernels(device.architecture)) return nullptr;
  Handle handle = nullptr;
  if (raw.create(&handle) != kSuccess) return nullptr;
  if (raw.set_atomics != nullptr) raw.set_atomics(handle, kAtomicsNotAllowed);
  return handle;
}

bool fits_int(std::int64_t x) { return x <= std::numeric_limits<std::int32_t>::max(); }

// There is nothing to work out: any pointer but null will do.
Handle make_plan(Handle handle, const BlasForm& f, std::size_t* workspace_bytes) {
  *workspace_bytes = 0;  // the library keeps its own
  const bool possible = type_of(f.in) >= 0 && type_of(f.out) >= 0 && !f.bias && fits_int(f.m) &&
                        fits_int(f.n) && fits_int(f.k) && fits_int(f.lda) && fits_int(f.ldb) &&
                        fits_int(f.ldc) && fits_int(f.batch);
  return possible ? handle : nullptr;
}

void forget(Handle /*plan*/) {}

bool run(Handle handle, Handle /*plan*/, const BlasForm& f, const BlasOperands& at, Handle stream) {
  if (raw.set_stream(handle, stream) != kSuccess) return false;
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const bool wide = f.in == DType::F64;
  const void* alpha = wide ? static_cast<const void*>(&wide_one) : &one;
  const void* beta = f.accumulate ? alpha : wide ? static_cast<const void*>(&wide_zero) : &zero;
  const auto narrow = [](std::int64_t x) { return static_cast<std::int32_t>(x); };
  return raw.gemm(handle, f.transpose_a ? kTranspose : kNoTranspose,
                  f.transpose_b ? kTranspose : kNoTranspose, narrow(f.m), narrow(f.n), narrow(f.k),
                  alpha, at.a, type_of(f.in), narrow(f.lda), f.stride_a, at.b, type_of(f.in),
                  narrow(f.ldb), f.stride_b, beta, at.c, type_of(f.out), narrow(f.ldc), f.stride_c,
                  at.c, type_of(f.out), narrow(f.ldc), f.stride_c, narrow(f.batch),
                  wide ? kTypeF64 : kTypeF32, kStandardAlgorithm, 0, 0) == kSuccess;
}

}  // namespace

Found<BlasTable> open_rocblas() {
  if (const std::string reason = why_shut("TL_ROCBLAS", "TL_HIP_DRIVER"); !reason.empty()) {
    return {nullptr, reason};
  }
  static BlasTable table;
  std::vector<std::string> names{"librocblas.so.5", "librocblas.so.4", "librocblas.so.3",
                                 "librocblas.so.0"};
  for (std::size_t i = 0, named = names.size(); i < named; ++i) {
    names.push_back(join("/opt/rocm/lib/", names[i]));
  }
  const Library library = Library::open("TL_ROCBLAS", names);
  if (!library) return {nullptr, library.reason()};
  Symbols symbols(library);
  symbols.need(raw.create, "rocblas_create_handle")
      .need(raw.set_stream, "rocblas_set_stream")
      .want(raw.set_atomics, "rocblas_set_atomics_mode")
      .need(raw.gemm, "rocblas_gemm_strided_batched_ex");
  if (!symbols.missing().empty()) {
    return {nullptr, join(library.file(), " has no ", symbols.missing())};
  }
  table = {library.file(), create, make_plan, forget, run};
  return {&table, {}};
}

}  // namespace tl::driver
