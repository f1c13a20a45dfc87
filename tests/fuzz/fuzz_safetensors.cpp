// A fuzzer for the header of safetensors files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tensor/safetensors_header.h"
#include "tl/base/error.h"

namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tl::Metadata metadata;
    const auto entries =
        tl::files::read_safetensors_header("input", std::as_bytes(std::span(data, size)), metadata);
    std::uint64_t bytes = 0;
    for (const auto& [name, entry] : entries) {
      require(entry.begin <= entry.end && entry.end <= size);
      require(entry.shape.size() <= tl::Dims::kMax);
      bytes += entry.end - entry.begin;
    }
    require(bytes <= size);  // no two share a byte
  } catch (const tl::Error& error) {
    require(error.kind == tl::ErrorKind::BadFile);
  }
  return 0;
}
