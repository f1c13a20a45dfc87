#include "lang/compile.h"

#include <algorithm>

#include "base/nearest.h"
#include "lang/ast_walk.h"
#include "lang/compiler.h"
#include "lang/logic_compile.h"
#include "lang/types.h"

namespace tl::lang {

// ---- what functions share

void Compilation::error(const Span& span, std::string message, std::string hint) {
  diagnostics.push_back({Severity::Error, std::move(message), span, std::move(hint), {}});
}
void Compilation::warning(const Span& span, std::string message, std::string hint) {
  diagnostics.push_back({Severity::Warning, std::move(message), span, std::move(hint), {}});
}

Function* Compilation::new_function(std::string name, const Span& span) {
  auto function = std::make_unique<Function>();
  function->name = std::move(name);
  function->span = span;
  world.owned.push_back(std::move(function));
  return world.owned.back().get();
}

TypeInfo Compilation::type(const ast::Type& type, const std::vector<ast::Name>& type_params) {
  TypeInfo info;
  info.kind = type.kind;
  info.text = std::string(world.sources.text(type.span));
  switch (type.kind) {
    case ast::Type::Kind::Scalar:
      if (type.name == "string") {
        info.scalar = Kind::String;
      } else if (type.name == "bool") {
        info.scalar = Kind::Bool;
      } else if (type.name == "float" || type.name.starts_with("float") ||
                 type.name == "bfloat16") {
        info.scalar = Kind::Float;
      } else {
        info.scalar = Kind::Int;
      }
      break;
    case ast::Type::Kind::Any:
      info.kind = ast::Type::Kind::Tensor;
      info.any_shape = true;
      break;
    case ast::Type::Kind::Tensor:
      try {
        info.dtype = dtype_of_type(type.name);
      } catch (const RuntimeError& e) {
        error(type.span, e.what());
      }
      for (const ast::Dim& dim : type.dims) {
        TypeInfo::Dim d;
        if (dim.kind == ast::Dim::Kind::Size) d.size = dim.size;
        if (dim.kind == ast::Dim::Kind::Name) d.name = dim.name;
        info.dims.push_back(std::move(d));
      }
      break;
    case ast::Type::Kind::Named: {
      info.name = type.name;
      const bool is_param = std::any_of(type_params.begin(), type_params.end(),
                                        [&](const ast::Name& p) { return p.text == type.name; });
      const auto hosts = host_types();
      const bool is_host = std::find(hosts.begin(), hosts.end(), type.name) != hosts.end();
      if (is_param || type.name == "any") {
        info.kind = ast::Type::Kind::Any;
      } else if (entity_names.contains(type.name) ||
                 world.logic->type(type.name) != nullptr) {  // an entity is its name
        info.kind = ast::Type::Kind::Scalar;
        info.scalar = Kind::String;
      } else if (!is_host && !world.structs.contains(type.name)) {
        std::vector<std::string_view> known = {"int", "float", "bool", "string", "Tensor", "any"};
        known.insert(known.end(), hosts.begin(), hosts.end());
        for (const auto& [name, s] : world.structs) known.push_back(name);
        error(type.span, join("Unknown type: ", type.name), suggestion(type.name, known));
        info.kind = ast::Type::Kind::Any;
      }
      break;
    }
    default:
      break;
  }
  return info;
}

std::string suggestion(std::string_view typed, const std::vector<std::string_view>& words) {
  const std::vector<std::string> list(words.begin(), words.end());
  const std::string best = nearest(typed, list);
  return best.empty() ? std::string() : join("did you mean '", best, "'?");
}

// ---- functions

void FunctionCompiler::compile_body(const ast::FunctionBody& body,
                                    const std::vector<ast::Name>& type_params) {
  if (f_.params.empty()) {  // a lambda: nobody declared it
    for (const ast::Param& p : body.params) {
      FunctionParam param;
      param.name = p.name.text;
      if (p.type) param.type = c_.type(*p.type, type_params);
      param.optional = p.default_value != nullptr;
      f_.params.push_back(std::move(param));
    }
    if (body.result) f_.result = c_.type(*body.result, type_params);
  }
  open_scope();
  for (const FunctionParam& p : f_.params) declare(p.name, body.body.span);
  const std::size_t hidden = f_.params.size() - body.params.size();  // self
  for (std::size_t i = 0; i < body.params.size(); ++i) {
    const ast::Param& p = body.params[i];
    if (!p.default_value) continue;
    const Operand at = operand(Where::Register, i + hidden);
    put({Op::JumpIfGiven, 0, at, 0, 0}, p.name.span);
    const std::size_t given = here() - 1;
    const std::uint32_t before = mark();
    into(*p.default_value, at);
    reset(before);
    patch(given);
  }
  for (const FunctionParam& p : f_.params) {
    f_.checks |= p.type.kind != ast::Type::Kind::Any;
  }
  if (f_.checks) emit(Op::Enter, body.body.span);
  open_scope();
  last_block(body.body);
  close_scope(body.body.span);
}

void FunctionCompiler::compile_global_block(const ast::Block& block, bool gives_value) {
  open_scope(true);
  const bool has_value = !block.statements.empty() &&
                         block.statements.back()->kind == ast::Statement::Kind::Expression;
  if (gives_value && has_value) {
    last_block(block);
  } else {
    statements(block.statements);
    emit(Op::ReturnVoid, block.span);
  }
}

void FunctionCompiler::compile_declarations(
    const std::vector<const ast::Declaration*>& declarations) {
  is_declarations_ = true;
  open_scope(true);
  for (const ast::Declaration* d : declarations) {
    const std::uint32_t before = mark();
    if (d->kind == ast::Declaration::Kind::Entity) {
      declare_entities(ast::as<ast::EntityDeclaration>(*d));
    } else if (d->kind == ast::Declaration::Kind::Embedding) {
      declare_embedding(ast::as<ast::EmbeddingDeclaration>(*d));
    } else if (d->kind == ast::Declaration::Kind::Tensor) {
      const auto& t = ast::as<ast::TensorDeclaration>(*d);
      declare_tensor(t.name, *t.type, t.value.get(), t.span);
    } else {
      const auto& k = ast::as<ast::ConstDeclaration>(*d);
      const Operand value = expression(*k.value);
      reset(before);
      const Operand to = declare(k.name.text, k.name.span);
      emit(Op::Move, k.span, to, value);
      if (k.type) {
        f_.types.push_back(c_.type(*k.type));
        emit(Op::CheckType, k.span, to, text_constant(k.name.text),
             static_cast<Operand>(f_.types.size() - 1));
      }
    }
    reset(before);
  }
  emit(Op::ReturnVoid, f_.span);
}

namespace {

// Does a method change the struct it is called on?
class ChangeFinder {
 public:
  explicit ChangeFinder(const std::set<std::string, std::less<>>& changing) : changing_(changing) {}

