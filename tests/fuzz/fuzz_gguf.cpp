// A fuzzer for the reader of GGUF files: any bytes end in a file or in a tl::Error, and what is
// read holds what the reader promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "model/gguf_cursor.h"
#include "tl/base/error.h"
#include "tl/model/gguf.h"

namespace {

// Types that do not fit throw; that is their right.
template <class F>
void try_to(F&& f) {
  try {
    f();
  } catch (const tl::Error&) {
  }
}

void require(bool claim) {
  if (!claim) std::abort();
}

void read_value(const tl::GgufValue& value) {
  value.text();
  try_to([&] { value.to<std::int8_t>(); });
  try_to([&] { value.to<std::uint64_t>(); });
  try_to([&] { value.to<float>(); });
  try_to([&] { value.to<bool>(); });
  try_to([&] { value.to<std::string_view>(); });
  try_to([&] { value.to_vector<std::int32_t>(); });
  try_to([&] { value.to_vector<double>(); });
  try_to([&] { value.to_vector<bool>(); });
  try_to([&] { value.to_vector<std::string_view>(); });
  if (!value.is_array()) return;
  const auto items = value.items();
  require(items.size() == value.count());
  for (const tl::GgufValue& item : items) {
    require(item.type() == value.element_type());
    if (item.is_array()) read_value(item);
  }
}

void read_file(const tl::GgufFile& file) {
  for (const tl::GgufEntry& entry : file.metadata()) {
    require(file.find_value(entry.key) == &entry.value);
    read_value(entry.value);
    const std::string encoded = tl::gguf::encode_value(entry.value);  // as the writer does
    tl::gguf::Cursor again("encoded", std::as_bytes(std::span(encoded)), true);
    require(tl::gguf::read_value(again, entry.key) == entry.value && again.left() == 0);
  }
  std::uint64_t bytes = 0, sum = 0;
  for (const tl::GgufTensorInfo& info : file.tensors()) {
    require(file.find(info.name) == &info);
    require(info.count() >= 0);
    try_to([&] {
      const auto data = file.bytes(info);
      require(data.size() == info.size_bytes());
      require(data.empty() || info.offset % file.alignment() == 0);
      bytes += data.size();
      for (const std::byte each : data) sum += std::to_integer<unsigned>(each);
    });
  }
  require(bytes == file.tensor_bytes() && bytes <= file.file_bytes());  // no two share a byte
  require(sum <= 255 * bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read_file(tl::GgufFile::from_memory(std::as_bytes(std::span(data, size)), "input"));
  } catch (const tl::Error& error) {
    require(error.kind == tl::ErrorKind::BadFile);
  }
  return 0;
}
