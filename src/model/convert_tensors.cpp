#include "model/convert_tensors.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "tl/base/error.h"

namespace tl::saved {

namespace {

// A size by what it is.
enum class Size : std::uint8_t { None, Hidden, FeedForward, Gates, Queries, Values, Qkv, Head };

struct Row {
  std::string_view saved;  // after "model.layers.N."
  std::string_view name;   // after "blk.N."
  Size rows, columns;
  Change change = Change::None;
  bool is_optional = false;
};

constexpr bool kOptional = true;

// ---- the tables

constexpr std::array kLlama = {
    Row{"input_layernorm.weight", "attn_norm.weight", Size::Hidden, Size::None},
    Row{"self_attn.q_proj.weight", "attn_q.weight", Size::Queries, Size::Hidden,
        Change::QueryHeads},
    Row{"self_attn.q_proj.bias", "attn_q.bias", Size::Queries, Size::None, Change::QueryHeads,
        kOptional},
    Row{"self_attn.k_proj.weight", "attn_k.weight", Size::Values, Size::Hidden, Change::KeyHeads},
    Row{"self_attn.k_proj.bias", "attn_k.bias", Size::Values, Size::None, Change::KeyHeads,
        kOptional},
    Row{"self_attn.v_proj.weight", "attn_v.weight", Size::Values, Size::Hidden},
    Row{"self_attn.v_proj.bias", "attn_v.bias", Size::Values, Size::None, Change::None, kOptional},
    Row{"self_attn.o_proj.weight", "attn_output.weight", Size::Hidden, Size::Queries},
    Row{"self_attn.o_proj.bias", "attn_output.bias", Size::Hidden, Size::None, Change::None,
        kOptional},
    Row{"post_attention_layernorm.weight", "ffn_norm.weight", Size::Hidden, Size::None},
    Row{"mlp.gate_proj.weight", "ffn_gate.weight", Size::FeedForward, Size::Hidden},
    Row{"mlp.gate_proj.bias", "ffn_gate.bias", Size::FeedForward, Size::None, Change::None,
        kOptional},
    Row{"mlp.up_proj.weight", "ffn_up.weight", Size::FeedForward, Size::Hidden},
    Row{"mlp.up_proj.bias", "ffn_up.bias", Size::FeedForward, Size::None, Change::None, kOptional},
    Row{"mlp.down_proj.weight", "ffn_down.weight", Size::Hidden, Size::FeedForward},
    Row{"mlp.down_proj.bias", "ffn_down.bias", Size::Hidden, Size::None, Change::None, kOptional},
};

constexpr std::array kQwen2 = {
    Row{"input_layernorm.weight", "attn_norm.weight", Size::Hidden, Size::None},
    Row{"self_attn.q_proj.weight", "attn_q.weight", Size::Queries, Size::Hidden},
    Row{"self_attn.q_proj.bias", "attn_q.bias", Size::Queries, Size::None, Change::None, kOptional},
    Row{"self_attn.k_proj.weight", "attn_k.weight", Size::Values, Size::Hidden},
    Row{"self_attn.k_proj.bias", "attn_k.bias", Size::Values, Size::None, Change::None, kOptional},
    Row{"self_attn.v_proj.weight", "attn_v.weight", Size::Values, Size::Hidden},
    Row{"self_attn.v_proj.bias", "attn_v.bias", Size::Values, Size::None, Change::None, kOptional},
    Row{"self_attn.o_proj.weight", "attn_output.weight", Size::Hidden, Size::Queries},
    Row{"post_attention_layernorm.weight", "ffn_norm.weight", Size::Hidden, Size::None},
    Row{"mlp.gate_proj.weight", "ffn_gate.weight", Size::FeedForward, Size::Hidden},
    Row{"mlp.up_proj.weight", "ffn_up.weight", Size::FeedForward, Size::Hidden},
    Row{"mlp.down_proj.weight", "ffn_down.weight", Size::Hidden, Size::FeedForward},
};

constexpr std::array kQwen3 = {
    Row{"input_layernorm.weight", "attn_norm.weight", Size::Hidden, Size::None},
    Row{"self_attn.q_proj.weight", "attn_q.weight", Size::Queries, Size::Hidden},
    Row{"self_attn.q_proj.bias", "attn_q.bias", Size::Queries, Size::None, Change::None, kOptional},
    Row{"self_attn.q_norm.weight", "attn_q_norm.weight", Size::Head, Size::None},
    Row{"self_attn.k_proj.weight", "attn_k.weight", Size::Values, Size::Hidden},
    Row{"self_attn.k_proj.bias", "attn_k.bias", Size::Values, Size::None, Change::None, kOptional},
    Row{"self_attn.k_norm.weight", "attn_k_norm.weight", Size::Head, Size::None},
    Row{"self_attn.v_proj.weight", "attn_v.weight", Size::Values, Size::Hidden},
    Row{"self_attn.v_proj.bias", "attn_v.bias", Size::Values, Size::None, Change::None, kOptional},
    Row{"self_attn.o_proj.weight", "attn_output.weight", Size::Hidden, Size::Queries},
    Row{"post_attention_layernorm.weight", "ffn_norm.weight", Size::Hidden, Size::None},
    Row{"mlp.gate_proj.weight", "ffn_gate.weight", Size::FeedForward, Size::Hidden},
    Row{"mlp.up_proj.weight", "ffn_up.weight", Size::FeedForward, Size::Hidden},
    Row{"mlp.down_proj.weight", "ffn_down.weight", Size::Hidden, Size::FeedForward},
};

// Gemma 3; Gemma 2 is without the two norms of heads.
constexpr std::array kGemma = {
    Row{"self_attn.q_norm.weight", "attn_q_norm.weight", Size::Head, Size::None, Change::AddOne},
    Row{"self_attn.k_norm.weight", "attn_k_norm.weight", Size::Head, Size::None, Change::AddOne},
    Row{"input_layernorm.weight", "attn_norm.weight", Size::Hidden, Size::None, Change::AddOne},
    Row{"self_attn.q_proj.weight", "attn_q.weight", Size::Queries, Size::Hidden},
    Row{"self_attn.k_proj.weight", "attn_k.weight", Size::Values, Size::Hidden},
    Row{"self_attn.v_proj.weight", "attn_v.weight", Size::Values, Size::Hidden},
    Row{"self_attn.o_proj.weight", "attn_output.weight", Size::Hidden, Size::Queries},
    Row{"post_attention_layernorm.weight", "post_attention_norm.weight", Size::Hidden, Size::None,
        Change::AddOne},
    Row{"pre_feedforward_layernorm.weight", "ffn_norm.weight", Size::Hidden, Size::None,
        Change::AddOne},
    Row{"mlp.gate_proj.weight", "ffn_gate.weight", Size::FeedForward, Size::Hidden},
    Row{"mlp.up_proj.weight", "ffn_up.weight", Size::FeedForward, Size::Hidden},
    Row{"mlp.down_proj.weight", "ffn_down.weight", Size::Hidden, Size::FeedForward},
    Row{"post_feedforward_layernorm.weight", "post_ffw_norm.weight", Size::Hidden, Size::None,
        Change::AddOne},
};
constexpr std::size_t kGemmaHeadNorms = 2;

// Queries, keys and values are one matrix, gate and up another, and stay so.
constexpr std::array kPhi3 = {
    Row{"input_layernorm.weight", "attn_norm.weight", Size::Hidden, Size::None},
    Row{"self_attn.qkv_proj.weight", "attn_qkv.weight", Size::Qkv, Size::Hidden},
    Row{"self_attn.o_proj.weight", "attn_output.weight", Size::Hidden, Size::Queries},
    Row{"post_attention_layernorm.weight", "ffn_norm.weight", Size::Hidden, Size::None},
    Row{"mlp.gate_up_proj.weight", "ffn_up.weight", Size::Gates, Size::Hidden},
    Row{"mlp.down_proj.weight", "ffn_down.weight", Size::Hidden, Size::FeedForward},
};

std::span<const Row> rows_of(Family family) {
  switch (family) {
    case Family::Llama:
      return kLlama;
    case Family::Qwen2:
      return kQwen2;
    case Family::Qwen3:
      return kQwen3;
    case Family::Gemma2:
      return std::span(kGemma).subspan(kGemmaHeadNorms);
    case Family::Gemma3:
      return kGemma;
    case Family::Phi3:
      return kPhi3;
  }
  return {};
}

// ---- names in files

// Parts of models that see or hear, and what a model computes for itself.
bool is_left_out(std::string_view name, const ModelConfig& config) {
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  if (config.is_tied && name == "lm_head.weight") return true;
  if (config.architecture.family != Family::Gemma3) return false;
  return name.find("vision_tower.") != std::string_view::npos ||
         name.find("multi_modal_projector.") != std::string_view::npos;
}

// "language_model.model.norm.weight" and "model.language_model.norm.weight" are the text part's
// "model.norm.weight".
std::string text_name(std::string name, const ModelConfig& config) {
  constexpr std::string_view kPart = "language_model.";
  if (config.architecture.family != Family::Gemma3) return name;
  if (const std::size_t at = name.find(kPart); at != std::string::npos)
    name.erase(at, kPart.size());
  return name;
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const ModelConfig& config)
      : checkpoint_(checkpoint), config_(config) {
    for (std::string& name : checkpoint.names()) {
      std::string text = text_name(name, config);
      if (is_left_out(text, config)) continue;
      if (const auto [at, is_new] = left_.emplace(std::move(text), name); !is_new) {
        throw Error(ErrorKind::BadFile, checkpoint.file_of(name), "tensors '", at->second,
                    "' and '", name, "' are the same part of the model");
      }
    }
  }

