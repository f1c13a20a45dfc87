#include "model/gpu/decode_program.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "tl/kernels/decode.h"
#include "tl/runtime/fault.h"
#include "tl/runtime/label.h"
#include "tl/runtime/stream.h"

namespace tl::gpu {

namespace {

using kernels::DecodeAttention;
using kernels::DecodeKind;
using kernels::DecodeLinear;
using kernels::DecodeOutput;
using kernels::DecodePhase;
using kernels::Index;

const float* address(const Tensor& x) { return x.read<float>(x.device().stream()); }
const float* address(const std::optional<Tensor>& x) { return x ? address(*x) : nullptr; }
const kernels::Bits8* address(const QTensor& x) {
  return reinterpret_cast<const kernels::Bits8*>(x.memory().data(x.device().stream()));
}

}  // namespace

DecodeProgram::DecodeProgram(const arch::DecoderModel& model, const KvShape& shape)
    : model_(model),
      shape_(shape),
      device_(model.embedding.device()),
      plan_(device_, model.config.heads),
      tables_(model.config.ropes.size()) {}

std::unique_ptr<DecodeProgram> DecodeProgram::make(const arch::DecoderModel& model,
                                                   const KvShape& shape) {
  if (!DecodePlan::is_possible(model.embedding.device())) return nullptr;
  std::unique_ptr<DecodeProgram> program(new DecodeProgram(model, shape));
  if (!program->add_phases()) return nullptr;
  program->plan_.finish();
  return program;
}

float* DecodeProgram::room(std::int64_t count) {
  auto* at = room_.write<float>(device_.stream()) + room_taken_;
  room_taken_ += (count + 63) / 64 * 64;
  return at;
}

bool DecodeProgram::add_linear(const DecodeLinear& linear,
                               std::initializer_list<Destination> weights) {
  std::array<DecodePlan::Matrix, kernels::kDecodeWeights> matrices{};
  std::size_t count = 0;
  for (const auto& [layer, out] : weights) {
    matrices[count++] = {&layer->weight, address(layer->bias), out};
  }
  const auto product = plan_.cut(linear, std::span(matrices).first(count));
  if (product) plan_.add(*product);
  return product.has_value();
}

void DecodeProgram::add_attention(std::int64_t layer, const DecodeAttention& addresses) {
  const arch::DecoderLayer& weights = model_.layers[static_cast<std::size_t>(layer)];
  DecodePhase phase = plan_.attention_of(model_.config, shape_, layer);
  DecodeAttention& a = phase.attention;
  a.q = addresses.q;
  a.k = addresses.k;
  a.v = addresses.v;
  a.out = addresses.out;
  a.partial = addresses.partial;
  a.q_norm = address(weights.query_norm);
  a.k_norm = address(weights.key_norm);
  attentions_.push_back(plan_.phases().size());
  plan_.add(phase);
}

bool DecodeProgram::add_phases() {
  const DecoderConfig& config = model_.config;
  for (const LayerAttention& layer : config.attention) {
    if (layer.window == 0) continue;
    if (window_ != 0 && window_ != layer.window) return false;  // one size of windows
    window_ = layer.window;
  }
  const int embedding_format = decode_format(model_.embedding);
  if (!plan_.fits(config) || embedding_format == kNoFormat || config.width % 32 != 0 ||
      config.width > kernels::kDecodeWidth) {
    return false;
  }
  const std::int64_t queries = config.heads * config.key_size;
  const std::int64_t keys = config.kv_heads * config.key_size;
  const std::int64_t values = config.kv_heads * config.value_size;
  const std::int64_t seen = config.heads * config.value_size;
  const std::int64_t partial = plan_.partial_floats(config);
  {
    const LabelScope label("decode step");
    const std::int64_t all =
        4 * config.width + queries + keys + values + seen + config.hidden + partial + 64 * 10;
    room_ = Tensor::uninitialized({all}, DType::F32, device_);
  }
  float* x = room(config.width);
  float* other_x = room(config.width);
  float* attended = room(config.width);
  float* fed = room(config.width);
  float* q = room(queries);
  float* k = room(keys);
  float* v = room(values);
  float* found = room(seen);
  float* hidden = room(config.hidden);
  float* parts = room(partial);

  DecodePhase embed{};
  embed.kind = DecodeKind::Embed;
  embed.embed = {.table = address(model_.embedding),
                 .row_bytes = static_cast<Index>(model_.embedding.row_bytes()),
                 .x = x,
                 .width = static_cast<int>(config.width),
                 .format = embedding_format,
                 .rows = static_cast<int>(config.vocabulary),
                 .scale = static_cast<float>(config.embedding_scale)};
  plan_.add(embed);

  // What is still to be added to x, after a norm of its own, when a product next reads it.
  const float* added = nullptr;
  const float* added_norm = nullptr;
  const auto from_stream = [&](const Tensor& norm) {
    DecodeLinear linear{};
    linear.x = x;
    linear.norm = address(norm);
    linear.eps = static_cast<float>(config.norm_epsilon);
    if (added != nullptr) {
      linear.added = added;
      linear.added_norm = added_norm;
      linear.kept = other_x;
      std::swap(x, other_x);
      added = nullptr;
    }
    return linear;
  };
  // Adds the product to x, or leaves it in `aside` until it has its norm.
  const auto to_stream = [&](const float* input, const arch::Linear& weight,
                             const std::optional<Tensor>& norm, float* aside) {
    DecodeLinear linear{};
    linear.x = input;
    linear.output = norm ? DecodeOutput::Store : DecodeOutput::Add;
    if (norm) {
      added = aside;
      added_norm = address(norm);
    }
    return add_linear(linear, {{&weight, norm ? aside : x}});
  };
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const arch::DecoderLayer& layer = model_.layers[static_cast<std::size_t>(i)];
    if (!add_linear(from_stream(layer.attention_norm),
                    {{&layer.query, q}, {&layer.key, k}, {&layer.value, v}})) {
      return false;
    }
    DecodeAttention a{};
    a.q = q;
    a.k = k;
    a.v = v;
    a.out = found;
    a.partial = parts;
    add_attention(i, a);
    if (!to_stream(found, layer.output, layer.attention_output_norm, attended)) return false;
    DecodeLinear gated = from_stream(layer.feed_forward_norm);
    gated.output = DecodeOutput::Gated;
    gated.is_gelu = config.activation == GatedActivation::GeluTanh ? 1 : 0;
    if (!add_linear(gated, {{&layer.gate, hidden}, {&layer.up, hidden}})) return false;
    if (!to_stream(hidden, layer.down, layer.feed_forward_output_norm, fed)) return false;
  }
  DecodeLinear last = from_stream(model_.output_norm);
  last.softcap = static_cast<float>(config.output_softcap);
  const arch::Linear output{model_.output, std::nullopt};
  return add_linear(last, {{&output, nullptr}});
}

