// Instructions that are not worth a place in the loop: what they do takes longer than the call.
#include "lang/builtins/utility.h"
#include "lang/knowledge.h"
#include "lang/types.h"
#include "lang/vm.h"

namespace tl::lang {

const Instruction* Vm::rare(const Instruction& i, const Function& function, Value* const* spaces,
                            const Instruction* pc) {
  const auto at = [&](Operand o) -> Value& { return spaces[o >> kWhereShift][o & kPlaceMask]; };
  switch (i.op) {
    case Op::NewMap: {
      Value map = make<MapObject>();
      auto& object = map.mutate<MapObject>();
      Value* const first = &at(i.b);
      for (std::size_t p = 0; p < i.c; ++p) {
        object.slot(first[2 * p]) = std::move(first[2 * p + 1]);
        first[2 * p].clear();
      }
      at(i.a) = std::move(map);
      break;
    }
    case Op::NewRange: {
      const std::int64_t first = bound_of(at(i.b));
      const std::int64_t last = bound_of(at(i.c));
      if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
      if ((i.temporary & kTemporaryC) != 0) at(i.c).clear();
      at(i.a) = make<RangeObject>(first, last);
      break;
    }
    case Op::NewStruct: {
      const LabelScope scope(label(function, pc - 1));  // lists may become tensors
      at(i.a) = new_struct(function.structs[i.c], &at(i.b));
      break;
    }
    case Op::Index: {
      const LabelScope scope(label(function, pc - 1));
      Value* from = &at(i.b);
      const Value base = std::move(*from++);
      std::vector<IndexArg> where;
      for (const bool is_slice : function.indices[i.c].slices) {
        IndexArg argument;
        argument.is_slice = is_slice;
        if (is_slice) {
          argument.start = std::move(from[0]);
          argument.stop = std::move(from[1]);
          argument.step = std::move(from[2]);
          from += 3;
        } else {
          argument.index = std::move(*from++);
        }
        where.push_back(std::move(argument));
      }
      at(i.a) = index(*this, base, where);
      break;
    }
    case Op::GetPath: {
      const LabelScope scope(label(function, pc - 1));
      const Path& way = function.paths[i.c];
      Value* const indices = &at(i.b);
      indices[way.registers] = get_path(at(i.a), function, way, indices);
      break;
    }
    case Op::Closure: {
      const auto& [callee, count] = function.closures[i.c];
      Value* const first = &at(i.b);
      std::vector<Value> captured;
      for (std::uint32_t p = 0; p < count; ++p) captured.push_back(std::move(first[p]));
      at(i.a) = make<FunctionObject>(callee, std::move(captured));
      break;
    }
    case Op::CheckSet:
      if (at(i.a).is(Kind::Missing) || at(i.a).is(Kind::Void)) {
        throw RuntimeError(join("Undefined variable: ", at(i.b).string()));
      }
      break;
    case Op::CheckType: {
      DimNames names;
      const TypeInfo& type = function.types[i.c];
      if (!convert(*this, at(i.a), type, names)) {
        throw type_error("'", at(i.b).string(), "' is ", type.text, ", not ", type_name(at(i.a)));
      }
      break;
    }
    case Op::Match:
      if (!match(function.patterns[i.b], at(i.a), spaces[0])) pc = function.code.data() + i.c;
      break;
    case Op::MatchFail:
      throw RuntimeError(join("match expression: no arm matched ", quoted(at(i.a))));
    case Op::Declare: {
      const LabelScope scope(label(function, pc - 1));
      const Declared& d = function.declared[i.c];
      Value* from = &at(i.b);
      Dims shape;
      for (const std::int64_t size : d.sizes) {
        shape.push_back(size == -2 ? bound_of(*from++) : size);
      }
      Value result = declared_tensor(*this, d.name, d.dtype, shape, d.has_value ? from : nullptr);
      if (d.has_value) from->clear();
      if (d.frozen && result.tensor().has_history()) result = Value(result.tensor().detach());
      at(i.a) = std::move(result);
      break;
    }
    case Op::Learnable: {
      const LabelScope scope(label(function, pc - 1));
      if ((i.temporary & kAssigns) != 0) {
        if (is_parameter(at(i.a))) {
          Learning::assign(*this, at(i.a), at(i.b));
        } else {  // declared once more since, as something else
          at(i.a) = at(i.b);
        }
        if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
        break;
      }
      if (i.a != i.b) at(i.a).clear();  // a parameter that was there has the name no more
      Value result = learning->add(*this, at(i.c).string(), at(i.b));
      if ((i.temporary & kTemporaryB) != 0) at(i.b).clear();
      at(i.a) = std::move(result);
      break;
    }
    case Op::LearnBegin:
      if (learning->trainer) throw invalid_operation("a learn block inside another");
      knowledge->make_parameters(*this);
      learning->trainer =
          std::make_unique<Trainer>(*this, function.learns[i.c], label(function, pc - 1).text());
      break;
    case Op::LearnSet:
      learning->trainer->set(i.b, at(i.a));
      at(i.a).clear();
      break;
    case Op::LearnStart:
      training = true;
      dropout = learning->trainer->dropout().value_or(kDropout);
      history_.emplace(true);
      learning->trainer->begin();
      break;
    case Op::LearnValue:
      at(i.a) = i.b == 0 ? Value(learning->trainer->epochs()) : learning->trainer->optimizer();
      break;
    case Op::LearnNext:
      if (!learning->trainer->next_epoch()) pc = function.code.data() + i.c;
      break;
    case Op::LearnStep: {
      const LabelScope scope(label(function, pc - 1));
      const Value loss = std::move(at(i.a));
      at(i.a).clear();
      learning->trainer->learn_from(loss);
      break;
    }
    case Op::LearnEnd:
      if (i.a == 0) learning->trainer->end();
      stop_learning();
      break;
    case Op::Panic: {
      Value* const first = &at(i.a);
      throw RuntimeError(join("panic: ", print_text(std::span<const Value>(first, i.b))));
    }
    default:
      throw RuntimeError("an instruction that nothing runs");  // the loop has the others
  }
  return pc;
}

}  // namespace tl::lang
