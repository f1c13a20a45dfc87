#include "ops/cpu/copy.h"

#include <cstring>

#include "ops/cpu/blocks.h"
#include "ops/cpu/loops.h"

namespace tl::cpu {

namespace {

template <class F>
void with_word(std::size_t size, F&& f) {
  switch (size) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

}  // namespace

namespace {

// Sides of the squares in which a transposed copy goes: a few cache lines each way.
constexpr std::int64_t kSide = 32;

// A copy whose input has its neighbours along another dimension than the output has. Line by line
// it would touch a cache line per element; in squares each line is used whole. False when the
// layouts are not of that kind.
template <class T>
bool copy_transposed(const T* from, T* to, const MergedDims<2>& dims) {
  if (dims.rank < 2 || dims.step[0][0] == 1 || dims.step[1][0] != 1) return false;
  int along = 1;  // the input's innermost dimension
  while (along < dims.rank && dims.step[0][along] != 1) ++along;
  if (along == dims.rank || dims.size[0] < 8 || dims.size[along] < 8) return false;
  const std::int64_t cols = dims.size[0], rows = dims.size[along];
  const std::int64_t across = (cols + kSide - 1) / kSide, down = (rows + kSide - 1) / kSide;
  const std::int64_t matrices = dims.count / (rows * cols);
  ThreadPool::shared().parallel_for(
      0, matrices * across * down, kGrain / (kSide * kSide),
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t t = first; t < last; ++t) {
          const std::int64_t col0 = t % across * kSide, row0 = t / across % down * kSide;
          std::int64_t rest = t / across / down, in = 0, out = 0;
          for (int d = 1; d < dims.rank; ++d) {
            if (d == along) continue;
            in += rest % dims.size[d] * dims.step[0][d];
            out += rest % dims.size[d] * dims.step[1][d];
            rest /= dims.size[d];
          }
          const T* x = from + in + col0 * dims.step[0][0] + row0;
          T* y = to + out + col0 + row0 * dims.step[1][along];
          const std::int64_t wide = std::min(kSide, cols - col0),
                             high = std::min(kSide, rows - row0);
          for (std::int64_t r = 0; r < high; ++r) {
            for (std::int64_t c = 0; c < wide; ++c) {
              y[r * dims.step[1][along] + c] = x[c * dims.step[0][0] + r];
            }
          }
        }
      });
  return true;
}

}  // namespace

void copy(const Tensor& in, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::array<const Dims*, 2> strides = {&in.strides(), &out.strides()};
  const MergedDims<2> dims(in.shape(), strides);
  with_word(size_of(in.dtype()), [&]<class T> {
    const T* from = in.read<T>(stream);
    T* to = out.write<T>(stream);
    if (copy_transposed(from, to, dims)) return;
    walk<2>(in.shape(), strides, [&](std::int64_t count, const auto& at, const auto& step) {
      const T* x = from + at[0];
      T* y = to + at[1];
      if (step[0] == 1 && step[1] == 1) {
        std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(T));
      } else {
        for (std::int64_t i = 0; i < count; ++i) y[i * step[1]] = x[i * step[0]];
      }
    });
  });
}

void cast(const Tensor& in, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::byte* from = in.read(stream);
  std::byte* to = out.write(stream);
  const CastLoop loop = cast_loop(in.dtype(), out.dtype());
  const auto from_size = static_cast<std::int64_t>(size_of(in.dtype()));
  const auto to_size = static_cast<std::int64_t>(size_of(out.dtype()));
  walk<2>(in.shape(), {&in.strides(), &out.strides()},
          [&](std::int64_t count, const auto& at, const auto& step) {
            const std::byte* x = from + at[0] * from_size;
            std::byte* y = to + at[1] * to_size;
            if (step[0] == 1 || count == 1) return loop(x, y, count);
            // Packed in pieces, so that the loop sees neighbours.
            // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled by pack()
            alignas(64) std::array<std::byte, kBlock * 8> packed;
            for (std::int64_t i = 0; i < count; i += kBlock) {
              const std::int64_t n = std::min(kBlock, count - i);
              pack(size_of(in.dtype()), x + i * step[0] * from_size, step[0], n, packed.data());
              loop(packed.data(), y + i * to_size, n);
            }
          });
}

void fill(Tensor& out, Scalar value) {
  const Stream stream = out.device().stream();
  visit_dtype("fill", out.dtype(), [&]<class T> {
    const T element = value.to<T>();
    T* to = out.write<T>(stream);
    walk<1>(out.shape(), {&out.strides()},
            [&](std::int64_t count, const auto& at, const auto& step) {
              T* y = to + at[0];
              for (std::int64_t i = 0; i < count; ++i) y[i * step[0]] = element;
            });
  });
}

}  // namespace tl::cpu
