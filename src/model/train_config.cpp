#include "tl/model/train_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>

#include "base/nearest.h"
#include "model/json_fields.h"
#include "tl/base/error.h"
#include "tl/base/mapped_file.h"
#include "tl/model/quantize.h"

namespace tl {

namespace {

using saved::Fields;
using saved::Json;

constexpr std::string_view kTrain = "train";

void refuse_unknown_keys(const std::string& where, const Json& object,
                         const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string meant = nearest(key, known);
    throw Error(ErrorKind::BadFile, where, "there is no key '", key, "' here",
                meant.empty() ? "" : join("; did you mean '", meant, "'?"));
  }
}

// One text, or a list of them.
std::vector<std::string> file_names(const Fields& fields, std::string_view key) {
  const Json* value = fields.find(key);
  if (value == nullptr) return {};
  std::vector<std::string> names;
  const auto take = [&](const Json& each) {
    if (!each.is_string()) {
      fields.fail("key '", key, "' is ", saved::shown(each), ", not the name of a file or a list");
    }
    names.push_back(each.get<std::string>());
  };
  if (value->is_array()) {
    for (const Json& each : *value) take(each);
  } else {
    take(*value);
  }
  return names;
}

template <class T>
void set_whole(const Fields& fields, std::string_view key, T& to) {
  if (const auto value = fields.whole_if(key)) to = *value;
}
void set_number(const Fields& fields, std::string_view key, double& to) {
  if (const auto value = fields.number_if(key)) to = *value;
}
void set_text(const Fields& fields, std::string_view key, std::string& to) {
  if (const auto value = fields.text_if(key)) to = *value;
}

// The place of a text in a list of words.
std::size_t one_of(const Fields& fields, std::string_view key, const std::string& value,
                   std::span<const std::string_view> words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == value) return i;
    list += join(i == 0 ? "" : ", ", words[i]);
  }
  fields.fail("key '", key, "' is '", value, "', not one of ", list);
}

ModelSizes read_sizes(const Fields& fields, const Json& object) {
  refuse_unknown_keys(fields.where(), object,
                      {"vocabulary", "layers", "width", "heads", "kv_heads", "ffn", "context",
                       "rope_base", "norm_eps", "tied_embeddings"});
  ModelSizes sizes;
  set_whole(fields, "vocabulary", sizes.vocabulary);
  sizes.layers = fields.whole("layers");
  sizes.width = fields.whole("width");
  sizes.heads = fields.whole("heads");
  sizes.kv_heads = sizes.heads;
  set_whole(fields, "kv_heads", sizes.kv_heads);
  sizes.ffn = fields.whole("ffn");
  sizes.context = fields.whole("context");
  set_number(fields, "rope_base", sizes.rope_base);
  set_number(fields, "norm_eps", sizes.norm_eps);
  sizes.tied_embeddings = fields.flag_if("tied_embeddings").value_or(true);
  return sizes;
}

ModelMetadata read_metadata(const Fields& fields, const Json& object) {
  refuse_unknown_keys(fields.where(), object,
                      {"name", "author", "license", "description", "chat_template"});
  ModelMetadata metadata;
  set_text(fields, "name", metadata.name);
  set_text(fields, "author", metadata.author);
  set_text(fields, "license", metadata.license);
  set_text(fields, "description", metadata.description);
  if (const auto path = fields.text_if("chat_template")) {
    const MappedFile file(*path);
    metadata.chat_template.assign(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  }
  return metadata;
}

void read_learning(const Fields& fields, TrainConfig& config) {
  set_whole(fields, "batch", config.batch);
  set_whole(fields, "steps", config.steps);
  set_number(fields, "rate", config.rate);
  set_number(fields, "least_rate", config.least_rate);
  set_whole(fields, "warmup", config.warmup);
  constexpr std::string_view kSchedules[] = {"cosine", "constant"};
  if (const auto text = fields.text_if("schedule")) {
    config.cosine = one_of(fields, "schedule", *text, kSchedules) == 0;
  }
  set_number(fields, "weight_decay", config.weight_decay);
  set_number(fields, "clip", config.clip);
  if (fields.has("betas")) {
    const std::vector<double> betas = fields.numbers("betas");
    if (betas.size() != 2) fields.fail("key 'betas' has ", betas.size(), " numbers, not 2");
    config.beta1 = betas[0];
    config.beta2 = betas[1];
  }
  set_whole(fields, "seed", config.seed);
  constexpr std::string_view kPrecisions[] = {"f32", "tf32", "bf16"};
  if (const auto text = fields.text_if("precision")) {
    config.precision = static_cast<TrainPrecision>(one_of(fields, "precision", *text, kPrecisions));
  }
  constexpr std::string_view kTokens[] = {"all", "assistant"};
  if (const auto text = fields.text_if("loss_on")) {
    config.loss_on = static_cast<LossOn>(one_of(fields, "loss_on", *text, kTokens));
  }
  set_text(fields, "assistant_mark", config.assistant_mark);
  set_whole(fields, "print_every", config.print_every);
  set_whole(fields, "save_every", config.save_every);
  set_whole(fields, "evaluate_every", config.evaluate_every);
}

void apply_override(Json& root, const std::string& key, const std::string& value) {
  Json* at = &root;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = key.find('.', begin);
    const std::string part = key.substr(begin, dot == std::string::npos ? dot : dot - begin);
    if (part.empty() || !(at->is_object() || at->is_null())) {
      throw Error(ErrorKind::BadArgument, kTrain, "'", key, "' is no key of a training run");
    }
    at = &(*at)[part];
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  Json parsed = Json::parse(value, nullptr, false);
  *at = parsed.is_discarded() ? Json(value) : std::move(parsed);
}

template <class... Parts>
[[noreturn]] void refuse_key(std::string_view key, const Parts&... parts) {
  throw Error(ErrorKind::BadArgument, kTrain, "key '", key, "' is ", parts...);
}

void expect_whole(std::string_view key, std::int64_t value, std::int64_t least) {
  if (value < least) refuse_key(key, value, ", and at least ", least, " is needed");
}
void expect_number(std::string_view key, double value, bool may_be_zero) {
  if (!std::isfinite(value) || value < 0 || (value == 0 && !may_be_zero)) {
    refuse_key(key, value, ", not a number ", may_be_zero ? "from 0 on" : "above 0");
  }
}

}  // namespace

