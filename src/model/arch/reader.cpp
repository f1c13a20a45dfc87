#include "model/arch/reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "model/gguf_cursor.h"
#include "tl/base/error.h"

namespace tl::arch {

namespace {

// Sizes are below this, so that the product of two does not overflow.
constexpr std::int64_t kMostSize = std::numeric_limits<std::int32_t>::max();

bool is_zero(const GgufValue& value) {
  if (value.type() == GgufType::Bool) return !value.to<bool>();
  if (is_integer(value.type())) return value.text() == "0";
  if (value.type() == GgufType::F32 || value.type() == GgufType::F64) {
    return value.to<double>() == 0;
  }
  if (!value.is_array()) return false;
  bool zero = true;
  value.for_each([&](const GgufValue& item) { zero = zero && is_zero(item); });
  return zero;
}

// Keys that change what a model computes, with what they say. Zero says that there is none.
struct NotRun {
  std::string_view key, why;
};
constexpr std::array kNotRun = {
    NotRun{"expert_count", "mixtures of experts are not run"},
    NotRun{"nextn_predict_layers", "layers that guess further tokens are not run"},
    NotRun{"pooling_type", "models that give one vector for a text are not run"},
    NotRun{"use_parallel_residual", "attention beside the feed-forward part is not run"},
    NotRun{"attention.max_alibi_bias", "attention with a slope over positions is not run"},
    NotRun{"attention.clamp_kqv", "clamped queries, keys and values are not run"},
    NotRun{"attention.temperature_scale", "attention scaled by position is not run"},
    NotRun{"attention.output_scale", "scaled outputs of attention are not run"},
    NotRun{"attention.value_scale", "scaled values of attention are not run"},
    NotRun{"attention.shared_kv_layers", "layers that share keys and values are not run"},
    NotRun{"full_attention_interval", "layers without attention are not run"},
    NotRun{"logit_scale", "scaled logits are not run"},
    NotRun{"residual_scale", "scaled residuals are not run"},
    NotRun{"embedding_scale", "embeddings scaled by the file are not run"},
    NotRun{"rope.dimension_sections", "positions of several axes are not run"},
    NotRun{"rope.scaling.alpha", "a base that grows with the context is not run"},
    NotRun{"rope.scaling.yarn_log_multiplier", "YaRN with a multiplier of its own is not run"},
};

}  // namespace

Reader::Reader(const GgufFile& file, const ModelWeights& weights, std::int64_t context)
    : file_(file),
      weights_(weights),
      name_(file.parts().front()),
      prefix_(join(file.architecture(), '.')),
      context_(context) {}

// ---- numbers

void Reader::damaged(std::string_view key, std::string_view is, std::string_view why) const {
  throw Error(ErrorKind::BadFile, name_, "key ", gguf::Quoted{full(key)}, " is ", is, ", ", why);
}

void Reader::missing(std::string_view key) const {
  throw Error(ErrorKind::BadFile, name_, "has no key ", gguf::Quoted{full(key)});
}

void Reader::not_run(std::string_view key, std::string_view why) const {
  throw Error(ErrorKind::Unsupported, name_, "key ", gguf::Quoted{full(key)}, " is ",
              find(key)->text(), ", and ", why);
}

std::int64_t Reader::same_in_all_layers(std::string_view key, const GgufValue& list) const {
  const auto sizes = list.to_vector<std::int64_t>();
  if (sizes.empty()) damaged(key, "a list of nothing", "not a size");
  if (std::ranges::adjacent_find(sizes, std::not_equal_to{}) != sizes.end()) {
    throw Error(ErrorKind::Unsupported, name_, "key ", gguf::Quoted{full(key)},
                " is not the same for all layers, which is not run");
  }
  return sizes.front();
}

std::optional<std::int64_t> Reader::whole_if(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::int64_t whole =
      value->is_array() ? same_in_all_layers(key, *value) : value->to<std::int64_t>();
  if (whole < 0 || whole > kMostSize) {
    damaged(key, join(whole), join("not in 0 to ", kMostSize));
  }
  return whole;
}

std::int64_t Reader::size(std::string_view key) const {
  const auto found = whole_if(key);
  if (!found) missing(key);
  if (*found == 0) damaged(key, "0", "and at least 1 is needed");
  return *found;
}

std::int64_t Reader::size_or(std::string_view key, std::int64_t otherwise) const {
  return find(key) == nullptr ? otherwise : size(key);
}

std::optional<double> Reader::number_if(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = value->to<double>();
  if (!std::isfinite(number)) damaged(key, value->text(), "not a number to compute with");
  return number;
}

double Reader::positive(std::string_view key) const {
  const auto number = number_if(key);
  if (!number) missing(key);
  if (!(*number > 0)) damaged(key, join(*number), "not above 0");
  return *number;
}

double Reader::positive_or(std::string_view key, double otherwise) const {
  return find(key) == nullptr ? otherwise : positive(key);
}

void Reader::refuse_what_is_not_run() const {
  for (const auto& [key, why] : kNotRun) {
    const GgufValue* value = find(key);
    if (value != nullptr && !is_zero(*value)) not_run(key, why);
  }
  if (const GgufValue* causal = find("attention.causal"); causal && !causal->to<bool>()) {
    not_run("attention.causal", "positions that see later ones are not run");
  }
}

void Reader::refuse_other_sizes_in_windows(const DecoderConfig& config) const {
  const std::array<std::pair<std::string_view, std::int64_t>, 3> sizes = {{
      {"attention.key_length_swa", config.key_size},
      {"attention.value_length_swa", config.value_size},
      {"rope.dimension_count_swa", config.rope_size},
  }};
  for (const auto& [key, size] : sizes) {
    if (size_or(key, size) != size) {
      not_run(key, join("heads of another size in layers with a window are not run: others have ",
                        size));
    }
  }
}

DecoderConfig Reader::config() {
  refuse_what_is_not_run();
  DecoderConfig config;
  config.architecture = file_.architecture();
  config.layers = size("block_count");
  if (config.layers > static_cast<std::int64_t>(file_.tensors().size())) {
    damaged("block_count", join(config.layers),
            join("more than the file has tensors: ", file_.tensors().size()));
  }
  config.width = size("embedding_length");
  config.hidden = size("feed_forward_length");
  config.context = size("context_length");
  config.heads = size("attention.head_count");
  config.kv_heads = size_or("attention.head_count_kv", config.heads);
  if (config.heads % config.kv_heads != 0) {
    damaged("attention.head_count", join(config.heads),
            join("which the heads of keys, ", config.kv_heads, ", do not divide"));
  }
  const bool is_given = find("attention.key_length") && find("attention.value_length");
  if (!is_given && config.width % config.heads != 0) {
    damaged("embedding_length", join(config.width),
            join("which ", config.heads,
                 " heads do not divide, and the file does not say how "
                 "large a head is"));
  }
  config.key_size = size_or("attention.key_length", config.width / config.heads);
  config.value_size = size_or("attention.value_length", config.width / config.heads);
  config.rope_size = size_or("rope.dimension_count", config.key_size);
  if (config.rope_size % 2 != 0 || config.rope_size > config.key_size) {
    damaged("rope.dimension_count", join(config.rope_size),
            join("not an even count of a head's ", config.key_size, " elements"));
  }
  refuse_other_sizes_in_windows(config);
  config.norm_epsilon = positive("attention.layer_norm_rms_epsilon");
  // 0 stands for the usual scale in some files.
  config.attention_scale = number_if("attention.scale").value_or(0);
  if (config.attention_scale == 0) {
    config.attention_scale = 1 / std::sqrt(static_cast<double>(config.key_size));
  }
  config.ropes.push_back(rope_frequencies(positive_or("rope.freq_base", 10000), config.rope_size,
                                          rope_scaling(config.rope_size)));
  config.attention.resize(static_cast<std::size_t>(config.layers));
  return config;
}

void Reader::set_windows(DecoderConfig& config, const WindowForm& usual) const {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const std::int64_t window = whole_if("attention.sliding_window").value_or(usual.window);
  if (window == 0) return;
  const GgufValue* pattern = find(kPattern);
  if (pattern != nullptr && pattern->is_array()) {
    const auto layers = pattern->to_vector<bool>();
    if (layers.size() != config.attention.size()) {
      damaged(kPattern, join("a list of ", layers.size()),
              join("and there are ", config.layers, " layers"));
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i]) config.attention[i].window = window;
    }
    return;
  }
  const std::int64_t period = whole_if(kPattern).value_or(usual.period);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const bool sees_all = period != 0 && i % period == period - 1;
    if (!sees_all) config.attention[static_cast<std::size_t>(i)].window = window;
  }
}

