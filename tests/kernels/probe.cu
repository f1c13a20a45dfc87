// Kernels that exist to be tested: each uses one primitive of gpu.h where every thread can show
// what it got. Blocks of any size up to 256, so that partly filled warps are covered.
#include "gpu.h"

template <class T>
GPU_INLINE void block_reductions(const T* in, T* sum, T* max, T* warp) {
  const Index i = global_thread();
  sum[i] = block_sum(in[i]);
  max[i] = block_max(in[i]);
  warp[i] = warp_sum(in[i], live_lanes());
}

GPU_KERNEL void probe_reduce_f32(const float* in, float* sum, float* max, float* warp) {
  block_reductions(in, sum, max, warp);
}
GPU_KERNEL void probe_reduce_f64(const double* in, double* sum, double* max, double* warp) {
  block_reductions(in, sum, max, warp);
}
GPU_KERNEL void probe_reduce_i32(const int* in, int* sum, int* max, int* warp) {
  block_reductions(in, sum, max, warp);
}
GPU_KERNEL void probe_reduce_i64(const Index* in, Index* sum, Index* max, Index* warp) {
  block_reductions(in, sum, max, warp);
}

template <class T>
GPU_INLINE void shuffles(const T* in, T* crossed, T* down, T* first) {
  const Index i = global_thread();
  crossed[i] = shuffle_xor(in[i], 5);
  down[i] = shuffle_down(in[i], 3);
  first[i] = shuffle(in[i], 0);
}

GPU_KERNEL void probe_shuffle_2(const Half* in, Half* crossed, Half* down, Half* first) {
  shuffles(in, crossed, down, first);
}
GPU_KERNEL void probe_shuffle_4(const float* in, float* crossed, float* down, float* first) {
  shuffles(in, crossed, down, first);
}
GPU_KERNEL void probe_shuffle_8(const double* in, double* crossed, double* down, double* first) {
  shuffles(in, crossed, down, first);
}

// where: lane, warp, and a ballot of the odd inputs, per thread
GPU_KERNEL void probe_where(const Bits32* in, Bits32* lanes, Bits32* warps, Bits64* ballots) {
  const Index i = global_thread();
  lanes[i] = lane();
  warps[i] = warp_index();
  ballots[i] = warp_ballot((in[i] & 1) != 0);
}

GPU_KERNEL void probe_axes(Bits32* out) {
  const unsigned x = block_index<0>() * block_threads<0>() + thread_index<0>();
  const unsigned y = block_index<1>() * block_threads<1>() + thread_index<1>();
  out[y * (block_count<0>() * block_threads<0>()) + x] = 1000 * x + 10 * y + block_count<1>();
}

GPU_KERNEL void probe_atomics(const int* in, int* sum, float* sum_f32, Bits32* sum_u32,
                              Bits64* sum_u64, int* max, Bits32* any, Bits32* first_is) {
  const int value = in[global_thread()];
  atomic_add(sum, value);
  atomic_add(sum_f32, static_cast<float>(value));
  atomic_add(sum_u32, static_cast<Bits32>(value));
  atomic_add(sum_u64, static_cast<Bits64>(value));
  atomic_max(max, value);
  atomic_or(any, 1u << (value & 31));
  atomic_swap_if(first_is, 0u, 77u);  // only one of them finds the zero
}

GPU_KERNEL void probe_dot4(const int* a, const int* b, int* out) {
  const Index i = global_thread();
  out[i] = dot4(a[i], b[i], 1000);
}

GPU_KERNEL void probe_math(const float* in, float* exp, float* log, float* sqrt, float* rint,
                           float* fma) {
  const Index i = global_thread();
  exp[i] = math::exp(in[i]);
  log[i] = math::log(math::abs(in[i]));
  sqrt[i] = math::sqrt(math::abs(in[i]));
  rint[i] = math::rint(in[i]) + math::floor(in[i]) + math::ceil(in[i]);
  fma[i] = math::copysign(math::fma(in[i], in[i], -1.0f), in[i]);
}

// Reverses the block's part of the input in dynamic shared memory.
GPU_KERNEL void probe_dynamic_shared(const float* in, float* out) {
  float* shared = static_cast<float*>(dynamic_shared());
  const Index i = global_thread();
  shared[thread_index()] = in[i];
  barrier();
  out[i] = shared[block_threads() - 1 - thread_index()];
}

// A walk with four operands: out = a + 10 * b + 100 * c at the offsets of each.
GPU_KERNEL void probe_walk(float* out, const float* a, const float* b, const float* c,
                           Strided<4> at) {
  grid_stride(at.count, [&](Index i) {
    const Offsets<4> o = offsets(at, i);
    out[o.at[0]] = a[o.at[1]] + 10 * b[o.at[2]] + 100 * c[o.at[3]];
  });
}
