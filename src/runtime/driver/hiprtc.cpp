// The run-time compiler of ROCm.
//
// The compilers of ROCm 5 and 6 end the process when they are asked for an architecture they do not
// know, and there is no function to ask what they know. So the names that each version is known to
// take are listed here, and anything else is refused before the compiler sees it. From ROCm 7 on
// the compiler answers with an error itself.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/rtc.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::driver {

namespace {

constexpr std::array<std::string_view, 10> kRocm5{"gfx803",  "gfx900",  "gfx906",  "gfx908",
                                                  "gfx90a",  "gfx1010", "gfx1030", "gfx1031",
                                                  "gfx1035", "gfx1036"};
// What every ROCm 6 takes, and then what the last of them (6.4) takes.
constexpr std::array<std::string_view, 15> kRocm6{
    "gfx906",  "gfx908",  "gfx90a",       "gfx942",        "gfx1010",
    "gfx1030", "gfx1100", "gfx1101",      "gfx950",        "gfx1151",
    "gfx1200", "gfx1201", "gfx9-generic", "gfx11-generic", "gfx12-generic"};
constexpr std::size_t kEveryRocm6 = 8;

struct Version {
  int major = 0;  // of ROCm; 0 when it cannot be told
  int minor = 0;
};

// The numbers behind ".so." in a file name: 6.4 of libhiprtc.so.6.4.43484.
Version version_in(std::string_view file) {
  constexpr std::string_view kMark = ".so.";
  Version version;
  const std::size_t mark = file.rfind(kMark);
  if (mark == std::string_view::npos) return version;
  const char* at = file.data() + mark + kMark.size();
  const char* end = file.data() + file.size();
  const auto major = std::from_chars(at, end, version.major);
  if (major.ec == std::errc{} && major.ptr != end && *major.ptr == '.') {
    std::from_chars(major.ptr + 1, end, version.minor);
  }
  return version;
}

// The version of ROCm a library belongs to. hiprtcVersion() is no help (ROCm 5's says 9.0), so: the
// name of the file behind the links, then the runtime's own number when it is in the same library.
Version rocm_version(const Library& library) {
  ::Dl_info info{};
  if (::dladdr(library.symbol("hiprtcCompileProgram"), &info) != 0 && info.dli_fname != nullptr) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(info.dli_fname, nullptr),
                                                      &std::free);
    const Version version = version_in(real == nullptr ? info.dli_fname : real.get());
    if (version.major != 0) return version;
  }
  int (*runtime_version)(int*) = nullptr;
  int number = 0;
  if (library.load(runtime_version, "hipRuntimeGetVersion") && runtime_version(&number) == 0) {
    return {number / 10000000, number / 100000 % 100};
  }
  return {};
}

// The names that are safe to compile for.
std::vector<std::string> known_to(Version rocm) {
  if (rocm.major == 5) return {kRocm5.begin(), kRocm5.end()};
  if (rocm.major == 6 && rocm.minor >= 4) return {kRocm6.begin(), kRocm6.end()};
  std::vector<std::string> known;
  for (const std::string_view name : std::span(kRocm6).first(kEveryRocm6)) {
    // Without a version only what both families take is safe.
    if (rocm.major == 6 || std::ranges::find(kRocm5, name) != kRocm5.end()) {
      known.emplace_back(name);
    }
  }
  return known;
}

bool accepts(Version rocm, std::string_view architecture) {
  // A stand-in driver names its devices differently and its compiler can be trusted with any name.
  if (rocm.major >= 7 || !architecture.starts_with("gfx")) return true;
  const std::vector<std::string> known = known_to(rocm);
  return std::ranges::find(known, architecture) != known.end();
}

class Hiprtc {
 public:
  // Returns the first function that is missing; empty when all are there.
  std::string load(const Library& library) {
    std::string missing = load_rtc_api(library, "hiprtc", &api_);
    if (!missing.empty()) return missing;
    Symbols symbols(library);
    symbols.need(code_.size, "hiprtcGetCodeSize").need(code_.bytes, "hiprtcGetCode");
    rocm_ = rocm_version(library);
    return symbols.missing();
  }

  std::string version() const {
    if (rocm_.major != 0) return join(rocm_.major, ".", rocm_.minor);
    int major = 0;
    int minor = 0;
    api_.version(&major, &minor);
    return join(major, ".", minor);
  }

  std::vector<std::string> options(std::string_view architecture) const {
    // -O3 is its default: the code is the same, byte for byte, with and without.
    return {"-std=c++20", join("--gpu-architecture=", architecture)};
  }

  bool compile(const Source& program, std::span<const Source> headers,
               std::string_view architecture, std::vector<std::byte>* image,
               std::string* log) const {
    if (!accepts(rocm_, architecture)) {
      *log = join("hipRTC of ROCm ", rocm_.major == 0 ? "(version unknown)" : version(),
                  " is not known to compile for ", architecture, "; it takes ",
                  join_list(known_to(rocm_), ", "));
      return false;
    }
    return rtc_compile(api_, code_, program, headers, options(architecture), image, log);
  }

 private:
  RtcApi api_;
  RtcOutput code_;
  Version rocm_;
};

}  // namespace

Found<CompilerTable> open_hiprtc() {
  std::vector<std::string> names;
  // The driver that was chosen brings its own compiler along up to ROCm 6, and so does a stand-in.
  if (const auto driver = environment("TL_HIP_DRIVER"); !driver.empty()) names.emplace_back(driver);
  for (const char* folder : {"", "/opt/rocm/lib/"}) {
    for (const char* file :
         {"libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.5", "libhiprtc.so"}) {
      names.push_back(join(folder, file));
    }
  }
  std::string reason;
  const Library library = open_rtc_library("TL_HIPRTC", names, "hiprtcCompileProgram", &reason);
  if (!library) return {nullptr, "no hipRTC: " + reason};

  const auto hiprtc = std::make_shared<Hiprtc>();
  if (const std::string missing = hiprtc->load(library); !missing.empty()) {
    return {nullptr, join("no hipRTC: ", library.file(), " has no ", missing)};
  }
  CompilerTable table;
  table.library = library.file();
  table.version = hiprtc->version();
  table.compile = [hiprtc](auto&&... all) { return hiprtc->compile(all...); };
  table.options = [hiprtc](std::string_view architecture) {
    return join_list(hiprtc->options(architecture), " ");
  };
  return {keep_compiler(std::move(table)), {}};
}

}  // namespace tl::driver
