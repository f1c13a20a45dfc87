// The loop over instructions.
#include <cmath>
#include <exception>
#include <new>

#include "lang/builtins/utility.h"
#include "lang/knowledge.h"
#include "lang/types.h"
#include "lang/vm.h"

namespace tl::lang {

namespace {

constexpr int kMaxDepth = 200;

// Integers among floats become floats.
std::vector<Value> take_elements(Value* first, std::size_t count) {
  bool has_float = false;
  bool has_int = false;
  bool others = false;
  for (std::size_t i = 0; i < count; ++i) {
    has_float |= first[i].is(Kind::Float);
    has_int |= first[i].is(Kind::Int);
    others |= !first[i].is_number();
  }
  std::vector<Value> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (has_float && has_int && !others && first[i].is(Kind::Int)) {
      values.emplace_back(first[i].number());
      first[i].clear();
    } else {
      values.push_back(std::move(first[i]));
    }
  }
  return values;
}

std::vector<Value> parts_of(const Value& whole) {
  if (whole.is(Kind::Tuple)) return whole.as<TupleObject>().values;
  if (whole.is(Kind::List)) return whole.as<ListObject>().values;
  throw type_error("only a tuple or a list can be taken apart, not ", type_name(whole));
}

}  // namespace

// Comparison of two numbers; anything else is left to binary().
#define TL_COMPARE(OP, SYMBOL)                           \
  case Op::OP: {                                         \
    const Value& x = at(i.b);                            \
    const Value& y = at(i.c);                            \
    if (x.is(Kind::Int) && y.is(Kind::Int)) {            \
      at(i.a).set(x.integer() SYMBOL y.integer());       \
    } else if (x.is(Kind::Float) && y.is(Kind::Float)) { \
      at(i.a).set(x.real() SYMBOL y.real());             \
    } else {                                             \
      slow_binary(i);                                    \
    }                                                    \
    break;                                               \
  }
#define TL_UNLESS(OP, SYMBOL)                            \
  case Op::Unless##OP: {                                 \
    const Value& x = at(i.a);                            \
    const Value& y = at(i.b);                            \
    bool holds = false;                                  \
    if (x.is(Kind::Int) && y.is(Kind::Int)) {            \
      holds = x.integer() SYMBOL y.integer();            \
    } else if (x.is(Kind::Float) && y.is(Kind::Float)) { \
      holds = x.real() SYMBOL y.real();                  \
    } else {                                             \
      holds = slow_compare(i, ast::BinaryOp::OP);        \
    }                                                    \
    if (!holds) pc = code + i.c;                         \
    break;                                               \
  }

