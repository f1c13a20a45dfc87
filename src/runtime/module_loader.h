// From the name of a module to a module on a device: choosing among the images of the kernel packs,
// and compiling from source where none of them will do. No state and no locks of its own; who may
// load what when is the store's business.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/driver/table.h"
#include "tl/runtime/module_store.h"

namespace tl {

// Owns the driver's module. Functions and the store share it; the last of them unloads it.
class LoadedModule {
 public:
  LoadedModule(Context& context, driver::Handle native, LoadedModuleInfo info)
      : context_(context), native_(native), info_(std::move(info)) {}
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  Context& context() const noexcept { return context_; }
  driver::Handle native() const noexcept { return native_; }
  const LoadedModuleInfo& info() const noexcept { return info_; }

 private:
  Context& context_;
  driver::Handle native_;
  LoadedModuleInfo info_;
};

// Tries the images of the packs from the best to the worst, then the module's source. Throws
// ModuleLoad with what came of each try; BadFile for a pack or a cache directory that the user
// named and that cannot be used; and the driver's own failure when that says something about the
// device and nothing about the module.
std::shared_ptr<const LoadedModule> load_module(Context& context, std::string_view module);

// Compiles and loads a text; it may include the kernels' headers. Throws CompileFailed, and the
// rest as above.
std::shared_ptr<const LoadedModule> compile_module(Context& context, std::string_view source_name,
                                                   std::string_view source);

// `from_pack` tells the kernels of packs, which all begin with await_earlier() (gpu.h), from those
// of compile_module(). Throws MissingKernel.
std::shared_ptr<const Function> find_function(std::shared_ptr<const LoadedModule> module,
                                              std::string_view kernel, bool from_pack);

}  // namespace tl
