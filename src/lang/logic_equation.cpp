// Tensor equations: Y[i, k] ~ W[i, j] * X[j, k].
//
// Names between brackets are indices. An index that is not on the left is summed over in the
// product where it stands; what is elementwise (sums, quotients, functions) is computed index by
// index. Every product becomes one einsum.
#include <algorithm>

#include "lang/ast_walk.h"
#include "lang/compiler.h"
#include "lang/logic_calls.h"

namespace tl::lang {

using ast::Expr;

namespace {

constexpr std::size_t kMostIndices = 52;

const ast::NameExpr* as_name(const Expr& e) {
  return e.kind == Expr::Kind::Name ? &ast::as<ast::NameExpr>(e) : nullptr;
}

std::string both(const std::string& a, const std::string& b) {
  std::string out = a;
  for (const char c : b) {
    if (out.find(c) == std::string::npos) out += c;
  }
  std::sort(out.begin(), out.end());  // letters are given out left side first
  return out;
}

std::string among(const std::string& a, const std::string& kept) {
  std::string out;
  for (const char c : both(a, "")) {
    if (kept.find(c) != std::string::npos) out += c;
  }
  return out;
}

// The factors of a product, left to right.
void factors_of(const Expr& e, std::vector<const Expr*>& out) {
  if (e.kind == Expr::Kind::Binary && (ast::as<ast::BinaryExpr>(e).op == ast::BinaryOp::Multiply ||
                                       ast::as<ast::BinaryExpr>(e).op == ast::BinaryOp::Hadamard)) {
    factors_of(*ast::as<ast::BinaryExpr>(e).left, out);
    factors_of(*ast::as<ast::BinaryExpr>(e).right, out);
    return;
  }
  out.push_back(&e);
}

}  // namespace

bool is_equation_head(const Expr& e) {
  if (e.kind != Expr::Kind::Index) return false;
  const auto& index = ast::as<ast::IndexExpr>(e);
  if (as_name(*index.base) == nullptr) return false;
  return std::all_of(index.items.begin(), index.items.end(), [](const ast::IndexItem& item) {
    return !item.is_slice && as_name(*item.index) != nullptr;
  });
}

class EquationCompiler {
 public:
  EquationCompiler(FunctionCompiler& f, const ast::IndexExpr& head) : f_(f), head_(head) {}

  void compile(const Expr& right, Operand to) {
    for (const ast::IndexItem& item : head_.items) {
      const std::string& name = as_name(*item.index)->name;
      if (letters_.contains(name)) {
        f_.bad(item.span, join("index '", name, "' stands twice on the left"));
        return;
      }
      all_ += letter(name);
    }
    const std::string left = all_;
    const Indexed value = expression(right, left);
    if (value.indices != left) {
      for (const ast::IndexItem& item : head_.items) {
        const std::string& name = as_name(*item.index)->name;
        if (value.indices.find(letters_.at(name)) != std::string::npos) continue;
        f_.bad(item.span, join("index '", name, "' of ", as_name(*head_.base)->name,
                               " stands nowhere on the right"));
        return;
      }
    }
    f_.emit(Op::Move, right.span, to, value.at);
  }

 private:
  struct Indexed {
    Operand at = 0;
    std::string indices;  // of its dimensions; sorted
  };

  char letter(const std::string& name) {
    const auto [at, is_new] = letters_.try_emplace(name, 'a');
    if (is_new) {
      const std::size_t n = letters_.size() - 1;
      if (n >= kMostIndices) f_.bad(head_.span, "an equation has at most 52 indices");
      at->second = static_cast<char>(n < 26 ? 'A' + n : 'a' + (n - 26) % 26);
    }
    return at->second;
  }

  // Left of `~` a name is an index whatever else it may be; right of it a program's variable is a
  // fixed place, unless it stands on the left too.
  bool is_index(const ast::IndexItem& item) {
    const ast::NameExpr* name = item.is_slice ? nullptr : as_name(*item.index);
    return name != nullptr &&
           (letters_.contains(name->name) ||
            (!f_.is_program_name(name->name) && !f_.c_.world.logic->is_fixed_entity(name->name)));
  }

