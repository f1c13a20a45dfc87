// The files of a checkpoint as Hugging Face's libraries save it.
//
//   config.json                    what kind of model, and its sizes
//   model.safetensors              the weights, or
//   model.safetensors.index.json   which of the files model-00001-of-00003.safetensors has which
//   tokenizer.model                a SentencePiece vocabulary, and/or
//   tokenizer.json                 a vocabulary of the tokenizers library
//   tokenizer_config.json, special_tokens_map.json, added_tokens.json, generation_config.json,
//   chat_template.jinja            what goes with them; any may be missing
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json_fields.h"
#include "tl/quant/format.h"
#include "tl/tensor/safetensors.h"

namespace tl::saved {

class Checkpoint {
 public:
  // A folder, or files. `needs_weights`: there must be some.
  Checkpoint(const std::vector<std::string>& from, bool needs_weights);

  const std::string& folder() const noexcept { return folder_; }
  std::string folder_name() const;                               // "my-model", also for "."
  std::optional<std::string> file(std::string_view name) const;  // its path, when it is there
  std::optional<Json> json(std::string_view name) const;         // of such a file
  const std::vector<std::string>& weight_files() const noexcept { return weights_; }

  std::vector<std::string> files() const;  // all that are read, with their paths

  // ---- tensors of all weight files, by name
  struct Weight {
    Shape shape;
    QType type;  // F32, F16 or BF16
    std::span<const std::byte> bytes;
  };
  std::vector<std::string> names() const;  // sorted
  bool has(std::string_view name) const { return tensors_.contains(name); }
  const std::string& file_of(std::string_view name) const;
  const Shape& shape(std::string_view name) const;
  Weight weight(std::string_view name) const;  // throws Unsupported for other types

 private:
  void take_folder(const std::string& path);
  void take_file(const std::string& path);
  void read_index(const std::string& path);
  void open_weights();
  void check_index() const;

  std::string folder_;
  std::map<std::string, std::string, std::less<>> named_;  // files that were named one by one
  std::vector<std::string> weights_;
  std::string index_path_;
  std::map<std::string, std::string> index_;  // tensor to file name
  std::vector<Safetensors> parts_;
  std::map<std::string, std::size_t, std::less<>> tensors_;  // name to the place in parts_
};

}  // namespace tl::saved
