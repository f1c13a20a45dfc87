#include "tl/model/decoder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model/arch/arch.h"
#include "model/cached_attention.h"
#include "model/gpu/cached_attention.h"
#include "model/gpu/decode_program.h"
#include "model/rope_tables.h"
#include "ops/gated.h"
#include "tl/base/error.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/norm.h"
#include "tl/ops/unary.h"
#include "tl/runtime/label.h"
#include "tl/runtime/stream.h"

namespace tl {

namespace {

constexpr std::string_view kOp = "forward";

KvShape kv_shape(const DecoderConfig& config, KvType type) {
  return {config.layers, config.kv_heads, config.key_size, config.value_size, type};
}

std::int64_t context_of(const DecoderConfig& config, const DecoderOptions& options) {
  if (options.context < 0 || options.chunk < 1) {
    throw Error(ErrorKind::BadArgument, "Decoder", "a context of ", options.context,
                " positions in chunks of ", options.chunk, " tokens");
  }
  return options.context == 0 ? config.context : options.context;
}

Tensor with_bias(const Tensor& y, const std::optional<Tensor>& bias) {
  return bias ? add(y, *bias) : y;
}

Tensor apply(const arch::Linear& layer, const Tensor& x) {
  return with_bias(linear(x, layer.weight), layer.bias);
}

template <std::size_t kCount>
std::array<Tensor, kCount> apply(const std::array<const arch::Linear*, kCount>& layers,
                                 const Tensor& x) {
  std::array<const QTensor*, kCount> weights{};
  for (std::size_t i = 0; i < kCount; ++i) weights[i] = &layers[i]->weight;
  std::vector<Tensor> products = linear(x, weights);
  std::array<Tensor, kCount> results;
  for (std::size_t i = 0; i < kCount; ++i) {
    results[i] = with_bias(products[i], layers[i]->bias);
  }
  return results;
}

Tensor softcapped(const Tensor& x, double cap) {
  return cap == 0 ? x : mul(tanh(div(x, cap)), cap);
}

// u32 (n) on the device.
Tensor checked_tokens(std::span<const TokenId> tokens, std::int64_t vocabulary,
                      const Device& device) {
  std::vector<std::uint32_t> ids;
  ids.reserve(tokens.size());
  for (const TokenId token : tokens) {
    if (token < 0 || token >= vocabulary) {
      throw Error(ErrorKind::InvalidIndex, kOp, "token ", token, " is not one of the ", vocabulary,
                  " of the vocabulary");
    }
    ids.push_back(static_cast<std::uint32_t>(token));
  }
  return Tensor::from(ids, device);
}

// The tokens of one pass, at most a chunk.
struct Batch {
  std::int64_t first = 0;  // of all tokens
  std::int64_t count = 0;
  std::vector<model::SequenceRows> sequences;
  std::vector<std::int64_t> logit_rows;  // of this batch
  std::int64_t positions = 0;            // of the longest sequence
  std::optional<gpu::AttentionBatch> on_gpu;
};

}  // namespace

struct DecoderState {
  DecoderState(arch::DecoderModel read, const DecoderOptions& chosen)
      : model(std::move(read)),
        options(chosen),
        context(context_of(model.config, chosen)),
        device(model.embedding.device()),
        ropes(model.config.ropes, device),
        program(device.is_gpu()
                    ? gpu::DecodeProgram::make(model, kv_shape(model.config, chosen.cache))
                    : nullptr) {}

  Tensor run(const Batch& batch, const Tensor& tokens, bool to_logits) const;

  arch::DecoderModel model;
  DecoderOptions options;
  std::int64_t context;
  Device device;
  mutable model::RopeTables ropes;
  std::unique_ptr<gpu::DecodeProgram> program;  // for one token at a time, where there is one

