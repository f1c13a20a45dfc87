#include "tl/ops/table.h"

#include <algorithm>
#include <charconv>

#include "ops/rows.h"
#include "tl/base/error.h"

namespace tl {

namespace {

std::vector<OpRow> gather() {
  std::vector<OpRow> all;
  for (const auto rows :
       {ops::affine_rows(), ops::attention_rows(), ops::binary_rows(),  ops::conv_rows(),
        ops::copy_rows(),   ops::create_rows(),    ops::glu_rows(),     ops::indexing_rows(),
        ops::join_rows(),   ops::loss_rows(),      ops::matmul_rows(),  ops::norm_rows(),
        ops::pool_rows(),   ops::random_rows(),    ops::reduce_rows(),  ops::resize_rows(),
        ops::rope_rows(),   ops::scan_rows(),      ops::softmax_rows(), ops::sort_rows(),
        ops::unary_rows(),  ops::where_rows()}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "(x, dim = -1, dims = (0, 1))" cut at the commas outside inner brackets.
std::vector<std::string_view> parameters(std::string_view signature) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 1;
  for (std::size_t i = 0; i < signature.size(); ++i) {
    if (signature[i] == '(') ++depth;
    if (signature[i] == ')') --depth;
    if ((signature[i] == ',' && depth == 1) || depth == 0) {
      if (const auto part = trimmed(signature.substr(start, i - start)); !part.empty()) {
        parts.push_back(part);
      }
      start = i + 1;
    }
  }
  return parts;
}

// A default as it is written in a signature.
OpValue parse_default(std::string_view text) {
  if (text == "none") return NoValue{};
  if (text == "true" || text == "false") return text == "true";
  if (text.front() == '"') return std::string(text.substr(1, text.size() - 2));
  if (text.front() == '(') {
    Dims dims;
    for (const auto part : parameters(text)) {
      std::int64_t value = 0;
      std::from_chars(part.data(), part.data() + part.size(), value);
      dims.push_back(value);
    }
    return dims;
  }
  if (std::any_of(kDTypes.begin(), kDTypes.end(), [&](DType t) { return name(t) == text; })) {
    return parse_dtype(text);
  }
  if (text.find_first_of(".e") == std::string_view::npos) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return Scalar(value);
  }
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return Scalar(value);
}

}  // namespace

std::span<const OpRow> op_table() {
  static const std::vector<OpRow> all = gather();
  return all;
}

const OpRow* find_op(std::string_view name) {
  const auto all = op_table();
  const auto row =
      std::find_if(all.begin(), all.end(), [&](const OpRow& r) { return r.name == name; });
  return row == all.end() ? nullptr : &*row;
}

std::vector<std::optional<OpValue>> op_defaults(const OpRow& row) {
  std::vector<std::optional<OpValue>> defaults;
  for (const std::string_view parameter : parameters(row.signature)) {
    const std::size_t equals = parameter.find('=');
    defaults.emplace_back();
    if (equals != std::string_view::npos) {
      defaults.back() = parse_default(trimmed(parameter.substr(equals + 1)));
    }
  }
  return defaults;
}

std::vector<Tensor> call_op(std::string_view name, std::span<const OpValue> arguments) {
  const OpRow* row = find_op(name);
  if (row == nullptr) throw Error(ErrorKind::BadArgument, "call", "there is no op '", name, "'");
  const auto defaults = op_defaults(*row);
  if (arguments.size() > defaults.size()) {
    throw Error(ErrorKind::BadArgument, name, arguments.size(), " arguments for ", name,
                row->signature);
  }
  std::vector<OpValue> all(arguments.begin(), arguments.end());
  for (std::size_t i = all.size(); i < defaults.size(); ++i) {
    if (!defaults[i]) {
      throw Error(ErrorKind::BadArgument, name, "'", parameters(row->signature)[i],
                  "' is missing in ", name, row->signature);
    }
    all.push_back(*defaults[i]);
  }
  return row->call(name, all);
}

namespace detail {

void throw_bad_argument(std::string_view op, std::size_t position, std::string_view wanted) {
  throw Error(ErrorKind::BadArgument, op, "argument ", position + 1, " must be ", wanted);
}

}  // namespace detail

}  // namespace tl
