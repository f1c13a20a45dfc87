// The tree a program is read into. Every node has the place it came from; nothing is evaluated or
// resolved here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lang/source.h"

namespace tl::lang::ast {

struct Name {
  std::string text;
  Span span;
};

// ---- types

struct Type;
using TypePtr = std::unique_ptr<Type>;

struct Dim {
  enum class Kind : std::uint8_t { Size, Name, Any } kind = Kind::Any;
  std::int64_t size = 0;
  std::string name;
  Span span;
};

struct Type {
  enum class Kind : std::uint8_t {
    Scalar,  // name: int float bool string, or a base type without brackets
    Tensor,  // name: a base type; dims
    Any,     // "Tensor": any tensor or number
    Named,   // a struct or an entity type; arguments
    Entity,  // "entity" or "concept"
    Void,
    Tuple,  // (int, float): arguments
    List,   // list: any list; list<T> has it in arguments
    Map,
    Function,  // fn: any function
  } kind = Kind::Any;
  Span span;
  std::string name;
  std::vector<Dim> dims;
  std::vector<TypePtr> arguments;
  bool learnable = false;
  bool frozen = false;
};

// ---- expressions

enum class UnaryOp : std::uint8_t { Negate, Not, Inverse };
enum class BinaryOp : std::uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder,
  Power,
  MatrixProduct,  // @
  Hadamard,       // ⊙
  Outer,          // ⊗
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Approx,  // ≈
  And,     // && and
  Or,      // || or
};
std::string_view symbol(BinaryOp op) noexcept;  // "+"

struct Expr {
  enum class Kind : std::uint8_t {
    Integer,
    Float,
    Bool,
    String,
    Name,
    Array,
    Tuple,
    Map,
    StructLiteral,
    Unary,
    Binary,
    Range,
    Cast,
    Index,
    Field,
    Call,
    MethodCall,
    PathCall,
    Match,
    If,
    Lambda,
    Comprehension,
  };
  Expr(Kind k, Span s) : kind(k), span(s) {}
  Expr(const Expr&) = delete;
  Expr& operator=(const Expr&) = delete;
  virtual ~Expr() = default;
  Kind kind;
  Span span;
};
using ExprPtr = std::unique_ptr<Expr>;

template <class T>
const T& as(const Expr& e) {
  return static_cast<const T&>(e);
}

struct Statement;
using StatementPtr = std::unique_ptr<Statement>;

struct Block {
  std::vector<StatementPtr> statements;
  Span span;
};

