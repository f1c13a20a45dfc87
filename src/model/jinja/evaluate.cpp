#include "model/jinja/evaluate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/jinja/text.h"

namespace tl::jinja {

namespace {

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

// The same failure with its place.
void rethrow_at(const Error& error, Place place) {
  if (const auto* placed = dynamic_cast<const PlacedError*>(&error)) throw *placed;
  std::string_view what = error.what();
  if (what.starts_with("template: ")) what.remove_prefix(std::string_view("template: ").size());
  fail_at(error.kind, place, what);
}

void undefined_error(const Value& value) {
  const std::string_view what = value.missing();
  if (what.find(' ') != std::string_view::npos) fail(what);  // says itself what is missing
  fail("'", what, "' is undefined");
}

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
  const auto size = static_cast<std::int64_t>(length_of(budget(), value));
  const auto clamped = [&](std::optional<std::int64_t> at, std::int64_t otherwise) {
    if (!at) return otherwise;
    const std::int64_t from_start = *at < 0 ? (*at < -size ? -1 : *at + size) : *at;
    return step > 0 ? std::clamp<std::int64_t>(from_start, 0, size)
                    : std::clamp<std::int64_t>(from_start, -1, size - 1);
  };
  const std::int64_t start = clamped(parts[0], step > 0 ? 0 : size - 1);
  const std::int64_t stop = clamped(parts[1], step > 0 ? size : -1);
  if (value.is_string() && step == 1) {  // a view: long texts are cut often
    const std::string_view text = value.string();
    if (start >= stop) return Value("");
    const std::size_t from = character_offset(text, static_cast<std::size_t>(start));
    const std::string_view rest = text.substr(from);
    return Value(rest.substr(0, character_offset(rest, static_cast<std::size_t>(stop - start))));
  }
  const std::vector<Value> items = items_of(heap_, value);
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

}  // namespace tl::jinja
