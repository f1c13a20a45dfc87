// `tl ops`: the table of ops, for people and for scripts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/ops/table.h"

namespace tl::cli {

namespace {

using Json = nlohmann::ordered_json;

struct OpsArguments {
  std::string name;  // of one op; empty for all
  bool json = false;
};

std::vector<std::string> dtype_names(DTypeSet dtypes) {
  std::vector<std::string> names;
  for (const DType t : kDTypes) {
    if (dtypes.has(t)) names.emplace_back(name(t));
  }
  return names;
}

// A set as a word where it has one; a table of eleven names each would be all dtypes.
std::string short_dtypes(DTypeSet dtypes) {
  if (dtypes == kAnySet) return "any";
  if (dtypes == kNumberSet) return "numbers";
  if (dtypes == kFloatSet) return "floats";
  if (dtypes == kIntSet) return "integers";
  return join_list(dtype_names(dtypes), " ");
}

Json to_json(const OpRow& row) {
  return {{"name", row.name},
          {"family", row.family},
          {"signature", row.signature},
          {"dtypes", dtype_names(row.dtypes)},
          {"help", row.help}};
}

const OpRow& named_op(const std::string& op) {
  if (const OpRow* row = find_op(op)) return *row;
  std::vector<std::string> names;
  for (const OpRow& row : op_table()) names.emplace_back(row.name);
  const std::string meant = nearest(op, names);
  throw Error(ErrorKind::BadArgument, "ops", "there is no op '", op, "'",
              meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

void print_all() {
  std::vector<std::string_view> families;
  for (const OpRow& row : op_table()) {
    if (std::find(families.begin(), families.end(), row.family) == families.end()) {
      families.push_back(row.family);
    }
  }
  for (const std::string_view family : families) {
    if (family != families.front()) fmt::print("\n");
    fmt::print("{}\n", coloured(stdout, Colour::Bold, family));
    Table table;
    table.column("op").column("dtypes").column("what it gives");
    for (const OpRow& row : op_table()) {
      if (row.family != family) continue;
      table.row({fmt::format("{}{}", row.name, row.signature), short_dtypes(row.dtypes),
                 std::string(row.help)});
    }
    table.print(stdout);
  }
}

void print_one(const OpRow& row) {
  fmt::print("{}{}\n\n", coloured(stdout, Colour::Bold, row.name), row.signature);
  fmt::print("{}\n\n", row.help);
  fmt::print("family  {}\n", row.family);
  fmt::print("dtypes  {}\n", join_list(dtype_names(row.dtypes), " "));
}

int ops(const OpsArguments& options) {
  if (options.json) {
    Json json = Json::array();
    for (const OpRow& row : op_table()) {
      if (options.name.empty() || &row == &named_op(options.name)) json.push_back(to_json(row));
    }
    fmt::print("{}\n", json.dump(2));
  } else if (options.name.empty()) {
    print_all();
  } else {
    print_one(named_op(options.name));
  }
  return 0;
}

}  // namespace

void add_ops(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<OpsArguments>();
  CLI::App& command = *app.add_subcommand("ops", "list the ops, their arguments and dtypes");
  command.add_option("name", options->name, "one op to tell about");
  command.add_flag("--json", options->json, "print it as JSON");
  command.callback([options, &chosen] { chosen = [options] { return ops(*options); }; });
}

}  // namespace tl::cli
