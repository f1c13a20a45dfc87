// The one device layer: kernels are written against this header and nothing else.
//
// The same text compiles with nvcc and NVRTC, with clang for AMD GPUs (no HIP header and no device
// library: compiler builtins only) and hipRTC, and with the host compiler for the simulated GPU
// (-DGPU_HOST_WARP=32 or 64, see gpu_host.h). Here, in gpu_mma.h and in gpu_together.h stands the
// vendor #if: three blocks that define the same short list of primitives. What can be said with
// those primitives is in the gpu_*.h files included at the end.
//
// A kernel is `GPU_KERNEL void name(...)` at the start of a line (the build finds it by that
// spelling); it, or the function that is its body, begins with await_earlier(). Blocks have at most
// GPU_THREADS threads; a file that launches larger ones defines it before including this header.
// GPU_LEAST_BLOCKS, where it is defined and not 0, is how many of them a processor of NVIDIA's must
// have room for: without it ptxas aims for a number of its own, and spills a register or two to
// reach it. It may be defined anew between kernels.
#pragma once

#if defined(GPU_HOST_WARP)
#define GPU_SIMULATED 1
#elif defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GPU_NVIDIA 1
#elif defined(__HIP__) || defined(__HIPCC_RTC__)
#define GPU_AMD 1
#else
#error "gpu.h is for kernels: nvcc, NVRTC, clang -x hip, hipRTC, or -DGPU_HOST_WARP=32|64"
#endif

#ifndef GPU_THREADS
#define GPU_THREADS 256
#endif

// ---- how functions and memory are marked
//
// GPU_ROLLED stands before a loop that gains nothing from being unrolled: images stay small.
// GPU_UNROLLED stands before a short loop over an array that must stay in registers.
// GPU_MAY_ALIAS marks a type through which memory of other types is read. (NVRTC does not know it:
// no kernel reads what it wrote through another type.)

#if defined(GPU_NVIDIA)
#ifndef GPU_LEAST_BLOCKS
#define GPU_LEAST_BLOCKS 0
#endif
#define GPU_KERNEL extern "C" __global__ __launch_bounds__(GPU_THREADS, GPU_LEAST_BLOCKS)
#define GPU_INLINE __device__ __forceinline__
#define GPU_SHARED __shared__
#define GPU_MAY_ALIAS
#define GPU_ROLLED _Pragma("unroll 1")
#define GPU_UNROLLED _Pragma("unroll")
#define TL_FN constexpr __host__ __device__ __forceinline__
#elif defined(GPU_AMD)
#define GPU_KERNEL \
  extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, GPU_THREADS)))
#define GPU_INLINE __attribute__((device)) inline __attribute__((always_inline))
#define GPU_SHARED __attribute__((shared))
#define GPU_MAY_ALIAS [[gnu::may_alias]]
#define GPU_ROLLED _Pragma("unroll 1")
#define GPU_UNROLLED _Pragma("unroll")
#define TL_FN constexpr __attribute__((host, device)) inline __attribute__((always_inline))
#else
// Hidden, so that two modules in one process never share a function or its block-shared arrays.
#define GPU_KERNEL extern "C" __attribute__((visibility("hidden")))
#define GPU_INLINE inline __attribute__((visibility("hidden")))
#define GPU_MAY_ALIAS [[gnu::may_alias]]
#define GPU_ROLLED
#define GPU_UNROLLED
#define GPU_SHARED static thread_local  // all threads of a block run on one thread of the host
#endif

#include "gpu_args.h"
#include "tl/base/float_bits.h"

#if defined(GPU_SIMULATED)
#include "gpu_host.h"
#endif

using tl::kernels::FastDiv;
using tl::kernels::Fault;
using tl::kernels::Index;
using tl::kernels::offset;
using tl::kernels::Offsets;
using tl::kernels::offsets;
using tl::kernels::Strided;

namespace bits = tl::float_bits;
using bits::Bits16;
using bits::Bits32;
using bits::Bits64;
using bits::Bits8;

constexpr unsigned kBlockThreads = GPU_THREADS;

