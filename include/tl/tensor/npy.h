// NumPy's files: .npy with one array, .npz with several (a zip of .npy).
//
// Dtypes are those of safetensors.h: i1 is loaded as i16, u2 as u32, u8 as i64. Arrays in Fortran
// order are loaded as a transposed view, big-endian ones are swapped. Structured, complex, text and
// object arrays throw Unsupported; a damaged file throws BadFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/tensor/safetensors.h"  // NamedTensors
#include "tl/tensor/tensor.h"

namespace tl {

// What a header says of its array.
struct NpyInfo {
  std::string stored;  // the type as NumPy names it: "<f4"
  Shape shape;
  bool fortran = false;                // stored with the first dimension innermost
  std::optional<std::uint64_t> bytes;  // of the elements; nothing where no dtype holds them
  std::uint64_t offset = 0;            // of the elements, in the file or in its member of the zip
};

// Reads the header alone.
NpyInfo npy_info(const std::string& path);
Tensor read_npy(const std::string& path, const Device& device = Device::cpu());
// The same from bytes in memory; `label` stands for the file's name in messages.
Tensor parse_npy(std::span<const std::byte> bytes, const Device& device = Device::cpu(),
                 std::string_view label = "memory");
// Version 1.0, row-major. There is no bf16 and no f8 in NumPy: these throw Unsupported.
void write_npy(const std::string& path, const Tensor& tensor);

class Npz {
 public:
  explicit Npz(std::string path);
  // The bytes stay where they are for as long as the reader is used.
  static Npz from_memory(std::span<const std::byte> bytes, std::string label = "memory");

  Npz(Npz&&) noexcept;
  Npz& operator=(Npz&&) noexcept;
  ~Npz();

  std::vector<std::string> names() const;  // sorted, without ".npy"
  bool has(std::string_view name) const;
  NpyInfo info(std::string_view name) const;  // unpacks no more than the header
  // Stored and deflated members alike; the checksum is compared.
  Tensor load(std::string_view name, const Device& device = Device::cpu()) const;
  NamedTensors load_all(const Device& device = Device::cpu()) const;

 private:
  struct State;
  explicit Npz(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Members are stored, not compressed. The file appears when it is complete.
void write_npz(const std::string& path, const NamedTensors& tensors);

}  // namespace tl
