// Blocks of a template: conditions, loops, assignments, macros.
#include <algorithm>
#include <utility>

#include "model/jinja/evaluate.h"

namespace tl::jinja {

namespace {

class Macro final : public Function {
 public:
  Macro(const Stmt& stmt, Scope* scope) : stmt_(stmt), scope_(scope) {}
  Value call(Evaluator& evaluator, const Arguments& arguments) override {
    return evaluator.call_macro(stmt_, scope_, arguments, caller);
  }
  std::string_view name() const override {
    return stmt_.text.empty() ? std::string_view("caller") : std::string_view(stmt_.text);
  }

  Value caller;  // for the time of a call block

 private:
  const Stmt& stmt_;
  Scope* scope_;
};

}  // namespace

Evaluator::Flow Evaluator::run(const Body& body) {
  for (const auto& stmt : body) {
    const Flow flow = run(*stmt);
    if (flow != Flow::On) return flow;
  }
  return Flow::On;
}

Evaluator::Flow Evaluator::run(const Stmt& stmt) {
  const Level level(*this);
  switch (stmt.kind) {
    case StmtKind::Data:
      budget().take(stmt.text.size());
      out_ += stmt.text;
      break;
    case StmtKind::Output:
      append_text(budget(), out_, evaluate(*stmt.value));
      break;
    case StmtKind::If:
      return run_if(stmt);
    case StmtKind::For:
      return run_for(stmt);
    case StmtKind::Set:
      assign(stmt.target, evaluate(*stmt.value));
      break;
    case StmtKind::SetBlock: {
      const Value text = heap_.string(capture([&] { run(stmt.body); }));
      assign(stmt.target, filtered(stmt.value.get(), text));
      break;
    }
    case StmtKind::Macro:
      run_macro(stmt);
      break;
    case StmtKind::CallBlock:
      run_call(stmt);
      break;
    case StmtKind::FilterBlock: {
      const Value text = heap_.string(capture([&] { run(stmt.body); }));
      append_text(budget(), out_, filtered(stmt.value.get(), text));
      break;
    }
    case StmtKind::With:
    case StmtKind::Scope:
      return run_with(stmt);
    case StmtKind::Break:
      return Flow::Break;
    case StmtKind::Continue:
      return Flow::Continue;
  }
  return Flow::On;
}

std::string Evaluator::capture(const std::function<void()>& body) {
  std::string outside = std::exchange(out_, {});
  Scope* const scope = std::exchange(scope_, heap_.make<Scope>(scope_));
  body();
  scope_ = scope;
  return std::exchange(out_, std::move(outside));
}

Evaluator::Flow Evaluator::run_if(const Stmt& stmt) {
  for (const Branch& branch : stmt.branches) {
    if (branch.condition == nullptr || truth(evaluate(*branch.condition))) return run(branch.body);
  }
  return Flow::On;
}

Evaluator::Flow Evaluator::run_for(const Stmt& stmt) {
  const Value over = evaluate(*stmt.value);
  std::vector<Value> items;
  try {
    items = items_of(heap_, over);
  } catch (const Error& error) {
    rethrow_at(error, stmt.place);
  }
  Scope* const outer = scope_;
  scope_ = heap_.make<Scope>(outer);
  if (stmt.condition != nullptr) {
    std::vector<Value> chosen;
    for (const Value& each : items) {
      scope_->names.clear();
      assign(stmt.target, each);
      if (truth(evaluate(*stmt.condition))) chosen.push_back(each);
    }
    items = std::move(chosen);
  }
  Flow flow = Flow::On;
  if (items.empty()) {
    scope_->names.clear();
    flow = run(stmt.otherwise);
  } else {
    Loop& loop = *heap_.make<Loop>();
    // The items stay in the heap: a macro may keep the loop's name.
    loop.items = &heap_.list(std::move(items)).list().items;
    for (; loop.index < loop.items->size(); ++loop.index) {
      budget().step();
      scope_->names.clear();
      set_here("loop", Value(&loop));
      assign(stmt.target, (*loop.items)[loop.index]);
      if (run(stmt.body) == Flow::Break) break;
    }
    if (loop.index == loop.items->size()) --loop.index;
  }
  scope_ = outer;
  return flow;
}

void Evaluator::run_macro(const Stmt& stmt) {
  set_here(stmt.text, Value(heap_.make<Macro>(stmt, scope_)));
}

// The body of the block is what the macro calls as caller().
void Evaluator::run_call(const Stmt& stmt) {
  const Value function = evaluate(*stmt.value->items[0]);
  Arguments given = arguments(*stmt.value);
  const Value caller(heap_.make<Macro>(stmt, scope_));
  auto* macro = function.is(Kind::Function) ? dynamic_cast<Macro*>(&function.function()) : nullptr;
  try {
    if (macro == nullptr) fail("'call' needs a macro, not a ", type_name(function));
    const Value before = std::exchange(macro->caller, caller);
    const Value text = call(function, given);
    macro->caller = before;
    append_text(budget(), out_, text);
  } catch (const Error& error) {
    rethrow_at(error, stmt.place);
  }
}

Evaluator::Flow Evaluator::run_with(const Stmt& stmt) {
  std::vector<Value> values;  // all of them are of the scope outside
  for (const auto& [target, value] : stmt.assignments) values.push_back(evaluate(*value));
  Scope* const outer = scope_;
  scope_ = heap_.make<Scope>(outer);
  for (std::size_t i = 0; i < values.size(); ++i) assign(stmt.assignments[i].first, values[i]);
  const Flow flow = run(stmt.body);
  scope_ = outer;
  return flow;
}

Value Evaluator::call_macro(const Stmt& macro, Scope* scope, const Arguments& given,
                            const Value& caller) {
  const Level level(*this);
  Scope* const before = std::exchange(scope_, heap_.make<Scope>(scope));
  const std::string_view name =
      macro.text.empty() ? std::string_view("caller") : std::string_view(macro.text);
  std::vector<bool> used(given.named.size(), false);
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    const auto named = std::find_if(given.named.begin(), given.named.end(),
                                    [&](const auto& each) { return each.first == parameter.name; });
    if (named != given.named.end()) {
      if (i < given.values.size()) fail("'", name, "' was given '", parameter.name, "' twice");
      used[static_cast<std::size_t>(named - given.named.begin())] = true;
      set_here(parameter.name, named->second);
    } else if (i < given.values.size()) {
      set_here(parameter.name, given.values[i]);
    } else if (parameter.otherwise != nullptr) {
      set_here(parameter.name, evaluate(*parameter.otherwise));
    } else {
      set_here(parameter.name, Value::undefined(parameter.name));
    }
  }
  if (!macro.uses_varargs && given.values.size() > macro.parameters.size()) {
    fail("'", name, "' takes at most ", macro.parameters.size(), " arguments, not ",
         given.values.size());
  }
  std::vector<Value> more;
  for (std::size_t i = macro.parameters.size(); i < given.values.size(); ++i)
    more.push_back(given.values[i]);
  const Value others = heap_.dict();
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    if (!macro.uses_kwargs) fail("'", name, "' has no argument '", given.named[i].first, "'");
    others.dict().set(heap_, Value(given.named[i].first), given.named[i].second);
  }
  set_here("varargs", heap_.list(std::move(more), true));
  set_here("kwargs", others);
  if (!caller.is_undefined()) set_here("caller", caller);
  std::string outside = std::exchange(out_, {});
  run(macro.body);
  std::string text = std::exchange(out_, std::move(outside));
  scope_ = before;
  return heap_.string(text);
}

void Evaluator::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const std::vector<Value> items = items_of(heap_, value);
    if (items.size() != target.parts.size()) {
      fail_at(ErrorKind::BadArgument, target.place, items.size(), " values cannot be given to ",
              target.parts.size(), " names");
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) {
    set_here(target.name, value);
    return;
  }
  const Value space = lookup(target.name);
  if (!space.is(Kind::Namespace)) {
    fail_at(ErrorKind::BadArgument, target.place, "'", target.name,
            "' is not a namespace, so its attribute '", target.attribute, "' cannot be set");
  }
  budget().step(space.space().members.size() / 8);
  for (auto& [name, member] : space.space().members) {
    if (name == target.attribute) {
      member = value;
      return;
    }
  }
  heap_.budget().take(sizeof(std::pair<std::string_view, Value>));
  space.space().members.emplace_back(target.attribute, value);
}

}  // namespace tl::jinja
