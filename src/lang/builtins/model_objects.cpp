#include "lang/builtins/model_objects.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "lang/builtins/library.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

enum class FileKind : std::uint8_t { Gguf, Safetensors };

FileKind kind_of(const std::string& path) {
  expect_file(path);
  if (path.ends_with(".gguf")) return FileKind::Gguf;
  if (path.ends_with(".safetensors")) return FileKind::Safetensors;
  if (path.ends_with(".mlmodel") || path.ends_with(".mlpackage")) {
    throw invalid_operation(path,
                            ": CoreML models have no weights that can be read; load a .gguf "
                            "or .safetensors file");
  }
  throw invalid_operation(path, ": models are .gguf and .safetensors files");
}

// A plain tensor as what a WeightCache keeps.
QTensor as_qtensor(const tl::Tensor& tensor) {
  const QType type = tensor.dtype() == DType::F16    ? QType::F16
                     : tensor.dtype() == DType::BF16 ? QType::BF16
                                                     : QType::F32;
  const tl::Tensor plain = contiguous(type == QType::F32 ? to_dtype(tensor, DType::F32) : tensor);
  return QTensor::from_memory(plain.memory(), type, plain.shape());
}

}  // namespace

void expect_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw RuntimeError("File not found: " + path);
}

// ---- data

std::shared_ptr<const ModelData> ModelData::load(const std::string& path, const Device& device,
                                                 NumberType numbers) {
  const auto data = std::make_shared<ModelData>();
  data->path_ = path;
  data->numbers_ = numbers;
  data->device_ = device;
  if (kind_of(path) == FileKind::Gguf) {
    data->file_ = GgufFile::open(path);
    data->weights_ = ModelWeights::load(*data->file_, device);
  } else {
    data->safetensors_.emplace(path);
    for (auto& [name, tensor] : data->safetensors_->load_all(device)) {
      data->tensors_.emplace(name, std::move(tensor));
    }
  }
  data->check_names();
  return data;
}

std::shared_ptr<const ModelData> ModelData::open_lazy(const std::string& path, const Device& device,
                                                      NumberType numbers, std::size_t capacity,
                                                      bool exact) {
  const auto data = std::make_shared<ModelData>();
  data->path_ = path;
  data->numbers_ = numbers;
  data->device_ = device;
  data->capacity_ = capacity;
  data->exact_ = exact;
  if (kind_of(path) == FileKind::Gguf) {
    data->file_ = GgufFile::open(path);
  } else {
    data->safetensors_.emplace(path);
  }
  data->cache_ = std::make_unique<WeightCache>(std::numeric_limits<std::uint64_t>::max());
  data->check_names();
  return data;
}

std::shared_ptr<const ModelData> ModelData::of(
    std::string path, std::map<std::string, tl::Tensor, std::less<>> tensors) {
  const auto data = std::make_shared<ModelData>();
  data->path_ = std::move(path);
  data->numbers_ = NumberType::F32;
  data->tensors_ = std::move(tensors);
  for (const auto& [name, tensor] : data->tensors_) data->names_.push_back(name);
  return data;
}

void ModelData::check_names() {
  if (file_) {
    for (const GgufTensorInfo& each : file_->tensors()) names_.push_back(each.name);
    std::sort(names_.begin(), names_.end());
  } else {
    names_ = safetensors_->names();
  }
}

bool ModelData::has(std::string_view name) const {
  return std::binary_search(names_.begin(), names_.end(), name);
}

std::size_t ModelData::cached() const { return cache_ ? cache_->statistics().tensors : 0; }

QTensor ModelData::load_one(const std::string& name) const {
  if (file_) return load_tensor(*file_, name, device_);
  const DType dtype = safetensors_->dtype(name);
  const DType wanted = numbers_ == NumberType::F16 ? DType::F16 : DType::F32;
  if (exact_ && dtype != wanted) {
    throw invalid_operation("Tensor '", name, "' in ", path_, " is ", dtype, ", not ", wanted);
  }
  return as_qtensor(safetensors_->load(name, device_));
}

Value ModelData::tensor(const std::string& name) const {
  if (!has(name)) {
    throw invalid_operation("Tensor '", name, "' not found in model", did_you_mean(name, names_));
  }
  if (cache_) {
    const QTensor found = cache_->get(name, [&] { return load_one(name); });
    // The cache counts bytes; a program asked for a number of tensors.
    while (cache_->statistics().tensors > capacity_) {
      if (cache_->trim(cache_->statistics().bytes - 1) == 0) break;
    }
    return found;
  }
  if (file_) return weights_.get(name);
  return tensors_.find(name)->second;
}

