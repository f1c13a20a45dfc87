// hipRTC's C ABI: libsimhiprtc.so, and part of libsimhip5.so, where ROCm 5 had it. It compiles for
// sim32 and sim64.
#include "compiler_abi.h"
#include "export.h"

namespace {

constexpr simgpu::CompileDialect kDialect{
    .architecture_prefix = "sim",
    .unknown_architecture = simgpu::CompileStatus::Compilation,
    .takes_optimisation_level = true,
};

}  // namespace

using hiprtcResult = int;
using hiprtcProgram = void*;

SIMGPU_EXPORT hiprtcResult hiprtcVersion(int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}

SIMGPU_EXPORT hiprtcResult hiprtcCreateProgram(hiprtcProgram* program, const char* source,
                                               const char* name, int header_count,
                                               const char* const* headers,
                                               const char* const* header_names) {
  return simgpu::create_program(program, source, name, header_count, headers, header_names);
}

SIMGPU_EXPORT hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int count,
                                                const char* const* options) {
  return simgpu::compile_program(program, count, options, kDialect);
}

SIMGPU_EXPORT hiprtcResult hiprtcDestroyProgram(hiprtcProgram* program) {
  return simgpu::destroy_program(program);
}

SIMGPU_EXPORT hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, std::size_t* bytes) {
  return simgpu::image_size(program, bytes);
}

SIMGPU_EXPORT hiprtcResult hiprtcGetCode(hiprtcProgram program, char* out) {
  return simgpu::copy_image(program, out);
}

SIMGPU_EXPORT hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, std::size_t* bytes) {
  return simgpu::log_size(program, bytes);
}

SIMGPU_EXPORT hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char* out) {
  return simgpu::copy_log(program, out);
}

SIMGPU_EXPORT const char* hiprtcGetErrorString(hiprtcResult status) {
  return simgpu::compile_status_text(status, true);
}
