#include "runtime/pack_registry.h"

#include <algorithm>
#include <utility>

#include "tl/base/text.h"

namespace tl {

PackRegistry& PackRegistry::global() {
  // Never destroyed: devices, which may outlive any static object, keep pointers to packs.
  static PackRegistry& registry = *new PackRegistry(std::string(environment("TL_KERNEL_PACKS")));
  return registry;
}

void PackRegistry::add(std::span<const std::byte> bytes, std::string origin) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({bytes, std::move(origin)});
}

std::vector<const RegisteredPack*> PackRegistry::packs() {
  const std::lock_guard lock(mutex_);
  // A name is taken off the list only after its pack was read, so a bad one is met again by the
  // next caller.
  while (!files_.empty()) {
    const std::size_t end = std::min(files_.find(':'), files_.size());
    if (end > 0) from_files_.push_back({KernelPack::from_file(files_.substr(0, end)), false});
    files_.erase(0, end + 1);
  }
  while (!waiting_.empty()) {
    embedded_.push_back({KernelPack(waiting_.front().bytes, waiting_.front().origin), true});
    waiting_.erase(waiting_.begin());
  }
  std::vector<const RegisteredPack*> out;
  for (const RegisteredPack& pack : from_files_) out.push_back(&pack);
  for (const RegisteredPack& pack : embedded_) out.push_back(&pack);
  return out;
}

std::vector<SourceText> PackRegistry::sources() {
  std::vector<SourceText> out;
  for (const RegisteredPack* registered : packs()) {
    for (const PackEntry& entry : registered->pack.entries()) {
      if (entry.kind != PackKind::Source) continue;
      const bool known = std::any_of(out.begin(), out.end(),
                                     [&](const SourceText& s) { return s.name == entry.name; });
      if (!known) out.push_back({entry.name, registered->pack.text(entry)});
    }
  }
  return out;
}

void register_pack(std::span<const std::byte> bytes, std::string origin) {
  PackRegistry::global().add(bytes, std::move(origin));
}

}  // namespace tl