// What carries so many bytes through one instruction; 16 of them each vendor's own way.
template <int kBytes>
struct Carrier;
template <>
struct Carrier<1> {
  using Type = Bits8;
};
template <>
struct Carrier<2> {
  using Type = Bits16;
};
template <>
struct Carrier<4> {
  using Type = Bits32;
};
template <>
struct Carrier<8> {
  using Type = Bits64;
};
template <class T>
using CarrierOf = typename Carrier<sizeof(T)>::Type;

// ---- NVIDIA

#if defined(GPU_NVIDIA)

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes =
    0xffffffffu;  // lanes that do not exist or have returned do not count

// Axis 0 is x; kernels ask for others as thread_index<1>().
template <int kAxis = 0>
GPU_INLINE unsigned thread_index() {
  return kAxis == 0 ? threadIdx.x : kAxis == 1 ? threadIdx.y : threadIdx.z;
}
template <int kAxis = 0>
GPU_INLINE unsigned block_index() {
  return kAxis == 0 ? blockIdx.x : kAxis == 1 ? blockIdx.y : blockIdx.z;
}
template <int kAxis = 0>
GPU_INLINE unsigned block_threads() {
  return kAxis == 0 ? blockDim.x : kAxis == 1 ? blockDim.y : blockDim.z;
}
template <int kAxis = 0>
GPU_INLINE unsigned block_count() {
  return kAxis == 0 ? gridDim.x : kAxis == 1 ? gridDim.y : gridDim.z;
}
GPU_INLINE Index grid_threads() { return static_cast<Index>(gridDim.x) * blockDim.x; }

// A kernel may begin while the one before it in its stream still writes; this waits for that, and
// shows what was written. Every thread of every kernel calls it first, whatever it then reads or
// writes: a kernel that ended without it would let the next one begin before its time. The next one
// is called as soon as all blocks of this one are there, to wait in turn.
GPU_INLINE void await_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

GPU_INLINE void barrier() { __syncthreads(); }
GPU_INLINE unsigned lane() {
  unsigned id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}
GPU_INLINE Bits32 shuffle_word(Bits32 word, unsigned source) {
  return __shfl_sync(kAllLanes, word, static_cast<int>(source));
}
GPU_INLINE Bits64 warp_ballot(bool predicate) { return __ballot_sync(kAllLanes, predicate); }
GPU_INLINE unsigned count_bits(Bits32 b) { return static_cast<unsigned>(__popc(b)); }
GPU_INLINE unsigned count_bits(Bits64 b) { return static_cast<unsigned>(__popcll(b)); }

// Instructions before this stay before it. AMD's scheduler else takes the ballots, or the loads, of
// a whole unrolled loop together, which are more than there are registers.
GPU_INLINE void keep_order() {}

// x, but the compiler does not know it: what follows from it is computed again rather than kept in
// registers from before. For the places of many elements, which cost next to nothing to compute.
GPU_INLINE unsigned forgotten(unsigned x) {
  asm volatile("" : "+r"(x));
  return x;
}

GPU_INLINE float atomic_add(float* p, float v) { return atomicAdd(p, v); }
GPU_INLINE int atomic_add(int* p, int v) { return atomicAdd(p, v); }
GPU_INLINE Bits32 atomic_add(Bits32* p, Bits32 v) { return atomicAdd(p, v); }
GPU_INLINE Bits64 atomic_add(Bits64* p, Bits64 v) { return atomicAdd(p, v); }
GPU_INLINE int atomic_max(int* p, int v) { return atomicMax(p, v); }
GPU_INLINE Bits32 atomic_max(Bits32* p, Bits32 v) { return atomicMax(p, v); }
GPU_INLINE Bits32 atomic_or(Bits32* p, Bits32 v) { return atomicOr(p, v); }
GPU_INLINE Bits32 atomic_swap_if(Bits32* p, Bits32 expected, Bits32 v) {
  return atomicCAS(p, expected, v);
}
GPU_INLINE Bits64 atomic_swap_if(Bits64* p, Bits64 expected, Bits64 v) {
  return atomicCAS(p, expected, v);
}

