// Models and what a program sees of them: m.blk[3].attn_q.weight.
//
// A model and its views share one ModelData, and tensors are given out as they are: quantised ones
// stay quantised, and nothing is copied. The library's decoder is made when it is first asked for,
// of the same tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lang/builtin.h"
#include "lang/value.h"
#include "tl/model/chat_template.h"
#include "tl/model/decoder.h"
#include "tl/model/gguf.h"
#include "tl/model/kv_cache.h"
#include "tl/model/tokenizer.h"
#include "tl/model/weight_cache.h"
#include "tl/model/weights.h"
#include "tl/tensor/safetensors.h"

namespace tl::lang {

enum class NumberType : std::uint8_t { F16, F32 };  // as a program asked for them

class ModelData {
 public:
  // Every tensor at once. Throws for files that are no model's.
  static std::shared_ptr<const ModelData> load(const std::string& path, const Device& device,
                                               NumberType numbers);
  // Tensors when they are asked for, at most so many kept. `exact`: a tensor whose file has another
  // type is an error.
  static std::shared_ptr<const ModelData> open_lazy(const std::string& path, const Device& device,
                                                    NumberType numbers, std::size_t capacity,
                                                    bool exact);
  // Tensors that a program or another reader has.
  static std::shared_ptr<const ModelData> of(
      std::string path, std::map<std::string, tl::Tensor, std::less<>> tensors);

  const std::string& path() const noexcept { return path_; }
  NumberType numbers() const noexcept { return numbers_; }
  bool is_lazy() const noexcept { return cache_ != nullptr; }
  bool is_gguf() const noexcept { return file_.has_value(); }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t cached() const;                                                // of a lazy one
  const std::vector<std::string>& names() const noexcept { return names_; }  // sorted
  bool has(std::string_view name) const;
  Value tensor(const std::string& name) const;  // "Tensor 'N' not found in model"

  const GgufFile& gguf() const;  // throws for what has no metadata
  const Metadata* safetensors_metadata() const;
  const Tokenizer& tokenizer() const;
  const ChatTemplate& chat_template() const;
  const Decoder& decoder() const;

 private:
  QTensor load_one(const std::string& name) const;
  void check_names();

  std::string path_;
  NumberType numbers_ = NumberType::F16;
  Device device_ = Device::cpu();
  std::vector<std::string> names_;
  std::optional<GgufFile> file_;
  std::optional<Safetensors> safetensors_;
  std::map<std::string, tl::Tensor, std::less<>> tensors_;  // of safetensors
  std::unique_ptr<WeightCache> cache_;                      // of a lazy one
  std::size_t capacity_ = 0;
  bool exact_ = false;
  // Made at the first question.
  mutable ModelWeights weights_;
  mutable std::optional<Tokenizer> tokenizer_;
  mutable std::optional<ChatTemplate> template_;
  mutable std::optional<Decoder> decoder_;
};

using ModelPointer = std::shared_ptr<const ModelData>;

// What names of a model have led to: a program that runs one asks for each of them at every token.
// Only where all tensors are there; a model that loads them on demand decides what it keeps.
class KnownParts {
 public:
  // Void where it is not known.
  Value find(std::string_view name) const;
  Value find(std::int64_t number) const;
  Value keep(const ModelData& data, std::string_view name, Value value);
  Value keep(const ModelData& data, std::int64_t number, Value value);

 private:
  std::vector<std::pair<std::string, Value>> by_name_;  // few
  std::vector<Value> by_number_;
};

struct ModelObject : HostObject {
  static constexpr std::string_view kTypeName = "a model";
  explicit ModelObject(ModelPointer d) : data(std::move(d)) {}

  std::string_view type_name() const override;
  std::string text() const override;
  Value property(Context& context, std::string_view name) const override;
  std::int64_t size() const override { return static_cast<std::int64_t>(data->names().size()); }

  ModelPointer data;
  mutable KnownParts known;
};

// Tensors whose names begin alike.
struct ModelViewObject : HostObject {
  enum class Level : std::uint8_t { Layers, Layer, Feature };
  static constexpr std::string_view kTypeName = "a part of a model";
  ModelViewObject(ModelPointer d, Level l, std::string p)
      : data(std::move(d)), level(l), prefix(std::move(p)) {}

  std::string_view type_name() const override;
  std::string text() const override;
  Value property(Context& context, std::string_view name) const override;
  Value index(Context& context, const Value& at) const override;
  std::int64_t size() const override;  // of Layers: one more than the last number

  ModelPointer data;
  Level level;
  std::string prefix;  // "blk.3.attn_q"
  mutable KnownParts known;
};

struct TokenizerObject : HostObject {
  static constexpr std::string_view kTypeName = "a tokenizer";
  TokenizerObject(Tokenizer t, std::optional<ChatTemplate> c)
      : tokenizer(std::move(t)), chat(std::move(c)) {}

  std::string_view type_name() const override { return "Tokenizer"; }
  std::string text() const override { return "<Tokenizer>"; }
  std::int64_t size() const override { return static_cast<std::int64_t>(tokenizer.size()); }

  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat;
};

// Ids one at a time into text: s.push(id), s.flush().
struct TextStreamObject : HostObject {
  static constexpr std::string_view kTypeName = "a text stream";
  explicit TextStreamObject(TextStream s) : stream(std::move(s)) {}

  std::string_view type_name() const override { return "TextStream"; }
  std::string text() const override { return "<TextStream>"; }
  bool method(Context& context, std::string_view name, Args& args, Value& result) override;

  TextStream stream;
};

// Keys and values of the library's decoder: for forward().
struct ModelCacheObject : HostObject {
  static constexpr std::string_view kTypeName = "a model cache";
  explicit ModelCacheObject(KvCache c) : cache(std::move(c)) {}

  std::string_view type_name() const override { return "ModelCache"; }
  std::string text() const override;
  std::int64_t size() const override { return cache.length(); }
  bool method(Context& context, std::string_view name, Args& args, Value& result) override;

  KvCache cache;
};

// The tokenizer of a tokenizer, or of a model that has a vocabulary.
const Tokenizer& tokenizer_argument(const Args& args, std::size_t i);
const ModelData& model_argument(const Args& args, std::size_t i);

// Throws "File not found: PATH".
void expect_file(const std::string& path);

BuiltinRows metadata_builtins();  // model_info, num_layers

}  // namespace tl::lang
