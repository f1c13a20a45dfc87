#include "model/jinja/lexer.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "model/jinja/text.h"
#include "model/tokenizer_utf8.h"

namespace tl::jinja {

namespace {

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool in_name(char c) { return begins_name(c) || is_digit(c); }

// Lines end in \n alone, and the last one not at all.
std::string normal_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : owned_(normal_lines(source)), source_(owned_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenType::End, "");
    return std::move(tokens_);
  }

 private:
  // ---- places

  Place place() {
    for (; counted_ < at_; ++counted_) {
      if (source_[counted_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((static_cast<unsigned char>(source_[counted_]) & 0xC0) != 0x80) {
        ++place_.column;
      }
    }
    return place_;
  }
  template <class... Parts>
  [[noreturn]] void wrong(const Parts&... parts) {
    fail_at(ErrorKind::BadArgument, place(), parts...);
  }
  void add(TokenType type, std::string_view text) {
    tokens_.push_back({type, std::string(text), place()});
  }

  bool next_is(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  bool skip(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }
  void skip_blanks() {
    const std::string_view rest = source_.substr(at_);
    at_ += rest.size() - strip(rest, Side::Left).size();
  }

  // ---- text outside of tags

  void root() {
    std::size_t tag = at_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        add_data(source_.size(), 0, false);
        return;
      }
      const char second = source_[tag + 1];
      if (second == '{' || second == '%' || second == '#') break;
      ++tag;
    }
    const char second = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    add_data(tag, sign, second != '{');
    const bool has_sign = sign == '-' || sign == '+';
    if (second == '#') {
      at_ = tag + (has_sign ? 3 : 2);
      comment();
      return;
    }
    const Place begin = (at_ = tag, place());
    at_ = tag + (has_sign ? 3 : 2);
    if (second == '%' && raw_block()) return;
    tokens_.push_back(
        {second == '{' ? TokenType::VariableBegin : TokenType::BlockBegin, "", begin});
    tag_content(second == '{');
  }

  // The text up to a tag, less the white space the tag takes away. The sign is the tag's; `strips`
  // is whether lstrip_blocks applies to it.
  void add_data(std::size_t end, char sign, bool strips) {
    std::string_view text = source_.substr(at_, end - at_);
    if (sign == '-') {
      text = strip(text, Side::Right);
    } else if (sign != '+' && strips) {
      const std::size_t line = text.rfind('\n') + 1;  // 0 when there is none
      if ((line > 0 || at_line_start_) && strip(text.substr(line), Side::Both).empty()) {
        text = text.substr(0, line);
      }
    }
    if (!text.empty()) add(TokenType::Data, text);
    at_ = end;
  }

  // What follows the end of a block: all white space after a '-', else one new line.
  void after_block(char sign) {
    const std::size_t before = at_;
    if (sign == '-') skip_blanks();
    if (sign == 0 && at_ < source_.size() && source_[at_] == '\n') ++at_;
    at_line_start_ = at_ > before && source_[at_ - 1] == '\n';
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) wrong("the comment has no end '#}'");
    const char sign =
        end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? source_[end - 1] : '\0';
    at_ = end + 2;
    after_block(sign);
  }

  // {% raw %} text {% endraw %}
  bool raw_block() {
    const std::size_t before = at_;
    skip_blanks();
    if (!skip("raw")) return at_ = before, false;
    skip_blanks();
    if (skip("-%}")) {
      skip_blanks();
      at_line_start_ = source_[at_ - 1] == '\n';
    } else if (skip("%}")) {
      at_line_start_ = false;
    } else {
      return at_ = before, false;
    }
    const std::size_t start = at_;
    for (std::size_t tag = source_.find("{%", at_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 2)) {
      at_ = tag + 2;
      const char sign = at_ < source_.size() ? source_[at_] : ' ';
      if (sign == '-' || sign == '+') ++at_;
      skip_blanks();
      if (!skip("endraw")) continue;
      skip_blanks();
      const char last = next_is("-%}") ? '-' : next_is("+%}") ? '+' : '\0';
      if (last == 0 && !next_is("%}")) continue;
      const std::size_t end = at_ + (last == 0 ? 2 : 3);
      at_ = start;
      add_data(tag, sign, true);
      at_ = end;
      after_block(last);
      return true;
    }
    at_ = before;
    wrong("the block 'raw' has no end");
  }

  // ---- inside of tags

  void tag_content(bool is_variable) {
    std::vector<char> open;  // the brackets that must be closed first
    while (true) {
      skip_blanks();
      if (at_ >= source_.size()) wrong("the tag has no end ", is_variable ? "'}}'" : "'%}'");
      if (open.empty() && tag_end(is_variable)) return;
      const char c = source_[at_];
      if (is_digit(c)) {
        number();
      } else if (begins_name(c)) {
        const std::size_t start = at_;
        std::size_t end = at_;
        while (end < source_.size() && in_name(source_[end])) ++end;
        add(TokenType::Name, source_.substr(start, end - start));
        at_ = end;
      } else if (c == '\'' || c == '"') {
        string(c);
      } else {
        operator_token(open);
      }
    }
  }

