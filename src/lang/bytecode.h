// What a program is compiled to: functions of short instructions over registers.
//
// An operand is 16 bits: the upper two say where (the function's registers, its constants, the
// program's globals, what a function value captured), the others which. A call's arguments are
// consecutive registers and become the first registers of the function called, so nothing is moved.
// An operand that holds the result of a part of an expression is marked as temporary: it is read
// once, and what it held is given up then.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/ast.h"
#include "lang/builtin.h"
#include "lang/value.h"
#include "tl/runtime/label.h"

namespace tl::lang {

using Operand = std::uint16_t;
enum class Where : std::uint8_t { Register, Constant, Global, Captured };
inline constexpr int kWhereShift = 14;
inline constexpr Operand kPlaceMask = (1U << kWhereShift) - 1;
inline constexpr std::size_t kMaxPlaces = kPlaceMask;
constexpr Operand operand(Where where, std::size_t place) {
  return static_cast<Operand>(static_cast<unsigned>(where) << kWhereShift | place);
}
inline constexpr Operand kNowhere = 0xffff;
constexpr Where where(Operand o) { return static_cast<Where>(o >> kWhereShift); }

enum class Op : std::uint8_t {
  Move,     // a = b
  Missing,  // a = not given
  // a = b op c, in the order of ast::BinaryOp
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder,
  Power,
  MatrixProduct,
  Hadamard,
  Outer,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Approx,
  And,
  Or,
  // a = op b
  Negate,
  Not,
  Inverse,
  ToInteger,
  ToFloat,
  Jump,         // to c
  JumpUnless,   // a is false: to c; b says for what statement (kConditionNames)
  JumpIfFalse,  // a is Bool false: to c; anything else goes on. For && with tensors
  JumpIfTrue,   // a is Bool true: to c
  // a op b does not hold: to c
  UnlessEqual,
  UnlessNotEqual,
  UnlessLess,
  UnlessLessEqual,
  UnlessGreater,
  UnlessGreaterEqual,
  JumpIfGiven,   // a is not Missing: to c
  JumpIfStruct,  // a holds a struct: to c
  RangeStart,    // a = first, a + 1 = last: b, c
  RangeNext,     // a < a + 1: a + 2 = a++; else to c
  IterateStart,  // a = iterator over b
  IterateNext,   // a + 1 = next of iterator a; else to c
  Unpack,        // a, a + 1, ... = the c parts of b
  NewList,       // a = list of c values from b on
  NewTuple,
  NewMap,       // c pairs
  NewRange,     // a = b .. c
  NewStruct,    // a = struct c of the fields from b on
  Append,       // to the list a: b
  IndexOne,     // a = b[c]
  Index,        // a = base at b, then what index c has
  GetField,     // a = b.name c
  SetIndexOne,  // a[b] = c
  GetPath,      // path c of the root a: indices from b on; the value goes after them
  SetPath,      // path c of the root a: indices from b on, then the value
  Call,         // a = function c of the call site, arguments from b on
  CallBuiltin,
  CallValue,     // the function at b, arguments after it
  CallMethod,    // the receiver at b, arguments after it
  CallMutating,  // the receiver is the site's path of a and fetched to b; indices lie before it
  Closure,       // a = function c with what is captured from b on
  Enter,         // checks the arguments
  Return,        // a
  ReturnVoid,
  Clear,      // a, a - 1, ... (b of them), globals too
  CheckSet,   // the global a has a value; its name is constant b
  CheckType,  // a has type c, converted where the type allows; the name is constant b
  Match,      // a fits pattern b; else to c
  MatchFail,
  Declare,     // a = declared tensor c: sizes from b on, then the value
  Learnable,   // a = b as a parameter; its name is constant c; see kAssigns
  LearnBegin,  // learn block c
  LearnSet,    // its setting b is a, which is given up
  LearnStart,  // all is set
  LearnValue,  // a = its epochs (b is 0) or its optimizer
  LearnNext,   // the next epoch; none is left: to c
  LearnStep,   // from the loss a, which is given up
  LearnEnd,    // a is 1: left before its end
  Panic,       // arguments a ... (b of them)
};

inline constexpr std::uint8_t kTemporaryA = 1, kTemporaryB = 2, kTemporaryC = 4;

// Of Op::Learnable, beside the temporary b: a is a parameter that gets the elements of b.
inline constexpr std::uint8_t kAssigns = 8;

struct Instruction {
  Op op = Op::Move;
  std::uint8_t temporary = 0;  // which operands are
  Operand a = 0, b = 0, c = 0;
};
static_assert(sizeof(Instruction) == 8);

inline constexpr std::string_view kConditionNames[] = {"if", "while", "match"};

struct Function;

struct TypeInfo {
  ast::Type::Kind kind = ast::Type::Kind::Any;
  Kind scalar = Kind::Void;  // Scalar: Int, Float, Bool or String
  DType dtype = DType::F32;  // Tensor
  struct Dim {
    std::int64_t size = -1;  // -1: any
    std::string name;        // the same size wherever it stands in a call
  };
  std::vector<Dim> dims;
  std::string name;        // Named: the struct
  bool any_shape = false;  // Tensor: any tensor or number
  std::string text;        // as the source has it
};

struct StructType {
  std::string name;
  std::vector<std::string> fields;
  std::vector<TypeInfo> types;
  std::vector<bool> learnable;  // fields that become parameters
  std::vector<bool> frozen;     // fields through which no gradient flows
  std::map<std::string, const Function*, std::less<>> methods;
  const Function* drop = nullptr;

