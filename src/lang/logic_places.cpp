// R[ada, :], E[ada], R = t and R[ada, ben] = 1: relations and embeddings as tensors.
#include "lang/logic_calls.h"
#include "lang/logic_compile.h"

namespace tl::lang {

using ast::Expr;

namespace {

const ast::NameExpr* name_in(const Expr& e) {
  return e.kind == Expr::Kind::Name ? &ast::as<ast::NameExpr>(e) : nullptr;
}

}  // namespace

// A name between brackets of a relation or an embedding is an entity, unless it is a variable.
void FunctionCompiler::place_value(const Expr& e) {
  const ast::NameExpr* name = name_in(e);
  if (name != nullptr && !is_program_name(name->name)) {
    emit(Op::Move, e.span, temporary(), text_constant(name->name));
  } else {
    own(e);
  }
}

// What stands between brackets in registers, and what of it are slices: "i:" for R[ada, :].
std::string FunctionCompiler::places(const std::vector<ast::IndexItem>& items) {
  std::string slices;
  for (const ast::IndexItem& item : items) {
    slices += item.is_slice ? ':' : 'i';
    if (!item.is_slice) {
      place_value(*item.index);
      continue;
    }
    for (const ast::ExprPtr* part : {&item.start, &item.stop, &item.step}) {
      if (*part) {
        own(**part);
      } else {
        emit(Op::Missing, item.span, temporary());
      }
    }
  }
  return slices;
}

// E[alice], E["alice"]
void FunctionCompiler::embedding_index(const ast::IndexExpr& e, const ast::NameExpr& base,
                                       bool grows, Operand to) {
  if (grows) {
    const std::uint32_t before = mark();
    const Operand first = temporary();
    emit(Op::Move, e.span, first, text_constant(base.name));
    own(*e.base);
    const auto at = find_variable(base.name, base.span);
    call_logic(LogicCall::GrowEmbedding, first, 2, e.span, *at);
    reset(before);
  }
  const Operand first = own(*e.base);
  IndexShape shape;
  for (std::size_t i = 0; i < e.items.size(); ++i) {
    const ast::IndexItem& item = e.items[i];
    shape.slices.push_back(item.is_slice);
    if (item.is_slice) {
      for (const ast::ExprPtr* part : {&item.start, &item.stop, &item.step}) {
        if (*part) {
          own(**part);
        } else {
          emit(Op::Missing, item.span, temporary());
        }
      }
      continue;
    }
    const Operand place = temporary();
    const std::uint32_t before = mark();
    const Operand arguments = temporary();
    emit(Op::Move, item.span, arguments, text_constant(base.name));
    emit(Op::Move, item.span, temporary(), constant(static_cast<std::int64_t>(i)));
    place_value(*item.index);
    call_logic(LogicCall::Place, arguments, 3, item.span, place);
    reset(before);
  }
  f_.indices.push_back(std::move(shape));
  put({Op::Index, 0, to, first, static_cast<Operand>(f_.indices.size() - 1)}, e.span);
}

// R[alice, :] and E[alice]: names between the brackets are entities.
bool FunctionCompiler::logic_index(const ast::IndexExpr& e, Operand to) {
  const ast::NameExpr* base = name_in(*e.base);
  if (base == nullptr) return false;
  const LogicProgram& program = *c_.world.logic;
  if (is_program_name(base->name)) {
    const auto embedding = program.embeddings.find(base->name);
    if (embedding == program.embeddings.end()) return false;
    embedding_index(e, *base, embedding->second.grows, to);
    return true;
  }
  if (!find_relation(base->name)) return false;
  const std::uint32_t before = mark();
  const Operand first = temporary();
  const Operand slices = temporary();
  emit(Op::Move, e.span, first, text_constant(base->name));
  emit(Op::Move, e.span, slices, text_constant(places(e.items)));
  call_logic(LogicCall::RelationPart, first, top_ - before, e.span, to);
  reset(before);
  return true;
}

// R[a, b] = e. False: it is no relation's.
bool FunctionCompiler::logic_assign_part(const Expr& target, const ast::AssignStatement& s) {
  if (target.kind != Expr::Kind::Index) return false;
  const auto& e = ast::as<ast::IndexExpr>(target);
  const ast::NameExpr* base = name_in(*e.base);
  if (base == nullptr || is_program_name(base->name) || !find_relation(base->name)) return false;
  const std::uint32_t before = mark();
  const Operand first = temporary();
  const Operand slices = temporary();
  emit(Op::Move, s.span, first, text_constant(base->name));
  const Operand op = temporary();
  if (s.op) {
    emit(Op::Move, s.span, op, constant(static_cast<std::int64_t>(*s.op)));
  } else {
    emit(Op::Missing, s.span, op);
  }
  own(*s.value);
  emit(Op::Move, s.span, slices, text_constant(places(e.items)));
  call_logic(LogicCall::AssignPart, first, top_ - before, s.span, first);
  reset(before);
  return true;
}

// R = t. False: the target is no relation.
bool FunctionCompiler::logic_assign(const ast::NameExpr& target, const ast::AssignStatement& s) {
  if (is_program_name(target.name) || !find_relation(target.name)) return false;
  const std::uint32_t before = mark();
  const Operand first = temporary();
  emit(Op::Move, s.span, first, text_constant(target.name));
  const Operand value = own(*s.value);
  if (s.op) {
    const Operand old = temporary();
    call_logic(LogicCall::RelationTensor, {Value(target.name)}, target.span, old);
    emit(static_cast<lang::Op>(static_cast<int>(lang::Op::Add) + static_cast<int>(*s.op)), s.span,
         value, old, value);
  }
  call_logic(LogicCall::AssignRelation, first, 2, s.span, first);
  reset(before);
  return true;
}

}  // namespace tl::lang
