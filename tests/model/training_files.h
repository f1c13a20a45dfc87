// A vocabulary of bytes, the space and marks of a chat, and a short text, for tests of training.
#pragma once

#include <string>

#include "model/gguf_files.h"
#include "model/vocabularies.h"
#include "tl/model/train.h"

namespace tl::test {

inline VocabularyFile chat_vocabulary(const std::string& last = "<|eot|>") {
  VocabularyFile file("llama");
  file.tokens(with_bytes({{"<|user|>", 0, kControlKind},
                          {"<|assistant|>", 0, kControlKind},
                          {last, 0, kControlKind},
                          {"\u2581", 0}}));
  file.add("bos_token_id", std::uint32_t{1});
  file.add("eos_token_id", std::uint32_t{2});
  file.add("unknown_token_id", std::uint32_t{0});
  file.add("add_space_prefix", false);
  return file;
}
constexpr TokenId kUserMark = kFirst, kAssistantMark = kFirst + 1, kTurnEnd = kFirst + 2;

inline const std::string kShortText =
    "the cat sat on the mat and the dog sat on the log\n<|end|>\n"
    "a bird sang in the tree and the cat ran up the tree\n<|end|>\n"
    "the dog saw the bird and the bird saw the dog\n";

// Two layers of width 32 over the texts of a folder.
inline TrainConfig tiny_config(const Folder& folder) {
  chat_vocabulary().write(folder.file("tokenizer.gguf"));
  save(folder.file("train.txt"), kShortText);
  save(folder.file("held-out.txt"), "the cat saw the dog\n");
  TrainConfig config;
  config.train = {folder.file("train.txt")};
  config.held_out = {folder.file("held-out.txt")};
  config.tokenizer = folder.file("tokenizer.gguf");
  config.output = folder.file("tiny.gguf");
  config.output_type = "F32";
  config.sizes = {.vocabulary = 0,
                  .layers = 2,
                  .width = 32,
                  .heads = 4,
                  .kv_heads = 2,
                  .ffn = 64,
                  .context = 16,
                  .rope_base = 10000,
                  .norm_eps = 1e-5,
                  .tied_embeddings = true};
  config.batch = 3;
  config.steps = 150;
  config.rate = 1e-2;
  config.warmup = 5;
  config.weight_decay = 0.01;
  return config;
}

}  // namespace tl::test
