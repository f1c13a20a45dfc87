#include "quant/cpu/dequantize.h"

#include <algorithm>
#include <array>

#include "ops/cpu/loops.h"
#include "quant/formats.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

using quant_blocks::Bits8;

template <class Format>
void decode(const std::byte* blocks, std::int64_t count, float* out) {
  const auto* at = reinterpret_cast<const Bits8*>(blocks);
  for (std::int64_t i = 0; i < count; i += Format::kElements, at += Format::kBytes) {
    for (int g = 0; g < Format::kElements / 8; ++g) Format::decode8(at, g, out + i + 8 * g);
  }
}

// Elements decoded at a time: a whole number of blocks of every format, small enough for a stack.
constexpr std::int64_t kPiece = 1024;

}  // namespace

void decode_blocks(QType type, const std::byte* blocks, std::int64_t count, float* out) {
  with_blocks(
      type, [&]<class Format>(std::type_identity<Format>) { decode<Format>(blocks, count, out); });
}

void dequantize(QType type, const std::byte* blocks, std::int64_t count, DType to, std::byte* out) {
  const QFormat& format = format_of(type);
  const std::int64_t pieces = (count + kPiece - 1) / kPiece;
  const std::int64_t piece_bytes = kPiece / format.elements * format.bytes;
  const auto size = static_cast<std::int64_t>(size_of(to));
  const CastLoop round = to == DType::F32 ? nullptr : cast_loop(DType::F32, to);
  ThreadPool::shared().parallel_for(0, pieces, 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first; p < last; ++p) {
      const std::int64_t n = std::min(kPiece, count - p * kPiece);
      const std::byte* from = blocks + p * piece_bytes;
      std::byte* place = out + p * kPiece * size;
      if (round == nullptr) {
        decode_blocks(type, from, n, reinterpret_cast<float*>(place));
        continue;
      }
      // Filled by decode_blocks(). NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
      alignas(64) std::array<float, kPiece> values;
      decode_blocks(type, from, n, values.data());
      round(values.data(), place, n);
    }
  });
}

}  // namespace tl::cpu
