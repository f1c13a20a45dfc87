// A fuzzer for .npy headers and the zip archives that .npz files are.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tensor/npy_header.h"
#include "tensor/zip.h"
#include "tl/base/error.h"

namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

// What a damaged or foreign file may end in.
template <class F>
void try_to(F&& f) {
  try {
    f();
  } catch (const tl::Error& error) {
    require(error.kind == tl::ErrorKind::BadFile || error.kind == tl::ErrorKind::Unsupported ||
            error.kind == tl::ErrorKind::Overflow);
  }
}

void read_npy(std::span<const std::byte> bytes) {
  try_to([&] {
    const tl::files::NpyHeader header = tl::files::read_npy_header("input", bytes);
    require(header.data <= bytes.size());
    require(header.type.has_value() || header.bytes == 0);
  });
}

void read_npz(std::span<const std::byte> bytes) {
  try_to([&] {
    for (const auto& [name, member] : tl::files::read_zip_index("input", bytes)) {
      std::vector<std::byte> room;
      try_to([&] {
        const auto start = tl::files::read_zip_member_start("input", bytes, name, member,
                                                            tl::files::kMostNpyHeader, room);
        require(start.size() <= tl::files::kMostNpyHeader);
        read_npy(start);
      });
      try_to([&] {
        const auto whole = tl::files::read_zip_member("input", bytes, name, member, room);
        require(whole.size() == member.size);
      });
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read_npy(bytes);
  read_npz(bytes);
  return 0;
}
