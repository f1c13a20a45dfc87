#include "lang/dump.h"

#include <array>
#include <charconv>
#include <optional>
#include <vector>

namespace tl::lang {

namespace {

using namespace ast;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

// Texts of parts, in parentheses and with a space between them.
std::string node(std::string_view head, const std::vector<std::string>& parts) {
  std::string out = "(" + std::string(head);
  for (const std::string& part : parts) out += " " + part;
  return out + ")";
}

std::string optional(const ExprPtr& expr) { return expr ? dump(*expr) : "_"; }
std::string optional(const TypePtr& type) { return type ? dump(*type) : "_"; }

std::string joined(const std::vector<Name>& names) {
  std::string out;
  for (const Name& name : names) out += (out.empty() ? "" : " ") + name.text;
  return "[" + out + "]";
}

void add(std::vector<std::string>& parts, const std::vector<ExprPtr>& items) {
  for (const ExprPtr& item : items) parts.push_back(dump(*item));
}
void add(std::vector<std::string>& parts, const std::vector<TypePtr>& items) {
  for (const TypePtr& item : items) parts.push_back(dump(*item));
}
void add(std::vector<std::string>& parts, const std::vector<Argument>& items) {
  for (const Argument& item : items)
    parts.push_back((item.name ? item.name->text + "=" : "") + dump(*item.value));
}

std::string angle(const std::vector<TypePtr>& arguments) {
  if (arguments.empty()) return {};
  std::vector<std::string> parts;
  add(parts, arguments);
  return node("<>", parts);
}

std::string function(const FunctionBody& body) {
  std::string out = "(";
  if (body.has_self) out += "self ";
  for (const Param& param : body.params) {
    out += param.name.text;
    if (param.type) out += ":" + dump(*param.type);
    if (param.default_value) out += "=" + dump(*param.default_value);
    out += " ";
  }
  if (out.back() == ' ') out.pop_back();
  return out + ") -> " + optional(body.result) + " {" + dump(body.body) + "}";
}

std::string atom(const Atom& a) {
  std::vector<std::string> parts;
  add(parts, a.arguments);
  return node("atom " + a.name.text, parts);
}

std::string query(const Query& q) {
  std::vector<std::string> parts = {atom(q.atom)};
  if (!q.where.empty()) parts.emplace_back("where");
  add(parts, q.where);
  return node("query", parts);
}

std::string index_item(const IndexItem& item) {
  if (!item.is_slice) return dump(*item.index);
  const auto bound = [](const ExprPtr& e) { return e ? dump(*e) : std::string(); };
  return bound(item.start) + ":" + bound(item.stop) + (item.step ? ":" + dump(*item.step) : "");
}

std::string_view unary_symbol(UnaryOp op) {
  return op == UnaryOp::Negate ? "neg" : op == UnaryOp::Not ? "not" : "inv";
}

std::string match_dump(const MatchExpr& e) {
  std::vector<std::string> parts = {dump(*e.subject)};
  for (const MatchArm& arm : e.arms) {
    parts.push_back("(" + dump(*arm.pattern) + (arm.guard ? " if " + dump(*arm.guard) : "") +
                    " => " + dump(*arm.value) + ")");
  }
  return node("match", parts);
}

std::string setting(const Setting& s) {
  if (s.value) return s.name.text + ":" + dump(*s.value);
  std::vector<std::string> parts;
  add(parts, s.arguments);
  return s.name.text + ":" + node(s.maker.text, parts);
}

std::string learn(const LearnStatement& s) {
  std::vector<std::string> parts;
  for (const Setting& one : s.settings) parts.push_back(setting(one));
  if (s.objective) parts.push_back("objective:" + dump(*s.objective));
  parts.push_back("{" + dump(s.body) + "}");
  return node("learn", parts);
}

std::string infer(const InferStatement& s) {
  static constexpr std::string_view kNames[] = {"forward", "backward", "gradient", "symbolic"};
  std::vector<std::string> parts;
  for (const auto& [method, q] : s.items)
    parts.push_back(node(kNames[static_cast<std::size_t>(method)], {query(q)}));
  return node(s.is_block ? "infer-block" : "infer", parts);
}

std::string for_dump(const ForStatement& s) {
  std::vector<std::string> parts = {joined(s.variables)};
  parts.push_back(s.iterable ? dump(*s.iterable) : "(entities " + joined(s.entities) + ")");
  parts.push_back("{" + dump(s.body) + "}");
  return node("for", parts);
}

std::string rule(const RuleDeclaration& d) {
  std::vector<std::string> parts;
  parts.push_back(d.head ? atom(*d.head) : node("~", {dump(*d.left), dump(*d.right)}));
  for (const BodyTerm& term : d.body) {
    switch (term.kind) {
      case BodyTerm::Kind::Atom:
        parts.push_back(term.negated ? node("not", {atom(term.atom)}) : atom(term.atom));
        break;
      case BodyTerm::Kind::Equation:
        parts.push_back(node("~", {dump(*term.left), dump(*term.right)}));
        break;
      case BodyTerm::Kind::Constraint:
        parts.push_back(dump(*term.left));
        break;
    }
  }
  return node("rule", parts);
}

std::string embedding(const EmbeddingDeclaration& d) {
  static constexpr std::string_view kInits[] = {"random", "xavier", "he", "zeros", "ones"};
  using Over = EmbeddingDeclaration::Over;
  const std::string over = d.over == Over::Listed ? joined(d.members)
                           : d.over == Over::Auto ? "auto"
                           : d.over == Over::All  ? "all"
                                                  : d.type.text;
  return node(d.of_relations ? "relation_embedding" : "embedding",
              {d.name.text, over, std::to_string(d.dimension),
               std::string(kInits[static_cast<std::size_t>(d.init)])});
}

std::string relation(const RelationDeclaration& d) {
  std::vector<std::string> parts = {d.name.text};
  for (const Param& param : d.params) parts.push_back(param.name.text + ":" + dump(*param.type));
  if (d.embed) parts.push_back("embed " + dump(*d.embed));
  if (d.learnable) parts.emplace_back("learnable");
  return node("relation", parts);
}

std::string named_blocks(std::string_view kind, const std::vector<NamedBlock>& blocks) {
  std::string out;
  for (const NamedBlock& b : blocks)
    out += "(" + std::string(kind) + " " + b.name.text + " {" + dump(b.body) + "})\n";
  return out;
}

}  // namespace

std::string dump(const Type& type) {
  using Kind = Type::Kind;
  std::vector<std::string> parts;
  add(parts, type.arguments);
  std::string out;
  switch (type.kind) {
    case Kind::Scalar:
      out = type.name;
      break;
    case Kind::Tensor:
      out = type.name + "[";
      for (const Dim& dim : type.dims) {
        if (out.back() != '[') out += ",";
        out += dim.kind == Dim::Kind::Size   ? std::to_string(dim.size)
               : dim.kind == Dim::Kind::Name ? dim.name
                                             : "?";
      }
      out += "]";
      break;
    case Kind::Any:
      out = "Tensor";
      break;
    case Kind::Named:
      out = parts.empty() ? type.name : node("named " + type.name, parts);
      break;
    case Kind::Entity:
      out = "<" + type.name + ">";
      break;
    case Kind::Void:
      out = "void";
      break;
    case Kind::Tuple:
      out = node("tuple", parts);
      break;
    case Kind::List:
      out = node("list", parts);
      break;
    case Kind::Map:
      out = node("map", parts);
      break;
    case Kind::Function:
      out = node("fn", parts);
      break;
  }
  return out + (type.learnable ? " learnable" : "") + (type.frozen ? " frozen" : "");
}

std::string dump(const Expr& expr) {
  using Kind = Expr::Kind;
  std::vector<std::string> parts;
  switch (expr.kind) {
    case Kind::Integer:
      return std::to_string(as<IntegerExpr>(expr).value);
    case Kind::Float: {
      const std::string text = number(as<FloatExpr>(expr).value);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    case Kind::Bool:
      return as<BoolExpr>(expr).value ? "true" : "false";
    case Kind::String:
      return quoted(as<StringExpr>(expr).value);
    case Kind::Name:
      return as<NameExpr>(expr).name;
    case Kind::Array:
      add(parts, as<ArrayExpr>(expr).elements);
      return node("array", parts);
    case Kind::Tuple:
      add(parts, as<TupleExpr>(expr).elements);
      return node("tuple", parts);
    case Kind::Map:
      for (const auto& [key, value] : as<MapExpr>(expr).entries)
        parts.push_back(dump(*key) + ":" + dump(*value));
      return node("map", parts);
    case Kind::StructLiteral: {
      const auto& e = as<StructExpr>(expr);
      for (const auto& [name, value] : e.fields) parts.push_back(name.text + ":" + dump(*value));
      return node("struct " + e.type.text + angle(e.arguments), parts);
    }
    case Kind::Unary: {
      const auto& e = as<UnaryExpr>(expr);
      return node(unary_symbol(e.op), {dump(*e.operand)});
    }
    case Kind::Binary: {
      const auto& e = as<BinaryExpr>(expr);
      return node(symbol(e.op), {dump(*e.left), dump(*e.right)});
    }
    case Kind::Range: {
      const auto& e = as<RangeExpr>(expr);
      return node("..", {dump(*e.first), dump(*e.last)});
    }
    case Kind::Cast: {
      const auto& e = as<CastExpr>(expr);
      return node("as", {dump(*e.operand), e.to_integer ? "int" : "float"});
    }
    case Kind::Index: {
      const auto& e = as<IndexExpr>(expr);
      parts.push_back(dump(*e.base));
      for (const IndexItem& item : e.items) parts.push_back(index_item(item));
      return node("index", parts);
    }
    case Kind::Field: {
      const auto& e = as<FieldExpr>(expr);
      return node(".", {dump(*e.base), e.field.text});
    }
    case Kind::Call: {
      const auto& e = as<CallExpr>(expr);
      parts.push_back(dump(*e.callee));
      add(parts, e.arguments);
      return node("call", parts);
    }
    case Kind::MethodCall: {
      const auto& e = as<MethodExpr>(expr);
      parts = {dump(*e.base), e.name.text};
      add(parts, e.arguments);
      return node("method", parts);
    }
    case Kind::PathCall: {
      const auto& e = as<PathExpr>(expr);
      add(parts, e.arguments);
      return node("path " + e.type.text + angle(e.type_arguments) + "::" + e.name.text, parts);
    }
    case Kind::Match:
      return match_dump(as<MatchExpr>(expr));
    case Kind::If: {
      const auto& e = as<IfExpr>(expr);
      return node("if",
                  {dump(*e.condition), "{" + dump(e.then) + "}", "{" + dump(e.otherwise) + "}"});
    }
    case Kind::Lambda:
      return "(fn " + function(as<LambdaExpr>(expr).function) + ")";
    case Kind::Comprehension: {
      const auto& e = as<ComprehensionExpr>(expr);
      std::string names;
      for (const Name& name : e.variables) names += (names.empty() ? "" : " ") + name.text;
      return node("each", {dump(*e.element), names, dump(*e.iterable), optional(e.condition)});
    }
  }
  return "?";
}

std::string dump(const Pattern& pattern) {
  using Kind = Pattern::Kind;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < pattern.parts.size(); ++i) {
    const std::string text = dump(*pattern.parts[i]);
    parts.push_back(pattern.kind == Kind::Struct ? pattern.fields[i].text + ":" + text : text);
  }
  switch (pattern.kind) {
    case Kind::Any:
      return "_";
    case Kind::Integer:
      return std::to_string(pattern.integer);
    case Kind::Float:
      return number(pattern.real) + "f";
    case Kind::Bool:
      return pattern.boolean ? "true" : "false";
    case Kind::String:
      return quoted(pattern.text);
    case Kind::Bind:
      return "$" + pattern.text;
    case Kind::Tuple:
      return node("tuple", parts);
    case Kind::Struct:
      return node("struct " + pattern.text, parts);
    case Kind::Either:
      return node("|", parts);
  }
  return "?";
}

std::string dump(const Block& block) {
  std::string out;
  for (const StatementPtr& statement : block.statements)
    out += (out.empty() ? "" : " ") + dump(*statement);
  return out;
}

std::string dump(const Statement& statement) {
  using Kind = Statement::Kind;
  std::vector<std::string> parts;
  const auto braces = [](const Block& block) { return "{" + dump(block) + "}"; };
  switch (statement.kind) {
    case Kind::Let: {
      const auto& s = as<LetStatement>(statement);
      parts.push_back(s.is_tuple ? joined(s.names) : s.names[0].text);
      if (s.type) parts.push_back(":" + dump(*s.type));
      parts.push_back(dump(*s.value));
      return node("let", parts);
    }
    case Kind::Tensor: {
      const auto& s = as<TensorStatement>(statement);
      return node("tensor", {s.name.text, dump(*s.type), optional(s.value)});
    }
    case Kind::Assign: {
      const auto& s = as<AssignStatement>(statement);
      return node(s.op ? std::string(symbol(*s.op)) + "=" : "=", {dump(*s.target), dump(*s.value)});
    }
    case Kind::Expression:
      return dump(*as<ExpressionStatement>(statement).expression);
    case Kind::Break:
      return "(break)";
    case Kind::Continue:
      return "(continue)";
    case Kind::Return:
      return node("return", {optional(as<ReturnStatement>(statement).value)});
    case Kind::Panic:
      add(parts, as<PanicStatement>(statement).arguments);
      return node("panic", parts);
    case Kind::If: {
      const auto& s = as<IfStatement>(statement);
      parts = {dump(*s.condition), braces(s.then)};
      if (s.otherwise) parts.push_back(braces(*s.otherwise));
      return node("if", parts);
    }
    case Kind::For:
      return for_dump(as<ForStatement>(statement));
    case Kind::While: {
      const auto& s = as<WhileStatement>(statement);
      return node("while", {dump(*s.condition), braces(s.body)});
    }
    case Kind::Loop:
      return node("loop", {braces(as<LoopStatement>(statement).body)});
    case Kind::Block:
      return node("block", {braces(as<BlockStatement>(statement).body)});
    case Kind::With: {
      const auto& s = as<WithStatement>(statement);
      return node("with", {s.type.text, braces(s.body)});
    }
    case Kind::Query:
      return query(as<QueryStatement>(statement).query);
    case Kind::Equation: {
      const auto& s = as<EquationStatement>(statement);
      return node("~", {dump(*s.left), dump(*s.right)});
    }
    case Kind::Infer:
      return infer(as<InferStatement>(statement));
    case Kind::Learn:
      return learn(as<LearnStatement>(statement));
    case Kind::Python: {
      const auto& s = as<PythonStatement>(statement);
      return node("python", {s.module, s.alias.empty() ? "_" : s.alias});
    }
  }
  return "?";
}

std::string dump(const Declaration& declaration) {
  using Kind = Declaration::Kind;
  std::vector<std::string> parts;
  switch (declaration.kind) {
    case Kind::Import:
      return node("import", {quoted(as<ImportDeclaration>(declaration).path)});
    case Kind::Entity: {
      const auto& d = as<EntityDeclaration>(declaration);
      parts = {d.name.text};
      if (d.has_members) parts.push_back(joined(d.members));
      return node("entity", parts);
    }
    case Kind::Tensor: {
      const auto& d = as<TensorDeclaration>(declaration);
      return node("tensor", {d.name.text, dump(*d.type), optional(d.value)});
    }
    case Kind::Relation:
      return relation(as<RelationDeclaration>(declaration));
    case Kind::Rule:
      return rule(as<RuleDeclaration>(declaration));
    case Kind::Embedding:
      return embedding(as<EmbeddingDeclaration>(declaration));
    case Kind::Function: {
      const auto& d = as<FunctionDeclaration>(declaration);
      return "(fn " + d.name.text + " " + function(d.function) + ")";
    }
    case Kind::Struct: {
      const auto& d = as<StructDeclaration>(declaration);
      parts = {d.name.text};
      if (!d.type_params.empty()) parts.push_back(joined(d.type_params));
      for (const ast::Field& field : d.fields)
        parts.push_back(field.name.text + ":" + dump(*field.type));
      return node("struct", parts);
    }
    case Kind::Impl: {
      const auto& d = as<ImplDeclaration>(declaration);
      parts = {d.trait ? d.trait->text + " for " + d.type.text : d.type.text};
      for (const auto& [name, body] : d.methods)
        parts.push_back("(fn " + name.text + " " + function(body) + ")");
      return node("impl", parts);
    }
    case Kind::Const: {
      const auto& d = as<ConstDeclaration>(declaration);
      parts = {d.name.text};
      if (d.type) parts.push_back(":" + dump(*d.type));
      parts.push_back(dump(*d.value));
      return node("const", parts);
    }
  }
  return "?";
}

std::string dump(const Program& program) {
  std::string out;
  for (const DeclarationPtr& declaration : program.declarations) out += dump(*declaration) + "\n";
  if (program.main) out += "(main {" + dump(*program.main) + "})\n";
  return out + named_blocks("test", program.tests) + named_blocks("bench", program.benches);
}

}  // namespace tl::lang