void check_model_sizes(const ModelSizes& s) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::pair<std::string_view, std::int64_t> sizes[] = {
      {"layers", s.layers},     {"width", s.width}, {"heads", s.heads},
      {"kv_heads", s.kv_heads}, {"ffn", s.ffn},     {"context", s.context},
  };
  for (const auto& [name, size] : sizes) {
    const std::string key = join("architecture.", name);
    expect_whole(key, size, 1);
    if (size > kMost) refuse_key(key, size, ", and ", kMost, " is the most");
  }
  if (s.width % s.heads != 0) {
    refuse_key("architecture.heads", s.heads, ", which does not divide the width, ", s.width);
  }
  if (s.heads % s.kv_heads != 0) {
    refuse_key("architecture.kv_heads", s.kv_heads, ", which does not divide the heads, ", s.heads);
  }
  if (s.width / s.heads % 2 != 0) {
    refuse_key("architecture.heads", s.heads, ", which makes heads of ", s.width / s.heads,
               " elements; they turn in pairs, so the count must be even");
  }
  expect_number("architecture.rope_base", s.rope_base, false);
  expect_number("architecture.norm_eps", s.norm_eps, false);
}

void check_train_config(const TrainConfig& config) {
  check_model_sizes(config.sizes);
  if (config.train.empty()) {
    throw Error(ErrorKind::BadArgument, kTrain, "key 'train' names no file");
  }
  for (const auto& [key, text] :
       {std::pair<std::string_view, const std::string&>{"tokenizer", config.tokenizer},
        {"output", config.output}}) {
    if (text.empty()) throw Error(ErrorKind::BadArgument, kTrain, "key '", key, "' is empty");
  }
  expect_whole("batch", config.batch, 1);
  expect_whole("steps", config.steps, 1);
  expect_whole("print_every", config.print_every, 1);
  expect_number("rate", config.rate, false);
  expect_number("least_rate", config.least_rate, true);
  if (config.least_rate > config.rate) {
    refuse_key("least_rate", config.least_rate, ", more than the rate, ", config.rate);
  }
  if (config.warmup >= config.steps) {
    refuse_key("warmup", config.warmup, ", and there are only ", config.steps, " steps");
  }
  expect_number("weight_decay", config.weight_decay, true);
  expect_number("clip", config.clip, true);
  for (const double beta : {config.beta1, config.beta2}) {
    if (!(beta >= 0 && beta < 1)) refuse_key("betas", beta, ", not from 0 to below 1");
  }
  find_quant_recipe(config.output_type);
}

TrainConfig read_train_config(const std::string& path, const TrainOverrides& overrides) {
  Json root = saved::read_json(path);
  if (!root.is_object()) throw Error(ErrorKind::BadFile, path, "is not one object");
  for (const auto& [key, value] : overrides) apply_override(root, key, value);
  refuse_unknown_keys(
      path, root, {"train",      "held_out",     "tokenizer",  "output",        "output_type",
                   "work",       "architecture", "batch",      "steps",         "rate",
                   "least_rate", "warmup",       "schedule",   "weight_decay",  "clip",
                   "betas",      "seed",         "precision",  "loss_on",       "assistant_mark",
                   "metadata",   "print_every",  "save_every", "evaluate_every"});
  const Fields fields(path, root);
  TrainConfig config;
  for (const std::string_view key : {"train", "tokenizer", "output", "architecture"}) {
    if (!fields.has(key)) fields.missing(key);
  }
  config.train = file_names(fields, "train");
  config.held_out = file_names(fields, "held_out");
  set_text(fields, "tokenizer", config.tokenizer);
  set_text(fields, "output", config.output);
  set_text(fields, "output_type", config.output_type);
  set_text(fields, "work", config.work);
  config.sizes = read_sizes(*fields.object("architecture"), root["architecture"]);
  read_learning(fields, config);
  if (const auto metadata = fields.object("metadata")) {
    config.metadata = read_metadata(*metadata, root["metadata"]);
  }
  check_train_config(config);
  return config;
}

std::string TrainConfig::work_stem() const {
  const std::filesystem::path path(output);
  const std::filesystem::path folder =
      work.empty() ? path.parent_path() : std::filesystem::path(work);
  const bool is_gguf = path.extension() == ".gguf";
  return (folder / (is_gguf ? path.stem() : path.filename())).string();
}

}  // namespace tl