  bool tag_end(bool is_variable) {
    const std::string_view end = is_variable ? "}}" : "%}";
    char sign = 0;
    if (at_ + 2 < source_.size() &&
        (source_[at_] == '-' || (source_[at_] == '+' && !is_variable)) &&
        source_.substr(at_ + 1).starts_with(end)) {
      sign = source_[at_];
    } else if (!next_is(end)) {
      return false;
    }
    add(is_variable ? TokenType::VariableEnd : TokenType::BlockEnd, "");
    at_ += sign == 0 ? 2 : 3;
    after_block(is_variable && sign == 0 ? '+' : sign);
    return true;
  }

  void operator_token(std::vector<char>& open) {
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](std::string_view each) { return next_is(each); });
    if (found == std::end(kOperators)) {
      const std::string_view rest = source_.substr(at_);
      wrong("'", rest.substr(0, character_length(rest)), "' has no meaning here");
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') {
      if (open.size() >= kMostBrackets)
        wrong("brackets are nested more than ", kMostBrackets, " deep");
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) wrong("there is no bracket that '", c, "' closes");
      open.pop_back();
    }
    add(TokenType::Operator, *found);
    at_ += found->size();
  }

  // Digits with single underscores between them.
  std::string digits() {
    std::string out;
    while (at_ < source_.size()) {
      if (is_digit(source_[at_])) {
        out += source_[at_++];
      } else if (source_[at_] == '_' && !out.empty() && at_ + 1 < source_.size() &&
                 is_digit(source_[at_ + 1])) {
        ++at_;
      } else {
        break;
      }
    }
    return out;
  }

  void number() {
    const std::size_t start = at_;
    const Place begin = place();
    const bool after_dot = start > 0 && source_[start - 1] == '.';
    std::string text = digits();
    bool is_float = false;
    const auto peek = [&](std::size_t ahead) {
      return at_ + ahead < source_.size() ? source_[at_ + ahead] : ' ';
    };
    if (!after_dot && peek(0) == '.' && is_digit(peek(1))) {
      ++at_;
      text += '.' + digits();
      is_float = true;
    }
    if (!after_dot && (peek(0) == 'e' || peek(0) == 'E')) {
      const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if (is_digit(peek(1 + sign))) {
        text += 'e';
        if (sign == 1) text += peek(1);
        at_ += 1 + sign;
        text += digits();
        is_float = true;
      }
    }
    if (!is_float && text.starts_with('0') && text.find_first_not_of('0') != std::string::npos) {
      wrong("a whole number does not begin with 0");
    }
    if (!is_float && text == "0" && (peek(0) == 'x' || peek(0) == 'o' || peek(0) == 'b')) {
      wrong("numbers are decimal here");
    }
    tokens_.push_back({is_float ? TokenType::Float : TokenType::Integer, std::move(text), begin});
  }

  void string(char quote) {
    const Place begin = place();
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) wrong("the text has no end ", quote);
    std::string text = unescaped(source_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    tokens_.push_back({TokenType::String, std::move(text), begin});
  }

  // Escapes as Python reads them; one that is none stays as it is.
  std::string unescaped(std::string_view raw) {
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        out += raw[i];
        continue;
      }
      const char c = raw[++i];
      constexpr std::string_view kNames = "abfnrtv\\'\"\n";
      constexpr std::string_view kBytes = "\a\b\f\n\r\t\v\\'\"";
      if (const std::size_t found = kNames.find(c); found != std::string_view::npos) {
        if (c != '\n') out += kBytes[found];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        tok::append_utf8(out, code_point(raw.substr(i + 1, count), count, 16));
        i += count;
      } else if (c >= '0' && c <= '7') {
        std::size_t count = 1;
        while (count < 3 && i + count < raw.size() && raw[i + count] >= '0' &&
               raw[i + count] <= '7')
          ++count;
        tok::append_utf8(out, code_point(raw.substr(i, count), count, 8));
        i += count - 1;
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  std::uint32_t code_point(std::string_view digits, std::size_t count, unsigned base) {
    std::uint64_t value = 0;
    bool is_good = digits.size() == count;
    for (const char c : digits) {
      is_good = is_good && std::isxdigit(static_cast<unsigned char>(c)) != 0;
      const unsigned digit = is_digit(c) ? static_cast<unsigned>(c - '0')
                                         : static_cast<unsigned>((c | 0x20) - 'a' + 10);
      value = base * value + digit;
    }
    if (!is_good || value > 0x10FFFF) wrong("the escape '\\", digits, "' is no character");
    return value >= 0xD800 && value < 0xE000 ? 0xFFFD : static_cast<std::uint32_t>(value);
  }

  static constexpr std::size_t kMostBrackets = 200;

  std::string owned_;
  std::string_view source_;
  std::size_t at_ = 0;
  bool at_line_start_ = true;  // what comes next begins a line
  std::size_t counted_ = 0;    // up to here place_ has counted
  Place place_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace tl::jinja
