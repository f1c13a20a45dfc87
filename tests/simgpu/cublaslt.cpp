// A cuBLASLt over the simulated GPU: the entry points the product uses, computed on the host by
// plain loops once the stream has come to the product. Strict about what a caller must keep to, and
// now and then without an algorithm, so that the way out is taken too.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tl/base/float_bits.h"

namespace {

namespace bits = tl::float_bits;

constexpr int kSuccess = 0, kInvalidValue = 7;
constexpr int kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14;

struct Desc {
  int compute = 0;
  int transpose_a = 0, transpose_b = 0;
  unsigned epilogue = 1;
  const void* bias = nullptr;
};
struct Matrix {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};
struct Preference {
  std::size_t workspace = 0;
  unsigned align[4] = {256, 256, 256, 256};
};
// Semi-opaque to the caller: what was promised when it was chosen.
struct Algorithm {
  std::uint64_t magic;
  std::uint64_t workspace;
  std::uint64_t align[3];
  std::uint64_t unused[3];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
constexpr std::uint64_t kMagic = 0x73696d626c617331u;
constexpr std::size_t kWorkspace = 4096;

std::atomic<std::uint64_t> products{0};

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "simcublaslt: %s\n", what);
  std::abort();
}

void expect(bool holds, const char* what) {
  if (!holds) broken(what);
}

double read(const void* at, std::int64_t i, int type) {
  switch (type) {
    case kF32:
      return static_cast<const float*>(at)[i];
    case kF64:
      return static_cast<const double*>(at)[i];
    case kF16:
      return static_cast<double>(bits::f16_to_f32(static_cast<const std::uint16_t*>(at)[i]));
    default:
      return static_cast<double>(bits::bf16_to_f32(static_cast<const std::uint16_t*>(at)[i]));
  }
}

void write(void* at, std::int64_t i, int type, double x) {
  switch (type) {
    case kF32:
      static_cast<float*>(at)[i] = static_cast<float>(x);
      break;
    case kF64:
      static_cast<double*>(at)[i] = x;
      break;
    case kF16:
      static_cast<std::uint16_t*>(at)[i] = bits::f32_to_f16(static_cast<float>(x));
      break;
    default:
      static_cast<std::uint16_t*>(at)[i] = bits::f32_to_bf16(static_cast<float>(x));
      break;
  }
}

std::int64_t size_of(int type) { return type == kF64 ? 8 : type == kF32 ? 4 : 2; }

void wait_for(void* stream) {
  static const auto synchronize = [] {
    void* driver = ::dlopen(std::getenv("TL_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    expect(driver != nullptr, "the simulated driver is not loaded");
    return reinterpret_cast<int (*)(void*)>(::dlsym(driver, "cuStreamSynchronize"));
  }();
  expect(synchronize(stream) == 0, "the stream failed");
}

void expect_layout(const Matrix& x) {
  expect(x.leading >= static_cast<std::int64_t>(x.rows), "a leading dimension below the rows");
}

}  // namespace

extern "C" {

#define SIM_EXPORT __attribute__((visibility("default")))

// How many products were made here.
SIM_EXPORT std::uint64_t simgpu_blas_products() { return products.load(); }

SIM_EXPORT int cublasLtCreate(void** handle) {
  static int one = 0;
  *handle = &one;
  return kSuccess;
}
SIM_EXPORT int cublasLtMatmulDescCreate(void** desc, int compute, int scale) {
  expect(scale == (compute == 70 ? kF64 : kF32), "a scale type that does not fit");
  auto* made = new Desc;
  made->compute = compute;
  *desc = made;
  return kSuccess;
}
SIM_EXPORT int cublasLtMatmulDescDestroy(void* desc) {
  delete static_cast<Desc*>(desc);
  return kSuccess;
}
SIM_EXPORT int cublasLtMatmulDescSetAttribute(void* desc, int attribute, const void* value,
                                              std::size_t bytes) {
  auto& d = *static_cast<Desc*>(desc);
  void* slot = attribute == 3   ? static_cast<void*>(&d.transpose_a)
               : attribute == 4 ? static_cast<void*>(&d.transpose_b)
               : attribute == 7 ? static_cast<void*>(&d.epilogue)
               : attribute == 8 ? static_cast<void*>(&d.bias)
                                : nullptr;
  if (slot == nullptr || bytes != (attribute == 8 ? 8u : 4u)) return kInvalidValue;
  std::memcpy(slot, value, bytes);
  return kSuccess;
}
SIM_EXPORT int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  auto* made = new Matrix;
  made->type = type;
  made->rows = rows;
  made->columns = columns;
  made->leading = leading;
  *layout = made;
  return kSuccess;
}
SIM_EXPORT int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Matrix*>(layout);
  return kSuccess;
}
SIM_EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value,
                                                std::size_t bytes) {
  auto& m = *static_cast<Matrix*>(layout);
  if (attribute == 5 && bytes == 4) {
    std::memcpy(&m.batch, value, bytes);
  } else if (attribute == 6 && bytes == 8) {
    std::memcpy(&m.stride, value, bytes);
  } else {
    return kInvalidValue;
  }
  return kSuccess;
}
SIM_EXPORT int cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = new Preference;
  return kSuccess;
}
SIM_EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Preference*>(preference);
  return kSuccess;
}
SIM_EXPORT int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute,
                                                    const void* value, std::size_t bytes) {
  auto& p = *static_cast<Preference*>(preference);
  if (attribute == 1 && bytes == 8) {
    std::memcpy(&p.workspace, value, bytes);
  } else if (attribute >= 5 && attribute <= 8 && bytes == 4) {
    std::memcpy(&p.align[attribute - 5], value, bytes);
  } else if (attribute != 3 || bytes != 4) {
    return kInvalidValue;
  }
  return kSuccess;
}
SIM_EXPORT int cublasLtMatmulAlgoGetHeuristic(void* /*handle*/, void* /*desc*/, void* /*a*/,
                                              void* /*b*/, void* c, void* /*d*/, void* preference,
                                              int wanted, Heuristic* results, int* found) {
  const auto& p = *static_cast<const Preference*>(preference);
  expect(wanted >= 1 && p.workspace >= kWorkspace, "room for one result and a workspace");
  *found = 0;
  if (static_cast<const Matrix*>(c)->rows % 7 == 0) return kSuccess;  // "no algorithm"
  *found = 1;
  *results = {};
  results->algorithm = {kMagic, kWorkspace, {p.align[0], p.align[1], p.align[2]}, {}};
  results->workspace = kWorkspace;
  return kSuccess;
}

