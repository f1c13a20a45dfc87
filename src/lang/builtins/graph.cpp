// Steps that graph networks are made of: one neighbour at a time. Layers over whole graphs are in
// graph_layers.cpp.
#include "lang/builtins/graph.h"

#include "lang/builtins/library.h"
#include "lang/builtins/operands.h"
#include "lang/convert.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::lang {

namespace {

// The sum of the features of neighbours becomes their mean. A tensor of counts has one for each
// row.
Value call_aggregate_neighbors(Context& context, Args& args) {
  const std::string& kind = args.string(2);
  const Operands x(context, args, {0});
  if (kind == "sum") return x.result(x[0]);
  if (kind != "mean") args.bad_value(2, R"("mean" or "sum")");
  if (const auto count = real_in(args[1])) {
    if (!(*count > 0)) args.bad_value(1, "a count above 0");
    return x.result(div(x[0], *count));
  }
  const Operands both(context, args, {0, 1});
  const Shape& rows = both[1].shape();
  if (rows.size() != 1 || both[0].rank() < 1 || both[0].dim(0) != rows[0]) {
    both.mismatch("there is one count for each row");
  }
  Shape column = Shape::repeated(both[0].rank(), 1);
  column[0] = rows[0];
  return div(both[0], maximum(reshape(both[1], column), 1));
}

Value call_relational_aggregate(Context& context, Args& args) {
  const Operands x(context, args, {0, 1, 2});
  x.common_shape(/*vectors=*/false);
  return x.result(add(x[0], mul(x[1], x[2])));
}

// v, as far as q and k are alike: each row has its own sigmoid.
Value call_graph_attention(Context& context, Args& args) {
  const Operands qk(context, args, {0, 1});
  qk.common_shape(/*vectors=*/true);
  const Operands x(context, args, {0, 1, 2});
  const tl::Tensor product = mul(x[0], x[1]);
  const tl::Tensor alike = product.rank() == 0 ? product : sum(product, {-1}, /*keepdim=*/true);
  if (!broadcast_together(x[2].shape(), alike.shape())) {
    x.mismatch("there is one row of v for each of q and k");
  }
  return x.result(mul(x[2], sigmoid(alike)));
}

// x over its length, row by row; what has none stays. The division is by a number that is never 0,
// so that its gradient is one too.
Value call_normalize_features(Context& context, Args& args) {
  const std::string& kind = args.string(1);
  const Operands operands(context, args, {0});
  const tl::Tensor& x = operands[0];
  if (kind != "l2" && kind != "L2") return operands.result(x);
  constexpr double kShortest = 1e-8;
  const tl::Tensor length = x.rank() == 0 ? abs(x) : norm(x, {-1}, 2, /*keepdim=*/true);
  return operands.result(div(x, where(gt(length, kShortest), length, 1)));
}

constexpr std::string_view kSection = "graph";

}  // namespace

BuiltinRows graph_builtins() {
  static const Builtin rows[] = {
      {"aggregate_neighbors", kSection, "(features, count, kind = \"mean\")",
       "The sum of neighbours' features over their count, or as it is for \"sum\".",
       call_aggregate_neighbors},
      {"relational_aggregate", kSection, "(node, relation, neighbor, kind = none)",
       "node + relation * neighbor; `kind` changes nothing.", call_relational_aggregate},
      {"graph_attention", kSection, "(q, k, v, kind = none)",
       "v times the sigmoid of the sum of q * k; `kind` changes nothing.", call_graph_attention},
      {"normalize_features", kSection, "(x, kind = \"l2\")",
       "Each row of x with length 1; as it is where that is 0, and for other kinds.",
       call_normalize_features},
  };
  static const std::vector<Builtin> all_rows = joined({rows, graph_layer_builtins()});
  return all_rows;
}

}  // namespace tl::lang
