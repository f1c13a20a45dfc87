// The compiler's parts; compile.h is what others use.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lang/ast.h"
#include "lang/bytecode.h"
#include "lang/compile.h"
#include "lang/diagnostic.h"
#include "lang/logic_calls.h"
#include "lang/world.h"

namespace tl::lang {

// What all functions of a program share while they are compiled.
struct Compilation {
  World& world;
  std::vector<Diagnostic>& diagnostics;
  CompileOptions options;
  // Types that are about to be declared.
  std::set<std::string, std::less<>> entity_names;

  void error(const Span& span, std::string message, std::string hint = {});
  void warning(const Span& span, std::string message, std::string hint = {});
  TypeInfo type(const ast::Type& type, const std::vector<ast::Name>& type_params = {});
  Function* new_function(std::string name, const Span& span);
};

// One function on its way to instructions. Registers are a stack: variables of open scopes, and
// above them what parts of the expression at hand gave.
class FunctionCompiler {
 public:
  FunctionCompiler(Compilation& compilation, Function& function, FunctionCompiler* outer = nullptr)
      : c_(compilation), f_(function), outer_(outer) {}

  void compile_body(const ast::FunctionBody& body, const std::vector<ast::Name>& type_params);
  // A block whose variables are the program's: main, a test. `gives_value`: the last expression is
  // returned.
  void compile_global_block(const ast::Block& block, bool gives_value);
  void compile_declarations(const std::vector<const ast::Declaration*>& declarations);
  void compile_equations(const std::vector<const ast::RuleDeclaration*>& equations);

 private:
  struct Variable {
    std::string name;
    Operand at;
    bool learnable = false;  // declared so
  };
  struct Scope {
    std::vector<Variable> variables;
    std::uint32_t first;  // register
    bool global = false;
  };
  struct Loop {
    std::size_t scopes;                          // open when it began
    std::vector<std::size_t> breaks, continues;  // jumps to be completed
  };

  // ---- emitting: the place of the instruction comes back
  std::size_t put(const Instruction& instruction, const Span& span);
  // The same with temporaries marked; only where a, b and c all are operands.
  std::size_t emit(Op op, const Span& span, Operand a = 0, Operand b = 0, Operand c = 0);
  void patch(std::size_t jump);  // to here
  void patch(std::size_t jump, std::size_t target);
  std::size_t here() const { return f_.code.size(); }
  Operand constant(Value value);
  Operand text_constant(std::string_view text);
  std::uint32_t name_index(std::string_view name);
  Operand temporary();  // a fresh register
  std::uint32_t mark() const { return top_; }
  void reset(std::uint32_t mark) { top_ = mark; }
  bool is_temporary(Operand o) const;  // not a variable, constant or global
  std::uint8_t flags(Operand a, Operand b, Operand c) const;
  Operand bad(const Span& span, std::string message, std::string hint = {});

  // ---- scopes
  void open_scope(bool global = false);
  void close_scope(const Span& span);
  void clear_scopes(std::size_t down_to, const Span& span);
  Operand declare(const std::string& name, const Span& span);
  std::optional<Operand> declared_here(std::string_view name) const;  // in the innermost scope
  Operand declare_at(const std::string& name, Operand at);
  std::optional<Operand> find_local(std::string_view name) const;
  std::optional<Operand> find_variable(const std::string& name, const Span& span);
  std::vector<std::string_view> known_names() const;
  // Directly in main or a test, where only what is declared above can be seen.
  bool in_program_block() const {
    return !scopes_.empty() && scopes_.front().global && !c_.options.at_prompt && !is_declarations_;
  }
  bool in_global_scope() const { return scopes_.size() == 1 && scopes_.back().global; }