  bool look(const ast::Block& block) {
    for (const ast::StatementPtr& s : block.statements) look(*s);
    return found_;
  }

 private:
  static bool is_self(const ast::Expr& e) {
    switch (e.kind) {
      case ast::Expr::Kind::Name:
        return ast::as<ast::NameExpr>(e).name == "self";
      case ast::Expr::Kind::Index:
        return is_self(*ast::as<ast::IndexExpr>(e).base);
      case ast::Expr::Kind::Field:
        return is_self(*ast::as<ast::FieldExpr>(e).base);
      default:
        return false;
    }
  }
  void look(const ast::Statement& s) {
    if (s.kind == ast::Statement::Kind::Assign) {
      found_ |= is_self(*ast::as<ast::AssignStatement>(s).target);
    }
    for_each_part(
        s, [this](const ast::Expr& e) { look(e); }, [this](const ast::Statement& t) { look(t); });
  }
  void look(const ast::Expr& e) {
    if (e.kind == ast::Expr::Kind::MethodCall) {
      const auto& m = ast::as<ast::MethodExpr>(e);
      const bool changes = is_mutating_name(m.name.text) || changing_.contains(m.name.text);
      found_ |= changes && is_self(*m.base);
    }
    for_each_part(
        e, [this](const ast::Expr& part) { look(part); },
        [this](const ast::Statement& t) { look(t); });
  }