Value Vm::execute(std::size_t entry) {
  struct Depth {
    explicit Depth(Vm& machine) : vm(machine), before(activate(&machine)) { ++vm.depth_; }
    ~Depth() {
      --vm.depth_;
      activate(before);
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Vm& vm;
    Vm* before;
  };
  const Depth depth(*this);
  const Function* function = nullptr;
  const Instruction* code = nullptr;
  const Instruction* pc = nullptr;
  Value* spaces[4] = {};
  const auto load = [&] {
    const CallFrame& frame = frames_.back();
    function = frame.function;
    code = function->code.data();
    pc = frame.pc;
    spaces[0] = frame.base;
    spaces[1] = const_cast<Value*>(function->constants.data());
    spaces[2] = globals_.get();
    spaces[3] = const_cast<Value*>(frame.captured);
  };
  const auto at = [&](Operand o) -> Value& { return spaces[o >> kWhereShift][o & kPlaceMask]; };
  const auto give_up = [&](const Instruction& i) {  // temporaries that were read
    if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
    if ((i.temporary & kTemporaryC) != 0) at(i.c).clear();
  };
  const auto slow_binary = [&](const Instruction& i) {
    const LabelScope scope(label(*function, pc - 1));
    const auto op = static_cast<ast::BinaryOp>(static_cast<int>(i.op) - static_cast<int>(Op::Add));
    Value result = binary(*this, op, at(i.b), at(i.c));
    give_up(i);
    at(i.a) = std::move(result);
  };
  const auto slow_compare = [&](const Instruction& i, ast::BinaryOp op) {
    const LabelScope scope(label(*function, pc - 1));
    const bool holds = truth(binary(*this, op, at(i.a), at(i.b)), "if");
    if ((i.temporary & kTemporaryA) != 0) at(i.a).clear();
    if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
    return holds;
  };
  const auto slow_unary = [&](const Instruction& i, ast::UnaryOp op) {
    const LabelScope scope(label(*function, pc - 1));
    Value result = unary(*this, op, at(i.b));
    if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
    at(i.a) = std::move(result);
  };
  const auto back = [&](Operand target) {
    if (code + target < pc && --budget_ < 0) steps_used();
    pc = code + target;
  };
  const auto enter_function = [&](const Function& f, Value* base, const Value* captured,
                                  Operand result, Operand self, bool clears_callee) {
    frames_.back().pc = pc - 1;
    push(f, base, captured, result, self, clears_callee);
    load();
  };

  try {
    if (depth_ > kMaxDepth) throw RuntimeError("Stack overflow: calls through builtins too deep");
    load();
    for (;;) {
      const Instruction& i = *pc++;
      switch (i.op) {
        case Op::Move:
          if ((i.temporary & kTemporaryB) != 0) {
            at(i.a) = std::move(at(i.b));
          } else {
            at(i.a) = at(i.b);
            if (shares != nullptr) tell_share(at(i.a), *function, pc - 1);
          }
          if (!pending_drops_.empty()) run_drops();
          break;
        case Op::Missing:
          at(i.a) = Value::missing();
          break;
        case Op::Add: {
          const Value& x = at(i.b);
          const Value& y = at(i.c);
          std::int64_t sum = 0;
          if (x.is(Kind::Int) && y.is(Kind::Int) &&
              !__builtin_add_overflow(x.integer(), y.integer(), &sum)) {
            at(i.a).set(sum);
          } else if (x.is(Kind::Float) && y.is(Kind::Float)) {
            at(i.a).set(x.real() + y.real());
          } else {
            slow_binary(i);
          }
          break;
        }
        case Op::Subtract: {
          const Value& x = at(i.b);
          const Value& y = at(i.c);
          std::int64_t difference = 0;
          if (x.is(Kind::Int) && y.is(Kind::Int) &&
              !__builtin_sub_overflow(x.integer(), y.integer(), &difference)) {
            at(i.a).set(difference);
          } else if (x.is(Kind::Float) && y.is(Kind::Float)) {
            at(i.a).set(x.real() - y.real());
          } else {
            slow_binary(i);
          }
          break;
        }
        case Op::Multiply: {
          const Value& x = at(i.b);
          const Value& y = at(i.c);
          std::int64_t product = 0;
          if (x.is(Kind::Int) && y.is(Kind::Int) &&
              !__builtin_mul_overflow(x.integer(), y.integer(), &product)) {
            at(i.a).set(product);
          } else if (x.is(Kind::Float) && y.is(Kind::Float)) {
            at(i.a).set(x.real() * y.real());
          } else {
            slow_binary(i);
          }
          break;
        }
        case Op::Divide: {
          const Value& x = at(i.b);
          const Value& y = at(i.c);
          if (x.is(Kind::Float) && y.is(Kind::Float) && y.real() != 0) {
            at(i.a).set(x.real() / y.real());
          } else if (x.is(Kind::Int) && y.is(Kind::Int) && y.integer() > 0) {
            at(i.a).set(x.integer() / y.integer());
          } else {
            slow_binary(i);
          }
          break;
        }
        case Op::Remainder: {
          const Value& x = at(i.b);
          const Value& y = at(i.c);
          if (x.is(Kind::Int) && y.is(Kind::Int) && y.integer() > 0) {
            at(i.a).set(x.integer() % y.integer());
          } else {
            slow_binary(i);
          }
          break;
        }
          TL_COMPARE(Equal, ==)
          TL_COMPARE(NotEqual, !=)
          TL_COMPARE(Less, <)
          TL_COMPARE(LessEqual, <=)
          TL_COMPARE(Greater, >)
          TL_COMPARE(GreaterEqual, >=)
        case Op::And:
        case Op::Or: {
          // The left side did not decide, so with truth values the right one is the result.
          if (at(i.b).is(Kind::Bool) && at(i.c).is(Kind::Bool)) {
            at(i.a).set(at(i.c).boolean());
          } else {
            slow_binary(i);
          }
          break;
        }
        case Op::Power:
        case Op::MatrixProduct:
        case Op::Hadamard:
        case Op::Outer:
        case Op::Approx:
          slow_binary(i);
          break;
        case Op::Negate: {
          const Value& x = at(i.b);
          if (x.is(Kind::Float)) {
            at(i.a).set(-x.real());
          } else {
            slow_unary(i, ast::UnaryOp::Negate);
          }
          break;
        }
        case Op::Not: {
          const Value& x = at(i.b);
          if (x.is(Kind::Bool)) {
            at(i.a).set(!x.boolean());
          } else {
            slow_unary(i, ast::UnaryOp::Not);
          }
          break;
        }
        case Op::Inverse:
          slow_unary(i, ast::UnaryOp::Inverse);
          break;
        case Op::ToInteger:
        case Op::ToFloat: {
          Value result = cast(at(i.b), i.op == Op::ToInteger);
          if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
          at(i.a) = std::move(result);
          break;
        }
        case Op::Jump:
          back(i.c);
          break;
        case Op::JumpUnless: {
          Value& x = at(i.a);
          bool holds = false;
          if (x.is(Kind::Bool)) {
            holds = x.boolean();
          } else {
            holds = truth(x, kConditionNames[i.b]);
            if ((i.temporary & kTemporaryA) != 0) x.clear();
          }
          if (!holds) back(i.c);
          break;
        }
        case Op::JumpIfFalse:
          if (at(i.a).is(Kind::Bool) && !at(i.a).boolean()) pc = code + i.c;
          break;
        case Op::JumpIfTrue:
          if (at(i.a).is(Kind::Bool) && at(i.a).boolean()) pc = code + i.c;
          break;
          TL_UNLESS(Equal, ==)
          TL_UNLESS(NotEqual, !=)
          TL_UNLESS(Less, <)
          TL_UNLESS(LessEqual, <=)
          TL_UNLESS(Greater, >)
          TL_UNLESS(GreaterEqual, >=)
        case Op::JumpIfGiven:
          if (!at(i.a).is(Kind::Missing)) pc = code + i.c;
          break;
        case Op::JumpIfStruct:
          if (at(i.a).is(Kind::Struct)) pc = code + i.c;
          break;
        case Op::RangeStart: {
          const std::int64_t first = bound_of(at(i.b));
          const std::int64_t last = bound_of(at(i.c));
          give_up(i);
          Value* const state = &at(i.a);
          state[0].set(first);
          state[1].set(last);
          break;
        }
        case Op::RangeNext: {
          Value* const state = &at(i.a);
          const std::int64_t next = state[0].integer();
          if (next < state[1].integer()) {
            state[2].set(next);
            state[0].set(next + 1);
          } else {
            pc = code + i.c;
          }
          break;
        }
        case Op::IterateStart: {
          Value iterator = Iterator::over(*this, at(i.b));
          if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
          at(i.a) = std::move(iterator);
          break;
        }
        case Op::IterateNext: {
          Value* const state = &at(i.a);
          if (!static_cast<Iterator*>(state[0].object())->next(state[1])) pc = code + i.c;
          break;
        }
        case Op::Unpack: {
          std::vector<Value> parts = parts_of(at(i.b));
          if (parts.size() != i.c) {
            throw type_error(i.c, " names for ", parts.size(), " values");
          }
          at(i.b).clear();
          Value* const to = &at(i.a);
          for (std::size_t p = 0; p < parts.size(); ++p) to[p] = std::move(parts[p]);
          break;
        }
        case Op::NewList: {
          Value list = make<ListObject>(take_elements(&at(i.b), i.c));
          at(i.a) = std::move(list);
          break;
        }
        case Op::NewTuple: {
          Value* const first = &at(i.b);
          std::vector<Value> values;
          values.reserve(i.c);
          for (std::size_t p = 0; p < i.c; ++p) values.push_back(std::move(first[p]));
          at(i.a) = make<TupleObject>(std::move(values));
          break;
        }
        case Op::Append:
          at(i.a).mutate<ListObject>().values.push_back(std::move(at(i.b)));
          break;
        case Op::IndexOne: {
          const Value& base = at(i.b);
          const Value& where = at(i.c);
          if (base.is(Kind::List) && where.is(Kind::Int)) {
            const auto& values = base.as<ListObject>().values;
            const auto place = static_cast<std::uint64_t>(where.integer());
            if (place < values.size()) {
              Value element = values[place];
              if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
              at(i.a) = std::move(element);
              break;
            }
          }
          const LabelScope scope(label(*function, pc - 1));
          IndexArg argument;
          argument.index = where;
          Value result = index(*this, base, std::span(&argument, 1));
          give_up(i);
          at(i.a) = std::move(result);
          break;
        }
        case Op::GetField: {
          const Value& base = at(i.b);
          Value result;
          if (base.is(Kind::Struct)) {
            const auto& object = base.as<StructObject>();
            const int field = object.type->field(function->names[i.c]);
            if (field >= 0) result = object.fields[static_cast<std::size_t>(field)];
            if (field < 0) result = get_field(base, function->names[i.c]);
          } else {
            const LabelScope scope(label(*function, pc - 1));
            result = get_field(base, function->names[i.c]);
          }
          if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
          at(i.a) = std::move(result);
          break;
        }
        case Op::SetIndexOne: {
          Value& base = at(i.a);
          const Value& where = at(i.b);
          // A copy, so that a list put into itself is the list it was.
          Value value = at(i.c);
          if ((i.temporary & kTemporaryC) != 0) at(i.c).clear();
          if (base.is(Kind::List) && where.is(Kind::Int)) {
            const auto place = static_cast<std::uint64_t>(where.integer());
            if (place < base.as<ListObject>().values.size()) {
              base.mutate<ListObject>().values[place] = std::move(value);
              break;
            }
          }
          const LabelScope scope(label(*function, pc - 1));
          IndexArg argument;
          argument.index = where;
          assign_index(*this, base, std::span(&argument, 1), value);
          if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
          break;
        }
        case Op::SetPath: {
          const LabelScope scope(label(*function, pc - 1));
          set_path(at(i.a), *function, function->paths[i.c], &at(i.b));
          if (!pending_drops_.empty()) run_drops();
          break;
        }
        case Op::Call: {
          const CallSite& site = function->calls[i.c];
          enter_function(*site.function, &at(i.b), nullptr, i.a, kNowhere, false);
          break;
        }
        case Op::CallBuiltin: {
          const CallSite& site = function->calls[i.c];
          frames_.back().pc = pc - 1;
          Value* const values = &at(i.b);
          Value result;
          {
            const LabelScope scope(label(*function, pc - 1));
            call_builtin(*site.builtin, values, site.count, nullptr, false, result);
          }
          for (std::uint32_t a = site.count; a-- > 0;) values[a].clear();
          at(i.a) = std::move(result);
          if (!pending_drops_.empty()) run_drops();
          break;
        }
        case Op::CallValue: {
          const CallSite& site = function->calls[i.c];
          Value* const callee = &at(i.b);
          if (!callee->is(Kind::Function)) {
            throw type_error("only functions can be called, not ", type_name(*callee));
          }
          const auto& object = callee->as<FunctionObject>();
          if (object.function != nullptr) {
            prepare_arguments(*object.function, site, callee + 1, false);
            enter_function(*object.function, callee + 1, object.captured.data(), i.a, kNowhere,
                           true);
            break;
          }
          frames_.back().pc = pc - 1;
          Value result;
          {
            const LabelScope scope(label(*function, pc - 1));
            call_builtin(*object.builtin, callee + 1, site.count, &site, false, result);
          }
          for (std::uint32_t a = site.count + 1; a-- > 0;) callee[a].clear();
          at(i.a) = std::move(result);
          break;
        }
        case Op::CallMethod:
        case Op::CallMutating: {
          const CallSite& site = function->calls[i.c];
          Value* const receiver = &at(i.b);
          const bool is_place = i.op == Op::CallMutating;
          frames_.back().pc = pc - 1;
          Value result;
          Entry entered;
          {
            const LabelScope scope(label(*function, pc - 1));
            entered = call_method(*function, site, receiver, is_place ? &at(i.a) : nullptr, result);
          }
          const Operand result_at = is_place ? site.result : i.a;
          if (entered.function != nullptr) {
            enter_function(*entered.function, entered.base, entered.captured, result_at,
                           entered.self, entered.base != receiver);
            break;
          }
          at(result_at) = std::move(result);
          if (!pending_drops_.empty()) run_drops();
          break;
        }
        case Op::Enter:
          enter(*function, spaces[0]);
          break;
        case Op::Return:
        case Op::ReturnVoid: {
          Value result;
          if (i.op == Op::Return) {
            const bool is_self = i.a == 0 && frames_.back().self != kNowhere;
            if (where(i.a) == Where::Register && !is_self) {
              result = std::move(at(i.a));  // the frame ends here
            } else {
              result = at(i.a);
            }
          }
          if (function->result.kind != ast::Type::Kind::Any) check_result(*function, result);
          const CallFrame frame = frames_.back();
          Value self;
          if (frame.self != kNowhere) self = std::move(frame.base[0]);
          // The last first, so that structs are dropped in the order of the language.
          for (std::uint32_t r = function->registers; r-- > 0;) {
            if (!frame.base[r].is_object()) continue;
            frame.base[r].clear();
            if (!pending_drops_.empty()) {
              frames_.back().pc = pc - 1;
              run_drops();
            }
          }
          if (frame.clears_callee) frame.base[-1].clear();
          frames_.pop_back();
          if (frames_.size() == entry) return result;
          load();
          ++pc;
          at(frame.result) = std::move(result);
          if (frame.self != kNowhere) at(frame.self) = std::move(self);
          break;
        }
        case Op::Clear: {
          Value* last = &at(i.a);
          for (Operand n = 0; n < i.b; ++n, --last) {
            if (!last->is_object()) continue;
            last->clear();
            if (!pending_drops_.empty()) {
              frames_.back().pc = pc - 1;
              run_drops();
            }
          }
          break;
        }
        default:
          pc = rare(i, *function, spaces, pc);
      }
    }
  } catch (const ProgramError&) {
    unwind(entry);
    throw;
  } catch (const std::exception& e) {
    std::string message = e.what();
    if (dynamic_cast<const Error*>(&e) != nullptr) message = join("Tensor error: ", message);
    if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) message = "Out of host memory";
    std::exception_ptr thrown;
    try {
      fail(message, pc - 1);
    } catch (...) {
      thrown = std::current_exception();
    }
    unwind(entry);
    std::rethrow_exception(thrown);
  }
}

#undef TL_COMPARE
#undef TL_UNLESS

}  // namespace tl::lang
