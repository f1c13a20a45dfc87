#include "ops/cpu/indexing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/cpu/copy.h"
#include "ops/cpu/index.h"
#include "ops/cpu/walk.h"
#include "tl/base/error.h"
#include "tl/ops/copy.h"

namespace tl::cpu {

namespace {

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

template <class F>
void with_wide(DType ids, F&& f) {
  size_of(ids) == sizeof(std::uint32_t) ? f.template operator()<std::uint32_t>()
                                        : f.template operator()<std::uint64_t>();
}

// Loops take an index for an unsigned word of its size: what is negative then lies beyond any
// place, and one comparison is enough.

struct Words {
  std::uint64_t limit;  // places end before it: at the size of the dimension, or at the sentinel
  std::uint64_t sentinel;
};

template <class Indexed>  // Pick or Place
Words words_of(const Indexed& p) {
  std::uint64_t sentinel = 0;
  visit_index(p.ids.dtype(), [&]<class Id> {
    sentinel = static_cast<std::uint64_t>(std::numeric_limits<Id>::max());
  });
  return {std::min(static_cast<std::uint64_t>(p.size), sentinel), sentinel};
}

template <class Indexed>
[[noreturn]] void throw_bad_index(const Indexed& p, std::uint64_t word) {
  std::int64_t id = 0;
  visit_index(p.ids.dtype(),
              [&]<class Id> { id = static_cast<std::int64_t>(static_cast<Id>(word)); });
  throw Error(ErrorKind::InvalidIndex, p.op, "index ", id, " is outside a dimension of size ",
              p.size);
}

// Steps that a loop is compiled for.
using Zero = std::integral_constant<std::int64_t, 0>;
using One = std::integral_constant<std::int64_t, 1>;

// An index for each of `count` elements.
template <class T, class Id>
void pick_each(const ops::Pick& p, std::int64_t count, Words words, T* y, const Id* ids,
               auto ids_step, const T* x, auto x_step, auto row_step) {
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t row = ids[i * ids_step];
    if (row < words.limit) [[likely]] {
      y[i] = x[i * x_step + static_cast<std::int64_t>(row) * row_step];
    } else {
      if (row != words.sentinel) throw_bad_index(p, row);
      y[i] = T{};
    }
  }
}

// f(bytes), with the usual small numbers as constants: a copy of those is a few instructions.
template <class F>
void with_bytes(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 8:
      return f(std::integral_constant<std::size_t, 8>{});
    case 16:
      return f(std::integral_constant<std::size_t, 16>{});
    case 32:
      return f(std::integral_constant<std::size_t, 32>{});
    case 64:
      return f(std::integral_constant<std::size_t, 64>{});
    default:
      return f(bytes);
  }
}

// Rows of `width` elements, of which each index says one. The next is on its way while one is
// copied.
template <class T, class Id>
void copy_rows(const ops::Pick& p, std::int64_t count, const Id* ids, std::int64_t ids_step,
               const T* x, std::int64_t x_step, T* y, std::int64_t width) {
  const Words words = words_of(p);
  const auto at = [=, step = p.step](std::int64_t i, std::uint64_t place) {
    return x + i * x_step + static_cast<std::int64_t>(place) * step;
  };
  with_bytes(static_cast<std::size_t>(width) * sizeof(T), [=, &p](auto bytes) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (i + 1 < count) {
        const std::uint64_t next = ids[(i + 1) * ids_step];
        if (next < words.limit) __builtin_prefetch(at(i + 1, next));
      }
      const std::uint64_t place = ids[i * ids_step];
      if (place < words.limit) [[likely]] {
        std::memcpy(y + i * width, at(i, place), bytes);
      } else {
        if (place != words.sentinel) throw_bad_index(p, place);
        std::fill_n(y + i * width, width, T{});
      }
    }
  });
}

