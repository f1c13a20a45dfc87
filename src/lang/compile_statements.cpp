#include "lang/compiler.h"
#include "lang/types.h"

namespace tl::lang {

using ast::Statement;

// ---- statements

void FunctionCompiler::block(const ast::Block& block) {
  open_scope();
  statements(block.statements);
  close_scope(block.span);
}

void FunctionCompiler::statements(const std::vector<ast::StatementPtr>& list) {
  for (const ast::StatementPtr& s : list) statement(*s);
}

void FunctionCompiler::statement(const Statement& s) {
  const std::uint32_t before = mark();
  const std::size_t variables = scopes_.back().variables.size();
  switch (s.kind) {
    case Statement::Kind::Let:
      let(ast::as<ast::LetStatement>(s));
      break;
    case Statement::Kind::Tensor: {
      const auto& t = ast::as<ast::TensorStatement>(s);
      declare_tensor(t.name, *t.type, t.value.get(), t.span);
      break;
    }
    case Statement::Kind::Assign:
      assign(ast::as<ast::AssignStatement>(s));
      break;
    case Statement::Kind::Expression: {
      if (const auto* call = fact_call(*ast::as<ast::ExpressionStatement>(s).expression)) {
        fact(*call);
        break;
      }
      const Operand result = temporary();
      into(*ast::as<ast::ExpressionStatement>(s).expression, result);
      emit(Op::Clear, s.span, result, 1);
      break;
    }
    case Statement::Kind::Break:
    case Statement::Kind::Continue:
      jump_out(s, s.kind == Statement::Kind::Break);
      break;
    case Statement::Kind::Return:
      returned(ast::as<ast::ReturnStatement>(s));
      break;
    case Statement::Kind::Panic:
      panic(ast::as<ast::PanicStatement>(s));
      break;
    case Statement::Kind::If:
      if_statement(ast::as<ast::IfStatement>(s));
      break;
    case Statement::Kind::For:
      for_statement(ast::as<ast::ForStatement>(s));
      break;
    case Statement::Kind::While:
      while_statement(ast::as<ast::WhileStatement>(s));
      break;
    case Statement::Kind::Loop:
      loop_statement(ast::as<ast::LoopStatement>(s));
      break;
    case Statement::Kind::Block:
      block(ast::as<ast::BlockStatement>(s).body);
      break;
    case Statement::Kind::Python:
      c_.error(s.span, "Python is not supported");
      break;
    case Statement::Kind::Equation:
      equation(ast::as<ast::EquationStatement>(s));
      break;
    case Statement::Kind::With:
      with(ast::as<ast::WithStatement>(s));
      break;
    case Statement::Kind::Query:
      query(ast::as<ast::QueryStatement>(s).query, LogicCall::Query, {});
      break;
    case Statement::Kind::Infer:
      infer(ast::as<ast::InferStatement>(s));
      break;
    case Statement::Kind::Learn:
      learn(ast::as<ast::LearnStatement>(s));
      break;
  }
  // Variables that were declared stay, everything else is free again.
  if (in_global_scope() || scopes_.back().variables.size() == variables) reset(before);
}

void FunctionCompiler::let(const ast::LetStatement& s) {
  if (s.is_tuple || s.names.size() > 1) {
    const auto count = static_cast<Operand>(s.names.size());
    const std::uint32_t before = mark();
    const Operand whole = own(*s.value);
    reset(before);
    // The parts in a row, then to the variables.
    std::vector<Operand> to;
    for (const ast::Name& name : s.names) to.push_back(declare(name.text, name.span));
    const std::uint32_t after = mark();
    top_ = std::max(top_, static_cast<std::uint32_t>(whole & kPlaceMask) + 1);
    const Operand first = temporary();
    for (Operand i = 1; i < count; ++i) temporary();
    put({Op::Unpack, kTemporaryB, first, whole, count}, s.span);
    for (Operand i = 0; i < count; ++i) {
      emit(Op::Move, s.span, to[i], static_cast<Operand>(first + i));
    }
    reset(after);
    return;
  }
  const ast::Name& name = s.names.front();
  name_parameter(name.text, *s.value);
  // The variable comes to be after its value: `let x = x + 1` reads the outer one.
  if (in_global_scope()) {
    const std::uint32_t before = mark();
    const Operand value = expression(*s.value);
    reset(before);
    emit(Op::Move, s.span, declare(name.text, name.span), value);
  } else {
    if (const auto again = declared_here(name.text)) {
      const std::uint32_t before = mark();
      const Operand value = expression(*s.value);
      reset(before);
      emit(Op::Move, s.span, *again, value);
    } else {
      const Operand value = own(*s.value);
      reset(value + 1U);
      declare_at(name.text, value);
    }
  }
  if (s.type) {
    f_.types.push_back(c_.type(*s.type));
    emit(Op::CheckType, s.span, *find_local(name.text), text_constant(name.text),
         static_cast<Operand>(f_.types.size() - 1));
  }
}

void FunctionCompiler::declare_tensor(const ast::Name& name, const ast::Type& type,
                                      const ast::Expr* value, const Span& span) {
  Declared d;
  d.name = name.text;
  d.frozen = type.frozen;
  const std::uint32_t before = mark();
  if (type.kind != ast::Type::Kind::Tensor) {
    c_.error(type.span, "a tensor declaration needs a tensor type such as float32[2, 3]");
    return;
  }
  try {
    d.dtype = dtype_of_type(type.name);
  } catch (const RuntimeError& e) {
    c_.error(type.span, e.what());
  }
  const Operand first = operand(Where::Register, top_);
  for (const ast::Dim& dim : type.dims) {
    switch (dim.kind) {
      case ast::Dim::Kind::Size:
        d.sizes.push_back(dim.size);
        break;
      case ast::Dim::Kind::Any:
        d.sizes.push_back(-1);
        break;
      case ast::Dim::Kind::Name: {
        const auto at = find_variable(dim.name, dim.span);
        if (!at) {
          bad(dim.span, join("Undefined variable: ", dim.name),
              suggestion(dim.name, known_names()));
          break;
        }
        emit(Op::Move, dim.span, temporary(), *at);
        d.sizes.push_back(-2);
        break;
      }
    }
  }
  if (value != nullptr) {
    d.has_value = true;
    into(*value, temporary());
  }
  reset(before);
  f_.declared.push_back(std::move(d));
  // The result goes where the first size was, or past it; then to the variable.
  const std::uint32_t above = std::max<std::uint32_t>(first & kPlaceMask, before);
  const auto desc = static_cast<Operand>(f_.declared.size() - 1);
  if (in_global_scope()) {
    const Operand to = declare(name.text, name.span);
    put({Op::Declare, 0, to, first, desc}, span);
    if (type.learnable) make_learnable(to, name.text, span);
    return;
  }
  const auto again = declared_here(name.text);
  const Operand to = again ? *again : operand(Where::Register, above);
  put({Op::Declare, 0, to, first, desc}, span);
  if (!again) {
    reset(above + 1);
    f_.registers = std::max(f_.registers, top_);
    declare_at(name.text, to);
  }
  if (type.learnable) make_learnable(to, name.text, span);
}

void FunctionCompiler::assign(const ast::AssignStatement& s) {
  switch (s.target->kind) {
    case ast::Expr::Kind::Name:
      assign_name(ast::as<ast::NameExpr>(*s.target), s);
      break;
    case ast::Expr::Kind::Tuple:
      assign_tuple(ast::as<ast::TupleExpr>(*s.target), s);
      break;
    default:
      assign_place(*s.target, s);
  }
}

namespace {

// Is the target written only when everything the expression reads has been read?
bool writes_once(const ast::Expr& e) {
  switch (e.kind) {
    case ast::Expr::Kind::Binary:
      return ast::as<ast::BinaryExpr>(e).op < ast::BinaryOp::And;
    case ast::Expr::Kind::Match:
    case ast::Expr::Kind::If:
    case ast::Expr::Kind::Comprehension:
      return false;
    default:
      return true;
  }
}

}  // namespace

void FunctionCompiler::assign_name(const ast::NameExpr& target, const ast::AssignStatement& s) {
  if (c_.world.constants.contains(target.name) && !find_local(target.name)) {
    bad(target.span, join("'", target.name, "' is a constant and cannot be assigned"));
    return;
  }
  if (logic_assign(target, s)) return;
  std::optional<Operand> to = find_local(target.name);
  if (!to) {
    if (outer_ != nullptr && find_variable(target.name, target.span) &&
        captured_.contains(target.name)) {
      bad(target.span, join("'", target.name, "' belongs to the function around this one"),
          "a function value holds copies of outer variables; use another name with 'let'");
      return;
    }
    const auto global = c_.world.globals.find(target.name);
    if (global != c_.world.globals.end() &&
        (!in_program_block() || c_.world.top_level.contains(target.name))) {
      to = operand(Where::Global, global->second);
    }
  }
  if (s.op) {
    if (!to) {
      bad(target.span, join("Undefined variable: ", target.name),
          suggestion(target.name, known_names()));
      return;
    }
    const Operand value = expression(*s.value);
    const bool stays = stays_learnable(*to, target.name);
    const Operand result = stays ? temporary() : *to;
    emit(static_cast<Op>(static_cast<int>(Op::Add) + static_cast<int>(*s.op)), s.span, result, *to,
         value);
    if (stays) set_parameter(*to, target.name, result, s.span);
    return;
  }
  name_parameter(target.name, *s.value);
  if (to && stays_learnable(*to, target.name)) {
    set_parameter(*to, target.name, expression(*s.value), s.span);
    return;
  }
  if (to) {
    if (writes_once(*s.value)) {
      into(*s.value, *to);
    } else {
      const Operand value = expression(*s.value);
      emit(Op::Move, s.span, *to, value);
    }
    return;
  }
  if (in_global_scope()) {
    const Operand value = expression(*s.value);
    emit(Op::Move, s.span, declare(target.name, target.span), value);
    return;
  }
  const Operand value = own(*s.value);
  reset(value + 1U);
  declare_at(target.name, value);
}

void FunctionCompiler::if_statement(const ast::IfStatement& s) {
  std::vector<std::size_t> to_else;
  const std::uint32_t before = mark();
  unless(*s.condition, to_else, 0);
  reset(before);
  block(s.then);
  if (!s.otherwise) {
    for (const std::size_t jump : to_else) patch(jump);
    return;
  }
  const std::size_t to_end = emit(Op::Jump, s.span);
  for (const std::size_t jump : to_else) patch(jump);
  block(*s.otherwise);
  patch(to_end);
}

void FunctionCompiler::bind_loop_variables(const std::vector<ast::Name>& names, Operand element,
                                           const Span& span) {
  if (names.size() == 1) {
    declare_at(names[0].text, element);
    return;
  }
  const Operand first = temporary();
  for (std::size_t i = 1; i < names.size(); ++i) temporary();
  put({Op::Unpack, kTemporaryB, first, element, static_cast<Operand>(names.size())}, span);
  for (std::size_t i = 0; i < names.size(); ++i) {
    declare_at(names[i].text, static_cast<Operand>(first + i));
  }
}

void FunctionCompiler::for_statement(const ast::ForStatement& s) {
  if (!s.iterable) {
    open_scope();
    // {a, b}: the names as texts.
    const Operand list = temporary();
    const std::uint32_t inside = mark();
    const Operand first = operand(Where::Register, top_);
    for (const ast::Name& name : s.entities) {
      emit(Op::Move, name.span, temporary(), text_constant(name.text));
    }
    put({Op::NewList, 0, list, first, static_cast<Operand>(s.entities.size())}, s.span);
    reset(inside);
    const Operand iterator = temporary();
    const Operand element = temporary();
    put({Op::IterateStart, kTemporaryB, iterator, list, 0}, s.span);
    const std::size_t start = here();
    const std::size_t end = emit(Op::IterateNext, s.span, iterator);
    loops_.push_back({scopes_.size(), {}, {}});
    open_scope();
    bind_loop_variables(s.variables, element, s.span);
    block(s.body);
    close_scope(s.span);
    finish_loop(start);
    patch(end);
    close_scope(s.span);
    return;
  }
  const ast::Expr& over = *s.iterable;
  if (s.variables.size() == 1) {
    if (over.kind == ast::Expr::Kind::Range) {
      const auto& range = ast::as<ast::RangeExpr>(over);
      for_range(s, range.first.get(), *range.last);
      return;
    }
    if (over.kind == ast::Expr::Kind::Call) {
      const auto& call = ast::as<ast::CallExpr>(over);
      if (call.callee->kind == ast::Expr::Kind::Name) {
        const std::string& name = ast::as<ast::NameExpr>(*call.callee).name;
        const bool plain = !call.arguments.empty() && call.arguments.size() <= 2 &&
                           !call.arguments.front().name && !call.arguments.back().name;
        if ((name == "range" || name == "range_i") && plain && !c_.world.functions.contains(name) &&
            !find_local(name)) {
          const bool both = call.arguments.size() == 2;
          for_range(s, both ? call.arguments[0].value.get() : nullptr,
                    *call.arguments.back().value);
          return;
        }
      }
    }
  }
  open_scope();
  const Operand iterator = temporary();
  const Operand element = temporary();
  const std::uint32_t inside = mark();
  const Operand source = expression(over);
  reset(inside);
  emit(Op::IterateStart, over.span, iterator, source);
  const std::size_t start = here();
  const std::size_t end = emit(Op::IterateNext, over.span, iterator);
  loops_.push_back({scopes_.size(), {}, {}});
  open_scope();
  bind_loop_variables(s.variables, element, s.span);
  block(s.body);
  close_scope(s.span);
  finish_loop(start);
  patch(end);
  emit(Op::Clear, s.span, element, 2);
  close_scope(s.span);
}

void FunctionCompiler::for_range(const ast::ForStatement& s, const ast::Expr* first,
                                 const ast::Expr& last) {
  open_scope();
  const Operand counter = temporary();
  temporary();  // the end
  const Operand variable = temporary();
  const std::uint32_t inside = mark();
  const Operand from = first != nullptr ? left_of(*first, last) : constant(Value(0));
  const Operand to = expression(last);
  reset(inside);
  emit(Op::RangeStart, s.iterable->span, counter, from, to);
  const std::size_t start = here();
  const std::size_t end = emit(Op::RangeNext, s.iterable->span, counter);
  loops_.push_back({scopes_.size(), {}, {}});
  open_scope();
  declare_at(s.variables[0].text, variable);
  block(s.body);
  // The counter's copy is a number: nothing to clear unless the body made it something else.
  close_scope(s.span);
  finish_loop(start);
  patch(end);
  close_scope(s.span);
}

void FunctionCompiler::while_statement(const ast::WhileStatement& s) {
  const std::size_t start = here();
  std::vector<std::size_t> out;
  const std::uint32_t before = mark();
  unless(*s.condition, out, 1);
  reset(before);
  loops_.push_back({scopes_.size(), {}, {}});
  block(s.body);
  finish_loop(start);
  for (const std::size_t jump : out) patch(jump);
}

void FunctionCompiler::loop_statement(const ast::LoopStatement& s) {
  const std::size_t start = here();
  loops_.push_back({scopes_.size(), {}, {}});
  block(s.body);
  finish_loop(start);
}

// Goes back to `continue_to`; what left the loop comes out here.
void FunctionCompiler::finish_loop(std::size_t continue_to) {
  const Loop loop = loops_.back();
  loops_.pop_back();
  for (const std::size_t jump : loop.continues) patch(jump, continue_to);
  const std::size_t back = emit(Op::Jump, f_.spans.empty() ? f_.span : f_.spans.back());
  patch(back, continue_to);
  for (const std::size_t jump : loop.breaks) patch(jump);
}

void FunctionCompiler::jump_out(const Statement& s, bool is_break) {
  if (loops_.empty()) {
    c_.error(s.span, is_break ? "Break outside of loop" : "Continue outside of loop");
    return;
  }
  clear_scopes(loops_.back().scopes, s.span);
  if (in_learn_ && loops_.size() == loops_around_learn_) leave_learn(s.span);
  const std::size_t jump = emit(Op::Jump, s.span);
  (is_break ? loops_.back().breaks : loops_.back().continues).push_back(jump);
}

void FunctionCompiler::panic(const ast::PanicStatement& s) {
  const Operand first = operand(Where::Register, top_);
  values(s.arguments);
  put({Op::Panic, 0, first, static_cast<Operand>(s.arguments.size()), 0}, s.span);
}

void FunctionCompiler::returned(const ast::ReturnStatement& s) {
  if (!scopes_.empty() && scopes_.front().global) {
    if (s.value) {
      c_.error(s.span, "Return from function: main has no caller to give a value to");
      return;
    }
  }
  if (!s.value) {
    leave_learn(s.span);
    emit(Op::ReturnVoid, s.span);
    return;
  }
  const Operand value = expression(*s.value);
  leave_learn(s.span);
  emit(Op::Return, s.span, value);
}

void FunctionCompiler::last_block(const ast::Block& block) {
  if (block.statements.empty()) {
    emit(Op::ReturnVoid, block.span);
    return;
  }
  for (std::size_t i = 0; i + 1 < block.statements.size(); ++i) statement(*block.statements[i]);
  last_statement(*block.statements.back());
}

void FunctionCompiler::last_statement(const Statement& s) {
  // A function value, |x| R(x), is asked for what it gives.
  const bool gives_nothing = f_.result.kind == ast::Type::Kind::Void ||
                             (f_.result.kind == ast::Type::Kind::Any && outer_ == nullptr);
  if (s.kind == Statement::Kind::Expression && gives_nothing &&
      fact_call(*ast::as<ast::ExpressionStatement>(s).expression) != nullptr) {
    statement(s);  // a fact
    emit(Op::ReturnVoid, s.span);
    return;
  }
  if (s.kind == Statement::Kind::Expression) {
    const Operand value = own(*ast::as<ast::ExpressionStatement>(s).expression);
    emit(Op::Return, s.span, value);
    return;
  }
  if (s.kind == Statement::Kind::Assign) {
    statement(s);
    const auto& a = ast::as<ast::AssignStatement>(s);
    if (a.target->kind == ast::Expr::Kind::Name) {
      emit(Op::Return, s.span, expression(*a.target));
    } else {
      emit(Op::ReturnVoid, s.span);
    }
    return;
  }
  if (s.kind == Statement::Kind::If && ast::as<ast::IfStatement>(s).otherwise) {
    const auto& i = ast::as<ast::IfStatement>(s);
    std::vector<std::size_t> to_else;
    const std::uint32_t before = mark();
    unless(*i.condition, to_else, 0);
    reset(before);
    open_scope();
    last_block(i.then);
    close_scope(i.then.span);
    for (const std::size_t jump : to_else) patch(jump);
    open_scope();
    last_block(*i.otherwise);
    close_scope(i.otherwise->span);
    return;
  }
  statement(s);
  emit(Op::ReturnVoid, s.span);
}

}  // namespace tl::lang