const GgufFile& ModelData::gguf() const {
  if (file_) return *file_;
  throw invalid_operation(path_,
                          " is no GGUF file: it has no metadata, vocabulary or architecture");
}

const Metadata* ModelData::safetensors_metadata() const {
  return safetensors_ ? &safetensors_->metadata() : nullptr;
}

const Tokenizer& ModelData::tokenizer() const {
  if (!tokenizer_) tokenizer_ = Tokenizer::from_gguf(gguf());
  return *tokenizer_;
}

const ChatTemplate& ModelData::chat_template() const {
  if (!template_) template_ = ChatTemplate::from_gguf(gguf());
  if (!template_) throw invalid_operation(path_, " has no chat template");
  return *template_;
}

const Decoder& ModelData::decoder() const {
  if (!decoder_) {
    if (is_lazy() && weights_.tensors().empty()) weights_ = ModelWeights::load(gguf(), device_);
    decoder_.emplace(gguf(), weights_);
  }
  return *decoder_;
}

// ---- views

namespace {

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The parts of names that come after `prefix` and a dot, each once; all first parts for none.
std::vector<std::string> children(const ModelData& data, const std::string& prefix) {
  const std::string start = prefix.empty() ? "" : prefix + ".";
  const std::vector<std::string>& names = data.names();
  std::set<std::string> out;
  for (auto name = std::lower_bound(names.begin(), names.end(), start);
       name != names.end() && name->starts_with(start); ++name) {
    const std::string_view rest = std::string_view(*name).substr(start.size());
    out.emplace(rest.substr(0, rest.find('.')));
  }
  return {out.begin(), out.end()};
}

// What a dot and a name lead to: a tensor, layers or a feature. Void where there is nothing.
Value step(const ModelPointer& data, const std::string& prefix, std::string_view name) {
  const std::string full = prefix.empty() ? std::string(name) : tl::join(prefix, ".", name);
  if (data->has(full)) return data->tensor(full);
  const std::vector<std::string> below = children(*data, full);
  if (below.empty()) return {};
  const bool numbered = std::all_of(below.begin(), below.end(), is_number);
  return make<ModelViewObject>(
      data, numbered ? ModelViewObject::Level::Layers : ModelViewObject::Level::Feature, full);
}

std::string_view last_part(std::string_view prefix) {
  return prefix.substr(prefix.rfind('.') + 1);  // npos + 1 is 0
}

}  // namespace

Value KnownParts::find(std::string_view name) const {
  for (const auto& [known, value] : by_name_) {
    if (known == name) return value;
  }
  return {};
}

Value KnownParts::find(std::int64_t number) const {
  const bool is_kept = number >= 0 && std::cmp_less(number, by_number_.size());
  return is_kept ? by_number_[static_cast<std::size_t>(number)] : Value();
}

Value KnownParts::keep(const ModelData& data, std::string_view name, Value value) {
  if (!data.is_lazy() && !value.is(Kind::Void)) by_name_.emplace_back(name, value);
  return value;
}

Value KnownParts::keep(const ModelData& data, std::int64_t number, Value value) {
  constexpr std::int64_t kMost = 1 << 16;
  if (data.is_lazy() || number >= kMost) return value;
  const auto place = static_cast<std::size_t>(number);
  if (by_number_.size() <= place) by_number_.resize(place + 1);
  by_number_[place] = value;
  return value;
}

std::string_view ModelObject::type_name() const {
  if (data->is_lazy()) return data->is_gguf() ? "GGUFWeightCache" : "WeightCache";
  return data->numbers() == NumberType::F16 ? "ModelF16" : "ModelF32";
}

std::string ModelObject::text() const {
  if (!data->is_lazy()) return tl::join("<", type_name(), ">");
  return tl::join("<", type_name(), data->numbers() == NumberType::F16 ? "<f16>" : "<f32>", ": ",
                  data->cached(), "/", data->capacity(), " cached>");
}

