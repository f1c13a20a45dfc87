#include "lang/tensor_operators.h"

#include "lang/convert.h"
#include "lang/row_work.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"

namespace tl::lang {

using ast::BinaryOp;

namespace {

// One side of an operator: the value's own tensor, one made for this, or a number.
class Operand {
 public:
  explicit Operand(const Value& value) {
    switch (value.kind()) {
      case Kind::Tensor:
        tensor_ = &value.tensor();
        break;
      case Kind::Bool:
      case Kind::Int:
        number_ = value.integer();
        break;
      default:
        number_ = value.number();
    }
  }
  explicit Operand(tl::Tensor made) : made_(std::move(made)) { tensor_ = &*made_; }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;
  ~Operand() = default;

  bool is_number() const noexcept { return tensor_ == nullptr; }
  Scalar number() const noexcept { return number_; }
  const tl::Tensor& tensor() const noexcept { return *tensor_; }

  // What a number says beside `&&` and `||`, whatever the dtype of the other side.
  void make_truth() {
    if (is_number()) number_ = number_.real() != 0 ? 1 : 0;
  }
  void convert(DType dtype) {
    if (is_number() || tensor_->dtype() == dtype) return;
    made_ = to_dtype(*tensor_, dtype);
    tensor_ = &*made_;
  }
  void move(const Device& device) {
    made_ = to(*tensor_, device);
    tensor_ = &*made_;
  }

