#include "runtime/image_check.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tl/base/error.h"

namespace tl {

namespace {

template <class T>
T read_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

bool inside(std::uint64_t offset, std::uint64_t size, std::uint64_t total) {
  return offset <= total && size <= total - offset;
}

std::string elf_problem(std::span<const std::byte> image) {
  const std::uint64_t total = image.size();
  if (total < sizeof(Elf64_Ehdr)) return "the ELF header is cut off";
  const auto header = read_at<Elf64_Ehdr>(image, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return "not a 64-bit little-endian ELF file";
  }
  // At most 2^16 entries of at most 2^16 bytes: the products fit.
  if (header.e_shnum != 0 &&
      (header.e_shentsize < sizeof(Elf64_Shdr) ||
       !inside(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize, total))) {
    return "the ELF section table is outside the file";
  }
  if (header.e_phnum != 0 &&
      (header.e_phentsize < sizeof(Elf64_Phdr) ||
       !inside(header.e_phoff, std::uint64_t{header.e_phnum} * header.e_phentsize, total))) {
    return "the ELF program table is outside the file";
  }
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(image, header.e_shoff + i * header.e_shentsize);
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
        !inside(section.sh_offset, section.sh_size, total)) {
      return join("ELF section ", i, " is outside the file");
    }
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(image, header.e_phoff + i * header.e_phentsize);
    if (!inside(segment.p_offset, segment.p_filesz, total)) {
      return join("ELF segment ", i, " is outside the file");
    }
  }
  return {};
}

}  // namespace

std::string image_problem(std::span<const std::byte> image) {
  if (image.empty()) return "it is empty";
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  if (text.substr(0, SELFMAG) == std::string_view(ELFMAG, SELFMAG)) return elf_problem(image);
  // Compilers may or may not count the zero at the end of PTX.
  const std::string_view ptx = text.substr(0, text.find_last_not_of('\0') + 1);
  if (ptx.find('\0') == std::string_view::npos && ptx.find(".version") != std::string_view::npos &&
      ptx.find(".target") != std::string_view::npos) {
    return {};
  }
  return "neither an ELF file nor PTX";
}

}  // namespace tl