SIM_EXPORT int cublasLtMatmul(void* /*handle*/, void* desc, const void* alpha, const void* a,
                              void* a_layout, const void* b, void* b_layout, const void* beta,
                              const void* c, void* c_layout, void* d, void* d_layout,
                              const Algorithm* algorithm, void* workspace, std::size_t bytes,
                              void* stream) {
  const auto& op = *static_cast<const Desc*>(desc);
  const auto& la = *static_cast<const Matrix*>(a_layout);
  const auto& lb = *static_cast<const Matrix*>(b_layout);
  const auto& lc = *static_cast<const Matrix*>(c_layout);
  expect(c == d && c_layout == d_layout, "C and D differ");
  expect(algorithm->magic == kMagic, "an algorithm that was not chosen here");
  const void* const at[] = {a, b, d};
  for (int i = 0; i < 3; ++i) {
    expect(reinterpret_cast<std::uintptr_t>(at[i]) % algorithm->align[i] == 0,
           "an address is less aligned than was said");
  }
  expect_layout(la);
  expect_layout(lb);
  expect_layout(lc);
  expect(la.batch == lc.batch && lb.batch == lc.batch, "batch counts differ");
  expect(workspace != nullptr && bytes >= algorithm->workspace, "the workspace is too small");
  const auto m = static_cast<std::int64_t>(lc.rows), n = static_cast<std::int64_t>(lc.columns);
  const auto k = static_cast<std::int64_t>(op.transpose_a ? la.rows : la.columns);
  expect(static_cast<std::int64_t>(op.transpose_a ? la.columns : la.rows) == m &&
             static_cast<std::int64_t>(op.transpose_b ? lb.rows : lb.columns) == n &&
             static_cast<std::int64_t>(op.transpose_b ? lb.columns : lb.rows) == k,
         "shapes do not fit");
  const bool wide = op.compute == 70;
  const double scale = wide ? *static_cast<const double*>(alpha)
                            : static_cast<double>(*static_cast<const float*>(alpha));
  const double keep = wide ? *static_cast<const double*>(beta)
                           : static_cast<double>(*static_cast<const float*>(beta));

  ++products;
  wait_for(stream);
  std::memset(workspace, 0xAB, algorithm->workspace);
  for (std::int64_t item = 0; item < lc.batch; ++item) {
    const auto* from_a = static_cast<const char*>(a) + item * la.stride * size_of(la.type);
    const auto* from_b = static_cast<const char*>(b) + item * lb.stride * size_of(lb.type);
    auto* to = static_cast<char*>(d) + item * lc.stride * size_of(lc.type);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += read(from_a, op.transpose_a ? p + i * la.leading : i + p * la.leading, la.type) *
                 read(from_b, op.transpose_b ? j + p * lb.leading : p + j * lb.leading, lb.type);
        }
        sum *= scale;
        if (keep != 0) sum += keep * read(to, i + j * lc.leading, lc.type);
        if (op.epilogue == 4) sum += read(op.bias, i, lc.type);
        write(to, i + j * lc.leading, lc.type, sum);
      }
    }
  }
  return kSuccess;
}

}  // extern "C"
