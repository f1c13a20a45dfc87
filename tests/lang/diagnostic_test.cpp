#include "lang/diagnostic.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace tl::lang {
namespace {

class DiagnosticTest : public testing::Test {
 protected:
  // About the first place of `part` in `text`.
  Diagnostic about(const std::string& text, const std::string& part, std::string message) {
    const std::uint32_t id = sources.add("prog.tl", text);
    const auto begin = static_cast<std::uint32_t>(text.find(part));
    return {.message = std::move(message),
            .span = {id, begin, begin + static_cast<std::uint32_t>(part.size())},
            .hint = {}};
  }
  std::string rendered(const Diagnostic& diagnostic) const {
    return render(sources, diagnostic, false);
  }
  Sources sources;
};

TEST_F(DiagnosticTest, ShowsThePlaceTheLineTheHintAndTheStack) {
  const std::string text = "fn f() {\n    let x = 1\n    print(y)\n}\nmain {\n  f()\n}\n";
  Diagnostic d = about(text, "y", "Undefined variable: y");
  d.hint = "did you mean 'x'?";
  const auto call = static_cast<std::uint32_t>(text.rfind("f()"));
  d.stack = {{"f", d.span}, {"main", {d.span.source, call, call + 3}}};
  EXPECT_EQ(rendered(d),
            "error: Undefined variable: y\n"
            " --> prog.tl:3:11\n"
            "  |\n"
            "3 |     print(y)\n"
            "  |           ^\n"
            "  = help: did you mean 'x'?\n"
            "Stack trace:\n"
            " 1. in f at prog.tl:3:11\n"
            " 2. in main at prog.tl:6:3\n");
}

TEST_F(DiagnosticTest, TheMarginIsAsWideAsTheNumber) {
  EXPECT_EQ(rendered(about(std::string(99, '\n') + "a = b", "b", "No")),
            "error: No\n"
            "   --> prog.tl:100:5\n"
            "    |\n"
            "100 | a = b\n"
            "    |     ^\n");
}

TEST_F(DiagnosticTest, WarningsSayThatTheyAre) {
  Diagnostic d = about("abc", "b", "Odd");
  d.severity = Severity::Warning;
  EXPECT_TRUE(rendered(d).starts_with("warning: Odd\n"));
}

TEST_F(DiagnosticTest, EveryCharacterHasACaret) {
  EXPECT_EQ(rendered(about("x = foo(1)", "foo(1)", "No")),
            "error: No\n --> prog.tl:1:5\n  |\n1 | x = foo(1)\n  |     ^^^^^^\n");
}

TEST_F(DiagnosticTest, TabsAndWideCharactersKeepTheCaretRight) {
  EXPECT_EQ(rendered(about("\t\ty", "y", "No")),
            "error: No\n --> prog.tl:1:3\n  |\n1 |         y\n  |         ^\n");
  EXPECT_EQ(rendered(about("print(\"é\", y)", "y", "No")),
            "error: No\n --> prog.tl:1:12\n  |\n1 | print(\"é\", y)\n  |            ^\n");
  EXPECT_EQ(rendered(about("f(\"日本\", y)", "y", "No")),
            "error: No\n --> prog.tl:1:9\n  |\n1 | f(\"日本\", y)\n  |           ^\n");
  EXPECT_EQ(rendered(about("f(\"日本\")", "\"日本\"", "No")),
            "error: No\n --> prog.tl:1:3\n  |\n1 | f(\"日本\")\n  |   ^^^^^^\n");
}

TEST_F(DiagnosticTest, OfSeveralLinesTheFirstIsUnderlinedToItsEnd) {
  EXPECT_EQ(rendered(about("x = f(1,\n  2)\n", "f(1,\n  2)", "No")),
            "error: No\n --> prog.tl:1:5\n  |\n1 | x = f(1,\n  |     ^^^^\n");
  EXPECT_EQ(rendered(about("x = f(1,\r\n  2)\r\n", "f(1,\r\n  2)", "No")),
            "error: No\n --> prog.tl:1:5\n  |\n1 | x = f(1,\n  |     ^^^^\n");
}

TEST_F(DiagnosticTest, TheEndOfTheFileHasACaretToo) {
  const std::uint32_t id = sources.add("prog.tl", "main {\n");
  EXPECT_EQ(render(sources, {.message = "No", .span = {id, 7, 7}, .hint = {}}, false),
            "error: No\n --> prog.tl:2:1\n  |\n2 |\n  | ^\n");
  const std::uint32_t empty = sources.add("empty.tl", "");
  EXPECT_EQ(render(sources, {.message = "No", .span = {empty, 0, 0}, .hint = {}}, false),
            "error: No\n --> empty.tl:1:1\n  |\n1 |\n  | ^\n");
}

TEST_F(DiagnosticTest, WhatWouldMoveTheCursorIsNotShown) {
  const std::string out = rendered(about("x = \"\x1b[2J\xE2\x80\xAE\" + y", "y", "No"));
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  EXPECT_NE(out.find("1 | x = \"\uFFFD[2J\uFFFD\" + y\n  |               ^\n"), std::string::npos)
      << out;
}

TEST_F(DiagnosticTest, OfALongLineTheNeighbourhoodIsShown) {
  const std::string out = rendered(
      about("x = " + std::string(5000, 'a') + " + here + " + std::string(5000, 'b'), "here", "No"));
  std::size_t begin = out.find("1 | ") + 4;
  const std::string line = out.substr(begin, out.find('\n', begin) - begin);
  begin = out.rfind("  | ") + 4;
  const std::string carets = out.substr(begin, out.find('\n', begin) - begin);
  EXPECT_LT(line.size(), 200U);
  EXPECT_TRUE(line.starts_with("...") && line.ends_with("..."));
  EXPECT_EQ(line.substr(carets.find('^'), 4), "here");
  EXPECT_EQ(carets.substr(carets.find('^')), "^^^^");
}

TEST_F(DiagnosticTest, DeepStacksAreFolded) {
  Diagnostic d = about("f()", "f", "Too deep");
  for (int i = 0; i < 9999; ++i) d.stack.push_back({"f", d.span});
  d.stack.push_back({"main", d.span});
  const std::string out = rendered(d);
  EXPECT_NE(out.find(" 5. in f at prog.tl:1:1\n    ... 9990 more calls\n9996. in f"),
            std::string::npos)
      << out;
  EXPECT_TRUE(out.ends_with("10000. in main at prog.tl:1:1\n"));
  d.stack.resize(20);
  EXPECT_EQ(rendered(d).find("more calls"), std::string::npos);
}

TEST_F(DiagnosticTest, WithoutASourceTheMessageIsLeft) {
  const Diagnostic d{.message = "File not found: x", .span = {7, 0, 0}, .hint = "look again"};
  EXPECT_EQ(rendered(d), "error: File not found: x\n  = help: look again\n");
  EXPECT_EQ(render_json(sources, d),
            R"({"severity":"error","message":"File not found: x","hint":"look again"})");
}

TEST_F(DiagnosticTest, ColourChangesNothingElse) {
  Diagnostic d = about("a = b", "b", "No");
  d.hint = "hint";
  const std::string coloured = render(sources, d, true);
  EXPECT_NE(coloured.find("\x1b[1;31merror\x1b[0m"), std::string::npos);
  std::string plain;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b')
      i = coloured.find('m', i);
    else
      plain += coloured[i];
  }
  EXPECT_EQ(plain, rendered(d));
}

