// The elementwise ops that have kernels, and how the host tells a kernel to read its operands.
//
// Both sides include this file. It includes no system header and is embedded as source for the
// run-time compilers.
#pragma once

#include "tl/base/float_bits.h"  // TL_FN

namespace tl {

// The order is that of the kernels (tl/kernels/elementwise_ids.h): what integers have too comes
// first.
enum class UnaryOp : unsigned char {
  Neg,
  Abs,
  Sqr,
  Sign,
  Relu,
  Recip,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  Tanh,
  Sinh,
  Cosh,
  Asin,
  Acos,
  Atan,
  Erf,
  Erfc,
  Normcdf,
  Sqrt,
  Rsqrt,
  Floor,
  Ceil,
  Trunc,
  Round,
  RoundEven,
  Gelu,
  GeluErf,
  Relu6,
  LeakyRelu,
  Silu,
  Mish,
  Sigmoid,
  HardSigmoid,
  HardSwish,
  Softplus,
  Selu,
  Elu,
  Powf,
  IsNan,
  IsInf,
  IsFinite,    // give u8
  BitwiseNot,  // integers only
};
inline constexpr int kUnaryOps = static_cast<int>(UnaryOp::BitwiseNot) + 1;

enum class BinaryOp : unsigned char {
  Add,
  Sub,
  Mul,
  Div,
  Maximum,
  Minimum,
  Pow,
  Rem,
  Fmod,
  FloorDiv,  // every number
  Atan2,     // floats
  BitwiseAnd,
  BitwiseOr,
  BitwiseXor,
  ShiftLeft,
  ShiftRight,  // integers
  LogicalAnd,
  LogicalOr,
  LogicalXor,
  Eq,
  Ne,
  Lt,
  Le,  // every number, give u8
};
inline constexpr int kBinaryOps = static_cast<int>(BinaryOp::Le) + 1;

TL_FN bool gives_flag(UnaryOp op) { return op >= UnaryOp::IsNan && op <= UnaryOp::IsFinite; }
TL_FN bool gives_flag(BinaryOp op) { return op >= BinaryOp::LogicalAnd; }

namespace kernels {

// How much code an element takes. It decides how many elements a thread has in hand at a time:
// light ones fill 16-byte vectors, middling ones come by four, heavy ones one by one, since many
// copies of their code would cost more than wide loads bring.
enum class Weight : unsigned char { Light, Middling, Heavy };

TL_FN Weight weight(UnaryOp op, bool is_double) {
  switch (op) {
    case UnaryOp::Neg:
    case UnaryOp::Abs:
    case UnaryOp::Sqr:
    case UnaryOp::Sign:
    case UnaryOp::Relu:
    case UnaryOp::Relu6:
    case UnaryOp::LeakyRelu:
    case UnaryOp::HardSigmoid:
    case UnaryOp::HardSwish:
    case UnaryOp::Floor:
    case UnaryOp::Ceil:
    case UnaryOp::Trunc:
    case UnaryOp::Round:
    case UnaryOp::RoundEven:
    case UnaryOp::IsNan:
    case UnaryOp::IsInf:
    case UnaryOp::IsFinite:
    case UnaryOp::BitwiseNot:
      return Weight::Light;
    case UnaryOp::Sqrt:
    case UnaryOp::Recip:
    case UnaryOp::Rsqrt:
      return Weight::Middling;
    case UnaryOp::Sin:
    case UnaryOp::Cos:
    case UnaryOp::Tan:
    case UnaryOp::Powf:
      return Weight::Heavy;
    default:
      return is_double ? Weight::Heavy : Weight::Middling;
  }
}

TL_FN Weight weight(BinaryOp op, bool is_real) {
  switch (op) {
    case BinaryOp::Pow:
    case BinaryOp::Rem:
    case BinaryOp::Fmod:
    case BinaryOp::FloorDiv:
    case BinaryOp::Atan2:
      return Weight::Heavy;
    case BinaryOp::Div:  // integers have no instruction for it
      return is_real ? Weight::Middling : Weight::Heavy;
    default:
      return Weight::Light;
  }
}

// Is an element's code so long that a walk over any layout shows beside it, and the op one that
// large tensors meet? Such ops have a shorter way over what is contiguous, for floats of 2 and 4
// bytes, on which a thread takes kStraightRun groups.
TL_FN bool goes_straight(UnaryOp op, int size) {
  const bool is_long = op == UnaryOp::Gelu || op == UnaryOp::GeluErf || op == UnaryOp::Silu ||
                       op == UnaryOp::Mish || op == UnaryOp::Tanh || op == UnaryOp::Sigmoid ||
                       op == UnaryOp::Softplus;
  return is_long && (size == 2 || size == 4);
}
inline constexpr int kStraightRun = 4;

// Elements per vector for operands whose widest has `size` bytes; 1: no vectors. At most 8, which
// halves the code for the smallest types and costs them little.
TL_FN int vector_width(Weight weight, int size) {
  const int full = size == 1 ? 8 : 16 / size;
  return weight == Weight::Heavy ? 1 : weight == Weight::Middling && full > 4 ? 4 : full;
}

// How the operands of a walk are read: in groups of `each` neighbours in the result, of which the
// last may be cut short. Where `crosses` is set, the walk's innermost dimension may end within a
// group (once: it is no shorter than a group), and no operand is read in vectors or as one element.
// Groups of one element are for walks whose innermost dimension is shorter than that.
enum class Access : unsigned char {
  Vector,   // neighbours in memory, aligned for a load of them all
  Splat,    // one element in memory for all of the group
  Value,    // the number passed by value; nothing in memory
  Strided,  // element by element
};
struct Reading {
  long long count;   // elements
  long long groups;  // count / each, rounded up
  int each;          // the kernel's vector width, or 1
  short crosses;
  short straight;    // 1: one operand, in vectors one after another
  Access access[4];  // of each operand
};

}  // namespace kernels
}  // namespace tl
