#include <algorithm>

#include "lang/compiler.h"

namespace tl::lang {

using ast::Expr;

bool FunctionCompiler::arrange(std::string_view who, const std::vector<std::string_view>& params,
                               const std::vector<ast::Argument>& arguments,
                               std::vector<const Expr*>& ordered) {
  ordered.assign(params.size(), nullptr);
  std::size_t next = 0;
  bool named_before = false;
  for (const ast::Argument& a : arguments) {
    if (!a.name && named_before) {
      bad(a.value->span, join(who, "(): arguments without a name come first"));
      return false;
    }
    std::size_t at = next++;
    if (a.name) {
      named_before = true;
      const auto found = std::find(params.begin(), params.end(), a.name->text);
      if (found == params.end()) {
        bad(a.name->span, join(who, "() has no parameter '", a.name->text, "'"),
            suggestion(a.name->text, params));
        return false;
      }
      at = static_cast<std::size_t>(found - params.begin());
    }
    if (at >= params.size()) {
      ordered.push_back(a.value.get());
      continue;
    }
    if (ordered[at] != nullptr) {
      bad(a.value->span, join(who, "(): parameter '", params[at], "' is given twice"));
      return false;
    }
    ordered[at] = a.value.get();
  }
  return true;
}

void FunctionCompiler::call_function(const Function& function,
                                     const std::vector<ast::Argument>& arguments, const Span& span,
                                     Operand to) {
  std::vector<std::string_view> params;
  std::size_t needed = 0;
  for (const FunctionParam& p : function.params) {
    params.push_back(p.name);
    if (!p.optional) ++needed;
  }
  std::vector<const Expr*> ordered;
  if (!arrange(function.name, params, arguments, ordered)) return;
  bool complete = ordered.size() == params.size();
  for (std::size_t i = 0; complete && i < params.size(); ++i) {
    complete = ordered[i] != nullptr || function.params[i].optional;
  }
  if (!complete) {
    const std::string wanted =
        needed == params.size() ? join(needed) : join(needed, " to ", params.size());
    bad(span, join("Function '", function.name, "' expects ", wanted, " argument",
                   wanted == "1" ? "" : "s", ", got ", arguments.size()));
    return;
  }
  const Operand first = operand(Where::Register, top_);
  for (std::size_t i = 0; i < params.size(); ++i) temporary();
  // In the order they are written.
  for (const ast::Argument& a : arguments) {
    const auto at = std::find(ordered.begin(), ordered.end(), a.value.get()) - ordered.begin();
    into(*a.value, static_cast<Operand>(first + at));
  }
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (ordered[i] == nullptr) emit(Op::Missing, span, static_cast<Operand>(first + i));
  }
  CallSite site;
  site.function = &function;
  site.count = static_cast<std::uint32_t>(params.size());
  f_.calls.push_back(std::move(site));
  put({Op::Call, 0, to, first, static_cast<Operand>(f_.calls.size() - 1)}, span);
}

void FunctionCompiler::call_builtin(const Builtin& builtin,
                                    const std::vector<ast::Argument>& arguments, const Span& span,
                                    Operand to) {
  c_.world.differentiates |= builtin.name == "backward" || builtin.name == "grad";
  std::vector<std::string_view> params;
  for (std::size_t i = 0; i < builtin.fixed(); ++i) params.push_back(builtin.parameters[i].name);
  std::vector<const Expr*> ordered;
  if (!arrange(builtin.name, params, arguments, ordered)) return;
  bool complete = builtin.variadic || ordered.size() == params.size();
  for (std::size_t i = 0; complete && i < params.size(); ++i) {
    complete = ordered[i] != nullptr || builtin.parameters[i].optional;
  }
  if (!complete) {
    bad(span, join("Runtime type error: ", builtin.name, "() expects ", builtin.signature, ", got ",
                   arguments.size(), arguments.size() == 1 ? " argument" : " arguments"));
    return;
  }
  const Operand first = operand(Where::Register, top_);
  for (std::size_t i = 0; i < ordered.size(); ++i) temporary();
  for (const ast::Argument& a : arguments) {
    const auto at = std::find(ordered.begin(), ordered.end(), a.value.get()) - ordered.begin();
    const auto to_place = static_cast<Operand>(first + at);
    if (!logic_argument(builtin, *a.value, to_place)) into(*a.value, to_place);
  }
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    if (ordered[i] != nullptr) continue;
    const Operand at = static_cast<Operand>(first + i);
    const Value& value = builtin.parameters[i].default_value;
    if (value.is(Kind::Missing)) {
      emit(Op::Missing, span, at);
    } else {
      emit(Op::Move, span, at, constant(value));
    }
  }
  CallSite site;
  site.builtin = &builtin;
  site.count = static_cast<std::uint32_t>(ordered.size());
  f_.calls.push_back(std::move(site));
  put({Op::CallBuiltin, 0, to, first, static_cast<Operand>(f_.calls.size() - 1)}, span);
}

