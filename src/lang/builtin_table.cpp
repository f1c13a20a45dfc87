// All builtins in one table: the language's own rows first, then the ops'.
#include <algorithm>
#include <charconv>

#include "lang/builtin.h"

namespace tl::lang {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "(a, b = [1, 2], ...rest)" cut at the commas outside inner brackets and texts.
std::vector<std::string_view> pieces(std::string_view signature) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quotes = false;
  std::size_t start = 1;
  for (std::size_t i = 0; i < signature.size(); ++i) {
    const char c = signature[i];
    if (c == '"') quotes = !quotes;
    if (quotes) continue;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if ((c == ',' && depth == 1) || depth == 0) {
      if (const auto part = trimmed(signature.substr(start, i - start)); !part.empty()) {
        parts.push_back(part);
      }
      start = i + 1;
    }
  }
  return parts;
}

// A default as signatures write it; Missing for none and for what only the builtin itself knows.
Value parse_default(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  if (text.front() == '"') return text.substr(1, text.size() - 2);
  const char* begin = text.data();
  const char* end = begin + text.size();
  std::int64_t integer = 0;
  if (const auto read = std::from_chars(begin, end, integer);
      read.ec == std::errc() && read.ptr == end) {
    return integer;
  }
  double real = 0;
  if (const auto read = std::from_chars(begin, end, real);
      read.ec == std::errc() && read.ptr == end) {
    return real;
  }
  return Value::missing();
}

void read_signature(Builtin& builtin) {
  builtin.parameters.clear();
  for (std::string_view piece : pieces(builtin.signature)) {
    Parameter parameter;
    if (piece.starts_with("...")) {
      builtin.variadic = true;
      parameter.name = piece.substr(3);
      parameter.optional = true;
      builtin.parameters.push_back(parameter);
      continue;
    }
    const std::size_t equals = piece.find('=');
    parameter.name = trimmed(piece.substr(0, equals));
    if (equals != std::string_view::npos) {
      parameter.optional = true;
      parameter.default_text = trimmed(piece.substr(equals + 1));
      parameter.default_value = parse_default(parameter.default_text);
    }
    builtin.parameters.push_back(parameter);
  }
}

}  // namespace

BuiltinTable::BuiltinTable() {
  const auto add = [&](const Builtin& row) {
    if (by_name_.contains(row.name)) return;
    rows_.push_back(std::make_unique<Builtin>(row));
    read_signature(*rows_.back());
    by_name_[row.name] = rows_.back().get();
  };
  for (const BuiltinRows rows :
       {creation_builtins(), shape_builtins(), math_builtins(), network_builtins(),
        dtype_builtins(), sampling_builtins(), model_builtins(), tokenizer_builtins(),
        container_builtins(), text_builtins(), file_builtins(), learning_builtins(),
        knowledge_builtins(), graph_builtins(), utility_builtins(), candle_builtins(),
        logic_builtins()}) {
    for (const Builtin& row : rows) add(row);
  }
  for (const Builtin& row : op_builtins()) add(row);
  for (const auto& [name, row] : by_name_) sorted_.push_back(row);
}

const BuiltinTable& BuiltinTable::instance() {
  static const BuiltinTable table;
  return table;
}

const Builtin* BuiltinTable::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace tl::lang
