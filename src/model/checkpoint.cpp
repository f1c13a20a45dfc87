#include "model/checkpoint.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

#include "tl/base/error.h"

namespace tl::saved {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhere = "convert";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kWeights = ".safetensors";

constexpr std::array<std::string_view, 9> kCompanions = {"config.json",
                                                         "tokenizer.json",
                                                         "tokenizer.model",
                                                         "tokenizer_config.json",
                                                         "added_tokens.json",
                                                         "special_tokens_map.json",
                                                         "generation_config.json",
                                                         "chat_template.jinja",
                                                         "chat_template.json"};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

}  // namespace

Checkpoint::Checkpoint(const std::vector<std::string>& from, bool needs_weights) {
  if (from.empty()) throw Error(ErrorKind::BadArgument, kWhere, "no folder and no file is named");
  for (const std::string& path : from) {
    if (is_folder(path)) {
      if (from.size() > 1) {
        throw Error(ErrorKind::BadArgument, kWhere, path,
                    " is a folder; name one folder, or files and no folder");
      }
      take_folder(path);
    } else {
      take_file(path);
    }
  }
  if (weights_.empty() && !index_path_.empty()) read_index(index_path_);
  if (needs_weights && weights_.empty()) {
    throw Error(ErrorKind::BadFile, folder_, "there is no model*.safetensors");
  }
  open_weights();
}

void Checkpoint::take_folder(const std::string& path) {
  folder_ = path;
  const fs::path index = fs::path(path) / kIndex;
  if (is_file(index)) {
    index_path_ = index.string();
    return;
  }
  bool has_pickles = false;
  std::error_code failed;
  for (fs::directory_iterator entry(path, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("model") && name.ends_with(kWeights)) {
      weights_.push_back(entry->path().string());
    }
    has_pickles = has_pickles || (name.starts_with("pytorch_model") && name.ends_with(".bin"));
  }
  if (failed) throw Error(ErrorKind::BadFile, path, "cannot be read: ", failed.message());
  std::sort(weights_.begin(), weights_.end());
  if (weights_.empty() && has_pickles) {
    throw Error(ErrorKind::Unsupported, path,
                "has its weights in pytorch_model*.bin, which can run code and is not read; save "
                "the model as safetensors");
  }
}

void Checkpoint::take_file(const std::string& path) {
  const fs::path file(path);
  const std::string name = file.filename().string();
  if (!is_file(file)) {
    throw Error(ErrorKind::BadFile, path, "there is no such file or folder");
  }
  if (folder_.empty()) folder_ = file.has_parent_path() ? file.parent_path().string() : ".";
  if (name.ends_with(kWeights)) {
    weights_.push_back(path);
  } else if (name == kIndex) {
    index_path_ = path;
  } else if (std::find(kCompanions.begin(), kCompanions.end(), name) != kCompanions.end()) {
    named_.insert_or_assign(name, path);
  } else {
    throw Error(ErrorKind::BadArgument, kWhere, path,
                " is no file of a checkpoint: those are *.safetensors, config.json and the "
                "tokenizer's");
  }
}

void Checkpoint::read_index(const std::string& path) {
  const Json json = read_json(path);
  const auto map = Fields(path, json).object("weight_map");
  if (!map) Fields(path, json).missing("weight_map");
  std::set<std::string> files;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    // A name that leads out of the folder is no part of this checkpoint.
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (!name.ends_with(kWeights) || fs::path(name).filename().string() != name) {
      map->fail("'", tensor, "' is in ", shown(file), ", which is no name of a safetensors file");
    }
    index_.emplace(tensor, name);
    files.insert(name);
  }
  if (files.empty()) map->fail("names no tensor");
  for (const std::string& file : files) {
    const fs::path at = fs::path(path).parent_path() / file;
    if (!is_file(at)) throw Error(ErrorKind::BadFile, path, "names ", file, ", which is not there");
    weights_.push_back(at.string());
  }
}

void Checkpoint::open_weights() {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    parts_.emplace_back(weights_[i]);
    for (const std::string& name : parts_.back().names()) {
      const auto [at, is_new] = tensors_.emplace(name, i);
      if (!is_new) {
        throw Error(ErrorKind::BadFile, weights_[i], "tensor '", name, "' is in ",
                    weights_[at->second], " too");
      }
    }
  }
  if (!index_.empty()) check_index();
}

void Checkpoint::check_index() const {
  for (const auto& [tensor, file] : index_) {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end() || fs::path(weights_[found->second]).filename() != file) {
      throw Error(ErrorKind::BadFile, index_path_, "tensor '", tensor, "' should be in ", file,
                  ", and is not");
    }
  }
  for (const auto& [tensor, part] : tensors_) {
    if (!index_.contains(tensor)) {
      throw Error(ErrorKind::BadFile, index_path_, "does not name tensor '", tensor,
                  "', which is in ", weights_[part]);
    }
  }
}

std::string Checkpoint::folder_name() const {
  std::error_code ignored;
  fs::path path = fs::weakly_canonical(fs::absolute(folder_, ignored), ignored);
  if (path.filename().empty()) path = path.parent_path();  // "my-model/"
  return path.filename().string();
}

std::optional<std::string> Checkpoint::file(std::string_view name) const {
  if (const auto found = named_.find(name); found != named_.end()) return found->second;
  const fs::path path = fs::path(folder_) / name;
  if (!is_file(path)) return std::nullopt;
  return path.string();
}

std::vector<std::string> Checkpoint::files() const {
  std::vector<std::string> paths = weights_;
  if (!index_path_.empty()) paths.push_back(index_path_);
  for (const std::string_view name : kCompanions) {
    if (auto path = file(name)) paths.push_back(std::move(*path));
  }
  return paths;
}

std::optional<Json> Checkpoint::json(std::string_view name) const {
  const auto path = file(name);
  if (!path) return std::nullopt;
  return read_json(*path);
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, part] : tensors_) names.push_back(name);
  return names;
}

const std::string& Checkpoint::file_of(std::string_view name) const {
  return weights_[tensors_.find(name)->second];
}

const Shape& Checkpoint::shape(std::string_view name) const {
  return parts_[tensors_.find(name)->second].entry(name).shape;
}

Checkpoint::Weight Checkpoint::weight(std::string_view name) const {
  const Safetensors& part = parts_[tensors_.find(name)->second];
  const Safetensors::Entry& entry = part.entry(name);
  for (const QType type : {QType::F32, QType::F16, QType::BF16}) {
    if (entry.stored == tl::name(type)) return {entry.shape, type, part.bytes(name)};
  }
  throw Error(ErrorKind::Unsupported, file_of(name), "tensor '", name, "' is of ", entry.stored,
              "; F32, F16 and BF16 can be converted");
}

}  // namespace tl::saved
