// Vocabularies from tokenizer.model.
#include <algorithm>

#include "model/convert_vocab.h"
#include "tl/base/error.h"
#include "tl/base/mapped_file.h"

namespace tl::saved {

namespace {

constexpr float kAddedScore = -1000, kPaddingScore = -10000;

// The tokens of a model, and how many of those that are added were in someone's place.
class Pieces {
 public:
  Pieces(Vocabulary& vocabulary, std::size_t count, std::vector<std::string>& notes)
      : out_(vocabulary), notes_(notes) {
    for (std::size_t i = 0; i < count; ++i) out_.tokens.push_back(join("[PAD", i, "]"));
    out_.scores.assign(count, kPaddingScore);
    out_.types.assign(count, TokenType::Unused);
  }

  void set(std::size_t id, std::string text, float score, TokenType type) {
    out_.tokens[id] = std::move(text);
    out_.scores[id] = score;
    out_.types[id] = type;
  }

  void add(const std::string& file, const AddedToken& token, bool guess) {
    if (token.id >= out_.tokens.size()) {
      notes_.push_back(join(file, ": token ", token.id, " '", token.text,
                            "' is left out: the model has ", out_.tokens.size(), " tokens"));
      return;
    }
    const bool is_special = token.is_special || (guess && looks_special(token.text));
    std::string text = is_special ? token.text : with_spaces(token.text);
    if (out_.types[token.id] != TokenType::Unused &&
        with_spaces(out_.tokens[token.id]) != with_spaces(text)) {
      notes_.push_back(join(file, ": token ", token.id, " '", text, "' takes the place of '",
                            out_.tokens[token.id], "'"));
    }
    set(token.id, std::move(text), kAddedScore,
        is_special ? TokenType::Control : TokenType::UserDefined);
  }

 private:
  Vocabulary& out_;
  std::vector<std::string>& notes_;
};

}  // namespace

Vocabulary sentencepiece_vocabulary(const TokenizerFiles& files, const ModelConfig& config,
                                    std::vector<std::string>& notes) {
  const std::string& path = *files.model_path;
  const MappedFile file(path);
  SentencePieceModel model = read_sentencepiece(path, file.bytes());
  Vocabulary out;
  out.model = "llama";
  out.pre = "default";
  const std::size_t count = config.vocab.value_or(model.pieces.size());
  Pieces pieces(out, count, notes);
  if (model.pieces.size() > count) {
    notes.push_back(join(path, ": of ", model.pieces.size(), " pieces the first ", count,
                         " are used: the model has no more tokens"));
  }
  for (std::size_t i = 0; i < std::min(count, model.pieces.size()); ++i) {
    const SentencePieceModel::Piece& piece = model.pieces[i];
    const bool is_users = piece.type == TokenType::UserDefined;
    pieces.set(i, is_users ? with_spaces(piece.text) : std::string(piece.text), piece.score,
               piece.type);
  }
  const bool is_phi3 = config.architecture.family == Family::Phi3;
  for (const AddedToken& token : files.added_in_list()) pieces.add(files.added->path, token, false);
  for (const AddedToken& token : files.added_in_config()) {
    pieces.add(files.config->path, token, !is_phi3);
  }
  if (is_phi3) {
    for (const AddedToken& token : files.added_in_tokenizer()) {
      pieces.add(files.tokenizer->path, token, false);
    }
  }
  if (!model.add_dummy_prefix) out.add_space_prefix = false;
  if (model.kind != SentencePieceModel::Kind::Bpe) {
    notes.push_back(join(path,
                         ": is no vocabulary of merged pairs, which is what readers of GGUF "
                         "take it for; some texts will have other tokens"));
  }
  if (model.remove_extra_whitespaces) {
    notes.push_back(join(path, ": removes spaces that are doubled, and readers of GGUF keep them"));
  }
  model.pieces.clear();  // they show what is mapped here
  out.sentences = std::move(model);
  return out;
}

}  // namespace tl::saved
