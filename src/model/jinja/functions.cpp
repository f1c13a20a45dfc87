// What templates find without having been given it: namespace, range, raise_exception and so on.
#include <array>
#include <ctime>

#include "model/jinja/evaluate.h"

namespace tl::jinja {

namespace {

constexpr std::int64_t kLongestRange = 100'000;

using Body = Value (*)(Evaluator& evaluator, const Arguments& arguments);

class Builtin final : public Function {
 public:
  Builtin(std::string_view name, Body body) : name_(name), body_(body) {}
  Value call(Evaluator& evaluator, const Arguments& arguments) override {
    return body_(evaluator, arguments);
  }
  std::string_view name() const override { return name_; }

 private:
  std::string_view name_;
  Body body_;
};

// The first call gives nothing, the others the separator.
class Joiner final : public Function {
 public:
  explicit Joiner(Value separator) : separator_(separator) {}
  Value call(Evaluator&, const Arguments&) override {
    return std::exchange(used_, true) ? separator_ : Value("");
  }
  std::string_view name() const override { return "joiner"; }

 private:
  Value separator_;
  bool used_ = false;
};

Value make_namespace(Evaluator& evaluator, const Arguments& arguments) {
  auto* space = evaluator.heap().make<Namespace>();
  const auto add = [&](std::string_view name, const Value& value) {
    evaluator.budget().take(sizeof(space->members[0]));
    std::erase_if(space->members, [&](const auto& each) { return each.first == name; });
    space->members.emplace_back(name, value);
  };
  if (arguments.values.size() > 1)
    fail("'namespace' takes at most one value beside the named ones");
  for (const Value& given : arguments.values) {
    if (!given.is_dict()) fail("'namespace' needs a dict, not a ", type_name(given));
    for (const Dict::Entry& entry : given.dict().entries)
      add(evaluator.text(entry.key), entry.value);
  }
  for (const auto& [name, value] : arguments.named) add(name, value);
  return Value(space);
}

Value make_dict(Evaluator& evaluator, const Arguments& arguments) {
  const Value made = evaluator.heap().dict();
  if (arguments.values.size() > 1) fail("'dict' takes at most one value beside the named ones");
  for (const Value& given : arguments.values) {
    if (given.is_dict()) {
      for (const Dict::Entry& entry : given.dict().entries)
        made.dict().set(evaluator.heap(), entry.key, entry.value);
      continue;
    }
    for (const Value& pair : items_of(evaluator.heap(), given)) {
      const std::vector<Value> both = items_of(evaluator.heap(), pair);
      if (both.size() != 2) fail("'dict' needs pairs of a key and a value");
      made.dict().set(evaluator.heap(), both[0], both[1]);
    }
  }
  for (const auto& [name, value] : arguments.named)
    made.dict().set(evaluator.heap(), Value(name), value);
  return made;
}

Value range(Evaluator& evaluator, const Arguments& arguments) {
  const Bound bound("range", arguments, {"start", "stop", "step"});
  std::int64_t start = 0;
  bound.required(0);
  std::int64_t stop = bound.integer(0, 0);
  if (bound.has(1)) {
    start = stop;
    stop = bound.integer(1, 0);
  }
  const std::int64_t step = bound.integer(2, 1);
  if (step == 0) fail("'range' cannot go in steps of zero");
  std::vector<Value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(items.size()) == kLongestRange) {
      fail("'range' gives at most ", kLongestRange, " numbers");
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return evaluator.heap().list(std::move(items));
}

Value raise_exception(Evaluator& evaluator, const Arguments& arguments) {
  const Bound bound("raise_exception", arguments, {"message"});
  throw Error(ErrorKind::BadArgument, "template", evaluator.text(bound.required(0)));
}

Value strftime_now(Evaluator& evaluator, const Arguments& arguments) {
  const Bound bound("strftime_now", arguments, {"format"});
  const std::string format(bound.string(0, ""));
  bound.required(0);
  const std::time_t now = evaluator.now();
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 1024> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), format.c_str(), &parts);
  if (size == 0 && !format.empty())
    fail("'strftime_now' cannot write '", format.substr(0, 40), "'");
  return evaluator.heap().string({text.data(), size});
}

Value make_joiner(Evaluator& evaluator, const Arguments& arguments) {
  const Bound bound("joiner", arguments, {"sep"});
  return Value(evaluator.heap().make<Joiner>(Value(bound.string(0, ", "))));
}

struct Row {
  std::string_view name;
  Body body;
};
constexpr Row kFunctions[] = {{"dict", make_dict},
                              {"joiner", make_joiner},
                              {"namespace", make_namespace},
                              {"raise_exception", raise_exception},
                              {"range", range},
                              {"strftime_now", strftime_now}};

}  // namespace

void define_globals(Heap& heap, Evaluator& evaluator) {
  for (const Row& row : kFunctions)
    evaluator.define(row.name, Value(heap.make<Builtin>(row.name, row.body)));
}

}  // namespace tl::jinja