void FunctionCompiler::call_value(const Expr& callee, const std::vector<ast::Argument>& arguments,
                                  const Span& span, Operand to) {
  const Operand first = own(callee);
  CallSite site;
  for (const ast::Argument& a : arguments) {
    if (a.name) site.named.emplace_back(site.count, a.name->text);
    own(*a.value);
    ++site.count;
  }
  f_.calls.push_back(std::move(site));
  put({Op::CallValue, 0, to, first, static_cast<Operand>(f_.calls.size() - 1)}, span);
}

void FunctionCompiler::call(const ast::CallExpr& e, Operand to) {
  if (e.callee->kind != Expr::Kind::Name) {
    call_value(*e.callee, e.arguments, e.span, to);
    return;
  }
  const auto& callee = ast::as<ast::NameExpr>(*e.callee);
  const std::string& name = callee.name;
  if (find_local(name) || captured_.contains(name)) {
    call_value(callee, e.arguments, e.span, to);
    return;
  }
  if (const auto f = c_.world.functions.find(name); f != c_.world.functions.end()) {
    call_function(*f->second, e.arguments, e.span, to);
    return;
  }
  if (find_variable(name, e.span)) {
    call_value(callee, e.arguments, e.span, to);
    return;
  }
  if (logic_expression(e, to)) return;
  if (name == "learnable" && e.arguments.size() == 1 && !e.arguments[0].name) {
    const std::string called = std::exchange(naming_, {});
    const Operand value = expression(*e.arguments[0].value);
    const std::uint8_t given_up = is_temporary(value) ? kTemporaryB : std::uint8_t{0};
    put({Op::Learnable, given_up, to, value, text_constant(called)}, e.span);
    return;
  }
  if (const Builtin* builtin = BuiltinTable::instance().find(name)) {
    call_builtin(*builtin, e.arguments, e.span, to);
    return;
  }
  if (name == "inv" && e.arguments.size() == 1 && !e.arguments[0].name) {  // the operator
    const Operand value = expression(*e.arguments[0].value);
    emit(Op::Inverse, e.span, to, value);
    return;
  }
  std::vector<std::string_view> known;
  for (const auto& [other, f] : c_.world.functions) known.push_back(other);
  for (const Builtin* builtin : BuiltinTable::instance().all()) known.push_back(builtin->name);
  for (const auto& [relation, id] : c_.world.logic->relations) known.push_back(relation);
  std::string hint = suggestion(name, known);
  if (hint.empty() && c_.world.structs.contains(name)) {
    hint = join("'", name, "' is a struct; write ", name, " { ... } to make one");
  }
  bad(callee.span, join("unknown function or relation: ", name), std::move(hint));
}

void FunctionCompiler::path_call(const ast::PathExpr& e, Operand to) {
  if (const StructType* type = find_struct(e.type.text)) {
    const auto method = type->methods.find(e.name.text);
    if (method != type->methods.end()) {
      call_function(*method->second, e.arguments, e.span, to);
      return;
    }
    std::vector<std::string_view> known;
    for (const auto& [name, f] : type->methods) known.push_back(name);
    bad(e.name.span, join("Struct '", type->name, "' has no function '", e.name.text, "'"),
        suggestion(e.name.text, known));
    return;
  }
  const auto dtype = dtype_by_name(e.type.text);  // half::zeros is f16::zeros
  const std::string_view type_name = dtype ? name(*dtype) : std::string_view(e.type.text);
  const std::string full = join(type_name, "::", e.name.text);
  const BuiltinTable& table = BuiltinTable::instance();
  const Builtin* builtin = table.find(full);
  const bool names_dtype = dtype.has_value() || e.type.text == "Tensor";
  if (builtin == nullptr && names_dtype) {
    builtin = table.find(e.name.text);
    // A function that takes the dtype from its name, and has none of this one.
    const auto is_typed = [&](std::string_view other) {
      return table.find(join(other, "::", e.name.text)) != nullptr;
    };
    if (dtype && builtin != nullptr && (is_typed("f32") || is_typed("i64"))) {
      bad(e.name.span, join("Runtime type error: there is no ", full, ": ", e.name.text,
                            "() does not make ", type_name));
      return;
    }
  }
  if (builtin != nullptr) {
    call_builtin(*builtin, e.arguments, e.span, to);
    return;
  }
  std::vector<std::string_view> known;
  for (const Builtin* other : BuiltinTable::instance().all()) {
    if (other->name.find("::") != std::string_view::npos) known.push_back(other->name);
  }
  if (names_dtype) {
    bad(e.name.span, join("Runtime type error: ", full, " is not implemented"),
        suggestion(full, known));
  } else {
    for (const auto& [name, type] : c_.world.structs) known.push_back(name);
    bad(e.type.span, join("Unknown type: ", e.type.text), suggestion(full, known));
  }
}

