#include "lang/compiler.h"

namespace tl::lang {

using ast::Expr;

namespace {

Op binary_instruction(ast::BinaryOp op) {
  return static_cast<Op>(static_cast<int>(Op::Add) + static_cast<int>(op));
}
static_assert(static_cast<int>(Op::Or) - static_cast<int>(Op::Add) ==
              static_cast<int>(ast::BinaryOp::Or));

Op unary_instruction(ast::UnaryOp op) {
  return static_cast<Op>(static_cast<int>(Op::Negate) + static_cast<int>(op));
}

// The jump that is taken when a comparison does not hold.
std::optional<Op> unless_instruction(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::Equal:
      return Op::UnlessEqual;
    case ast::BinaryOp::NotEqual:
      return Op::UnlessNotEqual;
    case ast::BinaryOp::Less:
      return Op::UnlessLess;
    case ast::BinaryOp::LessEqual:
      return Op::UnlessLessEqual;
    case ast::BinaryOp::Greater:
      return Op::UnlessGreater;
    case ast::BinaryOp::GreaterEqual:
      return Op::UnlessGreaterEqual;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool has_effects(const Expr& e) {
  using ExprKind = Expr::Kind;
  const auto any = [](const auto& list) {
    for (const ast::ExprPtr& each : list) {
      if (has_effects(*each)) return true;
    }
    return false;
  };
  switch (e.kind) {
    case ExprKind::Integer:
    case ExprKind::Float:
    case ExprKind::Bool:
    case ExprKind::String:
    case ExprKind::Name:
    case ExprKind::Lambda:
      return false;
    case ExprKind::Unary:
      return has_effects(*ast::as<ast::UnaryExpr>(e).operand);
    case ExprKind::Cast:
      return has_effects(*ast::as<ast::CastExpr>(e).operand);
    case ExprKind::Binary: {
      const auto& b = ast::as<ast::BinaryExpr>(e);
      return has_effects(*b.left) || has_effects(*b.right);
    }
    case ExprKind::Range: {
      const auto& r = ast::as<ast::RangeExpr>(e);
      return has_effects(*r.first) || has_effects(*r.last);
    }
    case ExprKind::Field:
      return has_effects(*ast::as<ast::FieldExpr>(e).base);
    case ExprKind::Index: {
      const auto& i = ast::as<ast::IndexExpr>(e);
      if (has_effects(*i.base)) return true;
      for (const ast::IndexItem& item : i.items) {
        for (const ast::ExprPtr* part : {&item.index, &item.start, &item.stop, &item.step}) {
          if (*part && has_effects(**part)) return true;
        }
      }
      return false;
    }
    case ExprKind::Array:
      return any(ast::as<ast::ArrayExpr>(e).elements);
    case ExprKind::Tuple:
      return any(ast::as<ast::TupleExpr>(e).elements);
    default:
      return true;
  }
}

Operand FunctionCompiler::expression(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::Integer:
      return constant(Value(ast::as<ast::IntegerExpr>(e).value));
    case Expr::Kind::Float:
      return constant(Value(ast::as<ast::FloatExpr>(e).value));
    case Expr::Kind::Bool:
      return constant(Value(ast::as<ast::BoolExpr>(e).value));
    case Expr::Kind::String:
      return constant(Value(ast::as<ast::StringExpr>(e).value));
    case Expr::Kind::Name: {
      const auto& name = ast::as<ast::NameExpr>(e);
      if (const auto at = find_variable(name.name, e.span)) return *at;
      return own(e);
    }
    default:
      return own(e);
  }
}

Operand FunctionCompiler::own(const Expr& e) {
  const Operand to = temporary();
  into(e, to);
  reset(static_cast<std::uint32_t>(to) + 1);
  return to;
}

Operand FunctionCompiler::left_of(const Expr& e, const Expr& right) {
  const Operand at = expression(e);
  if (where(at) == Where::Constant || is_temporary(at) || !has_effects(right)) return at;
  const Operand copy = temporary();
  emit(Op::Move, e.span, copy, at);
  return copy;
}

void FunctionCompiler::values(const std::vector<ast::ExprPtr>& list) {
  for (const ast::ExprPtr& e : list) own(*e);
}

void FunctionCompiler::into(const Expr& e, Operand to) {
  const std::uint32_t before = mark();
  switch (e.kind) {
    case Expr::Kind::Integer:
    case Expr::Kind::Float:
    case Expr::Kind::Bool:
    case Expr::Kind::String:
      emit(Op::Move, e.span, to, expression(e));
      break;
    case Expr::Kind::Name:
      name_value(ast::as<ast::NameExpr>(e), to);
      break;
    case Expr::Kind::Array: {
      const auto& array = ast::as<ast::ArrayExpr>(e);
      const Operand first = operand(Where::Register, top_);
      values(array.elements);
      put({Op::NewList, 0, to, first, static_cast<Operand>(array.elements.size())}, e.span);
      break;
    }
    case Expr::Kind::Tuple: {
      const auto& tuple = ast::as<ast::TupleExpr>(e);
      const Operand first = operand(Where::Register, top_);
      values(tuple.elements);
      put({Op::NewTuple, 0, to, first, static_cast<Operand>(tuple.elements.size())}, e.span);
      break;
    }
    case Expr::Kind::Map: {
      const auto& map = ast::as<ast::MapExpr>(e);
      const Operand first = operand(Where::Register, top_);
      for (const auto& [key, value] : map.entries) {
        own(*key);
        own(*value);
      }
      put({Op::NewMap, 0, to, first, static_cast<Operand>(map.entries.size())}, e.span);
      break;
    }
    case Expr::Kind::StructLiteral:
      struct_literal(ast::as<ast::StructExpr>(e), to);
      break;
    case Expr::Kind::Unary: {
      const auto& u = ast::as<ast::UnaryExpr>(e);
      const bool of_integer =
          u.op == ast::UnaryOp::Negate && u.operand->kind == Expr::Kind::Integer;
      const std::int64_t value = of_integer ? ast::as<ast::IntegerExpr>(*u.operand).value : 0;
      if (of_integer && value != INT64_MIN) {
        emit(Op::Move, e.span, to, constant(Value(-value)));
      } else if (u.op == ast::UnaryOp::Negate && u.operand->kind == Expr::Kind::Float) {
        emit(Op::Move, e.span, to, constant(Value(-ast::as<ast::FloatExpr>(*u.operand).value)));
      } else {
        emit(unary_instruction(u.op), e.span, to, expression(*u.operand));
      }
      break;
    }
    case Expr::Kind::Binary: {
      const auto& b = ast::as<ast::BinaryExpr>(e);
      const bool is_inverse = b.op == ast::BinaryOp::Subtract && b.left->kind == Expr::Kind::Name &&
                              ast::as<ast::NameExpr>(*b.left).name == "inv" &&
                              !find_variable("inv", b.left->span);
      if (b.op == ast::BinaryOp::And || b.op == ast::BinaryOp::Or) {
        logical(b, to);
      } else if (is_inverse) {  // `inv -m` is no difference unless something is called inv
        const Operand negative = temporary();
        emit(Op::Negate, e.span, negative, expression(*b.right));
        emit(Op::Inverse, e.span, to, negative);
      } else {
        const Operand left = left_of(*b.left, *b.right);
        const Operand right = expression(*b.right);
        emit(binary_instruction(b.op), e.span, to, left, right);
      }
      break;
    }
    case Expr::Kind::Range: {
      const auto& r = ast::as<ast::RangeExpr>(e);
      const Operand first = left_of(*r.first, *r.last);
      const Operand last = expression(*r.last);
      emit(Op::NewRange, e.span, to, first, last);
      break;
    }
    case Expr::Kind::Cast: {
      const auto& c = ast::as<ast::CastExpr>(e);
      emit(c.to_integer ? Op::ToInteger : Op::ToFloat, e.span, to, expression(*c.operand));
      break;
    }
    case Expr::Kind::Index:
      index(ast::as<ast::IndexExpr>(e), to);
      break;
    case Expr::Kind::Field: {
      const auto& f = ast::as<ast::FieldExpr>(e);
      const Operand base = expression(*f.base);
      put({Op::GetField, flags(0, base, 0), to, base,
           static_cast<Operand>(name_index(f.field.text))},
          f.field.span);
      break;
    }
    case Expr::Kind::Call:
      call(ast::as<ast::CallExpr>(e), to);
      break;
    case Expr::Kind::MethodCall:
      method(ast::as<ast::MethodExpr>(e), to);
      break;
    case Expr::Kind::PathCall:
      path_call(ast::as<ast::PathExpr>(e), to);
      break;
    case Expr::Kind::Match:
      match(ast::as<ast::MatchExpr>(e), to);
      break;
    case Expr::Kind::If:
      if_value(ast::as<ast::IfExpr>(e), to);
      break;
    case Expr::Kind::Lambda:
      lambda(ast::as<ast::LambdaExpr>(e), to);
      break;
    case Expr::Kind::Comprehension:
      comprehension(ast::as<ast::ComprehensionExpr>(e), to);
      break;
  }
  reset(before);
}

void FunctionCompiler::name_value(const ast::NameExpr& e, Operand to) {
  if (const auto at = find_variable(e.name, e.span)) {
    emit(Op::Move, e.span, to, *at);
    return;
  }
  if (const auto f = c_.world.functions.find(e.name); f != c_.world.functions.end()) {
    emit(Op::Move, e.span, to, constant(make<FunctionObject>(f->second, std::vector<Value>{})));
    return;
  }
  if (logic_name(e, to)) return;
  if (const Builtin* builtin = BuiltinTable::instance().find(e.name)) {
    emit(Op::Move, e.span, to, constant(make<FunctionObject>(builtin)));
    return;
  }
  std::vector<std::string_view> known = known_names();
  for (const auto& [name, f] : c_.world.functions) known.push_back(name);
  std::string hint = suggestion(e.name, known);
  if (hint.empty() && c_.world.structs.contains(e.name)) {
    hint = join("'", e.name, "' is a struct; write ", e.name, " { ... } to make one");
  }
  bad(e.span, join("Undefined variable: ", e.name), std::move(hint));
}

// a && b, a || b: the right side only when the left one does not decide. A tensor never does.
void FunctionCompiler::logical(const ast::BinaryExpr& e, Operand to) {
  const bool is_and = e.op == ast::BinaryOp::And;
  into(*e.left, to);
  put({is_and ? Op::JumpIfFalse : Op::JumpIfTrue, 0, to, 0, 0}, e.left->span);
  const std::size_t jump = here() - 1;
  const Operand right = expression(*e.right);
  emit(binary_instruction(e.op), e.span, to, to, right);
  patch(jump);
}

void FunctionCompiler::unless(const Expr& e, std::vector<std::size_t>& jumps, int what) {
  const std::uint32_t before = mark();
  if (e.kind == Expr::Kind::Binary) {
    const auto& b = ast::as<ast::BinaryExpr>(e);
    if (b.op == ast::BinaryOp::And) {
      unless(*b.left, jumps, what);
      unless(*b.right, jumps, what);
      return;
    }
    if (const auto op = unless_instruction(b.op)) {
      const Operand left = left_of(*b.left, *b.right);
      const Operand right = expression(*b.right);
      put({*op, flags(left, right, 0), left, right, 0}, e.span);
      jumps.push_back(here() - 1);
      reset(before);
      return;
    }
  }
  const Operand value = expression(e);
  put({Op::JumpUnless, flags(value, 0, 0), value, static_cast<Operand>(what), 0}, e.span);
  jumps.push_back(here() - 1);
  reset(before);
}

void FunctionCompiler::block_value(const ast::Block& block, Operand to) {
  open_scope();
  const auto& list = block.statements;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) statement(*list[i]);
  if (!list.empty() && list.back()->kind == ast::Statement::Kind::Expression) {
    into(*ast::as<ast::ExpressionStatement>(*list.back()).expression, to);
  } else if (!list.empty() && list.back()->kind == ast::Statement::Kind::If &&
             ast::as<ast::IfStatement>(*list.back()).otherwise) {
    const auto& i = ast::as<ast::IfStatement>(*list.back());
    std::vector<std::size_t> to_else;
    unless(*i.condition, to_else, 0);
    block_value(i.then, to);
    const std::size_t end = emit(Op::Jump, i.span);
    for (const std::size_t jump : to_else) patch(jump);
    block_value(*i.otherwise, to);
    patch(end);
  } else {
    if (!list.empty()) statement(*list.back());
    emit(Op::Move, block.span, to, constant(Value()));
  }
  close_scope(block.span);
}

void FunctionCompiler::if_value(const ast::IfExpr& e, Operand to) {
  std::vector<std::size_t> to_else;
  unless(*e.condition, to_else, 0);
  block_value(e.then, to);
  const std::size_t end = emit(Op::Jump, e.span);
  for (const std::size_t jump : to_else) patch(jump);
  block_value(e.otherwise, to);
  patch(end);
}

CompiledPattern FunctionCompiler::pattern(const ast::Pattern& p) {
  CompiledPattern out;
  out.kind = p.kind;
  switch (p.kind) {
    case ast::Pattern::Kind::Integer:
      out.literal = p.integer;
      break;
    case ast::Pattern::Kind::Float:
      out.literal = p.real;
      break;
    case ast::Pattern::Kind::Bool:
      out.literal = p.boolean;
      break;
    case ast::Pattern::Kind::String:
      out.literal = Value(p.text);
      break;
    case ast::Pattern::Kind::Bind:
      out.bind = declare(p.text, p.span);
      break;
    case ast::Pattern::Kind::Struct:
      out.name = p.text;
      if (const StructType* type = find_struct(p.text)) {
        for (const ast::Name& field : p.fields) {
          if (type->field(field.text) < 0) {
            bad(field.span, join("Struct '", p.text, "' has no field '", field.text, "'"));
          }
        }
      } else {
        bad(p.span, join("Unknown struct: ", p.text));
      }
      break;
    default:
      break;
  }
  for (const ast::Name& field : p.fields) out.fields.push_back(field.text);
  for (const ast::PatternPtr& part : p.parts) out.parts.push_back(pattern(*part));
  return out;
}

void FunctionCompiler::match(const ast::MatchExpr& e, Operand to) {
  const Operand subject = own(*e.subject);
  std::vector<std::size_t> to_end;
  for (const ast::MatchArm& arm : e.arms) {
    // Hidden from main's globals: names of patterns end with their arm.
    open_scope();
    f_.patterns.push_back(pattern(*arm.pattern));
    put({Op::Match, 0, subject, static_cast<Operand>(f_.patterns.size() - 1), 0},
        arm.pattern->span);
    std::vector<std::size_t> next = {here() - 1};
    std::vector<std::size_t> guarded;
    if (arm.guard) unless(*arm.guard, guarded, 2);
    into(*arm.value, to);
    const std::size_t variables = scopes_.back().variables.size();
    clear_scopes(scopes_.size() - 1, arm.value->span);
    to_end.push_back(emit(Op::Jump, arm.value->span));
    for (const std::size_t jump : guarded) patch(jump);
    for (const std::size_t jump : next) patch(jump);
    if (variables != 0) clear_scopes(scopes_.size() - 1, arm.value->span);
    top_ = scopes_.back().first;
    scopes_.pop_back();
  }
  put({Op::MatchFail, 0, subject, 0, 0}, e.span);
  for (const std::size_t jump : to_end) patch(jump);
  emit(Op::Clear, e.span, subject, 1);
}

void FunctionCompiler::comprehension(const ast::ComprehensionExpr& e, Operand to) {
  open_scope();
  const Operand list = temporary();
  const Operand iterator = temporary();
  const Operand element = temporary();
  const std::uint32_t inside = mark();
  const Operand source = expression(*e.iterable);
  reset(inside);
  put({Op::NewList, 0, list, list, 0}, e.span);
  emit(Op::IterateStart, e.iterable->span, iterator, source);
  const std::size_t start = here();
  const std::size_t end = emit(Op::IterateNext, e.iterable->span, iterator);
  open_scope();
  bind_loop_variables(e.variables, element, e.span);
  std::vector<std::size_t> skip;
  if (e.condition) unless(*e.condition, skip, 0);
  const Operand value = own(*e.element);
  emit(Op::Append, e.element->span, list, value);
  for (const std::size_t jump : skip) patch(jump);
  if (e.variables.size() > 1) clear_scopes(scopes_.size() - 1, e.span);
  scopes_.pop_back();
  reset(inside);
  patch(emit(Op::Jump, e.span), start);
  patch(end);
  emit(Op::Clear, e.span, element, 2);
  emit(Op::Move, e.span, to, list);
  top_ = scopes_.back().first;
  scopes_.pop_back();
}

void FunctionCompiler::lambda(const ast::LambdaExpr& e, Operand to) {
  Function* function = c_.new_function("function", e.span);
  FunctionCompiler inner(c_, *function, this);
  inner.compile_body(e.function, {});
  const Operand first = operand(Where::Register, top_);
  for (const auto& [name, at] : inner.captures_) emit(Op::Move, e.span, temporary(), at);
  f_.closures.emplace_back(function, static_cast<std::uint32_t>(inner.captures_.size()));
  put({Op::Closure, 0, to, first, static_cast<Operand>(f_.closures.size() - 1)}, e.span);
}

const StructType* FunctionCompiler::find_struct(std::string_view name) const {
  const auto found = c_.world.structs.find(name);
  return found == c_.world.structs.end() ? nullptr : found->second.get();
}

void FunctionCompiler::struct_literal(const ast::StructExpr& e, Operand to) {
  const auto found = c_.world.structs.find(e.type.text);
  if (found == c_.world.structs.end()) {
    std::vector<std::string_view> known;
    for (const auto& [name, type] : c_.world.structs) known.push_back(name);
    bad(e.type.span, join("Unknown struct: ", e.type.text), suggestion(e.type.text, known));
    return;
  }
  const StructType& type = *found->second;
  StructSite site{found->second, {}};
  std::vector<bool> given(type.fields.size());
  const Operand first = operand(Where::Register, top_);
  for (const auto& [name, value] : e.fields) {
    const int field = type.field(name.text);
    if (field < 0) {
      bad(name.span, join("Struct '", type.name, "' has no field '", name.text, "'"),
          suggestion(name.text, {type.fields.begin(), type.fields.end()}));
      continue;
    }
    if (given[static_cast<std::size_t>(field)]) {
      bad(name.span, join("Field '", name.text, "' is given twice"));
      continue;
    }
    given[static_cast<std::size_t>(field)] = true;
    site.order.push_back(static_cast<std::uint32_t>(field));
    own(*value);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) {
      bad(e.span, join("Struct '", type.name, "' needs field '", type.fields[i], "'"));
      break;
    }
  }
  f_.structs.push_back(std::move(site));
  put({Op::NewStruct, 0, to, first, static_cast<Operand>(f_.structs.size() - 1)}, e.span);
}

