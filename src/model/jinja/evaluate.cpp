#include "model/jinja/evaluate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/jinja/text.h"

namespace tl::jinja {

namespace {

// The same failure with its place.
[[noreturn]] void rethrow_at(const Error& error, Place place) {
  if (const auto* placed = dynamic_cast<const PlacedError*>(&error)) throw *placed;
  std::string_view what = error.what();
  if (what.starts_with("template: ")) what.remove_prefix(std::string_view("template: ").size());
  fail_at(error.kind, place, what);
}

class Macro final : public Function {
 public:
  Macro(const Stmt& stmt, Scope* scope) : stmt_(stmt), scope_(scope) {}
  Value call(Evaluator& evaluator, const Arguments& arguments) override {
    return evaluator.call_macro(stmt_, scope_, arguments, caller);
  }
  std::string_view name() const override { return stmt_.text.empty() ? "caller" : stmt_.text; }

  Value caller;  // for the time of a call block

 private:
  const Stmt& stmt_;
  Scope* scope_;
};

[[noreturn]] void undefined_error(const Value& value) {
  const std::string_view what = value.missing();
  if (what.find(' ') != std::string_view::npos) fail(what);  // says itself what is missing
  fail("'", what, "' is undefined");
}

void want_numbers(std::string_view op, const Value& a, const Value& b) {
  for (const Value* each : {&a, &b}) {
    if (each->is_undefined()) undefined_error(*each);
  }
  if (!a.is_number() || !b.is_number()) {
    fail("'", op, "' does not go with a ", type_name(a), " and a ", type_name(b));
  }
}

[[noreturn]] void overflow() { fail("a whole number has more than 64 bits"); }

// By reference: the order in which arguments are evaluated is not known.
Value checked(bool overflows, const std::int64_t& result) {
  if (overflows) overflow();
  return Value(result);
}

Value whole_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (base == 0 || base == 1 || (base == -1 && exponent % 2 == 0))
      return Value(base == -1 ? result : result * base);
    if (__builtin_mul_overflow(result, base, &result)) overflow();
  }
  return Value(result);
}

Value arithmetic(std::string_view op, const Value& a, const Value& b) {
  want_numbers(op, a, b);
  if (a.is_whole() && b.is_whole() && op != "/" && !(op == "**" && b.integer() < 0)) {
    const std::int64_t x = a.integer(), y = b.integer();
    std::int64_t result = 0;
    if (op == "+") return checked(__builtin_add_overflow(x, y, &result), result);
    if (op == "-") return checked(__builtin_sub_overflow(x, y, &result), result);
    if (op == "*") return checked(__builtin_mul_overflow(x, y, &result), result);
    if (op == "**") return whole_power(x, y);
    if (y == 0) fail("division by zero");
    if (y == -1) {  // the smallest number has no opposite
      return op == "%" ? Value(std::int64_t{0})
                       : checked(__builtin_sub_overflow(std::int64_t{0}, x, &result), result);
    }
    const std::int64_t quotient =
        x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);  // towards minus infinity
    return Value(op == "//" ? quotient : x - quotient * y);
  }
  const double x = a.real(), y = b.real();
  if (op == "+") return Value(x + y);
  if (op == "-") return Value(x - y);
  if (op == "*") return Value(x * y);
  if (op == "**") return Value(std::pow(x, y));
  if (y == 0) fail("division by zero");
  if (op == "/") return Value(x / y);
  if (op == "//") return Value(std::floor(x / y));
  const double rest = std::fmod(x, y);
  return Value(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
}

Value repeated(Heap& heap, const Value& value, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (value.is_string()) {
    const std::string_view text = value.string();
    if (text.empty() || times == 0) return Value("");
    if (times > heap.budget().limits().bytes / text.size())
      heap.budget().take(heap.budget().limits().bytes + 1);
    heap.budget().take(times * text.size());
    std::string out;
    out.reserve(times * text.size());
    for (std::size_t i = 0; i < times; ++i) out += text;
    return heap.string(out);
  }
  std::vector<Value> items;
  for (std::size_t i = 0; i < times && !value.list().items.empty(); ++i) {
    heap.budget().take(value.list().items.size() * sizeof(Value));
    items.insert(items.end(), value.list().items.begin(), value.list().items.end());
  }
  return heap.list(std::move(items), value.is(Kind::Tuple));
}

