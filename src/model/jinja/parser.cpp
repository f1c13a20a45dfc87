#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>

#include "model/jinja/ast.h"
#include "model/jinja/lexer.h"

namespace tl::jinja {

namespace {

constexpr std::uint32_t kMostDepth = 150;      // of expressions
constexpr std::size_t kMostNesting = 100;      // of blocks
constexpr std::size_t kMostSource = 4U << 20;  // bytes

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}

  Body run() { return body({}); }

 private:
  // ---- tokens

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(TokenType type) const { return now().type == type; }
  bool is_name(std::string_view name) const { return is(TokenType::Name) && now().text == name; }
  bool is_operator(std::string_view text) const {
    return is(TokenType::Operator) && now().text == text;
  }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool skip_name(std::string_view name) { return is_name(name) && (next(), true); }
  bool skip_operator(std::string_view text) { return is_operator(text) && (next(), true); }

  std::string what_is_here() const {
    switch (now().type) {
      case TokenType::End:
        return "the end of the template";
      case TokenType::Data:
        return "text";
      case TokenType::VariableBegin:
        return "'{{'";
      case TokenType::VariableEnd:
        return "'}}'";
      case TokenType::BlockBegin:
        return "'{%'";
      case TokenType::BlockEnd:
        return "'%}'";
      case TokenType::String:
        return "a text";
      default:
        return "'" + now().text + "'";
    }
  }
  [[noreturn]] void expected(std::string_view what) const {
    fail_at(ErrorKind::BadArgument, now().place, what, " was expected, not ", what_is_here());
  }
  void want_operator(std::string_view text) {
    if (!skip_operator(text)) expected("'" + std::string(text) + "'");
  }
  void want(TokenType type, std::string_view what) {
    if (!is(type)) expected(what);
    next();
  }
  std::string want_name() {
    if (!is(TokenType::Name)) expected("a name");
    std::string name = now().text;
    next();
    return name;
  }

  // ---- nodes

  static void deepen(Expr& node, const ExprPtr& child) {
    if (child == nullptr) return;
    node.depth = std::max(node.depth, child->depth + 1);
    if (node.depth > kMostDepth) {
      fail_at(ErrorKind::BadArgument, node.place, "the expression is nested more than ", kMostDepth,
              " deep");
    }
  }
  template <class... Items>
  static ExprPtr make(ExprKind kind, Place place, std::string text, Items... items) {
    auto node = std::make_unique<Expr>();
    node->kind = kind;
    node->place = place;
    node->text = std::move(text);
    (push(*node, std::move(items)), ...);
    return node;
  }
  static void push(Expr& node, ExprPtr item) {
    deepen(node, item);
    node.items.push_back(std::move(item));
  }
  static ExprPtr constant(Place place, const Value& value) {
    ExprPtr node = make(ExprKind::Constant, place, "");
    node->value = value;
    return node;
  }

  // How deep the parser itself is; expressions in brackets are not deeper than the lexer lets them.
  struct Level {
    Level(std::size_t& count, std::size_t most, Place place, std::string_view what)
        : count_(count) {
      if (++count_ > most)
        fail_at(ErrorKind::BadArgument, place, what, " are nested more than ", most, " deep");
    }
    ~Level() { --count_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    std::size_t& count_;
  };

  // ---- expressions, weakest first

  ExprPtr expression(bool with_condition = true) {
    const Level level(expression_level_, kMostDepth, now().place, "expressions");
    ExprPtr left = either();
    while (with_condition && is_name("if")) {
      const Place place = now().place;
      next();
      ExprPtr condition = either();
      ExprPtr otherwise = skip_name("else") ? expression() : nullptr;
      left = make(ExprKind::Condition, place, "", std::move(left), std::move(condition),
                  std::move(otherwise));
    }
    return left;
  }

  ExprPtr either() {
    ExprPtr left = both();
    while (is_name("or")) {
      const Place place = now().place;
      next();
      left = make(ExprKind::Or, place, "", std::move(left), both());
    }
    return left;
  }

  ExprPtr both() {
    ExprPtr left = negation();
    while (is_name("and")) {
      const Place place = now().place;
      next();
      left = make(ExprKind::And, place, "", std::move(left), negation());
    }
    return left;
  }

