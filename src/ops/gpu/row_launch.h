// How rows are given to the row kernels of module NORM.
#pragma once

#include <algorithm>
#include <bit>

#include "ops/gpu/launcher.h"
#include "ops/row_layout.h"
#include "tl/kernels/norm.h"
#include "tl/runtime/fault.h"

namespace tl::gpu {

// As in norm.cu.
struct Steps {
  Index n;
  Index in;
  Index out;
};
struct Ids {
  const void* at = nullptr;
  std::uint32_t bytes = 8;
  std::uint32_t is_signed = 1;
};

inline Ids ids_of(const Tensor& ids, const Stream& stream) {
  const bool is_signed = ids.dtype() != DType::U8 && ids.dtype() != DType::U32;
  return {ids.read(stream), static_cast<std::uint32_t>(size_of(ids.dtype())), is_signed ? 1u : 0u};
}

inline Strided<2> row_walk(const ops::RowLayout& rows) {
  const Layout in(rows.outer, rows.in_strides, 0), out(rows.outer, rows.out_strides, 0);
  return walk<2>(rows.outer, {&in, &out});
}

inline Steps row_steps(const ops::RowLayout& rows) { return {rows.n, rows.in_step, rows.out_step}; }

// Elements of a row that a thread of the row kernels keeps.
inline std::int64_t held(DType dtype) { return dtype == DType::F64 ? 8 : 16; }

// Threads that share a short row: a power of two, about half of what each could keep, so that there
// is work for many; 0 when a warp cannot keep the row.
inline std::uint32_t team_width(const Device& device, DType dtype, std::int64_t n) {
  const auto warp = static_cast<std::uint64_t>(device.properties().warp_width);
  const auto most = static_cast<std::uint64_t>(held(dtype));
  const auto length = static_cast<std::uint64_t>(n);
  if (length > warp * most) return 0;
  return static_cast<std::uint32_t>(std::min(warp, std::bit_ceil((2 * length + most - 1) / most)));
}

// Can a block keep the row?
inline bool fits_block(DType dtype, std::int64_t n) { return n <= kThreads * held(dtype); }

inline std::uint64_t blocks_for(const Device& device, std::int64_t wanted) {
  const std::int64_t full = std::int64_t{device.properties().multiprocessors} * 64;
  return static_cast<std::uint64_t>(std::min(wanted, std::max<std::int64_t>(full, 1)));
}

inline LaunchShape team_shape(const Device& device, std::int64_t rows, std::uint32_t width) {
  const std::int64_t teams = kThreads / width;
  return {.grid = {blocks_for(device, (rows + teams - 1) / teams)}, .block = {kThreads}};
}

// A block per row. Larger blocks would keep longer rows, but have fewer registers to a thread.
inline LaunchShape block_shape(const Device& device, const ops::RowLayout& rows) {
  return {.grid = {blocks_for(device, rows.rows)}, .block = {kThreads}};
}

}  // namespace tl::gpu
