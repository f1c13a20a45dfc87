// Modules, functions and launches.
#include <cstring>

#include "simulator.h"

namespace simgpu {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr Dim3 kMaxBlock{1024, 1024, 64};

// Numbers shared by CUfunction_attribute and hipFunction_attribute.
constexpr int kAttributeMaxThreads = 0;
constexpr int kAttributeRegisters = 4;
constexpr int kAttributePtxVersion = 5;
constexpr int kAttributeMaxDynamicShared = 8;
constexpr int kAttributes = 10;

constexpr std::uintptr_t kExtraPointer = 1;
constexpr std::uintptr_t kExtraSize = 2;

}  // namespace

Status Simulator::load_module(int device, const void* image, Handle* out) {
  const Lock lock(mutex_);
  if (out == nullptr || image == nullptr) return misuse(Status::InvalidValue);
  if (fails(Fault::ModuleLoad)) return Status::InvalidImage;
  std::shared_ptr<Module> code;
  const Status status = Module::load(image, settings_.warp, code);
  if (status != Status::Ok) return status;
  *out = new_handle();
  modules_[*out] = {device, std::move(code), {}, {}};
  ++counters_.module_loads;
  return Status::Ok;
}

Status Simulator::unload_module(int device, Handle module) {
  Lock lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end() || found->second.device != device) {
    return misuse(Status::InvalidHandle);
  }
  LoadedModule loaded = std::move(found->second);
  modules_.erase(found);
  for (const auto& [name, function] : loaded.functions) functions_.at(function).code = nullptr;
  scheduler_.finish_all(lock, *devices_[device]);
  for (const BlockRef& variable : loaded.variables) {
    memory_.release(variable, counters_.guard_hits);
  }
  ++counters_.module_unloads;
  return Status::Ok;
}

Status Simulator::get_function(int device, Handle module, const char* name, Handle* out) {
  const Lock lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end() || found->second.device != device) {
    return misuse(Status::InvalidHandle);
  }
  if (name == nullptr || out == nullptr) return misuse(Status::InvalidValue);
  LoadedModule& loaded = found->second;
  const gpu_host::Entry* entry = loaded.code->entry(name);
  if (entry == nullptr) return Status::NotFound;
  Handle& function = loaded.functions[name];
  if (function == 0) {
    function = new_handle();
    // Of sm_932 and sm_964.
    const int own = settings_.warp == 64 ? 964 : 932;
    functions_[function] = {device,
                            loaded.code,
                            entry,
                            name,
                            kFlavour.default_dynamic_shared,
                            compiled_for_ != 0 ? compiled_for_ : own};
  }
  *out = function;
  ++counters_.functions;
  return Status::Ok;
}

Status Simulator::get_variable(int device, Handle module, const char* name, void** address,
                               std::size_t* bytes) {
  const Lock lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end() || found->second.device != device) {
    return misuse(Status::InvalidHandle);
  }
  if (name == nullptr) return misuse(Status::InvalidValue);
  void* at = nullptr;
  std::size_t size = 0;
  if (!found->second.code->variable(name, at, size)) return Status::NotFound;
  if (!memory_.find(at, size)) {
    found->second.variables.push_back(memory_.adopt(device, at, size));
  }
  if (address != nullptr) *address = at;
  if (bytes != nullptr) *bytes = size;
  return Status::Ok;
}

Status Simulator::function_attribute(Handle function, int attribute, int* value) {
  const Lock lock(mutex_);
  const auto found = functions_.find(function);
  if (found == functions_.end() || !found->second.code) return misuse(Status::InvalidHandle);
  if (value == nullptr || attribute < 0 || attribute >= kAttributes) {
    return misuse(Status::InvalidValue);
  }
  switch (attribute) {
    case kAttributeMaxThreads:
      *value = kMaxThreads;
      break;
    case kAttributeRegisters:
      *value = 32;
      break;
    case kAttributePtxVersion:
      *value = found->second.compiled_for;
      break;
    case kAttributeMaxDynamicShared:
      *value = static_cast<int>(found->second.max_dynamic_shared);
      break;
    default:
      *value = 0;
  }
  return Status::Ok;
}

Status Simulator::set_function_attribute(Handle function, int attribute, int value) {
  const Lock lock(mutex_);
  const auto found = functions_.find(function);
  if (found == functions_.end() || !found->second.code) return misuse(Status::InvalidHandle);
  if (attribute != kAttributeMaxDynamicShared) return Status::Ok;  // a hint
  if (value < 0 || static_cast<unsigned>(value) > kFlavour.max_dynamic_shared) {
    return misuse(Status::InvalidValue);
  }
  found->second.max_dynamic_shared = static_cast<unsigned>(value);
  return Status::Ok;
}

