#include "tl/model/gguf.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "model/gguf_cursor.h"
#include "model/gguf_part.h"
#include "tl/base/error.h"
#include "tl/base/mapped_file.h"

namespace tl {

namespace {

template <class... Parts>
[[noreturn]] void bad_file(std::string_view file, const Parts&... parts) {
  throw Error(ErrorKind::BadFile, file, parts...);
}

[[noreturn]] void unknown_type(const GgufTensorInfo& info) {
  throw Error(ErrorKind::Unsupported, "gguf", "tensor ", gguf::Quoted{info.name},
              " has the type code ", info.code, ", which is retired or not known");
}

// What a part says of the model it belongs to.
struct Split {
  std::uint64_t number = 0;              // counts from 0
  std::uint64_t count = 1;               // 1: no split
  std::optional<std::uint64_t> tensors;  // in all parts
};

Split split_of(const gguf::Part& part, std::string_view file) {
  Split split;
  const GgufValue* count = part.find(gguf::kSplitCount);
  if (count == nullptr) return split;
  split.count = std::max<std::uint64_t>(count->to<std::uint64_t>(), 1);
  if (split.count == 1) return split;
  const GgufValue* number = part.find(gguf::kSplitNumber);
  if (number == nullptr) {
    bad_file(file, "is one of ", split.count, " parts and has no key '", gguf::kSplitNumber, "'");
  }
  split.number = number->to<std::uint64_t>();
  if (split.number >= split.count) {
    bad_file(file, "key '", gguf::kSplitNumber, "' is ", split.number, ", and there are ",
             split.count, " parts, counted from 0");
  }
  if (const GgufValue* tensors = part.find(gguf::kSplitTensors)) {
    split.tensors = tensors->to<std::uint64_t>();
  }
  return split;
}

}  // namespace

std::int64_t GgufTensorInfo::count() const {
  std::int64_t count = 1;  // checked when it was read
  for (const std::int64_t size : shape) count *= size;
  return count;
}

QType GgufTensorInfo::known_type() const {
  if (!type) unknown_type(*this);
  return *type;
}

std::uint64_t GgufTensorInfo::size_bytes() const {
  if (!bytes) unknown_type(*this);
  return *bytes;
}

struct GgufFile::State {
  struct Map {
    MappedFile file;
    std::span<const std::byte> bytes;
  };

  // Paths are all there before anything is read: values keep views of them.
  explicit State(std::vector<std::string> part_paths) : paths(std::move(part_paths)) {}

  Map map(std::size_t part) const {
    Map map{.file = MappedFile(paths[part]), .bytes = {}};
    map.bytes = map.file.bytes();
    return map;
  }

  gguf::Part& add(Map map) {
    maps.push_back(std::move(map));
    parts.push_back(gguf::read_part(paths[parts.size()], maps.back().bytes, parts.size()));
    return parts.back();
  }

  // Makes one list of the parts' tensors.
  void settle() {
    for (gguf::Part& part : parts) {
      std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(tensors));
      part.tensors.clear();
    }
    for (const GgufTensorInfo& info : tensors) {
      const auto [place, fresh] = by_name.try_emplace(info.name, &info);
      if (!fresh) {
        bad_file(paths[info.part], "tensor ", gguf::Quoted{info.name}, " is in ",
                 paths[place->second->part], " too");
      }
    }
    for (const GgufTensorInfo& info : tensors) {
      if (__builtin_add_overflow(parameters, static_cast<std::uint64_t>(info.count()),
                                 &parameters)) {
        bad_file(paths[info.part], "tensor ", gguf::Quoted{info.name},
                 ": with it the parts have more than 2^64 elements");
      }
      tensor_bytes += info.bytes.value_or(0);
    }
  }

  std::vector<std::string> paths;
  std::vector<Map> maps;
  std::vector<gguf::Part> parts;
  std::vector<GgufTensorInfo> tensors;
  std::map<std::string_view, const GgufTensorInfo*> by_name;
  std::uint64_t parameters = 0;
  std::uint64_t tensor_bytes = 0;
};

namespace {

// Paths of all parts, in order, for a file that says it is one of several.
std::vector<std::string> part_paths(const std::string& path, const Split& split) {
  const auto name = gguf::parse_split_name(path);
  if (!name) {
    bad_file(
        path, "is part ", split.number + 1, " of ", split.count, ", and only under a name like ",
        gguf::split_path("NAME", split.number + 1, split.count), " can the other parts be found");
  }
  if (name->count != split.count || name->number != split.number + 1) {
    bad_file(path, "is named part ", name->number, " of ", name->count, " and says it is part ",
             split.number + 1, " of ", split.count);
  }
  std::vector<std::string> paths;
  for (std::uint64_t i = 1; i <= split.count; ++i) {
    paths.push_back(gguf::split_path(name->prefix, i, split.count));
  }
  return paths;
}

void check_split(const std::string& file, const Split& split, const std::string& asked_file,
                 const Split& asked, std::size_t number) {
  if (split.count != asked.count) {
    bad_file(file, "says there are ", split.count, " parts, and ", asked_file, " says ",
             asked.count);
  }
  if (split.number != number) {
    bad_file(file, "says it is part ", split.number + 1, ", not ", number + 1);
  }
  if (split.tensors && asked.tensors && *split.tensors != *asked.tensors) {
    bad_file(file, "says the parts have ", *split.tensors, " tensors, and ", asked_file, " says ",
             *asked.tensors);
  }
}

}  // namespace

