// `tl tokenizer train`: a vocabulary made of text files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/mapped_file.h"
#include "tl/base/text.h"
#include "tl/model/gguf_writer.h"
#include "tl/model/tokenizer_train.h"

namespace tl::cli {

namespace {

constexpr const char* kTokenizerWhere = "tokenizer train";

struct TokenizerArguments {
  std::vector<std::string> corpus, more_special;
  std::string to, template_file;
  TokenizerTrainOptions how;
};

std::string_view corpus_text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

std::string chat_template_of(const TokenizerArguments& options) {
  if (options.template_file.empty()) return std::string(TokenizerTrainOptions::role_template());
  if (options.template_file == "none") return "";
  const MappedFile file(options.template_file);
  expect_utf8(options.template_file, corpus_text(file));
  return std::string(corpus_text(file));
}

void write_text_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throw Error(ErrorKind::BadFile, path.string(), "it cannot be written");
  }
}

// What else a tokenizer.json needs is beside it, in the file that readers know by its name.
void write_tokenizer(const TrainedTokenizer& made, const std::string& to) {
  if (to.ends_with(".gguf")) {
    GgufWriter writer;
    made.add_to(writer);
    writer.write(to);
    return;
  }
  const std::filesystem::path path = to;
  write_text_file(path, made.json());
  if (path.filename() == "tokenizer.json") {
    write_text_file(path.parent_path() / "tokenizer_config.json", made.config_json());
  }
}

int train_tokenizer(const TokenizerArguments& options) {
  if (!options.to.ends_with(".gguf") && !options.to.ends_with(".json")) {
    throw Error(ErrorKind::BadArgument, kTokenizerWhere, "the file to write is ", options.to,
                "; it must end in .gguf or .json");
  }
  TokenizerTrainOptions how = options.how;
  for (const std::string& text : options.more_special) {
    if (std::find(how.special.begin(), how.special.end(), text) == how.special.end()) {
      how.special.push_back(text);
    }
  }
  how.chat_template = chat_template_of(options);
  TrainedTokenizer made;
  {
    Progress progress("reading", options.corpus.size(), "files");
    bool is_merging = false;
    how.progress = [&, wanted = how.vocabulary](std::size_t tokens) {
      if (!is_merging) progress.restart("merging", wanted, "tokens");
      is_merging = true;
      progress.set(tokens);
    };
    TokenizerTrainer trainer(std::move(how));
    for (const std::string& path : options.corpus) {
      progress.add(0, path);
      trainer.add(corpus_text(MappedFile(path)));
      progress.add();
    }
    made = trainer.train();
  }
  write_tokenizer(made, options.to);
  if (made.tokens.size() < options.how.vocabulary) {
    fmt::print(
        stderr, "tl: {} the text has no more pairs that are frequent enough: {} tokens, not {}\n",
        coloured(stderr, Colour::Yellow, "note:"), made.tokens.size(), options.how.vocabulary);
  }
  fmt::print(
      "{}: {} tokens, {} of them special, {} merges; {} of text are {} tokens, {:.2f} bytes each\n",
      options.to, format_count(made.tokens.size()), made.special, format_count(made.merges.size()),
      format_bytes(made.text_bytes), format_count(made.text_tokens),
      static_cast<double>(made.text_bytes) / static_cast<double>(made.text_tokens));
  return 0;
}

void add_tokenizer_train(CLI::App& tokenizer, Action& chosen) {
  const auto options = std::make_shared<TokenizerArguments>();
  CLI::App& command =
      *tokenizer.add_subcommand("train", "make a byte-level vocabulary of text files");
  command.add_option("corpus", options->corpus, "text files")->required();
  command
      .add_option("-o,--output", options->to,
                  "the file to write: the vocabulary alone as GGUF, or tokenizer.json")
      ->required();
  command
      .add_option("--vocab", options->how.vocabulary, "how many tokens, special ones and bytes too")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--pre", options->how.pre, "the pre-tokenizer that cuts text into words")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--special", options->more_special,
                  "one more special token, beside <|end|>, <|eot|> and the roles; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      .add_option("--chat-template", options->template_file,
                  "a Jinja file for chats, or 'none'; without it <|user|>...<|eot|><|assistant|>")
      ->type_name("FILE");
  command.callback(
      [options, &chosen] { chosen = [options] { return train_tokenizer(*options); }; });
}

}  // namespace

void add_tokenizer(CLI::App& app, Action& chosen) {
  CLI::App& tokenizer = *app.add_subcommand("tokenizer", "make vocabularies for models");
  tokenizer.require_subcommand(1);
  add_tokenizer_train(tokenizer, chosen);
}

}  // namespace tl::cli
