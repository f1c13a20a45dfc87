// The vocabulary of a checkpoint as GGUF holds it: tokens with their kinds, scores or merges, the
// tokens with a role, and the chat template.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/checkpoint.h"
#include "model/convert_config.h"
#include "model/sentencepiece.h"
#include "tl/model/gguf_writer.h"

namespace tl::saved {

struct Vocabulary {
  std::string model;  // "llama": pieces with scores; "gpt2": bytes and merges
  std::string pre;    // how text is cut into words before merging
  std::vector<std::string> tokens;
  std::vector<float> scores;  // of "llama"
  std::vector<TokenType> types;
  std::vector<std::string> merges;              // of "gpt2"
  std::optional<bool> add_space_prefix;         // before the text
  std::optional<SentencePieceModel> sentences;  // tokenizer.model, without its pieces
};

// A token that someone added to a vocabulary.
struct AddedToken {
  std::uint32_t id = 0;
  std::string text;
  bool is_special = false;
};

// The JSON files of a tokenizer, each read once.
struct TokenizerFiles {
  explicit TokenizerFiles(const Checkpoint& checkpoint);
  // tokenizer.json alone, whatever its name; where that is its name, the others beside it too.
  explicit TokenizerFiles(const std::string& tokenizer_json);

  struct File {
    std::string path;
    Json json;
    Fields fields() const { return {path, json}; }
  };
  std::optional<File> tokenizer;                  // tokenizer.json
  std::optional<File> config;                     // tokenizer_config.json
  std::optional<File> added;                      // added_tokens.json
  std::optional<File> special_map;                // special_tokens_map.json
  std::optional<std::string> model_path;          // tokenizer.model
  std::optional<std::string> template_path;       // chat_template.jinja
  std::optional<std::string> json_template_path;  // chat_template.json

  std::vector<AddedToken> added_in_tokenizer() const;
  std::vector<AddedToken> added_in_config() const;
  std::vector<AddedToken> added_in_list() const;
};

inline constexpr std::uint32_t kMostTokens = 1u << 24;

// Tokens that have no text get one, "[PAD7]", so that there are as many as the model has rows.
Vocabulary read_vocabulary(const TokenizerFiles& files, const ModelConfig& config,
                           std::vector<std::string>& notes);

// ---- the parts of it

// From tokenizer.model.
Vocabulary sentencepiece_vocabulary(const TokenizerFiles& files, const ModelConfig& config,
                                    std::vector<std::string>& notes);
// From tokenizer.json: one of bytes and merges, or a SentencePiece vocabulary that was turned into
// merges.
Vocabulary json_vocabulary(const TokenizerFiles& files, const ModelConfig& config,
                           std::vector<std::string>& notes);

// The name that GGUF has for the way tokenizer.json cuts text into words: found by its regular
// expressions. "default", and a note, when they are not known.
std::string pre_tokenizer_name(const Fields& tokenizer, std::vector<std::string>& notes);
// The way back: the steps of a name, expressions or one of the two below. Throws Unsupported with
// the names whose steps are known.
std::vector<std::string> pre_tokenizer_steps(std::string_view name);
inline constexpr std::string_view kGpt2Step = "gpt-2";     // the expression that bytes come with
inline constexpr std::string_view kDigitsStep = "digits";  // each digit alone

// Keys and values: ids of tokens with a role, whether some are added to texts, chat templates.
std::vector<std::pair<std::string, GgufValue>> special_token_metadata(
    const TokenizerFiles& files, const ModelConfig& config, const Vocabulary& vocabulary,
    std::vector<std::string>& notes);

// The tokens themselves: texts, kinds, scores, merges.
void add_tokens(const Vocabulary& vocabulary, GgufWriter& writer);

// Some files mark tokens as ordinary that stand for no text.
bool looks_special(std::string_view text);
// Spaces in added tokens as texts have them; pieces have U+2581.
std::string with_spaces(std::string_view text);

}  // namespace tl::saved
