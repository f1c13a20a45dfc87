// Text to token ids and back.
#include <ostream>
#include <span>

#include "lang/builtins/library.h"
#include "lang/builtins/model_objects.h"
#include "tl/model/convert.h"

namespace tl::lang {

namespace {

Value load(const std::string& path) {
  expect_file(path);
  const auto made_of = [](const GgufFile& file) {
    return make<TokenizerObject>(Tokenizer::from_gguf(file), ChatTemplate::from_gguf(file));
  };
  if (path.ends_with(".gguf")) return made_of(GgufFile::open(path));
  const std::string bytes = convert_tokenizer(path);
  return made_of(GgufFile::from_memory(std::as_bytes(std::span(bytes)), path));
}

Value call_load_tokenizer(Context& context, Args& args) {
  Value tokenizer = load(args.string(0));
  if (context.verbose) *context.out << "Loaded tokenizer from: " << args.string(0) << '\n';
  return tokenizer;
}

Value call_tokenize(Context&, Args& args) {
  return make<TokensObject>(tokenizer_argument(args, 0).encode(
      args.string(1), {.add_special = args.boolean(2), .parse_special = true}));
}

// As text: what is no character becomes U+FFFD.
std::string decoded(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool special) {
  TextStream stream(tokenizer, {.special = special, .is_start = true});
  std::string out;
  for (const TokenId id : ids) out += stream.push(id);
  return out + stream.flush();
}

Value call_detokenize(Context&, Args& args) {
  return decoded(tokenizer_argument(args, 0), token_ids(args, 1), !args.boolean(2));
}

Value call_detokenize_single(Context&, Args& args) {
  const TokenId id = token_id(args.name(), args[1]);
  return decoded(tokenizer_argument(args, 0), std::span(&id, 1), !args.boolean(2));
}

Value call_detokenize_incremental(Context&, Args& args) {
  return decoded(tokenizer_argument(args, 0), token_ids(args, 1), true);
}

Value call_text_stream(Context&, Args& args) {
  return make<TextStreamObject>(TextStream(
      tokenizer_argument(args, 0), {.special = !args.boolean(1), .is_start = args.boolean(2)}));
}

Value call_int_to_tokenids(Context&, Args& args) { return make<TokensObject>(token_ids(args, 0)); }

Value call_vocab_size(Context&, Args& args) {
  return static_cast<std::int64_t>(tokenizer_argument(args, 0).size());
}

Value call_token_id(Context&, Args& args) {
  return std::int64_t{tokenizer_argument(args, 0).find(args.string(1)).value_or(-1)};
}

Value call_token_text(Context&, Args& args) {
  return tokenizer_argument(args, 0).piece(token_id(args.name(), args[1]));
}

Value call_is_end_token(Context&, Args& args) {
  return tokenizer_argument(args, 0).is_end(token_id(args.name(), args[1]));
}

template <std::optional<TokenId> (Tokenizer::*kWhich)() const noexcept>
Value call_special(Context&, Args& args) {
  const std::optional<TokenId> id = (tokenizer_argument(args, 0).*kWhich)();
  if (!id) throw invalid_operation(args.name(), "(): the vocabulary has no such token");
  return std::int64_t{*id};
}

}  // namespace

BuiltinRows tokenizer_builtins() {
  static const Builtin rows[] = {
      {"load_tokenizer", "tokenizers", "(path)",
       "The tokenizer of a tokenizer.json, or of the vocabulary in a .gguf file.",
       call_load_tokenizer},
      {"tokenize", "tokenizers", "(tokenizer, text, add_special = true)",
       "The token ids of a text; add_special adds what the model wants at the start and the end.",
       call_tokenize},
      {"detokenize", "tokenizers", "(tokenizer, ids, skip_special = true)",
       "The text of token ids.", call_detokenize},
      {"detokenize_single", "tokenizers", "(tokenizer, id, skip_special = true)",
       "The text of one token id alone.", call_detokenize_single},
      {"detokenize_incremental", "tokenizers", "(tokenizer, ids)",
       "The text of token ids, special tokens too.", call_detokenize_incremental},
      {"text_stream", "tokenizers", "(tokenizer, skip_special = true, at_start = false)",
       "An object that turns ids into text one by one: push(id) gives what is complete, flush() "
       "the rest.",
       call_text_stream},
      {"int_to_tokenids", "tokenizers", "(id)", "Token ids of one id, or of a list of them.",
       call_int_to_tokenids},
      {"vocab_size", "tokenizers", "(tokenizer)", "How many tokens there are.", call_vocab_size},
      {"token_id", "tokenizers", "(tokenizer, text)",
       "The id of the token with that text; -1 when there is none.", call_token_id},
      {"token_text", "tokenizers", "(tokenizer, id)", "The text a token stands for.",
       call_token_text},
      {"is_end_token", "tokenizers", "(tokenizer, id)", "Whether generation stops at a token.",
       call_is_end_token},
      {"eos_token", "tokenizers", "(tokenizer)", "The id of the token that ends a text.",
       call_special<&Tokenizer::eos>},
      {"bos_token", "tokenizers", "(tokenizer)", "The id of the token that begins a text.",
       call_special<&Tokenizer::bos>},
      {"pad_token", "tokenizers", "(tokenizer)", "The id of the token that fills up a text.",
       call_special<&Tokenizer::pad>},
  };
  return rows;
}

}  // namespace tl::lang