TEST_F(DiagnosticTest, JsonHasTheSameOnOneLine) {
  Diagnostic d = about("a\nb = \"é\" + c\n", "c", "Undefined\nvariable");
  d.stack = {{"f", d.span}};
  const std::string text = render_json(sources, d);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["severity"], "error");
  EXPECT_EQ(json["message"], "Undefined\nvariable");
  EXPECT_EQ(json["file"], "prog.tl");
  EXPECT_EQ(json["line"], 2);
  EXPECT_EQ(json["column"], 11);
  EXPECT_EQ(json["end_line"], 2);
  EXPECT_EQ(json["end_column"], 12);
  EXPECT_FALSE(json.contains("hint"));
  EXPECT_EQ(json["stack"][0]["function"], "f");
  EXPECT_EQ(json["stack"][0]["line"], 2);
}

TEST_F(DiagnosticTest, JsonTakesTextThatIsNotUtf8) {
  const Diagnostic d{.message = "bad \xFF byte", .span = {9, 0, 0}, .hint = {}};
  EXPECT_EQ(nlohmann::json::parse(render_json(sources, d))["message"], "bad \uFFFD byte");
}

TEST(Source, CountsLinesAndCharacters) {
  const Source source("s.tl", "ab\né日x\r\n\nlast");
  EXPECT_EQ(source.position(0).line, 1U);
  EXPECT_EQ(source.position(2).column, 3U);  // the end of the line belongs to it
  EXPECT_EQ(source.position(8).line, 2U);
  EXPECT_EQ(source.position(8).column, 3U);
  EXPECT_EQ(source.line_text(2), "é日x");
  EXPECT_EQ(source.line_text(3), "");
  EXPECT_EQ(source.line_text(4), "last");
  EXPECT_EQ(source.line_text(5), "");
  EXPECT_EQ(source.line_text(0), "");
  EXPECT_EQ(source.position(999).line, 4U);
  EXPECT_EQ(source.position(999).column, 5U);
}

TEST(Source, TextsOfSpans) {
  Sources sources;
  const std::uint32_t id = sources.add("s.tl", "hello");
  EXPECT_EQ(sources.text({id, 1, 3}), "el");
  EXPECT_EQ(sources.text({id, 3, 99}), "lo");
  EXPECT_EQ(sources.text({id, 3, 1}), "");
  EXPECT_EQ(sources.place({id, 3, 4}), "s.tl:1:4");
  EXPECT_EQ(sources.size(), 1U);
}

}  // namespace
}  // namespace tl::lang
