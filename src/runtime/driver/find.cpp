// Opens each driver and each run-time compiler once, at the first question about it.
#include <array>
#include <mutex>
#include <utility>

#include "runtime/driver/table.h"

namespace tl::driver {

namespace {

// A table and what came of looking for it. Lives for the whole process: blocks of memory may be
// given back as late as during static destruction.
template <class T, class Open>
class Once {
 public:
  explicit Once(Open open) : open_(open) {}

  const Found<T>& get() {
    std::call_once(flag_, [this] { found_ = open_(); });
    return found_;
  }

 private:
  Open open_;
  std::once_flag flag_;
  Found<T> found_;
};

template <class T>
using Opener = Found<T> (*)();

template <class T>
Once<T, Opener<T>>& once(std::size_t kind, const std::array<Opener<T>, 3>& openers) {
  static auto* const all = new std::array<Once<T, Opener<T>>, 3>{Once<T, Opener<T>>(openers[0]),
                                                                 Once<T, Opener<T>>(openers[1]),
                                                                 Once<T, Opener<T>>(openers[2])};
  return (*all)[kind];
}

Found<CompilerTable> no_compiler() { return {nullptr, "the CPU needs no run-time compiler"}; }

}  // namespace

bool means_lost(Status status) noexcept {
  switch (status) {
    case 46:   // devices unavailable
    case 214:  // uncorrectable ECC error
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context is destroyed
    case 710:  // device-side assert
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
      return true;
    default:
      return false;
  }
}

const Found<Table>& find(DeviceKind kind) {
  return once<Table>(static_cast<std::size_t>(kind), {open_host, open_cuda, open_hip}).get();
}

const Found<CompilerTable>& find_compiler(DeviceKind kind) {
  return once<CompilerTable>(static_cast<std::size_t>(kind), {no_compiler, open_nvrtc, open_hiprtc})
      .get();
}

std::vector<std::string> math_libraries(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::Cpu:
      return {};
    case DeviceKind::Cuda:
      return cuda_math_libraries();
    case DeviceKind::Rocm:
      return hip_math_libraries();
  }
  return {};
}

Table& table_for_testing(DeviceKind kind) { return const_cast<Table&>(*find(kind).table); }

}  // namespace tl::driver
