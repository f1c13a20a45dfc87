// Makes a byte-level vocabulary of a text: which neighbours merge into tokens is learned from how
// often they stand together.
//
//   TokenizerTrainer trainer({.vocabulary = 2048});
//   trainer.add(text);
//   const TrainedTokenizer made = trainer.train();
//   GgufWriter writer;
//   made.add_to(writer);
//   writer.write("tokenizer.gguf");  // Tokenizer::from_gguf() reads it
//
// The text is cut into words by the expressions of a pre-tokenizer; every word is a row of bytes.
// Then the pair of neighbours with the highest count becomes a token, again and again, until there
// are as many as were asked for. Counts are kept up to date where words change and the highest is
// taken from a heap, so a merge costs what it changes. Of equal counts the pair with the lower ids
// goes first: the same text gives the same vocabulary everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/gguf_writer.h"

namespace tl {

struct TokenizerTrainOptions {
  std::size_t vocabulary = 4096;  // tokens in all: special ones, 256 bytes, merges
  // Cuts text into words (tokenizer.ggml.pre). This one keeps digits apart, which is kind to models
  // that must add numbers.
  std::string pre = "qwen2";
  // Control tokens, with the first ids. Where a text has them they are not counted. What begins
  // and ends a text and what ends a turn must be among them; empty for none.
  std::vector<std::string> special = {"<|end|>", "<|eot|>", "<|system|>", "<|user|>",
                                      "<|assistant|>"};
  std::string begin = "<|end|>";        // tokenizer.ggml.bos_token_id; encode() puts it first
  std::string end = "<|end|>";          // tokenizer.ggml.eos_token_id
  std::string end_of_turn = "<|eot|>";  // tokenizer.ggml.eot_token_id
  std::string chat_template;            // tokenizer.chat_template; empty for none
  std::uint64_t least_count = 2;        // of a pair that becomes a token
  // Called now and then with the tokens there are.
  std::function<void(std::size_t tokens)> progress = nullptr;

  // A chat as `<|user|>Hello<|eot|><|assistant|>Hi!<|eot|>`, for the special tokens above.
  static std::string_view role_template() noexcept;
};

struct TrainedTokenizer {
  std::vector<std::string> tokens;  // by id, as GGUF files have them: "Ġthe"
  std::vector<std::string> merges;  // "Ġ t"
  std::size_t special = 0;          // the first so many tokens are control tokens
  std::string pre;
  std::string begin, end, end_of_turn, chat_template;

  std::uint64_t text_bytes = 0;   // that were counted, without special tokens
  std::uint64_t text_tokens = 0;  // what they are in the new vocabulary

  // The keys tokenizer.* of a GGUF file.
  void add_to(GgufWriter& writer) const;
  // tokenizer.json and the tokenizer_config.json beside it, as Hugging Face's library reads them
  // and convert_tokenizer() does. They have no place for the token that ends a turn. Throws
  // Unsupported for a pre-tokenizer whose expressions there are not known.
  std::string json() const;
  std::string config_json() const;
};

class TokenizerTrainer {
 public:
  // Throws BadArgument for a vocabulary with no room for the bytes and the special tokens or for
  // special tokens that are empty, not UTF-8 or there twice, and Unsupported for a pre-tokenizer
  // that is not known or has no bytes.
  explicit TokenizerTrainer(TokenizerTrainOptions options);
  ~TokenizerTrainer();
  TokenizerTrainer(const TokenizerTrainer&) = delete;
  TokenizerTrainer& operator=(const TokenizerTrainer&) = delete;

  // Counts the words of a text; words do not go on from one text to the next. Bytes that are not
  // UTF-8 are words of their own.
  void add(std::string_view text);

  // Throws BadArgument when there is no text. There are fewer tokens than were asked for when no
  // pair is left that is frequent enough.
  TrainedTokenizer train() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tl
