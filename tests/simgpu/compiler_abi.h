// What the NVRTC and hipRTC wrappers share: the two ABIs differ in names and in little else.
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime_compiler.h"

namespace simgpu {

// Programs by handle. Handles are never used twice, so that a destroyed program is recognised.
class Programs {
 public:
  using Ref = std::shared_ptr<Program>;

  void* add(Ref program) {
    const std::lock_guard lock(mutex_);
    void* handle = reinterpret_cast<void*>(next_ += 16);
    programs_[handle] = std::move(program);
    return handle;
  }
  Ref find(void* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = programs_.find(handle);
    return found == programs_.end() ? nullptr : found->second;
  }
  bool remove(void* handle) {
    const std::lock_guard lock(mutex_);
    return programs_.erase(handle) != 0;
  }

 private:
  std::mutex mutex_;
  std::uintptr_t next_ = 0x5190'0000'0000;
  std::unordered_map<void*, Ref> programs_;
};

inline Programs& programs() {
  static auto* all = new Programs;  // outlives every user
  return *all;
}

inline int code(CompileStatus status) { return static_cast<int>(status); }

inline int create_program(void** out, const char* source, const char* name, int header_count,
                          const char* const* headers, const char* const* header_names) {
  if (out == nullptr || source == nullptr || header_count < 0) {
    return code(CompileStatus::InvalidInput);
  }
  auto program = std::make_shared<Program>();
  program->source = source;
  program->name = name != nullptr ? name : "default_program";
  for (int i = 0; i < header_count; ++i) program->headers[header_names[i]] = headers[i];
  *out = programs().add(std::move(program));
  return code(CompileStatus::Ok);
}

inline int compile_program(void* handle, int count, const char* const* options,
                           const CompileDialect& dialect) {
  const Programs::Ref program = programs().find(handle);
  if (!program) return code(CompileStatus::InvalidProgram);
  return code(compile(*program, std::vector<std::string>(options, options + count), dialect));
}

inline int destroy_program(void** handle) {
  if (handle == nullptr || !programs().remove(*handle)) return code(CompileStatus::InvalidProgram);
  *handle = nullptr;
  return code(CompileStatus::Ok);
}

inline int image_size(void* handle, std::size_t* bytes) {
  const Programs::Ref program = programs().find(handle);
  if (!program || program->image.empty()) return code(CompileStatus::InvalidProgram);
  *bytes = program->image.size();
  return code(CompileStatus::Ok);
}

inline int copy_image(void* handle, char* out) {
  const Programs::Ref program = programs().find(handle);
  if (!program || program->image.empty()) return code(CompileStatus::InvalidProgram);
  std::memcpy(out, program->image.data(), program->image.size());
  return code(CompileStatus::Ok);
}

// The log's size counts the zero at its end.
inline int log_size(void* handle, std::size_t* bytes) {
  const Programs::Ref program = programs().find(handle);
  if (!program) return code(CompileStatus::InvalidProgram);
  *bytes = program->log.size() + 1;
  return code(CompileStatus::Ok);
}

inline int copy_log(void* handle, char* out) {
  const Programs::Ref program = programs().find(handle);
  if (!program) return code(CompileStatus::InvalidProgram);
  std::memcpy(out, program->log.c_str(), program->log.size() + 1);
  return code(CompileStatus::Ok);
}

}  // namespace simgpu
