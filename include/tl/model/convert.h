// Makes a GGUF model of a checkpoint as Hugging Face's libraries save it: config.json, safetensors
// files and a tokenizer.
//
//   const ConvertResult result = convert_checkpoint({"my-model"}, "my-model.gguf");
//
// Names, keys and the changes to tensors are those that readers of GGUF expect (docs/convert.md):
// query and key rows of Llama are reordered for rotation of neighbours, norms of Gemma have their
// one added, rope scaling becomes tensors of factors. Weights are read where they are mapped and
// written a few rows at a time, so memory does not grow with the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tl/quant/format.h"

namespace tl {

struct ConvertOptions {
  // The name of a recipe (tl/model/quantize.h). Without it, or for "auto", BF16 where the first
  // matrix is that, else F16, as people who come from llama.cpp expect.
  std::optional<std::string> type = std::nullopt;
  // general.name. Without it config.json's, or the folder's.
  std::optional<std::string> name = std::nullopt;
  bool vocab_only = false;  // metadata and vocabulary, no tensors
  bool dry_run = false;     // everything but the file
  // The most in one part of the model, 0 for no limit.
  std::uint64_t max_part_tensors = 0;
  std::uint64_t max_part_bytes = 0;
  // Called before each tensor.
  std::function<void(std::size_t index, std::size_t count, std::string_view tensor, QType from,
                     QType to)>
      progress = nullptr;
};

struct ConvertResult {
  std::string architecture;        // as GGUF names it: "llama"
  std::string_view recipe;         // "BF16"
  std::vector<std::string> paths;  // what was written, or would have been
  std::size_t tensors = 0;         // written
  std::uint64_t parameters = 0;    // elements of them
  std::uint64_t bytes_before = 0;  // of their sources
  std::uint64_t bytes_after = 0;   // of them
  std::size_t tokens = 0;          // in the vocabulary
  std::vector<std::string> notes;  // what someone should know: kept out, guessed, not known
};

// The classes of models that config.json may name under "architectures".
std::vector<std::string> convertible_architectures();

// `from` is a folder, or safetensors files with config.json and the tokenizer's files beside the
// first of them; any of those may be named as well. `to` is a file, or a folder that gets one with
// the model's name; "{ftype}" in it stands for the recipe. Throws BadArgument, BadFile or
// Unsupported with the file and the key, token or tensor; no half file is left.
ConvertResult convert_checkpoint(const std::vector<std::string>& from, const std::string& to,
                                 const ConvertOptions& options = {});

// The vocabulary, the special tokens and the chat template of a tokenizer.json of Hugging Face's
// library as the bytes of a GGUF file without tensors: GgufFile::from_memory() reads it, and
// Tokenizer::from_gguf() and ChatTemplate::from_gguf() what is in it. The file may have any name;
// where it is tokenizer.json, tokenizer_config.json and the like beside it count too. Throws
// BadFile with the file and the key, Unsupported for a kind of vocabulary that is not known here.
std::string convert_tokenizer(const std::string& tokenizer_json,
                              std::vector<std::string>* notes = nullptr);

}  // namespace tl
