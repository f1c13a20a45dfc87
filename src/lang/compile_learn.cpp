// learn blocks: settings, then the body once for each epoch, or once where it calls backward().
#include "lang/compiler.h"

namespace tl::lang {

void FunctionCompiler::make_learnable(Operand at, std::string_view name, const Span& span) {
  put({Op::Learnable, 0, at, at, text_constant(name)}, span);
}

// let w = learnable(...): the parameter is called as the variable is.
void FunctionCompiler::name_parameter(const std::string& name, const ast::Expr& value) {
  naming_.clear();
  if (value.kind != ast::Expr::Kind::Call) return;
  const ast::Expr& callee = *ast::as<ast::CallExpr>(value).callee;
  if (callee.kind == ast::Expr::Kind::Name && ast::as<ast::NameExpr>(callee).name == "learnable") {
    naming_ = name;
  }
}

void FunctionCompiler::learn(const ast::LearnStatement& s) {
  if (in_learn_) {
    c_.error(s.span, "a learn block inside another");
    return;
  }
  LearnSite site;
  site.has_objective = s.objective != nullptr;
  const std::uint32_t before = mark();
  const Operand first = operand(Where::Register, top_);
  const auto value = [&](LearnEntry entry, const ast::Expr* e) {
    site.entries.push_back(std::move(entry));
    const Operand to = temporary();
    if (e != nullptr) {
      into(*e, to);
    } else {
      emit(Op::Missing, s.span, to);
    }
  };
  for (const ast::Setting& setting : s.settings) {
    if (setting.maker.text.empty()) {
      value({setting.name.text, {}, {}}, setting.value.get());
      continue;
    }
    // An entry of its own, so that one without arguments is there too.
    value({setting.name.text, setting.maker.text, {}}, nullptr);
    for (const ast::Argument& argument : setting.arguments) {
      if (!argument.name) {
        c_.error(argument.value->span, join("what '", setting.maker.text, "' is told needs a name"),
                 "as in: sgd(lr: 0.1)");
        continue;
      }
      value({setting.name.text, setting.maker.text, argument.name->text}, argument.value.get());
    }
  }
  f_.learns.push_back(std::move(site));
  put({Op::LearnBegin, 0, first, 0, static_cast<Operand>(f_.learns.size() - 1)}, s.span);
  reset(before);
  in_learn_ = true;
  if (s.objective) {
    learn_by_epochs(s);
  } else {
    put({Op::LearnValue, 0, declare("epochs", s.span), 0, 0}, s.span);
    put({Op::LearnValue, 0, declare("optimizer", s.span), 1, 0}, s.span);
    statements(s.body.statements);
  }
  in_learn_ = false;
  put({Op::LearnEnd, 0, 0, 0, 0}, s.span);
}

// The body runs once before the first epoch, so that its variables are there.
void FunctionCompiler::learn_by_epochs(const ast::LearnStatement& s) {
  statements(s.body.statements);
  const std::size_t top = here();
  const std::size_t next = put({Op::LearnNext, 0, 0, 0, 0}, s.span);
  statements(s.body.statements);
  const std::uint32_t before = mark();
  const Operand loss = own(*s.objective);
  put({Op::LearnStep, 0, loss, 0, 0}, s.objective->span);
  reset(before);
  patch(put({Op::Jump, 0, 0, 0, 0}, s.span), top);
  patch(next);
}

}  // namespace tl::lang
