// Shapes, joining and cutting, and places in tensors by number.
#include <numeric>

#include "lang/builtins/library.h"
#include "lang/builtins/tensors.h"
#include "lang/builtins/text.h"
#include "lang/operators.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"

namespace tl::lang {

namespace {

// ---- joining and cutting

// (a, b, ..., dim) or (list, dim).
Value call_concat(Context& context, Args& args) {
  const bool list = is_list_like(args[0]) && !is_number_list(args[0]) && !is_pieces(args[0]);
  const bool pieces = is_pieces(args[0]) && (args.size() < 2 || args[1].is_number());
  std::vector<Value> parts;
  std::size_t next = 0;
  if (list || pieces) {
    for (std::size_t i = 0; i < list_size(args[0]); ++i) parts.push_back(list_item(args[0], i));
    next = 1;
  } else {
    while (next < args.size() && !args[next].is_number()) parts.push_back(args[next++]);
  }
  if (args.size() > next + 1) {
    throw type_error(args.name(), "() expects tensors and one dimension, got ", args.size(),
                     " arguments");
  }
  if (parts.empty()) args.bad(0, "tensors");
  const std::int64_t dim = next < args.size() ? args.integer(next) : 0;
  return cat(tensor_list(context, args, make<ListObject>(std::move(parts))), dim);
}

Value call_stack(Context& context, Args& args) {
  if (!is_list_like(args[0])) args.bad(0, "a list of tensors");
  return stack(tensor_list(context, args, args[0]), args.integer(1));
}

Value pieces(std::vector<tl::Tensor> parts) {
  std::vector<Value> values;
  values.reserve(parts.size());
  for (tl::Tensor& part : parts) values.emplace_back(std::move(part));
  return make<PiecesObject>(std::move(values));
}

Value call_split(Context& context, Args& args) {
  if (args[0].is(Kind::String)) return split_text(args);
  const std::int64_t size = args.integer(1);
  if (size <= 0) args.bad_value(1, "a size above 0");
  return pieces(args.tensor(context, 0).split(size, args.has(2) ? args.integer(2) : 0));
}

Value call_chunk(Context& context, Args& args) {
  const tl::Tensor x = args.tensor(context, 0);
  const std::int64_t count = args.integer(1);
  if (count <= 0) args.bad_value(1, "a count above 0");
  const std::int64_t length = x.dim(args.integer(2));
  const std::int64_t size = std::max<std::int64_t>(length / count + (length % count != 0), 1);
  return pieces(x.split(size, args.integer(2)));
}

Value call_tile(Context& context, Args& args) {
  return tile(args.tensor(context, 0), args.dims(1));
}

// ---- places

IndexArg part(const Value& start, const Value& stop) {
  IndexArg at;
  at.is_slice = true;
  at.start = start;
  at.stop = stop;
  return at;
}
IndexArg place(const Value& i) {
  IndexArg at;
  at.index = i;
  return at;
}

// (x, start, end) along the first dimension; (x, row, start, end) within a row of a matrix.
Value call_slice(Context& context, Args& args) {
  const bool in_row = args.has(3);
  const std::size_t first = in_row ? 2 : 1;
  const std::int64_t start = args.integer(first);
  const std::int64_t end = args.integer(first + 1);
  const bool text = args[0].is(Kind::String);
  const bool list = is_list_like(args[0]) && !is_number_list(args[0]) && !is_pieces(args[0]);
  if (text || list) {
    const IndexArg at[] = {part(start, end)};
    return index(context, args[0], at);
  }
  const tl::Tensor x = args.tensor(context, 0);
  if (x.rank() == 0 || (in_row && x.rank() < 2)) {
    throw type_error(args.name(), "() expects a tensor of rank ", in_row ? 2 : 1, " or more");
  }
  const std::int64_t length = x.shape()[in_row ? 1 : 0];
  if (start < 0 || end > length || start >= end) {
    throw invalid_operation(args.name(), "(): ", start, " to ", end,
                            " is no part of a dimension of ", length);
  }
  if (!in_row) return x.narrow(0, start, end - start);
  const IndexArg at[] = {place(args.integer(1)), part(start, end)};
  return index(context, x, at);
}

Value sub_tensor(Context& context, const tl::Tensor& x, std::int64_t dim, const Value& i) {
  const int at_dim = normalize_dim("select", dim, x.shape());
  std::vector<IndexArg> at(static_cast<std::size_t>(at_dim),
                           part(Value::missing(), Value::missing()));
  at.push_back(place(i));
  return index(context, x, at);
}

Value call_slice_last(Context& context, Args& args) {
  return sub_tensor(context, args.tensor(context, 0), args.integer(1), -1);
}

Value call_select(Context& context, Args& args) {
  return sub_tensor(context, args.tensor(context, 0), args.integer(1), args.integer(2));
}

// ---- gather and scatter: indices of the tensor's rank, or a list of slices

Value call_gather(Context& context, Args& args) {
  const tl::Tensor x = args.tensor(context, 0);
  const std::int64_t dim = args.integer(1);
  const tl::Tensor ids = row_ids(context, args, 2, x.dim(dim), x.device());
  return ids.rank() == 1 && x.rank() > 1 ? index_select(x, dim, ids) : gather(x, dim, ids);
}

Value call_scatter(Context& context, Args& args) {
  tl::Tensor x = args.tensor(context, 0);
  const std::int64_t dim = args.integer(1);
  const tl::Tensor ids = row_ids(context, args, 2, x.dim(dim), x.device());
  const bool slices = ids.rank() == 1 && x.rank() > 1;
  if (args[3].is_number() && !slices) return scatter(x, dim, ids, Scalar(args.real(3)));
  tl::Tensor source = args.tensor(context, 3);
  if (args[0].is_tensor()) {
    source = to(to_dtype(source, x.dtype()), x.device());
  } else {
    together(context, x, source);
  }
  if (!slices) return scatter(x, dim, ids, source);
  if (source.rank() == 0) {  // one number for all of them
    Shape shape = x.shape();
    shape[normalize_dim("scatter", dim, shape)] = ids.count();
    source = source.broadcast_as(shape);
  }
  return index_copy(x, dim, ids, source);
}

// ---- operators as functions

template <ast::BinaryOp kOp>
Value call_operator(Context& context, Args& args) {
  return binary(context, kOp, args[0], args[1]);
}

constexpr std::string_view kShape = "shape";
constexpr std::string_view kMath = "math";

}  // namespace

BuiltinRows shape_builtins() {
  using Op = ast::BinaryOp;
  static const Builtin rows[] = {
      {"concat", kShape, "(x, ...more)",
       "Tensors, or a list of them, one after another along the last argument's dimension.",
       call_concat},
      {"cat", kShape, "(x, ...more)", "The same as concat.", call_concat},
      {"stack", kShape, "(list, dim = 0)", "Tensors of one shape along a new dimension.",
       call_stack},
      {"split", kShape, "(x, size = none, dim = none)",
       "Pieces of a size along a dimension, as a list; of a text, what lies between separators, or "
       "between white space, cut at most `dim` times.",
       call_split},
      {"chunk", kShape, "(x, count, dim = 0)", "That many pieces along a dimension, as a list.",
       call_chunk},
      {"tile", kShape, "(x, counts)", "x as often as counts say along each dimension.", call_tile},
      {"slice", kShape, "(x, start, end, row_end = none)",
       "Elements start to end of the first dimension; (x, row, start, end) takes them of a row.",
       call_slice},
      {"slice_last", kShape, "(x, axis = 0)", "The last slice along a dimension.", call_slice_last},
      {"select", kShape, "(x, dim, index)", "The slice at an index, without that dimension.",
       call_select},
      {"gather", kShape, "(x, dim, index)",
       "Elements along a dimension where an index of x's rank says; slices for a list of indices.",
       call_gather},
      {"scatter", kShape, "(x, dim, index, src)",
       "x with src written where an index says; whole slices for a list of indices.", call_scatter},
      {"add", kMath, "(a, b)", "a + b.", call_operator<Op::Add>},
      {"sub", kMath, "(a, b)", "a - b.", call_operator<Op::Subtract>},
      {"mul", kMath, "(a, b)", "a * b.", call_operator<Op::Multiply>},
      {"div", kMath, "(a, b)", "a / b.", call_operator<Op::Divide>},
      {"pow", kMath, "(a, b)", "a ** b.", call_operator<Op::Power>},
      {"eq", kMath, "(a, b)", "a == b.", call_operator<Op::Equal>},
      {"ne", kMath, "(a, b)", "a != b.", call_operator<Op::NotEqual>},
      {"lt", kMath, "(a, b)", "a < b.", call_operator<Op::Less>},
      {"le", kMath, "(a, b)", "a <= b.", call_operator<Op::LessEqual>},
      {"gt", kMath, "(a, b)", "a > b.", call_operator<Op::Greater>},
      {"ge", kMath, "(a, b)", "a >= b.", call_operator<Op::GreaterEqual>},
      {"logical_and", kMath, "(a, b)", "Both are true, or not 0.", call_operator<Op::And>},
      {"logical_or", kMath, "(a, b)", "Either is true, or not 0.", call_operator<Op::Or>},
      {"matmul", kMath, "(a, b)", "a @ b: the matrix product.", call_operator<Op::MatrixProduct>},
  };
  static const std::vector<Builtin> all_rows = joined({view_builtins(), rows});
  return all_rows;
}

}  // namespace tl::lang