Value loop_attribute(Heap& heap, Loop& loop, std::string_view name) {
  const auto number = [](std::size_t value) { return Value(static_cast<std::int64_t>(value)); };
  const std::size_t size = loop.items->size();
  if (name == "index") return number(loop.index + 1);
  if (name == "index0") return number(loop.index);
  if (name == "revindex") return number(size - loop.index);
  if (name == "revindex0") return number(size - loop.index - 1);
  if (name == "first") return Value(loop.index == 0);
  if (name == "last") return Value(loop.index + 1 == size);
  if (name == "length") return number(size);
  if (name == "depth") return number(1);  // of loops that call themselves
  if (name == "depth0") return number(0);
  if (name == "previtem")
    return loop.index == 0 ? Value::undefined("there is no previous item")
                           : (*loop.items)[loop.index - 1];
  if (name == "nextitem")
    return loop.index + 1 == size ? Value::undefined("there is no next item")
                                  : (*loop.items)[loop.index + 1];
  return find_method(heap, Value(&loop), name);
}

// A place in a sequence as Python counts: from the end when it is negative.
std::optional<std::size_t> position(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index);
}

}  // namespace

const Value* Scope::find_here(std::string_view name) const {
  for (const auto& [each, value] : names) {
    if (each == name) return &value;
  }
  return nullptr;
}

// ---- arguments of functions

Bound::Bound(std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> names)
    : function_(function), names_(names), values_(names.size(), nullptr) {
  if (arguments.values.size() > names.size()) {
    fail("'", function, "' takes at most ", names.size(), " arguments, not ",
         arguments.values.size());
  }
  for (std::size_t i = 0; i < arguments.values.size(); ++i) values_[i] = &arguments.values[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) fail("'", function, "' has no argument '", name, "'");
    const auto index = static_cast<std::size_t>(found - names_.begin());
    if (values_[index] != nullptr) fail("'", function, "' was given '", name, "' twice");
    values_[index] = &value;
  }
}

const Value& Bound::required(std::size_t index) const {
  if (!has(index)) fail("'", function_, "' needs the argument '", names_[index], "'");
  return *values_[index];
}

bool Bound::truth(std::size_t index, bool otherwise) const {
  return has(index) ? jinja::truth(*values_[index]) : otherwise;
}

std::int64_t Bound::integer(std::size_t index, std::int64_t otherwise) const {
  if (!has(index)) return otherwise;
  if (!values_[index]->is_whole()) {
    fail("'", function_, "': the argument '", names_[index], "' is a ", type_name(*values_[index]),
         ", not a whole number");
  }
  return values_[index]->integer();
}

std::string_view Bound::string(std::size_t index, std::string_view otherwise) const {
  if (!has(index)) return otherwise;
  if (!values_[index]->is_string()) {
    fail("'", function_, "': the argument '", names_[index], "' is a ", type_name(*values_[index]),
         ", not a text");
  }
  return values_[index]->string();
}

// ---- the evaluator

class Evaluator::Level {
 public:
  explicit Level(Evaluator& evaluator) : evaluator_(evaluator) {
    evaluator.budget().step();
    const std::size_t most = evaluator.budget().limits().depth;
    if (++evaluator.depth_ > most) {
      --evaluator.depth_;
      fail("evaluations are nested more than ", most, " deep");
    }
  }
  ~Level() { --evaluator_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Evaluator& evaluator_;
};

Evaluator::Evaluator(Heap& heap, Clock clock)
    : heap_(heap), clock_(std::move(clock)), scope_(heap.make<Scope>(nullptr)) {
  define_globals(heap, *this);
}

void Evaluator::define(std::string_view name, const Value& value) { set_here(name, value); }

std::string Evaluator::render(const Body& body) {
  scope_ = heap_.make<Scope>(scope_);
  run(body);
  return std::move(out_);
}

Value Evaluator::lookup(std::string_view name) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (const Value* value = scope->find_here(name)) return *value;
  }
  return Value::undefined(name);
}

void Evaluator::set_here(std::string_view name, const Value& value) {
  for (auto& [each, old] : scope_->names) {
    if (each == name) {
      old = value;
      return;
    }
  }
  heap_.budget().take(sizeof(std::pair<std::string_view, Value>));
  scope_->names.emplace_back(name, value);
}

// ---- expressions

Value Evaluator::evaluate(const Expr& expr) {
  const Level level(*this);
  try {
    return evaluate_inside(expr);
  } catch (const Error& error) {
    rethrow_at(error, expr.place);
  }
}

