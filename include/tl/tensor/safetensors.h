// safetensors files: named tensors in one file, or in several that together are one model.
//
//   8 bytes   length of the header, little-endian
//   header    JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//             "__metadata__": {"text": "text"}}, padded with spaces
//   data      the elements, row-major and little-endian; offsets count from here
//
// A reader maps its files and reads a tensor when it is asked for. Everything a header says is
// checked before it is used: lengths and ranges against the file, ranges against each other, sizes
// against dtype and shape. What does not hold throws BadFile with the file's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/tensor/tensor.h"

namespace tl {

using NamedTensors = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

class Safetensors {
 public:
  // What a file says of a tensor.
  struct Entry {
    std::string stored;  // the dtype as the file names it: "BF16"
    Shape shape;
    std::uint64_t begin = 0;  // bytes of the file
    std::uint64_t end = 0;
    std::size_t file = 0;  // which of the files
  };

  explicit Safetensors(std::string path);
  // Several files as one; of tensors with the same name the one in the later file counts.
  explicit Safetensors(const std::vector<std::string>& paths);
  // Bytes that are in memory already and stay there for as long as the reader is used. `label`
  // stands for the file's name in messages.
  static Safetensors from_memory(std::span<const std::byte> bytes, std::string label = "memory");

  Safetensors(Safetensors&&) noexcept;
  Safetensors& operator=(Safetensors&&) noexcept;
  ~Safetensors();

  std::vector<std::string> names() const;  // sorted
  bool has(std::string_view name) const;
  const Entry& entry(std::string_view name) const;  // throws BadArgument for an unknown name
  const Metadata& metadata() const noexcept;        // of all files; the later one counts

  // The dtype a tensor is loaded as. Those Tallow has not are widened: I8 to i16, U16 to u32 and
  // U64 to i64, where a value of 2^63 or more throws Overflow. The others (F8_E5M2, F4, C64 and so
  // on) throw Unsupported; the rest of the file can be read.
  DType dtype(std::string_view name) const;
  // Reads a tensor straight from the file to the device.
  Tensor load(std::string_view name, const Device& device = Device::cpu()) const;
  // The elements as the file has them, where they are mapped: for as long as the reader is there.
  std::span<const std::byte> bytes(std::string_view name) const;
  NamedTensors load_all(const Device& device = Device::cpu()) const;

 private:
  struct State;
  explicit Safetensors(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Writes a file under another name and renames it when it is complete, so that `path` is never half
// a file. Tensors with the widest elements come first, then by name; any device, any layout.
void write_safetensors(const std::string& path, const NamedTensors& tensors,
                       const Metadata& metadata = {});

}  // namespace tl