void Reader::refuse_what_is_left_out(const DecoderConfig& config) const {
  const auto given = [&](std::string_view key) { return number_if(key).value_or(0); };
  for (const auto& [key, cap] : {std::pair{"attn_logit_softcapping", config.attention_softcap},
                                 std::pair{"final_logit_softcapping", config.output_softcap}}) {
    if (cap == 0 && given(key) != 0) not_run(key, "a cap is not known for this architecture");
  }
  const bool has_windows = std::ranges::any_of(
      config.attention, [](const LayerAttention& layer) { return layer.window != 0; });
  const double base = positive_or("rope.freq_base", 10000);
  if (has_windows && config.ropes.size() == 1 && positive_or("rope.freq_base_swa", base) != base) {
    not_run("rope.freq_base_swa",
            "layers with a window that turn otherwise are not known for this architecture");
  }
}

// ---- speeds of turning

RopeScaling Reader::rope_scaling(std::int64_t rope_size) {
  const GgufValue* named = find("rope.scaling.type");
  const std::string type = named == nullptr ? "linear" : named->to<std::string>();
  const std::array<std::string_view, 4> known = {"none", "linear", "yarn", "longrope"};
  if (std::ranges::find(known, type) == known.end()) {
    not_run("rope.scaling.type", "scaling of positions is known as none, linear, yarn, longrope");
  }
  RopeScaling scaling;
  if (type != "none") {
    // The second is the older name. 0 stands for no scaling in some files.
    for (const std::string_view key : {"rope.scaling.factor", "rope.scale_linear"}) {
      if (find(key) == nullptr) continue;
      if (!is_zero(*find(key))) scaling.factor = positive_or(key, 1);
      break;
    }
  }
  const std::int64_t original =
      size_or("rope.scaling.original_context_length", size("context_length"));
  scaling.magnitude = positive_or("rope.scaling.attn_factor", 1);
  if (type == "yarn") {
    scaling.original_context = static_cast<double>(original);
    scaling.beta_fast = positive_or("rope.scaling.yarn_beta_fast", scaling.beta_fast);
    scaling.beta_slow = positive_or("rope.scaling.yarn_beta_slow", scaling.beta_slow);
    scaling.extrapolation = number_if("rope.scaling.yarn_ext_factor").value_or(1);
    if (scaling.extrapolation < 0) scaling.extrapolation = 1;  // says that there is none
    // rope.scaling.yarn_attn_factor is not asked for. Some files have this very magnitude there and
    // some its inverse, by two conventions; the programs that use such files compute it.
    if (scaling.extrapolation != 0) scaling.magnitude *= yarn_magnitude(scaling.factor);
  }
  scaling.divisors = rope_divisors(type, rope_size, original);
  return scaling;
}

