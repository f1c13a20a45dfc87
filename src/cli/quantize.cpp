// `tl quantize`: a model file with smaller numbers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/progress.h"
#include "tl/base/text.h"
#include "tl/model/gguf.h"
#include "tl/model/quantize.h"

namespace tl::cli {

namespace {

struct QuantizeArguments {
  std::string from, to, recipe;
  bool requantize = false;
  bool dry_run = false;
};

int quantize(const QuantizeArguments& options) {
  const QuantRecipe& recipe = find_quant_recipe(options.recipe);
  const GgufFile file = GgufFile::open(options.from);
  QuantizeResult result;
  {
    Progress progress("quantize", file.tensor_bytes(), "bytes");
    std::uint64_t done = 0;  // bytes of the tensors before
    QuantizeOptions how{
        .requantize = options.requantize, .dry_run = options.dry_run, .progress = {}};
    how.progress = [&](std::size_t /*index*/, const GgufTensorInfo& tensor, QType to) {
      progress.set(done,
                   fmt::format("{} {} to {}", tensor.name, name(tensor.known_type()), name(to)));
      done += tensor.size_bytes();
    };
    result = quantize_gguf(file, options.to, recipe, how);
  }
  const auto parameters = static_cast<double>(file.parameters());
  fmt::print("{}: {}, {} of {} tensors changed, {} to {}{}\n", options.to, recipe.name,
             result.changed, file.tensors().size(), format_bytes(result.bytes_before),
             format_bytes(result.bytes_after),
             parameters > 0 ? fmt::format(", {:.2f} bits per weight",
                                          8 * static_cast<double>(result.bytes_after) / parameters)
                            : "");
  if (options.dry_run) fmt::print("nothing was written: --dry-run\n");
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<QuantizeArguments>();
  CLI::App& command = *app.add_subcommand("quantize", "write a GGUF model with smaller numbers");
  command.add_option("from", options->from, "a GGUF file of F32, F16 or BF16")->required();
  command.add_option("to", options->to, "the file to write")->required();
  command.add_option("recipe", options->recipe, "which types, e.g. Q4_K_M (listed below)")
      ->required();
  command.add_flag("--requantize", options->requantize,
                   "also tensors that are in blocks already, which loses twice");
  command.add_flag("--dry-run", options->dry_run, "say how large it would be and write nothing");
  add_quiet_option(command);
  std::string list = "recipes:";
  for (const QuantRecipe& each : quant_recipes()) {
    list += fmt::format("\n  {:<8}{}", each.name, each.help);
  }
  command.footer(list);
  command.callback([options, &chosen] { chosen = [options] { return quantize(*options); }; });
}

}  // namespace tl::cli
