// What the files of the C interface share about tensors, devices and dtypes.
#pragma once

#include <memory>
#include <string_view>

#include "capi/handles.h"
#include "tl/base/dtype.h"
#include "tl/runtime/device.h"
#include "tl/tensor/tensor.h"

namespace tl::capi {

HandleTable<tl_tensor, Tensor>& tensors();

// Throw BadArgument for numbers that are none of the enum's.
DType dtype_of_c(std::string_view function, std::int64_t dtype);
Device device_of_c(std::string_view function, tl_device device);
tl_device to_c(DeviceLocation location) noexcept;
Shape shape_of_c(std::string_view function, const std::int64_t* shape, std::int64_t rank);

}  // namespace tl::capi
