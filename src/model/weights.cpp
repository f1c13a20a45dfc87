#include "tl/model/weights.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/gguf_cursor.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/runtime/label.h"
#include "tl/runtime/raw_memory.h"
#include "tl/runtime/read_into.h"

namespace tl {

namespace {

using Infos = std::vector<const GgufTensorInfo*>;

// What one segment of the device's memory holds. Large, so that what is left over at its end is
// little; not the whole model, so that memory goes back to the driver when some layers are dropped.
constexpr std::uint64_t kSegment = std::uint64_t{256} << 20;
constexpr std::uint64_t kAlignment = 8;  // of the largest element

class Loader {
 public:
  Loader(const GgufFile& file, Infos infos, const Device& device, const LoadOptions& options)
      : file_(file),
        infos_(std::move(infos)),
        device_(device),
        options_(options),
        label_(
            join("weights of ", std::filesystem::path(file.parts().front()).filename().string())) {
    for (const GgufTensorInfo* info : infos_) total_ += info->size_bytes();
  }

  std::vector<QTensor> load() {
    std::vector<RawMemory> memories =
        device_.is_cpu() && file_.is_mapped() && !options_.copy ? map() : read();
    std::vector<QTensor> tensors;
    tensors.reserve(infos_.size());
    for (std::size_t i = 0; i < infos_.size(); ++i) {
      tensors.push_back(
          QTensor::from_memory(std::move(memories[i]), infos_[i]->known_type(), infos_[i]->shape));
    }
    return tensors;
  }

 private:
  std::vector<RawMemory> map() {
    const auto keeper = std::make_shared<const GgufFile>(file_);
    std::vector<RawMemory> memories;
    std::uint64_t done = 0;
    for (const GgufTensorInfo* info : infos_) {
      memories.push_back(map(*info, keeper));
      done += info->size_bytes();
      if (options_.progress) {
        options_.progress({.done = done, .total = total_, .tensor = info->name});
      }
    }
    return memories;
  }

  RawMemory map(const GgufTensorInfo& info, const std::shared_ptr<const GgufFile>& keeper) const {
    const std::span<const std::byte> bytes = file_.bytes(info);
    if (bytes.empty()) return {device_, 0, label_};
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0) {
      RawMemory own(device_, bytes.size(), label_);
      file_.read(info, 0, {own.overwrite_data(device_.stream()), bytes.size()});
      return own;
    }
    // A file that was cut short since it was opened shows itself here, not at the first product.
    std::array<std::byte, 1> last{};
    file_.read(info, bytes.size() - 1, last);
    file_.prefetch(info);
    return RawMemory::mapped(keeper, bytes, label_);
  }

  std::vector<RawMemory> read() {
    std::vector<RawMemory> memories = take();
    ReadOptions how{.threads = options_.threads, .progress = {}};
    if (options_.progress) {
      how.progress = [&](const ReadProgress& now) {
        options_.progress(
            {.done = now.done, .total = now.total, .tensor = infos_[now.index]->name});
      };
    }
    read_into(
        device_, memories,
        [&](std::size_t index, std::uint64_t offset, std::span<std::byte> to) {
          file_.read(*infos_[index], offset, to);
        },
        how);
    return memories;
  }

  // All memory first, so that a model that does not fit is refused before anything is read.
  std::vector<RawMemory> take() {
    std::vector<RawMemory> memories;
    memories.reserve(infos_.size());
    std::size_t reserved = 0;
    std::uint64_t taken = 0;
    for (std::size_t i = 0; i < infos_.size(); ++i) {
      if (i == reserved) reserved = reserve(i);
      const std::uint64_t bytes = infos_[i]->size_bytes();
      try {
        memories.emplace_back(device_, bytes, label_);
      } catch (const OutOfMemory& error) {
        throw OutOfMemory(join("load ", file_.parts().front(), ": tensor ",
                               gguf::Quoted{infos_[i]->name}, " of ", format_bytes(bytes),
                               ", after ", format_bytes(taken), " of ", format_bytes(total_)),
                          error.device, error.requested, error.free, error.total, error.pooled);
      }
      taken += bytes;
    }
    return memories;
  }

