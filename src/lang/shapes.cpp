#include "lang/shapes.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lang/ast_walk.h"
#include "tl/base/error.h"

namespace tl::lang {

namespace {

constexpr std::int64_t kAny = -1;
using Sizes = std::vector<std::int64_t>;

// What is known of a value.
struct Known {
  enum class Kind : std::uint8_t { Nothing, Number, Tensor } kind = Kind::Nothing;
  Sizes sizes;                          // Tensor: kAny where not known
  std::optional<std::int64_t> integer;  // Number: its value
  bool is_list = false;                 // Tensor: written as a list of numbers

  static Known number() { return {Kind::Number, {}, {}, false}; }
  static Known tensor(Sizes sizes) { return {Kind::Tensor, std::move(sizes), {}, false}; }
  bool is_tensor() const { return kind == Kind::Tensor; }
};

std::string text(const Sizes& sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    out += join(i == 0 ? "" : ", ", sizes[i] == kAny ? std::string("?") : std::to_string(sizes[i]));
  }
  return out + "]";
}

// Elements, where all sizes are known.
std::optional<std::int64_t> count(const Sizes& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) {
    if (size == kAny || (size != 0 && n > (std::int64_t{1} << 40) / size)) return std::nullopt;
    n *= size;
  }
  return n;
}

