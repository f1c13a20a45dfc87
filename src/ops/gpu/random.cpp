#include "ops/gpu/random.h"

#include "ops/gpu/launcher.h"

namespace tl::gpu {

namespace {

template <class... Arguments>
void make(Tensor& out, MakeFamily family, int per_thread, std::uint64_t seed,
          std::uint64_t position, Arguments... arguments) {
  const Device device = out.device();
  std::byte* to = out.write(device.stream());
  run(device, make_kernel(family, out.dtype()), elementwise_shape(out.count(), per_thread), to,
      static_cast<Index>(out.count()), seed, position, arguments...);
}

}  // namespace

void rand_uniform(Tensor& out, std::uint64_t seed, std::uint64_t position, double low, double width,
                  double last) {
  if (out.dtype() == DType::F64) {
    make(out, MakeFamily::RandUniform, 2, seed, position, low, width, last);
  } else {
    make(out, MakeFamily::RandUniform, 4, seed, position, static_cast<float>(low),
         static_cast<float>(width), static_cast<float>(last));
  }
}

void rand_normal(Tensor& out, std::uint64_t seed, std::uint64_t position, double mean,
                 double deviation) {
  if (out.dtype() == DType::F64) {
    make(out, MakeFamily::RandNormal, 2, seed, position, mean, deviation);
  } else {
    make(out, MakeFamily::RandNormal, 4, seed, position, static_cast<float>(mean),
         static_cast<float>(deviation));
  }
}

void randint(Tensor& out, std::uint64_t seed, std::uint64_t position, std::int64_t low,
             std::uint64_t range) {
  make(out, MakeFamily::Randint, 2, seed, position, low, range);
}

}  // namespace tl::gpu
