// The kernel modules a device has loaded, and the functions in them.
//
// A module is loaded once per device, however many threads ask at the same moment; a failure is
// remembered and reported again, and does not touch the other modules. A function found once costs
// one atomic load afterwards.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tl {

class Context;
class LoadedModule;  // owns the driver's module; unloaded with its last owner

// What the store has to know of a module: made by the kernels, see tl/kernels/modules.h.
struct ModuleSpec {
  std::uint32_t slot = 0;                     // its place in the store, below ModuleStore::kSlots
  std::string_view name;                      // "fill"; finds its images and its source
  std::span<const std::string_view> kernels;  // a kernel's id is its place here
};

// A kernel ready to be launched. It keeps its module loaded.
class Function {
 public:
  Function(std::shared_ptr<const LoadedModule> module, void* native, std::string_view name,
           bool awaits_earlier)
      : module_(std::move(module)), native_(native), name_(name), awaits_earlier_(awaits_earlier) {}
  void* native() const noexcept { return native_; }
  const std::string& name() const noexcept { return name_; }
  // Its code waits for the launch before it, so that it may begin before that one has ended.
  bool awaits_earlier() const noexcept { return awaits_earlier_; }
  // The dynamic shared memory that allow_shared_bytes() has been granted, at most.
  std::uint32_t shared_bytes_allowed() const noexcept {
    return shared_allowed_.load(std::memory_order_relaxed);
  }
  void note_shared_bytes_allowed(std::uint32_t bytes) const noexcept {
    shared_allowed_.store(bytes, std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<const LoadedModule> module_;
  void* native_;
  std::string name_;
  bool awaits_earlier_;
  mutable std::atomic<std::uint32_t> shared_allowed_ = 0;
};

// How a module came to the device, for `tl devices --modules` and tests.
enum class ModuleOrigin : std::uint8_t { Embedded, Pack, Cache, Compiled };

struct LoadedModuleInfo {
  std::string name;
  std::string architecture;  // of the image, e.g. "sm_90" or "compute_75"
  ModuleOrigin origin = ModuleOrigin::Embedded;
  std::size_t image_bytes = 0;
};

class ModuleStore {
 public:
  static constexpr std::uint32_t kSlots = 32;

  explicit ModuleStore(Context& context);
  ~ModuleStore();
  ModuleStore(const ModuleStore&) = delete;
  ModuleStore& operator=(const ModuleStore&) = delete;

  // The kernel `index` of a module, loaded at the first call. The reference lives as long as the
  // store. Throws MissingKernel, ModuleLoad or CompileFailed.
  const Function& function(const ModuleSpec& module, std::uint32_t index);

  // A function that may outlive the store (it holds its module).
  std::shared_ptr<const Function> shared_function(const ModuleSpec& module, std::uint32_t index);

  // Compiles and loads source of the caller's own, once per text and device. Nobody knows whether
  // its kernels wait for what is before them, so they begin when that has ended.
  std::shared_ptr<const Function> compile(std::string_view source_name, std::string_view source,
                                          std::string_view kernel);

  std::vector<LoadedModuleInfo> loaded() const;
  // The kernels of a module that were asked for so far, in the order of their ids. Tests count with
  // it what they have covered.
  std::vector<std::string_view> used(const ModuleSpec& module) const;

 private:
  struct Slot;
  struct Ready;
  struct Custom;
  Ready& ready_module(const ModuleSpec& module);

  Context& context_;
  std::array<std::unique_ptr<Slot>, kSlots> slots_;
  std::unique_ptr<Custom> custom_;
};

}  // namespace tl
