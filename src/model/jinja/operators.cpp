// What + - * / // % and ** do.
#include <algorithm>
#include <cmath>

#include "model/jinja/evaluate.h"

namespace tl::jinja {

namespace {

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

}  // namespace

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

}  // namespace tl::jinja
