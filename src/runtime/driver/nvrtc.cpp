// The run-time compiler of CUDA.
#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/rtc.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::driver {

namespace {

class Nvrtc {
 public:
  // Returns the first function that is missing; empty when all are there.
  std::string load(const Library& library) {
    std::string missing = load_rtc_api(library, "nvrtc", &api_);
    if (!missing.empty()) return missing;
    Symbols symbols(library);
    symbols.need(machine_code_.size, "nvrtcGetCUBINSize")
        .need(machine_code_.bytes, "nvrtcGetCUBIN")
        .need(intermediate_.size, "nvrtcGetPTXSize")
        .need(intermediate_.bytes, "nvrtcGetPTX");

    int (*known_count)(int*) = nullptr;
    int (*known_list)(int*) = nullptr;
    int count = 0;
    if (library.load(known_count, "nvrtcGetNumSupportedArchs") &&
        library.load(known_list, "nvrtcGetSupportedArchs") && known_count(&count) == 0 &&
        count > 0) {
      known_.resize(static_cast<std::size_t>(count));
      if (known_list(known_.data()) != 0) known_.clear();
    }
    return symbols.missing();
  }

  std::string version() const {
    int major = 0;
    int minor = 0;
    api_.version(&major, &minor);
    return join(major, ".", minor);
  }

  std::vector<std::string> options(std::string_view architecture) const {
    const std::string target = target_for(architecture);
    // With the instructions that only this generation has, as in the images that are built ahead.
    return {"--std=c++20", "--gpu-architecture=" + (target == "sm_90" ? "sm_90a" : target)};
  }

  bool compile(const Source& program, std::span<const Source> headers,
               std::string_view architecture, std::vector<std::byte>* image,
               std::string* log) const {
    const bool intermediate = target_for(architecture).starts_with("compute_");
    return rtc_compile(api_, intermediate ? intermediate_ : machine_code_, program, headers,
                       options(architecture), image, log);
  }

 private:
  // What to compile for: machine code for the device itself when the compiler knows it; for a
  // device newer than the compiler, the newest intermediate code it can make, which the driver then
  // finishes.
  std::string target_for(std::string_view architecture) const {
    constexpr std::string_view kPrefix = "sm_";
    if (known_.empty() || !architecture.starts_with(kPrefix)) return std::string(architecture);
    int wanted = 0;
    const char* end = architecture.data() + architecture.size();
    const auto parsed = std::from_chars(architecture.data() + kPrefix.size(), end, wanted);
    if (parsed.ptr != end || std::ranges::find(known_, wanted) != known_.end()) {
      return std::string(architecture);
    }
    int best = 0;
    for (const int candidate : known_) {
      if (candidate < wanted) best = std::max(best, candidate);
    }
    return best == 0 ? std::string(architecture) : join("compute_", best);
  }

  RtcApi api_;
  RtcOutput machine_code_;
  RtcOutput intermediate_;
  std::vector<int> known_;  // compute capabilities it knows, e.g. 90; empty when it does not say
};

}  // namespace

Found<CompilerTable> open_nvrtc() {
  std::vector<std::string> names;
  // A stand-in for the driver may bring its compiler along.
  if (const auto driver = environment("TL_CUDA_DRIVER"); !driver.empty())
    names.emplace_back(driver);
  for (const char* folder : {"", "/usr/local/cuda/lib64/"}) {
    for (const char* file : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
      names.push_back(join(folder, file));
    }
  }
  std::string reason;
  const Library library = open_rtc_library("TL_NVRTC", names, "nvrtcCompileProgram", &reason);
  if (!library) return {nullptr, "no NVRTC: " + reason};

  const auto nvrtc = std::make_shared<Nvrtc>();
  if (const std::string missing = nvrtc->load(library); !missing.empty()) {
    return {nullptr, join("no NVRTC: ", library.file(), " has no ", missing)};
  }
  CompilerTable table;
  table.library = library.file();
  table.version = nvrtc->version();
  table.compile = [nvrtc](auto&&... all) { return nvrtc->compile(all...); };
  table.options = [nvrtc](std::string_view architecture) {
    return join_list(nvrtc->options(architecture), " ");
  };
  return {keep_compiler(std::move(table)), {}};
}

}  // namespace tl::driver
