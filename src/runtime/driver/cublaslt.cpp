// Fills the table of matrix products from cuBLASLt (CUDA 12 and 13), opened at run time.
// TL_CUBLASLT names another file to open.
#include <array>
#include <memory>

#include "runtime/driver/blas.h"
#include "runtime/driver/library.h"
#include "tl/base/error.h"

namespace tl::driver {

namespace {

// As the library declares it.
struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

struct Raw {
  Status (*create)(Handle* handle);
  Status (*desc_create)(Handle* desc, int compute_type, int scale_type);
  Status (*desc_destroy)(Handle desc);
  Status (*desc_set)(Handle desc, int attribute, const void* value, std::size_t bytes);
  Status (*layout_create)(Handle* layout, int type, std::uint64_t rows, std::uint64_t columns,
                          std::int64_t leading);
  Status (*layout_destroy)(Handle layout);
  Status (*layout_set)(Handle layout, int attribute, const void* value, std::size_t bytes);
  Status (*preference_create)(Handle* preference);
  Status (*preference_destroy)(Handle preference);
  Status (*preference_set)(Handle preference, int attribute, const void* value, std::size_t bytes);
  Status (*heuristic)(Handle handle, Handle desc, Handle a, Handle b, Handle c, Handle d,
                      Handle preference, int wanted, Heuristic* results, int* found);
  Status (*matmul)(Handle handle, Handle desc, const void* alpha, const void* a, Handle a_layout,
                   const void* b, Handle b_layout, const void* beta, const void* c, Handle c_layout,
                   void* d, Handle d_layout, const Algorithm* algorithm, void* workspace,
                   std::size_t workspace_bytes, Handle stream);
};
Raw raw;

constexpr int kTypeF32 = 0, kTypeF64 = 1, kTypeF16 = 2, kTypeBf16 = 14;
constexpr int kComputeF32 = 68, kComputeF64 = 70, kComputeTf32 = 77;
constexpr int kDescTransposeA = 3, kDescTransposeB = 4, kDescEpilogue = 7, kDescBias = 8;
constexpr int kLayoutBatch = 5, kLayoutStride = 6;
constexpr int kPreferenceWorkspace = 1, kPreferenceReduction = 3;
constexpr int kPreferenceAlignA = 5, kPreferenceAlignB = 6, kPreferenceAlignC = 7,
              kPreferenceAlignD = 8;
constexpr std::int32_t kTranspose = 1;
constexpr std::uint32_t kEpilogueBias = 4;
// Partial sums are added up in the type they are summed in, never in the type of the result.
constexpr std::uint32_t kReduceInComputeType = 2;

constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;

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

struct Plan {
  Handle desc = nullptr;
  Handle a = nullptr, b = nullptr, c = nullptr;
  Algorithm algorithm{};

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (c != nullptr) raw.layout_destroy(c);
    if (b != nullptr) raw.layout_destroy(b);
    if (a != nullptr) raw.layout_destroy(a);
    if (desc != nullptr) raw.desc_destroy(desc);
  }
};

Handle create(const DeviceProperties& /*device*/) {
  Handle handle = nullptr;
  return raw.create(&handle) == kSuccess ? handle : nullptr;
}

template <class T>
bool set(Status (*function)(Handle, int, const void*, std::size_t), Handle object, int attribute,
         T value) {
  return function(object, attribute, &value, sizeof value) == kSuccess;
}

bool make_layout(Handle* layout, int type, std::int64_t rows, std::int64_t columns,
                 std::int64_t leading, std::int64_t batch, std::int64_t stride) {
  if (raw.layout_create(layout, type, static_cast<std::uint64_t>(rows),
                        static_cast<std::uint64_t>(columns), leading) != kSuccess) {
    return false;
  }
  if (batch == 1) return true;
  return set(raw.layout_set, *layout, kLayoutBatch, static_cast<std::int32_t>(batch)) &&
         set(raw.layout_set, *layout, kLayoutStride, stride);
}

bool describe(Plan& plan, const BlasForm& f) {
  const int in = type_of(f.in), out = type_of(f.out);
  if (in < 0 || out < 0) return false;
  const bool wide = f.in == DType::F64;
  const int compute = wide ? kComputeF64 : f.tf32 ? kComputeTf32 : kComputeF32;
  if (raw.desc_create(&plan.desc, compute, wide ? kTypeF64 : kTypeF32) != kSuccess) return false;
  if (f.transpose_a && !set(raw.desc_set, plan.desc, kDescTransposeA, kTranspose)) return false;
  if (f.transpose_b && !set(raw.desc_set, plan.desc, kDescTransposeB, kTranspose)) return false;
  if (f.bias && !set(raw.desc_set, plan.desc, kDescEpilogue, kEpilogueBias)) return false;
  return make_layout(&plan.a, in, f.transpose_a ? f.k : f.m, f.transpose_a ? f.m : f.k, f.lda,
                     f.batch, f.stride_a) &&
         make_layout(&plan.b, in, f.transpose_b ? f.n : f.k, f.transpose_b ? f.k : f.n, f.ldb,
                     f.batch, f.stride_b) &&
         make_layout(&plan.c, out, f.m, f.n, f.ldc, f.batch, f.stride_c);
}

bool choose(Handle handle, Plan& plan, const BlasForm& f, std::size_t* workspace_bytes) {
  Handle preference = nullptr;
  if (raw.preference_create(&preference) != kSuccess) return false;
  Heuristic best{};
  int found = 0;
  const bool chosen =
      set(raw.preference_set, preference, kPreferenceWorkspace, kMostWorkspace) &&
      set(raw.preference_set, preference, kPreferenceReduction, kReduceInComputeType) &&
      set(raw.preference_set, preference, kPreferenceAlignA, std::uint32_t{f.align_a}) &&
      set(raw.preference_set, preference, kPreferenceAlignB, std::uint32_t{f.align_b}) &&
      set(raw.preference_set, preference, kPreferenceAlignC, std::uint32_t{f.align_c}) &&
      set(raw.preference_set, preference, kPreferenceAlignD, std::uint32_t{f.align_c}) &&
      raw.heuristic(handle, plan.desc, plan.a, plan.b, plan.c, plan.c, preference, 1, &best,
                    &found) == kSuccess &&
      found == 1 && best.status == kSuccess;
  raw.preference_destroy(preference);
  if (!chosen) return false;
  plan.algorithm = best.algorithm;
  *workspace_bytes = best.workspace_bytes;
  return true;
}

Handle make_plan(Handle handle, const BlasForm& form, std::size_t* workspace_bytes) {
  auto plan = std::make_unique<Plan>();
  if (!describe(*plan, form) || !choose(handle, *plan, form, workspace_bytes)) return nullptr;
  return plan.release();
}

void forget(Handle plan) { delete static_cast<Plan*>(plan); }

bool run(Handle handle, Handle made, const BlasForm& form, const BlasOperands& at, Handle stream) {
  const Plan& plan = *static_cast<const Plan*>(made);
  if (form.bias && !set(raw.desc_set, plan.desc, kDescBias, at.bias)) return false;
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const bool wide = form.in == DType::F64;
  const void* alpha = wide ? static_cast<const void*>(&wide_one) : &one;
  const void* beta = form.accumulate ? alpha : wide ? static_cast<const void*>(&wide_zero) : &zero;
  return raw.matmul(handle, plan.desc, alpha, at.a, plan.a, at.b, plan.b, beta, at.c, plan.c, at.c,
                    plan.c, &plan.algorithm, at.workspace, at.workspace_bytes, stream) == kSuccess;
}

}  // namespace

