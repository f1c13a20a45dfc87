// The kernels of module SAMPLE, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/sample.h"

namespace tl::kernels {

inline constexpr std::array<KernelName, 3> kSampleNames = {kernel_name("sample", "greedy"),
                                                           kernel_name("sample", "drawn"),
                                                           kernel_name("sample", "accept")};
inline constexpr auto kSampleViews = views(kSampleNames);

static_assert(kSampleViews[sample_kernel(SampleKernel::Accept).index] == "sample_accept");

}  // namespace tl::kernels
