// Going through all parts of a tree.
#pragma once

#include "lang/ast.h"

namespace tl::lang {

// Calls `f` with every expression directly inside `e`, and `g` with every statement.
template <class F, class G>
void for_each_part(const ast::Expr& e, F&& f, G&& g) {
  using ExprKind = ast::Expr::Kind;
  const auto maybe = [&](const ast::ExprPtr& part) {
    if (part) f(*part);
  };
  const auto block = [&](const ast::Block& b) {
    for (const ast::StatementPtr& s : b.statements) g(*s);
  };
  const auto arguments = [&](const std::vector<ast::Argument>& list) {
    for (const ast::Argument& a : list) maybe(a.value);
  };
  switch (e.kind) {
    case ExprKind::Integer:
    case ExprKind::Float:
    case ExprKind::Bool:
    case ExprKind::String:
    case ExprKind::Name:
      break;
    case ExprKind::Array:
      for (const ast::ExprPtr& part : ast::as<ast::ArrayExpr>(e).elements) maybe(part);
      break;
    case ExprKind::Tuple:
      for (const ast::ExprPtr& part : ast::as<ast::TupleExpr>(e).elements) maybe(part);
      break;
    case ExprKind::Map:
      for (const auto& [key, value] : ast::as<ast::MapExpr>(e).entries) {
        maybe(key);
        maybe(value);
      }
      break;
    case ExprKind::StructLiteral:
      for (const auto& [name, value] : ast::as<ast::StructExpr>(e).fields) maybe(value);
      break;
    case ExprKind::Unary:
      maybe(ast::as<ast::UnaryExpr>(e).operand);
      break;
    case ExprKind::Binary:
      maybe(ast::as<ast::BinaryExpr>(e).left);
      maybe(ast::as<ast::BinaryExpr>(e).right);
      break;
    case ExprKind::Range:
      maybe(ast::as<ast::RangeExpr>(e).first);
      maybe(ast::as<ast::RangeExpr>(e).last);
      break;
    case ExprKind::Cast:
      maybe(ast::as<ast::CastExpr>(e).operand);
      break;
    case ExprKind::Index:
      maybe(ast::as<ast::IndexExpr>(e).base);
      for (const ast::IndexItem& item : ast::as<ast::IndexExpr>(e).items) {
        maybe(item.index);
        maybe(item.start);
        maybe(item.stop);
        maybe(item.step);
      }
      break;
    case ExprKind::Field:
      maybe(ast::as<ast::FieldExpr>(e).base);
      break;
    case ExprKind::Call:
      maybe(ast::as<ast::CallExpr>(e).callee);
      arguments(ast::as<ast::CallExpr>(e).arguments);
      break;
    case ExprKind::MethodCall:
      maybe(ast::as<ast::MethodExpr>(e).base);
      arguments(ast::as<ast::MethodExpr>(e).arguments);
      break;
    case ExprKind::PathCall:
      arguments(ast::as<ast::PathExpr>(e).arguments);
      break;
    case ExprKind::Match:
      maybe(ast::as<ast::MatchExpr>(e).subject);
      for (const ast::MatchArm& arm : ast::as<ast::MatchExpr>(e).arms) {
        maybe(arm.guard);
        maybe(arm.value);
      }
      break;
    case ExprKind::If:
      maybe(ast::as<ast::IfExpr>(e).condition);
      block(ast::as<ast::IfExpr>(e).then);
      block(ast::as<ast::IfExpr>(e).otherwise);
      break;
    case ExprKind::Lambda:
      block(ast::as<ast::LambdaExpr>(e).function.body);
      break;
    case ExprKind::Comprehension:
      maybe(ast::as<ast::ComprehensionExpr>(e).element);
      maybe(ast::as<ast::ComprehensionExpr>(e).iterable);
      maybe(ast::as<ast::ComprehensionExpr>(e).condition);
      break;
  }
}

template <class F, class G>
void for_each_part(const ast::Statement& s, F&& f, G&& g) {
  using StatementKind = ast::Statement::Kind;
  const auto maybe = [&](const ast::ExprPtr& part) {
    if (part) f(*part);
  };
  const auto block = [&](const ast::Block& b) {
    for (const ast::StatementPtr& inner : b.statements) g(*inner);
  };
  switch (s.kind) {
    case StatementKind::Let:
      maybe(ast::as<ast::LetStatement>(s).value);
      break;
    case StatementKind::Tensor:
      maybe(ast::as<ast::TensorStatement>(s).value);
      break;
    case StatementKind::Assign:
      maybe(ast::as<ast::AssignStatement>(s).target);
      maybe(ast::as<ast::AssignStatement>(s).value);
      break;
    case StatementKind::Expression:
      maybe(ast::as<ast::ExpressionStatement>(s).expression);
      break;
    case StatementKind::Return:
      maybe(ast::as<ast::ReturnStatement>(s).value);
      break;
    case StatementKind::Panic:
      for (const ast::ExprPtr& part : ast::as<ast::PanicStatement>(s).arguments) maybe(part);
      break;
    case StatementKind::If:
      maybe(ast::as<ast::IfStatement>(s).condition);
      block(ast::as<ast::IfStatement>(s).then);
      if (ast::as<ast::IfStatement>(s).otherwise) block(*ast::as<ast::IfStatement>(s).otherwise);
      break;
    case StatementKind::For:
      maybe(ast::as<ast::ForStatement>(s).iterable);
      block(ast::as<ast::ForStatement>(s).body);
      break;
    case StatementKind::While:
      maybe(ast::as<ast::WhileStatement>(s).condition);
      block(ast::as<ast::WhileStatement>(s).body);
      break;
    case StatementKind::Loop:
      block(ast::as<ast::LoopStatement>(s).body);
      break;
    case StatementKind::Block:
      block(ast::as<ast::BlockStatement>(s).body);
      break;
    case StatementKind::With:
      block(ast::as<ast::WithStatement>(s).body);
      break;
    case StatementKind::Learn:
      for (const ast::Setting& setting : ast::as<ast::LearnStatement>(s).settings) {
        maybe(setting.value);
        for (const ast::Argument& argument : setting.arguments) maybe(argument.value);
      }
      maybe(ast::as<ast::LearnStatement>(s).objective);
      block(ast::as<ast::LearnStatement>(s).body);
      break;
    case StatementKind::Equation:
      maybe(ast::as<ast::EquationStatement>(s).left);
      maybe(ast::as<ast::EquationStatement>(s).right);
      break;
    case StatementKind::Break:
    case StatementKind::Continue:
    case StatementKind::Query:
    case StatementKind::Infer:
    case StatementKind::Python:
      break;
  }
}

}  // namespace tl::lang
