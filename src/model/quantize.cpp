#include "tl/model/quantize.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "model/quant_plan.h"
#include "tl/base/error.h"
#include "tl/model/gguf_writer.h"
#include "tl/quant/qtensor.h"

namespace tl {

namespace {

constexpr std::string_view kWhere = "quantize";

constexpr std::array kRecipes = {
    QuantRecipe{"F32", 0, QType::F32, "no loss"},
    QuantRecipe{"F16", 1, QType::F16, "half precision"},
    QuantRecipe{"BF16", 32, QType::BF16, "half size, the range of F32"},
    QuantRecipe{"Q8_0", 7, QType::Q8_0, "8.5 bits, hardly any loss"},
    QuantRecipe{"Q6_K", 18, QType::Q6_K, "6.6 bits, very little loss"},
    QuantRecipe{"Q5_K_M", 17, QType::Q5_K, "5.5 bits and more where it counts"},
    QuantRecipe{"Q5_K_S", 16, QType::Q5_K, "5.5 bits"},
    QuantRecipe{"Q5_1", 9, QType::Q5_1, "6 bits, older"},
    QuantRecipe{"Q5_0", 8, QType::Q5_0, "5.5 bits, older"},
    QuantRecipe{"Q4_K_M", 15, QType::Q4_K, "4.5 bits and more where it counts; the usual choice"},
    QuantRecipe{"Q4_K_S", 14, QType::Q4_K, "4.5 bits"},
    QuantRecipe{"IQ4_NL", 25, QType::IQ4_NL, "4.5 bits, uneven steps"},
    QuantRecipe{"IQ4_XS", 30, QType::IQ4_XS, "4.25 bits, uneven steps"},
    QuantRecipe{"Q4_1", 3, QType::Q4_1, "5 bits, older"},
    QuantRecipe{"Q4_0", 2, QType::Q4_0, "4.5 bits, older"},
    QuantRecipe{"Q3_K_L", 13, QType::Q3_K, "3.4 bits and much more where it counts"},
    QuantRecipe{"Q3_K_M", 12, QType::Q3_K, "3.4 bits and more where it counts"},
    QuantRecipe{"Q3_K_S", 11, QType::Q3_K, "3.4 bits"},
    QuantRecipe{"Q2_K", 10, QType::Q2_K, "2.6 bits and more where it counts"},
    QuantRecipe{"Q2_K_S", 21, QType::Q2_K, "2.6 bits, high loss"},
};

// What a tensor is for, as far as recipes tell tensors apart.
enum class Role : std::uint8_t {
  Kept,
  Output,
  Embedding,
  Value,
  Key,
  Down,
  AttentionOut,
  Qkv,
  Other
};

Role role_of(std::string_view name, const Shape& shape) {
  const auto is = [&](std::string_view end) { return name.ends_with(end); };
  // Small or touchy: norms, routers, positions, kinds of tokens.
  if (shape.size() < 2 || !is("weight") || is("_norm.weight") || is("ffn_gate_inp.weight") ||
      name == "position_embd.weight" || name == "token_types.weight") {
    return Role::Kept;
  }
  if (name == "output.weight") return Role::Output;
  if (name == "token_embd.weight") return Role::Embedding;
  if (is("attn_v.weight")) return Role::Value;
  if (is("attn_k.weight")) return Role::Key;
  if (is("attn_qkv.weight")) return Role::Qkv;
  if (is("attn_output.weight")) return Role::AttentionOut;
  if (is("ffn_down.weight") || is("ffn_down_exps.weight")) return Role::Down;
  return Role::Other;
}

// N of blk.N.attn_q.weight.
std::int64_t layer_of(std::string_view name) {
  constexpr std::string_view kStart = "blk.";
  std::int64_t layer = 0;
  if (!name.starts_with(kStart)) return 0;
  const auto [end, status] =
      std::from_chars(name.data() + kStart.size(), name.data() + name.size(), layer);
  return status == std::errc{} ? layer : 0;
}

// The first and the last eighth of the layers, and every third between.
bool needs_more_bits(std::int64_t layer, std::int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

QuantModel model_of(const GgufFile& file) {
  QuantModel model;
  const std::string prefix = file.get_or<std::string>("general.architecture", "") + ".";
  const auto number = [&](std::string_view key) {
    return file.get_or<std::int64_t>(prefix + std::string(key), 0);
  };
  model.layers = number("block_count");
  model.experts = number("expert_count");
  const GgufValue* heads = file.find_value(prefix + "attention.head_count");
  const GgufValue* shared = file.find_value(prefix + "attention.head_count_kv");
  if (heads != nullptr && shared != nullptr && !heads->is_array() && !shared->is_array()) {
    const auto each = shared->to<std::int64_t>();
    if (each > 0) model.heads_per_value = heads->to<std::int64_t>() / each;
  }
  model.is_tied = file.find("output.weight") == nullptr;
  model.is_large = prefix == "llama." && model.layers == 80;
  return model;
}

QType wanted_type(const QuantRecipe& recipe, const QuantModel& model, Role role,
                  std::int64_t layer) {
  const std::string_view name = recipe.name;
  const auto is = [&](auto... names) { return ((name == std::string_view(names)) || ...); };
  const QType base = recipe.base;
  const bool early = layer < model.layers / 8;
  const bool more = needs_more_bits(layer, model.layers);
  if (is_plain(base)) return base;
  switch (role) {
    case Role::Output:
      return base == QType::Q8_0 ? base : QType::Q6_K;
    case Role::Embedding:
      return model.is_tied && base != QType::Q8_0 ? QType::Q6_K : base;
    case Role::Value: {
      if (model.experts == 8) return QType::Q8_0;
      QType type = base;
      if (is("Q2_K")) type = model.heads_per_value >= 4 ? QType::Q4_K : QType::Q3_K;
      if (is("Q2_K_S") && model.heads_per_value >= 4) type = QType::Q4_K;
      if (is("Q3_K_M")) type = layer < 2 ? QType::Q5_K : QType::Q4_K;
      if (is("Q3_K_L")) type = QType::Q5_K;
      if (is("IQ4_NL", "IQ4_XS") && model.heads_per_value >= 4) type = QType::Q5_K;
      if (is("Q4_K_M", "Q5_K_M") && more) type = QType::Q6_K;
      if (is("Q4_K_S") && layer < 4) type = QType::Q5_K;
      if (model.is_large && (type == QType::Q3_K || type == QType::Q4_K)) type = QType::Q5_K;
      return type;
    }
    case Role::Key:
      return model.experts == 8 ? QType::Q8_0 : base;
    case Role::Down:
      if (is("Q2_K")) return QType::Q3_K;
      if (is("Q2_K_S")) return early ? QType::Q4_K : base;
      if (is("Q3_K_M")) return layer < model.layers / 16 ? QType::Q5_K : QType::Q4_K;
      if (is("Q3_K_L")) return QType::Q5_K;
      if (is("Q4_K_M", "Q5_K_M")) return more ? QType::Q6_K : base;
      if (is("IQ4_NL", "IQ4_XS", "Q4_K_S")) return early ? QType::Q5_K : base;
      return base;
    case Role::AttentionOut:
      if (model.experts == 8) {
        return is("Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ4_XS") ? QType::Q5_K
                                                                                      : base;
      }
      if (is("Q2_K")) return QType::Q3_K;
      if (is("Q3_K_M")) return QType::Q4_K;
      return is("Q3_K_L") ? QType::Q5_K : base;
    case Role::Qkv:
      if (is("Q3_K_M", "Q3_K_L")) return QType::Q4_K;
      if (is("Q4_K_M")) return QType::Q5_K;
      return is("Q5_K_M") ? QType::Q6_K : base;
    default:
      return base;
  }
}

// A type with smaller blocks and no fewer bits, for rows that are not whole blocks.
QType fitting_type(QType type, std::int64_t columns) {
  if (columns % format_of(type).elements == 0) return type;
  switch (type) {
    case QType::Q2_K:
    case QType::Q3_K:
      type = QType::Q4_0;
      break;
    case QType::IQ4_XS:
      type = QType::IQ4_NL;
      break;
    case QType::Q4_K:
      type = QType::Q5_0;
      break;
    case QType::Q5_K:
      type = QType::Q5_1;
      break;
    default:
      type = QType::Q8_0;
      break;
  }
  return columns % format_of(type).elements == 0 ? type : QType::F16;
}

bool is_float_type(QType type) {
  const auto dtype = plain_dtype(type);
  return dtype && is_float(*dtype);
}

}  // namespace

QType planned_type(const QuantRecipe& recipe, const QuantModel& model, std::string_view name,
                   const Shape& shape, QType now) {
  const Role role = role_of(name, shape);
  if (role == Role::Kept || (is_plain(now) && !is_float_type(now))) return now;
  const QType wanted = wanted_type(recipe, model, role, layer_of(name));
  return fitting_type(wanted, shape[shape.size() - 1]);
}

void convert_rows(const RowReader& read, std::int64_t rows, std::int64_t columns, QType from,
                  QType to, const GgufWriter::Sink& sink) {
  constexpr std::int64_t kElements = 1 << 22;
  const std::int64_t together =
      std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(columns, 1));
  for (std::int64_t row = 0; row < rows; row += together) {
    const std::int64_t count = std::min(together, rows - row);
    const std::span<const std::byte> part = read(row, count);
    if (from == to) {
      sink(part);
    } else {
      const Tensor values = QTensor::from_blocks(part, from, {count, columns}).dequantize();
      sink(QTensor::quantize(values, to).to_blocks());
    }
  }
}

std::span<const QuantRecipe> quant_recipes() { return kRecipes; }

const QuantRecipe& find_quant_recipe(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper == "Q3_K" || upper == "Q4_K" || upper == "Q5_K") upper += "_M";
  std::string names;
  for (const QuantRecipe& each : kRecipes) {
    if (each.name == upper) return each;
    names += names.empty() ? "" : ", ";
    names += each.name;
  }
  throw Error(ErrorKind::BadArgument, kWhere, "there is no recipe '", name, "'; there are ", names);
}