// Reads and writes of what is not asked for again soon: caches keep the rest instead. T has 1, 2,
// 4, 8 or 16 bytes.
template <>
struct Carrier<16> {
  using Type = uint4;
};
template <class T>
GPU_INLINE T load_once(const T* p) {
  return __builtin_bit_cast(T, __ldcs(reinterpret_cast<const CarrierOf<T>*>(p)));
}
template <class T>
GPU_INLINE void store_once(T* p, T value) {
  __stcs(reinterpret_cast<CarrierOf<T>*>(p), __builtin_bit_cast(CarrierOf<T>, value));
}

GPU_INLINE void* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char gpu_dynamic_shared[];
  return gpu_dynamic_shared;
}

GPU_INLINE int dot4(int a, int b, int sum) { return __dp4a(a, b, sum); }

// The hardware conversions round like float_bits.h does; only the payload of a NaN differs.
GPU_INLINE float f16_to_float(Bits16 h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
GPU_INLINE Bits16 float_to_f16(float x) {
  Bits16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
#if __CUDA_ARCH__ >= 800
GPU_INLINE Bits16 float_to_bf16(float x) {
  Bits16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
#else
GPU_INLINE Bits16 float_to_bf16(float x) { return bits::f32_to_bf16(x); }
#endif
#if __CUDA_ARCH__ >= 890
GPU_INLINE float f8_to_float(Bits8 b) {
  Bits32 pair;  // of f16: the format converts in pairs only
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<Bits16>(b)));
  return f16_to_float(static_cast<Bits16>(pair));
}
GPU_INLINE Bits8 float_to_f8(float x) {
  Bits16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return static_cast<Bits8>(pair);
}
#else
// The bits of an f8 moved to where f16 has them are 2^-8 of the value, subnormals included. The one
// NaN, all ones, gets the exponent of a NaN by addition: a choice would take a register per
// element.
GPU_INLINE float f8_to_float(Bits8 b) {
  const unsigned magnitude = b & 0x7fu;
  const unsigned moved = (magnitude << 7) + ((magnitude + 1) >> 7 << 14);
  return f16_to_float(static_cast<Bits16>((b & 0x80u) << 8 | moved)) * 256.0f;
}
GPU_INLINE Bits8 float_to_f8(float x) { return bits::f32_to_f8e4m3(x); }
#endif

namespace math {
GPU_INLINE float mul(float a, float b) { return __fmul_rn(a, b); }  // never part of an fma
GPU_INLINE double mul(double a, double b) { return __dmul_rn(a, b); }
// 1 / x rounded to the nearest, for |x| from 2^-125 to 2^125. The compiler's own division does the
// same three steps, but behind a branch for other x, which keeps elements from being interleaved.
GPU_INLINE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return ::fmaf(y, ::fmaf(-x, y, 1.0f), y);
}
GPU_INLINE double reciprocal(double x) { return 1.0 / x; }
GPU_INLINE float exp(float x) { return ::expf(x); }
GPU_INLINE float exp2(float x) { return ::exp2f(x); }
GPU_INLINE float log(float x) { return ::logf(x); }
GPU_INLINE float log2(float x) { return ::log2f(x); }
GPU_INLINE float sqrt(float x) { return ::sqrtf(x); }
GPU_INLINE double sqrt(double x) { return ::sqrt(x); }
GPU_INLINE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
GPU_INLINE double fma(double a, double b, double c) { return ::fma(a, b, c); }
GPU_INLINE float abs(float x) { return ::fabsf(x); }
GPU_INLINE double abs(double x) { return ::fabs(x); }
GPU_INLINE float floor(float x) { return ::floorf(x); }
GPU_INLINE double floor(double x) { return ::floor(x); }
GPU_INLINE float ceil(float x) { return ::ceilf(x); }
GPU_INLINE double ceil(double x) { return ::ceil(x); }
GPU_INLINE float trunc(float x) { return ::truncf(x); }
GPU_INLINE double trunc(double x) { return ::trunc(x); }
GPU_INLINE float rint(float x) { return ::rintf(x); }  // ties to even
GPU_INLINE double rint(double x) { return ::rint(x); }
GPU_INLINE float copysign(float x, float sign) { return ::copysignf(x, sign); }
GPU_INLINE double copysign(double x, double sign) { return ::copysign(x, sign); }
}  // namespace math