Found<BlasTable> open_cublaslt() {
  if (const std::string reason = why_shut("TL_CUBLASLT", "TL_CUDA_DRIVER"); !reason.empty()) {
    return {nullptr, reason};
  }
  static BlasTable table;
  const std::array<std::string, 3> names{"libcublasLt.so.13", "libcublasLt.so.12",
                                         "libcublasLt.so"};
  const Library library = Library::open("TL_CUBLASLT", names);
  if (!library) return {nullptr, library.reason()};
  Symbols symbols(library);
  symbols.need(raw.create, "cublasLtCreate")
      .need(raw.desc_create, "cublasLtMatmulDescCreate")
      .need(raw.desc_destroy, "cublasLtMatmulDescDestroy")
      .need(raw.desc_set, "cublasLtMatmulDescSetAttribute")
      .need(raw.layout_create, "cublasLtMatrixLayoutCreate")
      .need(raw.layout_destroy, "cublasLtMatrixLayoutDestroy")
      .need(raw.layout_set, "cublasLtMatrixLayoutSetAttribute")
      .need(raw.preference_create, "cublasLtMatmulPreferenceCreate")
      .need(raw.preference_destroy, "cublasLtMatmulPreferenceDestroy")
      .need(raw.preference_set, "cublasLtMatmulPreferenceSetAttribute")
      .need(raw.heuristic, "cublasLtMatmulAlgoGetHeuristic")
      .need(raw.matmul, "cublasLtMatmul");
  if (!symbols.missing().empty()) {
    return {nullptr, join(library.file(), " has no ", symbols.missing())};
  }
  table = {library.file(), create, make_plan, forget, run};
  return {&table, {}};
}

}  // namespace tl::driver