  const std::set<std::string, std::less<>>& changing_;
  bool found_ = false;
};

// All declarations of the programs, then their bodies.
class ProgramCompiler {
 public:
  explicit ProgramCompiler(Compilation& compilation) : c_(compilation) {}

  CompiledProgram compile(std::span<const ast::Program* const> programs) {
    for (const ast::Program* p : programs) declare_structs(*p);
    for (const ast::Program* p : programs) declare_entity_types(*p);
    for (const ast::Program* p : programs) declare_functions(*p);
    declare_logic(c_, programs);
    for (const ast::Program* p : programs) declare_values(*p);
    find_changing_methods();
    const ast::Program& last = *programs.back();
    if (last.main) declare_variables(*last.main);
    for (const ast::NamedBlock& t : last.tests) declare_variables(t.body);
    for (const ast::NamedBlock& b : last.benches) declare_variables(b.body);

    CompiledProgram out;
    Function* declarations = c_.new_function("declarations", {});
    FunctionCompiler(c_, *declarations).compile_declarations(values_);
    out.declarations = declarations;
    for (const Pending& p : pending_) {
      FunctionCompiler(c_, *p.function).compile_body(*p.body, p.type_params);
    }
    for (const auto& [function, equations] : equations_) {
      FunctionCompiler(c_, *function).compile_equations(equations);
    }
    if (last.main) out.main = block("main", *last.main, c_.options.at_prompt);
    for (const ast::NamedBlock& t : last.tests) {
      out.tests.emplace_back(t.name.text, block(join("test ", t.name.text), t.body, false));
    }
    for (const ast::NamedBlock& b : last.benches) {
      out.benches.emplace_back(b.name.text, block(join("bench ", b.name.text), b.body, false));
    }
    return out;
  }

 private:
  struct Pending {
    Function* function;
    const ast::FunctionBody* body;
    std::vector<ast::Name> type_params;
  };

  const Function* block(std::string name, const ast::Block& body, bool gives_value) {
    Function* f = c_.new_function(std::move(name), body.span);
    FunctionCompiler(c_, *f).compile_global_block(body, gives_value);
    return f;
  }

  void declare_structs(const ast::Program& p) {
    for (const ast::DeclarationPtr& d : p.declarations) {
      if (d->kind != ast::Declaration::Kind::Struct) continue;
      const auto& s = ast::as<ast::StructDeclaration>(*d);
      if (c_.world.structs.contains(s.name.text) && !c_.options.at_prompt) {
        c_.error(s.name.span, join("Struct '", s.name.text, "' is already defined"));
        continue;
      }
      auto type = std::make_shared<StructType>();
      type->name = s.name.text;
      c_.world.structs[s.name.text] = type;
    }
    for (const ast::DeclarationPtr& d : p.declarations) {
      if (d->kind != ast::Declaration::Kind::Struct) continue;
      const auto& s = ast::as<ast::StructDeclaration>(*d);
      StructType& type = *c_.world.structs[s.name.text];
      if (!type.fields.empty()) continue;
      for (const ast::Field& field : s.fields) {
        if (type.field(field.name.text) >= 0) {
          c_.error(field.name.span, join("Field '", field.name.text, "' is declared twice"));
        }
        type.fields.push_back(field.name.text);
        type.types.push_back(c_.type(*field.type, s.type_params));
        type.learnable.push_back(field.type->learnable);
        type.frozen.push_back(field.type->frozen);
      }
      params_of_[s.name.text] = &s.type_params;
    }
  }

  // Their names alone: parameters of functions may be of them.
  void declare_entity_types(const ast::Program& p) {
    for (const ast::DeclarationPtr& d : p.declarations) {
      if (d->kind == ast::Declaration::Kind::Entity) {
        c_.entity_names.insert(ast::as<ast::EntityDeclaration>(*d).name.text);
      }
    }
  }

