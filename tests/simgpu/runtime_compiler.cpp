// Writing files, running the compiler, reading the result.
#include "runtime_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <string_view>

#include "sanitizer.h"

// Set by the build: the compiler that built the rest, so that both agree on sanitizers and the C++
// library.
#ifndef SIMGPU_CXX
#define SIMGPU_CXX "c++"
#endif
#ifndef SIMGPU_CXXFLAGS
#define SIMGPU_CXXFLAGS ""
#endif

namespace simgpu {
namespace {

namespace fs = std::filesystem;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (fs::temp_directory_path() / "simgpu-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool write_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  std::ofstream out(path, std::ios::binary);
  out << text;
  return out.good();
}

// Header names are the caller's; they must not lead out of the directory.
bool stays_inside(const fs::path& name) {
  if (name.empty() || name.is_absolute()) return false;
  for (const fs::path& part : name) {
    if (part == "..") return false;
  }
  return true;
}

std::string without_comments(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size();) {
    std::size_t end = std::string_view::npos;
    if (source.substr(i, 2) == "//") {
      end = source.find('\n', i);
    } else if (source.substr(i, 2) == "/*") {
      end = source.find("*/", i + 2);
      if (end != std::string_view::npos) end += 2;
    } else {
      out += source[i++];
      continue;
    }
    out += ' ';
    i = std::min(end, source.size());
  }
  return out;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The names in `GPU_KERNEL void NAME(`.
std::vector<std::string> kernels_in(const std::string& source) {
  static constexpr std::string_view kMark = "GPU_KERNEL";
  const std::string text = without_comments(source);
  std::vector<std::string> names;
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    const bool starts_word = at == 0 || !is_name(text[at - 1]);
    at += kMark.size();
    const auto skip = [&](bool (*kind)(char)) {
      const std::size_t begin = at;
      while (at < text.size() && kind(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    if (!starts_word || skip(is_space).empty() || skip(is_name) != "void") continue;
    if (skip(is_space).empty()) continue;
    const std::string name = skip(is_name);
    skip(is_space);
    if (!name.empty() && at < text.size() && text[at] == '(') names.push_back(name);
  }
  return names;
}

std::string with_entries(const std::string& source) {
  std::ostringstream out;
  out << source << '\n';
  for (const std::string& name : kernels_in(source)) {
    // Declared before it is defined, because a const object would otherwise stay private to the
    // file.
    out << "extern \"C\" { extern const gpu_host::Entry gpu_host_entry_" << name
        << "; const gpu_host::Entry gpu_host_entry_" << name << " = gpu_host::EntryOf<&" << name
        << ">::value; }\n";
  }
  return out.str();
}

std::string environment_or(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

void append_words(std::vector<std::string>& to, const std::string& words) {
  std::istringstream in(words);
  for (std::string word; in >> word;) to.push_back(word);
}

// Exit status of the command, whose output goes to `log`; -1 when it could not be run.
int run(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool starts_with_any(const std::string& text, std::initializer_list<const char*> prefixes,
                     std::string* rest = nullptr) {
  for (const char* prefix : prefixes) {
    if (!text.starts_with(prefix)) continue;
    if (rest != nullptr) *rest = text.substr(std::string_view(prefix).size());
    return true;
  }
  return false;
}

struct Options {
  unsigned warp = 0;
  std::vector<std::string> defines;
};

unsigned warp_of(std::string architecture, const CompileDialect& dialect) {
  architecture = architecture.substr(0, architecture.find(':'));
  for (const unsigned warp : {32u, 64u}) {
    if (architecture == dialect.architecture_prefix + std::to_string(warp)) return warp;
  }
  return 0;
}

CompileStatus parse(const std::vector<std::string>& given, const CompileDialect& dialect,
                    Options& out, std::string& log) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::string value;
    if (starts_with_any(given[i], {"--gpu-architecture=", "-arch=", "--offload-arch="}, &value)) {
      out.warp = warp_of(value, dialect);
      if (out.warp == 0) {
        log = "error: invalid value '" + value + "' for the GPU architecture\n";
        return dialect.unknown_architecture;
      }
    } else if (given[i] == "-D" && i + 1 < given.size()) {
      out.defines.push_back("-D" + given[++i]);
    } else if (starts_with_any(given[i], {"--define-macro=", "-D"}, &value)) {
      out.defines.push_back("-D" + value);
    } else if (starts_with_any(given[i], {"-O"}) && !dialect.takes_optimisation_level) {
      log = "error: unrecognized option " + given[i] + "\n";
      return CompileStatus::InvalidOption;
    } else if (!starts_with_any(given[i], {"--std=",
                                           "-std=",
                                           "-O",
                                           "--use_fast_math",
                                           "-use_fast_math",
                                           "-ffast-math",
                                           "--fmad=",
                                           "-fmad=",
                                           "-ffp-contract=",
                                           "-lineinfo",
                                           "--generate-line-info",
                                           "--device-as-default-execution-space",
                                           "-default-device",
                                           "--diag-suppress=",
                                           "-I",
                                           "--include-path=",
                                           "-w",
                                           "-W",
                                           "-m",
                                           "-f",
                                           "--extra-device-vectorization"})) {
      log = "error: unrecognized option " + given[i] + "\n";
      return CompileStatus::InvalidOption;
    }
  }
  if (out.warp != 0) return CompileStatus::Ok;
  log = "error: no GPU architecture was named\n";
  return dialect.unknown_architecture;
}

}  // namespace

CompileStatus compile(Program& program, const std::vector<std::string>& given,
                      const CompileDialect& dialect) {
  program.log.clear();
  program.image.clear();
  Options options;
  if (const auto status = parse(given, dialect, options, program.log);
      status != CompileStatus::Ok) {
    return status;
  }
  const TemporaryDirectory directory;
  if (directory.path().empty()) return CompileStatus::Internal;
  for (const auto& [name, text] : program.headers) {
    if (!stays_inside(name) || !write_file(directory.path() / name, text)) {
      program.log = "error: cannot place the header " + name + "\n";
      return CompileStatus::InvalidInput;
    }
  }
  const fs::path source = directory.path() / "simgpu_program.cu";
  const fs::path image = directory.path() / "simgpu_program.so";
  const fs::path log = directory.path() / "simgpu_program.log";
  // Messages should name the program as the caller does.
  const std::string line = "#line 1 \"" + program.name + "\"\n";
  if (!write_file(source, line + with_entries(program.source))) return CompileStatus::Internal;

  std::vector<std::string> command;
  append_words(command, environment_or("SIMGPU_CXX", SIMGPU_CXX));
  for (const char* word : {"-shared", "-fPIC", "-std=c++20", "-O1"}) command.emplace_back(word);
#if defined(SIMGPU_ASAN)
  command.emplace_back("-fsanitize=address");
#elif defined(SIMGPU_TSAN)
  command.emplace_back("-fsanitize=thread");
#endif
  append_words(command, environment_or("SIMGPU_CXXFLAGS", SIMGPU_CXXFLAGS));
  command.push_back("-DGPU_HOST_WARP=" + std::to_string(options.warp));
  command.insert(command.end(), options.defines.begin(), options.defines.end());
  command.push_back("-I" + directory.path().string());
  for (const std::string& word : {std::string("-x"), std::string("c++"), source.string(),
                                  std::string("-o"), image.string()}) {
    command.push_back(word);
  }
  const int exit_status = run(command, log);
  program.log = read_file(log);
  if (exit_status != 0) {
    if (exit_status == -1) program.log += "error: cannot run " + command.front() + "\n";
    return CompileStatus::Compilation;
  }
  program.image = read_file(image);
  return CompileStatus::Ok;
}

const char* compile_status_text(int status, bool hip) {
  switch (static_cast<CompileStatus>(status)) {
    case CompileStatus::Ok:
      return hip ? "HIPRTC_SUCCESS" : "NVRTC_SUCCESS";
    case CompileStatus::InvalidInput:
      return hip ? "HIPRTC_ERROR_INVALID_INPUT" : "NVRTC_ERROR_INVALID_INPUT";
    case CompileStatus::InvalidProgram:
      return hip ? "HIPRTC_ERROR_INVALID_PROGRAM" : "NVRTC_ERROR_INVALID_PROGRAM";
    case CompileStatus::InvalidOption:
      return hip ? "HIPRTC_ERROR_INVALID_OPTION" : "NVRTC_ERROR_INVALID_OPTION";
    case CompileStatus::Compilation:
      return hip ? "HIPRTC_ERROR_COMPILATION" : "NVRTC_ERROR_COMPILATION";
    case CompileStatus::Internal:
      return hip ? "HIPRTC_ERROR_INTERNAL_ERROR" : "NVRTC_ERROR_INTERNAL_ERROR";
  }
  return hip ? "HIPRTC_ERROR_UNKNOWN" : "NVRTC_ERROR unknown";
}

}  // namespace simgpu
