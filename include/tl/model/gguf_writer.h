// Writes GGUF files, version 3: what tl/model/gguf.h reads.
//
//   GgufWriter writer;
//   writer.add("general.architecture", "llama");
//   writer.add("llama.block_count", std::uint32_t{2});
//   writer.add_tensor("output.weight", {512, 256}, QType::F32, bytes);
//   writer.write("model.gguf");
//
// Tensors are only described first; their bytes are asked for while the file is written, one tensor
// after another, so a model larger than memory can be written. A file appears under its name when
// it is complete; of a model in parts none does before all are written, and the first one is the
// last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/gguf_value.h"
#include "tl/quant/format.h"
#include "tl/tensor/dims.h"

namespace tl {

class GgufWriter {
 public:
  // Takes the next bytes of a tensor, in pieces of any size.
  using Sink = std::function<void(std::span<const std::byte>)>;
  // Hands over all bytes of one tensor. Called once for each write().
  using Source = std::function<void(const Sink&)>;

  struct Options {
    // Of the data: a power of two from 8. Without it the key general.alignment counts, and without
    // that 32. The key is written where the alignment is not 32.
    std::optional<std::uint32_t> alignment;
    // The most in one part, 0 for no limit. A tensor that is larger has a part of its own.
    std::uint64_t max_part_tensors = 0;
    std::uint64_t max_part_bytes = 0;  // of tensor data
  };

  GgufWriter() = default;
  explicit GgufWriter(const Options& options);

  // These throw BadArgument for a name that is there already or is not UTF-8, for the keys of parts
  // (split.*), which are the writer's, and for shapes the type has no blocks for.
  void add(std::string_view key, const GgufValue& value);
  // Row-major elements or blocks, which stay where they are until the file is written. At most four
  // dimensions: more than other readers take.
  void add_tensor(std::string_view name, const Shape& shape, QType type,
                  std::span<const std::byte> bytes);
  void add_tensor(std::string_view name, const Shape& shape, QType type, Source source);

  // Returns the paths written: `path` itself, or when a limit asks for parts
  // NAME-00001-of-00003.gguf and so on beside it, for a path NAME.gguf. Throws SizeMismatch when a
  // source gives more or fewer bytes than its tensor has, and BadFile when the file cannot be
  // written; no half file is left then.
  std::vector<std::string> write(const std::string& path) const;
  // The bytes of a file of the keys alone, without tensors: GgufFile::from_memory() reads it.
  std::string metadata_file() const;

 private:
  struct Entry {
    std::string key;
    std::string value;  // encoded, with its type
  };
  struct Item {
    std::string name;
    Shape shape;
    QType type;
    std::uint64_t bytes;
    Source source;
  };
  struct Piece;  // the tensors of one part

  std::uint64_t alignment() const noexcept;
  std::vector<Piece> plan() const;
  std::string header(const Piece& piece, std::size_t number, std::size_t parts) const;

  Options options_;
  std::optional<std::uint64_t> alignment_key_;  // as general.alignment was given
  std::vector<Entry> entries_;
  std::vector<Item> items_;
  std::set<std::string, std::less<>> keys_, names_;  // of entries_ and of items_
};

}  // namespace tl
