#include "ops/cpu/indexing.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/cpu/copy.h"
#include "ops/cpu/walk.h"
#include "tl/base/error.h"
#include "tl/ops/copy.h"

namespace tl::cpu {

namespace {

template <class F>
void with_ids(DType dtype, F&& f) {
  switch (dtype) {
    case DType::U8:
      return f.template operator()<std::uint8_t>();
    case DType::U32:
      return f.template operator()<std::uint32_t>();
    case DType::I16:
      return f.template operator()<std::int16_t>();
    case DType::I32:
      return f.template operator()<std::int32_t>();
    default:
      return f.template operator()<std::int64_t>();
  }
}

template <class F>
void with_size(std::size_t size, F&& f) {
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

[[noreturn]] void throw_bad_index(std::string_view op, std::int64_t id, std::int64_t size) {
  throw Error(ErrorKind::InvalidIndex, op, "index ", id, " is outside a dimension of size ", size);
}

// The index as a number below `size`, or -1 for the sentinel.
template <class Id>
std::int64_t checked(std::string_view op, Id id, std::int64_t size) {
  if (id == std::numeric_limits<Id>::max()) return -1;
  const auto wide = static_cast<std::int64_t>(id);
  if (wide < 0 || wide >= size) throw_bad_index(op, wide, size);
  return wide;
}

// `out` is contiguous: y of a run is where the run begins.
template <class T, class Id>
void gather_typed(const ops::Pick& p, Tensor& out) {
  const Stream stream = out.device().stream();
  const T* from = p.x.read<T>(stream);
  const Id* ids = p.ids.read<Id>(stream);
  T* to = out.write<T>(stream);
  walk<3>(out.shape(), {&p.ids_strides, &p.x_strides, &out.strides()},
          [&](std::int64_t count, const auto& at, const auto& step) {
            const Id* id = ids + at[0];
            const T* x = from + at[1];
            T* y = to + at[2];
            if (step[0] == 0) {  // one index for the whole run
              const std::int64_t row = checked(p.op, *id, p.size);
              if (row < 0) {
                std::fill_n(y, count, T{});
              } else if (step[1] == 1) {
                std::memcpy(y, x + row * p.step, static_cast<std::size_t>(count) * sizeof(T));
              } else {
                x += row * p.step;
                for (std::int64_t i = 0; i < count; ++i) y[i] = x[i * step[1]];
              }
              return;
            }
            for (std::int64_t i = 0; i < count; ++i) {
              const std::int64_t row = checked(p.op, id[i * step[0]], p.size);
              y[i] = row < 0 ? T{} : x[i * step[1] + row * p.step];
            }
          });
}

// All indices of a Place, checked before anything is written, as i64 with -1 for the sentinel; and
// their strides over its shape. Indices that all lines share are kept once.
struct Checked {
  Tensor memory;  // from the pool: fresh pages would cost more than the check
  const std::int64_t* ids = nullptr;
  Dims strides;
};

Checked check_all(const ops::Place& p) {
  Checked result;
  Shape shape = p.shape();
  const Dims* strides = &p.ids.strides();
  Shape line{p.length()};
  Dims line_stride{p.ids.strides()[p.dim]};
  if (p.is_uniform()) {
    shape = line;
    strides = &line_stride;
    result.strides = Dims::repeated(p.ids.rank(), 0);
    result.strides[p.dim] = 1;
  } else {
    result.strides = contiguous_strides(shape);
  }
  const Dims to_strides = contiguous_strides(shape);
  const Stream stream = p.ids.device().stream();
  result.memory = Tensor::uninitialized(shape, DType::I64, p.ids.device());
  auto* to = result.memory.write<std::int64_t>(stream);
  result.ids = to;
  with_ids(p.ids.dtype(), [&]<class Id> {
    const Id* ids = p.ids.read<Id>(stream);
    walk<2>(shape, {strides, &to_strides},
            [&](std::int64_t count, const auto& at, const auto& step) {
              for (std::int64_t i = 0; i < count; ++i) {
                to[at[1] + i * step[1]] = checked(p.op, ids[at[0] + i * step[0]], p.size);
              }
            });
  });
  return result;
}

// f(to, from) for every element in order along the dimension; to and from are offsets. Lines go to
// different threads. When there are too few of them for that, each thread goes over all lines and
// takes the places of its own part of the dimension, so that no place has two writers.
//
// f is called through `row` for runs of lines that share an index: row(to, to_step, from,
// from_step, count).
template <class F, class Row>
void place_all(const ops::Place& p, F&& f, Row&& row) {
  const Checked all = check_all(p);
  const std::int64_t length = p.length();
  const std::int64_t ids_step = all.strides[p.dim], src_step = p.src.strides()[p.dim];
  const Shape shape = ops::without(p.shape(), p.dim);
  const Dims id_strides = ops::without(all.strides, p.dim);
  const Dims src_strides = ops::without(p.src.strides(), p.dim);
  const Dims out_strides = ops::without(p.out_strides, p.dim);
  const int rank = shape.size();
  const std::int64_t inner = rank == 0 ? 1 : shape[rank - 1];
  const std::int64_t id_next = rank == 0 ? 0 : id_strides[rank - 1];
  const std::int64_t src_next = rank == 0 ? 0 : src_strides[rank - 1];
  const std::int64_t out_next = rank == 0 ? 0 : out_strides[rank - 1];

  // Lines [first, last), places [low, high) of the dimension.
  const auto work = [&](std::int64_t first, std::int64_t last, std::int64_t low,
                        std::int64_t high) {
    const auto room = static_cast<std::uint64_t>(high - low);
    for (std::int64_t line = first; line < last;) {
      const std::int64_t run = std::min(last - line, inner - line % inner);
      std::int64_t rest = line, id_at = 0, src_at = 0, out_at = 0;
      for (int d = rank - 1; d >= 0; --d) {
        const std::int64_t here = rest % shape[d];
        rest /= shape[d];
        id_at += here * id_strides[d];
        src_at += here * src_strides[d];
        out_at += here * out_strides[d];
      }
      const std::int64_t* ids = all.ids + id_at;
      const auto mine = [&](std::int64_t id) {
        return static_cast<std::uint64_t>(id - low) < room;
      };
      if (run > 1 && id_next == 0) {
        for (std::int64_t k = 0; k < length; ++k) {
          const std::int64_t id = ids[k * ids_step];
          if (!mine(id)) continue;
          row(out_at + id * p.step, out_next, src_at + k * src_step, src_next, run);
        }
      } else if (run > 1 && id_next < ids_step) {
        for (std::int64_t k = 0; k < length; ++k) {
          for (std::int64_t j = 0; j < run; ++j) {
            const std::int64_t id = ids[k * ids_step + j * id_next];
            if (!mine(id)) continue;
            f(out_at + j * out_next + id * p.step, src_at + k * src_step + j * src_next);
          }
        }
      } else {
        for (std::int64_t j = 0; j < run; ++j) {
          for (std::int64_t k = 0; k < length; ++k) {
            const std::int64_t id = ids[k * ids_step + j * id_next];
            if (!mine(id)) continue;
            f(out_at + j * out_next + id * p.step, src_at + k * src_step + j * src_next);
          }
        }
      }
      line += run;
    }
  };

  ThreadPool& pool = ThreadPool::shared();
  const std::int64_t lines = p.lines(), threads = pool.threads();
  if (lines >= 2 * threads || lines * length < 2 * kGrain) {
    pool.parallel_for(0, lines, std::max<std::int64_t>(1, kGrain / length),
                      [&](std::int64_t first, std::int64_t last) { work(first, last, 0, p.size); });
  } else {
    pool.parallel_for(0, p.size, std::max<std::int64_t>(1, p.size / threads + 1),
                      [&](std::int64_t low, std::int64_t high) { work(0, lines, low, high); });
  }
}

// Integers wrap.
template <class To, class T>
To sum_of(To a, T b) {
  if constexpr (std::is_integral_v<To>) {
    using Unsigned = std::make_unsigned_t<To>;
    return static_cast<To>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + static_cast<To>(b);
  }
}

template <class To, class T>
void add_typed(const ops::Place& p, Tensor& out) {
  const Stream stream = out.device().stream();
  const T* src = p.src.read<T>(stream);
  To* to = out.update<To>(stream);
  place_all(
      p, [&](std::int64_t y, std::int64_t x) { to[y] = sum_of(to[y], src[x]); },
      [&](std::int64_t y, std::int64_t y_step, std::int64_t x, std::int64_t x_step,
          std::int64_t count) {
        if (y_step == 1 && x_step == 1) {
          for (std::int64_t i = 0; i < count; ++i) to[y + i] = sum_of(to[y + i], src[x + i]);
        } else {
          for (std::int64_t i = 0; i < count; ++i) {
            to[y + i * y_step] = sum_of(to[y + i * y_step], src[x + i * x_step]);
          }
        }
      });
}

}  // namespace

void gather(const ops::Pick& p, Tensor& out) {
  with_size(size_of(out.dtype()), [&]<class T> {
    with_ids(p.ids.dtype(), [&]<class Id> { gather_typed<T, Id>(p, out); });
  });
}

void scatter(const ops::Place& p, Tensor& out) {
  const Stream stream = out.device().stream();
  with_size(size_of(out.dtype()), [&]<class T> {
    const T* src = p.src.read<T>(stream);
    T* to = out.update<T>(stream);
    place_all(
        p, [&](std::int64_t y, std::int64_t x) { to[y] = src[x]; },
        [&](std::int64_t y, std::int64_t y_step, std::int64_t x, std::int64_t x_step,
            std::int64_t count) {
          if (y_step == 1 && x_step == 1) {
            std::memcpy(to + y, src + x, static_cast<std::size_t>(count) * sizeof(T));
          } else {
            for (std::int64_t i = 0; i < count; ++i) to[y + i * y_step] = src[x + i * x_step];
          }
        });
  });
}

// Sums of small floats are kept in f32 and rounded once, at the end.
void scatter_add(const ops::Place& p, Tensor& out) {
  visit_dtype(p.op, out.dtype(), [&]<class T> {
    if constexpr (kIsSmallFloat<T>) {
      Tensor sums = to_dtype(out, DType::F32);
      add_typed<float, T>(p, sums);
      cast(sums, out);
    } else if constexpr (!std::is_same_v<T, bool>) {
      add_typed<T, T>(p, out);
    }
  });
}

Tensor nonzero_positions(const Tensor& x) {
  const Stream stream = x.device().stream();
  const Tensor flat = contiguous(x);
  const std::int64_t count = flat.count();
  const std::int64_t parts = (count + kGrain - 1) / kGrain;
  std::vector<std::int64_t> starts(static_cast<std::size_t>(parts) + 1, 0);
  Tensor out;
  visit_dtype("nonzero", x.dtype(), [&]<class T> {
    const T* from = flat.read<T>(stream);
    const auto for_parts = [&](auto&& f) {
      ThreadPool::shared().parallel_for(0, parts, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t part = first; part < last; ++part) {
          f(static_cast<std::size_t>(part), part * kGrain, std::min(count, (part + 1) * kGrain));
        }
      });
    };
    for_parts([&](std::size_t part, std::int64_t first, std::int64_t last) {
      std::int64_t found = 0;
      for (std::int64_t i = first; i < last; ++i) found += convert<bool>(from[i]) ? 1 : 0;
      starts[part + 1] = found;
    });
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    out = Tensor::uninitialized({starts.back()}, DType::I64, x.device());
    auto* to = out.write<std::int64_t>(stream);
    for_parts([&](std::size_t part, std::int64_t first, std::int64_t last) {
      std::int64_t at = starts[part];
      for (std::int64_t i = first; i < last; ++i) {
        if (convert<bool>(from[i])) to[at++] = i;
      }
    });
  });
  return out;
}

