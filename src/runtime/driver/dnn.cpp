#include "runtime/driver/dnn.h"

#include <functional>
#include <mutex>

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::driver {

namespace {

// One attempt to open a library; kept for the life of the process, as plans may be.
class Once {
 public:
  const Found<DnnTable>& get(const char* stand_in, const char* named, Found<DnnTable> (*open)()) {
    std::call_once(flag_, [&] {
      if (environment("TL_NO_VENDOR_LIBS") == "1") {
        found_.reason = "TL_NO_VENDOR_LIBS is set";
      } else if (!environment(stand_in).empty() && environment(named).empty()) {
        found_.reason = join(stand_in, " names a driver and ", named, " no library for it");
      } else {
        found_ = open();
      }
    });
    return found_;
  }

 private:
  std::once_flag flag_;
  Found<DnnTable> found_;
};

}  // namespace

std::size_t ConvolutionHash::operator()(const Convolution& c) const noexcept {
  std::size_t hash = 0;
  const auto mix = [&](std::int64_t value) {
    hash = hash * 0x9e3779b97f4a7c15u + std::hash<std::int64_t>{}(value) + (hash >> 29);
  };
  mix((c.transposed ? 1 : 0) + (c.channels_last ? 2 : 0));
  mix(static_cast<std::int64_t>(c.dtype));
  mix(c.batch);
  mix(c.groups);
  mix(c.in_channels);
  mix(c.out_channels);
  for (const ConvolutionAxis& axis : c.axes) {
    mix(axis.in);
    mix(axis.out);
    mix(axis.kernel);
    mix(axis.stride);
    mix(axis.padding);
    mix(axis.dilation);
  }
  return hash;
}

const Found<DnnTable>& find_dnn(DeviceKind kind) {
  static auto* const cuda = new Once;
  static auto* const rocm = new Once;
  static auto* const none = new Found<DnnTable>{nullptr, "the CPU needs no such library"};
  switch (kind) {
    case DeviceKind::Cuda:
      return cuda->get("TL_CUDA_DRIVER", "TL_CUDNN", open_cudnn);
    case DeviceKind::Rocm:
      return rocm->get("TL_HIP_DRIVER", "TL_MIOPEN", open_miopen);
    case DeviceKind::Cpu:
      break;
  }
  return *none;
}

}  // namespace tl::driver
