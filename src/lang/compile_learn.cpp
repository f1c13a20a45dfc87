// learn blocks: settings, then the body once for each epoch, or once where it calls backward().
#include <algorithm>

#include "lang/compile.h"
#include "lang/compiler.h"
#include "lang/learn_settings.h"

namespace tl::lang {

void FunctionCompiler::make_learnable(Operand at, std::string_view name, const Span& span) {
  put({Op::Learnable, 0, at, at, text_constant(name)}, span);
  if (where(at) == Where::Global) {
    c_.world.learnable.emplace(name);
    return;
  }
  for (Variable& variable : scopes_.back().variables) variable.learnable |= variable.name == name;
}

bool FunctionCompiler::stays_learnable(Operand at, std::string_view name) const {
  if (where(at) == Where::Global) return c_.world.learnable.contains(name);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    for (const Variable& variable : scope->variables) {
      if (variable.name == name && variable.at == at) return variable.learnable;
    }
  }
  return false;
}

void FunctionCompiler::set_parameter(Operand at, std::string_view name, Operand value,
                                     const Span& span) {
  const auto given_up = is_temporary(value) ? kTemporaryB : std::uint8_t{0};
  put({Op::Learnable, static_cast<std::uint8_t>(kAssigns | given_up), at, value,
       text_constant(name)},
      span);
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

namespace {

bool is_one_of(std::string_view name, const std::vector<std::string_view>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What is meant, or else all there is.
std::string hint_for(std::string_view name, const std::vector<std::string_view>& names) {
  std::string hint = suggestion(name, names);
  if (!hint.empty()) return hint;
  for (const std::string_view each : names) hint += join(hint.empty() ? "there are " : ", ", each);
  return hint;
}

}  // namespace

bool FunctionCompiler::knows_setting(const ast::Setting& setting) {
  const std::string& name = setting.name.text;
  if (!is_one_of(name, learn_setting_names())) {
    c_.error(setting.name.span, join("learn has no setting '", name, "'"),
             hint_for(name, learn_setting_names()));
    return false;
  }
  if (setting.maker.text.empty()) return true;
  const auto makers = learn_maker_names(name);
  if (!is_one_of(setting.maker.text, makers)) {
    c_.error(setting.maker.span, join("Unknown ", name, ": ", setting.maker.text),
             hint_for(setting.maker.text, makers));
    return false;
  }
  const auto known = learn_argument_names(name, setting.maker.text);
  std::vector<std::string_view> seen;
  for (const ast::Argument& argument : setting.arguments) {
    if (!argument.name) {
      c_.error(argument.value->span, join("what '", setting.maker.text, "' is told needs a name"),
               "as in: sgd(lr: 0.1)");
      return false;
    }
    const std::string& told = argument.name->text;
    if (!is_one_of(told, known)) {
      c_.error(argument.name->span, join("'", setting.maker.text, "' has no setting '", told, "'"),
               hint_for(told, known));
      return false;
    }
    if (is_one_of(told, seen)) {
      c_.error(argument.name->span, join("'", told, "' is set twice"));
      return false;
    }
    seen.push_back(told);
  }
  return true;
}

// All values first, as they may call functions; then each goes to the block, at its own place in
// the source.
void FunctionCompiler::learn_settings(const ast::LearnStatement& s) {
  LearnSite site;
  site.has_objective = s.objective != nullptr;
  std::vector<std::pair<Operand, Span>> values;
  const std::uint32_t before = mark();
  const auto value = [&](LearnEntry entry, const ast::Expr* e, const Span& span) {
    site.entries.push_back(std::move(entry));
    const Operand to = temporary();
    if (e != nullptr) {
      into(*e, to);
    } else {
      emit(Op::Missing, span, to);
    }
    values.emplace_back(to, span);
  };
  for (const ast::Setting& setting : s.settings) {
    if (!knows_setting(setting)) continue;
    if (setting.maker.text.empty()) {
      value({setting.name.text, {}, {}}, setting.value.get(), setting.value->span);
      continue;
    }
    // An entry of its own, so that one without arguments is there too.
    value({setting.name.text, setting.maker.text, {}}, nullptr, setting.maker.span);
    for (const ast::Argument& argument : setting.arguments) {
      value({setting.name.text, setting.maker.text, argument.name->text}, argument.value.get(),
            argument.value->span);
    }
  }
  f_.learns.push_back(std::move(site));
  put({Op::LearnBegin, 0, 0, 0, static_cast<Operand>(f_.learns.size() - 1)}, s.span);
  for (std::size_t i = 0; i < values.size(); ++i) {
    put({Op::LearnSet, 0, values[i].first, static_cast<Operand>(i), 0}, values[i].second);
  }
  put({Op::LearnStart, 0, 0, 0, 0}, s.span);
  reset(before);
}

void FunctionCompiler::learn(const ast::LearnStatement& s) {
  if (in_learn_) {
    c_.error(s.span, "a learn block inside another");
    return;
  }
  learn_settings(s);
  in_learn_ = true;
  loops_around_learn_ = loops_.size();
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

void FunctionCompiler::leave_learn(const Span& span) {
  if (in_learn_) put({Op::LearnEnd, 0, 1, 0, 0}, span);
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