struct IntegerExpr : Expr {
  IntegerExpr(Span s, std::int64_t v) : Expr(Kind::Integer, s), value(v) {}
  std::int64_t value;
};
struct FloatExpr : Expr {
  FloatExpr(Span s, double v) : Expr(Kind::Float, s), value(v) {}
  double value;
};
struct BoolExpr : Expr {
  BoolExpr(Span s, bool v) : Expr(Kind::Bool, s), value(v) {}
  bool value;
};
struct StringExpr : Expr {  // escapes expanded
  StringExpr(Span s, std::string v) : Expr(Kind::String, s), value(std::move(v)) {}
  std::string value;
};
// A variable, a function as a value, an entity type, or "self".
struct NameExpr : Expr {
  NameExpr(Span s, std::string n) : Expr(Kind::Name, s), name(std::move(n)) {}
  std::string name;
};
struct ArrayExpr : Expr {  // [a, b]
  explicit ArrayExpr(Span s) : Expr(Kind::Array, s) {}
  std::vector<ExprPtr> elements;
};
struct TupleExpr : Expr {  // (a, b), (a,), ()
  explicit TupleExpr(Span s) : Expr(Kind::Tuple, s) {}
  std::vector<ExprPtr> elements;
};
struct MapExpr : Expr {  // {"a": 1, "b": 2}; {:} is empty
  explicit MapExpr(Span s) : Expr(Kind::Map, s) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct StructExpr : Expr {  // P { x: 1.0 }
  explicit StructExpr(Span s) : Expr(Kind::StructLiteral, s) {}
  Name type;
  std::vector<TypePtr> arguments;
  std::vector<std::pair<Name, ExprPtr>> fields;
};
struct UnaryExpr : Expr {
  UnaryExpr(Span s, UnaryOp o, ExprPtr e) : Expr(Kind::Unary, s), op(o), operand(std::move(e)) {}
  UnaryOp op;
  ExprPtr operand;
};
struct BinaryExpr : Expr {
  BinaryExpr(Span s, BinaryOp o, ExprPtr l, ExprPtr r)
      : Expr(Kind::Binary, s), op(o), left(std::move(l)), right(std::move(r)) {}
  BinaryOp op;
  ExprPtr left, right;
};
struct RangeExpr : Expr {  // a..b, end not included
  RangeExpr(Span s, ExprPtr f, ExprPtr l)
      : Expr(Kind::Range, s), first(std::move(f)), last(std::move(l)) {}
  ExprPtr first, last;
};
struct CastExpr : Expr {  // e as int
  CastExpr(Span s, ExprPtr e, bool to_int)
      : Expr(Kind::Cast, s), operand(std::move(e)), to_integer(to_int) {}
  ExprPtr operand;
  bool to_integer;  // else to float
};
// One place between brackets: an index, or a slice a:b:c of which every part may be missing.
struct IndexItem {
  bool is_slice = false;
  ExprPtr index;  // not a slice
  ExprPtr start, stop, step;
  Span span;
};
struct IndexExpr : Expr {
  explicit IndexExpr(Span s) : Expr(Kind::Index, s) {}
  ExprPtr base;
  std::vector<IndexItem> items;
};
struct FieldExpr : Expr {  // a.b
  FieldExpr(Span s, ExprPtr b, Name f)
      : Expr(Kind::Field, s), base(std::move(b)), field(std::move(f)) {}
  ExprPtr base;
  Name field;
};
struct Argument {
  std::optional<Name> name;  // of a named argument: dim: 1 or dim = 1
  ExprPtr value;
};
// f(...): also print, einsum, tensor(...), learnable(...), range(...) and names that turn out to be
// relations.
struct CallExpr : Expr {
  explicit CallExpr(Span s) : Expr(Kind::Call, s) {}
  ExprPtr callee;  // a NameExpr, or any expression that gives a function
  std::vector<Argument> arguments;
};
struct MethodExpr : Expr {  // base.name(...)
  explicit MethodExpr(Span s) : Expr(Kind::MethodCall, s) {}
  ExprPtr base;
  Name name;
  std::vector<Argument> arguments;
};
struct PathExpr : Expr {  // Type::name(...), Type<int>::name(...), f32::zeros(...)
  explicit PathExpr(Span s) : Expr(Kind::PathCall, s) {}
  Name type;
  std::vector<TypePtr> type_arguments;
  Name name;
  std::vector<Argument> arguments;
};

struct Pattern;
using PatternPtr = std::unique_ptr<Pattern>;
struct Pattern {
  enum class Kind : std::uint8_t { Any, Integer, Float, Bool, String, Bind, Tuple, Struct, Either };
  Kind kind = Kind::Any;
  Span span;
  std::int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::string text;               // String; Bind: the name; Struct: the type
  std::vector<PatternPtr> parts;  // Tuple, Either, Struct
  std::vector<Name> fields;       // Struct: as many as parts
};
struct MatchArm {
  PatternPtr pattern;
  ExprPtr guard;  // may be missing
  ExprPtr value;
};
struct MatchExpr : Expr {
  explicit MatchExpr(Span s) : Expr(Kind::Match, s) {}
  ExprPtr subject;
  std::vector<MatchArm> arms;
};
// if c { a } else { b } where a value is wanted: the last expression of the branch that ran.
struct IfExpr : Expr {
  explicit IfExpr(Span s) : Expr(Kind::If, s) {}
  ExprPtr condition;
  Block then, otherwise;
};

struct Param {
  Name name;
  TypePtr type;           // may be missing in a lambda
  ExprPtr default_value;  // may be missing
};
struct FunctionBody {
  std::vector<Param> params;
  TypePtr result;  // missing: not said
  Block body;
  bool has_self = false;
};
struct LambdaExpr : Expr {  // fn(x: float) -> float { ... }; |x| e is the same with a body of one
  explicit LambdaExpr(Span s) : Expr(Kind::Lambda, s) {}
  FunctionBody function;
};
struct ComprehensionExpr : Expr {  // [e for x in xs if c]
  explicit ComprehensionExpr(Span s) : Expr(Kind::Comprehension, s) {}
  ExprPtr element;
  std::vector<Name> variables;  // several: [k for (k, v) in m]
  ExprPtr iterable;
  ExprPtr condition;  // may be missing
};

// ---- logic

struct Atom {  // R(x, "a", 3): arguments are expressions; names are variables or constants
  Name name;
  std::vector<ExprPtr> arguments;
  Span span;
};
// A condition of a rule or of `where`: written with and, or, not, comparisons; shape(e) == [..],
// rank(e), norm(e) are calls. `not R(x)` is a UnaryExpr over a CallExpr.
struct BodyTerm {
  enum class Kind : std::uint8_t { Atom, Equation, Constraint } kind = Kind::Atom;
  ast::Atom atom;
  bool negated = false;  // Atom
  ExprPtr left, right;   // Equation; Constraint has left alone
};
struct Query {
  Atom atom;
  std::vector<ExprPtr> where;
  ExprPtr depth;  // infer gradient(depth: e); may be missing
  Span span;
};

// ---- statements

struct Statement {
  enum class Kind : std::uint8_t {
    Let,
    Tensor,
    Assign,
    Expression,
    Break,
    Continue,
    Return,
    Panic,
    If,
    For,
    While,
    Loop,
    Block,
    With,
    Query,
    Equation,
    Infer,
    Learn,
    Python,
  };
  Statement(Kind k, Span s) : kind(k), span(s) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  virtual ~Statement() = default;
  Kind kind;
  Span span;
};

template <class T>
const T& as(const Statement& s) {
  return static_cast<const T&>(s);
}

struct LetStatement : Statement {  // let x = e, let (a, b) = e, let x: int = e
  explicit LetStatement(Span s) : Statement(Kind::Let, s) {}
  std::vector<Name> names;  // more than one, or is_tuple: taken apart
  bool is_tuple = false;
  TypePtr type;  // may be missing
  ExprPtr value;
};
struct TensorStatement : Statement {  // tensor x: float16[2, 3] learnable = e
  explicit TensorStatement(Span s) : Statement(Kind::Tensor, s) {}
  Name name;
  TypePtr type;
  ExprPtr value;  // may be missing
};
struct AssignStatement : Statement {  // place = e, place += e; (a, b) = e has a tuple as target
  explicit AssignStatement(Span s) : Statement(Kind::Assign, s) {}
  ExprPtr target;
  std::optional<BinaryOp> op;
  ExprPtr value;
};
// An expression alone; f(x) may turn out to be a fact.
struct ExpressionStatement : Statement {
  ExpressionStatement(Span s, ExprPtr e)
      : Statement(Kind::Expression, s), expression(std::move(e)) {}
  ExprPtr expression;
};
struct BreakStatement : Statement {
  explicit BreakStatement(Span s) : Statement(Kind::Break, s) {}
};
struct ContinueStatement : Statement {
  explicit ContinueStatement(Span s) : Statement(Kind::Continue, s) {}
};
struct ReturnStatement : Statement {
  explicit ReturnStatement(Span s) : Statement(Kind::Return, s) {}
  ExprPtr value;  // may be missing
};
struct PanicStatement : Statement {
  explicit PanicStatement(Span s) : Statement(Kind::Panic, s) {}
  std::vector<ExprPtr> arguments;  // the first is the format
};
struct IfStatement : Statement {
  explicit IfStatement(Span s) : Statement(Kind::If, s) {}
  ExprPtr condition;
  Block then;
  std::optional<Block> otherwise;  // `else if` is a block with one IfStatement
};
struct ForStatement : Statement {
  explicit ForStatement(Span s) : Statement(Kind::For, s) {}
  std::vector<Name> variables;  // several: for (k, v) in m
  ExprPtr iterable;             // missing: an entity set
  std::vector<Name> entities;   // {a, b}
  Block body;
};
struct WhileStatement : Statement {
  explicit WhileStatement(Span s) : Statement(Kind::While, s) {}
  ExprPtr condition;
  Block body;
};
struct LoopStatement : Statement {
  explicit LoopStatement(Span s) : Statement(Kind::Loop, s) {}
  Block body;
};
struct BlockStatement : Statement {
  explicit BlockStatement(Span s) : Statement(Kind::Block, s) {}
  Block body;
};
struct WithStatement : Statement {  // with T { ... }
  explicit WithStatement(Span s) : Statement(Kind::With, s) {}
  Name type;
  Block body;
};
struct QueryStatement : Statement {  // R(alice, X)? where ...
  explicit QueryStatement(Span s) : Statement(Kind::Query, s) {}
  ast::Query query;
};
struct EquationStatement : Statement {  // a ~ b
  explicit EquationStatement(Span s) : Statement(Kind::Equation, s) {}
  ExprPtr left, right;
};
enum class InferMethod : std::uint8_t { Forward, Backward, Gradient, Symbolic };
struct InferStatement : Statement {
  explicit InferStatement(Span s) : Statement(Kind::Infer, s) {}
  bool is_block = false;
  std::vector<std::pair<InferMethod, ast::Query>> items;
};
struct Setting {  // optimizer: sgd(lr: 0.1), epochs: 50
  Name name;
  Name maker;  // sgd; empty: `value` alone
  std::vector<Argument> arguments;
  ExprPtr value;
};
struct LearnStatement : Statement {
  explicit LearnStatement(Span s) : Statement(Kind::Learn, s) {}
  std::vector<Setting> settings;  // optimizer, epochs, scheduler, clip_grad_norm, ...
  ExprPtr objective;              // missing: the procedural form
  Block body;
};
struct PythonStatement : Statement {  // python import m as n
  explicit PythonStatement(Span s) : Statement(Kind::Python, s) {}
  std::string module;
  std::string alias;
};

// ---- declarations

struct Declaration {
  enum class Kind : std::uint8_t {
    Import,
    Entity,
    Tensor,
    Relation,
    Rule,
    Embedding,
    Function,
    Struct,
    Impl,
    Const,
  };
  Declaration(Kind k, Span s) : kind(k), span(s) {}
  Declaration(const Declaration&) = delete;
  Declaration& operator=(const Declaration&) = delete;
  virtual ~Declaration() = default;
  Kind kind;
  Span span;
};
using DeclarationPtr = std::unique_ptr<Declaration>;

template <class T>
const T& as(const Declaration& d) {
  return static_cast<const T&>(d);
}

struct ImportDeclaration : Declaration {
  explicit ImportDeclaration(Span s) : Declaration(Kind::Import, s) {}
  std::string path;
};
struct EntityDeclaration : Declaration {  // entity T, entity T = {a, b}
  explicit EntityDeclaration(Span s) : Declaration(Kind::Entity, s) {}
  Name name;
  bool has_members = false;
  std::vector<Name> members;
};
struct TensorDeclaration : Declaration {
  explicit TensorDeclaration(Span s) : Declaration(Kind::Tensor, s) {}
  Name name;
  TypePtr type;
  ExprPtr value;  // may be missing
};
struct RelationDeclaration : Declaration {
  explicit RelationDeclaration(Span s) : Declaration(Kind::Relation, s) {}
  Name name;
  std::vector<Param> params;
  TypePtr embed;  // may be missing
  bool learnable = false;
};
struct RuleDeclaration : Declaration {
  explicit RuleDeclaration(Span s) : Declaration(Kind::Rule, s) {}
  std::optional<Atom> head;
  ExprPtr left, right;  // a head that is an equation
  std::vector<BodyTerm> body;
};
enum class Init : std::uint8_t { Random, Xavier, He, Zeros, Ones };
struct EmbeddingDeclaration : Declaration {  // embedding and relation_embedding
  explicit EmbeddingDeclaration(Span s) : Declaration(Kind::Embedding, s) {}
  Name name;
  bool of_relations = false;
  enum class Over : std::uint8_t { Listed, Auto, All, Type } over = Over::Listed;
  std::vector<Name> members;
  Name type;
  std::int64_t dimension = 0;
  Init init = Init::Random;
};
struct FunctionDeclaration : Declaration {
  explicit FunctionDeclaration(Span s) : Declaration(Kind::Function, s) {}
  Name name;
  FunctionBody function;
};
struct Field {
  Name name;
  TypePtr type;
};
struct StructDeclaration : Declaration {
  explicit StructDeclaration(Span s) : Declaration(Kind::Struct, s) {}
  Name name;
  std::vector<Name> type_params;
  std::vector<ast::Field> fields;
};
struct ImplDeclaration : Declaration {  // impl P { ... }, impl Drop for P { ... }
  explicit ImplDeclaration(Span s) : Declaration(Kind::Impl, s) {}
  std::optional<Name> trait;
  Name type;
  std::vector<std::pair<Name, FunctionBody>> methods;
};
struct ConstDeclaration : Declaration {  // const N = 3; let N = 3 at top level is the same
  explicit ConstDeclaration(Span s) : Declaration(Kind::Const, s) {}
  Name name;
  TypePtr type;  // may be missing
  ExprPtr value;
};

struct NamedBlock {
  Name name;
  Block body;
  Span span;
};

struct Program {
  std::uint32_t source = 0;
  std::vector<DeclarationPtr> declarations;
  std::optional<Block> main;
  std::vector<NamedBlock> tests;
  std::vector<NamedBlock> benches;
};

}  // namespace tl::lang::ast
