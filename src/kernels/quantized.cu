// Module QUANTIZED: tensors in blocks that share scales (quant_blocks.h). Launched with 256 threads
// per block and any grid.
#include "gpu.h"
#include "quant_blocks.h"
#include "quant_encode.h"

namespace blocks = tl::quant_blocks;

// A thread takes eight neighbours at a time: what a format codes together, and one or two vectors
// to write. `y` is aligned to 16 bytes.
template <class Format, class T>
GPU_INLINE void dequantize(const Bits8* x, T* y, Index eights) {
  await_earlier();
  constexpr Index kInBlock = Format::kElements / 8;
  constexpr int kEach = 16 / sizeof(T);
  grid_stride(eights, [&](Index i) {
    float value[8];
    Format::decode8(x + i / kInBlock * Format::kBytes, static_cast<int>(i % kInBlock), value);
    GPU_UNROLLED
    for (int part = 0; part < 8; part += kEach) {
      Vec<T, kEach> vec;
      GPU_UNROLLED
      for (int k = 0; k < kEach; ++k) vec.set(k, from_float<T>(value[part + k]));
      store_vec(y + 8 * i + part, vec);
    }
  });
}

GPU_KERNEL void dequantize_q4_0_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q4_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q4_0_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q4_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q4_0_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q4_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q4_1_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q4_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q4_1_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q4_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q4_1_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q4_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_0_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q5_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_0_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q5_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_0_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q5_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_1_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q5_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_1_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q5_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_1_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q5_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_0_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q8_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_0_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q8_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_0_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q8_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_1_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q8_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_1_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q8_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_1_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q8_1>(x, y, eights);
}
GPU_KERNEL void dequantize_q2_k_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q2_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q2_k_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q2_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q2_k_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q2_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q3_k_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q3_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q3_k_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q3_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q3_k_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q3_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q4_k_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q4_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q4_k_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q4_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q4_k_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q4_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_k_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q5_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_k_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q5_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q5_k_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q5_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q6_k_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q6_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q6_k_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q6_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q6_k_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q6_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_k_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q8_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_k_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q8_K>(x, y, eights);
}
GPU_KERNEL void dequantize_q8_k_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q8_K>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_xxs_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ2_XXS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_xxs_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ2_XXS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_xxs_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ2_XXS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_xs_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ2_XS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_xs_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ2_XS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_xs_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ2_XS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq3_xxs_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ3_XXS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq3_xxs_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ3_XXS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq3_xxs_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ3_XXS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq1_s_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ1_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq1_s_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ1_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq1_s_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ1_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq4_nl_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ4_NL>(x, y, eights);
}
GPU_KERNEL void dequantize_iq4_nl_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ4_NL>(x, y, eights);
}
GPU_KERNEL void dequantize_iq4_nl_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ4_NL>(x, y, eights);
}
GPU_KERNEL void dequantize_iq3_s_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ3_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq3_s_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ3_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq3_s_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ3_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_s_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ2_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_s_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ2_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq2_s_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ2_S>(x, y, eights);
}
GPU_KERNEL void dequantize_iq4_xs_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ4_XS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq4_xs_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ4_XS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq4_xs_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ4_XS>(x, y, eights);
}
GPU_KERNEL void dequantize_iq1_m_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::IQ1_M>(x, y, eights);
}
GPU_KERNEL void dequantize_iq1_m_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::IQ1_M>(x, y, eights);
}
GPU_KERNEL void dequantize_iq1_m_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::IQ1_M>(x, y, eights);
}
GPU_KERNEL void dequantize_tq1_0_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::TQ1_0>(x, y, eights);
}
GPU_KERNEL void dequantize_tq1_0_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::TQ1_0>(x, y, eights);
}
GPU_KERNEL void dequantize_tq1_0_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::TQ1_0>(x, y, eights);
}
GPU_KERNEL void dequantize_tq2_0_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::TQ2_0>(x, y, eights);
}
GPU_KERNEL void dequantize_tq2_0_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::TQ2_0>(x, y, eights);
}
GPU_KERNEL void dequantize_tq2_0_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::TQ2_0>(x, y, eights);
}
GPU_KERNEL void dequantize_mxfp4_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::MXFP4>(x, y, eights);
}
GPU_KERNEL void dequantize_mxfp4_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::MXFP4>(x, y, eights);
}
GPU_KERNEL void dequantize_mxfp4_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::MXFP4>(x, y, eights);
}
GPU_KERNEL void dequantize_nvfp4_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::NVFP4>(x, y, eights);
}
GPU_KERNEL void dequantize_nvfp4_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::NVFP4>(x, y, eights);
}
GPU_KERNEL void dequantize_nvfp4_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::NVFP4>(x, y, eights);
}
GPU_KERNEL void dequantize_q1_0_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q1_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q1_0_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q1_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q1_0_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q1_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q2_0_f32(const Bits8* x, float* y, Index eights) {
  dequantize<blocks::Q2_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q2_0_f16(const Bits8* x, Half* y, Index eights) {
  dequantize<blocks::Q2_0>(x, y, eights);
}
GPU_KERNEL void dequantize_q2_0_bf16(const Bits8* x, BFloat16* y, Index eights) {
  dequantize<blocks::Q2_0>(x, y, eights);
}

// A thread makes a block.
template <int kElements, int kBytes, class Encode>
GPU_INLINE void quantize(const float* x, Bits8* y, Index count, Encode encode) {
  await_earlier();
  grid_stride(count, [&](Index i) { encode(x + i * kElements, y + i * kBytes); });
}

GPU_KERNEL void quantize_q4_0(const float* x, Bits8* y, Index count) {
  quantize<32, 18>(x, y, count,
                   [](const float* from, Bits8* to) { blocks::encode_q4_0(from, to); });
}
GPU_KERNEL void quantize_q4_1(const float* x, Bits8* y, Index count) {
  quantize<32, 20>(x, y, count,
                   [](const float* from, Bits8* to) { blocks::encode_q4_1(from, to); });
}
GPU_KERNEL void quantize_q5_0(const float* x, Bits8* y, Index count) {
  quantize<32, 22>(x, y, count,
                   [](const float* from, Bits8* to) { blocks::encode_q5_0(from, to); });
}
GPU_KERNEL void quantize_q5_1(const float* x, Bits8* y, Index count) {
  quantize<32, 24>(x, y, count,
                   [](const float* from, Bits8* to) { blocks::encode_q5_1(from, to); });
}
GPU_KERNEL void quantize_q8_0(const float* x, Bits8* y, Index count) {
  quantize<32, 34>(x, y, count,
                   [](const float* from, Bits8* to) { blocks::encode_q8_0(from, to); });
}
GPU_KERNEL void quantize_q8_1(const float* x, Bits8* y, Index count) {
  quantize<32, 36>(x, y, count,
                   [](const float* from, Bits8* to) { blocks::encode_q8_1(from, to); });
}
GPU_KERNEL void quantize_q8_k(const float* x, Bits8* y, Index count) {
  quantize<256, 292>(x, y, count,
                     [](const float* from, Bits8* to) { blocks::encode_q8_k(from, to); });
}
