// The decoder as training computes it: ops over followed parameters, and the file it becomes.
#include <cmath>

#include "model/arch/rope.h"
#include "model/quant_plan.h"
#include "model/rope_tables.h"
#include "tl/base/error.h"
#include "tl/model/gguf_writer.h"
#include "tl/model/train.h"
#include "tl/ops/attention.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/glu.h"
#include "tl/ops/indexing.h"
#include "tl/ops/matmul.h"
#include "tl/ops/norm.h"
#include "tl/ops/rope.h"
#include "tl/runtime/label.h"

namespace tl {

namespace {

constexpr double kDeviation = 0.02;  // of the first weights, as GPT-2 began

// Normal numbers, near enough: sums of twelve uniform ones, which every machine adds alike.
class FirstWeights {
 public:
  explicit FirstWeights(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 42) {}

  float next(double deviation) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) {
      state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
      sum += static_cast<double>(state_ >> 11) / 9007199254740992.0;
    }
    return static_cast<float>(sum * deviation);
  }

 private:
  std::uint64_t state_;
};

// In the dtype that products have.
Tensor for_product(const Tensor& x, TrainPrecision precision) {
  return precision == TrainPrecision::Bf16 ? to_dtype(x, DType::BF16) : x;
}
Tensor product(const Tensor& x, const Tensor& weight, TrainPrecision precision) {
  return linear(x, for_product(weight, precision));
}

// (batch, time, heads * size) as (batch, heads, time, size).
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}).transpose(1, 2);
}

// The file's tensors that a parameter holds: rows of it.
struct StoredPart {
  std::string name;
  std::int64_t first, rows;
};

std::vector<StoredPart> stored_parts(const std::string& name, std::int64_t rows) {
  constexpr std::string_view kBoth = "ffn_gate_up.weight";
  if (!name.ends_with(kBoth)) return {{name, 0, rows}};
  const std::string block = name.substr(0, name.size() - kBoth.size());
  return {{block + "ffn_gate.weight", 0, rows / 2}, {block + "ffn_up.weight", rows / 2, rows / 2}};
}

void add_trained_metadata(GgufWriter& writer, const ModelSizes& s, const QuantRecipe& recipe,
                          const ModelMetadata& metadata) {
  const auto whole = [&](std::string_view key, std::int64_t value) {
    writer.add(key, static_cast<std::uint32_t>(value));
  };
  const auto text = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) writer.add(key, value);
  };
  writer.add("general.architecture", "llama");
  text("general.name", metadata.name);
  text("general.author", metadata.author);
  text("general.license", metadata.license);
  text("general.description", metadata.description);
  writer.add("general.file_type", recipe.file_type);
  writer.add("general.quantization_version", std::uint32_t{2});
  whole("llama.block_count", s.layers);
  whole("llama.context_length", s.context);
  whole("llama.embedding_length", s.width);
  whole("llama.feed_forward_length", s.ffn);
  whole("llama.attention.head_count", s.heads);
  whole("llama.attention.head_count_kv", s.kv_heads);
  writer.add("llama.attention.layer_norm_rms_epsilon", static_cast<float>(s.norm_eps));
  writer.add("llama.rope.freq_base", static_cast<float>(s.rope_base));
  whole("llama.rope.dimension_count", s.width / s.heads);
  whole("llama.vocab_size", s.vocabulary);
}

}  // namespace

// ---- parameters

TrainableModel::TrainableModel(const ModelSizes& sizes, std::uint64_t seed, const Device& device)
    : sizes_(sizes) {
  check_model_sizes(sizes_);
  if (sizes_.vocabulary < 1) {
    throw Error(ErrorKind::BadArgument, "train", "a vocabulary of ", sizes_.vocabulary, " tokens");
  }
  plan();
  fill(seed, device);
  // A file keeps these numbers in 32 bits, and so they are computed with.
  const arch::RopeScaling no_scaling;
  model::RopeTables tables({arch::rope_frequencies(static_cast<float>(sizes_.rope_base),
                                                   sizes_.width / sizes_.heads, no_scaling)},
                           device);
  const model::RopeTable table = tables.get(0, sizes_.context);
  cosines_ = table.cosines;
  sines_ = table.sines;
}

void TrainableModel::plan() {
  const ModelSizes& s = sizes_;
  const std::int64_t keys = s.width / s.heads * s.kv_heads;
  // Every layer adds two results to the stream: smaller ones, so that the sum stays of one size.
  const double into_stream = kDeviation / std::sqrt(2.0 * static_cast<double>(s.layers));
  const auto add = [&](std::string name, const Shape& shape, double deviation) {
    names_.push_back(std::move(name));
    shapes_.push_back(shape);
    deviations_.push_back(deviation);
    return names_.size() - 1;
  };
  embedding_ = add("token_embd.weight", {s.vocabulary, s.width}, kDeviation);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const std::string block = join("blk.", i, '.');
    LayerPlaces at{};
    at.query = add(block + "attn_q.weight", {s.width, s.width}, kDeviation);
    at.key = add(block + "attn_k.weight", {keys, s.width}, kDeviation);
    at.value = add(block + "attn_v.weight", {keys, s.width}, kDeviation);
    at.output = add(block + "attn_output.weight", {s.width, s.width}, into_stream);
    at.gate_up = add(block + "ffn_gate_up.weight", {2 * s.ffn, s.width}, kDeviation);
    at.down = add(block + "ffn_down.weight", {s.width, s.ffn}, into_stream);
    layers_.push_back(at);
  }
  output_ =
      s.tied_embeddings ? embedding_ : add("output.weight", {s.vocabulary, s.width}, kDeviation);
  decayed_ = names_.size();
  for (std::int64_t i = 0; i < s.layers; ++i) {
    LayerPlaces& at = layers_[static_cast<std::size_t>(i)];
    at.attention_norm = add(join("blk.", i, ".attn_norm.weight"), {s.width}, 0);
    at.feed_forward_norm = add(join("blk.", i, ".ffn_norm.weight"), {s.width}, 0);
  }
  output_norm_ = add("output_norm.weight", {s.width}, 0);
}

