#include "lang/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "tl/base/text.h"

namespace tl::lang {

namespace {

constexpr std::array<std::string_view, 48> kReserved = {
    "and",      "as",     "auto",    "backward",  "bool",      "break",     "complex16", "concept",
    "einsum",   "else",   "embed",   "entity",    "epochs",    "false",     "float16",   "float32",
    "fn",       "for",    "forward", "frozen",    "gradient",  "if",        "import",    "in",
    "infer",    "int16",  "int32",   "int64",     "learn",     "learnable", "let",       "loop",
    "main",     "match",  "not",     "objective", "optimizer", "or",        "python",    "range",
    "relation", "return", "rule",    "symbolic",  "tensor",    "true",      "void",      "while"};
static_assert(std::is_sorted(kReserved.begin(), kReserved.end()));

// Longer ones before their beginnings. `:-` is not here: a[1:-1] has no such token.
constexpr std::array<std::pair<std::string_view, TokenKind>, 46> kSymbols = {{
    {"**", TokenKind::StarStar},
    {"==", TokenKind::EqualEqual},
    {"!=", TokenKind::NotEqual},
    {"<=", TokenKind::LessEqual},
    {"<-", TokenKind::LeftArrow},
    {">=", TokenKind::GreaterEqual},
    {"&&", TokenKind::AndAnd},
    {"||", TokenKind::OrOr},
    {":=", TokenKind::Assign},
    {"+=", TokenKind::PlusAssign},
    {"-=", TokenKind::MinusAssign},
    {"*=", TokenKind::StarAssign},
    {"/=", TokenKind::SlashAssign},
    {"->", TokenKind::RightArrow},
    {"=>", TokenKind::FatArrow},
    {"..", TokenKind::DotDot},
    {"::", TokenKind::ColonColon},
    {"\xE2\x8A\x97", TokenKind::Outer},
    {"\xE2\x8A\x99", TokenKind::Hadamard},
    {"\xE2\x89\x88", TokenKind::Approx},
    {"+", TokenKind::Plus},
    {"-", TokenKind::Minus},
    {"*", TokenKind::Star},
    {"/", TokenKind::Slash},
    {"%", TokenKind::Percent},
    {"@", TokenKind::At},
    {"<", TokenKind::Less},
    {">", TokenKind::Greater},
    {"!", TokenKind::Bang},
    {"=", TokenKind::Assign},
    {"~", TokenKind::Tilde},
    {"?", TokenKind::Question},
    {".", TokenKind::Dot},
    {",", TokenKind::Comma},
    {":", TokenKind::Colon},
    {";", TokenKind::Semicolon},
    {"(", TokenKind::LeftParen},
    {")", TokenKind::RightParen},
    {"[", TokenKind::LeftBracket},
    {"]", TokenKind::RightBracket},
    {"{", TokenKind::LeftBrace},
    {"}", TokenKind::RightBrace},
    {"|", TokenKind::Pipe},
    // Not of the language, read as what they mean elsewhere.
    {"&", TokenKind::AndAnd},
    {"^", TokenKind::StarStar},
    {"'", TokenKind::String},
}};

constexpr std::size_t kMostMistakes = 20;
constexpr std::uint64_t kMostInteger = std::uint64_t{1} << 63;  // with a minus before it

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool starts_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_word(char c) { return starts_word(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class Lexer {
 public:
  Lexer(const Sources& sources, std::uint32_t source, std::vector<Diagnostic>& diagnostics)
      : source_(source), text_(sources[source].text()), diagnostics_(diagnostics) {}

  Tokens run() {
    const std::size_t invalid = first_invalid_utf8(text_);
    if (invalid < text_.size()) {
      wrong(invalid, invalid + 1, "the text is not UTF-8", "save the file as UTF-8");
      text_ = {};
    }
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    if (text_.substr(at_).starts_with("#!")) comment_to_line_end();
    while (skip_space(), at_ < text_.size()) token();
    finish(at_, TokenKind::End);
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  Span span(std::size_t begin, std::size_t end) const {
    return {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
  void wrong(std::size_t begin, std::size_t end, std::string_view message,
             std::string_view hint = {}) {
    if (++mistakes_ > kMostMistakes) return;
    diagnostics_.push_back({.message = "Parse error: " + std::string(message),
                            .span = span(begin, end),
                            .hint = std::string(hint)});
  }
  Token& finish(std::size_t begin, TokenKind kind) {
    Token& token = out_.list.emplace_back();
    token.kind = kind;
    token.newline_before = is_new_line_;
    token.after_mistake = std::exchange(has_skipped_, false);
    token.span = span(begin, at_);
    token.text = text_.substr(begin, at_ - begin);
    is_new_line_ = false;
    return token;
  }

  void comment_to_line_end() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
    const std::size_t end = at_ > begin && text_[at_ - 1] == '\r' ? at_ - 1 : at_;
    out_.comments.push_back({span(begin, end), false});
  }
  void block_comment() {
    const std::size_t begin = at_;
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) {
      wrong(begin, begin + 2, "this comment has no end", "close it with '*/'");
      out_.is_cut = true;
      at_ = text_.size();
    } else {
      at_ = end + 2;
    }
    is_new_line_ |= text_.substr(begin, at_ - begin).find('\n') != std::string_view::npos;
    out_.comments.push_back({span(begin, at_), true});
  }
  void skip_space() {
    while (at_ < text_.size()) {
      if (is_space(peek())) {
        is_new_line_ |= peek() == '\n';
        ++at_;
      } else if (peek() == '/' && peek(1) == '/') {
        comment_to_line_end();
      } else if (peek() == '/' && peek(1) == '*') {
        block_comment();
      } else if (peek() == '#') {
        wrong(at_, at_ + 1, "'#' does not begin a comment", "comments begin with '//'");
        comment_to_line_end();
      } else {
        return;
      }
    }
  }

  void token() {
    if (starts_word(peek())) return word();
    if (is_digit(peek())) return number();
    if (peek() == '"') return string();
    const std::string_view rest = text_.substr(at_);
    for (const auto& [symbol, kind] : kSymbols)
      if (rest.starts_with(symbol)) return this->symbol(symbol, kind);
    unknown();
  }

  void symbol(std::string_view text, TokenKind kind) {
    const std::size_t begin = at_;
    if (text == "'") return quoted_text();
    at_ += text.size();
    if (text == "&") wrong(begin, at_, "unexpected character '&'", "write '&&' or 'and'");
    if (text == "^") wrong(begin, at_, "unexpected character '^'", "a power is written '**'");
    finish(begin, kind);
  }

  // 'text': a string in other languages. Ends with its line at the latest.
  void quoted_text() {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && peek() != '\'' && peek() != '\n') ++at_;
    std::string value(text_.substr(begin + 1, at_ - begin - 1));
    if (peek() == '\'') ++at_;
    wrong(begin, begin + 1, "unexpected character '''", "a string is written with \" around it");
    finish(begin, TokenKind::String).string = std::move(value);
  }

  void unknown() {
    const std::size_t begin = at_;
    const bool is_ascii = static_cast<unsigned char>(peek()) < 0x80;
    if (is_ascii) {
      ++at_;
      has_skipped_ = true;
      const auto code = static_cast<unsigned char>(text_[begin]);
      if (code < 0x20 || code == 0x7F)
        return wrong(begin, at_, "unexpected control character of code " + std::to_string(code));
      return wrong(begin, at_, "unexpected character '" + std::string(1, text_[begin]) + "'");
    }
    word();  // a name of letters that names cannot have, most likely
  }

  bool is_other_letter() const {
    if (static_cast<unsigned char>(peek()) < 0x80) return false;
    const std::string_view rest = text_.substr(at_);
    return std::none_of(kSymbols.begin(), kSymbols.end(),
                        [&](const auto& row) { return rest.starts_with(row.first); });
  }

  void word() {
    const std::size_t begin = at_;
    std::size_t first_other = std::string_view::npos;
    while (at_ < text_.size()) {
      const bool is_other = is_other_letter();
      if (!is_other && !in_word(peek())) break;
      if (is_other) first_other = std::min(first_other, at_);
      ++at_;
    }
    if (first_other != std::string_view::npos) {
      std::size_t end = first_other + 1;
      while (end < at_ && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80U) ++end;
      const std::string letter(text_.substr(first_other, end - first_other));
      if (letter == "\xE2\x80\x9C" || letter == "\xE2\x80\x9D")
        wrong(first_other, end, "unexpected character '" + letter + "'",
              "a string is written with straight quotes: \"");
      else
        wrong(first_other, end, "unexpected character '" + letter + "'",
              "names are made of the letters a-z, A-Z, digits and '_'");
    }
    finish(begin, TokenKind::Word);
  }

  // ---- numbers

  // Digits with single underscores between them, added to `digits`.
  template <class IsDigit>
  void digits(std::string& digits, IsDigit is_one) {
    while (is_one(peek()) || (peek() == '_' && is_one(peek(1)) && !digits.empty())) {
      if (peek() != '_') digits += peek();
      ++at_;
    }
  }

  void number() {
    const std::size_t begin = at_;
    std::string text;
    bool is_float = false;
    int base = 10;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      base = 16;
      at_ += 2;
      digits(text, is_hex);
    } else {
      digits(text, is_digit);
      if (peek() == '.' && is_digit(peek(1))) {
        is_float = true;
        text += '.';
        ++at_;
        digits(text, is_digit);
      }
      const bool is_signed = peek(1) == '+' || peek(1) == '-';
      if ((peek() == 'e' || peek() == 'E') && is_digit(peek(is_signed ? 2 : 1))) {
        is_float = true;
        text += 'e';
        ++at_;
        if (is_signed) text += text_[at_++];
        digits(text, is_digit);
      }
    }
    if (!after_number(begin) && text.empty())
      wrong(begin, at_, "'0x' needs hexadecimal digits after it");
    if (is_float)
      real(begin, text);
    else
      integer(begin, text, base);
  }

  // Looks at what touches a number. Reports what may not, and takes it into the token.
  bool after_number(std::size_t begin) {
    if (peek() == 'i' && !in_word(peek(1))) {
      ++at_;
      wrong(begin, at_, "complex numbers are not supported");
      return true;
    }
    if (!in_word(peek())) return false;
    const std::size_t end = at_;
    while (in_word(peek())) ++at_;
    const std::string number(text_.substr(begin, end - begin));
    const std::string rest(text_.substr(end, at_ - end));
    wrong(begin, at_, "'" + number + rest + "' is neither a number nor a name",
          starts_word(rest[0]) && rest[0] != '_'
              ? "a product is written " + number + " * " + rest
              : std::string("'_' may stand between two digits only"));
    return true;
  }

  void integer(std::size_t begin, const std::string& text, int base) {
    std::uint64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (result.ec == std::errc::result_out_of_range || value > kMostInteger) {
      wrong(begin, at_,
            "the integer is too large: the largest is " +
                std::to_string(std::numeric_limits<std::int64_t>::max()),
            base == 10 ? "write it with a point to make it a float" : "");
      value = 0;
    }
    finish(begin, TokenKind::Integer).integer = value;
  }

  void real(std::size_t begin, const std::string& text) {
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc::result_out_of_range) {
      // Too small is zero. Which it was, from_chars does not say.
      const std::size_t first = text.find_first_not_of("0.");
      const bool is_small = text.find("e-") != std::string::npos ||
                            (first != std::string::npos && text.find('.') < first);
      value = 0;
      if (!is_small) wrong(begin, at_, "the number is too large for a 64-bit float");
    }
    finish(begin, TokenKind::Float).real = value;
  }

  // ---- strings

  void string() {
    const std::size_t begin = at_++;
    std::string value;
    while (at_ < text_.size() && peek() != '"') {
      if (peek() == '\\' && at_ + 1 < text_.size()) {
        escape(value);
      } else {
        value += peek();
        ++at_;
      }
    }
    if (at_ < text_.size()) {
      ++at_;
    } else {
      wrong(begin, begin + 1, "this string has no end", "close it with '\"'");
      out_.is_cut = true;
    }
    finish(begin, TokenKind::String).string = std::move(value);
  }
  void escape(std::string& value) {
    const char next = peek(1);
    at_ += 2;
    switch (next) {
      case 'n':
        value += '\n';
        break;
      case 't':
        value += '\t';
        break;
      case 'r':
        value += '\r';
        break;
      case '"':
      case '\\':
        value += next;
        break;
      default:  // kept as it is
        value += '\\';
        value += next;
    }
  }

  std::uint32_t source_;
  std::string_view text_;
  std::vector<Diagnostic>& diagnostics_;
  Tokens out_;
  std::size_t at_ = 0;
  std::size_t mistakes_ = 0;
  bool is_new_line_ = true;
  bool has_skipped_ = false;
};

}  // namespace

Tokens tokenize(const Sources& sources, std::uint32_t source,
                std::vector<Diagnostic>& diagnostics) {
  return Lexer(sources, source, diagnostics).run();
}

std::span<const std::string_view> reserved_words() noexcept { return kReserved; }

bool is_reserved(std::string_view word) noexcept {
  return std::binary_search(kReserved.begin(), kReserved.end(), word);
}

}  // namespace tl::lang