  void declare_functions(const ast::Program& p) {
    for (const ast::DeclarationPtr& d : p.declarations) {
      if (d->kind == ast::Declaration::Kind::Function) {
        const auto& f = ast::as<ast::FunctionDeclaration>(*d);
        if (c_.world.functions.contains(f.name.text) && !c_.options.at_prompt) {
          c_.error(f.name.span, join("Function '", f.name.text, "' is already defined"));
          continue;
        }
        if (BuiltinTable::instance().find(f.name.text) != nullptr) {
          c_.warning(f.name.span, join("Function '", f.name.text, "' hides a builtin"));
        }
        c_.world.functions[f.name.text] = declare(f.name.text, f.function, {}, false, d->span);
      } else if (d->kind == ast::Declaration::Kind::Impl) {
        declare_methods(ast::as<ast::ImplDeclaration>(*d));
      }
    }
  }

  Function* declare(const std::string& name, const ast::FunctionBody& body,
                    std::vector<ast::Name> type_params, bool is_method, const Span& span) {
    Function* f = c_.new_function(name, span);
    if (body.has_self) {
      FunctionParam param;
      param.name = "self";
      if (!is_method) c_.error(span, join("'self' in '", name, "', which is no method"));
      f->params.push_back(std::move(param));
    }
    for (const ast::Param& p : body.params) {
      FunctionParam param;
      param.name = p.name.text;
      if (p.type) param.type = c_.type(*p.type, type_params);
      param.optional = p.default_value != nullptr;
      for (const FunctionParam& other : f->params) {
        if (other.name == param.name) {
          c_.error(p.name.span, join("Parameter '", param.name, "' is declared twice"));
        }
      }
      f->params.push_back(std::move(param));
    }
    if (body.result) f->result = c_.type(*body.result, type_params);
    pending_.push_back({f, &body, std::move(type_params)});
    return f;
  }

  void declare_methods(const ast::ImplDeclaration& d) {
    const auto found = c_.world.structs.find(d.type.text);
    if (found == c_.world.structs.end()) {
      std::vector<std::string_view> known;
      for (const auto& [name, s] : c_.world.structs) known.push_back(name);
      c_.error(d.type.span, join("Unknown struct: ", d.type.text), suggestion(d.type.text, known));
      return;
    }
    StructType& type = *found->second;
    const bool is_drop = d.trait.has_value();
    if (is_drop && d.trait->text != "Drop") {
      c_.error(d.trait->span, join("Unknown trait: ", d.trait->text), "only Drop is known");
      return;
    }
    std::vector<ast::Name> params;
    if (const auto p = params_of_.find(type.name); p != params_of_.end()) params = *p->second;
    for (const auto& [name, body] : d.methods) {
      if (type.methods.contains(name.text) && !c_.options.at_prompt) {
        c_.error(name.span, join("Method '", type.name, "::", name.text, "' is already defined"));
        continue;
      }
      if (is_drop && (name.text != "drop" || !body.has_self || !body.params.empty())) {
        c_.error(name.span, "Drop has one method: fn drop(self)");
        continue;
      }
      Function* f = declare(join(type.name, "::", name.text), body, params, true, name.span);
      type.methods[name.text] = f;
      if (is_drop) type.drop = f;
      if (body.has_self) methods_.push_back({name.text, &body, f});
    }
    if (is_drop && type.drop == nullptr) c_.error(d.span, "Drop needs fn drop(self)");
  }