Status Simulator::check_shape(const LaunchCall& call, const Function& function) const {
  const unsigned grid[] = {call.grid.x, call.grid.y, call.grid.z};
  const unsigned block[] = {call.block.x, call.block.y, call.block.z};
  const unsigned max_grid[] = {kFlavour.max_grid.x, kFlavour.max_grid.y, kFlavour.max_grid.z};
  const unsigned max_block[] = {kMaxBlock.x, kMaxBlock.y, kMaxBlock.z};
  unsigned long long threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0 || grid[i] > max_grid[i]) return Status::InvalidValue;
    if (block[i] > max_block[i]) return kFlavour.too_many_threads;
    if (kFlavour.limit_threads_per_grid && 1ull * grid[i] * block[i] > 0xFFFF'FFFFull) {
      return Status::InvalidValue;
    }
    threads *= block[i];
  }
  if (threads > kMaxThreads) return kFlavour.too_many_threads;
  if (call.shared_bytes > function.max_dynamic_shared) return Status::InvalidValue;
  return Status::Ok;
}

// Copies the argument values while the call runs: afterwards the caller's arrays are its own again.
Status Simulator::pack_arguments(const LaunchCall& call, Launch& launch) {
  const gpu_host::Entry& entry = *launch.entry;
  launch.arguments.resize((entry.packed_bytes + sizeof(Launch::Chunk) - 1) / sizeof(Launch::Chunk));
  if (call.parameters != nullptr || entry.parameter_count == 0) {
    if (call.parameters != nullptr && call.extra != nullptr) return Status::InvalidValue;
    entry.pack(call.parameters, launch.arguments.data());
    return Status::Ok;
  }
  // The `extra` form: one buffer that holds the arguments as the members of a C struct.
  std::byte* buffer = nullptr;
  std::size_t bytes = 0;
  for (void** at = call.extra; at != nullptr; at += 2) {
    const auto key = reinterpret_cast<std::uintptr_t>(at[0]);
    if (key == kFlavour.extra_end) break;
    if (key == kExtraPointer) {
      buffer = static_cast<std::byte*>(at[1]);
    } else if (key == kExtraSize) {
      bytes = *static_cast<const std::size_t*>(at[1]);
    } else {
      return Status::InvalidValue;
    }
  }
  if (buffer == nullptr || bytes < entry.parameter_offsets[entry.parameter_count]) {
    return Status::InvalidValue;
  }
  std::vector<void*> parameters(entry.parameter_count);
  // The values are read with their own alignment, which the caller's buffer need not have.
  std::vector<Launch::Chunk> aligned((bytes + sizeof(Launch::Chunk) - 1) / sizeof(Launch::Chunk));
  std::memcpy(aligned.data(), buffer, bytes);
  for (unsigned i = 0; i < entry.parameter_count; ++i) {
    parameters[i] = aligned.front().bytes + entry.parameter_offsets[i];
  }
  entry.pack(parameters.data(), launch.arguments.data());
  return Status::Ok;
}

Status Simulator::launch(int device, const LaunchCall& call) {
  const Lock lock(mutex_);
  const StreamRef queue = stream_of(device, call.stream);
  const auto found = functions_.find(call.function);
  if (!queue || found == functions_.end() || !found->second.code ||
      found->second.device != device) {
    return misuse(Status::InvalidHandle);
  }
  const Function& function = found->second;
  if (const Status status = check_shape(call, function); status != Status::Ok) {
    return misuse(status);
  }
  // A real driver takes it, and the kernel reads what is not there yet.
  if (call.early && function.compiled_for < 90) return misuse(Status::InvalidValue);
  auto launch = std::make_shared<Launch>();
  launch->module = function.code;
  launch->entry = function.entry;
  launch->name = function.name;
  launch->grid = call.grid;
  launch->block = call.block;
  launch->shared_bytes = call.shared_bytes;
  launch->warp = settings_.warp;
  launch->reverse = settings_.reverse;
  if (const Status status = pack_arguments(call, *launch); status != Status::Ok) {
    return misuse(status);
  }
  if (fails(Fault::Launch)) return Status::LaunchFailed;
  Item item;
  item.do_work([launch] { return Grid::of_this_thread().run(*launch); });
  scheduler_.submit(queue, std::move(item));
  ++counters_.launches;
  if (call.early) ++counters_.early_launches;
  return Status::Ok;
}

}  // namespace simgpu