 private:
  Tensor attend(std::int64_t index, const Batch& batch, const Tensor& x) const;
  Tensor feed_forward(const arch::DecoderLayer& layer, const Tensor& x) const;
  Tensor per_head(const Tensor& x, const std::optional<Tensor>& weight, std::int64_t heads) const;
};

Tensor DecoderState::per_head(const Tensor& x, const std::optional<Tensor>& weight,
                              std::int64_t heads) const {
  if (!weight) return x;
  const Tensor rows = reshape(x, {x.shape()[0] * heads, model.config.key_size});
  return reshape(rms_norm(rows, weight, model.config.norm_epsilon), x.shape());
}

Tensor DecoderState::attend(std::int64_t index, const Batch& batch, const Tensor& x) const {
  const DecoderConfig& config = model.config;
  const arch::DecoderLayer& layer = model.layers[static_cast<std::size_t>(index)];
  auto [q, k, v] = apply<3>({&layer.query, &layer.key, &layer.value}, x);
  q = per_head(q, layer.query_norm, config.heads);
  k = per_head(k, layer.key_norm, config.kv_heads);
  const model::RopeTable table =
      ropes.get(config.attention[static_cast<std::size_t>(index)].rope, batch.positions);
  const model::LayerCache cache{.config = &config,
                                .shape = kv_shape(config, options.cache),
                                .layer = index,
                                .cosines = &table.cosines,
                                .sines = &table.sines};
  Tensor out =
      Tensor::uninitialized({batch.count, config.heads * config.value_size}, DType::F32, device);
  if (batch.on_gpu) {
    gpu::cached_attention(cache, *batch.on_gpu, q, k, v, out);
  } else {
    cpu::cached_attention(cache, batch.sequences, q, k, v, out);
  }
  return apply(layer.output, out);
}

Tensor DecoderState::feed_forward(const arch::DecoderLayer& layer, const Tensor& x) const {
  const UnaryOp activation =
      model.config.activation == GatedActivation::Silu ? UnaryOp::Silu : UnaryOp::Gelu;
  auto [gate, up] = apply<2>({&layer.gate, &layer.up}, x);
  // Not kept while the next product is made.
  gate = ops::gated(activation, std::move(gate), std::exchange(up, Tensor()));
  return apply(layer.down, gate);
}

Tensor DecoderState::run(const Batch& batch, const Tensor& tokens, bool to_logits) const {
  const DecoderConfig& config = model.config;
  const double eps = config.norm_epsilon;
  Tensor x = embedding(model.embedding, tokens.narrow(0, batch.first, batch.count));
  if (config.embedding_scale != 1) x = mul(x, config.embedding_scale);
  const auto normed = [&](const Tensor& y, const std::optional<Tensor>& weight) {
    return weight ? rms_norm(y, weight, eps) : y;
  };
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const arch::DecoderLayer& layer = model.layers[static_cast<std::size_t>(i)];
    // No name for what is in between, which would keep it while the largest tensors are made.
    x = add(x, normed(attend(i, batch, rms_norm(x, layer.attention_norm, eps)),
                      layer.attention_output_norm));
    // After the last attention only the rows that are asked for matter.
    if (i + 1 == config.layers && std::ssize(batch.logit_rows) < batch.count) {
      if (batch.logit_rows.empty()) return {};
      x = index_select(x, 0, Tensor::from(batch.logit_rows, device));
    }
    x = add(x, normed(feed_forward(layer, rms_norm(x, layer.feed_forward_norm, eps)),
                      layer.feed_forward_output_norm));
  }
  x = rms_norm(x, model.output_norm, eps);
  return to_logits ? softcapped(linear(x, model.output), config.output_softcap) : x;
}

Decoder::Decoder(const GgufFile& file, const ModelWeights& weights, const DecoderOptions& options)
    : state_(std::make_shared<DecoderState>(arch::read_model(file, weights, options.context),
                                            options)) {
  new_cache();  // throws where the heads do not fit the type of the cache
}

const DecoderConfig& Decoder::config() const noexcept { return state_->model.config; }
const DecoderOptions& Decoder::options() const noexcept { return state_->options; }
Device Decoder::device() const { return state_->device; }
std::int64_t Decoder::context() const noexcept { return state_->context; }

KvCache Decoder::new_cache() const {
  return {state_->device, kv_shape(config(), options().cache), state_->context};
}