  ExprPtr negation() {
    if (!is_name("not")) return comparison();
    const Level level(expression_level_, kMostDepth, now().place, "expressions");
    const Place place = now().place;
    next();
    return make(ExprKind::Not, place, "", negation());
  }

  ExprPtr comparison() {
    const Place place = now().place;
    ExprPtr left = sum();
    ExprPtr node;
    while (true) {
      std::string op;
      if (is(TokenType::Operator)) {
        for (const std::string_view each : {"==", "!=", "<", "<=", ">", ">="}) {
          if (now().text == each) op = each;
        }
      } else if (is_name("in")) {
        op = "in";
      } else if (is_name("not") && ahead().type == TokenType::Name && ahead().text == "in") {
        next();
        op = "not in";
      }
      if (op.empty()) return node == nullptr ? std::move(left) : std::move(node);
      next();
      if (node == nullptr) node = make(ExprKind::Compare, place, "", std::move(left));
      push(*node, sum());
      node->operators.push_back(std::move(op));
    }
  }

  // Operators of one strength, from the left.
  template <class Inner>
  ExprPtr binary(std::initializer_list<std::string_view> operators, const Inner& inner) {
    ExprPtr left = inner();
    while (is(TokenType::Operator)) {
      std::string_view found;
      for (const std::string_view each : operators) {
        if (now().text == each) found = each;
      }
      if (found.empty()) break;
      const Place place = now().place;
      next();
      left = make(ExprKind::Binary, place, std::string(found), std::move(left), inner());
    }
    return left;
  }

  ExprPtr sum() {
    return binary({"+", "-"}, [this] { return concat(); });
  }

  ExprPtr concat() {
    ExprPtr left = product();
    if (!is_operator("~")) return left;
    ExprPtr node = make(ExprKind::Concat, now().place, "", std::move(left));
    while (skip_operator("~")) push(*node, product());
    return node;
  }

  ExprPtr product() {
    return binary({"*", "/", "//", "%"}, [this] { return power(); });
  }

  ExprPtr power() {
    return binary({"**"}, [this] { return unary(true); });
  }

  ExprPtr unary(bool with_filters) {
    const Level level(expression_level_, kMostDepth, now().place, "expressions");
    const Place place = now().place;
    ExprPtr node;
    if (skip_operator("-")) {
      node = make(ExprKind::Negative, place, "", unary(false));
    } else if (skip_operator("+")) {
      node = make(ExprKind::Positive, place, "", unary(false));
    } else {
      node = postfix(primary());
    }
    return with_filters ? filters(std::move(node)) : std::move(node);
  }

  ExprPtr primary() {
    const Token token = now();
    switch (token.type) {
      case TokenType::Name: {
        next();
        if (token.text == "true" || token.text == "True") return constant(token.place, Value(true));
        if (token.text == "false" || token.text == "False")
          return constant(token.place, Value(false));
        if (token.text == "none" || token.text == "None")
          return constant(token.place, Value::none());
        if (macro_ != nullptr && token.text == "varargs") macro_->uses_varargs = true;
        if (macro_ != nullptr && token.text == "kwargs") macro_->uses_kwargs = true;
        return make(ExprKind::Name, token.place, token.text);
      }
      case TokenType::String: {
        std::string text;
        for (; is(TokenType::String); next()) text += now().text;
        return make(ExprKind::String, token.place, std::move(text));
      }
      case TokenType::Integer: {
        next();
        std::int64_t value = 0;
        const auto read =
            std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
        if (read.ec != std::errc())
          fail_at(ErrorKind::BadArgument, token.place, token.text, " is too large");
        return constant(token.place, Value(value));
      }
      case TokenType::Float: {
        next();
        double value = 0;
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
        return constant(token.place, Value(value));
      }
      case TokenType::Operator:
        if (token.text == "(") {
          next();
          ExprPtr inner = tuple(true);
          want_operator(")");
          return inner;
        }
        if (token.text == "[") return list();
        if (token.text == "{") return dict();
        break;
      default:
        break;
    }
    expected("an expression");
  }