// ---- AMD

#elif defined(GPU_AMD)

#if defined(__GFX9__)
constexpr unsigned kWarp = 64;
#else
constexpr unsigned kWarp = 32;
#endif

template <int kAxis = 0>
GPU_INLINE unsigned thread_index() {
  return kAxis == 0   ? __builtin_amdgcn_workitem_id_x()
         : kAxis == 1 ? __builtin_amdgcn_workitem_id_y()
                      : __builtin_amdgcn_workitem_id_z();
}
template <int kAxis = 0>
GPU_INLINE unsigned block_index() {
  return kAxis == 0   ? __builtin_amdgcn_workgroup_id_x()
         : kAxis == 1 ? __builtin_amdgcn_workgroup_id_y()
                      : __builtin_amdgcn_workgroup_id_z();
}
template <int kAxis = 0>
GPU_INLINE unsigned block_threads() {
  return kAxis == 0   ? __builtin_amdgcn_workgroup_size_x()
         : kAxis == 1 ? __builtin_amdgcn_workgroup_size_y()
                      : __builtin_amdgcn_workgroup_size_z();
}
// The dispatch packet counts threads, so the number of threads is at hand and the number of blocks
// is a division.
GPU_INLINE Index grid_threads() { return __builtin_amdgcn_grid_size_x(); }
template <int kAxis = 0>
GPU_INLINE unsigned block_count() {
  return (kAxis == 0   ? __builtin_amdgcn_grid_size_x()
          : kAxis == 1 ? __builtin_amdgcn_grid_size_y()
                       : __builtin_amdgcn_grid_size_z()) /
         block_threads<kAxis>();
}

GPU_INLINE void await_earlier() {}  // kernels of a stream begin one after the other
GPU_INLINE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
GPU_INLINE unsigned lane() {
  const unsigned low = __builtin_amdgcn_mbcnt_lo(~0u, 0u);
  return kWarp == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, low) : low;
}
GPU_INLINE Bits32 shuffle_word(Bits32 word, unsigned source) {
  return static_cast<Bits32>(
      __builtin_amdgcn_ds_bpermute(static_cast<int>(source << 2), static_cast<int>(word)));
}
// The compiler of ROCm 5 knows the ballot only as a comparison of integers (33 is "not equal").
#if !__has_builtin(__builtin_amdgcn_ballot_w64)
GPU_INLINE Bits64 warp_ballot(bool predicate) { return __builtin_amdgcn_uicmp(predicate, 0u, 33); }
#elif defined(__GFX9__)
GPU_INLINE Bits64 warp_ballot(bool predicate) { return __builtin_amdgcn_ballot_w64(predicate); }
#else
GPU_INLINE Bits64 warp_ballot(bool predicate) { return __builtin_amdgcn_ballot_w32(predicate); }
#endif
GPU_INLINE void keep_order() { __builtin_amdgcn_sched_barrier(0); }
GPU_INLINE unsigned forgotten(unsigned x) {
  asm volatile("" : "+v"(x));
  return x;
}