Value ModelObject::property(Context&, std::string_view name) const {
  if (Value found = known.find(name); !found.is(Kind::Void)) return found;
  Value found = known.keep(*data, name, step(data, "", name));
  if (found.is(Kind::Void)) {
    throw invalid_operation("Model does not have property '", name, "'",
                            did_you_mean(name, children(*data, "")));
  }
  return found;
}

std::string_view ModelViewObject::type_name() const {
  const bool half = data->numbers() == NumberType::F16;
  switch (level) {
    case Level::Layers:
      return half ? "ModelLayerCollectionF16" : "ModelLayerCollectionF32";
    case Level::Layer:
      return half ? "ModelLayerF16" : "ModelLayerF32";
    case Level::Feature:
      break;
  }
  return half ? "ModelFeatureF16" : "ModelFeatureF32";
}

std::string ModelViewObject::text() const {
  return tl::join("<", data->is_lazy() ? "Lazy" : "", type_name(), ">");
}

Value ModelViewObject::property(Context&, std::string_view name) const {
  if (Value found = known.find(name); !found.is(Kind::Void)) return found;
  Value found =
      level == Level::Layers ? Value() : known.keep(*data, name, step(data, prefix, name));
  if (!found.is(Kind::Void)) return found;
  const std::string hint = did_you_mean(name, children(*data, prefix));
  if (level == Level::Layers) {
    throw invalid_operation("'", prefix, "' is a collection of layers: write ", prefix, "[0].",
                            name);
  }
  if (level == Level::Layer) {
    throw invalid_operation("Layer ", last_part(prefix), " does not have feature '", name, "'",
                            hint);
  }
  throw invalid_operation("Feature '", last_part(prefix), "' does not have property '", name, "'",
                          hint);
}

Value ModelViewObject::index(Context&, const Value& at) const {
  if (level != Level::Layers || !at.is_number()) {
    throw type_error(type_name(), " cannot be indexed with ", tl::lang::type_name(at));
  }
  const auto number = static_cast<std::int64_t>(at.number());
  if (Value found = known.find(number); !found.is(Kind::Void)) return found;
  const std::string full = tl::join(prefix, ".", number);
  if (children(*data, full).empty()) {
    if (data->has(full)) return data->tensor(full);  // a list of tensors, not of layers
    throw invalid_operation("Layer index ", number, " not found in collection");
  }
  return known.keep(*data, number, make<ModelViewObject>(data, Level::Layer, full));
}

std::int64_t ModelViewObject::size() const {
  std::int64_t count = 0;
  for (const std::string& each : children(*data, prefix)) {
    std::int64_t number = 0;
    std::from_chars(each.data(), each.data() + each.size(), number);
    count = std::max(count, number + 1);
  }
  return level == Level::Layers ? count : static_cast<std::int64_t>(children(*data, prefix).size());
}

// ---- streams and caches

bool TextStreamObject::method(Context&, std::string_view name, Args& args, Value& result) {
  if (name == "push" && args.size() == 1) {
    result = stream.push(token_id("push", args[0]));
    return true;
  }
  if (name == "flush" && args.size() == 0) {
    result = stream.flush();
    return true;
  }
  return false;
}

std::string ModelCacheObject::text() const {
  return tl::join("<ModelCache: ", cache.length(), "/", cache.context(), " positions>");
}

bool ModelCacheObject::method(Context&, std::string_view name, Args& args, Value& result) {
  if (name == "truncate" && args.size() == 1) {
    const std::int64_t length = args.integer(0);
    if (length < 0 || length > cache.length()) {
      throw invalid_operation("truncate(): the cache has ", cache.length(), " positions, not ",
                              length);
    }
    cache.truncate(length);
  } else if (name == "clear" && args.size() == 0) {
    cache.clear();
  } else if (name == "fork" && args.size() == 0) {
    result = make<ModelCacheObject>(cache.fork());
  } else if (name == "length" && args.size() == 0) {
    result = cache.length();
  } else {
    return false;
  }
  return true;
}

const Tokenizer& tokenizer_argument(const Args& args, std::size_t i) {
  if (args[i].is(Kind::Host)) {
    if (auto* model = dynamic_cast<ModelObject*>(args[i].object())) {
      return model->data->tokenizer();
    }
  }
  return args.host<TokenizerObject>(i).tokenizer;
}

const ModelData& model_argument(const Args& args, std::size_t i) {
  return *args.host<ModelObject>(i).data;
}

}  // namespace tl::lang