void DecodeProgram::refresh(std::int64_t positions, model::RopeTables& ropes) {
  bool changed = program_.empty();
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].cosines.rank() == 2 && tables_[i].cosines.shape()[0] >= positions) continue;
    tables_[i] = ropes.get(static_cast<int>(i), positions);
    changed = true;
  }
  if (!changed) return;
  std::vector<DecodePhase>& phases = plan_.phases();
  for (std::size_t i = 0; i < attentions_.size(); ++i) {
    DecodeAttention& a = phases[attentions_[i]].attention;
    const auto rope = static_cast<std::size_t>(model_.config.attention[i].rope);
    a.cosines = address(tables_[rope].cosines);
    a.sines = address(tables_[rope].sines);
    a.arrived = plan_.arrived();
  }
  const LabelScope label("decode step");
  program_ =
      Tensor::from_bytes(std::as_bytes(std::span(phases)), DType::U8,
                         {static_cast<std::int64_t>(phases.size() * sizeof(DecodePhase))}, device_);
}

Tensor DecodeProgram::step(const Tensor& token, KvCache& cache, model::RopeTables& ropes) {
  const Stream& stream = device_.stream();
  const std::lock_guard lock(mutex_);
  refresh(cache.length() + 1, ropes);
  Tensor logits = Tensor::uninitialized({1, model_.config.vocabulary}, DType::F32, device_);
  const Tensor& table = cache.address_table(stream);
  kernels::DecodeStep step{};
  step.phases = reinterpret_cast<const DecodePhase*>(program_.read(stream));
  step.token = reinterpret_cast<const kernels::Bits32*>(token.read(stream));
  step.blocks = reinterpret_cast<kernels::Bits8* const*>(table.read(stream));
  step.logits = logits.write<float>(stream);
  step.fault = device_.fault_word();
  step.fault_tag = fault_tag("forward");
  step.position = cache.length();
  step.seen = plan_.sight(model_.config, shape_, cache.length(), 0);
  step.seen_near = plan_.sight(model_.config, shape_, cache.length(), window_);
  plan_.launch(step);
  return logits;
}

}  // namespace tl::gpu
