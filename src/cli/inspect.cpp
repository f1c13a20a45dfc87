// `tl inspect`: what a file of tensors holds, without loading it: GGUF, safetensors, npy and npz.
//
// Texts of files may hold anything. For people, control characters and bytes that are not UTF-8 are
// shown as \n and \xff; in JSON such bytes become U+FFFD, and floats that JSON has no number for
// become "nan", "inf" and "-inf".
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/mapped_file.h"
#include "tl/base/text.h"
#include "tl/model/gguf.h"
#include "tl/tensor/npy.h"
#include "tl/tensor/safetensors.h"

namespace tl::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownItems = 6;  // of an array
constexpr std::size_t kShownText = 60;  // bytes of a text

struct InspectArguments {
  std::string path;
  bool json = false;
  bool metadata = false;
  bool tensors = false;
  bool full = false;

  bool shows_metadata() const { return metadata || !tensors; }
  bool shows_tensors() const { return tensors || !metadata; }
};

struct MetadataLine {
  std::string key;
  std::string type;  // "u32"; empty where all are texts
  std::string text;
  Json json;  // the line as a whole
};

struct TensorLine {
  std::string name;
  Shape shape;
  std::string type;
  std::optional<std::uint32_t> code;  // GGUF's
  std::optional<std::size_t> part;    // of a model in parts
  std::optional<std::uint64_t> offset;
  std::optional<std::uint64_t> bytes;  // nothing when the type is not known
};

struct Report {
  std::string format;              // as JSON calls it
  std::string title;               // as people do
  std::vector<std::string> parts;  // files
  std::optional<std::uint32_t> version;
  std::optional<std::uint64_t> alignment;
  std::uint64_t file_bytes = 0;
  std::vector<MetadataLine> metadata;
  std::vector<TensorLine> tensors;
};

struct Total {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;             // of tensors whose type is known,
  std::uint64_t known_parameters = 0;  // which have so many parameters

  void add(const TensorLine& tensor);
  std::optional<double> bits_per_weight() const {
    if (known_parameters == 0) return std::nullopt;
    return 8 * static_cast<double>(bytes) / static_cast<double>(known_parameters);
  }
};

// Elements; as many as can be counted when a shape of an unknown type has more.
std::uint64_t count_of(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size == 0) return 0;
  }
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count)) {
      return std::numeric_limits<std::uint64_t>::max();
    }
  }
  return count;
}

void add_up(std::uint64_t& sum, std::uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
}

void Total::add(const TensorLine& tensor) {
  const std::uint64_t count = count_of(tensor.shape);
  ++tensors;
  add_up(parameters, count);
  if (!tensor.bytes) return;
  add_up(bytes, *tensor.bytes);
  add_up(known_parameters, count);
}

// ---- text

// U+0080 to U+009F: control characters, as two bytes.
bool is_c1(std::string_view text) {
  return text.size() > 1 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0;
}

// Without what would upset a terminal.
std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    const std::size_t good = c < 0x80 ? 1 : first_invalid_utf8(text.substr(0, 4));
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7f || good == 0 || is_c1(text)) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      // One character: up to the next byte that begins one.
      std::size_t length = 1;
      while (length < good && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) ++length;
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    text.remove_prefix(1);
  }
  return out;
}

std::string shown(std::string_view text, bool full) {
  if (full || text.size() <= kShownText) return printable(text);
  std::size_t end = kShownText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return printable(text.substr(0, end)) + "...";
}

std::uint64_t most_items(bool full) { return full ? GgufValue::kAll : kShownItems; }

std::string text_of(const GgufValue& value, bool full) {
  if (value.type() == GgufType::String) return shown(value.to<std::string_view>(), full);
  if (!value.is_array()) return value.text();
  std::string out = "[";
  value.for_each(
      [&](const GgufValue& item) {
        if (out.size() > 1) out += ", ";
        out += item.type() == GgufType::String ? fmt::format("\"{}\"", text_of(item, full))
                                               : text_of(item, full);
      },
      most_items(full));
  return out + (value.count() > most_items(full) ? ", ...]" : "]");
}

Json json_of(const GgufValue& value, bool full, bool& shortened) {
  switch (value.type()) {
    case GgufType::String:
      return std::string(value.to<std::string_view>());
    case GgufType::Bool:
      return value.to<bool>();
    case GgufType::F32:
    case GgufType::F64:
      if (!std::isfinite(value.to<double>())) return value.text();
      return std::strtod(value.text().c_str(), nullptr);  // 1e-05, not what the f32 is exactly
    case GgufType::U64:
      return value.to<std::uint64_t>();
    case GgufType::Array: {
      Json items = Json::array();
      value.for_each(
          [&](const GgufValue& item) { items.push_back(json_of(item, full, shortened)); },
          most_items(full));
      shortened = shortened || value.count() > most_items(full);
      return items;
    }
    default:
      return value.to<std::int64_t>();
  }
}

// ---- the formats