  // Makes room for the tensors from `first` on that one segment is to hold, and gives the first of
  // the next.
  std::size_t reserve(std::size_t first) const {
    std::vector<std::uint64_t> sizes;
    std::uint64_t bytes = 0;
    std::size_t last = first;
    for (; last < infos_.size() && bytes < kSegment; ++last) {
      sizes.push_back(infos_[last]->size_bytes());
      bytes += sizes.back();
    }
    try {
      device_.reserve(sizes);
    } catch (const OutOfMemory&) {
      // There may still be room in pieces; when not, the tensor that has none is named.
      return last;
    }
    return last;
  }

  const GgufFile& file_;
  Infos infos_;
  Device device_;
  const LoadOptions& options_;
  Label label_;
  std::uint64_t total_ = 0;
};

// Some names that are there, those beginning like the one that is not first.
std::string some_names(const std::map<std::string, QTensor, std::less<>>& tensors,
                       std::string_view name) {
  constexpr std::size_t kMost = 6;
  const auto begins = [](std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
  };
  std::string_view prefix = name;
  auto at = tensors.end();
  while (at == tensors.end() || !begins(at->first, prefix)) {
    const std::size_t dot = prefix.find_last_of('.', prefix.empty() ? 0 : prefix.size() - 2);
    prefix = prefix.size() < 2 || dot == std::string_view::npos ? std::string_view{}
                                                                : prefix.substr(0, dot + 1);
    at = tensors.lower_bound(prefix);
    if (prefix.empty()) break;
  }
  std::string list;
  std::size_t listed = 0;
  for (; at != tensors.end() && begins(at->first, prefix) && listed < kMost; ++at, ++listed) {
    list += join(listed == 0 ? "" : ", ", gguf::Quoted{at->first});
  }
  return listed == 0 ? "none" : list;
}

}  // namespace

ModelWeights ModelWeights::load(const GgufFile& file, const Device& device,
                                const LoadOptions& options) {
  ModelWeights weights;
  weights.file_ = file.parts().front();
  Infos infos;
  for (const GgufTensorInfo& info : file.tensors()) {
    if (options.choose && !options.choose(info)) {
      weights.left_out_.insert(info.name);
    } else {
      infos.push_back(&info);
    }
  }
  std::vector<QTensor> tensors = Loader(file, infos, device, options).load();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    weights.bytes_ += tensors[i].size_bytes();
    weights.tensors_.emplace(infos[i]->name, std::move(tensors[i]));
  }
  return weights;
}

QTensor load_tensor(const GgufFile& file, std::string_view name, const Device& device,
                    const LoadOptions& options) {
  return std::move(Loader(file, {&file.tensor(name)}, device, options).load().front());
}

const QTensor* ModelWeights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const QTensor& ModelWeights::get(std::string_view name) const {
  const QTensor* found = find(name);
  if (found == nullptr) complain(name);
  return *found;
}

const QTensor& ModelWeights::get(std::string_view name, const Shape& shape) const {
  const QTensor& found = get(name);
  if (found.shape() != shape) {
    throw Error(ErrorKind::ShapeMismatch, file_, "tensor ", gguf::Quoted{name}, " has shape ",
                found.shape(), ", and ", shape, " is needed");
  }
  return found;
}

const QTensor& ModelWeights::get_any(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (const QTensor* found = find(name)) return *found;
  }
  if (names.size() == 0) throw Error(ErrorKind::BadArgument, "get_any", "no names were given");
  complain(*names.begin());
}

void ModelWeights::complain(std::string_view name) const {
  if (left_out_.contains(name)) {
    throw Error(ErrorKind::BadFile, file_, "tensor ", gguf::Quoted{name},
                " was not among those to be loaded");
  }
  throw Error(ErrorKind::BadFile, file_.empty() ? "weights" : file_, "has no tensor ",
              gguf::Quoted{name}, "; of its ", tensors_.size(), " some are ",
              some_names(tensors_, name));
}

WeightScope ModelWeights::under(std::string prefix) const { return {*this, std::move(prefix)}; }

std::string WeightScope::full(std::string_view name) const { return join(prefix_, '.', name); }

bool WeightScope::empty() const {
  const std::string start = full("");
  const auto at = weights_->tensors_.lower_bound(start);
  return at == weights_->tensors_.end() || !at->first.starts_with(start);
}

}  // namespace tl