Value Evaluator::evaluate_inside(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::Constant:
      return expr.value;
    case ExprKind::String:
      return Value(std::string_view(expr.text));
    case ExprKind::Name:
      return lookup(expr.text);
    case ExprKind::List:
    case ExprKind::Tuple: {
      std::vector<Value> items;
      for (const ExprPtr& each : expr.items) items.push_back(evaluate(*each));
      return heap_.list(std::move(items), expr.kind == ExprKind::Tuple);
    }
    case ExprKind::Dict: {
      const Value made = heap_.dict();
      for (std::size_t i = 0; i < expr.items.size(); i += 2) {
        const Value key = evaluate(*expr.items[i]);
        made.dict().set(heap_, key, evaluate(*expr.items[i + 1]));
      }
      return made;
    }
    case ExprKind::Attribute:
      return attribute(evaluate(*expr.items[0]), expr.text);
    case ExprKind::Item: {
      const Value value = evaluate(*expr.items[0]);
      return item(value, evaluate(*expr.items[1]));
    }
    case ExprKind::Slice:
      return slice(expr);
    case ExprKind::Call:
      return evaluate_call(expr);
    case ExprKind::Filter: {
      if (expr.filter == nullptr)
        fail_at(ErrorKind::Unsupported, expr.place, "the filter '", expr.text, "' is not known");
      const Value value = expr.items[0] == nullptr ? filter_input_ : evaluate(*expr.items[0]);
      return expr.filter(*this, value, arguments(expr));
    }
    case ExprKind::Test: {
      if (expr.test == nullptr)
        fail_at(ErrorKind::Unsupported, expr.place, "the test '", expr.text, "' is not known");
      const Value value = evaluate(*expr.items[0]);
      return Value(expr.test(*this, value, arguments(expr)));
    }
    case ExprKind::Not:
      return Value(!truth(evaluate(*expr.items[0])));
    case ExprKind::Negative: {
      const Value value = evaluate(*expr.items[0]);
      return value.is(Kind::Float) ? Value(-value.real())
                                   : binary("-", Value(std::int64_t{0}), value);
    }
    case ExprKind::Positive:
      return binary("+", Value(std::int64_t{0}), evaluate(*expr.items[0]));
    case ExprKind::And: {
      const Value left = evaluate(*expr.items[0]);
      return truth(left) ? evaluate(*expr.items[1]) : left;
    }
    case ExprKind::Or: {
      const Value left = evaluate(*expr.items[0]);
      return truth(left) ? left : evaluate(*expr.items[1]);
    }
    case ExprKind::Binary: {
      const Value left = evaluate(*expr.items[0]);
      return binary(expr.text, left, evaluate(*expr.items[1]));
    }
    case ExprKind::Concat: {
      std::string out;
      for (const ExprPtr& each : expr.items) append_text(budget(), out, evaluate(*each));
      return heap_.string(out);
    }
    case ExprKind::Compare:
      return compare_chain(expr);
    case ExprKind::Condition:
      if (truth(evaluate(*expr.items[1]))) return evaluate(*expr.items[0]);
      return expr.items[2] == nullptr ? Value::undefined("an 'if' without 'else' gave nothing")
                                      : evaluate(*expr.items[2]);
  }
  return {};
}

Value Evaluator::binary(std::string_view op, const Value& a, const Value& b) {
  if (op == "+") {
    if (a.is_string() && b.is_string()) {
      std::string out(a.string());
      append_text(budget(), out, b);
      return heap_.string(out);
    }
    if (a.is_list() && a.kind() == b.kind()) {
      std::vector<Value> items = items_of(heap_, a);
      items.insert(items.end(), b.list().items.begin(), b.list().items.end());
      return heap_.list(std::move(items), a.is(Kind::Tuple));
    }
  }
  if (op == "*") {
    if ((a.is_string() || a.is_list()) && b.is_whole()) return repeated(heap_, a, b.integer());
    if ((b.is_string() || b.is_list()) && a.is_whole()) return repeated(heap_, b, a.integer());
  }
  if (op == "%" && a.is_string()) return percent_format(*this, a.string(), b);
  return arithmetic(op, a, b);
}

bool Evaluator::compare_pair(std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return equal(budget(), a, b);
  if (op == "!=") return !equal(budget(), a, b);
  if (op == "in") return contains(budget(), b, a);
  if (op == "not in") return !contains(budget(), b, a);
  if ((a.is(Kind::Float) && std::isnan(a.real())) || (b.is(Kind::Float) && std::isnan(b.real())))
    return false;
  const int order = compare(budget(), a, b);
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order >= 0;
}

Value Evaluator::compare_chain(const Expr& expr) {
  Value left = evaluate(*expr.items[0]);
  for (std::size_t i = 0; i < expr.operators.size(); ++i) {
    const Value right = evaluate(*expr.items[i + 1]);
    if (!compare_pair(expr.operators[i], left, right)) return Value(false);
    left = right;
  }
  return Value(true);
}