 private:
  const tl::Tensor* tensor_ = nullptr;
  std::optional<tl::Tensor> made_;
  Scalar number_ = 0;
};

// The operand of a value that is no plain tensor and no number: it takes the dtype of the other.
Operand expanded(const Context& context, BinaryOp op, const Value& value, const Value& other) {
  DType dtype = DType::F32;
  if (other.is(Kind::Tensor)) {
    const DType wanted = other.tensor().dtype();
    const bool whole = is_int(wanted) && !value.is(Kind::QTensor) && !has_floats(value);
    if (is_float(wanted) || whole || wanted == DType::Bool) dtype = wanted;
    if (wanted == DType::Bool && is_number_list(value)) dtype = DType::F32;
  }
  return Operand(to_tensor(context, ast::symbol(op), value, dtype));
}

Operand operand(const Context& context, BinaryOp op, const Value& value, const Value& other) {
  if (value.is(Kind::Tensor) || value.is_number() || value.is(Kind::Bool)) return Operand(value);
  return expanded(context, op, value, other);
}

bool is_logic(BinaryOp op) noexcept { return op == BinaryOp::And || op == BinaryOp::Or; }

// The dtype both are computed in.
DType working_dtype(BinaryOp op, const Operand& a, const Operand& b) {
  const bool equality = op == BinaryOp::Equal || op == BinaryOp::NotEqual;
  if (!a.is_number() && !b.is_number()) {
    const DType dtype = promote(a.tensor().dtype(), b.tensor().dtype());
    return dtype == DType::Bool && !equality && !is_logic(op) ? DType::F32 : dtype;
  }
  const Scalar number = a.is_number() ? a.number() : b.number();
  const DType dtype = (a.is_number() ? b : a).tensor().dtype();
  if (is_logic(op)) return dtype;
  if (dtype == DType::Bool) return DType::F32;
  if (!is_int(dtype)) return dtype;
  const bool root = op == BinaryOp::Power && b.is_number() && number.real() < 0;
  return number.is_integer() && !root ? dtype : DType::F32;
}

template <class F>
tl::Tensor apply(const Operand& a, const Operand& b, F&& f) {
  if (a.is_number()) return f(a.number(), b.tensor());
  if (b.is_number()) return f(a.tensor(), b.number());
  return f(a.tensor(), b.tensor());
}

tl::Tensor product_of_all(const tl::Tensor& a, const tl::Tensor& b) {
  Shape shape = a.shape();
  for (int d = 0; d < b.rank(); ++d) shape.push_back(1);
  return mul(reshape(a, shape), b);
}

// Are all elements within reach of each other?
Value approximately(const Operand& a, const Operand& b) {
  const tl::Tensor distance =
      abs(apply(a, b, [](const auto& x, const auto& y) { return sub(x, y); }));
  const auto size = [](const Operand& x, const tl::Tensor& like) {
    return x.is_number() ? maximum(mul(abs(like), 0), Scalar(std::abs(x.number().real())))
                         : abs(x.tensor());
  };
  const tl::Tensor scale = maximum(maximum(size(a, distance), size(b, distance)), 1);
  return all_all(le(distance, mul(scale, kApproxTensors))).item().real() != 0;
}

// Products with a quantised matrix (n, k) on the left need no expansion: W x is linear(x, W).
std::optional<tl::Tensor> quantised_product(const Value& a, const Value& b) {
  if (!a.is(Kind::QTensor) || a.qtensor().rank() != 2 || !b.is(Kind::Tensor)) return std::nullopt;
  const tl::Tensor& x = b.tensor();
  if (!is_float(x.dtype()) || x.rank() < 1 || x.rank() > 2) return std::nullopt;
  if (x.location() != a.qtensor().location()) return std::nullopt;
  if (x.rank() == 1) return linear(x, a.qtensor());
  return linear(x.t(), a.qtensor()).t();
}

// Sums and gates after products of one row, where those are put off.
std::optional<tl::Tensor> after_products(const Context& context, BinaryOp op, const Value& left,
                                         const Value& right) {
  if (context.rows == nullptr || !left.is(Kind::Tensor) || !right.is(Kind::Tensor)) return {};
  const tl::Tensor &a = left.tensor(), &b = right.tensor();
  gpu::RowQueue* queue = waiting_rows(context, a);
  if (queue == nullptr) return std::nullopt;
  if (op == BinaryOp::Add) return queue->add(a, b);
  if (op == BinaryOp::Multiply || op == BinaryOp::Hadamard) return queue->multiply(a, b);
  return std::nullopt;
}

// A loss is a number to programs, though it is a tensor that carries what it was computed from; so
// is what comparing it says.
bool is_followed_number(const Value& value) {
  return value.is(Kind::Tensor) && value.tensor().rank() == 0 && value.tensor().has_history();
}

}  // namespace

Value tensor_binary(Context& context, ast::BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::MatrixProduct) {
    if (auto product = quantised_product(left, right)) return *std::move(product);
  }
  if (auto out = after_products(context, op, left, right)) return *std::move(out);
  Operand a = operand(context, op, left, right);
  Operand b = operand(context, op, right, left);
  if (is_logic(op)) {
    a.make_truth();
    b.make_truth();
  }
  const DType dtype = working_dtype(op, a, b);
  a.convert(dtype);
  b.convert(dtype);
  if (!a.is_number() && !b.is_number() && a.tensor().location() != b.tensor().location()) {
    const Device device = common_device(context, a.tensor(), b.tensor());
    a.move(device);
    b.move(device);
  }
  const bool of_numbers = is_followed_number(left) || is_followed_number(right);
  const auto truths = [&](const tl::Tensor& bytes) -> Value {
    if (of_numbers && bytes.rank() == 0) return bytes.item().real() != 0;
    return bytes.reinterpret(DType::Bool);
  };
  const bool divides = op == BinaryOp::Divide || op == BinaryOp::Remainder;
  if (divides && b.is_number() && b.number().real() == 0) throw RuntimeError("Division by zero");
  switch (op) {
    case BinaryOp::Add:
      return apply(a, b, [](const auto& x, const auto& y) { return add(x, y); });
    case BinaryOp::Subtract:
      return apply(a, b, [](const auto& x, const auto& y) { return sub(x, y); });
    case BinaryOp::Multiply:
    case BinaryOp::Hadamard:
      return apply(a, b, [](const auto& x, const auto& y) { return mul(x, y); });
    case BinaryOp::Divide:
      return apply(a, b, [](const auto& x, const auto& y) { return div(x, y); });
    case BinaryOp::Remainder:
      return apply(a, b, [](const auto& x, const auto& y) { return tl::fmod(x, y); });
    case BinaryOp::Power:
      return apply(a, b, [](const auto& x, const auto& y) { return tl::pow(x, y); });
    case BinaryOp::MatrixProduct:
      if (a.is_number() || b.is_number()) break;
      return matmul(a.tensor(), b.tensor());
    case BinaryOp::Outer:
      if (a.is_number() || b.is_number()) {
        return apply(a, b, [](const auto& x, const auto& y) { return mul(x, y); });
      }
      return product_of_all(a.tensor(), b.tensor());
    case BinaryOp::Equal:
      return truths(apply(a, b, [](const auto& x, const auto& y) { return eq(x, y); }));
    case BinaryOp::NotEqual:
      return truths(apply(a, b, [](const auto& x, const auto& y) { return ne(x, y); }));
    case BinaryOp::Less:
      return truths(apply(a, b, [](const auto& x, const auto& y) { return lt(x, y); }));
    case BinaryOp::LessEqual:
      return truths(apply(a, b, [](const auto& x, const auto& y) { return le(x, y); }));
    case BinaryOp::Greater:
      return truths(apply(a, b, [](const auto& x, const auto& y) { return gt(x, y); }));
    case BinaryOp::GreaterEqual:
      return truths(apply(a, b, [](const auto& x, const auto& y) { return ge(x, y); }));
    case BinaryOp::And:
      return truths(apply(a, b, [](const auto& x, const auto& y) { return logical_and(x, y); }));
    case BinaryOp::Or:
      return truths(apply(a, b, [](const auto& x, const auto& y) { return logical_or(x, y); }));
    case BinaryOp::Approx:
      return approximately(a, b);
  }
  throw type_error("Binary operation requires compatible types: ", type_name(left), " ",
                   ast::symbol(op), " ", type_name(right));
}

}  // namespace tl::lang