  // ---- statements
  void block(const ast::Block& block);  // in a scope of its own
  void statements(const std::vector<ast::StatementPtr>& list);
  void statement(const ast::Statement& statement);
  void let(const ast::LetStatement& s);
  void assign(const ast::AssignStatement& s);
  void assign_name(const ast::NameExpr& target, const ast::AssignStatement& s);
  void assign_place(const ast::Expr& target, const ast::AssignStatement& s);
  void assign_tuple(const ast::TupleExpr& target, const ast::AssignStatement& s);
  void if_statement(const ast::IfStatement& s);
  void for_statement(const ast::ForStatement& s);
  void for_range(const ast::ForStatement& s, const ast::Expr* first, const ast::Expr& last);
  void while_statement(const ast::WhileStatement& s);
  void loop_statement(const ast::LoopStatement& s);
  void finish_loop(std::size_t continue_to);
  void jump_out(const ast::Statement& s, bool is_break);
  void panic(const ast::PanicStatement& s);
  void returned(const ast::ReturnStatement& s);
  // The last statement of a function: its value is the result.
  void last_statement(const ast::Statement& s);
  void last_block(const ast::Block& block);
  void bind_loop_variables(const std::vector<ast::Name>& names, Operand element, const Span& span);
  void learn(const ast::LearnStatement& s);
  void name_parameter(const std::string& name, const ast::Expr& value);
  void learn_by_epochs(const ast::LearnStatement& s);
  void learn_settings(const ast::LearnStatement& s);
  bool knows_setting(const ast::Setting& setting);
  void leave_learn(const Span& span);  // by return, break or continue
  void make_learnable(Operand at, std::string_view name, const Span& span);
  // What is declared learnable stays so, whatever it is set to: the elements go into the parameter.
  bool stays_learnable(Operand at, std::string_view name) const;
  void set_parameter(Operand at, std::string_view name, Operand value, const Span& span);
  void declare_tensor(const ast::Name& name, const ast::Type& type, const ast::Expr* value,
                      const Span& span);

  // ---- expressions
  // Where the value is: a variable's own place, a constant, or a fresh register.
  Operand expression(const ast::Expr& e);
  // The same in a register that nothing else uses.
  Operand own(const ast::Expr& e);
  void into(const ast::Expr& e, Operand to);
  // Left of an operator: copied when what comes to the right could change the variable.
  Operand left_of(const ast::Expr& e, const ast::Expr& right);
  // Jumps when the condition does not hold; the jumps are to be completed.
  void unless(const ast::Expr& e, std::vector<std::size_t>& jumps, int what);
  void logical(const ast::BinaryExpr& e, Operand to);
  void name_value(const ast::NameExpr& e, Operand to);
  void match(const ast::MatchExpr& e, Operand to);
  void if_value(const ast::IfExpr& e, Operand to);
  void block_value(const ast::Block& block, Operand to);
  void comprehension(const ast::ComprehensionExpr& e, Operand to);
  void lambda(const ast::LambdaExpr& e, Operand to);
  void struct_literal(const ast::StructExpr& e, Operand to);
  void index(const ast::IndexExpr& e, Operand to);
  void index_items(const std::vector<ast::IndexItem>& items, IndexShape& shape);
  CompiledPattern pattern(const ast::Pattern& p);
  void values(const std::vector<ast::ExprPtr>& list);  // in consecutive registers

  // ---- calls
  void call(const ast::CallExpr& e, Operand to);
  void method(const ast::MethodExpr& e, Operand to);
  void path_call(const ast::PathExpr& e, Operand to);
  void call_function(const Function& function, const std::vector<ast::Argument>& arguments,
                     const Span& span, Operand to);
  void call_builtin(const Builtin& builtin, const std::vector<ast::Argument>& arguments,
                    const Span& span, Operand to);
  void call_value(const ast::Expr& callee, const std::vector<ast::Argument>& arguments,
                  const Span& span, Operand to);
  // The arguments in the order of the parameters, nullptr for those not given, and after them those
  // beyond: how many there may be is the caller's to say. False: reported.
  bool arrange(std::string_view who, const std::vector<std::string_view>& params,
               const std::vector<ast::Argument>& arguments, std::vector<const ast::Expr*>& ordered);
  // A place that can be written: a variable and the way from there. False: it is none.
  bool place(const ast::Expr& e, Operand& root, std::vector<const ast::Expr*>& way);
  std::uint32_t path(const std::vector<const ast::Expr*>& way);  // evaluates the indices
  const StructType* find_struct(std::string_view name) const;