  std::vector<PlannedTensor> plan() {
    const std::int64_t vocab = *config_.vocab, hidden = config_.hidden;
    const bool is_gemma = config_.architecture.family == Family::Gemma2 ||
                          config_.architecture.family == Family::Gemma3;
    take("model.embed_tokens.weight", "token_embd.weight", {vocab, hidden}, Change::None);
    for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
      for (const Row& row : rows_of(config_.architecture.family)) {
        const std::string saved = join("model.layers.", layer, ".", row.saved);
        if (row.is_optional && !left_.contains(saved)) continue;
        Shape shape{size(row.rows)};
        if (row.columns != Size::None) shape = {size(row.rows), size(row.columns)};
        take(saved, join("blk.", layer, ".", row.name), shape, row.change);
      }
    }
    take("model.norm.weight", "output_norm.weight", {hidden},
         is_gemma ? Change::AddOne : Change::None);
    if (!config_.is_tied) take("lm_head.weight", "output.weight", {vocab, hidden}, Change::None);
    if (!left_.empty()) {
      const auto& [text, name] = *left_.begin();
      throw Error(ErrorKind::BadFile, checkpoint_.file_of(name), "tensor '", name,
                  "' is none of a model of the architecture ", config_.architecture.saved, " with ",
                  config_.layers, " layers");
    }
    return std::move(planned_);
  }

