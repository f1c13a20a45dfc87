// Launching the kernels of a module from tests, on whatever GPU is there.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "kernels/gpu_args.h"
#include "support/on_every_device.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/launch.h"
#include "tl/runtime/memory.h"

namespace tl::test {

using kernels::Index;
using kernels::Strided;

class OnEveryGpu : public OnEveryDevice {
 protected:
  void SetUp() override {
    if (device().is_cpu()) GTEST_SKIP() << "the CPU launches no kernels";
  }

  // A small grid on purpose: kernels must loop over what it does not cover.
  template <class... Arguments>
  void run(KernelId id, Arguments&&... arguments) const {
    const Function& function = device().modules().function(module_spec(id.module), id.index);
    launch(function, device().stream(), {.grid = {3}, .block = {256}},
           std::forward<Arguments>(arguments)...);
  }
};

// A walk over `dims` (outermost first) with the given strides.
inline Strided<1> walk(const std::vector<Index>& dims, const std::vector<Index>& strides) {
  const Index* const operands[1] = {strides.data()};
  return kernels::make_strided<1>(static_cast<int>(dims.size()), dims.data(), operands);
}

// The offsets such a walk visits, the plain way.
inline std::vector<Index> visited(const std::vector<Index>& dims,
                                  const std::vector<Index>& strides) {
  std::vector<Index> offsets{0};
  for (std::size_t d = 0; d < dims.size(); ++d) {
    std::vector<Index> next;
    for (const Index base : offsets) {
      for (Index i = 0; i < dims[d]; ++i) next.push_back(base + i * strides[d]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace tl::test