  std::string indices_in(const Expr& e) {
    std::string out;
    if (e.kind == Expr::Kind::Index) {
      for (const ast::IndexItem& item : ast::as<ast::IndexExpr>(e).items) {
        if (is_index(item)) out = both(out, std::string(1, letter(as_name(*item.index)->name)));
      }
    }
    for_each_part(
        e,
        [&](const Expr& part) {
          if (part.kind != Expr::Kind::Name) out = both(out, indices_in(part));
        },
        [](const ast::Statement&) {});
    return out;
  }

  Indexed expression(const Expr& e, const std::string& kept) {
    if (indices_in(e).empty()) return {f_.own(e), ""};
    switch (e.kind) {
      case Expr::Kind::Index:
        return product({&e}, kept, e.span);
      case Expr::Kind::Unary: {
        const auto& u = ast::as<ast::UnaryExpr>(e);
        const Indexed part = expression(*u.operand, kept);
        const Operand out = f_.temporary();
        f_.emit(u.op == ast::UnaryOp::Negate ? Op::Negate
                : u.op == ast::UnaryOp::Not  ? Op::Not
                                             : Op::Inverse,
                e.span, out, part.at);
        return {out, part.indices};
      }
      case Expr::Kind::Binary: {
        std::vector<const Expr*> factors;
        factors_of(e, factors);
        if (factors.size() > 1) return product(factors, kept, e.span);
        return elementwise(ast::as<ast::BinaryExpr>(e), kept);
      }
      case Expr::Kind::Call:
        return call(ast::as<ast::CallExpr>(e), kept);
      default:
        f_.bad(e.span, "a tensor equation has products, sums and functions of indexed tensors");
        return {};
    }
  }

  Indexed elementwise(const ast::BinaryExpr& e, const std::string& kept) {
    const Indexed left = expression(*e.left, kept);
    const Indexed right = expression(*e.right, kept);
    const std::string all = both(left.indices, right.indices);
    const Operand a = aligned(left, all, e.span);
    const Operand b = aligned(right, all, e.span);
    const Operand out = f_.temporary();
    f_.emit(static_cast<Op>(static_cast<int>(Op::Add) + static_cast<int>(e.op)), e.span, out, a, b);
    return {out, all};
  }

  Operand aligned(const Indexed& value, const std::string& all, const Span& span) {
    if (value.indices == all || value.indices.empty()) return value.at;
    const Operand out = f_.temporary();
    const Operand first = f_.temporary();
    f_.emit(Op::Move, span, first, value.at);
    f_.emit(Op::Move, span, f_.temporary(), f_.text_constant(value.indices));
    f_.emit(Op::Move, span, f_.temporary(), f_.text_constant(all));
    f_.call_logic(LogicCall::Align, first, 3, span, out);
    return out;
  }

  // One operand of an einsum: the tensor, and its indices in the order of its dimensions.
  struct Factor {
    Operand at = 0;
    std::string dims;
    bool is_relation = false;  // then `at` is its name: a large one is not made dense
  };

  Indexed product(const std::vector<const Expr*>& factors, const std::string& kept,
                  const Span& span) {
    std::vector<Factor> tensors;
    std::vector<Operand> scalars;
    std::string present;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const Expr& e = *factors[i];
      if (e.kind == Expr::Kind::Index && !indices_in(e).empty()) {
        tensors.push_back(indexed(ast::as<ast::IndexExpr>(e)));
      } else {
        // What the other factors have as well must be left for the product to sum over.
        std::string needed = kept;
        for (std::size_t j = 0; j < factors.size(); ++j) {
          if (j != i) needed = both(needed, indices_in(*factors[j]));
        }
        const Indexed part = expression(e, needed);
        if (part.indices.empty()) {
          scalars.push_back(part.at);
          continue;
        }
        tensors.push_back({part.at, part.indices});
      }
      present = both(present, tensors.back().dims);
    }
    const std::string left = among(present, kept);
    Operand at = contraction(tensors, left, span);
    for (const Operand scalar : scalars) {
      const Operand out = f_.temporary();
      f_.emit(Op::Multiply, span, out, at, scalar);
      at = out;
    }
    return {at, left};
  }

