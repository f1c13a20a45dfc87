// A template as a tree.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/jinja/lexer.h"
#include "model/jinja/value.h"

namespace tl::jinja {

using FilterFunction = Value (*)(Evaluator& evaluator, const Value& value,
                                 const Arguments& arguments);
using TestFunction = bool (*)(Evaluator& evaluator, const Value& value, const Arguments& arguments);

enum class ExprKind : std::uint8_t {
  Constant,   // value
  String,     // text
  Name,       // text
  List,       // items
  Tuple,      // items
  Dict,       // items: key, value, key, value
  Attribute,  // items[0].text
  Item,       // items[0][items[1]]
  Slice,      // items[0][items[1]:items[2]:items[3]], each may be null
  Call,       // items[0](the others, named)
  Filter,     // items[0] | text(the others, named)
  Test,       // items[0] is text(the others, named)
  Not,
  Negative,
  Positive,
  And,
  Or,
  Binary,     // items[0] text items[1]: + - * / // % **
  Concat,     // items
  Compare,    // items[0] operators[0] items[1] operators[1] items[2] ...
  Condition,  // items[0] if items[1] else items[2], which may be null
};

enum class Star : std::uint8_t { None, List, Dict };  // f(*x), f(**x)

struct Expr {
  ExprKind kind = ExprKind::Constant;
  Place place;
  std::uint32_t depth = 1;
  std::string text;
  Value value;
  std::vector<std::unique_ptr<Expr>> items;
  std::vector<std::pair<std::string, std::unique_ptr<Expr>>> named;
  std::vector<Star> stars;             // of a call, one for each of items after the first
  std::vector<std::string> operators;  // of Compare
  FilterFunction filter = nullptr;     // null: there is none of that name
  TestFunction test = nullptr;
};
using ExprPtr = std::unique_ptr<Expr>;

// What a value is given to: a name, an attribute of a namespace, or several targets.
struct Target {
  Place place;
  std::string name;
  std::string attribute;      // of the namespace `name`
  std::vector<Target> parts;  // then the others are empty
};

enum class StmtKind : std::uint8_t {
  Data,    // text
  Output,  // value
  If,      // branches
  For,     // target in value if condition: body; otherwise
  Set,     // target = value
  SetBlock,
  Macro,
  CallBlock,  // value is the call; parameters are the caller's
  FilterBlock,
  With,   // targets and values of branches
  Scope,  // a body with names of its own
  Break,
  Continue,
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Branch {
  ExprPtr condition;  // null: else
  Body body;
};

struct Parameter {
  std::string name;
  ExprPtr otherwise;  // null: none
};

struct Stmt {
  StmtKind kind = StmtKind::Data;
  Place place;
  std::string text;  // data, or the name of a macro
  Target target;
  ExprPtr value;
  ExprPtr condition;
  Body body, otherwise;
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  bool uses_varargs = false,
       uses_kwargs = false;  // of Macro and CallBlock: more arguments may be given
  std::vector<std::pair<Target, ExprPtr>> assignments;  // of With
};

// Throws with line and column: BadArgument for what is not a template, Unsupported for a tag that
// is not known.
Body parse(std::string_view source);

// By name; null when there is none.
FilterFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);

}  // namespace tl::jinja
