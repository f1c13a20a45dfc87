// The run-time compiler behind the NVRTC and hipRTC ABIs: it really compiles, with the host
// compiler.
//
// The source and the headers given by name go into a directory of their own, the source gets one
// line per kernel that makes its entry findable, and the result is the shared object that the
// simulated driver loads as a module.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace simgpu {

// The values NVRTC and hipRTC share.
enum class CompileStatus : int {
  Ok = 0,
  InvalidInput = 3,
  InvalidProgram = 4,
  InvalidOption = 5,
  Compilation = 6,
  Internal = 11,
};

const char* compile_status_text(int status, bool hip);

struct Program {
  std::string source;
  std::string name;
  std::map<std::string, std::string> headers;
  std::string log;
  std::string image;  // empty until compiled
};

struct CompileDialect {
  const char* architecture_prefix;  // "sm_9" + "32" is how CUDA spells 32 lanes; "sim" + "32" HIP
  CompileStatus unknown_architecture;
  bool takes_optimisation_level;  // NVRTC refuses -O3
};

// Options it knows are used or ignored, as a device compiler's make sense here; others are refused.
CompileStatus compile(Program& program, const std::vector<std::string>& options,
                      const CompileDialect& dialect);

}  // namespace simgpu
