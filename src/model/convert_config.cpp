#include "model/convert_config.h"

#include <array>
#include <cmath>
#include <numbers>

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::saved {

namespace {

constexpr std::array<Architecture, 9> kArchitectures = {{
    {"LlamaForCausalLM", Family::Llama, "llama"},
    {"LLaMAForCausalLM", Family::Llama, "llama"},
    {"MistralForCausalLM", Family::Llama, "llama"},
    {"Qwen2ForCausalLM", Family::Qwen2, "qwen2"},
    {"Qwen3ForCausalLM", Family::Qwen3, "qwen3"},
    {"Gemma2ForCausalLM", Family::Gemma2, "gemma2"},
    {"Gemma3ForCausalLM", Family::Gemma3, "gemma3"},
    {"Gemma3ForConditionalGeneration", Family::Gemma3, "gemma3"},  // its text part
    {"Phi3ForCausalLM", Family::Phi3, "phi3"},
}};

Architecture find_architecture(const Fields& config) {
  std::string names;
  for (const Architecture& each : kArchitectures) {
    names += names.empty() ? "" : ", ";
    names += each.saved;
  }
  const Json* list = config.find("architectures");
  if (list == nullptr || !list->is_array() || list->size() != 1 || !list->front().is_string()) {
    config.fail("key 'architectures' is ", list == nullptr ? "not there" : shown(*list),
                ", not a list of one name; known are ", names);
  }
  const auto& saved = list->front().get_ref<const std::string&>();
  for (const Architecture& each : kArchitectures) {
    if (each.saved == saved) return each;
  }
  throw Error(ErrorKind::Unsupported, config.where(), "models of the architecture '", saved,
              "' cannot be converted; known are ", names);
}

// The text part of a model that also sees: its keys count where both have one.
Json merged(const std::string& path, Json json) {
  if (const auto text = Fields(path, json).object("text_config")) {
    const Json part = json["text_config"];
    json.update(part);
  }
  return json;
}

// Adds keys under the architecture's name.
class Keys {
 public:
  explicit Keys(ModelConfig& config) : config_(config) {}

  void add(std::string_view key, GgufValue value) {
    config_.metadata.emplace_back(join(config_.architecture.name, ".", key), std::move(value));
  }
  void whole(std::string_view key, std::uint32_t value) { add(key, GgufValue(value)); }
  void number(std::string_view key, double value) {
    add(key, GgufValue(static_cast<float>(value)));
  }

 private:
  ModelConfig& config_;
};

// ---- rotation of positions

// What the file says, wherever it says it: at the top, under rope_scaling, or (since version 5 of
// the library that writes these files) under rope_parameters, which may have one part for each kind
// of attention.
struct Rope {
  std::string type;  // empty: positions are not scaled
  std::optional<double> theta, local_theta;
  double partial = 1;  // which part of a head is rotated
  std::optional<std::uint32_t> original_context;
  Json scaling = Json::object();  // the keys that belong to the type
  std::string where;
};

Rope read_rope(const Fields& config) {
  Rope rope;
  rope.where = config.where();
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    const auto found = config.object(key);
    if (!found) continue;
    rope.where = found->where();
    rope.scaling = *config.find(key);
    if (const auto local = found->object("sliding_attention")) {
      rope.local_theta = local->number_if("rope_theta");
    }
    if (const auto full = found->object("full_attention")) {
      rope.where = full->where();
      rope.scaling = *found->find("full_attention");
    }
    break;
  }
  const Fields scaling(rope.where, rope.scaling);
  rope.type = scaling.text_if("rope_type").value_or(scaling.text_if("type").value_or(""));
  if (rope.type == "default") rope.type.clear();
  rope.theta = scaling.number_if("rope_theta");
  if (!rope.theta) rope.theta = config.number_if("rope_theta");
  if (!rope.local_theta) rope.local_theta = config.number_if("rope_local_base_freq");
  for (const auto& theta : {rope.theta, rope.local_theta}) {
    if (theta && !(*theta > 0)) scaling.fail("the base of rotation is ", *theta, ", not above 0");
  }
  rope.partial = scaling.number_if("partial_rotary_factor")
                     .value_or(config.number_if("partial_rotary_factor").value_or(1.0));
  rope.original_context = scaling.whole_if("original_max_position_embeddings");
  if (!rope.original_context) {
    rope.original_context = config.whole_if("original_max_position_embeddings");
  }
  return rope;
}

double positive(const Fields& fields, std::string_view key, std::optional<double> otherwise = {}) {
  const auto value = fields.number_if(key);
  if (!value && otherwise) return *otherwise;
  if (!value) fields.missing(key);
  if (!(*value > 0)) fields.fail("key '", key, "' is ", *value, ", not above 0");
  return *value;
}

// Llama 3.1 and later: long waves are stretched by `factor`, short ones are kept, those between get
// something between. Computed in f32, as the files that are around were.
std::vector<float> llama3_factors(const Rope& rope, std::uint32_t head_dim) {
  const Fields fields(rope.where, rope.scaling);
  const auto factor = static_cast<float>(positive(fields, "factor", 8.0));
  const auto low = static_cast<float>(positive(fields, "low_freq_factor", 1.0));
  const auto high = static_cast<float>(positive(fields, "high_freq_factor", 4.0));
  const auto context = static_cast<float>(rope.original_context.value_or(8192));
  if (low == high) fields.fail("low_freq_factor and high_freq_factor are both ", low);
  const double base = rope.theta.value_or(10000.0);
  const float longest = context / low, shortest = context / high;
  std::vector<float> factors;
  for (std::uint32_t i = 0; i < head_dim; i += 2) {
    const float part = static_cast<float>(i) / static_cast<float>(head_dim);
    const auto power = static_cast<float>(std::pow(base, static_cast<double>(part)));
    const float wave = static_cast<float>(2 * std::numbers::pi) / (1.0f / power);
    if (wave < shortest) {
      factors.push_back(1);
    } else if (wave > longest) {
      factors.push_back(factor);
    } else {
      const float smooth = (context / wave - low) / (high - low);
      factors.push_back(1 / ((1 - smooth) / factor + smooth));
    }
  }
  return factors;
}

void add_rope(const Fields& config, ModelConfig& model, std::vector<std::string>& notes) {
  const Rope rope = read_rope(config);
  const Fields scaling(rope.where, rope.scaling);
  const bool is_llama = model.architecture.family == Family::Llama;
  const bool is_gemma3 = model.architecture.family == Family::Gemma3;
  Keys keys(model);
  if (rope.type == "linear") {
    keys.add("rope.scaling.type", "linear");
    keys.number("rope.scaling.factor", positive(scaling, "factor"));
  } else if (rope.type == "yarn") {
    keys.add("rope.scaling.type", "yarn");
    keys.number("rope.scaling.factor", positive(scaling, "factor"));
    if (!rope.original_context) scaling.missing("original_max_position_embeddings");
    keys.whole("rope.scaling.original_context_length", *rope.original_context);
    const auto optional = [&](std::string_view from, std::string_view to) {
      const auto value = scaling.number_if(from);
      if (value) keys.number(to, *value);
      return value.has_value();
    };
    optional("extrapolation_factor", "rope.scaling.yarn_ext_factor");
    if (!optional("attention_factor", "rope.scaling.yarn_attn_factor")) {
      optional("attn_factor", "rope.scaling.yarn_attn_factor");
    }
    optional("beta_fast", "rope.scaling.yarn_beta_fast");
    optional("beta_slow", "rope.scaling.yarn_beta_slow");
  } else if (rope.type == "llama3" && is_llama) {
    model.factors.emplace_back("rope_freqs.weight", llama3_factors(rope, model.head_dim));
  } else if (rope.type == "dynamic") {
    notes.push_back(join(rope.where,
                         ": scaling of positions of type 'dynamic' is left out: GGUF has "
                         "no key for it; texts longer than the context will suffer"));
  } else if (!rope.type.empty()) {
    throw Error(ErrorKind::Unsupported, rope.where, "scaling of positions of type '", rope.type,
                "' is not known for ", model.architecture.name);
  }
  keys.number("rope.freq_base", rope.theta.value_or(is_gemma3 ? 1e6 : 1e4));
  if (rope.local_theta || is_gemma3) {
    keys.number("rope.freq_base_swa", rope.local_theta.value_or(1e4));
  }
}

// Phi 3 has factors for short and for long texts.
void add_phi3_rope(const Fields& config, ModelConfig& model) {
  const Rope rope = read_rope(config);
  const Fields scaling(rope.where, rope.scaling);
  const std::uint32_t context = config.whole("max_position_embeddings");
  if (!rope.original_context) config.missing("original_max_position_embeddings");
  if (*rope.original_context < 2) config.fail("original_max_position_embeddings is too small");
  if (!(rope.partial > 0 && rope.partial <= 1)) {
    config.fail("key 'partial_rotary_factor' is ", rope.partial, ", not in 0 to 1");
  }
  const std::uint32_t rotated =
      static_cast<std::uint32_t>(rope.partial * static_cast<double>(model.hidden)) / model.heads;
  if (rotated == 0 || rotated % 2 != 0) {
    config.fail("of a head ", rotated, " numbers would be rotated; it must be an even count");
  }
  Keys keys(model);
  keys.whole("rope.scaling.original_context_length", *rope.original_context);
  keys.whole("rope.dimension_count", rotated);
  if (!rope.theta) config.missing("rope_theta");
  keys.number("rope.freq_base", *rope.theta);
  if (rope.type.empty()) return;

  const double scale = static_cast<double>(context) / *rope.original_context;
  double attention = 1;
  if (rope.type == "su" || rope.type == "longrope") {
    if (scale > 1) attention = std::sqrt(1 + std::log(scale) / std::log(*rope.original_context));
  } else if (rope.type == "yarn") {
    if (scale > 1) attention = 0.1 * std::log(scale) + 1.0;
  } else {
    throw Error(ErrorKind::Unsupported, rope.where, "scaling of positions of type '", rope.type,
                "' is not known for phi3");
  }
  keys.number("rope.scaling.attn_factor", attention);
  for (const auto& [key, tensor] : {std::pair{"long_factor", "rope_factors_long.weight"},
                                    std::pair{"short_factor", "rope_factors_short.weight"}}) {
    const std::vector<double> values = scaling.numbers(key);
    if (values.empty()) scaling.missing(key);
    if (values.size() * 2 != rotated) {
      scaling.fail("key '", key, "' has ", values.size(), " factors, and ", rotated,
                   " numbers of a head are rotated, two by each");
    }
    std::vector<float> factors;
    for (const double value : values) factors.push_back(static_cast<float>(value));
    model.factors.emplace_back(tensor, std::move(factors));
  }
}

// ---- sizes

std::uint32_t above_zero(const Fields& config, std::string_view key,
                         std::optional<std::uint32_t> otherwise = {}) {
  auto value = config.whole_if(key);
  if (!value) value = otherwise;
  if (!value) config.missing(key);
  if (*value == 0) config.fail("key '", key, "' is 0");
  return *value;
}

void read_sizes(const Fields& config, ModelConfig& model) {
  const Family family = model.architecture.family;
  const bool is_gemma3 = family == Family::Gemma3;  // whose files leave out what is usual
  const auto usual = [&](std::uint32_t value) {
    return is_gemma3 ? std::optional(value) : std::nullopt;
  };
  model.layers = above_zero(config, "num_hidden_layers");
  model.hidden = above_zero(config, "hidden_size");
  model.feed_forward = above_zero(config, "intermediate_size");
  model.heads = above_zero(config, "num_attention_heads", usual(8));
  model.kv_heads =
      above_zero(config, "num_key_value_heads", is_gemma3 ? 4 : model.heads);  // one each
  if (model.heads % model.kv_heads != 0) {
    config.fail("num_attention_heads is ", model.heads, ", which num_key_value_heads, ",
                model.kv_heads, ", does not divide");
  }
  const bool needs_head_dim = family == Family::Qwen3 || family == Family::Gemma2;
  if (config.has("head_dim") || needs_head_dim || is_gemma3) {
    model.head_dim = above_zero(config, "head_dim", usual(256));
  } else {
    if (model.hidden % model.heads != 0) {
      config.fail("hidden_size is ", model.hidden, ", which num_attention_heads, ", model.heads,
                  ", does not divide, and there is no key 'head_dim'");
    }
    model.head_dim = model.hidden / model.heads;
  }
  constexpr std::uint64_t kMostWidth = 1u << 30;  // so that no size below overflows
  if (std::uint64_t{model.heads} * model.head_dim > kMostWidth) {
    config.fail(model.heads, " heads of ", model.head_dim, " numbers are more than ", kMostWidth);
  }
  if (model.head_dim % 2 != 0) config.fail("a head has ", model.head_dim, " numbers, an odd count");
  if (is_gemma3) {
    model.vocab = config.whole_if("vocab_size");
  } else {
    model.vocab = above_zero(config, "vocab_size");
  }
  const bool is_gemma = is_gemma3 || family == Family::Gemma2;
  model.is_tied = config.flag_if("tie_word_embeddings").value_or(is_gemma);
  if (family == Family::Gemma2 && !model.is_tied) {
    throw Error(ErrorKind::Unsupported, config.where(),
                "tie_word_embeddings is false, and gemma2 has no output of its own in GGUF");
  }
}

void add_keys(const Fields& config, ModelConfig& model, std::vector<std::string>& notes) {
  const Family family = model.architecture.family;
  const bool is_gemma3 = family == Family::Gemma3;
  Keys keys(model);
  keys.whole("block_count", model.layers);
  keys.whole("context_length", is_gemma3 ? above_zero(config, "max_position_embeddings", 131072u)
                                         : above_zero(config, "max_position_embeddings"));
  keys.whole("embedding_length", model.hidden);
  keys.whole("feed_forward_length", model.feed_forward);
  keys.whole("attention.head_count", model.heads);
  keys.whole("attention.head_count_kv", model.kv_heads);
  keys.number("attention.layer_norm_rms_epsilon", is_gemma3 ? positive(config, "rms_norm_eps", 1e-6)
                                                            : positive(config, "rms_norm_eps"));
  if (family != Family::Phi3 && (config.has("head_dim") || is_gemma3)) {
    keys.whole("attention.key_length", model.head_dim);
    keys.whole("attention.value_length", model.head_dim);
  }
  if (family == Family::Phi3) {
    add_phi3_rope(config, model);
  } else if (family != Family::Gemma2) {  // which has the same rotation in all its sizes
    add_rope(config, model, notes);
  }
  switch (family) {
    case Family::Llama:
      keys.whole("vocab_size", *model.vocab);
      keys.whole("rope.dimension_count", model.head_dim);
      break;
    case Family::Gemma2:
      keys.number("attn_logit_softcapping", positive(config, "attn_logit_softcapping"));
      keys.number("final_logit_softcapping", positive(config, "final_logit_softcapping"));
      keys.whole("attention.sliding_window", above_zero(config, "sliding_window"));
      break;
    case Family::Gemma3:
      if (config.has("attn_logit_softcapping")) {
        throw Error(ErrorKind::Unsupported, config.where(),
                    "attn_logit_softcapping is set, which gemma3 in GGUF has not");
      }
      if (config.has("final_logit_softcapping")) {
        keys.number("final_logit_softcapping", positive(config, "final_logit_softcapping"));
      }
      if (config.whole_if("sliding_window_pattern") != 1u) {
        keys.whole("attention.sliding_window", above_zero(config, "sliding_window"));
      }
      break;
    case Family::Phi3:
      keys.whole("attention.sliding_window", config.whole_if("sliding_window").value_or(0));
      break;
    default:
      break;
  }
  const bool slides = family == Family::Qwen2 || family == Family::Qwen3
                          ? config.flag_if("use_sliding_window").value_or(false)
                          : family == Family::Llama && config.has("sliding_window");
  if (slides) {
    notes.push_back(join(config.where(), ": the sliding window of ",
                         shown(*config.find("sliding_window")), " tokens is left out: readers of ",
                         model.architecture.name, " in GGUF attend to all tokens"));
  }
}

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

ModelConfig read_config(const Checkpoint& checkpoint, std::vector<std::string>& notes) {
  const auto path = checkpoint.file("config.json");
  if (!path) throw Error(ErrorKind::BadFile, checkpoint.folder(), "there is no config.json");
  ModelConfig model;
  model.file = *path;
  model.json = merged(*path, read_json(*path));
  const Fields config(*path, model.json);
  model.architecture = find_architecture(config);
  if (const auto quantised = config.object("quantization_config")) {
    throw Error(
        ErrorKind::Unsupported, *path, "the weights are quantised (quant_method ",
        quantised->has("quant_method") ? shown(*quantised->find("quant_method")) : "unnamed",
        "); start from the checkpoint that they were made of");
  }
  read_sizes(config, model);
  add_keys(config, model, notes);
  return model;
}

}  // namespace tl::saved