MetadataLine metadata_line(const GgufEntry& entry, const InspectArguments& options) {
  const GgufValue& value = entry.value;
  MetadataLine line{.key = std::string(entry.key),
                    .type = std::string(name(value.type())),
                    .text = {},
                    .json = {{"key", entry.key}, {"type", name(value.type())}}};
  if (value.is_array()) {
    line.type = fmt::format("{}[{}]", name(value.element_type()), value.count());
    line.json["element_type"] = name(value.element_type());
    line.json["count"] = value.count();
  }
  if (options.json) {
    bool shortened = false;
    line.json["value"] = json_of(value, options.full, shortened);
    if (shortened) line.json["shortened"] = true;
  } else {
    line.text = text_of(value, options.full);
  }
  return line;
}

Report inspect_gguf(const InspectArguments& options) {
  const GgufFile file = GgufFile::open(options.path);
  Report report{.format = "gguf",
                .title = fmt::format("GGUF version {}", file.version()),
                .parts = {file.parts().begin(), file.parts().end()},
                .version = file.version(),
                .alignment = file.alignment(),
                .file_bytes = file.file_bytes(),
                .metadata = {},
                .tensors = {}};
  if (options.shows_metadata()) {
    for (const GgufEntry& entry : file.metadata()) {
      report.metadata.push_back(metadata_line(entry, options));
    }
  }
  for (const GgufTensorInfo& info : file.tensors()) {
    report.tensors.push_back(
        {.name = info.name,
         .shape = info.shape,
         .type = info.type ? std::string(name(*info.type)) : fmt::format("code {}", info.code),
         .code = info.code,
         .part = file.parts().size() > 1 ? std::optional(info.part) : std::nullopt,
         .offset = info.offset,
         .bytes = info.bytes});
  }
  return report;
}

Report inspect_safetensors(const InspectArguments& options, std::uint64_t file_bytes) {
  const Safetensors file(options.path);
  Report report{.format = "safetensors",
                .title = "safetensors",
                .parts = {options.path},
                .version = {},
                .alignment = {},
                .file_bytes = file_bytes,
                .metadata = {},
                .tensors = {}};
  for (const auto& [key, text] : file.metadata()) {
    report.metadata.push_back({.key = key,
                               .type = "string",
                               .text = shown(text, options.full),
                               .json = {{"key", key}, {"type", "string"}, {"value", text}}});
  }
  for (const std::string& name : file.names()) {
    const Safetensors::Entry& entry = file.entry(name);
    report.tensors.push_back({.name = name,
                              .shape = entry.shape,
                              .type = entry.stored,
                              .code = {},
                              .part = {},
                              .offset = entry.begin,
                              .bytes = entry.end - entry.begin});
  }
  return report;
}

TensorLine npy_line(std::string name, const NpyInfo& info) {
  return {.name = std::move(name),
          .shape = info.shape,
          .type = info.stored,
          .code = {},
          .part = {},
          .offset = {},
          .bytes = info.bytes};
}

Report inspect_npy(const InspectArguments& options, std::uint64_t file_bytes, bool several) {
  Report report{.format = several ? "npz" : "npy",
                .title = several ? "npz" : "npy",
                .parts = {options.path},
                .version = {},
                .alignment = {},
                .file_bytes = file_bytes,
                .metadata = {},
                .tensors = {}};
  if (!several) {
    const NpyInfo info = npy_info(options.path);
    report.tensors.push_back(npy_line("", info));
    report.tensors.back().offset = info.offset;
    return report;
  }
  const Npz file(options.path);
  for (const std::string& name : file.names()) {
    try {
      report.tensors.push_back(npy_line(name, file.info(name)));
    } catch (const Error& error) {
      if (error.kind != ErrorKind::Unsupported) throw;
      // Structured arrays and the like: the others can be looked at.
      report.tensors.push_back({.name = name,
                                .shape = {},
                                .type = "unsupported",
                                .code = {},
                                .part = {},
                                .offset = {},
                                .bytes = {}});
    }
  }
  return report;
}

// By what a file begins with; only what begins with nothing in particular goes by its name.
Report inspect_file(const InspectArguments& options) {
  std::string start;
  std::uint64_t size = 0;
  {
    const MappedFile file(options.path);
    const auto first = file.bytes().first(std::min<std::size_t>(file.size(), 16));
    start.assign(reinterpret_cast<const char*>(first.data()), first.size());
    size = file.size();
  }
  const std::string_view path = options.path;
  const auto begins = [&](std::string_view magic) { return start.starts_with(magic); };
  if (begins("GGUF") || begins("FUGG")) return inspect_gguf(options);
  if (begins("\x93NUMPY")) return inspect_npy(options, size, false);
  if (begins("PK\x03\x04") || begins("PK\x05\x06")) return inspect_npy(options, size, true);
  if (start.size() > 8 && start[8] == '{') return inspect_safetensors(options, size);
  if (path.ends_with(".gguf")) return inspect_gguf(options);
  if (path.ends_with(".safetensors")) return inspect_safetensors(options, size);
  if (path.ends_with(".npy")) return inspect_npy(options, size, false);
  if (path.ends_with(".npz")) return inspect_npy(options, size, true);
  throw Error(ErrorKind::BadFile, path, "is no GGUF, safetensors, npy or npz file");
}