  Operand contraction(const std::vector<Factor>& tensors, const std::string& left,
                      const Span& span) {
    const bool has_relation =
        std::any_of(tensors.begin(), tensors.end(), [](const Factor& t) { return t.is_relation; });
    if (tensors.size() == 1 && tensors[0].dims == left && !has_relation) return tensors[0].at;
    const Operand out = f_.temporary();
    const Operand first = f_.temporary();
    std::string equation;
    for (const Factor& t : tensors) {
      equation += (equation.empty() ? "" : ",") + t.dims;
      f_.emit(Op::Move, span, f_.temporary(), t.at);
    }
    f_.emit(Op::Move, span, first, f_.text_constant(equation + "->" + left));
    if (has_relation) {
      const auto count = static_cast<std::uint32_t>(tensors.size() + 1);
      f_.call_logic(LogicCall::Contract, first, count, span, out);
      return out;
    }
    CallSite site;
    site.builtin = BuiltinTable::instance().find("einsum");
    site.count = static_cast<std::uint32_t>(tensors.size() + 1);
    f_.f_.calls.push_back(std::move(site));
    f_.put({Op::CallBuiltin, 0, out, first, static_cast<Operand>(f_.f_.calls.size() - 1)}, span);
    return out;
  }

  // Places that are fixed are taken first; what is left has the indices as its dimensions.
  Factor indexed(const ast::IndexExpr& e) {
    Factor out;
    bool is_plain = true;
    for (const ast::IndexItem& item : e.items) {
      if (is_index(item)) {
        out.dims += letter(as_name(*item.index)->name);
      } else {
        is_plain = false;
      }
    }
    const ast::NameExpr* base = as_name(*e.base);
    const bool of_relation =
        base != nullptr && !f_.is_program_name(base->name) && f_.find_relation(base->name);
    if (is_plain && of_relation) {
      out.at = f_.temporary();
      out.is_relation = true;
      f_.emit(Op::Move, e.span, out.at, f_.text_constant(base->name));
      return out;
    }
    if (is_plain) {
      out.at = f_.own(*e.base);
      return out;
    }
    if (of_relation) return relation_part(e, *base, std::move(out));
    out.at = f_.temporary();
    const Operand first = f_.own(*e.base);
    IndexShape shape;
    for (const ast::IndexItem& item : e.items) {
      const bool whole = is_index(item);
      shape.slices.push_back(whole || item.is_slice);
      if (whole || item.is_slice) {
        for (int part = 0; part < 3; ++part) f_.emit(Op::Missing, item.span, f_.temporary());
        if (item.is_slice) f_.bad(item.span, "a slice cannot stand in a tensor equation");
      } else {
        f_.own(*item.index);
      }
    }
    f_.f_.indices.push_back(std::move(shape));
    f_.put({Op::Index, 0, out.at, first, static_cast<Operand>(f_.f_.indices.size() - 1)}, e.span);
    return out;
  }

  // Edge[ada, y]: the rest of a relation where some places are fixed.
  Factor relation_part(const ast::IndexExpr& e, const ast::NameExpr& base, Factor out) {
    out.at = f_.temporary();
    const std::uint32_t before = f_.mark();
    const Operand first = f_.temporary();
    const Operand slices = f_.temporary();
    std::string kinds;
    for (const ast::IndexItem& item : e.items) {
      if (item.is_slice) f_.bad(item.span, "a slice cannot stand in a tensor equation");
      kinds += is_index(item) ? ':' : 'i';
      if (is_index(item)) {
        for (int part = 0; part < 3; ++part) f_.emit(Op::Missing, item.span, f_.temporary());
      } else if (!item.is_slice) {
        f_.place_value(*item.index);
      }
    }
    f_.emit(Op::Move, e.span, first, f_.text_constant(base.name));
    f_.emit(Op::Move, e.span, slices, f_.text_constant(kinds));
    f_.call_logic(LogicCall::RelationPart, first, f_.top_ - before, e.span, out.at);
    f_.reset(before);
    return out;
  }

