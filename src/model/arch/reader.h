// What the readers of architectures share: numbers under the architecture's prefix, tensors of the
// shapes those numbers say, the speeds at which heads turn. It remembers which tensors were taken,
// so that none is left out unseen.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/arch/arch.h"
#include "model/arch/rope.h"

namespace tl::arch {

// What the layers of an architecture have besides the usual parts.
struct LayerForm {
  bool has_head_norms = false;    // of queries and keys: attn_q_norm, attn_k_norm
  bool has_output_norms = false;  // post_attention_norm, post_ffw_norm
  bool gate_is_in_up = false;     // one matrix: the rows of the gate, then the others
};

// Which layers have a window when the file does not say.
struct WindowForm {
  std::int64_t window = 0;  // its size; 0: no layer has one
  std::int64_t period = 0;  // of so many layers all but the last have it; 0: all have it
};

class Reader {
 public:
  Reader(const GgufFile& file, const ModelWeights& weights, std::int64_t context);

  // ---- numbers; `key` comes without the architecture ("block_count")
  std::optional<std::int64_t> whole_if(std::string_view key) const;  // from 0
  std::int64_t size(std::string_view key) const;                     // at least 1; throws BadFile
  std::int64_t size_or(std::string_view key, std::int64_t otherwise) const;
  std::optional<double> number_if(std::string_view key) const;  // finite
  double positive(std::string_view key) const;
  double positive_or(std::string_view key, double otherwise) const;

  // The numbers that all architectures have, with the usual defaults: no windows, one rope that is
  // scaled as the file says.
  DecoderConfig config();
  // Sets the windows of layers: attention.sliding_window and attention.sliding_window_pattern, a
  // period or a list with a bool for each layer.
  void set_windows(DecoderConfig& config, const WindowForm& usual) const;
  // As rope.scaling.* and the tensors of factors say.
  RopeScaling rope_scaling(std::int64_t rope_size);

  // ---- tensors
  // Throws Unsupported when the file asks for something that the configuration leaves out.
  DecoderModel model(DecoderConfig config, const LayerForm& form);
  // Throws Unsupported when the file has tensors that were not asked for.
  void expect_all_taken() const;

 private:
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  const GgufValue* find(std::string_view key) const { return file_.find_value(full(key)); }
  [[noreturn]] void damaged(std::string_view key, std::string_view is, std::string_view why) const;
  [[noreturn]] void missing(std::string_view key) const;
  [[noreturn]] void not_run(std::string_view key, std::string_view why) const;
  void refuse_what_is_not_run() const;
  void refuse_what_is_left_out(const DecoderConfig& config) const;
  void refuse_other_sizes_in_windows(const DecoderConfig& config) const;
  std::int64_t same_in_all_layers(std::string_view key, const GgufValue& list) const;
  std::vector<double> rope_divisors(std::string_view type, std::int64_t rope_size,
                                    std::int64_t original_context);
  std::vector<double> factors(std::string_view name, std::int64_t rope_size);

  const QTensor& tensor(const std::string& name, const Shape& shape);
  Tensor vector(const std::string& name, std::int64_t size);  // f32
  std::optional<Tensor> vector_if(const std::string& name, std::int64_t size);
  // `name` comes without ".weight"; a bias is taken where there is one.
  Linear linear(const std::string& name, std::int64_t out, std::int64_t in);
  void attention(const DecoderConfig& config, const std::string& block, DecoderLayer& layer);
  DecoderLayer layer(const DecoderConfig& config, const LayerForm& form, std::int64_t index);
  void ends(DecoderModel& model);

  const GgufFile& file_;
  const ModelWeights& weights_;
  std::string name_;    // of the file
  std::string prefix_;  // "llama."
  std::int64_t context_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace tl::arch