// ---- printing

std::map<std::string, Total> by_type(const Report& report) {
  std::map<std::string, Total> totals;
  for (const TensorLine& tensor : report.tensors) totals[tensor.type].add(tensor);
  return totals;
}

Total total_of(const Report& report) {
  Total total;
  for (const TensorLine& tensor : report.tensors) total.add(tensor);
  return total;
}

Json to_json(const TensorLine& tensor) {
  Json json{{"name", tensor.name},
            {"shape", std::vector(tensor.shape.begin(), tensor.shape.end())},
            {"type", tensor.type}};
  if (tensor.code) json["type_code"] = *tensor.code;
  if (tensor.part) json["part"] = *tensor.part;
  if (tensor.offset) json["offset"] = *tensor.offset;
  json["bytes"] = tensor.bytes ? Json(*tensor.bytes) : Json(nullptr);
  return json;
}

void print_json(const Report& report, const InspectArguments& options) {
  const Total total = total_of(report);
  const auto bits = total.bits_per_weight();
  Json json{{"file", options.path}, {"format", report.format}};
  if (report.version) json["version"] = *report.version;
  if (report.alignment) json["alignment"] = *report.alignment;
  json["parts"] = report.parts;
  json["file_bytes"] = report.file_bytes;
  json["tensor_count"] = total.tensors;
  json["tensor_bytes"] = total.bytes;
  json["parameters"] = total.parameters;
  json["bits_per_weight"] = bits ? Json(*bits) : Json(nullptr);
  if (options.shows_metadata()) {
    json["metadata"] = Json::array();
    for (const MetadataLine& line : report.metadata) json["metadata"].push_back(line.json);
  }
  if (options.shows_tensors()) {
    json["types"] = Json::array();
    for (const auto& [type, sum] : by_type(report)) {
      json["types"].push_back({{"type", type},
                               {"tensors", sum.tensors},
                               {"parameters", sum.parameters},
                               {"bytes", sum.bytes}});
    }
    json["tensors"] = Json::array();
    for (const TensorLine& tensor : report.tensors) json["tensors"].push_back(to_json(tensor));
  }
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string counted(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", format_count(count), one, count == 1 ? "" : "s");
}

void print_metadata(const Report& report) {
  if (report.metadata.empty()) return;
  Table table;
  table.column("key").column("type").column("value");
  for (const MetadataLine& line : report.metadata) {
    table.row({printable(line.key), line.type, line.text});
  }
  fmt::print("\n");
  table.print(stdout);
}

void print_tensors(const Report& report) {
  if (report.tensors.empty()) return;
  Table tensors;
  tensors.column("tensor").column("shape").column("type");
  tensors.column("bytes", Table::Align::Right).column("offset", Table::Align::Right);
  tensors.column("part", Table::Align::Right);
  for (const TensorLine& line : report.tensors) {
    tensors.row({printable(line.name), line.shape.text(), printable(line.type),
                 line.bytes ? format_count(*line.bytes) : "?",
                 line.offset ? format_count(*line.offset) : "",
                 line.part ? std::to_string(*line.part + 1) : ""});
  }
  fmt::print("\n");
  tensors.print(stdout);

  Table types;
  types.column("type").column("tensors", Table::Align::Right);
  types.column("parameters", Table::Align::Right).column("bytes", Table::Align::Right);
  for (const auto& [type, sum] : by_type(report)) {
    types.row({printable(type), format_count(sum.tensors), format_count(sum.parameters),
               format_count(sum.bytes)});
  }
  fmt::print("\n");
  types.print(stdout);
}

void print_text(const Report& report, const InspectArguments& options) {
  const Total total = total_of(report);
  std::string line = fmt::format("{}: {}", printable(options.path), report.title);
  if (report.parts.size() > 1) line += ", " + counted(report.parts.size(), "part");
  line += fmt::format(", {}, {}, {}", counted(total.tensors, "tensor"),
                      counted(total.parameters, "parameter"), format_bytes(report.file_bytes));
  if (const auto bits = total.bits_per_weight())
    line += fmt::format(", {:.2f} bits per weight", *bits);
  fmt::print("{}\n", coloured(stdout, Colour::Bold, line));
  if (options.shows_metadata()) print_metadata(report);
  if (options.shows_tensors()) print_tensors(report);
}

int inspect(const InspectArguments& options) {
  const Report report = inspect_file(options);
  if (options.json) {
    print_json(report, options);
  } else {
    print_text(report, options);
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<InspectArguments>();
  CLI::App& command =
      *app.add_subcommand("inspect", "show what a GGUF, safetensors, npy or npz file holds");
  command.add_option("file", options->path, "the file; of a model in parts any of them")
      ->required();
  command.add_flag("--json", options->json, "print it as JSON");
  command.add_flag("--metadata", options->metadata, "the metadata only");
  command.add_flag("--tensors", options->tensors, "the tensors only");
  command.add_flag("--full", options->full, "whole arrays and texts, not their beginnings");
  command.callback([options, &chosen] { chosen = [options] { return inspect(*options); }; });
}

}  // namespace tl::cli
