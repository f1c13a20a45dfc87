// The same computation on every device there is: moving tensors, comparing results, and what the
// memory pool holds.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "tl/tl.h"

int main() {
  using namespace tl;

  constexpr std::int64_t kSize = 64;
  std::vector<float> values(kSize * kSize);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i));
  }
  const Tensor a = Tensor::from(values, {kSize, kSize});
  const std::vector<float> wanted = matmul(a, a.t()).to_vector<float>();

  for (const Device& device : Device::all()) {
    const Tensor there = to(a, device);  // a copy, or `a` itself where it is already
    const Tensor product = matmul(there, there.t());

    // Work on a GPU is queued; reading the result waits for it. Only what a view shows travels.
    const Tensor corner = product.narrow(0, 0, 2).narrow(1, 0, 2);
    std::cout << device << " (" << device.name() << ")\n" << corner << "\n";

    const std::vector<float> got = product.to_vector<float>();
    float worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(got[i] - wanted[i]));
    }
    std::cout << "differs from the CPU by at most " << worst << "; " << format_bytes(device.trim())
              << " returned from the pool\n\n";
    if (worst > 1e-3f) return 1;
  }

  // Tensors on different devices do not mix by accident.
  const Device best = Device::best_available();
  if (!best.is_cpu()) {
    try {
      matmul(a, to(a, best));
      return 1;
    } catch (const Error& error) {
      std::cout << error.what() << "\n";
    }
  }
  return 0;
}
