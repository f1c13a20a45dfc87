// The tensors of a model file on a device, by name.
//
//   const GgufFile file = GgufFile::open("model.gguf");
//   const ModelWeights weights = ModelWeights::load(file, Device::best_available());
//   const QTensor& embedding = weights.get("token_embd.weight", {vocabulary, width});
//   const QTensor& output = weights.get_any({"output.weight", "token_embd.weight"});  // may be
//   tied const WeightScope layer = weights.under("blk.0"); const QTensor& query =
//   layer.get("attn_q.weight");
//
// On a GPU the file is read by several threads into a few pinned buffers and uploaded meanwhile
// (tl/runtime/read_into.h): 32 MiB of host memory, whatever the model's size. On the CPU tensors
// are shown where the file is mapped and nothing is copied; they keep the map. docs/loading.md has
// the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tl/model/gguf.h"
#include "tl/quant/qtensor.h"
#include "tl/runtime/device.h"
#include "tl/tensor/dims.h"

namespace tl {

struct LoadProgress {
  std::uint64_t done = 0;  // bytes
  std::uint64_t total = 0;
  std::string_view tensor;  // one that bytes have just come in for
};

struct LoadOptions {
  std::function<bool(const GgufTensorInfo&)> choose;  // which tensors; all when there is none
  // Called on the calling thread. What it throws ends the loading, gives everything back and is
  // thrown on.
  std::function<void(const LoadProgress&)> progress;
  int threads = 0;  // that read: 0 for the CPUs there are, at most 8
  // On the CPU: memory of its own instead of the mapped file, which must then stay as it is for as
  // long as a tensor is used (tl/base/mapped_file.h).
  bool copy = false;
};

class WeightScope;

// A value: copies share the tensors.
class ModelWeights {
 public:
  ModelWeights() = default;  // none

  // Throws BadFile when the file cannot be read or was cut short, Unsupported for a tensor of a
  // type that is not known, OutOfMemory with the tensor's name; the device then has back what it
  // gave.
  static ModelWeights load(const GgufFile& file, const Device& device,
                           const LoadOptions& options = {});

  const std::map<std::string, QTensor, std::less<>>& tensors() const noexcept { return tensors_; }
  std::uint64_t size_bytes() const noexcept { return bytes_; }

  const QTensor* find(std::string_view name) const;  // nullptr when there is none
  // These throw BadFile and say what there is instead, and ShapeMismatch for another shape.
  const QTensor& get(std::string_view name) const;
  const QTensor& get(std::string_view name, const Shape& shape) const;
  // The first that is there: for a tensor that may be tied to another, which it then shares.
  const QTensor& get_any(std::initializer_list<std::string_view> names) const;

  // Names that begin with `prefix` and a dot, without them. Lives no longer than the weights.
  WeightScope under(std::string prefix) const;

 private:
  friend class WeightScope;
  [[noreturn]] void complain(std::string_view name) const;

  std::string file_;
  std::map<std::string, QTensor, std::less<>> tensors_;
  std::set<std::string, std::less<>> left_out_;  // by options.choose
  std::uint64_t bytes_ = 0;
};

class WeightScope {
 public:
  const QTensor* find(std::string_view name) const { return weights_->find(full(name)); }
  const QTensor& get(std::string_view name) const { return weights_->get(full(name)); }
  const QTensor& get(std::string_view name, const Shape& shape) const {
    return weights_->get(full(name), shape);
  }
  WeightScope under(std::string_view prefix) const { return {*weights_, full(prefix)}; }
  std::string full(std::string_view name) const;  // as the file has it
  bool empty() const;                             // is there no such tensor at all?

 private:
  friend class ModelWeights;
  WeightScope(const ModelWeights& weights, std::string prefix)
      : weights_(&weights), prefix_(std::move(prefix)) {}

  const ModelWeights* weights_;
  std::string prefix_;
};

// One tensor, by the same ways: what a WeightCache asks for. Throws BadFile when there is none of
// that name; options.choose is not asked.
QTensor load_tensor(const GgufFile& file, std::string_view name, const Device& device,
                    const LoadOptions& options = {});

}  // namespace tl