template <class T>
GPU_INLINE T atomic_add(T* p, T v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
GPU_INLINE T atomic_max(T* p, T v) {
  return __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
GPU_INLINE T atomic_or(T* p, T v) {
  return __hip_atomic_fetch_or(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
GPU_INLINE T atomic_swap_if(T* p, T expected, T v) {
  __hip_atomic_compare_exchange_strong(p, &expected, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}

template <>
struct Carrier<16> {
  using Type = Bits32 __attribute__((ext_vector_type(4)));
};
template <class T>
GPU_INLINE T load_once(const T* p) {
  return __builtin_bit_cast(T,
                            __builtin_nontemporal_load(reinterpret_cast<const CarrierOf<T>*>(p)));
}
template <class T>
GPU_INLINE void store_once(T* p, T value) {
  __builtin_nontemporal_store(__builtin_bit_cast(CarrierOf<T>, value),
                              reinterpret_cast<CarrierOf<T>*>(p));
}

extern __attribute__((shared)) Bits64 gpu_dynamic_shared[];
GPU_INLINE void* dynamic_shared() { return gpu_dynamic_shared; }

// Four products of signed bytes added to `sum`. __has_builtin says yes on every target, so the
// targets are named.
GPU_INLINE int dot4(int a, int b, int sum) {
#if defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_sudot4(true, a, true, b, sum, false);
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || \
    defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__) || defined(__gfx1030__) ||  \
    defined(__gfx1031__) || defined(__gfx1032__) || defined(__gfx1033__) ||                       \
    defined(__gfx1034__) || defined(__gfx1035__) || defined(__gfx1036__)
  return __builtin_amdgcn_sdot4(a, b, sum, false);
#else
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  }
  return sum;
#endif
}

// f16 has hardware conversions everywhere. The f8 instructions of gfx94x speak another format (no
// negative zero, other bias), so f8 and bf16 are bit work on all targets, with the same result on
// each.
GPU_INLINE float f16_to_float(Bits16 h) {
  return static_cast<float>(__builtin_bit_cast(_Float16, h));
}
GPU_INLINE Bits16 float_to_f16(float x) {
  return __builtin_bit_cast(Bits16, static_cast<_Float16>(x));
}
GPU_INLINE Bits16 float_to_bf16(float x) { return bits::f32_to_bf16(x); }
// The bits of an f8 moved to where f16 has them are 2^-8 of the value, subnormals included. The one
// NaN, all ones, gets the exponent of a NaN by addition: a choice would take a register per
// element.
GPU_INLINE float f8_to_float(Bits8 b) {
  const unsigned magnitude = b & 0x7fu;
  const unsigned moved = (magnitude << 7) + ((magnitude + 1) >> 7 << 14);
  return f16_to_float(static_cast<Bits16>((b & 0x80u) << 8 | moved)) * 256.0f;
}
GPU_INLINE Bits8 float_to_f8(float x) { return bits::f32_to_f8e4m3(x); }

// ---- the simulated GPU

#else

constexpr unsigned kWarp = GPU_HOST_WARP;
static_assert(kWarp == 32 || kWarp == 64);

// Weak: one copy for all files of a module. The simulator binds each module it opens.
extern "C" {
__attribute__((weak, visibility("hidden"))) const gpu_host::Api* gpu_host_api = nullptr;
__attribute__((weak)) extern const unsigned gpu_host_warp;
const unsigned gpu_host_warp = kWarp;
__attribute__((weak)) void gpu_host_bind(const gpu_host::Api* api);
void gpu_host_bind(const gpu_host::Api* api) { gpu_host_api = api; }
}

template <int kAxis = 0>
GPU_INLINE unsigned thread_index() {
  return gpu_host_api->self()->thread[kAxis];
}
template <int kAxis = 0>
GPU_INLINE unsigned block_index() {
  return gpu_host_api->self()->block[kAxis];
}
template <int kAxis = 0>
GPU_INLINE unsigned block_threads() {
  return gpu_host_api->self()->block_dim[kAxis];
}
template <int kAxis = 0>
GPU_INLINE unsigned block_count() {
  return gpu_host_api->self()->grid_dim[kAxis];
}
GPU_INLINE Index grid_threads() { return static_cast<Index>(block_count()) * block_threads(); }

GPU_INLINE void await_earlier() {}
GPU_INLINE void barrier() { gpu_host_api->barrier(); }
GPU_INLINE unsigned lane() { return gpu_host_api->self()->lane; }
GPU_INLINE Bits32 shuffle_word(Bits32 word, unsigned source) {
  return static_cast<Bits32>(gpu_host_api->shuffle(word, source));
}
GPU_INLINE Bits64 warp_ballot(bool predicate) { return gpu_host_api->ballot(predicate); }
GPU_INLINE void keep_order() {}
GPU_INLINE unsigned forgotten(unsigned x) { return x; }

template <class T>
GPU_INLINE T atomic_add(T* p, T v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
template <class T>
GPU_INLINE T atomic_swap_if(T* p, T expected, T v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
GPU_INLINE float atomic_add(float* p, float v) {
  float seen = 0, next = 0;
  __atomic_load(p, &seen, __ATOMIC_RELAXED);
  do {
    next = seen + v;
  } while (!__atomic_compare_exchange(p, &seen, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return seen;
}
template <class T>
GPU_INLINE T atomic_max(T* p, T v) {
  T seen = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (seen < v &&
         !__atomic_compare_exchange_n(p, &seen, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}
template <class T>
GPU_INLINE T atomic_or(T* p, T v) {
  return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}

template <class T>
GPU_INLINE T load_once(const T* p) {
  return *p;
}
template <class T>
GPU_INLINE void store_once(T* p, T value) {
  *p = value;
}

GPU_INLINE void* dynamic_shared() { return gpu_host_api->dynamic_shared(); }

GPU_INLINE int dot4(int a, int b, int sum) {
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  }
  return sum;
}

GPU_INLINE float f16_to_float(Bits16 h) { return bits::f16_to_f32(h); }
GPU_INLINE Bits16 float_to_f16(float x) { return bits::f32_to_f16(x); }
GPU_INLINE Bits16 float_to_bf16(float x) { return bits::f32_to_bf16(x); }
GPU_INLINE float f8_to_float(Bits8 b) { return bits::f8e4m3_to_f32(b); }
GPU_INLINE Bits8 float_to_f8(float x) { return bits::f32_to_f8e4m3(x); }

#endif

// What the compilers for AMD and for the host know as builtins. The float exp and log of LLVM's AMD
// back end are within 1 and 2 ulp; functions it does not have (erf, tanh, all of double's) are
// written in the kernels that need them.
#if !defined(GPU_NVIDIA)
GPU_INLINE unsigned count_bits(Bits32 b) { return static_cast<unsigned>(__builtin_popcount(b)); }
GPU_INLINE unsigned count_bits(Bits64 b) { return static_cast<unsigned>(__builtin_popcountll(b)); }
namespace math {
// Never part of an fma. (The host's compilers are told so by a flag.)
#if defined(GPU_AMD)
#define GPU_UNFUSED _Pragma("clang fp contract(off)")
#else
#define GPU_UNFUSED
#endif
GPU_INLINE float mul(float a, float b) {
  GPU_UNFUSED
  return a * b;
}
GPU_INLINE double mul(double a, double b) {
  GPU_UNFUSED
  return a * b;
}
#undef GPU_UNFUSED
GPU_INLINE float reciprocal(float x) { return 1.0f / x; }
GPU_INLINE double reciprocal(double x) { return 1.0 / x; }
GPU_INLINE float exp(float x) { return __builtin_expf(x); }
GPU_INLINE float exp2(float x) { return __builtin_exp2f(x); }
GPU_INLINE float log(float x) { return __builtin_logf(x); }
GPU_INLINE float log2(float x) { return __builtin_log2f(x); }
GPU_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
GPU_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
GPU_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
GPU_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
GPU_INLINE float abs(float x) { return __builtin_fabsf(x); }
GPU_INLINE double abs(double x) { return __builtin_fabs(x); }
GPU_INLINE float floor(float x) { return __builtin_floorf(x); }
GPU_INLINE double floor(double x) { return __builtin_floor(x); }
GPU_INLINE float ceil(float x) { return __builtin_ceilf(x); }
GPU_INLINE double ceil(double x) { return __builtin_ceil(x); }
GPU_INLINE float trunc(float x) { return __builtin_truncf(x); }
GPU_INLINE double trunc(double x) { return __builtin_trunc(x); }
GPU_INLINE float rint(float x) { return __builtin_rintf(x); }  // ties to even
GPU_INLINE double rint(double x) { return __builtin_rint(x); }
GPU_INLINE float copysign(float x, float sign) { return __builtin_copysignf(x, sign); }
GPU_INLINE double copysign(double x, double sign) { return __builtin_copysign(x, sign); }
}  // namespace math
#endif

// What elementary.h asks of a device.
#define TL_MATH_FN GPU_INLINE
#if defined(GPU_NVIDIA)
#define TL_MATH_TABLE static __device__ constexpr
#elif defined(GPU_AMD)
#define TL_MATH_TABLE static __attribute__((device)) constexpr
#else
#define TL_MATH_TABLE static constexpr
#endif
namespace tl {
namespace primitive = ::math;
}

#include "gpu_types.h"
#include "gpu_warp.h"