std::vector<QType> quant_types(const GgufFile& file, const QuantRecipe& recipe) {
  const QuantModel model = model_of(file);
  std::vector<QType> types;
  for (const GgufTensorInfo& tensor : file.tensors()) {
    types.push_back(planned_type(recipe, model, tensor.name, tensor.shape, tensor.known_type()));
  }
  return types;
}

QuantizeResult quantize_gguf(const GgufFile& file, const std::string& to, const QuantRecipe& recipe,
                             const QuantizeOptions& options) {
  for (const std::string& part : file.parts()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(part, to, ignored)) {
      throw Error(ErrorKind::BadArgument, kWhere, to, " is the file that is read");
    }
  }
  const std::vector<QType> types = quant_types(file, recipe);
  const std::span<const GgufTensorInfo> tensors = file.tensors();
  QuantizeResult result;
  GgufWriter writer(GgufWriter::Options{
      .alignment = static_cast<std::uint32_t>(std::max<std::uint64_t>(file.alignment(), 8))});
  bool has_type = false, has_version = false;
  for (const GgufEntry& entry : file.metadata()) {
    if (entry.key.starts_with("split.")) continue;
    if (entry.key == "general.alignment" && file.alignment() < 8)
      continue;  // may be read, not written
    if (entry.key == "general.file_type") {
      writer.add(entry.key, GgufValue(recipe.file_type));
      has_type = true;
    } else {
      has_version = has_version || entry.key == "general.quantization_version";
      writer.add(entry.key, entry.value);
    }
  }
  if (!has_type) writer.add("general.file_type", GgufValue(recipe.file_type));
  if (!has_version) writer.add("general.quantization_version", GgufValue(std::uint32_t{2}));

  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const GgufTensorInfo& tensor = tensors[i];
    const QType from = tensor.known_type(), type = types[i];
    if (type != from && !is_plain(from) && !options.requantize) {
      throw Error(
          ErrorKind::BadArgument, kWhere, tensor.name, " is ", from,
          " already, and quantising it again to ", type,
          " loses twice; start from a file of F32, F16 or BF16, or ask for it (--requantize)");
    }
    const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape[tensor.shape.size() - 1];
    const std::int64_t rows = columns == 0 ? 0 : tensor.count() / columns;
    result.bytes_before += tensor.size_bytes();
    result.bytes_after += q_bytes(kWhere, type, rows, columns);
    result.changed += type != from ? 1 : 0;
    const std::size_t row_bytes =
        rows == 0 ? 0 : tensor.size_bytes() / static_cast<std::uint64_t>(rows);
    writer.add_tensor(tensor.name, tensor.shape, type,
                      [&, i, rows, columns, row_bytes, from, type](const GgufWriter::Sink& sink) {
                        if (options.progress) options.progress(i, tensors[i], type);
                        const std::span<const std::byte> bytes = file.bytes(tensors[i]);
                        const auto read = [&](std::int64_t first, std::int64_t count) {
                          return bytes.subspan(static_cast<std::size_t>(first) * row_bytes,
                                               static_cast<std::size_t>(count) * row_bytes);
                        };
                        convert_rows(read, rows, columns, from, type, sink);
                      });
  }
  if (!options.dry_run) writer.write(to);
  return result;
}

}  // namespace tl
