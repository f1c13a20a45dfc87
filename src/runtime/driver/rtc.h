// The part that two run-time compilers share. NVRTC and hipRTC have the same functions with the
// same arguments; only the prefix of the names, the options and the getters of the result differ,
// and those are in nvrtc.cpp and hiprtc.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/driver/library.h"
#include "runtime/driver/table.h"

namespace tl::driver {

struct RtcApi {
  using Program = void*;
  using SizeGetter = int(Program, std::size_t*);
  using TextGetter = int(Program, char*);

  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error_string)(int status) = nullptr;
  int (*create_program)(Program*, const char* text, const char* name, int header_count,
                        const char* const* headers, const char* const* include_names) = nullptr;
  int (*compile_program)(Program, int option_count, const char* const* options) = nullptr;
  int (*destroy_program)(Program*) = nullptr;
  SizeGetter* log_size = nullptr;
  TextGetter* log = nullptr;
};

// Opens the first of `names` that has the run-time compiler in it; a compiler may live in the
// driver's own library, so a file that opens but lacks `probe` is passed over. `reason` says why
// when none did.
Library open_rtc_library(const char* override_variable, std::span<const std::string> names,
                         const std::string& probe, std::string* reason);

// Fills `api` with the functions that have names in `prefix` + "CompileProgram" style; returns the
// first name missing.
std::string load_rtc_api(const Library& library, const std::string& prefix, RtcApi* api);

// Keeps a table for the life of the process and gives its address. A compiler may be opened again,
// under another name, without disturbing who uses the first.
const CompilerTable* keep_compiler(CompilerTable table);

// The result of a compilation is read by these two.
struct RtcOutput {
  RtcApi::SizeGetter* size = nullptr;
  RtcApi::TextGetter* bytes = nullptr;
};

// Compiles; on failure returns false with the compiler's words in `log`.
bool rtc_compile(const RtcApi& api, const RtcOutput& output, const Source& program,
                 std::span<const Source> headers, std::span<const std::string> options,
                 std::vector<std::byte>* image, std::string* log);

}  // namespace tl::driver