std::vector<double> Reader::rope_divisors(std::string_view type, std::int64_t rope_size,
                                          std::int64_t original_context) {
  const auto has = [&](std::string_view name) { return file_.find(name) != nullptr; };
  if (has("rope_freqs.weight")) return factors("rope_freqs.weight", rope_size);
  constexpr std::string_view kLong = "rope_factors_long.weight",
                             kShort = "rope_factors_short.weight";
  if (type != "longrope" && !has(kLong) && !has(kShort)) return {};
  const std::vector<double> far = factors(kLong, rope_size), near = factors(kShort, rope_size);
  const std::int64_t context = context_ == 0 ? size("context_length") : context_;
  return context > original_context ? far : near;
}

std::vector<double> Reader::factors(std::string_view name, std::int64_t rope_size) {
  const Tensor tensor = vector(std::string(name), rope_size / 2);
  std::vector<double> values;
  for (const float value : tensor.to_vector<float>()) {
    if (!(value > 0) || !std::isfinite(value)) {
      throw Error(ErrorKind::BadFile, name_, "tensor ", gguf::Quoted{name}, " has the factor ",
                  value, ", not a finite number above 0");
    }
    values.push_back(static_cast<double>(value));
  }
  return values;
}

// ---- tensors

const QTensor& Reader::tensor(const std::string& name, const Shape& shape) {
  const QTensor& found = weights_.get(name, shape);
  const auto dtype = plain_dtype(found.type());
  if (is_plain(found.type()) && (!dtype || !is_float(*dtype))) {
    throw Error(ErrorKind::Unsupported, name_, "tensor ", gguf::Quoted{name}, " is of type ",
                found.type(), ", and weights that are not floats are not run");
  }
  taken_.insert(name);
  return found;
}

Tensor Reader::vector(const std::string& name, std::int64_t size) {
  return tensor(name, {size}).dequantize();
}

std::optional<Tensor> Reader::vector_if(const std::string& name, std::int64_t size) {
  if (file_.find(name) == nullptr) return std::nullopt;
  return vector(name, size);
}