  int field(std::string_view wanted) const;  // -1: none
};

struct CompiledPattern {
  ast::Pattern::Kind kind = ast::Pattern::Kind::Any;
  Value literal;
  Operand bind = 0;
  std::string name;  // of a struct
  std::vector<std::string> fields;
  std::vector<CompiledPattern> parts;
};

struct IndexShape {  // which of the places between brackets are slices (three registers each)
  std::vector<bool> slices;
};
struct PathStep {
  int field = -1;  // a name; -1: an index
  IndexShape index;
};
struct Path {
  std::vector<PathStep> steps;
  std::uint32_t registers = 0;  // that hold its indices
};
struct CallSite {
  const Function* function = nullptr;
  const Builtin* builtin = nullptr;
  std::uint32_t count = 0;                                   // arguments, a receiver not counted
  int name = -1;                                             // of a method
  std::vector<std::pair<std::uint32_t, std::string>> named;  // places among the arguments
  int path = -1;                                             // CallMutating
  Operand result = 0;                                        // CallMutating: where the result goes
  Operand self = kNowhere;  // where a method that changes its receiver leaves it
};
struct Declared {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::int64_t> sizes;  // -1: any, -2: in a register
  bool has_value = false;
  bool frozen = false;
};
struct LearnEntry {  // optimizer: sgd(lr: 0.1) has one for sgd and one for lr
  std::string setting, maker, argument;
};
struct LearnSite {
  std::vector<LearnEntry> entries;  // a value each
  bool has_objective = false;
};
struct StructSite {
  std::shared_ptr<const StructType> type;
  std::vector<std::uint32_t> order;  // field of each value
};

struct FunctionParam {
  std::string name;
  TypeInfo type;
  bool optional = false;
};

struct Function {
  std::string name;  // "main", "f", "Point::length", "test adds"
  Span span;
  std::vector<FunctionParam> params;  // self first
  TypeInfo result;                    // Any where nothing was said
  bool changes_self = false;
  bool checks = false;  // do parameters have types that need looking at?

  std::vector<Instruction> code;
  std::vector<Span> spans;
  std::vector<Value> constants;
  std::uint32_t registers = 0;
  std::vector<std::string> names;
  std::vector<Path> paths;
  std::vector<IndexShape> indices;
  std::vector<CallSite> calls;
  std::vector<Declared> declared;
  std::vector<LearnSite> learns;
  std::vector<StructSite> structs;
  std::vector<CompiledPattern> patterns;
  std::vector<TypeInfo> types;
  std::vector<std::pair<const Function*, std::uint32_t>> closures;
  mutable std::vector<Label> labels;  // of each instruction's line, made when first needed
};

}  // namespace tl::lang