bool FunctionCompiler::place(const Expr& e, Operand& root, std::vector<const Expr*>& way) {
  switch (e.kind) {
    case Expr::Kind::Name: {
      const auto& name = ast::as<ast::NameExpr>(e);
      if (c_.world.constants.contains(name.name) && !find_local(name.name)) return false;
      const auto at = find_variable(name.name, e.span);
      if (!at || where(*at) == Where::Captured) return false;
      root = *at;
      return true;
    }
    case Expr::Kind::Index:
      if (!place(*ast::as<ast::IndexExpr>(e).base, root, way)) return false;
      way.push_back(&e);
      return true;
    case Expr::Kind::Field:
      if (!place(*ast::as<ast::FieldExpr>(e).base, root, way)) return false;
      way.push_back(&e);
      return true;
    default:
      return false;
  }
}

std::uint32_t FunctionCompiler::path(const std::vector<const Expr*>& way) {
  Path p;
  const std::uint32_t before = mark();
  for (const Expr* step : way) {
    PathStep s;
    if (step->kind == Expr::Kind::Field) {
      s.field = static_cast<int>(name_index(ast::as<ast::FieldExpr>(*step).field.text));
    } else {
      index_items(ast::as<ast::IndexExpr>(*step).items, s.index);
    }
    p.steps.push_back(std::move(s));
  }
  p.registers = top_ - before;
  f_.paths.push_back(std::move(p));
  return static_cast<std::uint32_t>(f_.paths.size() - 1);
}

void FunctionCompiler::method(const ast::MethodExpr& e, Operand to) {
  const std::string& name = e.name.text;
  if (e.base->kind == Expr::Kind::Name && ast::as<ast::NameExpr>(*e.base).name == "python") {
    bad(e.span, "Python is not supported");
    return;
  }
  Operand root = 0;
  std::vector<const Expr*> way;
  const bool user_changes = c_.world.changing_methods.contains(name);
  const bool list_changes = is_mutating_name(name);
  const bool is_place = (user_changes || list_changes) && place(*e.base, root, way);
  CallSite site;
  site.name = static_cast<int>(name_index(name));
  if (const auto f = c_.world.functions.find(name); f != c_.world.functions.end()) {
    site.function = f->second;
  }
  site.builtin = BuiltinTable::instance().find(name);
  // Of a place: its indices, then the receiver, which the machine fetches, then the arguments.
  const Operand indices = operand(Where::Register, top_);
  if (is_place) site.path = static_cast<int>(path(way));
  const Operand receiver = temporary();
  if (!is_place) into(*e.base, receiver);
  for (const ast::Argument& a : e.arguments) {
    if (a.name) site.named.emplace_back(site.count, a.name->text);
    own(*a.value);
    ++site.count;
  }
  const int way_back = site.path;
  if (is_place) {
    site.result = to;
    if (user_changes) site.self = receiver;
  }
  f_.calls.push_back(std::move(site));
  const auto desc = static_cast<Operand>(f_.calls.size() - 1);
  put({is_place ? Op::CallMutating : Op::CallMethod, 0, is_place ? root : to, receiver, desc},
      e.name.span);
  if (!is_place || !user_changes) return;
  // A method that changed its receiver left it where it was: back to where it came from.
  put({Op::JumpIfStruct, 0, receiver, 0, static_cast<Operand>(here() + 2)}, e.span);
  put({Op::Jump, 0, 0, 0, 0}, e.span);
  const std::size_t skip = here() - 1;
  if (way.empty()) {
    put({Op::Move, kTemporaryB, root, receiver, 0}, e.span);
  } else {
    put({Op::SetPath, 0, root, indices, static_cast<Operand>(way_back)}, e.span);
  }
  patch(skip);
}

}  // namespace tl::lang