// Whole rows, as index_select and embedding pick them: an index for each run of the innermost
// dimension. False when the operands lie another way, or a row is worth several threads.
template <class T, class Id>
bool gather_rows(const ops::Pick& p, const T* from, const Id* ids, T* to,
                 const MergedDims<3>& dims) {
  const auto &ids_steps = dims.step[0], &x_steps = dims.step[1];
  const std::int64_t width = dims.size[0];
  if (dims.rank < 2 || dims.count == 0 || p.size == 0) return false;
  if (ids_steps[0] != 0 || x_steps[0] != 1 || width > kGrain) return false;
  ThreadPool::shared().parallel_for(
      0, dims.count / width, kGrain / width, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last;) {
          const std::int64_t run = std::min(last - row, dims.size[1] - row % dims.size[1]);
          const Id* id = ids;
          const T* x = from;
          std::int64_t rest = row;
          for (int d = 1; d < dims.rank; ++d) {
            id += rest % dims.size[d] * ids_steps[d];
            x += rest % dims.size[d] * x_steps[d];
            rest /= dims.size[d];
          }
          copy_rows(p, run, id, ids_steps[1], x, x_steps[1], to + row * width, width);
          row += run;
        }
      });
  return true;
}

// `out` is contiguous: y of a run is where the run begins.
template <class T, class Id>
void gather_typed(const ops::Pick& p, Tensor& out) {
  const Stream stream = out.device().stream();
  const T* from = p.x.read<T>(stream);
  const Id* ids = p.ids.read<Id>(stream);
  T* to = out.write<T>(stream);
  const std::array<const Dims*, 3> strides = {&p.ids_strides, &p.x_strides, &out.strides()};
  if (gather_rows(p, from, ids, to, MergedDims<3>(out.shape(), strides))) return;
  const Words words = words_of(p);
  walk<3>(out.shape(), strides, [&](std::int64_t count, const auto& at, const auto& step) {
    const Id* id = ids + at[0];
    const T* x = from + at[1];
    T* y = to + at[2];
    if (step[0] == 0) {  // one index for the whole run
      const std::uint64_t row = *id;
      if (row >= words.limit) {
        if (row != words.sentinel) throw_bad_index(p, row);
        std::fill_n(y, count, T{});
        return;
      }
      x += static_cast<std::int64_t>(row) * p.step;
      if (step[1] == 1) {
        std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(T));
      } else {
        for (std::int64_t i = 0; i < count; ++i) y[i] = x[i * step[1]];
      }
    } else if (step[0] == 1 && step[1] == 0 && p.step == 1) {
      pick_each(p, count, words, y, id, One{}, x, Zero{}, One{});
    } else if (step[0] == 1 && step[1] == 1) {
      pick_each(p, count, words, y, id, One{}, x, One{}, p.step);
    } else {
      pick_each(p, count, words, y, id, step[0], x, step[1], p.step);
    }
  });
}

// Throws for the first of `count` indices that is bad. A word is below a limit L when neither
// itself nor L - 1 less it has the sign bit (L has none), which needs no comparison and so suits
// any vector.
template <class Id>
void check_run(const ops::Place& p, const Id* ids, std::int64_t step, std::int64_t count) {
  constexpr int kSign = 8 * sizeof(Id) - 1;
  const Words words = words_of(p);
  const auto signs = [&](auto each_step) {
    const Id last = static_cast<Id>(words.limit - 1);
    Id all = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const Id id = ids[i * each_step];
      all |= id | (last - id);
    }
    return all >> kSign;
  };
  if (words.limit >> kSign == 0 && (step == 1 ? signs(One{}) : signs(step)) == 0) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t id = ids[i * step];
    if (id >= words.limit && id != words.sentinel) throw_bad_index(p, id);
  }
}

// All indices, before anything is written. Those that all lines share are looked at once.
void check_all(const ops::Place& p) {
  Shape shape = p.shape();
  Dims strides = p.ids.strides();
  if (p.is_uniform()) {
    shape = {p.length()};
    strides = {p.ids.strides()[p.dim]};
  }
  with_wide(p.ids.dtype(), [&]<class Id> {
    const Id* ids = p.ids.read<Id>(p.ids.device().stream());
    walk<1>(shape, {&strides}, [&](std::int64_t count, const auto& at, const auto& step) {
      check_run(p, ids + at[0], step[0], count);
    });
  });
}