void FunctionCompiler::index_items(const std::vector<ast::IndexItem>& items, IndexShape& shape) {
  const auto part = [&](const ast::ExprPtr& e, const Span& span) {
    if (e) {
      own(*e);
    } else {
      emit(Op::Missing, span, temporary());
    }
  };
  for (const ast::IndexItem& item : items) {
    shape.slices.push_back(item.is_slice);
    if (item.is_slice) {
      part(item.start, item.span);
      part(item.stop, item.span);
      part(item.step, item.span);
    } else {
      own(*item.index);
    }
  }
}

void FunctionCompiler::index(const ast::IndexExpr& e, Operand to) {
  // `inv [[2.0]]`: the operator and a list, unless something is called inv.
  if (e.base->kind == Expr::Kind::Name && ast::as<ast::NameExpr>(*e.base).name == "inv" &&
      !find_variable("inv", e.base->span)) {
    const Operand first = operand(Where::Register, top_);
    for (const ast::IndexItem& item : e.items) {
      if (item.is_slice) {
        bad(item.span, "Undefined variable: inv");
        return;
      }
      own(*item.index);
    }
    const Operand list = temporary();
    put({Op::NewList, 0, list, first, static_cast<Operand>(e.items.size())}, e.span);
    emit(Op::Inverse, e.span, to, list);
    return;
  }
  if (logic_index(e, to)) return;
  if (e.items.size() == 1 && !e.items[0].is_slice) {
    const Operand base = left_of(*e.base, *e.items[0].index);
    const Operand at = expression(*e.items[0].index);
    emit(Op::IndexOne, e.span, to, base, at);
    return;
  }
  const Operand first = own(*e.base);
  IndexShape shape;
  index_items(e.items, shape);
  f_.indices.push_back(std::move(shape));
  put({Op::Index, 0, to, first, static_cast<Operand>(f_.indices.size() - 1)}, e.span);
}

}  // namespace tl::lang