  // Expressions with commas between them are a tuple; one without is itself.
  ExprPtr tuple(bool may_be_empty, bool with_condition = true) {
    const Place place = now().place;
    ExprPtr node;
    if (may_be_empty && is_operator(")")) return make(ExprKind::Tuple, place, "");
    ExprPtr first = expression(with_condition);
    while (is_operator(",")) {
      next();
      if (node == nullptr) node = make(ExprKind::Tuple, place, "", std::move(first));
      if (ends_tuple()) break;
      push(*node, expression(with_condition));
    }
    return node == nullptr ? std::move(first) : std::move(node);
  }
  bool ends_tuple() const {
    return is(TokenType::BlockEnd) || is(TokenType::VariableEnd) || is_operator(")") ||
           is_operator("]") || is_operator("=") || is_name("in");
  }

  ExprPtr list() {
    ExprPtr node = make(ExprKind::List, now().place, "");
    next();
    while (!skip_operator("]")) {
      push(*node, expression());
      if (!is_operator("]")) want_operator(",");
    }
    return node;
  }

  ExprPtr dict() {
    ExprPtr node = make(ExprKind::Dict, now().place, "");
    next();
    while (!skip_operator("}")) {
      push(*node, expression());
      want_operator(":");
      push(*node, expression());
      if (!is_operator("}")) want_operator(",");
    }
    return node;
  }

  ExprPtr postfix(ExprPtr node) {
    while (true) {
      const Place place = now().place;
      if (skip_operator(".")) {
        if (is(TokenType::Integer)) {
          ExprPtr index = primary();
          node = make(ExprKind::Item, place, "", std::move(node), std::move(index));
        } else {
          const Place name_place = now().place;
          std::string name = want_name();
          node = make(ExprKind::Attribute, name_place, std::move(name), std::move(node));
        }
      } else if (skip_operator("[")) {
        node = subscript(std::move(node), place);
      } else if (is_operator("(")) {
        ExprPtr call = make(ExprKind::Call, place, "", std::move(node));
        arguments(*call);
        node = std::move(call);
      } else {
        return node;
      }
    }
  }

  ExprPtr subscript(ExprPtr node, Place place) {
    ExprPtr parts[3];
    bool is_slice = false;
    std::size_t part = 0;
    if (!is_operator(":")) parts[0] = tuple(false);
    while (skip_operator(":")) {
      is_slice = true;
      if (++part > 2) expected("']'");
      if (!is_operator(":") && !is_operator("]")) parts[part] = expression();
    }
    want_operator("]");
    if (!is_slice) return make(ExprKind::Item, place, "", std::move(node), std::move(parts[0]));
    return make(ExprKind::Slice, place, "", std::move(node), std::move(parts[0]),
                std::move(parts[1]), std::move(parts[2]));
  }

  // (a, b, *c, d=1, **e), after what is called.
  void arguments(Expr& call) {
    want_operator("(");
    while (!skip_operator(")")) {
      const Star star = skip_operator("**")  ? Star::Dict
                        : skip_operator("*") ? Star::List
                                             : Star::None;
      if (star == Star::None && is(TokenType::Name) && ahead().type == TokenType::Operator &&
          ahead().text == "=") {
        std::string name = want_name();
        next();
        ExprPtr value = expression();
        deepen(call, value);
        call.named.emplace_back(std::move(name), std::move(value));
      } else {
        if (star == Star::None && !call.named.empty()) expected("a named argument");
        push(call, expression());
        call.stars.push_back(star);
      }
      if (!is_operator(")")) want_operator(",");
    }
  }

  // Names of filters and tests may have dots in them.
  std::string dotted_name() {
    std::string name = want_name();
    while (is_operator(".")) {
      next();
      name += "." + want_name();
    }
    return name;
  }

  ExprPtr filters(ExprPtr node) {
    while (true) {
      const Place place = now().place;
      if (skip_operator("|")) {
        node = filter(std::move(node));
      } else if (skip_name("is")) {
        node = test(std::move(node), place);
      } else if (is_operator("(")) {
        ExprPtr call = make(ExprKind::Call, place, "", std::move(node));
        arguments(*call);
        node = std::move(call);
      } else {
        return node;
      }
    }
  }

  // After the '|'. The value may be null, for a block that is filtered.
  ExprPtr filter(ExprPtr value) {
    const Place place = now().place;
    ExprPtr node = make(ExprKind::Filter, place, dotted_name(), std::move(value));
    node->filter = find_filter(node->text);
    if (is_operator("(")) arguments(*node);
    return node;
  }

