// What a program that uses the installed library looks like: memory on a device, a copy that shares
// it, and a write that leaves the original alone.
#include <tl/tl.h>

#include <cstdio>
#include <vector>

int main() {
  try {
    const tl::Device device = tl::Device::cpu();
    tl::DeviceMemory<float> a(device, 1024);
    a.fill(1.0F);
    tl::DeviceMemory<float> b = a;
    std::printf("%s: shared: %s\n", device.text().c_str(), b.shared() ? "yes" : "no");

    b.fill(2.0F);
    std::printf("after a write: shared: %s, a[0] = %g, b[0] = %g\n",
                b.shared() ? "still" : "no more", static_cast<double>(a.to_vector()[0]),
                static_cast<double>(b.to_vector()[0]));
    return a.to_vector()[0] == 1.0F && b.to_vector()[0] == 2.0F ? 0 : 1;
  } catch (const tl::Error& error) {
    std::fprintf(stderr, "use_package: %s\n", error.what());
    return 1;
  }
}