void unravel(const Tensor& positions, const Shape& shape, Tensor& out) {
  const Stream stream = out.device().stream();
  const auto* from = positions.read<std::int64_t>(stream);
  auto* to = out.write<std::int64_t>(stream);
  const int rank = shape.size();
  ThreadPool::shared().parallel_for(0, positions.count(), kGrain,
                                    [&](std::int64_t first, std::int64_t last) {
                                      for (std::int64_t i = first; i < last; ++i) {
                                        std::int64_t rest = from[i];
                                        for (int d = rank - 1; d >= 0; --d) {
                                          to[i * rank + d] = rest % shape[d];
                                          rest /= shape[d];
                                        }
                                      }
                                    });
}

void flip(const Tensor& x, const Dims& dims, Tensor& out) {
  const Stream stream = out.device().stream();
  Dims strides = x.strides();
  std::int64_t start = 0;
  for (const std::int64_t dim : dims) {
    const int d = static_cast<int>(dim);
    start += (x.shape()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  with_size(size_of(x.dtype()), [&]<class T> {
    const T* from = x.read<T>(stream) + start;
    T* to = out.write<T>(stream);
    walk<2>(x.shape(), {&strides, &out.strides()},
            [&](std::int64_t count, const auto& at, const auto& step) {
              const T* in = from + at[0];
              T* y = to + at[1];
              if (step[0] == 1) {
                std::memcpy(y, in, static_cast<std::size_t>(count) * sizeof(T));
              } else if (step[0] == -1) {
                std::reverse_copy(in - count + 1, in + 1, y);
              } else {
                for (std::int64_t i = 0; i < count; ++i) y[i] = in[i * step[0]];
              }
            });
  });
}

}  // namespace tl::cpu
