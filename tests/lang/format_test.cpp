#include "lang/format.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "lang/lexer.h"
#include "lang/support.h"

namespace tl::lang {
namespace {

std::string formatted(const std::string& text) {
  Sources sources;
  const std::uint32_t id = sources.add("test.tl", text);
  std::vector<Diagnostic> diagnostics;
  std::string out = format(sources, id, diagnostics);
  EXPECT_EQ(mistakes(sources, diagnostics), Texts{}) << text;
  return out;
}

// Formats, and looks that it means the same and is left alone the next time.
std::string checked(const std::string& text) {
  const std::string once = formatted(text);
  EXPECT_EQ(formatted(once), once) << text;
  EXPECT_EQ(tree(once), tree(text)) << once;
  return once;
}

// The same for statements.
std::string checked_body(const std::string& statements) {
  constexpr std::string_view kStart = "main {\n";
  constexpr std::string_view kEnd = "}\n";
  const std::string out = checked("main {\n" + statements + "\n}");
  if (!out.starts_with(kStart) || !out.ends_with(kEnd)) return out;
  return out.substr(kStart.size(), out.size() - kStart.size() - kEnd.size());
}

TEST(Format, IndentsByFour) {
  EXPECT_EQ(checked("fn f(){\nif a {\nb=1\n} else {\n   loop {\nbreak\n}\n}\n}"),
            "fn f() {\n    if a {\n        b = 1\n    } else {\n        loop {\n"
            "            break\n        }\n    }\n}\n");
}

TEST(Format, PutsOneSpaceAroundOperators) {
  EXPECT_EQ(checked_body("x=a+b*-c**2\ny  =  !a&&b||c<-1"),
            "    x = a + b * -c ** 2\n    y = !a && b || c < -1\n");
  EXPECT_EQ(checked_body("a [ 1 : - 1 , : , ::2 , .. 3 ]"), "    a[1:-1, :, ::2, ..3]\n");
  EXPECT_EQ(checked_body("a[1:-1,:,::2,..3]"), "    a[1:-1, :, ::2, ..3]\n");
  EXPECT_EQ(checked_body("f( x ,dim:1,keep = true ) . g ( )"), "    f(x, dim: 1, keep=true).g()\n");
  EXPECT_EQ(checked_body("for i in 0 .. n{}"), "    for i in 0..n {}\n");
  EXPECT_EQ(checked_body("let f=|x,y:int|x+y\nlet g=||3"),
            "    let f = |x, y: int| x + y\n    let g = || 3\n");
  EXPECT_EQ(checked_body("let m={ \"a\":1 , }\nlet p=P{x:1}\nlet e={ : }"),
            "    let m = {\"a\": 1,}\n    let p = P { x: 1 }\n    let e = {:}\n");
  EXPECT_EQ(checked_body("Box < int >::make( 3 )\nx as int"),
            "    Box<int>::make(3)\n    x as int\n");
  EXPECT_EQ(checked_body("R( a,X ) ?where X>3"), "    R(a, X)? where X > 3\n");
  EXPECT_EQ(checked_body("a=inv  [ 1 ]+inv[1]\nb=inv -x*inv-x"),
            "    a = inv [1] + inv[1]\n    b = inv -x * inv - x\n");
  EXPECT_EQ(checked_body("python import a . b as c"), "    python import a.b as c\n");
}

TEST(Format, Declarations) {
  EXPECT_EQ(checked("entity  P={ a,b }\nrelation R( x:P )embed float16 [4] learnable"),
            "entity P = {a, b}\nrelation R(x: P) embed float16[4] learnable\n");
  EXPECT_EQ(checked("A(x):-B(x),not C(x)\nrule A( x )<-B( x )\nY[i]~X[i]"),
            "A(x) :- B(x), not C(x)\nrule A(x) <- B(x)\nY[i] ~ X[i]\n");
  EXPECT_EQ(checked("embedding E{entities:auto dimension:8}"),
            "embedding E { entities: auto dimension: 8 }\n");
  EXPECT_EQ(checked("struct P < T >\n{\nx:int,y:float16[2,?] learnable}"),
            "struct P<T> {\n    x: int,\n    y: float16[2, ?] learnable\n}\n");
  EXPECT_EQ(checked("fn f( y,x:int=3 )->( int,float ){x}"),
            "fn f(y, x: int = 3) -> (int, float) { x }\n");
  EXPECT_EQ(checked("impl<T> Drop for P<T>{fn a(self){} fn b(){}}"),
            "impl<T> Drop for P<T> {\n    fn a(self) {}\n    fn b() {}\n}\n");
  EXPECT_EQ(checked("import \"a\" const N:int=3 main{}"),
            "import \"a\"\nconst N: int = 3\nmain {}\n");
}

TEST(Format, StatementsOfABlockHaveLinesOfTheirOwn) {
  EXPECT_EQ(checked("main { a() b() }"), "main {\n    a()\n    b()\n}\n");
  EXPECT_EQ(checked("main { a() }"), "main { a() }\n");
  EXPECT_EQ(checked("main { if x { a() b() } }"),
            "main {\n    if x {\n        a()\n        b()\n    }\n}\n");
  EXPECT_EQ(checked("main { a()\n}"), "main {\n    a()\n}\n");
  EXPECT_EQ(checked("main {\n\n}"), "main {}\n");
  EXPECT_EQ(checked_body("learn { objective: a, epochs: 3 }"),
            "    learn {\n        objective: a,\n        epochs: 3\n    }\n");
  EXPECT_EQ(checked_body("infer { forward R(x)? }"), "    infer { forward R(x)? }\n");
}

TEST(Format, MatchesKeepTheirLines) {
  EXPECT_EQ(checked_body("let y=match x{1=>a,_=>b}"), "    let y = match x { 1 => a, _ => b }\n");
  EXPECT_EQ(checked_body("match x{\n1=>{a=1 b=2}\n_ if c=>d}"),
            "    match x {\n        1 => {\n            a = 1\n            b = 2\n        }\n"
            "        _ if c => d\n    }\n");
}

TEST(Format, ElseIsOnTheLineOfTheBrace) {
  EXPECT_EQ(checked_body("if a\n{ b }\nelse if c\n{ d }\nelse\n{ e }"),
            "    if a { b } else if c { d } else { e }\n");
}

TEST(Format, LinesOfAnExpressionStay) {
  EXPECT_EQ(checked_body("let x = a\n+ b\n- c\nlet y = a\n.f()\n.g()"),
            "    let x = a\n        + b\n        - c\n    let y = a\n        .f()\n"
            "        .g()\n");
  EXPECT_EQ(checked_body("f(a,\nb\n, c)\ng(\n[\n1,\n2\n]\n)"),
            "    f(a,\n        b, c)\n    g(\n        [\n            1,\n            2\n        ]\n"
            "    )\n");
  EXPECT_EQ(checked_body("f([\n1\n], |x| {\nx\n})"),
            "    f([\n        1\n    ], |x| {\n        x\n    })\n");
}

TEST(Format, CommentsStay) {
  EXPECT_EQ(
      checked(
          "#!/usr/bin/env tl\n// one\n\n\n\n/* two */ fn f() { // three  \n// four\n}// five\n"),
      "#!/usr/bin/env tl\n// one\n\n/* two */ fn f() { // three\n    // four\n} // five\n");
  EXPECT_EQ(checked_body("f(/* a */ 1, // b\n2 /* c */)\n/* d\n   e */\nx = 1"),
            "    f(/* a */ 1, // b\n        2 /* c */)\n    /* d\n   e */\n    x = 1\n");
  EXPECT_EQ(checked_body("if a { b } // c\n// d\nelse { e }"),
            "    if a { b } // c\n    // d\n    else { e }\n");
  EXPECT_EQ(checked("// only"), "// only\n");
  EXPECT_EQ(checked("main { a() } // end"), "main { a() } // end\n");
  EXPECT_EQ(checked_body("a = 1; // why\nb = 2"), "    a = 1 // why\n    b = 2\n");
}

TEST(Format, AtMostOneEmptyLineStays) {
  EXPECT_EQ(checked("\n\n\nfn f() {\n\n\n  a()\n\n\n\n  b()\n\n}\n\n\n\nmain {}\n\n\n"),
            "fn f() {\n    a()\n\n    b()\n}\n\nmain {}\n");
  EXPECT_EQ(checked(""), "");
  EXPECT_EQ(checked("\n \n"), "");
}

TEST(Format, SemicolonsGoWhereNothingDependsOnThem) {
  EXPECT_EQ(checked_body("a(); b();; c = 1;"), "    a()\n    b()\n    c = 1\n");
  EXPECT_EQ(checked_body("x = a; -b"), "    x = a;\n    -b\n");
  EXPECT_EQ(checked_body("x = a; [1].f()"), "    x = a;\n    [1].f()\n");
  EXPECT_EQ(checked_body("return\nx; y = 1"), "    return\n        x\n    y = 1\n");
  EXPECT_EQ(checked_body("return; a"), "    return;\n    a\n");
  EXPECT_EQ(checked_body("tensor; a = 1; break; b"), "    tensor;\n    a = 1\n    break\n    b\n");
  EXPECT_EQ(checked_body("R(x)?; where(a)"), "    R(x)?;\n    where(a)\n");
}

TEST(Format, WhatDependsOnLinesStays) {
  EXPECT_EQ(checked_body("let x = a\n[1, 2]"), "    let x = a\n    [1, 2]\n");
  EXPECT_EQ(checked_body("let x = a\n{ b = 1 }"), "    let x = a\n    { b = 1 }\n");
  EXPECT_EQ(checked_body("f /* \n */ (x)"), "    f /* \n */\n    (x)\n");
  EXPECT_EQ(checked_body("let t: list<int>= [1]\nx = a<-b"),
            "    let t: list<int> = [1]\n    x = a < -b\n");
}

TEST(Format, StringsAreNotTouched) {
  EXPECT_EQ(checked_body("x=\"a\n  b  // c\\\"\"+ \"\\n\""),
            "    x = \"a\n  b  // c\\\"\" + \"\\n\"\n");
}

TEST(Format, ReturnsUnixLines) {
  EXPECT_EQ(checked("main {\r\n  a() // x\r\n  b()\r\n}\r\n"),
            "main {\n    a() // x\n    b()\n}\n");
}

TEST(Format, LeavesAProgramWithMistakesAlone) {
  Sources sources;
  const std::string text = "main {   let = 3 }";
  const std::uint32_t id = sources.add("test.tl", text);
  std::vector<Diagnostic> diagnostics;
  EXPECT_EQ(format(sources, id, diagnostics), text);
  EXPECT_EQ(diagnostics.size(), 1U);
}

const Texts& statements() {
  static const Texts kStatements = {
      "let x = -2 ** 2 ** -1",
      "y := a[i + 1, :, 1:-1, ::2, ..3]",
      "z = Box<int>::make(3).x",
      "if not a and b <-1 { c = 1 } else if a < b { d = 2 } else { 3 }",
      "for (k, v) in {\"a\": 1, \"b\": 2} { continue }",
      "for e in {alice, bob} { break }",
      "R(alice, X)? where X > 3, not Q(X)",
      "a ~ b * c",
      "infer { forward R(x)? gradient S(y)? }",
      "learn { e = x * w objective: e, optimizer: sgd(lr: 0.1), epochs: 50 }",
      "let h = match q { 0 | -1 => \"z\", P { x: 1.0, y } if a > 3 => 2, (p, _) => { return 3 } }",
      "let l = [x * 2 for x in xs if x > 1]",
      "let f = |x, y: int = 3| x + y",
      "let g = fn(x) -> int { y = x x }",
      "let em = {:}",
      "let v = if a { 1 } else { 2 }",
      "panic(\"fmt {}\", x)",
      "python import a.b as c",
      "f(x, dim: 1, keep = true)",
      "tensor t: float32[2, ?] learnable = [1e-5, 0x1F]",
      "x += inv w",
      "{ x = 1; y = 2 }",
      "loop { if a { break } }",
      "p.x[0].y = q.f(|| 3)",
      "(a, b) = (b, a,)",
      "return a as int",
      "continue",
      "return",
      "let t: map<int, list<int>>= {1: [2]}",
      "with T { f(x) }"};
  return kStatements;
}

TEST(Format, KeepsCommentsAroundEveryStatement) {
  for (const std::string& statement : statements()) {
    const std::string out = checked_body("/* a */ " + statement + " /* b */ // c\n// d");
    EXPECT_TRUE(out.starts_with("    /* a */ "));
    EXPECT_TRUE(out.ends_with(" /* b */ // c\n    // d\n"));
  }
}

TEST(Format, MeansTheSameForEveryProgramOfTheTree) {
  int programs = 0;
  for (const char* folder : {"tests/lang", "examples"}) {
    const std::filesystem::path root = std::filesystem::path(TL_SOURCE) / folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().extension() != ".tl") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(file), {});
      if (!parsed(text).mistakes.empty()) continue;  // a test of mistakes
      checked(text);
      EXPECT_FALSE(HasFailure()) << entry.path();
      ++programs;
    }
  }
  EXPECT_GT(programs, 100);
}

// Statements with lines, comments and semicolons between their tokens wherever these may be.
TEST(Format, MeansTheSameWhateverTheSpace) {
  const Texts separators = {
      " ", " ", " ", " ", " ", "\n", " // c\n", " /* d */ ", "\n\n\n", " /* e\n f */ ", ";", "\t"};
  std::mt19937 random(1);
  const auto one_of = [&](const Texts& texts) { return texts[random() % texts.size()]; };
  int valid = 0;
  for (int round = 0; round < 8000; ++round) {
    std::string text = "main {\n";
    for (std::size_t count = 1 + random() % 3; count > 0; --count) {
      Sources sources;
      std::vector<Diagnostic> none;
      const std::uint32_t id = sources.add("one.tl", one_of(statements()));
      for (const Token& token : tokenize(sources, id, none).list)
        text += std::string(token.text) + one_of(separators);
    }
    text += "\n}\n";
    if (!parsed(text).mistakes.empty()) continue;
    ++valid;
    checked(text);
    if (HasFailure()) break;
  }
  EXPECT_GT(valid, 500);
}

}  // namespace
}  // namespace tl::lang