GgufFile::GgufFile(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

GgufFile GgufFile::open(const std::string& path) {
  auto state = std::make_shared<State>(std::vector{path});
  const Split asked = split_of(state->add(state->map(0)), path);
  if (asked.count > 1) {
    state = std::make_shared<State>(part_paths(path, asked));
    std::uint64_t tensors = 0;
    for (std::size_t i = 0; i < state->paths.size(); ++i) {
      const std::string& file = state->paths[i];
      State::Map map;
      try {
        map = state->map(i);
      } catch (const Error& error) {
        bad_file(path, "is part ", asked.number + 1, " of ", asked.count, "; part ", i + 1,
                 " is missing: ", error.what());
      }
      const gguf::Part& part = state->add(std::move(map));
      check_split(file, split_of(part, file), path, asked, i);
      tensors += part.tensors.size();
    }
    if (asked.tensors && *asked.tensors != tensors) {
      bad_file(path, "key '", gguf::kSplitTensors, "' is ", *asked.tensors, ", and the ",
               asked.count, " parts have ", tensors);
    }
  }
  state->settle();
  return GgufFile(std::move(state));
}

GgufFile GgufFile::from_memory(std::span<const std::byte> bytes, std::string label) {
  auto state = std::make_shared<State>(std::vector{std::move(label)});
  const gguf::Part& part = state->add({.file = {}, .bytes = bytes});
  if (const Split split = split_of(part, state->paths[0]); split.count > 1) {
    bad_file(state->paths[0], "is part ", split.number + 1, " of ", split.count,
             "; a model in parts can only be read from files");
  }
  state->settle();
  return GgufFile(std::move(state));
}

std::uint32_t GgufFile::version() const noexcept { return state_->parts[0].version; }
std::uint64_t GgufFile::alignment() const noexcept { return state_->parts[0].alignment; }
std::span<const std::string> GgufFile::parts() const { return state_->paths; }

std::span<const GgufEntry> GgufFile::metadata() const noexcept { return state_->parts[0].entries; }

const GgufValue* GgufFile::find_value(std::string_view key) const {
  return state_->parts[0].find(key);
}

const GgufValue& GgufFile::value(std::string_view key) const {
  const GgufValue* found = find_value(key);
  if (found == nullptr) bad_file(state_->paths[0], "has no key ", gguf::Quoted{key});
  return *found;
}

std::string_view GgufFile::architecture() const {
  return get<std::string_view>("general.architecture");
}

std::span<const GgufTensorInfo> GgufFile::tensors() const noexcept { return state_->tensors; }

const GgufTensorInfo* GgufFile::find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : found->second;
}

const GgufTensorInfo& GgufFile::tensor(std::string_view name) const {
  const GgufTensorInfo* found = find(name);
  if (found == nullptr) bad_file(state_->paths[0], "has no tensor ", gguf::Quoted{name});
  return *found;
}

std::span<const std::byte> GgufFile::bytes(const GgufTensorInfo& tensor) const {
  const std::uint64_t size = tensor.size_bytes();
  if (tensor.part < state_->maps.size()) {
    const std::span<const std::byte> all = state_->maps[tensor.part].bytes;
    if (size == 0) return {};  // a file with no data may end before its data would begin
    if (tensor.offset <= all.size() && size <= all.size() - tensor.offset) {
      return all.subspan(tensor.offset, size);
    }
  }
  throw Error(ErrorKind::BadArgument, "gguf", "tensor ", gguf::Quoted{tensor.name},
              " is not of the file ", state_->paths[0]);
}

void GgufFile::read(const GgufTensorInfo& tensor, std::uint64_t offset,
                    std::span<std::byte> to) const {
  const std::span<const std::byte> all = bytes(tensor);
  if (offset > all.size() || to.size() > all.size() - offset) {
    throw Error(ErrorKind::BadArgument, "gguf", "bytes ", offset, " to ", offset, " + ", to.size(),
                " are outside tensor ", gguf::Quoted{tensor.name}, " of ", all.size());
  }
  if (to.empty()) return;
  if (!is_mapped()) {
    std::memcpy(to.data(), all.data() + offset, to.size());
    return;
  }
  try {
    state_->maps[tensor.part].file.read(tensor.offset + offset, to);
  } catch (const Error& error) {
    throw Error(error.kind, state_->paths[tensor.part], "tensor ", gguf::Quoted{tensor.name}, ": ",
                error.what());
  }
}

void GgufFile::prefetch(const GgufTensorInfo& tensor) const {
  const std::uint64_t size = bytes(tensor).size();
  state_->maps[tensor.part].file.prefetch(tensor.offset, size);
}

bool GgufFile::is_mapped() const noexcept { return !state_->maps[0].file.path().empty(); }

std::uint64_t GgufFile::parameters() const noexcept { return state_->parameters; }
std::uint64_t GgufFile::tensor_bytes() const noexcept { return state_->tensor_bytes; }
std::uint64_t GgufFile::file_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const State::Map& map : state_->maps) total += map.bytes.size();
  return total;
}

}  // namespace tl
