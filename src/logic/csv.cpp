#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tl/logic/database.h"

namespace tl::logic {

namespace {

struct Field {
  std::string text;
  bool quoted = false;
};

[[noreturn]] void bad_file(const std::string& path, std::size_t line, const std::string& why) {
  throw Error(ErrorKind::BadFile, "logic", path, ":", line, ": ", why);
}

// Reads a file record by record; a quoted field may go over several lines.
class Reader {
 public:
  Reader(const std::string& path, std::string text, char separator)
      : path_(path), text_(std::move(text)), separator_(separator) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  bool next(std::vector<Field>& fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) skip_break();
    if (at_ >= text_.size()) return false;
    line = next_line_;
    fields.clear();
    while (true) {
      fields.push_back(text_[at_] == '"' && at_ < text_.size() ? quoted() : plain());
      if (at_ >= text_.size()) return true;
      if (text_[at_] == separator_) {
        ++at_;
        if (at_ < text_.size()) continue;
        fields.emplace_back();
        return true;
      }
      skip_break();
      return true;
    }
  }

  std::size_t line = 0;

 private:
  void skip_break() {
    if (text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      ++next_line_;
    }
  }

  Field plain() {
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' &&
           text_[at_] != '\r') {
      ++at_;
    }
    std::string out = text_.substr(first, at_ - first);
    const std::size_t begin = out.find_first_not_of(" \t");
    const std::size_t end = out.find_last_not_of(" \t");
    return {begin == std::string::npos ? "" : out.substr(begin, end - begin + 1), false};
  }

  Field quoted() {
    Field out{{}, true};
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++next_line_;
      if (text_[at_] != '"') {
        out.text += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        out.text += text_[++at_];
      } else {
        ++at_;
        const bool at_end = at_ >= text_.size() || text_[at_] == separator_ || text_[at_] == '\n' ||
                            text_[at_] == '\r';
        if (!at_end) bad_file(path_, line, "text after a closing quote");
        return out;
      }
    }
    bad_file(path_, line, "a quote is not closed");
  }

  const std::string& path_;
  std::string text_;
  char separator_;
  std::size_t at_ = 0;
  std::size_t next_line_ = 1;
};

template <class T>
bool reads(const std::string& text, T& out) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && at == end;
}

// What the column asks for; a column of any kind takes what the text looks like.
std::optional<Constant> constant_of(const Field& field, ColumnType::Kind kind) {
  using enum ColumnType::Kind;
  std::int64_t integer = 0;
  double real = 0;
  const bool is_free = kind == Any && !field.quoted;
  if (kind == Entity || kind == String || (kind == Any && field.quoted)) return field.text;
  if ((kind == Int || is_free) && reads(field.text, integer)) return integer;
  if ((kind == Float || is_free) && reads(field.text, real)) return real;
  if ((kind == Bool || is_free) && (field.text == "true" || field.text == "false")) {
    return field.text == "true";
  }
  if (is_free) return field.text;
  return {};
}

std::string contents(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    throw Error(ErrorKind::BadFile, "logic", path, " is a folder");
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) throw Error(ErrorKind::BadFile, "logic", "cannot read ", path);
  return std::move(text).str();
}

}  // namespace

std::size_t Database::load_csv(RelationId relation, const std::string& path,
                               const CsvOptions& options) {
  const std::vector<ColumnType>& types = columns(relation);
  Reader reader(path, contents(path), options.separator);
  std::vector<Field> fields;
  std::vector<Id> tuples;  // one after another
  std::size_t count = 0;
  bool is_first = true;
  while (reader.next(fields)) {
    const bool is_header = is_first && options.header;
    is_first = false;
    if (is_header) continue;
    if (fields.size() != types.size()) {
      bad_file(path, reader.line,
               join("relation '", name(relation), "' has ", types.size(), " arguments, the line ",
                    fields.size()));
    }
    for (std::size_t c = 0; c < fields.size(); ++c) {
      const auto value = constant_of(fields[c], types[c].kind);
      if (!value) {
        bad_file(path, reader.line,
                 join("argument ", c + 1, " of ", name(relation), " is ", logic::to_text(types[c]),
                      ", not '", fields[c].text, "'"));
      }
      tuples.push_back(symbols().intern(*value));
    }
    ++count;
    if (options.refuse) {
      const std::string why = options.refuse(std::span(tuples).last(types.size()));
      if (!why.empty()) bad_file(path, reader.line, why);
    }
  }
  // Only now is anything added: a file with a bad line leaves nothing behind.
  std::size_t added = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto tuple = std::span<const Id>(tuples).subspan(i * types.size(), types.size());
    added += add_fact(relation, tuple) ? 1 : 0;
    if (options.on_fact) options.on_fact(tuple);
  }
  return added;
}

}  // namespace tl::logic