// The places [low, low + room) of a dimension, and what is needed for an index that is not there.
struct Part {
  const ops::Place* place;
  std::uint64_t low, room;
  Words words;
};

bool is_in(const Part& part, std::uint64_t place) {
  if (place - part.low < part.room) [[likely]]
    return true;
  if (place >= part.words.limit && place != part.words.sentinel) {
    throw_bad_index(*part.place, place);
  }
  return false;
}

// What one loop goes over; pointers are to elements of the loop's types, steps count those.
struct Run {
  std::int64_t count;  // of indices
  const void* ids;
  std::int64_t ids_step;
  void* to;
  std::int64_t to_step;     // from one index to the next
  std::int64_t place_step;  // from one place to the next
  const void* from;
  std::int64_t from_step;
  // Where an index stands for a row of elements:
  std::int64_t width, to_next, from_next;
};

// put(old, source) becomes the new value of the place of each index in `part`: of one line, or one
// of each of as many lines.
template <class Put, class To, class T, class Id>
void place_run(Put put, std::int64_t count, Part part, const Id* ids, auto ids_step, To* to,
               auto to_step, auto place_step, const T* from, auto from_step) {
  if (part.room < part.words.limit) {
    // Which indices are in the part is hard to foresee, so they are listed first, without a branch.
    constexpr std::int64_t kBlock = 256;
    std::array<std::int64_t, kBlock> found;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (std::int64_t block = 0; block < count; block += kBlock) {
      const std::int64_t end = std::min(count, block + kBlock);
      std::size_t finds = 0;
      std::uint64_t largest = 0;
      for (std::int64_t i = block; i < end; ++i) {
        const std::uint64_t place = ids[i * ids_step];
        found[finds] = i;
        finds += place - part.low < part.room ? 1 : 0;
        largest = std::max(largest, place);
      }
      if (largest >= part.words.limit) {
        for (std::int64_t i = block; i < end; ++i) is_in(part, ids[i * ids_step]);  // throws
      }
      for (std::size_t j = 0; j < finds; ++j) {
        const std::int64_t i = found[j];
        To& at = to[i * to_step + static_cast<std::int64_t>(ids[i * ids_step]) * place_step];
        at = put(at, from[i * from_step]);
      }
    }
    return;
  }
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t id = ids[i * ids_step];
    if (!is_in(part, id)) continue;
    To& at = to[i * to_step + static_cast<std::int64_t>(id) * place_step];
    at = put(at, from[i * from_step]);
  }
}

template <class Put, class To, class T, class Id>
void place_each(const Run& run, const Part& part) {
  const auto* ids = static_cast<const Id*>(run.ids);
  const auto* from = static_cast<const T*>(run.from);
  auto* to = static_cast<To*>(run.to);
  const bool is_plain = run.ids_step == 1 && run.from_step == 1;
  if (is_plain && run.to_step == 0 && run.place_step == 1) {
    place_run(Put{}, run.count, part, ids, One{}, to, Zero{}, One{}, from, One{});
  } else if (is_plain && run.to_step == 1) {
    place_run(Put{}, run.count, part, ids, One{}, to, One{}, run.place_step, from, One{});
  } else {
    place_run(Put{}, run.count, part, ids, run.ids_step, to, run.to_step, run.place_step, from,
              run.from_step);
  }
}

// The same for indices that lines share.
template <class Put, class To, class T, class Id>
void place_rows(const Run& run, const Part& part) {
  const auto* ids = static_cast<const Id*>(run.ids);
  const Put put;
  for (std::int64_t k = 0; k < run.count; ++k) {
    const std::uint64_t id = ids[k * run.ids_step];
    if (!is_in(part, id)) continue;
    To* to = static_cast<To*>(run.to) + static_cast<std::int64_t>(id) * run.place_step;
    const T* from = static_cast<const T*>(run.from) + k * run.from_step;
    if (run.to_next == 1 && run.from_next == 1) {
      for (std::int64_t i = 0; i < run.width; ++i) to[i] = put(to[i], from[i]);
    } else {
      for (std::int64_t i = 0; i < run.width; ++i) {
        to[i * run.to_next] = put(to[i * run.to_next], from[i * run.from_next]);
      }
    }
  }
}

