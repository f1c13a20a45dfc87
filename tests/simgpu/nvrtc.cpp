// NVRTC's C ABI (libsimnvrtc.so). sm_932 and sm_964 are the architectures it can compile for.
#include "compiler_abi.h"
#include "export.h"

namespace {

constexpr simgpu::CompileDialect kDialect{
    .architecture_prefix = "sm_9",
    .unknown_architecture = simgpu::CompileStatus::InvalidOption,
    .takes_optimisation_level = false,
};

}  // namespace

using nvrtcResult = int;
using nvrtcProgram = void*;

SIMGPU_EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

SIMGPU_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source,
                                             const char* name, int header_count,
                                             const char* const* headers,
                                             const char* const* header_names) {
  return simgpu::create_program(program, source, name, header_count, headers, header_names);
}

SIMGPU_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count,
                                              const char* const* options) {
  return simgpu::compile_program(program, count, options, kDialect);
}

SIMGPU_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  return simgpu::destroy_program(program);
}

SIMGPU_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* bytes) {
  return simgpu::image_size(program, bytes);
}

SIMGPU_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* out) {
  return simgpu::copy_image(program, out);
}

// There is no intermediate language here: both forms are the shared object.
SIMGPU_EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, std::size_t* bytes) {
  return simgpu::image_size(program, bytes);
}

SIMGPU_EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* out) {
  return simgpu::copy_image(program, out);
}

SIMGPU_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, std::size_t* bytes) {
  return simgpu::log_size(program, bytes);
}

SIMGPU_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* out) {
  return simgpu::copy_log(program, out);
}

SIMGPU_EXPORT const char* nvrtcGetErrorString(nvrtcResult status) {
  return simgpu::compile_status_text(status, false);
}