  ExprPtr test(ExprPtr value, Place place) {
    const bool negated = skip_name("not");
    const Place name_place = now().place;
    ExprPtr node = make(ExprKind::Test, name_place, dotted_name(), std::move(value));
    node->test = find_test(node->text);
    const bool begins_argument = is(TokenType::Name) || is(TokenType::String) ||
                                 is(TokenType::Integer) || is(TokenType::Float) ||
                                 is_operator("[") || is_operator("{");
    if (is_operator("(")) {
      arguments(*node);
    } else if (begins_argument && !is_name("else") && !is_name("or") && !is_name("and")) {
      if (is_name("is")) expected("no second 'is'");
      push(*node, postfix(primary()));
      node->stars.push_back(Star::None);
    }
    if (negated) node = make(ExprKind::Not, place, "", std::move(node));
    return node;
  }

  // ---- blocks

  using Stops = std::initializer_list<std::string_view>;

  // Up to a block that begins with one of `stops`, which is left for the caller: its '{%' is taken,
  // its name is the next token. With no stops up to the end.
  Body body(Stops stops) {
    const Level level(block_level_, kMostNesting, now().place, "blocks");
    Body out;
    while (!is(TokenType::End)) {
      const Place place = now().place;
      if (is(TokenType::Data)) {
        auto data = statement(StmtKind::Data, place);
        data->text = now().text;
        out.push_back(std::move(data));
        next();
      } else if (is(TokenType::VariableBegin)) {
        next();
        auto output = statement(StmtKind::Output, place);
        output->value = tuple(false);
        want(TokenType::VariableEnd, "'}}'");
        out.push_back(std::move(output));
      } else {
        want(TokenType::BlockBegin, "a tag");
        for (const std::string_view stop : stops) {
          if (is_name(stop)) return out;
        }
        out.push_back(block(place, stops));
      }
    }
    if (stops.size() != 0) {
      fail_at(ErrorKind::BadArgument, now().place, "the template ends where '", *(stops.end() - 1),
              "' was expected");
    }
    return out;
  }

  static std::unique_ptr<Stmt> statement(StmtKind kind, Place place) {
    auto out = std::make_unique<Stmt>();
    out->kind = kind;
    out->place = place;
    return out;
  }
  void end_of_block() { want(TokenType::BlockEnd, "'%}'"); }
  // The body of a block and its end tag.
  Body body_until(std::string_view end) {
    end_of_block();
    Body out = body({end});
    next();
    end_of_block();
    return out;
  }

  Body macro_body(Stmt& macro, std::string_view end) {
    Stmt* const outer = std::exchange(macro_, &macro);
    const std::size_t loops = std::exchange(loop_level_, 0);
    Body out = body_until(end);
    macro_ = outer;
    loop_level_ = loops;
    return out;
  }

  std::unique_ptr<Stmt> block(Place place, Stops stops) {
    if (!is(TokenType::Name)) expected("the name of a tag");
    const Place name_place = now().place;
    const std::string name = want_name();
    auto out = statement(StmtKind::Scope, place);
    if (name == "if") {
      parse_if(*out);
    } else if (name == "for") {
      parse_for(*out);
    } else if (name == "set") {
      parse_set(*out);
    } else if (name == "macro") {
      out->kind = StmtKind::Macro;
      out->text = want_name();
      parameters(*out);
      out->body = macro_body(*out, "endmacro");
    } else if (name == "call") {
      out->kind = StmtKind::CallBlock;
      if (is_operator("(")) parameters(*out);
      out->value = expression();
      if (out->value->kind != ExprKind::Call)
        fail_at(ErrorKind::BadArgument, name_place, "'call' needs a call");
      out->body = macro_body(*out, "endcall");
    } else if (name == "filter") {
      out->kind = StmtKind::FilterBlock;
      out->value = filter(nullptr);
      while (skip_operator("|")) out->value = filter(std::move(out->value));
      out->body = body_until("endfilter");
    } else if (name == "with") {
      parse_with(*out);
    } else if (name == "generation") {
      out->body = body_until("endgeneration");
    } else if (name == "break" || name == "continue") {
      out->kind = name == "break" ? StmtKind::Break : StmtKind::Continue;
      if (loop_level_ == 0)
        fail_at(ErrorKind::BadArgument, name_place, "'", name, "' is outside of a loop");
      end_of_block();
    } else if (name.starts_with("end") || name == "else" || name == "elif") {
      fail_at(ErrorKind::BadArgument, name_place, "'", name, "' has no beginning here",
              stops.size() == 0 ? "" : "; expected is '",
              stops.size() == 0 ? "" : std::string(*(stops.end() - 1)) + "'");
    } else {
      fail_at(ErrorKind::Unsupported, name_place, "the tag '", name, "' is not known");
    }
    return out;
  }