Tensor Decoder::forward(std::span<const TokenId> tokens, KvCache& cache, LogitRows rows) const {
  return forward(checked_tokens(tokens, config().vocabulary, device()), cache, rows);
}

Tensor Decoder::hidden(std::span<const TokenId> tokens, KvCache& cache) const {
  const SequencePart part{&cache, std::ssize(tokens), LogitRows::All};
  return compute(std::span(&part, 1), checked_tokens(tokens, config().vocabulary, device()), false);
}

Tensor Decoder::forward(const Tensor& tokens, KvCache& cache, LogitRows rows) const {
  const SequencePart part{&cache, tokens.count(), rows};
  return forward(std::span(&part, 1), tokens);
}

Tensor Decoder::forward(std::span<const SequencePart> parts, const Tensor& tokens) const {
  return compute(parts, tokens, true);
}

Tensor Decoder::compute(std::span<const SequencePart> parts, const Tensor& tokens,
                        bool to_logits) const {
  const DecoderState& state = *state_;
  std::int64_t total = 0;
  std::set<const KvCache*> seen;
  for (const SequencePart& part : parts) {
    if (part.cache == nullptr || part.cache->shape() != kv_shape(config(), options().cache)) {
      throw Error(ErrorKind::BadArgument, kOp, "the cache is not one of this model");
    }
    if (!seen.insert(part.cache).second) {
      throw Error(ErrorKind::BadArgument, kOp, "one cache came twice");
    }
    if (part.count < 1) throw Error(ErrorKind::BadArgument, kOp, "no tokens");
    total += part.count;
  }
  if (tokens.dtype() != DType::U32 || tokens.rank() != 1 || tokens.count() != total || total == 0) {
    throw Error(ErrorKind::BadArgument, kOp, "tokens of shape ", tokens.shape(), " and dtype ",
                tokens.dtype(), " where (", total, ") of u32 are needed");
  }
  if (tokens.location() != state.device.location()) {
    throw Error(ErrorKind::WrongDevice, kOp, "tokens are on ", tokens.location(), ", the model on ",
                state.device.location());
  }

  const Stream& stream = state.device.stream();
  std::vector<std::int64_t> lengths;
  for (const SequencePart& part : parts) lengths.push_back(part.cache->length());
  const auto undo = [&] {
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].cache->truncate(lengths[i]);
  };
  std::vector<Tensor> logits;
  try {
    for (const SequencePart& part : parts) part.cache->extend(part.count, stream);
    if (state.program && total == 1 && to_logits) {
      Tensor next = state.program->step(tokens, *parts[0].cache, state.ropes);
      parts[0].cache->commit(1);
      return next;
    }
    Batch batch;
    const auto flush = [&] {
      if (batch.count == 0) return;
      if (state.device.is_gpu()) batch.on_gpu.emplace(config(), batch.sequences, state.device);
      Tensor result = state.run(batch, tokens, to_logits);
      if (result.rank() == 2) logits.push_back(std::move(result));
      const std::int64_t next = batch.first + batch.count;
      batch = {};
      batch.first = next;
    };
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const SequencePart& part = parts[i];
      for (std::int64_t done = 0; done < part.count;) {
        const std::int64_t count = std::min(part.count - done, options().chunk - batch.count);
        model::SequenceRows rows{.first = batch.count,
                                 .count = count,
                                 .position = lengths[i] + done,
                                 .blocks = part.cache->addresses(stream)};
        for (std::int64_t t = 0; t < count; ++t) {
          if (part.rows == LogitRows::All || done + t + 1 == part.count) {
            batch.logit_rows.push_back(batch.count + t);
          }
        }
        batch.positions = std::max(batch.positions, rows.position + count);
        batch.count += count;
        batch.sequences.push_back(std::move(rows));
        done += count;
        if (batch.count == options().chunk) flush();
      }
    }
    flush();
    Tensor all = logits.size() == 1 ? logits[0] : cat(logits, 0);
    for (const SequencePart& part : parts) part.cache->commit(part.count);
    return all;
  } catch (...) {
    undo();
    throw;
  }
}

}  // namespace tl
