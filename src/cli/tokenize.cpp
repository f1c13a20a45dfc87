// `tl tokenize`: text to token ids with a model's vocabulary, and back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/default_model.h"
#include "cli/input.h"
#include "cli/terminal.h"
#include "tl/base/text.h"
#include "tl/model/gguf.h"
#include "tl/model/tokenizer.h"

namespace tl::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kTokenizeWhere = "tokenize";

struct TokenizeArguments {
  std::string model;
  std::string text;  // of -p
  bool has_text = false;
  bool decode = false;
  bool pieces = false;
  bool json = false;
  bool no_bos = false;
  bool special = false;
};

Json to_json(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Json tokens = Json::array();
  for (const TokenId id : ids) {
    // Bytes that are not UTF-8 cannot stand in JSON as they are.
    const std::string_view piece = tokenizer.piece(id);
    Json token{{"id", id}, {"text", std::string(tokenizer.text(id))}};
    if (first_invalid_utf8(piece) == piece.size()) {
      token["piece"] = std::string(piece);
    } else {
      token["bytes"] = Json::array();
      for (const char c : piece)
        token["bytes"].push_back(static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    token["special"] = tokenizer.is_special(id);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

int tokenize(const TokenizeArguments& options) {
  const Tokenizer tokenizer = Tokenizer::from_gguf(GgufFile::open(model_or_default(options.model)));
  for (const std::string& warning : tokenizer.warnings()) {
    fmt::print(stderr, "tl: {} {}\n", coloured(stderr, Colour::Yellow, "warning:"), warning);
  }
  const std::string text = options.has_text ? options.text : read_input(kTokenizeWhere);
  if (options.decode) {
    const std::string out = tokenizer.decode(parse_token_ids(kTokenizeWhere, text),
                                             {.special = options.special, .is_start = true});
    if (options.json) {
      fmt::print("{}\n", dump(Json{{"text", out}}));
    } else {
      std::fwrite(out.data(), 1, out.size(),
                  stdout);  // as it is: a text may end without a new line
    }
    return 0;
  }
  expect_utf8(kTokenizeWhere, text);
  const std::vector<TokenId> ids =
      tokenizer.encode(text, {.add_special = !options.no_bos, .parse_special = options.special});
  if (options.json) {
    Json json;
    if (options.pieces) {
      json = to_json(tokenizer, ids);
    } else {
      json = ids;
    }
    fmt::print("{}\n", options.pieces ? dump(json) : json.dump());
  } else if (options.pieces) {
    for (const TokenId id : ids) fmt::print("{:>7}  {}\n", id, in_quotes(tokenizer.piece(id)));
  } else {
    fmt::print("{}\n", fmt::join(ids, " "));
  }
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<TokenizeArguments>();
  CLI::App& command =
      *app.add_subcommand("tokenize", "turn text into a model's token ids, and back");
  command.add_option("model", options->model,
                     "a GGUF file; the vocabulary alone is enough; without it that of the model "
                     "that comes with tl");
  CLI::Option* text = command.add_option("-p,--prompt", options->text,
                                         "the text (or the ids); else standard input");
  command.add_flag("--decode", options->decode, "from ids to text");
  command.add_flag("--pieces", options->pieces, "a line for each token with what it stands for");
  command.add_flag("--json", options->json, "print it as JSON");
  command.add_flag("--no-bos", options->no_bos, "do not add the tokens that begin and end a text");
  command.add_flag("--special", options->special,
                   "read special tokens in the text; with --decode, show them");
  command.callback([options, text, &chosen] {
    options->has_text = text->count() > 0;
    chosen = [options] { return tokenize(*options); };
  });
}

}  // namespace tl::cli
