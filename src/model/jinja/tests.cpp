// The tests of templates: value is test.
#include <algorithm>

#include "model/jinja/ast.h"
#include "model/jinja/evaluate.h"
#include "model/jinja/text.h"

namespace tl::jinja {

namespace {

struct Row {
  std::string_view name;
  TestFunction test;
};

const Value& only(std::string_view name, const Arguments& arguments) {
  if (arguments.values.size() != 1 || !arguments.named.empty())
    fail("the test '", name, "' needs one argument");
  return arguments.values[0];
}

std::int64_t whole(std::string_view name, const Value& value) {
  if (!value.is_whole())
    fail("the test '", name, "' needs a whole number, not a ", type_name(value));
  return value.integer();
}

template <Kind kind>
bool is_kind(Evaluator&, const Value& value, const Arguments&) {
  return value.is(kind);
}

bool is_defined(Evaluator&, const Value& value, const Arguments&) { return !value.is_undefined(); }
bool is_true(Evaluator&, const Value& value, const Arguments&) {
  return value.is(Kind::Bool) && value.boolean();
}
bool is_false(Evaluator&, const Value& value, const Arguments&) {
  return value.is(Kind::Bool) && !value.boolean();
}
bool is_number(Evaluator&, const Value& value, const Arguments&) { return value.is_number(); }
// What is undefined is all of these in Python: it has the methods, and they fail.
bool is_sequence(Evaluator&, const Value& value, const Arguments&) {
  return value.is_undefined() || value.is_string() || value.is_list() || value.is_dict();
}
bool is_callable(Evaluator&, const Value& value, const Arguments&) {
  return value.is_undefined() || value.is(Kind::Function);
}

bool is_odd(Evaluator&, const Value& value, const Arguments&) {
  return whole("odd", value) % 2 != 0;
}
bool is_even(Evaluator&, const Value& value, const Arguments&) {
  return whole("even", value) % 2 == 0;
}
bool is_divisible(Evaluator&, const Value& value, const Arguments& arguments) {
  const std::int64_t by = whole("divisibleby", only("divisibleby", arguments));
  if (by == 0) fail("division by zero");
  return by == -1 || whole("divisibleby", value) % by == 0;
}

bool is_lower(Evaluator& evaluator, const Value& value, const Arguments&) {
  const Value text(evaluator.text(value));
  return truth(evaluator.call(evaluator.attribute(text, "islower"), {}));
}
bool is_upper(Evaluator& evaluator, const Value& value, const Arguments&) {
  const Value text(evaluator.text(value));
  return truth(evaluator.call(evaluator.attribute(text, "isupper"), {}));
}

bool is_in(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return contains(evaluator.budget(), only("in", arguments), value);
}
bool is_same(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Value& other = only("sameas", arguments);
  return value.kind() == other.kind() && equal(evaluator.budget(), value, other);
}

bool is_equal(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return equal(evaluator.budget(), value, only("eq", arguments));
}
bool is_unequal(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return !equal(evaluator.budget(), value, only("ne", arguments));
}
bool is_less(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return compare(evaluator.budget(), value, only("lt", arguments)) < 0;
}
bool is_at_most(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return compare(evaluator.budget(), value, only("le", arguments)) <= 0;
}
bool is_more(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return compare(evaluator.budget(), value, only("gt", arguments)) > 0;
}
bool is_at_least(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  return compare(evaluator.budget(), value, only("ge", arguments)) >= 0;
}

bool is_filter(Evaluator&, const Value& value, const Arguments&) {
  return value.is_string() && find_filter(value.string()) != nullptr;
}
bool is_test(Evaluator&, const Value& value, const Arguments&) {
  return value.is_string() && find_test(value.string()) != nullptr;
}

constexpr Row kTests[] = {{"!=", is_unequal},
                          {"<", is_less},
                          {"<=", is_at_most},
                          {"==", is_equal},
                          {">", is_more},
                          {">=", is_at_least},
                          {"boolean", is_kind<Kind::Bool>},
                          {"callable", is_callable},
                          {"defined", is_defined},
                          {"divisibleby", is_divisible},
                          {"eq", is_equal},
                          {"equalto", is_equal},
                          {"even", is_even},
                          {"false", is_false},
                          {"filter", is_filter},
                          {"float", is_kind<Kind::Float>},
                          {"ge", is_at_least},
                          {"greaterthan", is_more},
                          {"gt", is_more},
                          {"in", is_in},
                          {"integer", is_kind<Kind::Int>},
                          {"iterable", is_sequence},
                          {"le", is_at_most},
                          {"lessthan", is_less},
                          {"lower", is_lower},
                          {"lt", is_less},
                          {"mapping", is_kind<Kind::Dict>},
                          {"ne", is_unequal},
                          {"none", is_kind<Kind::None>},
                          {"number", is_number},
                          {"odd", is_odd},
                          {"sameas", is_same},
                          {"sequence", is_sequence},
                          {"string", is_kind<Kind::String>},
                          {"test", is_test},
                          {"true", is_true},
                          {"undefined", is_kind<Kind::Undefined>},
                          {"upper", is_upper}};

}  // namespace

TestFunction find_test(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [&](const Row& row) { return row.name == name; });
  return found == std::end(kTests) ? nullptr : found->test;
}

}  // namespace tl::jinja