 private:
  std::int64_t size(Size size) const {
    const std::int64_t head = config_.head_dim;
    const std::int64_t queries = config_.heads * head, values = config_.kv_heads * head;
    switch (size) {
      case Size::Hidden:
        return config_.hidden;
      case Size::FeedForward:
        return config_.feed_forward;
      case Size::Gates:
        return 2 * std::int64_t{config_.feed_forward};
      case Size::Queries:
        return queries;
      case Size::Values:
        return values;
      case Size::Qkv:
        return queries + 2 * values;
      case Size::Head:
        return head;
      case Size::None:
        break;
    }
    return 0;
  }

  void take(const std::string& saved, std::string name, const Shape& shape, Change change) {
    const auto found = left_.find(saved);
    if (found == left_.end()) {
      throw Error(ErrorKind::BadFile, checkpoint_.folder(), "tensor '", saved,
                  "' is in none of the ", checkpoint_.weight_files().size(), " weight files");
    }
    std::string source = found->second;
    const Shape& has = checkpoint_.shape(source);
    // Gemma 3 has rows for tokens that its vocabulary has not.
    const bool is_longer = config_.architecture.family == Family::Gemma3 &&
                           name == "token_embd.weight" && has.size() == 2 && has[1] == shape[1] &&
                           has[0] > shape[0];
    if (has != shape && !is_longer) {
      throw Error(ErrorKind::BadFile, checkpoint_.file_of(source), "tensor '", source,
                  "' has the shape ", has, ", and ", config_.file, " makes it ", shape);
    }
    left_.erase(found);
    planned_.push_back({std::move(name), std::move(source), shape, change});
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  std::map<std::string, std::string> left_;  // by the name in the text part: the name in the file
  std::vector<PlannedTensor> planned_;
};

}  // namespace

std::vector<PlannedTensor> plan_tensors(const Checkpoint& checkpoint, const ModelConfig& config) {
  return Planner(checkpoint, config).plan();
}

}  // namespace tl::saved