// The loops for some types, and the sizes of those.
struct Loops {
  void (*each)(const Run&, const Part&);
  void (*rows)(const Run&, const Part&);
  std::int64_t to_size, from_size, id_size;
};

template <class Put, class To, class T, class Id>
Loops loops_for() {
  return {&place_each<Put, To, T, Id>, &place_rows<Put, To, T, Id>, sizeof(To), sizeof(T),
          sizeof(Id)};
}

// Goes over all indices, in order along the dimension. Lines go to different threads. When there
// are too few of them for that, each thread goes over all lines and takes the places of its own
// part of the dimension, so that no place has two writers.
void place_all(const ops::Place& p, Tensor& out, const Loops& loops) {
  if (!p.is_fresh || p.size == 0) check_all(p);
  if (p.size == 0) return;  // all are sentinels
  const Stream stream = out.device().stream();
  const std::byte* all_ids = p.ids.read(stream);
  const std::byte* all_src = p.src.read(stream);
  std::byte* all_out = out.update(stream);
  const std::int64_t length = p.length();
  const std::int64_t ids_step = p.ids.strides()[p.dim], src_step = p.src.strides()[p.dim];
  const Shape shape = ops::without(p.shape(), p.dim);
  const Dims id_strides = ops::without(p.ids.strides(), p.dim);
  const Dims src_strides = ops::without(p.src.strides(), p.dim);
  const Dims out_strides = ops::without(p.out_strides, p.dim);
  const int rank = shape.size();
  const std::int64_t inner = rank == 0 ? 1 : shape[rank - 1];
  const std::int64_t id_next = rank == 0 ? 0 : id_strides[rank - 1];
  const std::int64_t src_next = rank == 0 ? 0 : src_strides[rank - 1];
  const std::int64_t out_next = rank == 0 ? 0 : out_strides[rank - 1];
  // Neighbours that share an index and lie closer than places do.
  const bool takes_rows = inner > 1 && id_next == 0 && out_next <= p.step;

  const auto work = [&](std::int64_t first, std::int64_t last, const Part& part) {  // of the lines
    for (std::int64_t line = first; line < last;) {
      const std::int64_t lines = std::min(last - line, inner - line % inner);
      std::int64_t rest = line, id_at = 0, src_at = 0, out_at = 0;
      for (int d = rank - 1; d >= 0; --d) {
        const std::int64_t here = rest % shape[d];
        rest /= shape[d];
        id_at += here * id_strides[d];
        src_at += here * src_strides[d];
        out_at += here * out_strides[d];
      }
      const auto run_at = [&](std::int64_t ids, std::int64_t to, std::int64_t from) {
        Run run{};
        run.ids = all_ids + (id_at + ids) * loops.id_size;
        run.to = all_out + (out_at + to) * loops.to_size;
        run.from = all_src + (src_at + from) * loops.from_size;
        run.place_step = p.step;
        return run;
      };
      const auto along = [&](std::int64_t j) {  // line j of these
        Run run = run_at(j * id_next, j * out_next, j * src_next);
        run.count = length;
        run.ids_step = ids_step;
        run.from_step = src_step;
        return run;
      };
      if (lines > 1 && takes_rows) {
        Run run = along(0);
        run.width = lines;
        run.to_next = out_next;
        run.from_next = src_next;
        loops.rows(run, part);
      } else if (lines > 1 && id_next != 0 && id_next < ids_step) {
        for (std::int64_t k = 0; k < length; ++k) {
          Run run = run_at(k * ids_step, 0, k * src_step);
          run.count = lines;
          run.ids_step = id_next;
          run.to_step = out_next;
          run.from_step = src_next;
          loops.each(run, part);
        }
      } else {
        for (std::int64_t j = 0; j < lines; ++j) loops.each(along(j), part);
      }
      line += lines;
    }
  };

  ThreadPool& pool = ThreadPool::shared();
  const std::int64_t lines = p.lines(), threads = pool.threads();
  const Words words = words_of(p);
  // To find a part's elements costs each thread about what placing all of them costs one, unless
  // they come in rows or the places are too many for a cache.
  constexpr std::int64_t kCachedPlaces = 1 << 20;
  const bool has_parts = takes_rows || (p.size > kCachedPlaces && threads >= 4);
  if (lines >= 2 * threads || !has_parts || lines * length < 2 * kGrain) {
    pool.parallel_for(0, lines, std::max<std::int64_t>(1, kGrain / length),
                      [&](std::int64_t first, std::int64_t last) {
                        work(first, last, {&p, 0, words.limit, words});
                      });
  } else {
    const auto end = static_cast<std::int64_t>(words.limit);
    pool.parallel_for(0, end, std::max<std::int64_t>(1, end / threads + 1),
                      [&](std::int64_t low, std::int64_t high) {
                        work(0, lines,
                             {&p, static_cast<std::uint64_t>(low),
                              static_cast<std::uint64_t>(high - low), words});
                      });
  }
}

