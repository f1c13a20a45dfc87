// GGUF files: a model's tensors, plain or in blocks, with typed metadata. Read here, written by
// tl/model/gguf_writer.h.
//
//   magic       "GGUF"
//   version     u32: 1, 2 or 3, little-endian
//   counts      of tensors, of keys: u64 (u32 in version 1, like every length in it)
//   keys        each: text key, u32 type, value
//   tensors     each: text name, u32 rank, the sizes innermost first, u32 type, u64 offset
//   padding     to a multiple of general.alignment, 32 when there is no such key
//   data        offsets count from here and are multiples of the alignment
//
// Files are mapped: opening reads the header alone, and tensors are shown where they lie.
// Everything a header says is checked before it is used or allocated for; what does not hold throws
// BadFile with the file, the byte and the field. Keys and names must be UTF-8. Texts among the
// values are kept as the bytes they are.
//
// A model split into NAME-00001-of-00003.gguf and so on is opened by any of its parts and is then
// one list of tensors with the first part's metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tl/model/gguf_value.h"
#include "tl/quant/format.h"
#include "tl/tensor/dims.h"

namespace tl {

struct GgufTensorInfo {
  std::string name;
  Shape shape;                         // outermost first: the file's sizes in reverse
  std::uint32_t code = 0;              // the type as the file gives it
  std::optional<QType> type;           // nothing when the code is retired or not known here
  std::size_t part = 0;                // which of the files
  std::uint64_t offset = 0;            // of the data, from the start of that file
  std::optional<std::uint64_t> bytes;  // of the data; nothing when the type is not known

  std::int64_t count() const;  // elements
  // These throw Unsupported with the name and the code when the type is not known.
  QType known_type() const;
  std::uint64_t size_bytes() const;
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
  std::uint64_t offset = 0;  // of the key, from the start of the first file
};

// A handle: copies share the mapped files.
class GgufFile {
 public:
  static GgufFile open(const std::string& path);
  // Bytes that are in memory already and stay there for as long as the file is used. `label` stands
  // for the file's name in messages. A part of a split model is refused: there are no other parts.
  static GgufFile from_memory(std::span<const std::byte> bytes, std::string label = "memory");

  std::uint32_t version() const noexcept;      // of the first part
  std::uint64_t alignment() const noexcept;    // of the first part
  std::span<const std::string> parts() const;  // paths

  // ---- metadata, in the order of the file
  std::span<const GgufEntry> metadata() const noexcept;
  const GgufValue* find_value(std::string_view key) const;  // nullptr when there is none
  const GgufValue& value(std::string_view key) const;       // throws BadFile when there is none
  template <class T>
  T get(std::string_view key) const {
    return value(key).to<T>();
  }
  // Nothing, or what is given instead, when the key is not there; a value of another type throws.
  template <class T>
  std::optional<T> get_if(std::string_view key) const {
    const GgufValue* found = find_value(key);
    return found == nullptr ? std::nullopt : std::optional<T>(found->to<T>());
  }
  template <class T>
  T get_or(std::string_view key, T otherwise) const {
    return get_if<T>(key).value_or(std::move(otherwise));
  }
  std::string_view architecture() const;  // general.architecture

  // ---- tensors, in the order of the files
  std::span<const GgufTensorInfo> tensors() const noexcept;
  const GgufTensorInfo* find(std::string_view name) const;    // nullptr when there is none
  const GgufTensorInfo& tensor(std::string_view name) const;  // throws BadFile when there is none
  // The data where it is mapped. Throws Unsupported when the type is not known, BadArgument for a
  // tensor of another file.
  std::span<const std::byte> bytes(const GgufTensorInfo& tensor) const;
  // Copies bytes of a tensor without touching the map: a file that was cut short since it was
  // opened throws BadFile. From any thread.
  void read(const GgufTensorInfo& tensor, std::uint64_t offset, std::span<std::byte> to) const;
  // Tells the system that a tensor's bytes are wanted soon.
  void prefetch(const GgufTensorInfo& tensor) const;
  bool is_mapped() const noexcept;  // not so for from_memory()

  // ---- totals over all parts
  std::uint64_t parameters() const noexcept;    // elements
  std::uint64_t tensor_bytes() const noexcept;  // of tensors whose type is known
  std::uint64_t file_bytes() const noexcept;

 private:
  struct State;
  explicit GgufFile(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tl