void TrainableModel::fill(std::uint64_t seed, const Device& device) {
  const LabelScope label("parameters");
  FirstWeights weights(seed);
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    if (deviations_[i] == 0) {
      parameters_.push_back(ones(shapes_[i], DType::F32, device));
      continue;
    }
    std::vector<float> values(static_cast<std::size_t>(element_count("train", shapes_[i])));
    for (float& value : values) value = weights.next(deviations_[i]);
    parameters_.push_back(Tensor::from(values, shapes_[i], device));
  }
}

std::int64_t TrainableModel::parameter_count() const noexcept {
  std::int64_t count = 0;
  for (const Tensor& each : parameters_) count += each.count();
  return count;
}

// ---- what it computes

Tensor TrainableModel::attend(std::span<const Tensor> p, const LayerPlaces& at, const Tensor& x,
                              TrainPrecision precision) const {
  const auto turned = [&](std::size_t weight, std::int64_t heads) {
    const Tensor y = to_dtype(product(x, p[weight], precision), DType::F32);
    return for_product(rope_i(split_heads(y, heads), cosines_, sines_), precision);
  };
  const Tensor q = turned(at.query, sizes_.heads);   // (batch, heads, time, size)
  const Tensor k = turned(at.key, sizes_.kv_heads);  // (batch, kv_heads, time, size)
  const Tensor v = split_heads(product(x, p[at.value], precision), sizes_.kv_heads);
  const Tensor seen = attention(q, k, v, std::nullopt, true);
  return product(reshape(seen.transpose(1, 2), {x.dim(0), x.dim(1), sizes_.width}), p[at.output],
                 precision);
}

Tensor TrainableModel::logits(std::span<const Tensor> p, const Tensor& ids,
                              TrainPrecision precision) const {
  const auto [batch, time] = ids.dims<2>();
  if (p.size() != parameters_.size() || time > sizes_.context) {
    throw Error(ErrorKind::BadArgument, "logits", p.size(), " parameters and ", time,
                " positions, and the model has ", parameters_.size(), " and a context of ",
                sizes_.context);
  }
  const auto normed = [&](const Tensor& x, std::size_t weight) {
    return for_product(rms_norm(x, p[weight], sizes_.norm_eps), precision);
  };
  // The stream itself is F32: small results that are added to it are not rounded away.
  Tensor x = embedding(p[embedding_], ids);  // (batch, time, width)
  for (const LayerPlaces& at : layers_) {
    const Tensor attended = attend(p, at, normed(x, at.attention_norm), precision);
    x = add(x, to_dtype(attended, DType::F32));
    const Tensor both = product(normed(x, at.feed_forward_norm), p[at.gate_up], precision);
    x = add(x, to_dtype(product(swiglu(both), p[at.down], precision), DType::F32));
  }
  const Tensor last = reshape(normed(x, output_norm_), {batch * time, sizes_.width});
  return to_dtype(product(last, p[output_], precision), DType::F32);
}

// ---- the file

void TrainableModel::write(const std::string& path, const QuantRecipe& recipe,
                           const GgufFile& tokenizer, const ModelMetadata& metadata) const {
  constexpr std::string_view kTemplate = "tokenizer.chat_template",
                             kAddsBegin = "tokenizer.ggml.add_bos_token";
  GgufWriter writer;
  add_trained_metadata(writer, sizes_, recipe, metadata);
  // Documents began with that token, so texts do.
  const bool has_begin = tokenizer.find_value("tokenizer.ggml.bos_token_id") != nullptr;
  for (const GgufEntry& entry : tokenizer.metadata()) {
    const bool is_replaced = (entry.key == kTemplate && !metadata.chat_template.empty()) ||
                             (entry.key == kAddsBegin && has_begin);
    if (entry.key.starts_with("tokenizer.") && !is_replaced) writer.add(entry.key, entry.value);
  }
  if (has_begin) writer.add(kAddsBegin, true);
  if (!metadata.chat_template.empty()) writer.add(kTemplate, metadata.chat_template);

  const QuantModel model{.layers = sizes_.layers,
                         .experts = 0,
                         .heads_per_value = sizes_.heads / sizes_.kv_heads,
                         .is_tied = sizes_.tied_embeddings,
                         .is_large = false};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i];
    const bool is_vector = parameter.rank() == 1;
    for (const StoredPart& part : stored_parts(names_[i], parameter.dim(0))) {
      const Tensor rows = parameter.narrow(0, part.first, part.rows);
      const QType type = planned_type(recipe, model, part.name, rows.shape(), QType::F32);
      writer.add_tensor(
          part.name, rows.shape(), type, [rows, is_vector, type](const GgufWriter::Sink& sink) {
            const std::vector<float> values = rows.to_vector<float>();
            const std::int64_t columns = rows.dim(-1);
            const auto width = static_cast<std::size_t>(columns) * sizeof(float);
            const auto read = [&](std::int64_t first, std::int64_t count) {
              return std::as_bytes(std::span(values))
                  .subspan(static_cast<std::size_t>(first) * width,
                           static_cast<std::size_t>(count) * width);
            };
            convert_rows(read, is_vector ? 1 : rows.dim(0), columns, QType::F32, type, sink);
          });
    }
  }
  writer.write(path);
}

}  // namespace tl