  // A function of elements: its arguments with indices are brought to the same ones.
  Indexed call(const ast::CallExpr& e, const std::string& kept) {
    std::vector<Indexed> values;
    std::string all;
    for (const ast::Argument& a : e.arguments) {
      if (a.name) {
        f_.bad(a.name->span, "arguments in a tensor equation have no names");
        return {};
      }
      values.push_back(expression(*a.value, kept));
      all = both(all, values.back().indices);
    }
    const ast::NameExpr* name = as_name(*e.callee);
    CallSite site;
    site.count = static_cast<std::uint32_t>(values.size());
    if (name != nullptr) {
      const auto function = f_.c_.world.functions.find(name->name);
      if (function != f_.c_.world.functions.end()) site.function = function->second;
      site.builtin = BuiltinTable::instance().find(name->name);
    }
    const std::size_t needed = site.function != nullptr  ? site.function->params.size()
                               : site.builtin != nullptr ? site.builtin->fixed()
                                                         : 0;
    if (site.function == nullptr && site.builtin == nullptr) {
      f_.bad(e.callee->span, "unknown function in a tensor equation");
      return {};
    }
    const Operand out = f_.temporary();
    std::vector<Operand> ready;
    for (const Indexed& v : values) ready.push_back(aligned(v, all, e.span));
    const Operand first = operand(Where::Register, f_.top_);
    for (const Operand at : ready) f_.emit(Op::Move, e.span, f_.temporary(), at);
    const bool is_function = site.function != nullptr;
    for (std::size_t i = ready.size(); i < needed; ++i) {
      const Operand at = f_.temporary();
      const bool has_default = !is_function && site.builtin->parameters[i].optional &&
                               !site.builtin->parameters[i].default_value.is(Kind::Missing);
      const bool optional =
          is_function ? site.function->params[i].optional : site.builtin->parameters[i].optional;
      if (!optional) {
        f_.bad(e.span, join(name->name, "() needs ", needed, " arguments, got ", values.size()));
        return {};
      }
      if (has_default) {
        f_.emit(Op::Move, e.span, at, f_.constant(site.builtin->parameters[i].default_value));
      } else {
        f_.emit(Op::Missing, e.span, at);
      }
      ++site.count;
    }
    f_.f_.calls.push_back(std::move(site));
    f_.put({is_function ? Op::Call : Op::CallBuiltin, 0, out, first,
            static_cast<Operand>(f_.f_.calls.size() - 1)},
           e.span);
    return {out, all};
  }

  FunctionCompiler& f_;
  const ast::IndexExpr& head_;
  std::map<std::string, char> letters_;
  std::string all_;
};

// The tensor that the right side gives for the left side's indices.
void FunctionCompiler::equation_value(const Expr& left, const Expr& right, Operand to) {
  EquationCompiler(*this, ast::as<ast::IndexExpr>(left)).compile(right, to);
}

// Y[i] ~ e as a statement: Y has the value from here on.
void FunctionCompiler::equation(const ast::EquationStatement& s) {
  if (!is_equation_head(*s.left)) {
    const Operand left = own(*s.left);
    const Operand right = own(*s.right);
    emit(Op::Clear, s.span, right, static_cast<Operand>(right - left + 1));
    return;
  }
  const auto& name = *as_name(*ast::as<ast::IndexExpr>(*s.left).base);
  const Operand value = temporary();
  equation_value(*s.left, *s.right, value);
  reset(value + 1U);
  if (c_.world.constants.contains(name.name) && !find_local(name.name)) {
    bad(name.span, join("'", name.name, "' is a constant and cannot be assigned"));
    return;
  }
  if (const auto relation = find_relation(name.name); relation && !is_program_name(name.name)) {
    const Operand first = temporary();
    emit(Op::Move, s.span, first, text_constant(name.name));
    emit(Op::Move, s.span, temporary(), value);
    call_logic(LogicCall::AssignRelation, first, 2, s.span, value);
    return;
  }
  if (is_program_name(name.name)) {
    const auto at = find_variable(name.name, name.span);
    if (where(*at) == Where::Captured) {
      bad(name.span, join("'", name.name, "' belongs to the function around this one"));
      return;
    }
    emit(Op::Move, s.span, *at, value);
  } else if (in_global_scope()) {
    emit(Op::Move, s.span, declare(name.name, name.span), value);
  } else {
    declare_at(name.name, value);
  }
}

// A name that equations at the top define: computed whenever it is read.
void FunctionCompiler::compile_equations(
    const std::vector<const ast::RuleDeclaration*>& equations) {
  open_scope();
  Operand sum = 0;
  for (std::size_t i = 0; i < equations.size(); ++i) {
    const Operand value = temporary();
    equation_value(*equations[i]->left, *equations[i]->right, value);
    reset(value + 1U);
    if (i == 0) {
      sum = value;
    } else {  // rules with the same head are added
      emit(Op::Add, equations[i]->span, sum, sum, value);
    }
  }
  emit(Op::Return, equations.front()->span, sum);
}

}  // namespace tl::lang
