// Assignments to elements, fields and several names at once.
#include "lang/compiler.h"

namespace tl::lang {

void FunctionCompiler::assign_tuple(const ast::TupleExpr& target, const ast::AssignStatement& s) {
  const auto count = static_cast<Operand>(target.elements.size());
  const std::uint32_t before = mark();
  const Operand whole = own(*s.value);
  const Operand first = temporary();
  for (Operand i = 1; i < count; ++i) temporary();
  put({Op::Unpack, kTemporaryB, first, whole, count}, s.span);
  for (Operand i = 0; i < count; ++i) {
    const ast::Expr& part = *target.elements[i];
    const auto value = static_cast<Operand>(first + i);
    if (part.kind == ast::Expr::Kind::Name) {
      const auto& name = ast::as<ast::NameExpr>(part);
      const auto to = find_variable(name.name, name.span);
      if (!to || where(*to) == Where::Captured) {
        bad(name.span, join("Undefined variable: ", name.name), "use let (a, b) = ...");
        continue;
      }
      if (stays_learnable(*to, name.name)) {
        set_parameter(*to, name.name, value, s.span);
      } else {
        emit(Op::Move, s.span, *to, value);
      }
      continue;
    }
    Operand root = 0;
    std::vector<const ast::Expr*> way;
    if (!place(part, root, way)) {
      bad(part.span, "this cannot be assigned to",
          "names, elements such as a[i] and fields such as p.x can");
      continue;
    }
    const std::uint32_t inside = mark();
    const Operand indices = operand(Where::Register, top_);
    const std::uint32_t desc = path(way);
    emit(Op::Move, s.span, temporary(), value);
    put({Op::SetPath, 0, root, indices, static_cast<Operand>(desc)}, part.span);
    reset(inside);
  }
  reset(before);
}

void FunctionCompiler::assign_place(const ast::Expr& target, const ast::AssignStatement& s) {
  if (logic_assign_part(target, s)) return;
  Operand root = 0;
  std::vector<const ast::Expr*> way;
  if (!place(target, root, way)) {
    const ast::Expr* base = &target;
    while (base->kind == ast::Expr::Kind::Index || base->kind == ast::Expr::Kind::Field) {
      base = base->kind == ast::Expr::Kind::Index ? ast::as<ast::IndexExpr>(*base).base.get()
                                                  : ast::as<ast::FieldExpr>(*base).base.get();
    }
    if (base->kind == ast::Expr::Kind::Name) {
      const auto& name = ast::as<ast::NameExpr>(*base);
      if (c_.world.constants.contains(name.name)) {
        bad(name.span, join("'", name.name, "' is a constant and cannot be assigned"));
        return;
      }
      if (!find_variable(name.name, name.span)) {
        bad(name.span, join("Undefined variable: ", name.name),
            suggestion(name.name, known_names()));
        return;
      }
    }
    bad(target.span, "this cannot be assigned to",
        "names, elements such as a[i] and fields such as p.x can");
    return;
  }
  // a[i] = e, the common case.
  if (way.size() == 1 && way[0]->kind == ast::Expr::Kind::Index && !s.op) {
    const auto& items = ast::as<ast::IndexExpr>(*way[0]).items;
    if (items.size() == 1 && !items[0].is_slice) {
      const Operand at = left_of(*items[0].index, *s.value);
      const Operand value = expression(*s.value);
      emit(Op::SetIndexOne, s.span, root, at, value);
      return;
    }
  }
  const Operand first = operand(Where::Register, top_);
  const std::uint32_t desc = path(way);
  const Operand value = temporary();
  if (s.op) {
    put({Op::GetPath, 0, root, first, static_cast<Operand>(desc)}, target.span);  // to `value`
    const std::uint32_t inside = mark();
    const Operand right = expression(*s.value);
    reset(inside);
    emit(static_cast<Op>(static_cast<int>(Op::Add) + static_cast<int>(*s.op)), s.span, value, value,
         right);
  } else {
    into(*s.value, value);
  }
  put({Op::SetPath, 0, root, first, static_cast<Operand>(desc)}, s.span);
}

}  // namespace tl::lang
