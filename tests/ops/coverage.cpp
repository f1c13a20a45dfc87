// After all tests of ops (or quant, or sampling): was every kernel of theirs that the host can ask
// for asked for? A kernel that no test reaches would be seen by nobody on any rung. After some of
// the tests the kernels are counted and nothing is asked of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "runtime/blas.h"
#include "runtime/driver/dnn.h"
#include "support/on_every_device.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/module_store.h"

namespace tl::test {
namespace {

// Conversions to the same dtype complete the table of casts; ops share memory instead. Pixels are
// made for a vendor's library, and there may be none. Their tests are in tests/kernels.
bool only_in_kernel_tests(std::string_view kernel) {
  if (kernel == "pixels_2") return true;
  for (const DType t : kDTypes) {
    if (kernel == join("cast_", t, "_", t)) return true;
  }
  return false;
}

// The decoder's kernel wants more shared memory of an NVIDIA GPU than a block has unasked, and the
// ROCm half of the runtime does not ask: where it runs over CUDA, other kernels decode.
bool has_no_room(std::string_view kernel, const Device& device) {
  return kernel == "decode_step" && device.kind() == DeviceKind::Rocm &&
         device.properties().architecture.starts_with("sm_");
}

// The kernels of quantised tensors, of sampling, of decoders and of gradients have test programs of
// their own, which have this file too.
enum class Program { Ops, Quantised, Sampling, Decoding, Gradients };
#if defined(TL_QUANTISED_KERNELS)
constexpr Program kProgram = Program::Quantised;
#elif defined(TL_SAMPLING_KERNELS)
constexpr Program kProgram = Program::Sampling;
#elif defined(TL_DECODING_KERNELS)
constexpr Program kProgram = Program::Decoding;
#elif defined(TL_GRADIENT_KERNELS)
constexpr Program kProgram = Program::Gradients;
#else
constexpr Program kProgram = Program::Ops;
#endif
constexpr Program program_of(ModuleId module) {
  switch (module) {
    case ModuleId::Quantized:
    case ModuleId::QuantVector:
    case ModuleId::QuantMatrix:
    case ModuleId::QuantGroup:
    case ModuleId::QuantRow:
      return Program::Quantised;
    case ModuleId::Sample:
      return Program::Sampling;
    case ModuleId::Decode:
    case ModuleId::Cache:
      return Program::Decoding;
    case ModuleId::AttentionGrad:
    case ModuleId::RowGrad:
    case ModuleId::Train:
      return Program::Gradients;
    default:
      return Program::Ops;
  }
}

class KernelCoverage : public testing::Environment {
 public:
  void TearDown() override {
    if (testing::UnitTest::GetInstance()->Failed()) return;
    // Simulated devices are tested without repeating the CPU.
    const std::string filter = testing::GTEST_FLAG(filter);
    const bool all = filter == "*" || filter == "*-*/cpu" || filter == "-*/cpu";
    // A vendor's library takes work from our kernels; then TL_NO_VENDOR_LIBS=1 is the run that
    // counts.
    for (const DeviceLocation& location : locations()) {
      if (location.is_cpu()) continue;
      const Device device = Device::at(location);
      if (Blas::of(device) == nullptr && driver::find_dnn(location.kind).table == nullptr) {
        check(device, all);
      }
    }
  }

 private:
  static void check(const Device& device, bool all) {
    const char* file = std::getenv("TL_OPS_REPORT");
    std::ofstream report;
    if (file != nullptr) report.open(file, std::ios::app);
    for (int m = 0; m < kModuleCount; ++m) {
      const ModuleSpec& module = module_spec(static_cast<ModuleId>(m));
      if (module.kernels.empty() || program_of(static_cast<ModuleId>(m)) != kProgram) continue;
      const auto used = device.modules().used(module);
      for (const std::string_view kernel : module.kernels) {
        if (all && std::find(used.begin(), used.end(), kernel) == used.end() &&
            !only_in_kernel_tests(kernel) && !has_no_room(kernel, device)) {
          ADD_FAILURE() << "no test of this program used kernel " << module.name << "." << kernel
                        << " on " << device;
        }
      }
      report << "kernels\t" << module.name << '\t' << name(device.kind()) << '\t' << used.size()
             << '\t' << module.kernels.size() << '\n';
    }
  }
};

const auto* const kCoverage = testing::AddGlobalTestEnvironment(new KernelCoverage);

}  // namespace
}  // namespace tl::test
