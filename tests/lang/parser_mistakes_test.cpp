// What is said about programs that are wrong, and that it is said once.
#include "lang/support.h"

namespace tl::lang {
namespace {

// ---- single mistakes

TEST(Mistakes, SayWhatWasExpectedAndWhatWasFound) {
  EXPECT_EQ(mistakes_in("let = 5"), Texts{"1:11 expected the name of a variable, found '='"});
  EXPECT_EQ(mistakes_in("let x 5"),
            Texts{"1:13 expected '=' after the name of a variable, found '5'"});
  EXPECT_EQ(mistakes_in("x = "), Texts{"2:1 expected an expression, found '}'"});
  EXPECT_EQ(mistakes_in("x = 1 + * 2"), Texts{"1:15 expected an expression, found '*'"});
  EXPECT_EQ(mistakes_in("f(1,, 2)"), Texts{"1:11 expected an expression, found ','"});
  EXPECT_EQ(mistakes_in("while { }"),
            Texts{"1:13 expected an expression before the block, found '{'"});
  EXPECT_EQ(mistakes_in("loop x"), Texts{"1:12 expected '{' after 'loop', found 'x'"});
  EXPECT_EQ(mistakes_in("x.5"), Texts{"1:9 expected a name after '.', found '5'"});
  EXPECT_EQ(mistakes_in("else { }"), Texts{"1:7 'else' has no 'if' before it"});
  EXPECT_EQ(mistakes_in("A(x) <- B(x)"), Texts{"1:12 a rule cannot stand inside of a block"});
  EXPECT_EQ(parsed("import foo").mistakes,
            Texts{"1:8 expected the path of a file, as a string, after 'import', found 'foo'"});
  EXPECT_EQ(parsed("struct P { x }").mistakes,
            Texts{"1:14 expected ':' and a type after the name of a field, found '}'"});
  EXPECT_EQ(parsed("fn (x) { }").mistakes, Texts{"1:4 expected the name of a function, found '('"});
  EXPECT_EQ(parsed("relation R(x)").mistakes,
            Texts{"1:13 expected ':' and a type after 'x', found ')'"});
}

struct Hinted {
  const char* text;
  const char* mistake;
  const char* hint;
};

TEST(Mistakes, HintAtTheFix) {
  const Hinted cases[] = {
      {"main { if a = 1 { } }", "1:13 expected '{', found '='",
       "two values are compared with '=='"},
      {"main { x = (a = b) }", "1:15 expected ',' or ')', found '='",
       "two values are compared with '=='"},
      {"main { if a { } elif b { } }", "1:17 expected 'else if', found 'elif'", "write 'else if'"},
      {"main { print \"x\" }", "1:14 expected '(' after 'print', found a string",
       "write: print(...)"},
      {"main { let range = 3 }",
       "1:12 expected the name of a variable, found the reserved word 'range'",
       "choose another name, such as 'range_'"},
      {"main { var x = 3 }", "1:12 expected an operator or a new line after 'var', found 'x'",
       "a variable is declared with: let x = 1"},
      {"main { let mut x = 3 }", "1:12 expected the name of a variable, found 'mut'",
       "leave it out: every variable can be assigned"},
      {"def f(x) { }", "1:5 expected an operator or a new line after 'def', found 'f'",
       "a function is declared with 'fn', outside of main"},
      {"fn f() : int { }", "1:8 expected '->' or '{', found ':'",
       "the type of the result follows '->'"},
      {"main { x++ }", "1:10 expected an expression, found '+'",
       "a variable grows by one with x += 1"},
      {"main { x = .5 }", "1:12 expected an expression, found '.'", "write 0.5"},
      {"main { for i = 1 { } }", "1:14 expected 'in' after the variable, found '='",
       "write: for i in 0..10 { ... }"},
      {"main { match x { 1 -> 2 } }", "1:20 expected '=>' after the pattern, found '->'",
       "an arm is written: pattern => value"},
      {"main { f(a b) }", "1:12 expected ',' or ')', found 'b'", "'(' was opened at 1:9"},
      {"main { x = {} }", "1:13 expected the entries of a map, found '}'",
       "an empty map is written {:}"},
      {"main { fn f() { } }", "1:8 'fn' cannot stand inside of a block",
       "declare it outside, or as a value: let f = fn(x) { ... }"},
      {"print(1)", "1:1 statements cannot stand outside of a block", "put them into main { ... }"},
      {"main { } main { }", "1:10 'main' is there already", "a program has one main block"},
      {"main { } }", "1:10 unexpected '}'", "it has no '{' before it"},
      {"main { f(1)", "1:12 expected '}', found the end of the file",
       "the '{' at 1:6 is without its '}'"},
      {"main { a & b }", "1:10 unexpected character '&'", "write '&&' or 'and'"},
  };
  for (const Hinted& c : cases) {
    const Parsed out = parsed(c.text);
    EXPECT_EQ(out.mistakes, Texts{c.mistake}) << c.text;
    EXPECT_EQ(out.hints, Texts{c.hint}) << c.text;
  }
}

// ---- several

TEST(Mistakes, EachStatementTellsOfItsOwn) {
  const Parsed out = parsed(
      "main {\n"
      "    let = 1\n"
      "    let ok = 2\n"
      "    f(,)\n"
      "    while x {\n"
      "        y = = 3\n"
      "        z = 4\n"
      "    }\n"
      "    g(ok)\n"
      "}\n"
      "fn bad(x int) { }\n"
      "fn good() { }\n");
  EXPECT_EQ(out.mistakes, (Texts{"2:9 expected the name of a variable, found '='",
                                 "4:7 expected an expression, found ','",
                                 "6:13 expected an expression, found '='",
                                 "11:10 expected ',' or ')', found 'int'"}));
  EXPECT_EQ(out.tree,
            "(fn good () -> _ {})\n(main {(let ok 2) (while x {(= z 4)}) (call g ok)})\n");
}

TEST(Mistakes, AnOpenBracketEndsWithItsStatement) {
  const Parsed out = parsed("main {\n  let y = (1 + 2\n  let z = [4\n  print(z\n}\n");
  EXPECT_EQ(out.mistakes, (Texts{"3:3 expected ',' or ')', found the reserved word 'let'",
                                 "4:3 expected ',' or ']', found 'print'",
                                 "5:1 expected ',' or ')', found '}'"}));
}

TEST(Mistakes, LinesInsideABrokenCallAreSkipped) {
  const Parsed out = parsed("main {\n  f(a\n    b,\n    c)\n  let x = 1\n}");
  EXPECT_EQ(out.mistakes, Texts{"3:5 expected ',' or ')', found 'b'"});
  EXPECT_EQ(out.tree, "(main {(let x 1)})\n");
}

TEST(Mistakes, AMissingBraceIsLookedForByIndentation) {
  const Parsed out = parsed(
      "fn f(x: int) -> int {\n"
      "    if x > 1 {\n"
      "        return 3\n"
      "    return 4\n"
      "}\n"
      "main {\n"
      "    f(1)\n"
      "}\n");
  EXPECT_EQ(out.mistakes, Texts{"6:1 expected '}', found the reserved word 'main'"});
  EXPECT_EQ(out.hints, Texts{"the '{' at 2:14 may be without its '}'"});
  EXPECT_EQ(out.tree, "(main {(call f 1)})\n");
}

TEST(Mistakes, AMethodThatIsWrongLeavesTheOthers) {
  const Parsed out = parsed(
      "impl P {\n"
      "    fn a(self x) {\n"
      "        self.y\n"
      "    }\n"
      "    fn b(self) { }\n"
      "}\n");
  EXPECT_EQ(out.mistakes, Texts{"2:15 expected ',' or ')', found 'x'"});
  EXPECT_EQ(out.tree, "(impl P (fn b (self) -> _ {}))\n");
}

TEST(Mistakes, ManyStatementsOutsideAreToldOfOnce) {
  EXPECT_EQ(parsed("x = 1\nprint(x)\nfor i in x { }\n").mistakes,
            Texts{"1:1 statements cannot stand outside of a block"});
}

TEST(Mistakes, ATextWithoutAnEndIsToldOfOnce) {
  EXPECT_EQ(parsed("main {\n  print(\"abc)\n}\n").mistakes, Texts{"2:9 this string has no end"});
}

TEST(Mistakes, ComeInTheOrderOfTheText) {
  EXPECT_EQ(parsed("main {\n let = 1\n x = $\n let = 2\n}").mistakes,
            (Texts{"2:6 expected the name of a variable, found '='", "3:6 unexpected character '$'",
                   "4:6 expected the name of a variable, found '='"}));
}

TEST(Mistakes, StopAfterTwenty) {
  std::string text = "main {\n";
  for (int i = 0; i < 100; ++i) text += "  let = 1\n";
  EXPECT_EQ(parsed(text + "}").mistakes.size(), 20U);
}

// ---- depth

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Depth, WhatIsNestedTooDeepIsAMistake) {
  constexpr int kDeep = 20'000;
  for (const char* open : {"(",           "[",
                           "-",           "!",
                           "not ",        "{",
                           "f(",          "|x| ",
                           "fn(x) {",     "match x { _ => ",
                           "loop {",      "if a {} else ",
                           "learn {",     "let x = {1:",
                           "P { a: ",     "let x: list<",
                           "let x: (",    "match x { (",
                           "inv ",        "let x = if a {",
                           "with T {",    "main {",
                           "a[",          "x = a ** (",
                           "[x for x in "}) {
    const Parsed out = parsed("main {\n" + repeated(open, kDeep) + "\n}");
    ASSERT_FALSE(out.mistakes.empty()) << open;
    EXPECT_LE(out.mistakes.size(), 20U) << open;
  }
  EXPECT_EQ(mistakes_in("x = " + repeated("(", 500) + "1" + repeated(")", 500)),
            Texts{"1:410 expressions and blocks are nested more than 400 deep"});
  EXPECT_EQ(body("x = " + repeated("(", 390) + "1" + repeated(")", 390)), "(= x 1)");
}

TEST(Depth, ChainsHaveALimitToo) {
  for (const char* link : {" + 1", ".a", "()", "[0]", " < 1", " && x"}) {
    const Texts out = mistakes_in("x = f" + repeated(link, 5000));
    ASSERT_EQ(out.size(), 1U) << link;
    EXPECT_NE(out[0].find("more than 1000 operators in a row"), std::string::npos) << out[0];
    EXPECT_TRUE(mistakes_in("x = f" + repeated(link, 900)).empty()) << link;
  }
}

TEST(Depth, LengthHasNone) {
  EXPECT_TRUE(mistakes_in("f(" + repeated("1, ", 50'000) + ")").empty());
  EXPECT_TRUE(mistakes_in(repeated("x = 1\n", 50'000)).empty());
}

// ---- the prompt

struct Input {
  std::string tree;
  Texts mistakes;
  bool incomplete = false;
};

Input input(std::string text) {
  Sources sources;
  const std::uint32_t id = sources.add("input", std::move(text));
  std::vector<Diagnostic> diagnostics;
  Input out;
  const ast::Program program = parse_input(sources, id, diagnostics, out.incomplete);
  out.tree = dump(program);
  out.mistakes = mistakes(sources, diagnostics);
  return out;
}

TEST(Prompt, TakesStatementsAndDeclarations) {
  const Input out =
      input("let x = 1\nfn f() { }\nA(x) <- B(x)\nprint(x) tensor t: float32[2]\na ~ b");
  EXPECT_EQ(out.mistakes, Texts{});
  EXPECT_EQ(out.tree,
            "(fn f () -> _ {})\n(rule (atom A x) (atom B x))\n"
            "(main {(let x 1) (call print x) (tensor t float32[2] _) (~ a b)})\n");
  EXPECT_EQ(input("main { f() }").tree, "(main {(call f)})\n");
  EXPECT_EQ(input("R(alice, X)?").tree, "(main {(query (atom R alice X))})\n");
  EXPECT_EQ(input("").tree, "");
}

TEST(Prompt, KnowsWhenMoreLinesAreNeeded) {
  for (const char* text : {"fn f() {",
                           "fn f() {\n  let x = 1\n",
                           "f(1,",
                           "x = [1, 2",
                           "x = {\"a\": 1,",
                           "x = \"abc",
                           "/* note",
                           "match x {",
                           "match x { 1 => 2,",
                           "if a {\n",
                           "struct P {",
                           "impl P {",
                           "embedding E {",
                           "learn {",
                           "infer {",
                           "f(",
                           "a[1:",
                           "x = (1 +",
                           "x = 1 +",
                           "let x =",
                           "if a",
                           "fn f"}) {
    const Input out = input(text);
    EXPECT_TRUE(out.incomplete) << text;
    EXPECT_EQ(out.mistakes, Texts{}) << text;
  }
}

TEST(Prompt, TellsOfMistakesAtOnce) {
  for (const char* text : {"let = 3", "f(1))", "fn f() { let = 3", "x = )"}) {
    const Input out = input(text);
    EXPECT_FALSE(out.incomplete) << text;
    EXPECT_FALSE(out.mistakes.empty()) << text;
  }
  EXPECT_FALSE(input("x = 1").incomplete);
}

}  // namespace
}  // namespace tl::lang