// What two shapes broadcast to; nothing when they cannot.
std::optional<Sizes> broadcast(const Sizes& a, const Sizes& b) {
  Sizes out(std::max(a.size(), b.size()), kAny);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    std::int64_t& to = out[out.size() - 1 - i];
    if (x == kAny || y == kAny) {
      to = x > 1 ? x : y > 1 ? y : kAny;
    } else if (x == y || y == 1) {
      to = x;
    } else if (x == 1) {
      to = y;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

constexpr std::array<std::string_view, 19> kSameShape = {
    "exp",  "log",     "sqrt", "sin", "cos",     "tan",         "tanh", "sigmoid", "relu", "gelu",
    "silu", "softmax", "abs",  "neg", "dropout", "log_softmax", "sqr",  "erf",     "sign"};
constexpr std::array<std::string_view, 4> kMakers = {"zeros", "ones", "rand", "randn"};

class ShapeChecker {
 public:
  explicit ShapeChecker(std::vector<Diagnostic>& diagnostics) : diagnostics_(diagnostics) {}

  void check(std::span<const ast::Program* const> programs) {
    for (const ast::Program* p : programs) {
      for (const ast::DeclarationPtr& d : p->declarations) {
        if (d->kind == ast::Declaration::Kind::Function) {
          const auto& f = ast::as<ast::FunctionDeclaration>(*d);
          functions_[f.name.text] = &f.function;
        }
      }
    }
    certain_ = true;
    for (const ast::Program* p : programs) {
      for (const ast::DeclarationPtr& d : p->declarations) {
        if (d->kind != ast::Declaration::Kind::Tensor) continue;
        const auto& t = ast::as<ast::TensorDeclaration>(*d);
        declare(t.name.text, *t.type, t.value.get());
      }
    }
    const std::map<std::string, Known> globals = variables_;
    const ast::Program& last = *programs.back();
    if (last.main) block(*last.main);
    certain_ = false;
    for (const ast::NamedBlock& t : last.tests) fresh(globals, t.body);
    for (const ast::NamedBlock& b : last.benches) fresh(globals, b.body);
    for (const auto& [name, body] : functions_) function(*body);
    for (const ast::Program* p : programs) {
      for (const ast::DeclarationPtr& d : p->declarations) {
        if (d->kind != ast::Declaration::Kind::Impl) continue;
        for (const auto& [name, body] : ast::as<ast::ImplDeclaration>(*d).methods) function(body);
      }
    }
  }

 private:
  void fresh(const std::map<std::string, Known>& globals, const ast::Block& body) {
    variables_ = globals;
    block(body);
  }

  void function(const ast::FunctionBody& body) {
    variables_.clear();  // globals may be anything by then, and numbers are taken for tensors
    for (const ast::Param& p : body.params) {
      variables_[p.name.text] = {};
    }
    block(body.body);
  }

  void complain(const Span& span, std::string message) {
    const Severity severity = certain_ ? Severity::Error : Severity::Warning;
    diagnostics_.push_back({severity, std::move(message), span, {}, {}});
  }

  // ---- statements

  void block(const ast::Block& b) {
    const std::map<std::string, Known> before = variables_;
    std::set<std::string> declared;
    for (const ast::StatementPtr& s : b.statements) {
      if (s->kind == ast::Statement::Kind::Let) {
        for (const ast::Name& name : ast::as<ast::LetStatement>(*s).names) {
          declared.insert(name.text);
        }
      }
      if (s->kind == ast::Statement::Kind::Tensor) {
        declared.insert(ast::as<ast::TensorStatement>(*s).name.text);
      }
      statement(*s);
    }
    for (const std::string& name : declared) {  // an outer one of that name is seen again
      const auto outer = before.find(name);
      if (outer == before.end()) {
        variables_.erase(name);
      } else {
        variables_[name] = outer->second;
      }
    }
  }

  // Runs perhaps, perhaps several times.
  void uncertain(const ast::Block& b) {
    const bool before = std::exchange(certain_, false);
    forget_assigned(b);
    block(b);
    forget_assigned(b);
    certain_ = before;
  }

  void forget_assigned(const ast::Block& b) {
    for (const ast::StatementPtr& s : b.statements) forget_assigned(*s);
  }
  void forget_assigned(const ast::Statement& s) {
    if (s.kind == ast::Statement::Kind::Assign) {
      forget_root(*ast::as<ast::AssignStatement>(s).target);
    }
    for_each_part(
        s, [this](const ast::Expr& e) { forget_assigned(e); },
        [this](const ast::Statement& t) { forget_assigned(t); });
  }
  void forget_assigned(const ast::Expr& e) {
    for_each_part(
        e, [this](const ast::Expr& part) { forget_assigned(part); },
        [this](const ast::Statement& t) { forget_assigned(t); });
  }
  void forget_root(const ast::Expr& e) {
    switch (e.kind) {
      case ast::Expr::Kind::Name:
        variables_[ast::as<ast::NameExpr>(e).name] = {};
        break;
      case ast::Expr::Kind::Tuple:
        for (const ast::ExprPtr& part : ast::as<ast::TupleExpr>(e).elements) forget_root(*part);
        break;
      default:
        break;  // elements of a tensor change, its shape does not
    }
  }

  void statement(const ast::Statement& s) {
    using StatementKind = ast::Statement::Kind;
    switch (s.kind) {
      case StatementKind::Let: {
        const auto& let = ast::as<ast::LetStatement>(s);
        const Known value = look(*let.value);
        for (const ast::Name& name : let.names) variables_[name.text] = {};
        if (let.names.size() == 1 && !let.is_tuple && !let.type) {
          variables_[let.names[0].text] = value;
        }
        break;
      }
      case StatementKind::Tensor: {
        const auto& t = ast::as<ast::TensorStatement>(s);
        declare(t.name.text, *t.type, t.value.get());
        break;
      }
      case StatementKind::Assign: {
        const auto& a = ast::as<ast::AssignStatement>(s);
        Known value = look(*a.value);
        if (a.target->kind == ast::Expr::Kind::Name && !a.op) {
          variables_[ast::as<ast::NameExpr>(*a.target).name] = std::move(value);
        } else {
          forget_root(*a.target);
        }
        break;
      }
      case StatementKind::If: {
        const auto& i = ast::as<ast::IfStatement>(s);
        look(*i.condition);
        uncertain(i.then);
        if (i.otherwise) uncertain(*i.otherwise);
        forget_assigned(i.then);
        certain_ = certain_ && !leaves(i.then) && !(i.otherwise && leaves(*i.otherwise));
        break;
      }
      case StatementKind::For: {
        const auto& f = ast::as<ast::ForStatement>(s);
        if (f.iterable) look(*f.iterable);
        const std::map<std::string, Known> before = variables_;
        for (const ast::Name& name : f.variables) variables_[name.text] = {};
        uncertain(f.body);
        for (const ast::Name& name : f.variables) {
          const auto outer = before.find(name.text);
          variables_[name.text] = outer == before.end() ? Known{} : outer->second;
        }
        certain_ = certain_ && !leaves(f.body);
        break;
      }
      case StatementKind::While:
        uncertain(ast::as<ast::WhileStatement>(s).body);
        certain_ = certain_ && !leaves(ast::as<ast::WhileStatement>(s).body);
        break;
      case StatementKind::Loop:
        uncertain(ast::as<ast::LoopStatement>(s).body);
        certain_ = false;  // it may never end
        break;
      case StatementKind::Block:
        block(ast::as<ast::BlockStatement>(s).body);
        break;
      case StatementKind::Return:
        for_each_part(s, [this](const ast::Expr& e) { look(e); }, [](const ast::Statement&) {});
        certain_ = false;
        break;
      case StatementKind::Break:
      case StatementKind::Continue:
      case StatementKind::Panic:
        certain_ = false;
        break;
      case StatementKind::Learn:
        uncertain(ast::as<ast::LearnStatement>(s).body);
        break;
      case StatementKind::With:
        block(ast::as<ast::WithStatement>(s).body);
        break;
      default:
        for_each_part(s, [this](const ast::Expr& e) { look(e); }, [](const ast::Statement&) {});
    }
  }

  // May it end the block around it?
  static bool leaves(const ast::Block& b) {
    bool found = false;
    for (const ast::StatementPtr& s : b.statements) found |= leaves(*s);
    return found;
  }
  static bool leaves(const ast::Statement& s) {
    if (s.kind == ast::Statement::Kind::Return || s.kind == ast::Statement::Kind::Break ||
        s.kind == ast::Statement::Kind::Continue) {
      return true;
    }
    bool found = false;
    for_each_part(s, [](const ast::Expr&) {}, [&](const ast::Statement& t) { found |= leaves(t); });
    return found;
  }

  void declare(const std::string& name, const ast::Type& type, const ast::Expr* value) {
    Sizes sizes;
    for (const ast::Dim& dim : type.dims) {
      sizes.push_back(dim.kind == ast::Dim::Kind::Size ? dim.size : kAny);
    }
    if (value != nullptr) {
      const Known given = look(*value);
      const auto wanted = count(sizes);
      if (given.is_tensor() && wanted) {
        const auto have = count(given.sizes);
        if (have && *have != *wanted && *have != 1) {
          complain(value->span, join("Shape mismatch: '", name, "' is ", text(sizes),
                                     ", its value is ", text(given.sizes)));
        }
      }
    }
    variables_[name] = Known::tensor(std::move(sizes));
  }

  // ---- expressions: what is known of them; complains on the way

  void look_inside(const ast::Expr& e) {
    for_each_part(
        e, [this](const ast::Expr& part) { look(part); },
        [this](const ast::Statement& s) {
          const bool before = std::exchange(certain_, false);
          const std::map<std::string, Known> variables = variables_;
          statement(s);
          variables_ = variables;
          forget_assigned(s);
          certain_ = before;
        });
  }

  Known look(const ast::Expr& e) {
    using ExprKind = ast::Expr::Kind;
    switch (e.kind) {
      case ExprKind::Integer: {
        Known known = Known::number();
        known.integer = ast::as<ast::IntegerExpr>(e).value;
        return known;
      }
      case ExprKind::Float:
        return Known::number();
      case ExprKind::Name: {
        const auto found = variables_.find(ast::as<ast::NameExpr>(e).name);
        return found == variables_.end() ? Known{} : found->second;
      }
      case ExprKind::Array:
        return array(ast::as<ast::ArrayExpr>(e));
      case ExprKind::Unary: {
        const auto& u = ast::as<ast::UnaryExpr>(e);
        Known inner = look(*u.operand);
        if (u.op != ast::UnaryOp::Negate) return {};
        // The least one has no opposite; unsigned arithmetic gives it back.
        if (inner.integer) {
          inner.integer = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(*inner.integer));
        }
        return inner;
      }
      case ExprKind::Binary:
        return binary(ast::as<ast::BinaryExpr>(e));
      case ExprKind::Call:
        return call(ast::as<ast::CallExpr>(e));
      case ExprKind::Match:
      case ExprKind::If:
      case ExprKind::Lambda:
      case ExprKind::Comprehension: {
        const bool before = std::exchange(certain_, false);
        look_hidden(e);
        certain_ = before;
        return {};
      }
      default:
        look_inside(e);
        return {};
    }
  }

  // Names inside may be bound there, so nothing is known of them.
  void look_hidden(const ast::Expr& e) {
    const std::map<std::string, Known> before = std::exchange(variables_, {});
    look_inside(e);
    variables_ = before;
    forget_assigned(e);
  }

  Known array(const ast::ArrayExpr& e) {
    Known first;
    bool numbers = true;
    for (const ast::ExprPtr& element : e.elements) {
      const Known known = look(*element);
      if (element == e.elements.front()) first = known;
      numbers =
          numbers && (known.kind == Known::Kind::Number || (known.is_tensor() && known.is_list));
    }
    if (e.elements.empty() || !numbers) return {};
    Known out = Known::tensor({static_cast<std::int64_t>(e.elements.size())});
    out.sizes.insert(out.sizes.end(), first.sizes.begin(), first.sizes.end());
    out.is_list = true;
    return out;
  }

  Known binary(const ast::BinaryExpr& e) {
    const Known a = look(*e.left);
    const Known b = look(*e.right);
    using ast::BinaryOp;
    if (e.op == BinaryOp::MatrixProduct) return product(e.span, a, b);
    const bool elementwise = e.op <= BinaryOp::Power || e.op == BinaryOp::Hadamard ||
                             (e.op >= BinaryOp::Less && e.op <= BinaryOp::GreaterEqual);
    if (!elementwise) return {};
    if (a.kind == Known::Kind::Number && b.kind == Known::Kind::Number) return Known::number();
    if (a.is_tensor() && b.kind == Known::Kind::Number) return Known::tensor(a.sizes);
    if (b.is_tensor() && a.kind == Known::Kind::Number) return Known::tensor(b.sizes);
    if (!a.is_tensor() || !b.is_tensor()) return {};
    auto sizes = broadcast(a.sizes, b.sizes);
    if (!sizes) {
      complain(e.span,
               join("Shape mismatch: ", text(a.sizes), " ", symbol(e.op), " ", text(b.sizes)));
      return {};
    }
    return Known::tensor(std::move(*sizes));
  }

  Known product(const Span& span, const Known& a, const Known& b) {
    if (!a.is_tensor() || !b.is_tensor() || a.sizes.empty() || b.sizes.empty()) return {};
    const std::int64_t inner = a.sizes.back();
    const std::int64_t other = b.sizes.size() == 1 ? b.sizes[0] : b.sizes[b.sizes.size() - 2];
    if (inner != kAny && other != kAny && inner != other) {
      complain(span, join("Shape mismatch: ", text(a.sizes), " @ ", text(b.sizes),
                          ": the inner sizes are ", inner, " and ", other));
      return {};
    }
    if (a.sizes.size() != 2 || b.sizes.size() != 2) return {};
    return Known::tensor({a.sizes[0], b.sizes[1]});
  }

  // The sizes that a list literal names.
  std::optional<Sizes> shape_argument(const ast::Expr& e) {
    if (e.kind != ast::Expr::Kind::Array) return std::nullopt;
    Sizes sizes;
    for (const ast::ExprPtr& element : ast::as<ast::ArrayExpr>(e).elements) {
      const Known known = look(*element);
      sizes.push_back(known.integer ? *known.integer : kAny);
    }
    return sizes;
  }

  Known call(const ast::CallExpr& e) {
    if (e.callee->kind != ast::Expr::Kind::Name) {
      look_inside(e);
      return {};
    }
    const std::string& name = ast::as<ast::NameExpr>(*e.callee).name;
    std::vector<Known> known;
    bool named = false;
    for (const ast::Argument& a : e.arguments) {
      known.push_back(look(*a.value));
      named = named || a.name.has_value();
    }
    if (named || variables_.contains(name)) return {};
    if (const auto f = functions_.find(name); f != functions_.end()) {
      return call_function(e, *f->second, name, known);
    }
    const auto is_in = [&](const auto& list) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    if (is_in(kMakers) && known.size() == 1) {
      if (auto sizes = shape_argument(*e.arguments[0].value)) return Known::tensor(*sizes);
      return {};
    }
    if (is_in(kSameShape) && !known.empty() && known[0].is_tensor()) {
      return Known::tensor(known[0].sizes);
    }
    if (name == "matmul" && known.size() == 2) return product(e.span, known[0], known[1]);
    if (name == "transpose" && known.size() == 1 && known[0].sizes.size() == 2) {
      return Known::tensor({known[0].sizes[1], known[0].sizes[0]});
    }
    if (name == "reshape" && known.size() == 2) return reshape(e, known[0]);
    if (name == "linear" && known.size() >= 2) return linear(e, known[0], known[1]);
    return {};
  }

  Known reshape(const ast::CallExpr& e, const Known& x) {
    auto sizes = shape_argument(*e.arguments[1].value);
    if (!sizes) return {};
    const auto wanted = count(*sizes);  // a size of -1 is one that is not known
    const auto have = x.is_tensor() ? count(x.sizes) : std::nullopt;
    if (wanted && have && *wanted != *have) {
      complain(e.span, join("Shape mismatch: reshape of ", text(x.sizes), " to ", text(*sizes)));
      return {};
    }
    return Known::tensor(std::move(*sizes));
  }

  Known linear(const ast::CallExpr& e, const Known& x, const Known& weight) {
    if (!x.is_tensor() || !weight.is_tensor() || x.sizes.empty() || weight.sizes.size() != 2) {
      return {};
    }
    const std::int64_t inner = x.sizes.back();
    if (inner != kAny && weight.sizes[1] != kAny && inner != weight.sizes[1]) {
      complain(e.span, join("Shape mismatch: linear of ", text(x.sizes), " with a weight of ",
                            text(weight.sizes)));
      return {};
    }
    Sizes sizes = x.sizes;
    sizes.back() = weight.sizes[0];
    return Known::tensor(std::move(sizes));
  }

  Known call_function(const ast::CallExpr& e, const ast::FunctionBody& f, const std::string& name,
                      const std::vector<Known>& known) {
    std::map<std::string, std::int64_t> names;
    for (std::size_t i = 0; i < known.size() && i < f.params.size(); ++i) {
      const ast::Type* type = f.params[i].type.get();
      if (type == nullptr || type->kind != ast::Type::Kind::Tensor || !known[i].is_tensor()) {
        continue;
      }
      bool fits = known[i].sizes.size() == type->dims.size();
      for (std::size_t d = 0; fits && d < type->dims.size(); ++d) {
        const ast::Dim& dim = type->dims[d];
        const std::int64_t size = known[i].sizes[d];
        if (size == kAny) continue;
        if (dim.kind == ast::Dim::Kind::Size) fits = dim.size == size;
        if (dim.kind == ast::Dim::Kind::Name) {
          fits = names.emplace(dim.name, size).first->second == size;
        }
      }
      if (!fits) {
        std::string wanted;
        for (const ast::Dim& dim : type->dims) {
          wanted += wanted.empty() ? "" : ", ";
          if (dim.kind == ast::Dim::Kind::Any) wanted += "?";
          if (dim.kind == ast::Dim::Kind::Size) wanted += std::to_string(dim.size);
          if (dim.kind != ast::Dim::Kind::Name) continue;
          const auto bound = names.find(dim.name);
          wanted += dim.name;
          if (bound != names.end()) wanted += join(" = ", bound->second);
        }
        complain(e.arguments[i].value->span,
                 join("Shape mismatch: parameter '", f.params[i].name.text, "' of '", name,
                      "' is [", wanted, "], the argument is ", text(known[i].sizes)));
        return {};
      }
    }
    return {};  // a function may give a number for a tensor
  }

  std::vector<Diagnostic>& diagnostics_;
  std::map<std::string, const ast::FunctionBody*> functions_;
  std::map<std::string, Known> variables_;
  bool certain_ = false;
};

}  // namespace

void check_shapes(std::span<const ast::Program* const> programs,
                  std::vector<Diagnostic>& diagnostics) {
  ShapeChecker(diagnostics).check(programs);
}

}  // namespace tl::lang
