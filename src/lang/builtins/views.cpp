// Questions about tensors, and other shapes over the same elements.
#include "lang/builtins/tensors.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

Shape shape_of(const Context& context, const Args& args) {
  if (args[0].is(Kind::Tensor)) return args[0].tensor().shape();
  if (args[0].is(Kind::QTensor)) return args[0].qtensor().shape();
  return args.tensor(context, 0).shape();
}

Value call_shape(Context& context, Args& args) { return dims_value(shape_of(context, args)); }

Value call_rank(Context& context, Args& args) {
  return std::int64_t{shape_of(context, args).size()};
}

Value call_numel(Context& context, Args& args) {
  return element_count("numel", shape_of(context, args));
}

Value call_item(Context& context, Args& args) {
  if (args[0].is_number() || args[0].is(Kind::Bool)) return args[0];
  const tl::Tensor x = args.tensor(context, 0);
  if (x.count() != 1) {
    throw type_error(args.name(), "() expects a tensor of one element, got ", x.count());
  }
  return from_tensor_item(x);
}

// The sizes may be a list or stand one by one.
Dims dims_from(const Args& args, std::size_t first) {
  if (args.size() == first + 1) return args.dims(first);
  Dims dims;
  for (std::size_t i = first; i < args.size(); ++i) dims.push_back(args.integer(i));
  return dims;
}

Value call_reshape(Context& context, Args& args) {
  return reshape(args.tensor(context, 0), dims_from(args, 1));
}

Value call_flatten(Context& context, Args& args) {
  return flatten(args.tensor(context, 0), args.integer(1), args.integer(2));
}

Value call_squeeze(Context& context, Args& args) {
  tl::Tensor x = args.tensor(context, 0);
  if (args.has(1)) {
    const std::int64_t dim = args.integer(1);
    if (x.dim(dim) != 1) {
      throw invalid_operation("squeeze(): dimension ", dim, " has size ", x.dim(dim), ", not 1");
    }
    return x.rank() == 1 ? x : x.squeeze(dim);
  }
  for (int d = x.rank() - 1; d >= 0 && x.rank() > 1; --d) {
    if (x.shape()[d] == 1) x = x.squeeze(d);
  }
  return x;
}

Value call_unsqueeze(Context& context, Args& args) {
  return args.tensor(context, 0).unsqueeze(args.integer(1));
}

Value call_transpose(Context& context, Args& args) {
  const tl::Tensor x = args.tensor(context, 0);
  if (args.has(1) != args.has(2)) args.bad(2, "the other dimension");
  if (args.has(1)) return x.transpose(args.integer(1), args.integer(2));
  if (x.rank() < 2) {
    throw type_error(args.name(), "() expects a matrix, got a tensor of rank ", x.rank());
  }
  return x.t();
}

Value call_permute(Context& context, Args& args) {
  return args.tensor(context, 0).permute(dims_from(args, 1));
}

Value call_broadcast_to(Context& context, Args& args) {
  return args.tensor(context, 0).broadcast_as(dims_from(args, 1));
}

Value call_narrow(Context& context, Args& args) {
  return args.tensor(context, 0).narrow(args.integer(1), args.integer(2), args.integer(3));
}

Value call_diagonal(Context& context, Args& args) {
  return args.tensor(context, 0).diagonal(args.integer(1), args.integer(2), args.integer(3));
}

Value call_move_dim(Context& context, Args& args) {
  return args.tensor(context, 0).move_dim(args.integer(1), args.integer(2));
}

Value call_unfold(Context& context, Args& args) {
  return args.tensor(context, 0).unfold(args.integer(1), args.integer(2), args.integer(3));
}

constexpr std::string_view kSection = "shape";

}  // namespace

BuiltinRows view_builtins() {
  static const Builtin rows[] = {
      {"shape", kSection, "(x)", "The sizes of a tensor, as a list.", call_shape},
      {"rank", kSection, "(x)", "How many dimensions a tensor has.", call_rank},
      {"ndim", kSection, "(x)", "The same as rank.", call_rank},
      {"numel", kSection, "(x)", "How many elements a tensor has.", call_numel},
      {"item", kSection, "(x)", "The one element of a tensor, as a number.", call_item},
      {"reshape", kSection, "(x, shape, ...more)",
       "Another shape over the same elements; one size may be -1.", call_reshape},
      {"view", kSection, "(x, shape, ...more)", "The same as reshape.", call_reshape},
      {"flatten", kSection, "(x, first = 0, last = -1)",
       "Dimensions first to last, both included, as one.", call_flatten},
      {"squeeze", kSection, "(x, dim = none)",
       "Without the dimensions of size 1, or without that one.", call_squeeze},
      {"unsqueeze", kSection, "(x, dim)", "With a dimension of size 1 at a place.", call_unsqueeze},
      {"transpose", kSection, "(x, a = none, b = none)",
       "The last two dimensions exchanged, or two that are named.", call_transpose},
      {"T", kSection, "(x)", "The last two dimensions exchanged.", call_transpose},
      {"permute", kSection, "(x, order, ...more)", "The dimensions in another order.",
       call_permute},
      {"broadcast_to", kSection, "(x, shape, ...more)",
       "Repeated along dimensions of size 1 until it has that shape.", call_broadcast_to},
      {"expand", kSection, "(x, shape, ...more)", "The same as broadcast_to.", call_broadcast_to},
      {"narrow", kSection, "(x, dim, start, length)", "A part of one dimension.", call_narrow},
      {"diagonal", kSection, "(x, shift = 0, a = -2, b = -1)",
       "The diagonal of two dimensions, which goes to the end.", call_diagonal},
      {"move_dim", kSection, "(x, from, to)", "One dimension at another place.", call_move_dim},
      {"unfold", kSection, "(x, dim, size, step)",
       "Windows along a dimension, each in a new last dimension.", call_unfold},
  };
  return rows;
}

}  // namespace tl::lang
