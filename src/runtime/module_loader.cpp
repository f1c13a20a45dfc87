#include "runtime/module_loader.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/compile_cache.h"
#include "runtime/context.h"
#include "runtime/digest.h"
#include "runtime/driver/architecture.h"
#include "runtime/image_check.h"
#include "runtime/pack_registry.h"
#include "runtime/pool.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl {

namespace {

constexpr std::string_view kWhere = "module store";
constexpr std::string_view kProgramEnding = ".cu";  // module "fill" is the text "fill.cu"

struct Candidate {
  const RegisteredPack* registered = nullptr;
  const PackEntry* entry = nullptr;
  int suitability = 0;

  std::string text() const { return join(registered->pack.origin(), ", ", entry->architecture); }
};

// The images of a module that may run on a device, best first, and the architectures of all its
// images.
struct Candidates {
  std::vector<Candidate> list;
  std::vector<std::string> architectures;
};

Candidates find_candidates(std::string_view module, std::string_view device_architecture) {
  Candidates found;
  for (const RegisteredPack* registered : PackRegistry::global().packs()) {
    for (const PackEntry& entry : registered->pack.entries()) {
      if (entry.kind == PackKind::Source || entry.name != module) continue;
      if (std::ranges::find(found.architectures, entry.architecture) == found.architectures.end()) {
        found.architectures.push_back(entry.architecture);
      }
      const int suitability = driver::suitability(entry.architecture, device_architecture);
      if (suitability > 0) found.list.push_back({registered, &entry, suitability});
    }
  }
  std::ranges::stable_sort(found.list, std::ranges::greater{}, &Candidate::suitability);
  return found;
}

// Hands an image to the driver. Null when the driver refuses it, with the reason; throws when the
// failure is the device's and not the image's.
std::shared_ptr<const LoadedModule> try_image(Context& context, std::vector<std::byte> image,
                                              LoadedModuleInfo info, std::string* reason) {
  if (std::string problem = image_problem(image); !problem.empty()) {
    *reason = join("not a kernel image: ", problem);
    return nullptr;
  }
  info.image_bytes = image.size();
  image.push_back(std::byte{0});  // images that are text must end with a zero
  std::string log;
  driver::Handle native = nullptr;
  const auto load = [&] {
    const CurrentContext current(context);
    return context.table().load_module(&native, image.data(), &log);
  };
  driver::Status status = load();
  // Code takes room on the device as well; the pool gives back what it only keeps.
  if (status == driver::kOutOfMemory && context.pool().trim() > 0) status = load();
  if (status == driver::kOutOfMemory) {
    const MemoryInfo memory = context.memory_info();
    throw OutOfMemory(join("load module ", info.name), context.text(), info.image_bytes,
                      memory.free, memory.total, context.pool().statistics().pooled_bytes);
  }
  if (driver::means_lost(status)) context.check(status, join("load module ", info.name));
  if (status != driver::kSuccess) {
    *reason = join(context.table().error_text(status), log.empty() ? "" : ": ", log);
    return nullptr;
  }
  count(context.counters().module_loads);
  return std::make_shared<const LoadedModule>(context, native, std::move(info));
}

// One program for the run-time compiler on one device.
class Compilation {
 public:
  // `sources` are the texts of the packs; those that are not programs themselves can be included.
  Compilation(Context& context, const driver::CompilerTable& compiler, driver::Source program,
              std::span<const SourceText> sources)
      : context_(context), compiler_(compiler), program_(program) {
    for (const SourceText& source : sources) {
      if (!source.name.ends_with(kProgramEnding)) headers_.push_back({source.name, source.text});
    }
    std::ranges::sort(headers_, {}, &driver::Source::name);
  }

  // Null when the compiler or the driver refuses, with the reason (and the compiler's words in
  // `log`).
  std::shared_ptr<const LoadedModule> run(std::string_view module, std::string* reason,
                                          std::string* log) {
    const CompileCache cache = CompileCache::from_environment();
    const std::string key = cache_key();
    if (auto image = cache.find(key)) {
      auto loaded = load(module, std::move(*image), ModuleOrigin::Cache, reason);
      if (loaded != nullptr) return loaded;
      // What the driver took once it may refuse after an update that the key does not show. Compile
      // again.
    }
    std::vector<std::byte> image;
    if (!compiler_.compile(program_, headers_, architecture(), &image, log)) {
      *reason = join(compiler_.library, " refused ", program_.name);
      return nullptr;
    }
    auto loaded = load(module, image, ModuleOrigin::Compiled, reason);
    if (loaded != nullptr) cache.store(key, image);
    return loaded;
  }

 private:
  const std::string& architecture() const { return context_.properties().architecture; }

  std::shared_ptr<const LoadedModule> load(std::string_view module, std::vector<std::byte> image,
                                           ModuleOrigin origin, std::string* reason) {
    std::string words;
    auto loaded = try_image(context_, std::move(image),
                            {std::string(module), architecture(), origin, 0}, &words);
    if (loaded == nullptr)
      *reason = join("the driver refused what ", compiler_.library, " made: ", words);
    return loaded;
  }