// Indices of 8 and 16 bits become i32, so that there are fewer loops to compile.
ops::Place with_wide_ids(const ops::Place& p) {
  ops::Place wide = p;
  if (size_of(p.ids.dtype()) >= sizeof(std::uint32_t)) return wide;
  Shape shape = p.shape();
  const Dims& strides = p.ids.strides();
  for (int d = 0; d < shape.size(); ++d) {
    if (strides[d] == 0) shape[d] = 1;  // once for all that share them
  }
  Tensor ids = Tensor::uninitialized(shape, DType::I32, p.ids.device());
  const Stream stream = ids.device().stream();
  auto* to = ids.write<std::int32_t>(stream);
  visit_index(p.ids.dtype(), [&]<class Id> {
    const Id* from = p.ids.read<Id>(stream);
    walk<2>(shape, {&strides, &ids.strides()},
            [&](std::int64_t count, const auto& at, const auto& step) {
              for (std::int64_t i = 0; i < count; ++i) {
                const Id id = from[at[0] + i * step[0]];
                to[at[1] + i * step[1]] = id == std::numeric_limits<Id>::max()
                                              ? std::numeric_limits<std::int32_t>::max()
                                              : static_cast<std::int32_t>(id);
              }
            });
  });
  wide.ids = ids.broadcast_as(p.shape());
  return wide;
}

// Integers wrap.
struct Sum {
  template <class To, class T>
  To operator()(To a, T b) const {
    if constexpr (std::is_integral_v<To>) {
      using Unsigned = std::make_unsigned_t<To>;
      return static_cast<To>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + static_cast<To>(b);
    }
  }
};
struct Newer {
  template <class T>
  T operator()(T /*old*/, T b) const {
    return b;
  }
};

}  // namespace

void gather(const ops::Pick& p, Tensor& out) {
  with_size(size_of(out.dtype()), [&]<class T> {
    with_size(size_of(p.ids.dtype()), [&]<class Id> { gather_typed<T, Id>(p, out); });
  });
}

void scatter(const ops::Place& p, Tensor& out) {
  const ops::Place wide = with_wide_ids(p);
  with_size(size_of(out.dtype()), [&]<class T> {
    with_wide(wide.ids.dtype(),
              [&]<class Id> { place_all(wide, out, loops_for<Newer, T, T, Id>()); });
  });
}

// Sums of small floats are kept in f32 and rounded once, at the end.
void scatter_add(const ops::Place& p, Tensor& out) {
  ops::Place wide = with_wide_ids(p);
  visit_dtype(p.op, out.dtype(), [&]<class T> {
    with_wide(wide.ids.dtype(), [&]<class Id> {
      if constexpr (kIsSmallFloat<T>) {
        Tensor sums = to_dtype(out, DType::F32);
        wide.is_fresh = true;
        place_all(wide, sums, loops_for<Sum, float, T, Id>());
        cast(sums, out);
      } else if constexpr (!std::is_same_v<T, bool>) {
        place_all(wide, out, loops_for<Sum, T, T, Id>());
      }
    });
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
