#include "lang/support.h"

namespace tl::lang {
namespace {

TEST(Expressions, OperatorsBindFromTheWeakestToTheStrongest) {
  EXPECT_EQ(body("a || b && c == d < e + f * g ** h"),
            "(|| a (&& b (== c (< d (+ e (* f (** g h)))))))");
  EXPECT_EQ(body("a ** b * c + d < e == f && g || h"),
            "(|| (&& (== (< (+ (* (** a b) c) d) e) f) g) h)");
  EXPECT_EQ(body("a @ b \u2299 c / d % e \u2297 f"), "(% (/ (\u2299 (@ a b) c) d) (\u2297 e f))");
  EXPECT_EQ(body("a \u2248 b != c"), "(!= (\u2248 a b) c)");
  EXPECT_EQ(body("a <= b >= c > d"), "(> (>= (<= a b) c) d)");
}

TEST(Expressions, EveryOperatorBindsToTheLeft) {
  EXPECT_EQ(body("2 ** 3 ** 2"), "(** (** 2 3) 2)");
  EXPECT_EQ(body("a < b < c"), "(< (< a b) c)");
  EXPECT_EQ(body("a - b - c"), "(- (- a b) c)");
}

TEST(Expressions, SignsBindTighterThanPowers) {
  EXPECT_EQ(body("-2 ** 2"), "(** (neg 2) 2)");
  EXPECT_EQ(body("!a == b"), "(== (not a) b)");
  EXPECT_EQ(body("- -x"), "(neg (neg x))");
  EXPECT_EQ(body("-x.y(1)"), "(neg (method x y 1))");
}

TEST(Expressions, NotBindsWeakerThanComparisons) {
  EXPECT_EQ(body("not a == b and c or not d"), "(|| (&& (not (== a b)) c) (not d))");
  EXPECT_EQ(body("a == not b"), "(== a (not b))");
}

TEST(Expressions, ACastTakesTheWholeSum) {
  EXPECT_EQ(body("a + 1 as int"), "(as (+ a 1) int)");
  EXPECT_EQ(body("a < b as f32"), "(< a (as b float))");
  EXPECT_EQ(body("(x as int) as float"), "(as (as x int) float)");
  EXPECT_EQ(body("x as int + 1"), "(+ (as x int) 1)");
  for (const char* type : {"i32", "i64", "int"})
    EXPECT_EQ(body("x as " + std::string(type)), "(as x int)");
  for (const char* type : {"f32", "f64", "float"})
    EXPECT_EQ(body("x as " + std::string(type)), "(as x float)");
  EXPECT_EQ(mistakes_in("x as int as float"),
            Texts{"1:16 expected one 'as' in a row, found the reserved word 'as'"});
  EXPECT_EQ(mistakes_in("x as string"),
            Texts{"1:12 expected 'int' or 'float' after 'as', found 'string'"});
}

TEST(Expressions, RangesAreWeakerThanTheirBounds) {
  EXPECT_EQ(body("0..n + 1"), "(.. 0 (+ n 1))");
  EXPECT_EQ(body("f(a..b, c)"), "(call f (.. a b) c)");
}

TEST(Expressions, ALessThanMayTouchAMinus) {
  EXPECT_EQ(body("x = a <-b"), "(= x (< a (neg b)))");
  EXPECT_EQ(body("if a<-1 { }"), "(if (< a (neg 1)) {})");
  EXPECT_EQ(body("f(a<-1)"), "(call f (< a (neg 1)))");
}

TEST(Expressions, TheInverseIsAWordOfItsOwn) {
  EXPECT_EQ(body("inv a @ b"), "(@ (inv a) b)");
  EXPECT_EQ(body("inv(a) @ b"), "(@ (call inv a) b)");
  EXPECT_EQ(body("inv_freq * 2"), "(* inv_freq 2)");
  EXPECT_EQ(body("inv [[2.0]] @ inv -a"), "(@ (inv (array (array 2.0))) (inv (neg a)))");
  EXPECT_EQ(body("inv - a + inv-b"), "(- (+ (- inv a) inv) b)");
  EXPECT_EQ(body("inv = 3 x = inv + inv[0]"), "(= inv 3) (= x (+ inv (index inv 0)))");
}

TEST(Expressions, Literals) {
  EXPECT_EQ(body("[1, 2.5, \"a\\n\", true, false, 1e-5, 0x10, 1_000]"),
            "(array 1 2.5 \"a\\n\" true false 1e-05 16 1000)");
  EXPECT_EQ(body("[true_x]"), "(array true_x)");
  EXPECT_EQ(body("x = -9223372036854775808"), "(= x -9223372036854775808)");
  EXPECT_EQ(mistakes_in("x = 9223372036854775808"),
            Texts{"1:11 the integer is too large: the largest is 9223372036854775807"});
  EXPECT_EQ(mistakes_in("x = 1+2i"), Texts{"1:13 complex numbers are not supported"});
}

TEST(Expressions, ANumberBeforeALineWithIIsNotComplex) {
  EXPECT_EQ(body("let x = 1 + 2\nif x > 1 { }"), "(let x (+ 1 2)) (if (> x 1) {})");
  EXPECT_EQ(body("let x = 1 + 2\ni = 3"), "(let x (+ 1 2)) (= i 3)");
}

TEST(Expressions, ListsTakeATrailingComma) {
  EXPECT_EQ(body("[1, 2,]"), "(array 1 2)");
  EXPECT_EQ(body("[]"), "(array)");
  EXPECT_EQ(body("f(1, 2,)"), "(call f 1 2)");
  EXPECT_EQ(body("[1 + 2, n, 2 * n]"), "(array (+ 1 2) n (* 2 n))");
}

TEST(Expressions, ParenthesesAndTuples) {
  EXPECT_EQ(body("(a + b) * c"), "(* (+ a b) c)");
  EXPECT_EQ(body("(a, b)"), "(tuple a b)");
  EXPECT_EQ(body("(a,)"), "(tuple a)");
  EXPECT_EQ(body("()"), "(tuple)");
}

TEST(Expressions, Maps) {
  EXPECT_EQ(body("x = {\"a\": 1, \"b\": 2,}"), "(= x (map \"a\":1 \"b\":2))");
  EXPECT_EQ(body("x = {:}"), "(= x (map))");
  EXPECT_EQ(body("x = {1 + 2: {3: 4}}"), "(= x (map (+ 1 2):(map 3:4)))");
  EXPECT_EQ(mistakes_in("x = {}"), Texts{"1:12 expected the entries of a map, found '}'"});
}

TEST(Expressions, StructLiterals) {
  EXPECT_EQ(body("P { x: 1.0 }"), "(struct P x:1.0)");
  EXPECT_EQ(body("let p = P { x: 1, y: Q {}, }"), "(let p (struct P x:1 y:(struct Q)))");
  EXPECT_EQ(body("let p = Box<int, list<float>> { v: 1 }"),
            "(let p (struct Box(<> int (list float)) v:1))");
  EXPECT_EQ(body("P { x: 1 }.x"), "(. (struct P x:1) x)");
}

TEST(Expressions, ANameBeforeABlockIsNotAStructLiteral) {
  EXPECT_EQ(body("if a { b = 1 }"), "(if a {(= b 1)})");
  EXPECT_EQ(body("if a == b { }"), "(if (== a b) {})");
  EXPECT_EQ(body("while p { }"), "(while p {})");
  EXPECT_EQ(body("for x in xs { }"), "(for [x] xs {})");
  EXPECT_EQ(body("match p { }"), "(match p)");
  EXPECT_EQ(body("if (P { x: 1 }).ok { }"), "(if (. (struct P x:1) ok) {})");
  EXPECT_EQ(body("if f(P { x: 1 }) { }"), "(if (call f (struct P x:1)) {})");
  EXPECT_EQ(body("let a = b\n{ c = 1 }"), "(let a b) (block {(= c 1)})");
}

TEST(Expressions, AnglesAreTypesWhereTheyCloseBeforeAPath) {
  EXPECT_EQ(body("Box<int>::make(3)"), "(path Box(<> int)::make 3)");
  EXPECT_EQ(body("A<B<int>>::f()"), "(path A(<> (named B int))::f)");
  EXPECT_EQ(body("a < b"), "(< a b)");
  EXPECT_EQ(body("f(a < b, c > d)"), "(call f (< a b) (> c d))");
  EXPECT_EQ(mistakes_in("Box::<int>::make(3)"),
            Texts{"1:12 expected a name after '::', found '<'"});
}

TEST(Expressions, PathCalls) {
  EXPECT_EQ(body("KVCache::new(4)"), "(path KVCache::new 4)");
  EXPECT_EQ(body("x = f32::zeros([2, 3])"), "(= x (path f32::zeros (array 2 3)))");
  EXPECT_EQ(body("Tensor::ones(2) + float32::ones(2)"),
            "(+ (path Tensor::ones 2) (path float32::ones 2))");
  EXPECT_EQ(mistakes_in("x = A::b"), Texts{"2:1 expected '(' after 'b', found '}'"});
}

TEST(Expressions, CallsTakeNamedArguments) {
  EXPECT_EQ(body("f(x, dim: 1, keep = true)"), "(call f x dim=1 keep=true)");
  EXPECT_EQ(body("t.sum(dim: 1)"), "(method t sum dim=1)");
  EXPECT_EQ(body("f(a == b)"), "(call f (== a b))");
  EXPECT_EQ(mistakes_in("f(a: 1, b)"),
            Texts{"1:15 expected the name of an argument, as the one before has a name"});
}

TEST(Expressions, ReservedWordsThatCanBeCalled) {
  for (const char* word : {"forward", "backward", "gradient", "symbolic", "range", "learnable",
                           "tensor", "einsum", "epochs", "optimizer", "objective", "auto"})
    EXPECT_EQ(body(std::string(word) + "(x)"), "(call " + std::string(word) + " x)");
  EXPECT_EQ(body("set_lr(optimizer, epochs * 2)"), "(call set_lr optimizer (* epochs 2))");
  EXPECT_EQ(body("t.to(float32)"), "(method t to float32)");
}

TEST(Expressions, AnyWordIsANameAfterADot) {
  EXPECT_EQ(body("m.output.forward().match.if"), "(. (. (method (. m output) forward) match) if)");
  EXPECT_EQ(body("python.call(\"n.f\", t)"), "(method python call \"n.f\" t)");
}

TEST(Expressions, PostfixOnAnything) {
  EXPECT_EQ(body("(a + b).shape()"), "(method (+ a b) shape)");
  EXPECT_EQ(body("[1, 2].len()"), "(method (array 1 2) len)");
  EXPECT_EQ(body("f(1)(2)[3].x"), "(. (index (call (call f 1) 2) 3) x)");
  EXPECT_EQ(body("\"abc\".len()"), "(method \"abc\" len)");
  EXPECT_EQ(body("f(self)"), "(call f self)");
}

TEST(Expressions, IndicesAndSlices) {
  EXPECT_EQ(body("a[i + 1]"), "(index a (+ i 1))");
  EXPECT_EQ(body("a[:, 0]"), "(index a : 0)");
  EXPECT_EQ(body("a[1, :]"), "(index a 1 :)");
  EXPECT_EQ(body("a[1:-1, -1]"), "(index a 1:(neg 1) (neg 1))");
  EXPECT_EQ(body("a[::2, 1::2, :3:2, 1:2:3]"), "(index a ::2 1::2 :3:2 1:2:3)");
  EXPECT_EQ(body("a[1..3, ..n, 2..]"), "(index a 1:3 :n 2:)");
  EXPECT_EQ(body("emb[\"alice\"]"), "(index emb \"alice\")");
  EXPECT_EQ(mistakes_in("a[]"), Texts{"1:9 expected an index, found ']'"});
}

TEST(Expressions, ABracketBelongsToItsLine) {
  EXPECT_EQ(body("let x = a\n[1, 2]"), "(let x a) (array 1 2)");
  EXPECT_EQ(body("let x = a\n(b, c) = d"), "(let x a) (= (tuple b c) d)");
  EXPECT_EQ(body("let x = a\n-b"), "(let x (- a b))");
  EXPECT_EQ(body("let x = a\n  .f()\n  .g"), "(let x (. (method a f) g))");
  EXPECT_EQ(body("x = 1 (a)"), "(= x 1) a");
}

TEST(Expressions, Lambdas) {
  EXPECT_EQ(body("let f = |x| x + 1"), "(let f (fn (x) -> _ {(+ x 1)}))");
  EXPECT_EQ(body("map(xs, |x: int, y = 2| x * y)"),
            "(call map xs (fn (x:int y=2) -> _ {(* x y)}))");
  EXPECT_EQ(body("let f = || 3"), "(let f (fn () -> _ {3}))");
  EXPECT_EQ(body("let f = |x||y| x + y"), "(let f (fn (x) -> _ {(fn (y) -> _ {(+ x y)})}))");
  EXPECT_EQ(body("let f = |x| { let y = x y }"), "(let f (fn (x) -> _ {(let y x) y}))");
  EXPECT_EQ(body("let f = |x| {\"a\": x}"), "(let f (fn (x) -> _ {(map \"a\":x)}))");
  EXPECT_EQ(body("let f = fn(x: float) -> float { x * 2.0 }"),
            "(let f (fn (x:float) -> float {(* x 2.0)}))");
  EXPECT_EQ(body("fn(x) { x }(3)"), "(call (fn (x) -> _ {x}) 3)");
}

TEST(Expressions, Comprehensions) {
  EXPECT_EQ(body("[x * 2 for x in xs]"), "(each (* x 2) x xs _)");
  EXPECT_EQ(body("[f(x) for x in 0..10 if x % 2 == 0]"),
            "(each (call f x) x (.. 0 10) (== (% x 2) 0))");
}

TEST(Expressions, IfAsAValue) {
  EXPECT_EQ(body("let x = if a { 1 } else if b { 2 } else { 3 }"),
            "(let x (if a {1} {(if b {2} {3})}))");
  EXPECT_EQ(mistakes_in("let x = if a { 1 }"), Texts{"2:1 expected 'else', found '}'"});
}

TEST(Expressions, Match) {
  EXPECT_EQ(
      body(
          "match x { 0 | -1 => \"a\", 2.5 => 1, \"s\" => 2, true => 3, n if n > 3 => n, _ => 0, }"),
      "(match x ((| 0 -1) => \"a\") (2.5f => 1) (\"s\" => 2) (true => 3) "
      "($n if (> n 3) => n) (_ => 0))");
  EXPECT_EQ(body("match p { P { x: 1, y } => y, (a, _) => a, (b) => b, Q<int> {} => 1 }"),
            "(match p ((struct P x:1 y:$y) => y) ((tuple $a _) => a) ($b => b) ((struct Q) => 1))");
  EXPECT_EQ(body("let y = match x {\n1 => a\n2 => b\n}"), "(let y (match x (1 => a) (2 => b)))");
}

TEST(Expressions, AnArmMayBeABlockOrAJump) {
  EXPECT_EQ(body("match x { 1 => { a = 1 } 2 => {\"k\": 1}, 3 => return 4, _ => break }"),
            "(match x (1 => (if true {(= a 1)} {})) (2 => (map \"k\":1)) "
            "(3 => (if true {(return 4)} {})) (_ => (if true {(break)} {})))");
}

TEST(Expressions, SpansCoverWhatWasRead) {
  Sources sources;
  const std::uint32_t id = sources.add("t.tl", "main { foo(a, (b + c))[1:2] }");
  std::vector<Diagnostic> diagnostics;
  const ast::Program program = parse_program(sources, id, diagnostics);
  ASSERT_TRUE(program.main.has_value());
  const auto& statement = ast::as<ast::ExpressionStatement>(*program.main->statements.at(0));
  EXPECT_EQ(sources.text(statement.span), "foo(a, (b + c))[1:2]");
  const auto& index = ast::as<ast::IndexExpr>(*statement.expression);
  EXPECT_EQ(sources.text(index.items.at(0).span), "1:2");
  const auto& call = ast::as<ast::CallExpr>(*index.base);
  EXPECT_EQ(sources.text(call.span), "foo(a, (b + c))");
  EXPECT_EQ(sources.text(call.arguments.at(1).value->span), "(b + c)");
  EXPECT_EQ(sources.text(program.main->span), "{ foo(a, (b + c))[1:2] }");
}

TEST(Expressions, OperatorsHaveSymbols) {
  EXPECT_EQ(ast::symbol(ast::BinaryOp::Power), "**");
  EXPECT_EQ(ast::symbol(ast::BinaryOp::Or), "||");
}

}  // namespace
}  // namespace tl::lang