Value Evaluator::attribute(const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::Undefined:
      undefined_error(value);
    case Kind::Namespace: {
      budget().step(value.space().members.size() / 8);
      for (const auto& [each, member] : value.space().members) {
        if (each == name) return member;
      }
      break;
    }
    case Kind::Loop:
      return loop_attribute(heap_, value.loop(), name);
    default: {
      const Value method = find_method(heap_, value, name);
      if (!method.is_undefined()) return method;
      if (!value.is_dict()) break;
      if (const Value* found = value.dict().find(budget(), Value(name))) return *found;
    }
  }
  return Value::undefined(
      heap_.string(join("'", type_name(value), " object' has no attribute '", name, "'")).string());
}

Value Evaluator::item(const Value& value, const Value& key) {
  if (value.is_undefined()) undefined_error(value);
  if (value.is_dict()) {
    if (const Value* found = value.dict().find(budget(), key)) return *found;
  } else if (key.is_whole() && value.is_list()) {
    const auto& items = value.list().items;
    if (const auto at = position(key.integer(), items.size())) return items[*at];
  } else if (key.is_whole() && value.is_string()) {
    const std::string_view text = value.string();
    const std::int64_t index = key.integer();
    const std::size_t size = index < 0 ? length_of(budget(), value) : text.size();
    if (const auto at = position(index, size)) {
      const std::size_t offset = character_offset(text, *at);
      budget().look_at(offset);
      if (offset < text.size())
        return Value(text.substr(offset, character_length(text.substr(offset))));
    }
  }
  if (key.is_string()) return attribute(value, key.string());
  std::string shown;
  append_repr(budget(), shown, key);
  return Value::undefined(
      heap_.string(join("'", type_name(value), " object' has no item ", shown)).string());
}

Value Evaluator::slice(const Expr& expr) {
  const Value value = evaluate(*expr.items[0]);
  if (value.is_undefined()) undefined_error(value);
  if (!value.is_string() && !value.is_list())
    fail("a ", type_name(value), " cannot be cut into slices");
  std::optional<std::int64_t> parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (expr.items[i + 1] == nullptr) continue;
    const Value part = evaluate(*expr.items[i + 1]);
    if (part.is_none()) continue;
    if (!part.is_whole()) fail("a slice goes by whole numbers, not by a ", type_name(part));
    parts[i] = part.integer();
  }
  const std::int64_t step = parts[2].value_or(1);
  if (step == 0) fail("a slice cannot go in steps of zero");
  std::vector<Value> items = items_of(heap_, value);
  const auto size = static_cast<std::int64_t>(items.size());
  const auto clamped = [&](std::optional<std::int64_t> at, std::int64_t otherwise) {
    if (!at) return otherwise;
    const std::int64_t from_start = *at < 0 ? (*at < -size ? -1 : *at + size) : *at;
    return step > 0 ? std::clamp<std::int64_t>(from_start, 0, size)
                    : std::clamp<std::int64_t>(from_start, -1, size - 1);
  };
  const std::int64_t start = clamped(parts[0], step > 0 ? 0 : size - 1);
  const std::int64_t stop = clamped(parts[1], step > 0 ? size : -1);
  std::vector<Value> taken;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    taken.push_back(items[static_cast<std::size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  if (!value.is_string()) return heap_.list(std::move(taken), value.is(Kind::Tuple));
  std::string text;
  for (const Value& each : taken) text += each.string();
  return heap_.string(text);
}

Arguments Evaluator::arguments(const Expr& expr) {
  Arguments out;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Value value = evaluate(*expr.items[i]);
    switch (expr.stars[i - 1]) {
      case Star::None:
        out.values.push_back(value);
        break;
      case Star::List:
        for (const Value& each : items_of(heap_, value)) out.values.push_back(each);
        break;
      case Star::Dict:
        if (!value.is_dict()) fail("'**' needs a dict, not a ", type_name(value));
        for (const Dict::Entry& entry : value.dict().entries) {
          if (!entry.key.is_string()) fail("names of arguments are texts");
          out.named.emplace_back(entry.key.string(), entry.value);
        }
    }
  }
  for (const auto& [name, value] : expr.named) out.named.emplace_back(name, evaluate(*value));
  budget().take(out.values.size() * sizeof(Value));
  return out;
}

Value Evaluator::evaluate_call(const Expr& expr) {
  const Value function = evaluate(*expr.items[0]);
  return call(function, arguments(expr));
}

Value Evaluator::call(const Value& function, const Arguments& arguments) {
  if (function.is_undefined()) undefined_error(function);
  if (!function.is(Kind::Function)) fail("a ", type_name(function), " cannot be called");
  return function.function().call(*this, arguments);
}

Value Evaluator::filtered(const Expr* filters, const Value& input) {
  if (filters == nullptr) return input;
  const Value before = std::exchange(filter_input_, input);
  const Value out = evaluate(*filters);
  filter_input_ = before;
  return out;
}

// ---- statements

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
