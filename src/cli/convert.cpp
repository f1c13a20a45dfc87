// `tl convert`: a GGUF model of a checkpoint of Hugging Face's libraries.
#include "tl/model/convert.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/sizes.h"
#include "cli/terminal.h"
#include "tl/base/text.h"
#include "tl/model/quantize.h"

namespace tl::cli {

namespace {

struct ConvertArguments {
  std::vector<std::string> from;
  std::string to, part_bytes;
  ConvertOptions how;
};

// Without -o: in the checkpoint's folder.
std::string folder_of(const std::string& from) {
  std::error_code ignored;
  if (std::filesystem::is_directory(from, ignored)) return from;
  const std::filesystem::path parent = std::filesystem::path(from).parent_path();
  return parent.empty() ? "." : parent.string();
}

int convert(const ConvertArguments& options) {
  ConvertOptions how = options.how;
  if (!options.part_bytes.empty()) how.max_part_bytes = parse_bytes(options.part_bytes);
  const std::string to = options.to.empty() ? folder_of(options.from.front()) : options.to;
  ConvertResult result;
  {
    Progress progress("convert", 0, "tensors");
    how.progress = [&](std::size_t index, std::size_t count, std::string_view tensor, QType from,
                       QType type) {
      progress.set_total(count);
      progress.set(index, fmt::format("{} {} to {}", tensor, name(from), name(type)));
    };
    result = convert_checkpoint(options.from, to, how);
  }
  for (const std::string& note : result.notes) {
    fmt::print(stderr, "tl: {} {}\n", coloured(stderr, Colour::Yellow, "note:"), note);
  }
  const auto parameters = static_cast<double>(result.parameters);
  fmt::print("{}: {}, {}, {} tensors, {} parameters, {} tokens, {}{}\n",
             result.paths.size() == 1
                 ? result.paths.front()
                 : fmt::format("{} and {} more", result.paths.front(), result.paths.size() - 1),
             result.architecture, result.recipe, result.tensors, format_count(result.parameters),
             result.tokens, format_bytes(result.bytes_after),
             parameters > 0 ? fmt::format(", {:.2f} bits per weight",
                                          8 * static_cast<double>(result.bytes_after) / parameters)
                            : "");
  if (how.dry_run) fmt::print("nothing was written: --dry-run\n");
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<ConvertArguments>();
  CLI::App& command =
      *app.add_subcommand("convert", "make a GGUF model of a Hugging Face checkpoint");
  command
      .add_option("from", options->from,
                  "a folder with config.json, *.safetensors and a tokenizer, or those files")
      ->required();
  command.add_option("-o,--outfile", options->to,
                     "the file to write, {ftype} in it for the type, or a folder; without it in "
                     "the checkpoint's folder");
  command.add_option("-t,--type,--outtype", options->how.type,
                     "the type of the weights (listed below); without it BF16 or F16, as they are");
  command.add_option("--name,--model-name", options->how.name,
                     "the model's name; without it config.json's or the folder's");
  command.add_option("--split-max-tensors", options->how.max_part_tensors,
                     "the most tensors in a part of the model");
  command.add_option("--split-max-size", options->part_bytes,
                     "the most bytes of tensors in a part, e.g. 4G");
  command.add_flag("--vocab-only", options->how.vocab_only, "the vocabulary without the tensors");
  command.add_flag("--dry-run", options->how.dry_run,
                   "say how large it would be and write nothing");
  add_quiet_option(command);
  std::string list = "architectures:";
  for (const std::string& each : convertible_architectures()) list += "\n  " + each;
  list += "\ntypes:";
  for (const QuantRecipe& each : quant_recipes()) {
    list += fmt::format("\n  {:<8}{}", each.name, each.help);
  }
  command.footer(list);
  command.callback([options, &chosen] { chosen = [options] { return convert(*options); }; });
}

}  // namespace tl::cli
