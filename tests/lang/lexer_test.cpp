#include "lang/lexer.h"

#include "lang/support.h"

namespace tl::lang {
namespace {

struct Lexed {
  Sources sources;
  std::vector<Diagnostic> diagnostics;
  Tokens tokens;

  explicit Lexed(std::string text) {
    const std::uint32_t id = sources.add("test.tl", std::move(text));
    tokens = tokenize(sources, id, diagnostics);
  }
  Texts texts() const {
    Texts out;
    for (const Token& token : tokens.list) out.emplace_back(token.text);
    out.pop_back();  // End
    return out;
  }
  Texts mistakes() const { return lang::mistakes(sources, diagnostics); }
};

Texts texts(std::string text) {
  const Lexed lexed(std::move(text));
  EXPECT_EQ(lexed.mistakes(), Texts{});
  return lexed.texts();
}

Texts lexer_mistakes(std::string text) { return Lexed(std::move(text)).mistakes(); }

TEST(Lexer, SplitsOperatorsAtTheLongestMatch) {
  EXPECT_EQ(texts("a**b*=c<=d<-e<f"),
            (Texts{"a", "**", "b", "*=", "c", "<=", "d", "<-", "e", "<", "f"}));
  EXPECT_EQ(texts("a::b:=c:d..e.f"),
            (Texts{"a", "::", "b", ":=", "c", ":", "d", "..", "e", ".", "f"}));
  EXPECT_EQ(texts("&&||!==>->=-+=-=/=?~|@%;"), (Texts{"&&", "||", "!=", "=>", "->", "=", "-", "+=",
                                                      "-=", "/=", "?", "~", "|", "@", "%", ";"}));
  EXPECT_EQ(texts("a\u2297b\u2299c\u2248d"),
            (Texts{"a", "\u2297", "b", "\u2299", "c", "\u2248", "d"}));
}

TEST(Lexer, WordsAreWholeWords) {
  EXPECT_EQ(
      texts("letter break_flag returned inv_freq true_x entity_kind integer"),
      (Texts{"letter", "break_flag", "returned", "inv_freq", "true_x", "entity_kind", "integer"}));
}

TEST(Lexer, KnowsWhichTokenBeginsALine) {
  const Lexed lexed("a b\nc // x\n/* y */ d /* \n */ e");
  std::vector<bool> starts;
  for (const Token& token : lexed.tokens.list) starts.push_back(token.newline_before);
  EXPECT_EQ(starts, (std::vector<bool>{true, false, true, true, true, false}));
}

TEST(Lexer, ReadsNumbers) {
  const Lexed lexed("0 42 1_000_000 0xFf 0x1_0 9223372036854775807 1.5 1e-5 2E+3 1.5e2 1_0.2_5");
  EXPECT_EQ(lexed.mistakes(), Texts{});
  std::vector<std::uint64_t> integers;
  std::vector<double> reals;
  for (const Token& token : lexed.tokens.list) {
    if (token.kind == TokenKind::Integer) integers.push_back(token.integer);
    if (token.kind == TokenKind::Float) reals.push_back(token.real);
  }
  EXPECT_EQ(integers, (std::vector<std::uint64_t>{0, 42, 1000000, 255, 16, 9223372036854775807U}));
  EXPECT_EQ(reals, (std::vector<double>{1.5, 1e-5, 2000, 150, 10.25}));
}

TEST(Lexer, ANumberTakesAPointWithDigitsOnly) {
  EXPECT_EQ(texts("0..5 1.len a[1.5..2]"),
            (Texts{"0", "..", "5", "1", ".", "len", "a", "[", "1.5", "..", "2", "]"}));
}

TEST(Lexer, TooSmallIsZeroAndTooLargeIsAMistake) {
  EXPECT_EQ(lexer_mistakes("1e-999 0.0e-999"), Texts{});
  EXPECT_EQ(lexer_mistakes("1e999"), Texts{"1:1 the number is too large for a 64-bit float"});
  EXPECT_EQ(lexer_mistakes("x 9223372036854775809"),
            Texts{"1:3 the integer is too large: the largest is 9223372036854775807"});
  EXPECT_EQ(lexer_mistakes("0x8000000000000001"),
            Texts{"1:1 the integer is too large: the largest is 9223372036854775807"});
}

TEST(Lexer, RejectsWhatTouchesANumber) {
  EXPECT_EQ(lexer_mistakes("2x"), Texts{"1:1 '2x' is neither a number nor a name"});
  EXPECT_EQ(lexer_mistakes("1__0"), Texts{"1:1 '1__0' is neither a number nor a name"});
  EXPECT_EQ(lexer_mistakes("1_"), Texts{"1:1 '1_' is neither a number nor a name"});
  EXPECT_EQ(lexer_mistakes("0x"), Texts{"1:1 '0x' needs hexadecimal digits after it"});
  EXPECT_EQ(lexer_mistakes("0xZ"), Texts{"1:1 '0xZ' is neither a number nor a name"});
}

TEST(Lexer, AnImaginaryPartTouchesItsNumber) {
  EXPECT_EQ(lexer_mistakes("1+2i"), Texts{"1:3 complex numbers are not supported"});
  EXPECT_EQ(lexer_mistakes("1.5e3i"), Texts{"1:1 complex numbers are not supported"});
  EXPECT_EQ(texts("1 + 2\nif i"), (Texts{"1", "+", "2", "if", "i"}));
  EXPECT_EQ(texts("1 + 2 i"), (Texts{"1", "+", "2", "i"}));
}

TEST(Lexer, ExpandsEscapesOnceFromTheLeft) {
  const Lexed lexed(R"("a\\n" "\n\t\r\"\\" "\q\u0041" "é")");
  std::vector<std::string> strings;
  for (const Token& token : lexed.tokens.list)
    if (token.kind == TokenKind::String) strings.push_back(token.string);
  EXPECT_EQ(strings, (Texts{"a\\n", "\n\t\r\"\\", "\\q\\u0041", "é"}));
  EXPECT_EQ(lexed.mistakes(), Texts{});
}

TEST(Lexer, StringsMaySpanLines) {
  const Lexed lexed("\"a\nb\" c");
  EXPECT_EQ(lexed.tokens.list[0].string, "a\nb");
  EXPECT_FALSE(lexed.tokens.list[1].newline_before);
}

TEST(Lexer, CommentsEndWithTheirLineOrTheFile) {
  const Lexed lexed("a // one\nb /* two /* three */ c // four");
  EXPECT_EQ(lexed.mistakes(), Texts{});
  EXPECT_EQ(lexed.texts(), (Texts{"a", "b", "c"}));
  ASSERT_EQ(lexed.tokens.comments.size(), 3U);
  EXPECT_EQ(lexed.sources.text(lexed.tokens.comments[0].span), "// one");
  EXPECT_EQ(lexed.sources.text(lexed.tokens.comments[1].span), "/* two /* three */");
  EXPECT_EQ(lexed.sources.text(lexed.tokens.comments[2].span), "// four");
}

TEST(Lexer, TellsWhereWhatHasNoEndBegan) {
  const Lexed string("a\n \"b\nc");
  EXPECT_EQ(string.mistakes(), Texts{"2:2 this string has no end"});
  EXPECT_TRUE(string.tokens.is_cut);
  const Lexed comment("a /* b");
  EXPECT_EQ(comment.mistakes(), Texts{"1:3 this comment has no end"});
  EXPECT_TRUE(comment.tokens.is_cut);
  EXPECT_EQ(lexer_mistakes("\"a\\"), Texts{"1:1 this string has no end"});
}

TEST(Lexer, AFirstLineForTheShellAndAByteOrderMarkAreSkipped) {
  EXPECT_EQ(texts("#!/usr/bin/env tl\na"), (Texts{"a"}));
  EXPECT_EQ(texts("\xEF\xBB\xBF"
                  "a"),
            (Texts{"a"}));
}

TEST(Lexer, TellsOfOtherCharactersOnce) {
  EXPECT_EQ(lexer_mistakes("größenwahn $ `"),
            (Texts{"1:3 unexpected character 'ö'", "1:12 unexpected character '$'",
                   "1:14 unexpected character '`'"}));
  EXPECT_EQ(lexer_mistakes("\x01"), Texts{"1:1 unexpected control character of code 1"});
  EXPECT_EQ(lexer_mistakes("a & b ^ c"),
            (Texts{"1:3 unexpected character '&'", "1:7 unexpected character '^'"}));
  EXPECT_EQ(lexer_mistakes("'text' # note\nb"),
            (Texts{"1:1 unexpected character '''", "1:8 '#' does not begin a comment"}));
}

TEST(Lexer, RejectsWhatIsNotUtf8) {
  EXPECT_EQ(lexer_mistakes("ab\xFF\xFE c \x80"), Texts{"1:3 the text is not UTF-8"});
}

TEST(Lexer, StopsTellingAfterTwenty) {
  EXPECT_EQ(lexer_mistakes(std::string(500, '$')).size(), 20U);
}

TEST(Lexer, HasTheReservedWordsOfTheLanguage) {
  for (const char* word :
       {"tensor",   "relation",  "rule",     "fn",      "main",      "learnable", "frozen",
        "entity",   "concept",   "embed",    "einsum",  "infer",     "learn",     "forward",
        "backward", "gradient",  "symbolic", "if",      "else",      "for",       "while",
        "loop",     "break",     "return",   "in",      "range",     "let",       "true",
        "false",    "not",       "and",      "or",      "objective", "optimizer", "epochs",
        "auto",     "void",      "float32",  "float16", "int16",     "int32",     "int64",
        "bool",     "complex16", "python",   "import",  "as",        "match"})
    EXPECT_TRUE(is_reserved(word)) << word;
  for (const char* word :
       {"test",     "bench",     "struct",    "impl",   "embedding", "relation_embedding",
        "entities", "relations", "dimension", "init",   "scheduler", "all",
        "random",   "xavier",    "he",        "zeros",  "ones",      "with",
        "where",    "panic",     "self",      "inv",    "shape",     "rank",
        "norm",     "int",       "float",     "string", "f16",       "f32",
        "f64",      "i32",       "i64",       "Tensor", "KVCache",   "call",
        "continue", "const"})
    EXPECT_FALSE(is_reserved(word)) << word;
}

}  // namespace
}  // namespace tl::lang