  // Everything that the compiled bytes depend on. The texts stand in it by their digests.
  std::string cache_key() const {
    std::string key =
        join("kernel cache key 1\narchitecture ", architecture(), "\ncompiler ", compiler_.library,
             " ", compiler_.version, "\noptions ", compiler_.options(architecture()), "\ndriver ",
             context_.table().library, " ", context_.table().driver_version, "\nprogram ",
             hex_digest(program_.text), "\n");
    for (const driver::Source& header : headers_) {
      key += join("header ", header.name, " ", hex_digest(header.text), "\n");
    }
    return key;
  }

  Context& context_;
  const driver::CompilerTable& compiler_;
  driver::Source program_;
  std::vector<driver::Source> headers_;
};

void require_gpu(const Context& context) {
  if (context.location().is_cpu()) {
    throw Error(ErrorKind::Unsupported, kWhere, "kernel modules are for GPUs, not for the CPU");
  }
}

}  // namespace

LoadedModule::~LoadedModule() {
  const std::string where = join("unload module ", info_.name);
  try {
    const CurrentContext current(context_);
    const driver::Status status = context_.table().unload_module(native_);
    if (status == driver::kSuccess) {
      count(context_.counters().module_unloads);
    } else {
      context_.note_failure(status, where);
    }
  } catch (const DeviceFault& fault) {
    context_.note_failure(fault.code, where);
  }
}

std::shared_ptr<const LoadedModule> load_module(Context& context, std::string_view module) {
  require_gpu(context);
  context.require_alive(kWhere);
  const std::string& device = context.properties().architecture;
  const Candidates candidates = find_candidates(module, device);
  std::vector<std::string> tried;

  const bool force_compile = environment("TL_FORCE_RTC") == "1";
  if (force_compile) {
    tried.emplace_back("TL_FORCE_RTC is set, so no image was tried");
  } else if (candidates.list.empty()) {
    tried.emplace_back("no image fits");
  } else {
    for (const Candidate& candidate : candidates.list) {
      std::string reason;
      try {
        auto loaded = try_image(
            context, candidate.registered->pack.image(*candidate.entry),
            {std::string(module), candidate.entry->architecture,
             candidate.registered->embedded ? ModuleOrigin::Embedded : ModuleOrigin::Pack, 0},
            &reason);
        if (loaded != nullptr) return loaded;
      } catch (const Error& error) {
        if (error.kind != ErrorKind::BadFile) throw;
        reason = error.what();  // this image is damaged; the next may be sound
      }
      tried.push_back(join("image (", candidate.text(), "): ", reason));
    }
  }

  const std::vector<SourceText> sources = PackRegistry::global().sources();
  const std::string program_name = join(module, kProgramEnding);
  const auto program = std::ranges::find(sources, program_name, &SourceText::name);
  const auto& compiler = driver::find_compiler(context.location().kind);
  if (program == sources.end()) {
    tried.push_back(join("there is no source ", program_name, " to compile"));
  } else if (compiler.table == nullptr) {
    tried.push_back(join("cannot compile: ", compiler.reason));
  } else {
    std::string reason;
    std::string log;
    Compilation compilation(context, *compiler.table, {program->name, program->text}, sources);
    auto loaded = compilation.run(module, &reason, &log);
    if (loaded != nullptr) return loaded;
    tried.push_back(join(reason, log.empty() ? "" : ":\n", log));
  }
  throw ModuleLoad(std::string(module), context.text(), device, candidates.architectures,
                   join_list(tried, "; "));
}

std::shared_ptr<const LoadedModule> compile_module(Context& context, std::string_view source_name,
                                                   std::string_view source) {
  require_gpu(context);
  context.require_alive(kWhere);
  const std::string what = join("cannot compile ", source_name, " for ", context.text(), " (",
                                context.properties().architecture, ")");
  const auto& compiler = driver::find_compiler(context.location().kind);
  if (compiler.table == nullptr) throw CompileFailed(kWhere, join(what, ": ", compiler.reason), {});

  const std::vector<SourceText> sources = PackRegistry::global().sources();
  std::string reason;
  std::string log;
  Compilation compilation(context, *compiler.table, {source_name, source}, sources);
  auto loaded = compilation.run(source_name, &reason, &log);
  if (loaded == nullptr) throw CompileFailed(kWhere, join(what, ": ", reason), std::move(log));
  return loaded;
}

std::shared_ptr<const Function> find_function(std::shared_ptr<const LoadedModule> module,
                                              std::string_view kernel, bool from_pack) {
  Context& context = module->context();
  const driver::Table& table = context.table();
  const std::string kernel_name(kernel);
  driver::Handle native = nullptr;
  driver::Status status;
  bool awaits_earlier = false;
  {
    const CurrentContext current(context);
    status = table.get_function(&native, module->native(), kernel_name.c_str());
    if (status == driver::kSuccess && from_pack && table.launch_early != nullptr) {
      awaits_earlier = table.awaits_earlier(native);
    }
  }
  if (status == driver::kNotFound) {
    throw MissingKernel(module->info().name, kernel_name, context.text(),
                        context.properties().architecture);
  }
  context.check(status, join("find kernel ", kernel, " of module ", module->info().name));
  return std::make_shared<const Function>(std::move(module), native, kernel, awaits_earlier);
}

}  // namespace tl