  // ---- logic: logic_statements.cpp, logic_equation.cpp
  struct SiteInProgress {
    logic::RelationId relation = 0;
    bool is_query = false;
    bool all_open = false;    // every name is a variable
    bool is_truth = false;    // true or false: names of parameters are entities
    Operand first = 0;        // its number; the values it asks for come after it
    std::uint32_t count = 0;  // of them
  };
  std::optional<logic::RelationId> find_relation(const std::string& name);
  const ast::CallExpr* relation_call(const ast::Expr& e);
  const ast::CallExpr* fact_call(const ast::Expr& e);
  bool is_program_name(const std::string& name);
  bool has_meaning(const std::string& name);
  bool has_query_name(const ast::Expr& e);
  LogicTerm value_term(const ast::Expr& e, SiteInProgress& site);
  LogicTerm name_term(const ast::NameExpr& e, std::size_t column, SiteInProgress& site);
  LogicTerm argument_term(const ast::Expr& e, std::size_t column, SiteInProgress& site);
  LogicTerm condition_term(const ast::Expr& e, SiteInProgress& site);
  std::optional<SiteInProgress> logic_site(const ast::Name& name,
                                           const std::vector<const ast::Expr*>& arguments,
                                           const std::vector<const ast::Expr*>& where,
                                           const Span& span, bool is_query, bool all_open = false,
                                           bool is_truth = false);
  void check_where(const ast::Expr& e, const std::set<std::string>& names);
  void call_logic(LogicCall call, Operand first, std::uint32_t count, const Span& span, Operand to);
  void call_logic(LogicCall call, const std::vector<Value>& values, const Span& span, Operand to);
  void site_call(LogicCall call, const ast::Expr& atom, const std::vector<const ast::Expr*>& where,
                 bool is_query, const Span& span, Operand to, std::optional<Operand> before = {});
  void depth(const ast::Expr* e, const Span& span);
  void score(const ast::CallExpr& e, Operand to);
  void fact(const ast::CallExpr& e);
  void query(const ast::Query& q, LogicCall call, std::optional<ast::InferMethod> method);
  void infer(const ast::InferStatement& s);
  void with(const ast::WithStatement& s);
  bool logic_expression(const ast::CallExpr& e, Operand to);
  bool logic_argument(const Builtin& builtin, const ast::Expr& e, Operand to);
  bool logic_name(const ast::NameExpr& e, Operand to);
  bool logic_index(const ast::IndexExpr& e, Operand to);
  void place_value(const ast::Expr& e);
  std::string places(const std::vector<ast::IndexItem>& items);
  void embedding_index(const ast::IndexExpr& e, const ast::NameExpr& base, bool grows, Operand to);
  bool logic_assign_part(const ast::Expr& target, const ast::AssignStatement& s);
  bool logic_assign(const ast::NameExpr& target, const ast::AssignStatement& s);
  void declare_entities(const ast::EntityDeclaration& d);
  void declare_embedding(const ast::EmbeddingDeclaration& d);
  void equation(const ast::EquationStatement& s);
  void equation_value(const ast::Expr& left, const ast::Expr& right, Operand to);
  friend class EquationCompiler;

  Compilation& c_;
  Function& f_;
  FunctionCompiler* outer_;
  std::vector<Scope> scopes_;
  std::vector<Loop> loops_;
  std::uint32_t top_ = 0;
  std::map<std::string, Operand, std::less<>> captured_;
  std::vector<std::pair<std::string, Operand>> captures_;  // name and place in the outer function
  bool is_declarations_ = false;
  bool in_learn_ = false;
  std::size_t loops_around_learn_ = 0;
  std::string naming_;  // the variable that the expression at hand is for
};

// Y[i, j]: the left side of a tensor equation?
bool is_equation_head(const ast::Expr& e);

// May evaluating it change a variable?
bool has_effects(const ast::Expr& e);

}  // namespace tl::lang
