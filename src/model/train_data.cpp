#include "model/train_data.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "runtime/digest.h"
#include "tl/base/error.h"
#include "tl/base/mapped_file.h"
#include "tl/base/text.h"
#include "tl/base/thread_pool.h"
#include "tl/tensor/safetensors.h"

namespace tl::training_data {

namespace {

constexpr std::string_view kSeparator = "<|end|>";
constexpr std::string_view kCacheForm = "tallow tokens 2";

std::string_view text_of_file(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

// The id that ends a text: without one no answer would ever end.
TokenId end_of_text(const Tokenizer& tokenizer) {
  if (tokenizer.eos()) return *tokenizer.eos();
  if (tokenizer.eot()) return *tokenizer.eot();
  throw Error(ErrorKind::BadArgument, "train",
              "key 'tokenizer': the vocabulary has no token that ends a text "
              "(tokenizer.ggml.eos_token_id)");
}

std::vector<std::uint32_t> encode_document(std::string_view document, const Tokenizer& tokenizer,
                                           TokenId end) {
  const std::vector<TokenId> ids =
      tokenizer.encode(document, {.add_special = false, .parse_special = true});
  std::vector<std::uint32_t> out;
  out.reserve(ids.size() + 2);
  const auto begin = tokenizer.bos();
  if (begin && (ids.empty() || ids.front() != *begin)) {
    out.push_back(static_cast<std::uint32_t>(*begin));
  }
  for (const TokenId id : ids) out.push_back(static_cast<std::uint32_t>(id));
  if (ids.empty() || ids.back() != end) out.push_back(static_cast<std::uint32_t>(end));
  return out;
}

bool read_token_cache(const std::string& path, TokenStream& stream) {
  if (!std::filesystem::exists(path)) return false;
  try {
    const Safetensors file(path);
    const Metadata& said = file.metadata();
    const auto is = [&](const char* key, std::string_view value) {
      const auto found = said.find(key);
      return found != said.end() && found->second == value;
    };
    if (!is("form", kCacheForm) || !is("digest", stream.digest)) return false;
    stream.ids = file.load("ids").to_vector<std::uint32_t>();
    stream.starts = file.load("starts").to_vector<std::int64_t>();
    return true;
  } catch (const Error&) {
    return false;  // a damaged cache is made anew
  }
}

void write_token_cache(const std::string& path, const TokenStream& stream) {
  const NamedTensors tensors{{"ids", Tensor::from(stream.ids)},
                             {"starts", Tensor::from(stream.starts)}};
  write_safetensors(path, tensors, {{"form", std::string(kCacheForm)}, {"digest", stream.digest}});
}

void encode_all(std::span<const std::string_view> documents, const Tokenizer& tokenizer,
                TokenStream& stream) {
  const TokenId end = end_of_text(tokenizer);
  std::vector<std::vector<std::uint32_t>> parts(documents.size());
  ThreadPool::shared().parallel_for(
      0, std::ssize(documents), 16, [&](std::int64_t first, std::int64_t last) {
        for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
          parts[i] = encode_document(documents[i], tokenizer, end);
        }
      });
  // Where one token ends a text and begins one, it stands once between two of them: else half of
  // what the model sees after it would be the token again.
  const bool is_one = tokenizer.bos() == end;
  for (const std::vector<std::uint32_t>& part : parts) {
    const std::ptrdiff_t left_out = is_one && !stream.ids.empty() ? 1 : 0;
    stream.starts.push_back(std::ssize(stream.ids));
    stream.ids.insert(stream.ids.end(), part.begin() + left_out, part.end());
  }
}

// Which tokens of one document the loss is of. With turns of an assistant those alone, up to and
// with the control token that ends each.
void mark_counted(std::span<const std::uint32_t> document, std::uint32_t mark,
                  const Tokenizer& tokenizer, std::span<std::uint8_t> counted) {
  if (std::find(document.begin(), document.end(), mark) == document.end()) {
    std::fill(counted.begin(), counted.end(), std::uint8_t{1});
    return;
  }
  bool is_inside = false;
  for (std::size_t i = 0; i < document.size(); ++i) {
    counted[i] = is_inside ? 1 : 0;
    const bool is_mark = tokenizer.kind(static_cast<TokenId>(document[i])) == TokenKind::Control;
    if (is_mark) is_inside = document[i] == mark;
  }
}

std::vector<std::uint8_t> counted_tokens(const TokenStream& stream, const Tokenizer& tokenizer,
                                         const TrainConfig& config) {
  std::vector<std::uint8_t> counted(stream.ids.size(), 1);
  if (config.loss_on == LossOn::All) return counted;
  const auto mark = tokenizer.find(config.assistant_mark);
  if (!mark) {
    throw Error(ErrorKind::BadArgument, "train", "key 'assistant_mark' is '", config.assistant_mark,
                "', which is no token of the vocabulary");
  }
  for (std::size_t d = 0; d < stream.starts.size(); ++d) {
    const auto first = static_cast<std::size_t>(stream.starts[d]);
    const auto last = d + 1 < stream.starts.size() ? static_cast<std::size_t>(stream.starts[d + 1])
                                                   : stream.ids.size();
    mark_counted(std::span(stream.ids).subspan(first, last - first),
                 static_cast<std::uint32_t>(*mark), tokenizer,
                 std::span(counted).subspan(first, last - first));
  }
  return counted;
}

std::uint64_t mixed(std::uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

std::vector<std::string_view> split_documents(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string_view> documents;
  const auto keep = [&](std::string_view document) {
    if (document.ends_with('\n')) document.remove_suffix(1);
    if (document.ends_with('\r')) document.remove_suffix(1);
    if (document.find_first_not_of(kSpace) != std::string_view::npos) documents.push_back(document);
  };
  std::size_t begin = 0;
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    std::string_view content = text.substr(line, end - line);
    if (content.ends_with('\r')) content.remove_suffix(1);
    const std::size_t next = std::min(end + 1, text.size());
    if (content == kSeparator) {
      keep(text.substr(begin, line - begin));
      begin = next;
    }
    line = next;
  }
  keep(text.substr(begin));
  return documents;
}

TokenStream tokenise(std::span<const std::string> paths, const Tokenizer& tokenizer,
                     const std::string& vocabulary_digest, const std::string& cache) {
  std::vector<MappedFile> files;
  std::vector<std::string_view> documents;
  TokenStream stream;
  std::string parts = vocabulary_digest;
  for (const std::string& path : paths) {
    const MappedFile& file = files.emplace_back(path);
    const std::string_view text = text_of_file(file);
    if (const std::size_t bad = first_invalid_utf8(text); bad != text.size()) {
      throw Error(ErrorKind::BadFile, path, "is not UTF-8 at byte ", bad);
    }
    const std::vector<std::string_view> found = split_documents(text);
    if (found.empty()) {
      throw Error(ErrorKind::BadFile, path,
                  text.empty() ? "is empty" : "has no document, only white space and separators");
    }
    documents.insert(documents.end(), found.begin(), found.end());
    parts += hex_digest(text);
  }
  stream.digest = hex_digest(parts);
  stream.text.documents = documents.size();
  for (const std::string_view each : documents) stream.text.bytes += each.size();
  stream.text.from_cache = read_token_cache(cache, stream);
  if (!stream.text.from_cache) {
    encode_all(documents, tokenizer, stream);
    write_token_cache(cache, stream);
  }
  stream.text.tokens = stream.ids.size();
  return stream;
}

Rows pack_rows(const TokenStream& stream, const Tokenizer& tokenizer, const TrainConfig& config,
               const Device& device) {
  const std::vector<std::uint8_t> counted = counted_tokens(stream, tokenizer, config);
  const auto context = static_cast<std::size_t>(config.sizes.context);
  const std::size_t size = stream.ids.size();
  std::vector<std::uint32_t> ids, targets;
  ids.reserve(size + context);
  targets.reserve(size + context);
  Rows rows;
  // A row and the token after it; the next row begins with that token. The last is filled up.
  for (std::size_t first = 0; first + 1 < size; first += context) {
    const std::uint64_t before = rows.counted;
    for (std::size_t i = first; i < first + context; ++i) {
      ids.push_back(stream.ids[std::min(i, size - 1)]);
      const bool counts = i + 1 < size && counted[i + 1] != 0;
      targets.push_back(counts ? stream.ids[i + 1] : Rows::kNone);
      if (!counts) continue;
      ++rows.counted;
      const auto id = static_cast<TokenId>(stream.ids[i + 1]);
      if (!tokenizer.is_special(id)) rows.bytes += tokenizer.piece(id).size();
    }
    if (rows.counted == before) {  // nothing to learn in it, and its mean would be no number
      ids.resize(ids.size() - context);
      targets.resize(targets.size() - context);
    }
  }
  if (rows.counted == 0) {
    throw Error(ErrorKind::BadFile, "train", "the data has no token that the loss could be of");
  }
  const auto count = static_cast<std::int64_t>(ids.size() / context);
  rows.ids = Tensor::from(ids, {count, config.sizes.context}, device);
  rows.targets = Tensor::from(targets, {count, config.sizes.context}, device);
  return rows;
}

std::int64_t RowOrder::at(std::int64_t position) {
  const std::int64_t epoch = position / rows_;
  if (epoch != epoch_) {
    epoch_ = epoch;
    order_.resize(static_cast<std::size_t>(rows_));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    std::uint64_t state = mixed(seed_ ^ mixed(static_cast<std::uint64_t>(epoch)));
    for (std::size_t i = order_.size(); i > 1; --i) {
      state = mixed(state);
      std::swap(order_[i - 1], order_[state % i]);
    }
  }
  return order_[static_cast<std::size_t>(position % rows_)];
}

}  // namespace tl::training_data
