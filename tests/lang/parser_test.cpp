// Statements and declarations.
#include "lang/support.h"

namespace tl::lang {
namespace {

// ---- statements

TEST(Statements, Let) {
  EXPECT_EQ(body("let x = 1"), "(let x 1)");
  EXPECT_EQ(body("let x: int = 1"), "(let x :int 1)");
  EXPECT_EQ(body("let x: list<int>= [1]"), "(let x :(list int) (array 1))");
  EXPECT_EQ(body("let (a, b) = f()"), "(let [a b] (call f))");
  EXPECT_EQ(body("let (a) = f()"), "(let [a] (call f))");
  EXPECT_EQ(body("let a, b = f()"), "(let [a b] (call f))");
  EXPECT_EQ(body("let x := 1"), "(let x 1)");
}

TEST(Statements, Tensor) {
  EXPECT_EQ(body("tensor w: float16[2, ?, n] learnable = [0.5]"),
            "(tensor w float16[2,?,n] learnable (array 0.5))");
  EXPECT_EQ(body("tensor w: float32[2]"), "(tensor w float32[2] _)");
  EXPECT_EQ(body("tensor([1, 2], [2])"), "(call tensor (array 1 2) (array 2))");
}

TEST(Statements, Assignments) {
  EXPECT_EQ(body("x = 1 y := 2"), "(= x 1) (= y 2)");
  EXPECT_EQ(body("x += 1 x -= 2 x *= 3 x /= 4"), "(+= x 1) (-= x 2) (*= x 3) (/= x 4)");
  EXPECT_EQ(body("a[0, :] = b"), "(= (index a 0 :) b)");
  EXPECT_EQ(body("p.x.y = 1"), "(= (. (. p x) y) 1)");
  EXPECT_EQ(body("(a, b[0]) = (b, a)"), "(= (tuple a (index b 0)) (tuple b a))");
  constexpr const char* kNoPlace =
      "1:7 a value can be given to a variable, a field or an element, not to this";
  EXPECT_EQ(mistakes_in("f(x) = 1"), Texts{kNoPlace});
  EXPECT_EQ(mistakes_in("a + b = 1"), Texts{kNoPlace});
  EXPECT_EQ(mistakes_in("range = 1"),
            Texts{"1:7 'range' is a reserved word and cannot be assigned"});
  EXPECT_EQ(mistakes_in("a = b = c"), Texts{"1:13 expected one '=' in a statement, found '='"});
  EXPECT_EQ(mistakes_in("(a, b) += c"), Texts{"1:14 expected '=', found '+='"});
}

TEST(Statements, WordsThatOnlyBeginWithAKeywordAreNames) {
  EXPECT_EQ(body("letter = 5"), "(= letter 5)");
  EXPECT_EQ(body("break_flag = 1"), "(= break_flag 1)");
  EXPECT_EQ(body("returned = 3"), "(= returned 3)");
  EXPECT_EQ(body("iffy = 1 format = 2 inner = 3"), "(= iffy 1) (= format 2) (= inner 3)");
}

TEST(Statements, WordsThatAreNotReservedAreNames) {
  EXPECT_EQ(body("test = 1 struct = 2 with = 3 where = 4 continue = 5 const = 6"),
            "(= test 1) (= struct 2) (= with 3) (= where 4) (= continue 5) (= const 6)");
  EXPECT_EQ(body("x = shape + rank + norm + int + all"),
            "(= x (+ (+ (+ (+ shape rank) norm) int) all))");
}

TEST(Statements, SemicolonsSeparate) {
  EXPECT_EQ(body(";; let a = 1; let b = 2;; f();"), "(let a 1) (let b 2) (call f)");
  EXPECT_EQ(tree("import \"a\"; main { };"), "(import \"a\")\n(main {})\n");
}

TEST(Statements, StatementsMayShareALine) {
  EXPECT_EQ(body("let a = 1 let b = 2 f(a) g(b)"), "(let a 1) (let b 2) (call f a) (call g b)");
}

TEST(Statements, JumpsAndPanic) {
  EXPECT_EQ(body("break continue return"), "(break) (continue) (return _)");
  EXPECT_EQ(body("return a + 1"), "(return (+ a 1))");
  EXPECT_EQ(body("return\na"), "(return a)");
  EXPECT_EQ(body("return\na = 1"), "(return _) (= a 1)");
  EXPECT_EQ(body("return\nif a { }"), "(return _) (if a {})");
  EXPECT_EQ(body("panic(\"n = {}\", n)"), "(panic \"n = {}\" n)");
}

TEST(Statements, If) {
  EXPECT_EQ(body("if a { b } else { c }"), "(if a {b} {c})");
  EXPECT_EQ(body("if a { b } else if c { d } else { e }"), "(if a {b} {(if c {d} {e})})");
  EXPECT_EQ(body("if a and not b or c > 1 { }"), "(if (|| (&& a (not b)) (> c 1)) {})");
}

TEST(Statements, AnElseBelongsToItsIfHoweverItIsSpaced) {
  EXPECT_EQ(body("if a { b }\nelse\n{ c }"), "(if a {b} {c})");
  EXPECT_EQ(body("if a { if b { c } else { d } e } else { f }"), "(if a {(if b {c} {d}) e} {f})");
}

TEST(Statements, Loops) {
  EXPECT_EQ(body("while i < n { i += 1 }"), "(while (< i n) {(+= i 1)})");
  EXPECT_EQ(body("loop { break }"), "(loop {(break)})");
  EXPECT_EQ(body("for i in 0..10 { }"), "(for [i] (.. 0 10) {})");
  EXPECT_EQ(body("for i in range(5) { }"), "(for [i] (call range 5) {})");
  EXPECT_EQ(body("for x in f(y).z[1:] { }"), "(for [x] (index (. (call f y) z) 1:) {})");
  EXPECT_EQ(body("for e in {alice, bob} { }"), "(for [e] (entities [alice bob]) {})");
  EXPECT_EQ(body("for e in Person { }"), "(for [e] Person {})");
  EXPECT_EQ(body("for (k, v) in {\"a\": 1} { }"), "(for [k v] (map \"a\":1) {})");
  EXPECT_EQ(body("for k, v in m { }"), "(for [k v] m {})");
}

TEST(Statements, Blocks) {
  EXPECT_EQ(body("{ let a = 1 { } }"), "(block {(let a 1) (block {})})");
  EXPECT_EQ(body("with Person { f(x) }"), "(with Person {(call f x)})");
}

TEST(Statements, QueriesEquationsAndFacts) {
  EXPECT_EQ(body("R(alice, X)?"), "(query (atom R alice X))");
  EXPECT_EQ(body("R(a, X)? where X > 3, not S(X) and T(X)"),
            "(query (atom R a X) where (> X 3) (&& (not (call S X)) (call T X)))");
  EXPECT_EQ(body("R(a)?\nwhere shape(x) == [2, 3]\nf()"),
            "(query (atom R a) where (== (call shape x) (array 2 3))) (call f)");
  EXPECT_EQ(body("R(a)?\nwhere = 3"), "(query (atom R a)) (= where 3)");
  EXPECT_EQ(body("a ~ b * c"), "(~ a (* b c))");
  EXPECT_EQ(body("Parent(alice, \"bob\", -1)"), "(call Parent alice \"bob\" (neg 1))");
  EXPECT_EQ(mistakes_in("a + b?"), Texts{"1:7 expected a relation with its arguments before '?'"});
}

TEST(Statements, Infer) {
  EXPECT_EQ(body("infer forward R(x, y)?"), "(infer (forward (query (atom R x y))))");
  EXPECT_EQ(
      body("infer { forward R(x)? backward S(y)? where y > 1\n gradient T(z)? symbolic U(w)? }"),
      "(infer-block (forward (query (atom R x))) (backward (query (atom S y) where (> y 1))) "
      "(gradient (query (atom T z))) (symbolic (query (atom U w))))");
  EXPECT_EQ(mistakes_in("infer forward R(x)"), Texts{"2:1 expected '?' after a query, found '}'"});
  EXPECT_EQ(
      mistakes_in("infer sideways R(x)?"),
      Texts{"1:13 expected 'forward', 'backward', 'gradient' or 'symbolic', found 'sideways'"});
}

TEST(Statements, LearnWithAnObjective) {
  EXPECT_EQ(body("learn {\n err = x * w - y\n objective: err * err,\n optimizer: sgd(lr: 0.1),\n"
                 " epochs: 50,\n scheduler: step(step_size=10, gamma: 0.5),\n}"),
            "(learn optimizer:(sgd lr=0.1) epochs:50 scheduler:(step step_size=10 gamma=0.5) "
            "objective:(* err err) {(= err (- (* x w) y))})");
}

TEST(Statements, LearnAsAProcedure) {
  EXPECT_EQ(body("learn {\n optimizer: adam(lr=initial_lr * 2)\n epochs: 100\n"
                 " clip_grad_norm: 1.0\n for e in range(epochs) { backward(loss) }\n}"),
            "(learn optimizer:(adam lr=(* initial_lr 2)) epochs:100 clip_grad_norm:1.0 "
            "{(for [e] (call range epochs) {(call backward loss)})})");
  EXPECT_EQ(mistakes_in("learn { epochs: 1, epochs: 2 }"), Texts{"1:26 'epochs' is set twice"});
}

TEST(Statements, Python) {
  EXPECT_EQ(body("python import numpy.linalg as la"), "(python numpy.linalg la)");
  EXPECT_EQ(body("python import numpy"), "(python numpy _)");
}

// ---- declarations

TEST(Declarations, AnEmptyFileIsAProgram) {
  EXPECT_EQ(tree(""), "");
  EXPECT_EQ(tree("// nothing"), "");
}

TEST(Declarations, InAnyOrder) {
  EXPECT_EQ(tree("bench b { f() } main { f() } test t { } fn f() -> void { } import \"x.tl\""),
            "(fn f () -> void {})\n(import \"x.tl\")\n(main {(call f)})\n(test t {})\n"
            "(bench b {(call f)})\n");
}

TEST(Declarations, Entities) {
  EXPECT_EQ(tree("entity Person = {alice, bob,}"), "(entity Person [alice bob])\n");
  EXPECT_EQ(tree("entity City"), "(entity City)\n");
}

TEST(Declarations, TensorsAndConstants) {
  EXPECT_EQ(tree("tensor w: float16[1] learnable = [0.5]"),
            "(tensor w float16[1] learnable (array 0.5))\n");
  EXPECT_EQ(tree("const N = 3 const M: float = 2 let K = N"),
            "(const N 3)\n(const M :float 2)\n(const K N)\n");
}

TEST(Declarations, Relations) {
  EXPECT_EQ(tree("relation lives_in(p: Person, c: entity)"),
            "(relation lives_in p:Person c:<entity>)\n");
  EXPECT_EQ(tree("relation R() embed float16[64]"), "(relation R embed float16[64])\n");
  EXPECT_EQ(tree("relation R(x: concept) learnable"), "(relation R x:<concept> learnable)\n");
  EXPECT_EQ(tree("relation R(x: entity) embed float16[4] learnable"),
            "(relation R x:<entity> embed float16[4] learnable learnable)\n");
}

TEST(Declarations, Rules) {
  const char* grand = "(rule (atom Grand x z) (atom Parent x y) (atom Parent y z))\n";
  EXPECT_EQ(tree("Grand(x, z) <- Parent(x, y), Parent(y, z)"), grand);
  EXPECT_EQ(tree("rule Grand(x, z) <- Parent(x, y), Parent(y, z)"), grand);
  EXPECT_EQ(tree("Grand(x, z) :- Parent(x, y), Parent(y, z)"), grand);
  EXPECT_EQ(tree("Grand(x, z) <- Parent(x, y) and Parent(y, z)"), grand);
  EXPECT_EQ(tree("A(x) <- B(x), not C(x), x > 3 or x < -1, rank(x) == 2, Y[x] ~ Z[x]"),
            "(rule (atom A x) (atom B x) (not (atom C x)) (|| (> x 3) (< x (neg 1))) "
            "(== (call rank x) 2) (~ (index Y x) (index Z x)))\n");
  EXPECT_EQ(tree("A(x) <- B(x)\nC(y) <- D(y)"),
            "(rule (atom A x) (atom B x))\n(rule (atom C y) (atom D y))\n");
}

TEST(Declarations, EquationsAsRules) {
  EXPECT_EQ(tree("Y[i, k] ~ W[i, j] * X[j, k]"),
            "(rule (~ (index Y i k) (* (index W i j) (index X j k))))\n");
  EXPECT_EQ(tree("Y[i] ~ X[i] <- R(i)"), "(rule (~ (index Y i) (index X i)) (atom R i))\n");
}

TEST(Declarations, Embeddings) {
  EXPECT_EQ(tree("embedding E { entities: {a, b} dimension: 8 init: xavier }"),
            "(embedding E [a b] 8 xavier)\n");
  EXPECT_EQ(tree("embedding E { entities: auto, dimension: 8 }"), "(embedding E auto 8 random)\n");
  EXPECT_EQ(tree("embedding E { dimension: 8, init: he, entities: Person }"),
            "(embedding E Person 8 he)\n");
  EXPECT_EQ(tree("relation_embedding E { relations: all dimension: 4 init: zeros }"),
            "(relation_embedding E all 4 zeros)\n");
  EXPECT_EQ(parsed("embedding E { dimension: 8 }").mistakes,
            Texts{"1:28 expected 'entities:' before '}'"});
  EXPECT_EQ(parsed("embedding E { entities: auto dimension: 0 }").mistakes,
            Texts{"1:41 expected the number of dimensions, found '0'"});
}

TEST(Declarations, Functions) {
  EXPECT_EQ(tree("fn f(x: float32[2, n], y: int = 3) -> float { x }"),
            "(fn f (x:float32[2,n] y:int=3) -> float {x})\n");
  EXPECT_EQ(tree("fn f(x) { }"), "(fn f (x) -> _ {})\n");
  EXPECT_EQ(tree("fn f() -> (int, Box<float>) { }"),
            "(fn f () -> (tuple int (named Box float)) {})\n");
  EXPECT_EQ(parsed("fn f(a = 1, b) { }").mistakes,
            Texts{"1:13 'b' needs a default value, as the parameter before it has one"});
}

TEST(Declarations, Types) {
  const auto type = [](const std::string& text) {
    const std::string out = tree("fn f(x: " + text + ") { }");
    return out.substr(9, out.rfind(") -> ") - 9);
  };
  for (const char* same :
       {"int",      "float",  "bool",        "string",  "float16", "float32",  "float64",
        "bfloat16", "int16",  "int32",       "int64",   "uint8",   "uint32",   "complex16",
        "Tensor",   "Person", "entity_kind", "integer", "bool[2]", "int32[?]", "float32[]"})
    EXPECT_EQ(type(same), same);
  EXPECT_EQ(type("f16"), "float16");
  EXPECT_EQ(type("f32[2]"), "float32[2]");
  EXPECT_EQ(type("f64"), "float64");
  EXPECT_EQ(type("bf16"), "bfloat16");
  EXPECT_EQ(type("u8[4]"), "uint8[4]");
  EXPECT_EQ(type("i64"), "int64");
  EXPECT_EQ(type("list"), "(list)");
  EXPECT_EQ(type("list<list<int>>"), "(list (list int))");
  EXPECT_EQ(type("map<string, int>"), "(map string int)");
  EXPECT_EQ(type("fn"), "(fn)");
  EXPECT_EQ(type("fn(int, float) -> bool"), "(fn int float bool)");
  EXPECT_EQ(type("Tensor learnable"), "Tensor learnable");
  EXPECT_EQ(parsed("fn f(x: int[3]) { }").mistakes,
            Texts{"1:12 expected no sizes after 'int', found '['"});
}

TEST(Declarations, Structs) {
  EXPECT_EQ(
      tree(
          "struct P<T, U> { x: float, w: float16[3, 4] learnable q: Other<int>, v: int32 frozen }"),
      "(struct P [T U] x:float w:float16[3,4] learnable q:(named Other int) v:int32 frozen)\n");
  EXPECT_EQ(tree("struct E { }"), "(struct E)\n");
}

TEST(Declarations, Impls) {
  EXPECT_EQ(tree("impl P { fn m(self, a: T) -> R { self.x } fn forward(x: int) { } }"),
            "(impl P (fn m (self a:T) -> R {(. self x)}) (fn forward (x:int) -> _ {}))\n");
  EXPECT_EQ(tree("impl<T> Drop for Box<T> { fn drop(self) -> void { } }"),
            "(impl Drop for Box (fn drop (self) -> void {}))\n");
  EXPECT_EQ(parsed("impl P { fn m(a: int, self) { } }").mistakes,
            Texts{"1:23 'self' is the first parameter, once"});
}

TEST(Declarations, WordsWithAMeaningCanBeRelations) {
  EXPECT_EQ(tree("test(x) <- bench(x)"), "(rule (atom test x) (atom bench x))\n");
}

}  // namespace
}  // namespace tl::lang