Linear Reader::linear(const std::string& name, std::int64_t out, std::int64_t in) {
  return {tensor(name + ".weight", {out, in}), vector_if(name + ".bias", out)};
}

namespace {

// Rows of a merged matrix, where they lie.
Linear part(const Linear& whole, std::int64_t first, std::int64_t count) {
  Linear out{whole.weight.some_rows(first, count), std::nullopt};
  if (whole.bias) out.bias = whole.bias->narrow(0, first, count);
  return out;
}

}  // namespace

void Reader::attention(const DecoderConfig& config, const std::string& block, DecoderLayer& layer) {
  const std::int64_t queries = config.heads * config.key_size;
  const std::int64_t keys = config.kv_heads * config.key_size;
  const std::int64_t values = config.kv_heads * config.value_size;
  if (file_.find(block + "attn_qkv.weight") != nullptr) {
    const Linear all = linear(block + "attn_qkv", queries + keys + values, config.width);
    layer.query = part(all, 0, queries);
    layer.key = part(all, queries, keys);
    layer.value = part(all, queries + keys, values);
  } else {
    layer.query = linear(block + "attn_q", queries, config.width);
    layer.key = linear(block + "attn_k", keys, config.width);
    layer.value = linear(block + "attn_v", values, config.width);
  }
  layer.output = linear(block + "attn_output", config.width, config.heads * config.value_size);
}

DecoderLayer Reader::layer(const DecoderConfig& config, const LayerForm& form, std::int64_t index) {
  const std::string block = join("blk.", index, '.');
  DecoderLayer layer;
  layer.attention_norm = vector(block + "attn_norm.weight", config.width);
  attention(config, block, layer);
  if (form.has_head_norms) {
    layer.query_norm = vector(block + "attn_q_norm.weight", config.key_size);
    layer.key_norm = vector(block + "attn_k_norm.weight", config.key_size);
  }
  layer.feed_forward_norm = vector(block + "ffn_norm.weight", config.width);
  if (form.gate_is_in_up) {
    const Linear all = linear(block + "ffn_up", 2 * config.hidden, config.width);
    layer.gate = part(all, 0, config.hidden);
    layer.up = part(all, config.hidden, config.hidden);
  } else {
    layer.gate = linear(block + "ffn_gate", config.hidden, config.width);
    layer.up = linear(block + "ffn_up", config.hidden, config.width);
  }
  layer.down = linear(block + "ffn_down", config.width, config.hidden);
  if (form.has_output_norms) {
    layer.attention_output_norm = vector(block + "post_attention_norm.weight", config.width);
    layer.feed_forward_output_norm = vector(block + "post_ffw_norm.weight", config.width);
  }
  return layer;
}

void Reader::ends(DecoderModel& model) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  const std::string embedding = "token_embd.weight", output = "output.weight";
  DecoderConfig& config = model.config;
  const Shape& shape = weights_.get(embedding).shape();
  config.vocabulary = shape.empty() ? 0 : shape[0];
  model.embedding = tensor(embedding, {config.vocabulary, config.width});
  const GgufValue* tokens = file_.find_value(kTokens);
  const auto words = tokens != nullptr ? static_cast<std::int64_t>(tokens->count())
                                       : size_or("vocab_size", config.vocabulary);
  if (words != config.vocabulary) {
    throw Error(ErrorKind::BadFile, name_, "key ",
                gguf::Quoted{tokens != nullptr ? kTokens : full("vocab_size")}, " has ", words,
                " tokens, and tensor ", gguf::Quoted{embedding}, " has rows for ",
                config.vocabulary);
  }
  model.output_norm = vector("output_norm.weight", config.width);
  model.output = file_.find(output) == nullptr ? model.embedding
                                               : tensor(output, {config.vocabulary, config.width});
}

DecoderModel Reader::model(DecoderConfig config, const LayerForm& form) {
  refuse_what_is_left_out(config);
  DecoderModel model;
  model.config = std::move(config);
  ends(model);
  for (std::int64_t i = 0; i < model.config.layers; ++i) {
    model.layers.push_back(layer(model.config, form, i));
  }
  return model;
}

void Reader::expect_all_taken() const {
  for (const GgufTensorInfo& info : file_.tensors()) {
    // Speeds of turning that some old files have beside the numbers they come from.
    if (info.name.ends_with(".attn_rot_embd.weight")) continue;
    if (!taken_.contains(info.name)) {
      throw Error(ErrorKind::Unsupported, name_, "tensor ", gguf::Quoted{info.name},
                  " is no part of a ", file_.architecture(), " model that is run here");
    }
  }
}

}  // namespace tl::arch
