#include "tl/model/convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/little_endian.h"
#include "model/checkpoint.h"
#include "model/convert_config.h"
#include "model/convert_tensors.h"
#include "model/convert_vocab.h"
#include "model/quant_plan.h"
#include "tl/base/error.h"
#include "tl/model/gguf_writer.h"
#include "tl/model/quantize.h"
#include "tl/quant/qtensor.h"

namespace tl {

namespace {

namespace fs = std::filesystem;
using namespace saved;

constexpr std::string_view kWhere = "convert";

// ---- names

// "my-model-v2" as people write it: "My Model v2".
std::string title(std::string_view id) {
  std::string out;
  std::size_t at = 0;
  const auto is_space = [](char c) {
    return c == '-' || std::isspace(static_cast<unsigned char>(c));
  };
  while (at < id.size()) {
    while (at < id.size() && is_space(id[at])) ++at;
    std::size_t end = at;
    while (end < id.size() && !is_space(id[end])) ++end;
    if (end == at) break;
    std::string word(id.substr(at, end - at));
    at = end;
    const auto is = [&](int (*kind)(int)) {
      return std::any_of(word.begin(), word.end(),
                         [&](char c) { return kind(static_cast<unsigned char>(c)) != 0; });
    };
    // Versions ("v2.1") and what starts with a digit are no words.
    const bool is_version =
        std::isdigit(static_cast<unsigned char>(word[0])) != 0 ||
        (word[0] == 'v' && word.size() > 1 &&
         std::isdigit(static_cast<unsigned char>(word[1])) != 0 &&
         word.find_first_not_of("0123456789.", 1) == std::string::npos && word.back() != '.');
    if (is(std::islower) && !is(std::isupper) && !is_version) {
      bool starts = true;  // each run of letters
      for (char& c : word) {
        const bool is_letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
        if (starts && is_letter) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        starts = !is_letter;
      }
    }
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

std::string model_name(const Checkpoint& checkpoint, const ModelConfig& config,
                       const ConvertOptions& options) {
  if (options.name) return *options.name;
  // A name under which it was published; a longer path is one of somebody's machine.
  const auto id = Fields(config.file, config.json).text_if("_name_or_path");
  if (id && !id->empty() && std::count(id->begin(), id->end(), '/') <= 1 && (*id)[0] != '.') {
    const std::string name = title(std::string_view(*id).substr(id->find('/') + 1));
    if (!name.empty()) return name;
  }
  const std::string name = title(checkpoint.folder_name());
  return name.empty() ? "model" : name;
}

// 1377536 as "1.4M": two digits.
std::string size_label(std::uint64_t parameters) {
  const auto count = static_cast<double>(parameters);
  const auto [scale, unit] = count > 1e12  ? std::pair{1e-12, 'T'}
                             : count > 1e9 ? std::pair{1e-9, 'B'}
                             : count > 1e6 ? std::pair{1e-6, 'M'}
                                           : std::pair{1e-3, 'K'};
  const double scaled = count * scale, whole = std::nearbyint(scaled);
  const int digits = whole >= 10 ? 0 : whole >= 1 ? 1 : 2;
  std::array<char, 32> text{};
  const auto [end, status] = std::to_chars(text.data(), text.data() + text.size(), scaled,
                                           std::chars_format::fixed, digits);
  return std::string(text.data(), end) + unit;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
}

std::string output_path(std::string to, const std::string& name, std::string_view recipe) {
  std::error_code ignored;
  if (to.empty()) throw Error(ErrorKind::BadArgument, kWhere, "no file to write is named");
  if (fs::is_directory(to, ignored)) {
    std::string file = join(name, "-", recipe, ".gguf");
    std::replace(file.begin(), file.end(), ' ', '-');
    std::replace(file.begin(), file.end(), '/', '-');
    return (fs::path(to) / file).string();
  }
  for (const std::string_view key : {"{ftype}", "{outtype}"}) replace_all(to, key, lower(recipe));
  for (const std::string_view key : {"{FTYPE}", "{OUTTYPE}"}) replace_all(to, key, recipe);
  return to;
}

void refuse_own_files(const Checkpoint& checkpoint, const std::string& to) {
  for (const std::string& path : checkpoint.files()) {
    std::error_code ignored;
    if (fs::equivalent(path, to, ignored)) {
      throw Error(ErrorKind::BadArgument, kWhere, to, " is a file that is read");
    }
  }
}

// ---- metadata

struct Sampling {
  std::string_view saved, key;
  bool is_whole;
};

constexpr std::array<Sampling, 11> kSampling = {{
    {"top_k", "general.sampling.top_k", true},
    {"top_p", "general.sampling.top_p", false},
    {"min_p", "general.sampling.min_p", false},
    {"xtc_probability", "general.sampling.xtc_probability", false},
    {"xtc_threshold", "general.sampling.xtc_threshold", false},
    {"temperature", "general.sampling.temp", false},
    {"penalty_last_n", "general.sampling.penalty_last_n", true},
    {"penalty_repeat", "general.sampling.penalty_repeat", false},
    {"mirostat", "general.sampling.mirostat", true},
    {"mirostat_tau", "general.sampling.mirostat_tau", false},
    {"mirostat_eta", "general.sampling.mirostat_eta", false},
}};

// generation_config.json is advice: what cannot be read of it is told and left out.
void add_sampling(const Checkpoint& checkpoint, GgufWriter& writer,
                  std::vector<std::string>& notes) {
  try {
    const auto json = checkpoint.json("generation_config.json");
    if (!json) return;
    const Fields fields(*checkpoint.file("generation_config.json"), *json);
    for (const Sampling& each : kSampling) {
      const auto value = fields.number_if(each.saved);
      if (!value) continue;
      if (each.is_whole) {
        const auto whole = fields.whole_if(each.saved);
        if (*whole <= INT32_MAX) writer.add(each.key, GgufValue(static_cast<std::int32_t>(*whole)));
      } else {
        writer.add(each.key, GgufValue(static_cast<float>(*value)));
      }
    }
  } catch (const Error& error) {
    if (error.kind != ErrorKind::BadFile) throw;
    notes.push_back(join(error.what(), "; the rest of it is left out"));
  }
}

// Returns how many tokens there are. The tokenizer's files, which can be many times the size of
// what is kept of them, are gone when it returns.
std::size_t add_vocabulary(const Checkpoint& checkpoint, const ModelConfig& config,
                           GgufWriter& writer, std::vector<std::string>& notes) {
  const TokenizerFiles files(checkpoint);
  const Vocabulary vocabulary = read_vocabulary(files, config, notes);
  add_tokens(vocabulary, writer);
  for (const auto& [key, value] : special_token_metadata(files, config, vocabulary, notes)) {
    writer.add(key, value);
  }
  return vocabulary.tokens.size();
}

// ---- tensors

// F16 ends at 65504; a larger number would become infinity, and the model would say nothing else.
void refuse_overflow(const PlannedTensor& tensor, QType from, std::span<const std::byte> bytes) {
  constexpr std::uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u;
  const auto least = std::bit_cast<std::uint32_t>(65520.0f);  // the least that rounds to infinity
  const std::size_t size = from == QType::F32 ? 4 : 2;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    const std::uint32_t bits =
        size == 4 ? files::load_number<std::uint32_t>(&bytes[at])
                  : std::uint32_t{files::load_number<std::uint16_t>(&bytes[at])} << 16;
    if ((bits & kMagnitude) >= least && (bits & kMagnitude) < kInfinity) {
      throw Error(ErrorKind::Overflow, kWhere, "tensor '", tensor.source, "' has the number ",
                  std::bit_cast<float>(bits), ", which F16 cannot hold; BF16 and F32 can");
    }
  }
}

class TensorSource {
 public:
  TensorSource(const PlannedTensor& tensor, const Checkpoint::Weight& weight, std::int64_t head_dim,
               QType to)
      : tensor_(tensor), weight_(weight), head_dim_(head_dim), to_(to) {}

  void write(const GgufWriter::Sink& sink) const {
    const Shape& shape = tensor_.shape;
    const std::int64_t rows = shape[0], columns = shape.size() > 1 ? shape[1] : 1;
    const std::size_t row_bytes = q_bytes(kWhere, weight_.type, 1, columns);
    if (tensor_.change == Change::AddOne) {
      std::vector<float> values =
          QTensor::from_blocks(weight_.bytes, weight_.type, shape).dequantize().to_vector<float>();
      for (float& value : values) value += 1;
      sink(std::as_bytes(std::span(values)));
      return;
    }
    const bool reorders = tensor_.change != Change::None;
    const bool may_overflow = to_ == QType::F16 && weight_.type != QType::F16;
    std::vector<std::byte> gathered;
    const auto read = [&](std::int64_t first, std::int64_t count) {
      std::span<const std::byte> part = weight_.bytes.subspan(
          static_cast<std::size_t>(first) * row_bytes, static_cast<std::size_t>(count) * row_bytes);
      if (reorders) {
        gathered.resize(part.size());
        for (std::int64_t i = 0; i < count; ++i) {
          const auto from =
              static_cast<std::size_t>(source_row(tensor_.change, first + i, head_dim_));
          std::memcpy(&gathered[static_cast<std::size_t>(i) * row_bytes],
                      &weight_.bytes[from * row_bytes], row_bytes);
        }
        part = gathered;
      }
      if (may_overflow) refuse_overflow(tensor_, weight_.type, part);
      return part;
    };
    convert_rows(read, rows, columns, weight_.type, to_, sink);
  }

 private:
  const PlannedTensor& tensor_;
  Checkpoint::Weight weight_;
  std::int64_t head_dim_;
  QType to_;
};

const QuantRecipe& choose_recipe(const ConvertOptions& options, const Checkpoint& checkpoint,
                                 const std::vector<PlannedTensor>& planned) {
  if (options.type && lower(*options.type) != "auto") return find_quant_recipe(*options.type);
  for (const PlannedTensor& tensor : planned) {
    if (tensor.shape.size() < 2) continue;
    const QType type = checkpoint.weight(tensor.source).type;
    if (type == QType::BF16 || type == QType::F16) return find_quant_recipe(name(type));
  }
  return find_quant_recipe("F16");
}

std::uint64_t count_parameters(const ModelConfig& config,
                               const std::vector<PlannedTensor>& planned) {
  std::uint64_t count = 0;
  for (const PlannedTensor& tensor : planned) {
    count += static_cast<std::uint64_t>(element_count(kWhere, tensor.shape));
  }
  for (const auto& [name, values] : config.factors) count += values.size();
  return count;
}

void add_tensors(const Checkpoint& checkpoint, const ModelConfig& config,
                 const std::vector<PlannedTensor>& planned, const QuantRecipe& recipe,
                 const ConvertOptions& options, GgufWriter& writer, ConvertResult& result) {
  QuantModel model;
  model.layers = config.layers;
  model.heads_per_value = config.heads / config.kv_heads;
  model.is_tied = config.is_tied;
  model.is_large = config.architecture.family == Family::Llama && config.layers == 80;
  const std::size_t count = config.factors.size() + planned.size();
  for (const auto& [name, values] : config.factors) {
    const auto bytes = std::as_bytes(std::span(values));
    writer.add_tensor(name, {static_cast<std::int64_t>(values.size())}, QType::F32, bytes);
    result.bytes_after += bytes.size();
  }
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const PlannedTensor& tensor = planned[i];
    const Checkpoint::Weight weight = checkpoint.weight(tensor.source);
    const bool is_matrix = tensor.shape.size() > 1;
    const QType to = is_matrix ? planned_type(recipe, model, tensor.name, tensor.shape, weight.type)
                               : QType::F32;
    const std::int64_t columns = is_matrix ? tensor.shape[1] : tensor.shape[0];
    result.bytes_before += weight.bytes.size();
    result.bytes_after += q_bytes(kWhere, to, is_matrix ? tensor.shape[0] : 1, columns);
    const std::size_t index = config.factors.size() + i;
    const TensorSource source(tensor, weight, config.head_dim, to);
    writer.add_tensor(tensor.name, tensor.shape, to,
                      [&options, &tensor, source, index, count, from = weight.type,
                       to](const GgufWriter::Sink& sink) {
                        if (options.progress) options.progress(index, count, tensor.name, from, to);
                        source.write(sink);
                      });
  }
  result.tensors = count;
}

}  // namespace

std::vector<std::string> convertible_architectures() {
  std::vector<std::string> names;
  for (const Architecture& each : architectures()) names.emplace_back(each.saved);
  return names;
}

ConvertResult convert_checkpoint(const std::vector<std::string>& from, const std::string& to,
                                 const ConvertOptions& options) {
  const Checkpoint checkpoint(from, !options.vocab_only);
  ConvertResult result;
  ModelConfig config = read_config(checkpoint, result.notes);
  for (const std::string& name : checkpoint.names()) {
    // Gemma 3 leaves out how many tokens it has; its embedding knows.
    if (!config.vocab && name.ends_with("embed_tokens.weight") &&
        checkpoint.shape(name).size() == 2) {
      config.vocab = static_cast<std::uint32_t>(
          std::min<std::int64_t>(checkpoint.shape(name)[0], kMostTokens));
    }
  }
  std::vector<PlannedTensor> planned;
  if (!options.vocab_only) {
    if (!config.vocab) Fields(config.file, config.json).missing("vocab_size");
    planned = plan_tensors(checkpoint, config);
  }
  const QuantRecipe& recipe = choose_recipe(options, checkpoint, planned);
  const std::string name = model_name(checkpoint, config, options);
  const std::string path = output_path(to, name, recipe.name);
  refuse_own_files(checkpoint, path);
  result.parameters = options.vocab_only ? 0 : count_parameters(config, planned);

  GgufWriter writer(GgufWriter::Options{.alignment = {},
                                        .max_part_tensors = options.max_part_tensors,
                                        .max_part_bytes = options.max_part_bytes});
  writer.add("general.architecture", config.architecture.name);
  writer.add("general.type", "model");
  add_sampling(checkpoint, writer, result.notes);
  writer.add("general.name", name);
  if (result.parameters > 0) writer.add("general.size_label", size_label(result.parameters));
  for (const auto& [key, value] : config.metadata) writer.add(key, value);
  writer.add("general.file_type", GgufValue(recipe.file_type));
  writer.add("general.quantization_version", GgufValue(std::uint32_t{2}));
  result.tokens = add_vocabulary(checkpoint, config, writer, result.notes);
  if (!options.vocab_only) {
    add_tensors(checkpoint, config, planned, recipe, options, writer, result);
  }
  result.architecture = config.architecture.name;
  result.recipe = recipe.name;
  result.paths = options.dry_run ? std::vector{path} : writer.write(path);
  return result;
}

}  // namespace tl
