// Indices of any integer dtype as kernels of module INDEXING read them. Included after gpu.h.
#pragma once

#include "gpu_ids.h"

using tl::kernels::Ids;

// The indices at some offsets, as they stand, -1 where an offset is negative. All loads are under
// way before the first of them is looked at.
template <int kCount>
GPU_INLINE void load_ids(const Ids& ids, const Index (&at)[kCount], Index (&id)[kCount]) {
  const auto load = [&]<class T>(const T* data) {
    T found[kCount];
    GPU_UNROLLED
    for (int u = 0; u < kCount; ++u) {
      if (at[u] >= 0) found[u] = data[at[u]];
    }
    GPU_UNROLLED
    for (int u = 0; u < kCount; ++u) id[u] = at[u] >= 0 ? static_cast<Index>(found[u]) : -1;
  };
  switch (ids.kind) {
    case 0:
      return load(static_cast<const Bits8*>(ids.data));
    case 1:
      return load(static_cast<const Bits32*>(ids.data));
    case 2:
      return load(static_cast<const short*>(ids.data));
    case 3:
      return load(static_cast<const int*>(ids.data));
    default:
      return load(static_cast<const Index*>(ids.data));
  }
}

// The same index, or -1 for the sentinel and for a bad one.
GPU_INLINE Index check_id(const Ids& ids, Index id) {
  if (id == ids.nothing) return -1;
  if (static_cast<Bits64>(id) < static_cast<Bits64>(ids.size)) return id;
  report_bad_index(ids.fault, ids.tag, id, ids.size);
  return -1;
}

GPU_INLINE Index read_id(const Ids& ids, Index at) {
  const Index where[1] = {at};
  Index id[1];
  load_ids(ids, where, id);
  return check_id(ids, id[0]);
}