  void declare_values(const ast::Program& p) {
    for (const ast::DeclarationPtr& d : p.declarations) {
      switch (d->kind) {
        case ast::Declaration::Kind::Tensor:
          declare_value(ast::as<ast::TensorDeclaration>(*d).name, *d);
          break;
        case ast::Declaration::Kind::Const:
          declare_value(ast::as<ast::ConstDeclaration>(*d).name, *d);
          c_.world.constants.insert(ast::as<ast::ConstDeclaration>(*d).name.text);
          break;
        case ast::Declaration::Kind::Entity:
          values_.push_back(d.get());
          break;
        case ast::Declaration::Kind::Embedding:
          declare_value(ast::as<ast::EmbeddingDeclaration>(*d).name, *d);
          break;
        case ast::Declaration::Kind::Rule:
          declare_equation(ast::as<ast::RuleDeclaration>(*d));
          break;
        default:
          break;
      }
    }
  }
  // Y[i] ~ e at the top: a function without parameters that is called wherever Y is read.
  void declare_equation(const ast::RuleDeclaration& d) {
    if (d.head) return;
    if (!is_equation_head(*d.left)) {
      c_.error(d.left->span, "the left side of a tensor equation is a name with its indices",
               "as in: Y[i, k] ~ W[i, j] * X[j, k]");
      return;
    }
    const auto& index = ast::as<ast::IndexExpr>(*d.left);
    const std::string& name = ast::as<ast::NameExpr>(*index.base).name;
    if (c_.world.top_level.contains(name) || c_.world.logic->relations.contains(name)) {
      c_.error(index.base->span, join("'", name, "' is already defined"));
      return;
    }
    if (mentions(*d.right, name)) {
      c_.error(d.right->span, join("'", name, "' is defined by itself"),
               "compute it step by step in a loop");
      return;
    }
    Function*& function = equation_functions_[name];
    if (function == nullptr) {
      function = c_.new_function(name, d.span);
      c_.world.equations[name] = function;
    }
    for (auto& [known, equations] : equations_) {
      if (known == function) {
        equations.push_back(&d);
        return;
      }
    }
    equations_.push_back({function, {&d}});
  }

  static bool mentions(const ast::Expr& e, const std::string& name) {
    if (e.kind == ast::Expr::Kind::Name) return ast::as<ast::NameExpr>(e).name == name;
    bool found = false;
    for_each_part(
        e, [&](const ast::Expr& part) { found |= mentions(part, name); },
        [](const ast::Statement&) {});
    return found;
  }

  void declare_value(const ast::Name& name, const ast::Declaration& d) {
    if (c_.world.top_level.contains(name.text) && !c_.options.at_prompt) {
      c_.error(name.span, join("'", name.text, "' is already defined"));
      return;
    }
    c_.world.global(name.text);
    c_.world.top_level.insert(name.text);
    values_.push_back(&d);
  }

  void find_changing_methods() {
    bool again = true;
    while (again) {
      again = false;
      for (const Method& m : methods_) {
        if (m.function->changes_self) continue;
        if (!ChangeFinder(c_.world.changing_methods).look(m.body->body)) continue;
        m.function->changes_self = true;
        c_.world.changing_methods.insert(m.name);
        again = true;
      }
    }
  }

  // main's own variables can be seen by functions.
  void declare_variables(const ast::Block& body) {
    for (const ast::StatementPtr& s : body.statements) {
      if (s->kind == ast::Statement::Kind::Let) {
        for (const ast::Name& name : ast::as<ast::LetStatement>(*s).names) {
          c_.world.global(name.text);
        }
      } else if (s->kind == ast::Statement::Kind::Tensor) {
        c_.world.global(ast::as<ast::TensorStatement>(*s).name.text);
      } else if (s->kind == ast::Statement::Kind::Assign) {
        const ast::Expr& target = *ast::as<ast::AssignStatement>(*s).target;
        if (target.kind == ast::Expr::Kind::Name) {
          c_.world.global(ast::as<ast::NameExpr>(target).name);
        }
      }
    }
  }

  struct Method {
    std::string name;
    const ast::FunctionBody* body;
    Function* function;
  };

  Compilation& c_;
  std::vector<Pending> pending_;
  std::vector<Method> methods_;
  std::vector<const ast::Declaration*> values_;
  std::map<std::string, const std::vector<ast::Name>*> params_of_;
  std::map<std::string, Function*> equation_functions_;
  std::vector<std::pair<Function*, std::vector<const ast::RuleDeclaration*>>> equations_;
};

}  // namespace

CompiledProgram compile(World& world, std::span<const ast::Program* const> programs,
                        const CompileOptions& options, std::vector<Diagnostic>& diagnostics) {
  Compilation compilation{world, diagnostics, options, {}};
  return ProgramCompiler(compilation).compile(programs);
}

}  // namespace tl::lang
