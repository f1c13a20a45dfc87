// Runs a template.
#pragma once

#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/jinja/ast.h"
#include "model/jinja/value.h"

namespace tl::jinja {

// Names and their values; what is not here is looked for further out.
struct Scope : Object {
  explicit Scope(Scope* outer) : parent(outer) {}
  Scope* parent;
  std::vector<std::pair<std::string_view, Value>> names;

  const Value* find_here(std::string_view name) const;
};

// The arguments of a function, matched with its parameters. Throws, naming the function, for too
// many, for an unknown name and for one given twice.
class Bound {
 public:
  Bound(std::string_view function, const Arguments& arguments,
        std::initializer_list<std::string_view> names);

  bool has(std::size_t index) const { return values_[index] != nullptr; }
  const Value& required(std::size_t index) const;
  Value value(std::size_t index, const Value& otherwise) const {
    return has(index) ? *values_[index] : otherwise;
  }
  bool truth(std::size_t index, bool otherwise) const;
  std::int64_t integer(std::size_t index, std::int64_t otherwise) const;
  std::string_view string(std::size_t index, std::string_view otherwise) const;

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

class Evaluator {
 public:
  using Clock = std::function<std::time_t()>;

  Evaluator(Heap& heap, Clock clock);

  void define(std::string_view name, const Value& value);
  std::string render(const Body& body);

  // ---- for filters, tests and functions
  Heap& heap() noexcept { return heap_; }
  Budget& budget() noexcept { return heap_.budget(); }
  std::time_t now() const { return clock_(); }
  Value call(const Value& function, const Arguments& arguments);
  // value.name, and value[key]; Undefined where there is none.
  Value attribute(const Value& value, std::string_view name);
  Value item(const Value& value, const Value& key);
  std::string_view text(const Value& value) { return text_of(heap_, value); }
  Value binary(std::string_view op, const Value& a, const Value& b);
  // A macro's body with its arguments, as a text.
  Value call_macro(const Stmt& macro, Scope* scope, const Arguments& given, const Value& caller);

 private:
  enum class Flow { On, Break, Continue };
  class Level;

  Value evaluate(const Expr& expr);
  Value evaluate_inside(const Expr& expr);
  Value slice(const Expr& expr);
  Value evaluate_call(const Expr& expr);
  Value compare_chain(const Expr& expr);
  bool compare_pair(std::string_view op, const Value& a, const Value& b);
  Arguments arguments(const Expr& expr);
  Value lookup(std::string_view name) const;

  Flow run(const Body& body);
  Flow run(const Stmt& stmt);
  Flow run_if(const Stmt& stmt);
  Flow run_for(const Stmt& stmt);
  void run_macro(const Stmt& stmt);
  void run_call(const Stmt& stmt);
  Flow run_with(const Stmt& stmt);
  void assign(const Target& target, const Value& value);
  void set_here(std::string_view name, const Value& value);
  // What `body` writes, as a text of its own.
  std::string capture(const std::function<void()>& body);
  Value filtered(const Expr* filters, const Value& input);

  Heap& heap_;
  Clock clock_;
  Scope* scope_;
  std::string out_;
  std::size_t depth_ = 0;
  Value filter_input_;  // what a filter without a value of its own works on
};

// Counts how deep evaluations are inside of each other.
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

// The same failure with its place in the template, unless it has one already.
[[noreturn]] void rethrow_at(const Error& error, Place place);
[[noreturn]] void undefined_error(const Value& value);

// Methods of texts, lists and dicts; Undefined where there is none of that name.
Value find_method(Heap& heap, const Value& value, std::string_view name);
// namespace, range, raise_exception and the others.
void define_globals(Heap& heap, Evaluator& evaluator);

// Python's "%s has %d" % values, and str.format().
Value percent_format(Evaluator& evaluator, std::string_view format, const Value& values);
Value brace_format(Evaluator& evaluator, std::string_view format, const Arguments& arguments);

}  // namespace tl::jinja
