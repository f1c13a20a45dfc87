// Reading just enough ELF to know how long an image is and whether it can be opened.
#include "module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include "grid.h"
#include "memory.h"
#include "sanitizer.h"

namespace simgpu {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_NONE;
#endif

// Images come from byte arrays of any alignment.
template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The driver API passes no size: it has to come from the headers. The section table is last in the
// files that linkers write, but neither its place nor its presence is promised, so everything that
// has an extent counts.
std::size_t image_bytes(const std::byte* image, const Elf64_Ehdr& header) {
  std::size_t end = sizeof(Elf64_Ehdr);
  end = std::max(end, header.e_phoff + std::size_t{header.e_phnum} * sizeof(Elf64_Phdr));
  end = std::max(end, header.e_shoff + std::size_t{header.e_shnum} * sizeof(Elf64_Shdr));
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(image + header.e_phoff + i * sizeof(Elf64_Phdr));
    end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(image + header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end;
}

Status check_header(const std::byte* image) {
  const auto ident = read<std::array<unsigned char, EI_NIDENT>>(image);
  if (std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0) return Status::InvalidImage;
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB) return Status::InvalidImage;
  const auto header = read<Elf64_Ehdr>(image);
  if (header.e_machine != kMachine) return Status::NoBinaryForGpu;
  if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Status::InvalidImage;
  }
  if (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) return Status::InvalidImage;
  return Status::Ok;
}

// Unique symbols are merged by name across everything loaded in the process, whatever dlopen was
// told: two modules would share their shared memory. GCC makes them of statics in templates and
// inline functions.
const char* unique_symbol(const std::byte* image, const Elf64_Ehdr& header) {
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto symbols = read<Elf64_Shdr>(image + header.e_shoff + i * sizeof(Elf64_Shdr));
    if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= header.e_shnum) continue;
    const auto names =
        read<Elf64_Shdr>(image + header.e_shoff + symbols.sh_link * sizeof(Elf64_Shdr));
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(image + symbols.sh_offset + at);
      const bool unique = ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE;
      if (unique && symbol.st_shndx != SHN_UNDEF) {
        return reinterpret_cast<const char*>(image + names.sh_offset + symbol.st_name);
      }
    }
  }
  return nullptr;
}

bool write_all(int file, const std::byte* from, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t written = write(file, from, bytes);
    if (written <= 0) return false;
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

// AddressSanitizer keeps the descriptions of a library's globals for its reports, where they lie,
// even after the library is gone: unloading would turn the next report into a crash.
#ifdef SIMGPU_ASAN
constexpr int kKeepMapped = RTLD_NODELETE;
#else
constexpr int kKeepMapped = 0;
#endif

// A path for the open file that no other mapped library has. The loader knows libraries by path: a
// descriptor number that comes back while an old library is still mapped would give that one. So
// the path spells the file's inode, which lives as long as the mapping, with "/" for a zero and
// "./" for a one; the file system does not mind.
std::string path_of(int file) {
  struct stat status = {};
  fstat(file, &status);
  std::string path = "/proc/self/";
  for (auto inode = status.st_ino; inode != 0; inode /= 2) path += inode % 2 == 0 ? "/" : "./";
  return path + "fd/" + std::to_string(file);
}

Status refuse(Status status, const char* why, const char* detail = "") {
  std::fprintf(stderr, "simgpu: module refused: %s%s\n", why, detail);
  return status;
}

}  // namespace

Status Module::load(const void* data, unsigned warp, std::shared_ptr<Module>& out) {
  if (data == nullptr) return Status::InvalidValue;
  const auto* image = static_cast<const std::byte*>(data);
  if (const Status status = check_header(image); status != Status::Ok) {
    return refuse(status, "not an ELF shared object of this machine");
  }
  const auto header = read<Elf64_Ehdr>(image);
  if (const char* name = unique_symbol(image, header)) {
    return refuse(Status::InvalidImage, "compile it with -fno-gnu-unique; unique symbol ", name);
  }

  std::shared_ptr<Module> module(new Module);
  module->file_ = memfd_create("simgpu_module", MFD_CLOEXEC);
  if (module->file_ < 0 || !write_all(module->file_, image, image_bytes(image, header))) {
    return Status::OutOfMemory;
  }
  module->library_ = dlopen(path_of(module->file_).c_str(), RTLD_NOW | RTLD_LOCAL | kKeepMapped);
  if (module->library_ == nullptr) return refuse(Status::InvalidImage, dlerror());

  const auto bind = symbol<void (*)(const gpu_host::Api*)>(module->library_, "gpu_host_bind");
  const auto* width = symbol<const unsigned*>(module->library_, "gpu_host_warp");
  if (bind == nullptr || width == nullptr) {
    return refuse(Status::InvalidImage, "it has no gpu_host_bind or no gpu_host_warp");
  }
  if (*width != warp) return refuse(Status::NoBinaryForGpu, "compiled for another warp width");
  bind(kernel_api(warp));
  module->find_static_shared();
  out = std::move(module);
  return Status::Ok;
}

Module::~Module() {
  if (library_ != nullptr) dlclose(library_);
  if (file_ >= 0) close(file_);
}

const gpu_host::Entry* Module::entry(const std::string& kernel) const {
  return symbol<const gpu_host::Entry*>(library_, ("gpu_host_entry_" + kernel).c_str());
}

bool Module::variable(const char* name, void*& address, std::size_t& bytes) const {
  address = dlsym(library_, name);
  Dl_info info;
  void* found = nullptr;
  if (address == nullptr || dladdr1(address, &info, &found, RTLD_DL_SYMENT) == 0 ||
      found == nullptr) {
    return false;
  }
  const auto* entry = static_cast<const ElfW(Sym)*>(found);
  if (ELF64_ST_TYPE(entry->st_info) != STT_OBJECT) return false;
  bytes = entry->st_size;
  return true;
}

#ifdef __GLIBC__

// What compiled code calls to reach thread-local data of a library; allocates it for the calling
// thread.
extern "C" void* __tls_get_addr(std::size_t (*index)[2]);

void Module::find_static_shared() {
  link_map* map = nullptr;
  std::size_t number = 0;
  if (dlinfo(library_, RTLD_DI_LINKMAP, &map) != 0) return;
  if (dlinfo(library_, RTLD_DI_TLS_MODID, &number) != 0 || number == 0) return;
  const auto* base = reinterpret_cast<const std::byte*>(map->l_addr);
  const auto header = read<Elf64_Ehdr>(base);  // the first segment of a library maps its headers
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(base + header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_TLS) continue;
    tls_module_ = number;
    tls_offset_ = segment.p_filesz;  // data with an initial value comes first and is left alone
    tls_bytes_ = segment.p_memsz - segment.p_filesz;
  }
}

void Module::poison_static_shared() const {
  if (tls_bytes_ == 0) return;
  std::size_t index[2] = {tls_module_, tls_offset_};
  std::memset(__tls_get_addr(&index), kPoison, tls_bytes_);
}

#else

void Module::find_static_shared() {}
void Module::poison_static_shared() const {}

#endif

}  // namespace simgpu
