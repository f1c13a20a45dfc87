#include "tl/runtime/module_store.h"

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/digest.h"
#include "runtime/module_loader.h"
#include "tl/base/error.h"

namespace tl {

namespace {

constexpr std::string_view kWhere = "module store";

// A failure that will not go away by asking again. Others (out of memory, a lost device, an
// unusable directory) are about the moment, and the next caller tries again.
bool is_final(const Error& error) noexcept {
  return error.kind == ErrorKind::ModuleLoad || error.kind == ErrorKind::CompileFailed;
}

// A module that is wanted: nothing yet, there, or known to fail.
class Latch {
 public:
  // The module, made by `load` when this is the first call. Whoever holds the lock is the one
  // loader; the others who want this module wait for it here, and nobody else does.
  template <class Load>
  std::shared_ptr<const LoadedModule> get(Load&& load) {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (module_ == nullptr) {
      try {
        module_ = load();
      } catch (const Error& error) {
        if (is_final(error)) failure_ = std::current_exception();
        throw;
      }
    }
    return module_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const LoadedModule> module_;
  std::exception_ptr failure_;
};

}  // namespace

// A loaded module of a slot and its functions. Once published it stays where it is until the store
// goes.
struct ModuleStore::Ready {
  Ready(const ModuleSpec& spec, std::shared_ptr<const LoadedModule> loaded)
      : kernels(spec.kernels),
        module(std::move(loaded)),
        found(std::make_unique<std::atomic<const Function*>[]>(spec.kernels.size())),
        owned(spec.kernels.size()) {}

  std::span<const std::string_view> kernels;
  std::shared_ptr<const LoadedModule> module;
  std::unique_ptr<std::atomic<const Function*>[]> found;  // by kernel id; null until first wanted
  std::mutex mutex;                                       // guards `owned`
  std::vector<std::shared_ptr<const Function>> owned;     // by kernel id
};

struct ModuleStore::Slot {
  Latch latch;
  std::mutex mutex;  // guards the making of `owned`
  std::unique_ptr<Ready> owned;
  std::atomic<Ready*> ready{nullptr};
};

struct ModuleStore::Custom {
  struct Entry {
    Latch latch;
    std::mutex mutex;
    std::shared_ptr<const LoadedModule> module;                                     // once loaded
    std::map<std::string, std::shared_ptr<const Function>, std::less<>> functions;  // by kernel
  };

  mutable std::mutex mutex;  // held for a look into the map, never while compiling
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries;  // by digest of the text
};

ModuleStore::ModuleStore(Context& context)
    : context_(context), custom_(std::make_unique<Custom>()) {
  for (auto& slot : slots_) slot = std::make_unique<Slot>();
}

ModuleStore::~ModuleStore() = default;

const Function& ModuleStore::function(const ModuleSpec& module, std::uint32_t index) {
  if (module.slot < kSlots) [[likely]] {
    const Ready* ready = slots_[module.slot]->ready.load(std::memory_order_acquire);
    if (ready != nullptr && ready->kernels.data() == module.kernels.data() &&
        index < ready->kernels.size()) [[likely]] {
      const Function* function = ready->found[index].load(std::memory_order_acquire);
      if (function != nullptr) [[likely]]
        return *function;
    }
  }
  return *shared_function(module, index);  // the store keeps it too
}

std::shared_ptr<const Function> ModuleStore::shared_function(const ModuleSpec& module,
                                                             std::uint32_t index) {
  Ready& ready = ready_module(module);
  if (index >= module.kernels.size()) {
    throw Error(ErrorKind::BadArgument, kWhere, "module ", module.name, " has ",
                module.kernels.size(), " kernels, there is no number ", index);
  }
  const std::lock_guard lock(ready.mutex);
  std::shared_ptr<const Function>& owned = ready.owned[index];
  if (owned == nullptr) {
    owned = find_function(ready.module, module.kernels[index], true);
    ready.found[index].store(owned.get(), std::memory_order_release);
  }
  return owned;
}

ModuleStore::Ready& ModuleStore::ready_module(const ModuleSpec& module) {
  if (module.slot >= kSlots) {
    throw Error(ErrorKind::BadArgument, kWhere, "module ", module.name, " asks for slot ",
                module.slot, " of ", kSlots);
  }
  if (module.name.empty() || module.kernels.empty()) {
    throw Error(ErrorKind::BadArgument, kWhere, "module '", module.name, "' lists no kernels");
  }
  Slot& slot = *slots_[module.slot];
  if (slot.ready.load(std::memory_order_acquire) == nullptr) {
    auto loaded = slot.latch.get([&] { return load_module(context_, module.name); });
    const std::lock_guard lock(slot.mutex);
    if (slot.owned == nullptr) {
      slot.owned = std::make_unique<Ready>(module, std::move(loaded));
      slot.ready.store(slot.owned.get(), std::memory_order_release);
    }
  }
  Ready& ready = *slot.ready.load(std::memory_order_acquire);
  const bool same_list = ready.kernels.data() == module.kernels.data() ||
                         std::ranges::equal(ready.kernels, module.kernels);
  if (ready.module->info().name != module.name || !same_list) {
    throw Error(ErrorKind::BadArgument, kWhere, "slot ", module.slot, " holds module ",
                ready.module->info().name, " with ", ready.kernels.size(), " kernels, not ",
                module.name, " with ", module.kernels.size());
  }
  return ready;
}

std::shared_ptr<const Function> ModuleStore::compile(std::string_view source_name,
                                                     std::string_view source,
                                                     std::string_view kernel) {
  std::shared_ptr<Custom::Entry> entry;
  {
    const std::string digest = hex_digest(source);
    const std::lock_guard lock(custom_->mutex);
    std::shared_ptr<Custom::Entry>& place = custom_->entries[digest];
    if (place == nullptr) place = std::make_shared<Custom::Entry>();
    entry = place;
  }
  auto module = entry->latch.get([&] { return compile_module(context_, source_name, source); });

  const std::lock_guard lock(entry->mutex);
  entry->module = module;
  auto known = entry->functions.find(kernel);
  if (known == entry->functions.end()) {
    known = entry->functions.emplace(kernel, find_function(std::move(module), kernel, false)).first;
  }
  return known->second;
}

std::vector<LoadedModuleInfo> ModuleStore::loaded() const {
  std::vector<LoadedModuleInfo> out;
  for (const auto& slot : slots_) {
    const Ready* ready = slot->ready.load(std::memory_order_acquire);
    if (ready != nullptr) out.push_back(ready->module->info());
  }
  std::vector<std::shared_ptr<Custom::Entry>> entries;
  {
    const std::lock_guard lock(custom_->mutex);
    for (const auto& [digest, entry] : custom_->entries) entries.push_back(entry);
  }
  for (const auto& entry : entries) {
    const std::lock_guard lock(entry->mutex);
    if (entry->module != nullptr) out.push_back(entry->module->info());
  }
  std::ranges::sort(out, {}, &LoadedModuleInfo::name);
  return out;
}

std::vector<std::string_view> ModuleStore::used(const ModuleSpec& module) const {
  std::vector<std::string_view> out;
  if (module.slot >= kSlots) return out;
  const Ready* ready = slots_[module.slot]->ready.load(std::memory_order_acquire);
  if (ready == nullptr) return out;
  for (std::size_t i = 0; i < ready->kernels.size(); ++i) {
    if (ready->found[i].load(std::memory_order_acquire) != nullptr)
      out.push_back(ready->kernels[i]);
  }
  return out;
}

}  // namespace tl