  void parse_if(Stmt& out) {
    out.kind = StmtKind::If;
    ExprPtr condition = tuple(false, false);
    while (true) {
      end_of_block();
      const bool is_else = condition == nullptr;
      Body inside = is_else ? body({"endif"}) : body({"elif", "else", "endif"});
      out.branches.push_back({std::move(condition), std::move(inside)});
      if (skip_name("elif")) {
        condition = tuple(false, false);
      } else if (skip_name("else")) {
        condition = nullptr;
      } else {
        next();
        end_of_block();
        return;
      }
    }
  }

  void parse_for(Stmt& out) {
    out.kind = StmtKind::For;
    out.target = target(true);
    if (!skip_name("in")) expected("'in'");
    out.value = tuple(false, false);
    if (skip_name("if")) out.condition = expression();
    if (is_name("recursive")) {
      fail_at(ErrorKind::Unsupported, now().place, "loops that are 'recursive' are not known");
    }
    end_of_block();
    ++loop_level_;
    out.body = body({"else", "endfor"});
    --loop_level_;
    if (skip_name("else")) {
      end_of_block();
      out.otherwise = body({"endfor"});
    }
    next();
    end_of_block();
  }

  void parse_set(Stmt& out) {
    out.kind = StmtKind::Set;
    out.target = target(true);
    if (skip_operator("=")) {
      out.value = tuple(false);
      end_of_block();
      return;
    }
    out.kind = StmtKind::SetBlock;
    while (skip_operator("|")) out.value = filter(std::move(out.value));
    out.body = body_until("endset");
  }

  void parse_with(Stmt& out) {
    out.kind = StmtKind::With;
    while (!is(TokenType::BlockEnd)) {
      Target to = target(false);
      want_operator("=");
      out.assignments.emplace_back(std::move(to), expression());
      if (!is(TokenType::BlockEnd)) want_operator(",");
    }
    out.body = body_until("endwith");
  }

  Target target(bool may_be_several) {
    const Level level(expression_level_, kMostDepth, now().place, "expressions");
    Target first = single_target();
    if (!may_be_several || !is_operator(",")) return first;
    Target all;
    all.place = first.place;
    all.parts.push_back(std::move(first));
    while (skip_operator(",")) {
      if (is_name("in") || is_operator("=") || is_operator(")")) break;
      all.parts.push_back(single_target());
    }
    return all;
  }

  Target single_target() {
    Target out;
    out.place = now().place;
    if (skip_operator("(")) {
      out = target(true);
      want_operator(")");
      return out;
    }
    out.name = want_name();
    if (skip_operator(".")) out.attribute = want_name();
    return out;
  }

  void parameters(Stmt& out) {
    want_operator("(");
    while (!skip_operator(")")) {
      Parameter parameter{want_name(), nullptr};
      if (skip_operator("=")) {
        parameter.otherwise = expression();
      } else if (!out.parameters.empty() && out.parameters.back().otherwise != nullptr) {
        expected("a default value");
      }
      out.parameters.push_back(std::move(parameter));
      if (!is_operator(")")) want_operator(",");
    }
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t expression_level_ = 0, block_level_ = 0, loop_level_ = 0;
  Stmt* macro_ = nullptr;  // whose body is being read
};

}  // namespace

Body parse(std::string_view source) {
  if (source.size() > kMostSource) {
    throw Error(ErrorKind::BadArgument, "template", "it has ", source.size(), " bytes; at most ",
                kMostSource, " are read");
  }
  return Parser(source).run();
}

}  // namespace tl::jinja
