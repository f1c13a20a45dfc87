#include "ops/gpu/where.h"

#include <cstring>

#include "ops/gpu/elementwise.h"

namespace tl::gpu {

void where(const ops::Choice& choice, Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const std::size_t size = size_of(out.dtype());
  const std::size_t condition_size = size_of(choice.condition->dtype());
  const std::byte* mask = choice.condition->read(stream);
  const std::byte* yes = choice.yes != nullptr ? choice.yes->read(stream) : nullptr;
  const std::byte* no = choice.no != nullptr ? choice.no->read(stream) : nullptr;
  std::byte* to = out.write(stream);
  const auto plan =
      make_plan<3>(out.shape(), out.count(),
                   {Input{choice.condition_layout, mask, condition_size},
                    Input{choice.yes != nullptr ? choice.yes_layout : nullptr, yes, size},
                    Input{choice.no != nullptr ? choice.no_layout : nullptr, no, size}},
                   to, size, Weight::Light);
  std::uint64_t bits = 0;
  visit_dtype("where", out.dtype(), [&]<class T> {
    const T element = choice.value.to<T>();
    std::memcpy(&bits, &element, sizeof(T));
  });
  run(device, where_kernel(condition_size, size), plan.shape, mask, yes, no, to, plan.walk,
      plan.reading, bits, bits);
}

}  // namespace tl::gpu
