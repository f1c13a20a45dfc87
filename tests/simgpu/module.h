// A kernel module: a shared object that was given as bytes.
//
// The bytes go into an anonymous file of their own and that is opened with dlopen, so that loading
// the same image twice gives two instances with separate variables, as it does on a GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/gpu_host.h"
#include "status.h"

namespace simgpu {

class Module {
 public:
  // InvalidImage for what is no host kernel module, NoBinaryForGpu for a module of the other warp
  // width or of a real GPU; the reason is told on stderr, because the number alone says little.
  static Status load(const void* image, unsigned warp, std::shared_ptr<Module>& out);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const gpu_host::Entry* entry(const std::string& kernel) const;  // null where there is none
  bool variable(const char* name, void*& address, std::size_t& bytes) const;

  // Static shared memory is thread-local data of the module without initial value. Real shared
  // memory holds whatever the previous block left, so a kernel that takes it for zero must not get
  // away with it.
  void poison_static_shared() const;

 private:
  Module() = default;
  void find_static_shared();

  int file_ = -1;  // open as long as the module, for whoever prints a stack trace
  void* library_ = nullptr;
  std::size_t tls_module_ =
      0;  // the loader's number for its thread-local data; 0 where it has none
  std::size_t tls_offset_ = 0;
  std::size_t tls_bytes_ = 0;
};

}  // namespace simgpu
