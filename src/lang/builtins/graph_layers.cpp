// Layers of graph networks: graph convolution, attention over neighbours, GraphSAGE.
//
// Features are (nodes, d) and weights (d, out), as in x @ w. See graph.h for what a graph is.
#include "lang/builtins/graph.h"
#include "lang/builtins/library.h"
#include "lang/builtins/operands.h"
#include "lang/convert.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"

namespace tl::lang {

namespace {

// x (nodes, d) and a weight (d, out), or what is wrong with them.
tl::Tensor product(const Operands& operands, const tl::Tensor& x, const tl::Tensor& w) {
  if (x.rank() != 2) operands.mismatch("the features of nodes are [nodes, d]");
  if (w.rank() != 2 || w.dim(0) != x.dim(1)) {
    operands.mismatch("a weight is [d, out] for features [nodes, d]");
  }
  return matmul(x, w);
}

// An optional argument in the dtype and on the device of x, of one row: a number for each of `size`
// edges or outputs.
std::optional<tl::Tensor> vector_argument(const Context& context, const Args& args, std::size_t i,
                                          const tl::Tensor& x, std::int64_t size,
                                          std::string_view things) {
  if (!args.has(i)) return std::nullopt;
  if (!is_tensor_like(args[i])) args.bad(i, "a tensor");
  const tl::Tensor given = to(args.tensor(context, i, x.dtype()), x.device());
  if (given.rank() >= 1 && given.count() == size && given.dim(-1) == size) {
    return reshape(given, {size});
  }
  throw RuntimeError(join("Tensor error: Shape mismatch: ", args.name(),
                          "() expects one number for each of ", size, " ", things, " for '",
                          args.builtin().parameters[i].name, "', got ", bracketed(given.shape())));
}

// Weights of edges. A matrix has its own.
std::optional<tl::Tensor> weights_argument(const Context& context, const Args& args, std::size_t i,
                                           const Graph& graph, const tl::Tensor& x) {
  if (!args.has(i)) return std::nullopt;
  if (graph.is_dense()) {
    throw type_error(args.name(), "() expects no 'weights' beside a matrix: its elements are them");
  }
  return vector_argument(context, args, i, x, graph.to.dim(0), "edges");
}

tl::Tensor with_bias(const tl::Tensor& x, const std::optional<tl::Tensor>& bias) {
  return bias ? add(x, *bias) : x;
}

// ---- message passing

Value call_message_passing(Context& context, Args& args) {
  const Aggregate aggregate = aggregate_named(args, 3);
  const Operands operands(context, args, {0});
  const tl::Tensor& x = operands[0];
  if (x.rank() < 1 || x.rank() > 2) operands.mismatch("the features of nodes are [nodes, d]");
  const Graph graph = read_graph(context, args, 1, x);
  const auto weights = weights_argument(context, args, 2, graph, x);
  const tl::Tensor rows = reshape(x, {x.dim(0), x.rank() == 1 ? 1 : x.dim(1)});
  return reshape(aggregated(graph, rows, weights, aggregate), x.shape());
}

// ---- graph convolution

// D^-1/2 (A + I) D^-1/2 x w + bias, where D is the sum of each row of A + I. Both factors of D act
// on nodes, so no edge needs a factor of its own.
tl::Tensor convolved(const Graph& graph, const tl::Tensor& x,
                     const std::optional<tl::Tensor>& weights) {
  tl::Tensor degree;  // (nodes, 1)
  if (graph.is_dense()) {
    degree = add(sum(*graph.adjacency, {1}, /*keepdim=*/true), 1);
  } else {
    const tl::Tensor each = weights ? *weights : ones({graph.to.dim(0)}, x.dtype(), x.device());
    degree = add(reshape(sum_at_nodes(graph, each), {graph.nodes, 1}), 1);
  }
  const tl::Tensor root = rsqrt(degree);
  const tl::Tensor scaled = mul(x, root);
  return mul(add(aggregated(graph, scaled, weights, Aggregate::Sum), scaled), root);
}

Value call_gcn_layer(Context& context, Args& args) {
  const Operands operands(context, args, {0, 2});
  const tl::Tensor x = product(operands, operands[0], operands[1]);
  const Graph graph = read_graph(context, args, 1, x);
  const auto weights = weights_argument(context, args, 4, graph, x);
  const auto bias = vector_argument(context, args, 3, x, x.dim(1), "outputs");
  return with_bias(convolved(graph, x, weights), bias);
}

// ---- attention

struct Heads {
  std::int64_t count, size;
};

// Σ z · a of each head: z (nodes, heads, size) gives (nodes, heads).
tl::Tensor head_scores(const Operands& operands, const tl::Tensor& z, const tl::Tensor& a,
                       Heads heads) {
  if (a.count() != heads.count * heads.size) {
    operands.mismatch(join("a_src and a_dst have one number for each column of w, in ", heads.count,
                           " heads of ", heads.size));
  }
  return sum(mul(z, reshape(a, {heads.count, heads.size})), {-1});
}

// Each node's neighbours and itself, weighted by softmax(leaky_relu(a_src z_from + a_dst z_to)).
// The sums are divided at the nodes, whose own loop keeps them above 0, and not at the edges.
Value call_gat_layer(Context& context, Args& args) {
  const Operands operands(context, args, {0, 2, 3, 4});
  const tl::Tensor transformed = product(operands, operands[0], operands[1]);
  const std::int64_t count = args.integer(5);
  const std::int64_t width = transformed.dim(1);
  if (count < 1 || width % count != 0) {
    args.bad_value(5, join("a number of heads that divides ", width, " columns"));
  }
  const double slope = args.real(6);
  const Heads heads{.count = count, .size = width / count};
  const std::int64_t nodes = transformed.dim(0);
  const tl::Tensor z = reshape(transformed, {nodes, heads.count, heads.size});
  const tl::Tensor source = head_scores(operands, z, operands[2], heads);
  const tl::Tensor target = head_scores(operands, z, operands[3], heads);

  const Graph graph = with_own_loops(with_edges(read_graph(context, args, 1, transformed)));
  const tl::Tensor scores = leaky_relu(
      add(index_select(source, 0, graph.from), index_select(target, 0, graph.to)), slope);
  // Softmax does not change with what is taken off; the largest keeps exp within bounds.
  const tl::Tensor largest = index_select(max_at_nodes(graph, scores), 0, graph.to);
  const tl::Tensor powers = exp(sub(scores, largest));  // (edges, heads)
  const tl::Tensor messages =
      mul(index_select(z, 0, graph.from), reshape(powers, {powers.dim(0), heads.count, 1}));
  const tl::Tensor totals = reshape(sum_at_nodes(graph, powers), {nodes, heads.count, 1});
  return reshape(div(sum_at_nodes(graph, messages), totals), {nodes, width});
}

// ---- GraphSAGE

Value call_sage_layer(Context& context, Args& args) {
  const Aggregate aggregate = aggregate_named(args, 4);
  const Operands operands(context, args, {0, 2, 3});
  const tl::Tensor own = product(operands, operands[0], operands[1]);
  if (operands[2].shape() != operands[1].shape()) {
    operands.mismatch("w_self and w_neigh have one shape");
  }
  const Graph graph = read_graph(context, args, 1, operands[0]);
  const auto bias = vector_argument(context, args, 5, own, own.dim(1), "outputs");
  const tl::Tensor neighbours = aggregated(graph, operands[0], std::nullopt, aggregate);
  return with_bias(add(own, matmul(neighbours, operands[2])), bias);
}

constexpr std::string_view kSection = "graph";

}  // namespace

BuiltinRows graph_layer_builtins() {
  static const Builtin rows[] = {
      {"message_passing", kSection, "(x, edges, weights = none, aggregate = \"sum\")",
       "For each node the \"sum\", \"mean\" or \"max\" of x * weight over the edges to it.",
       call_message_passing},
      {"gcn_layer", kSection, "(x, edges, w, bias = none, weights = none)",
       "Graph convolution: D^-1/2 (A + I) D^-1/2 x w + bias.", call_gcn_layer},
      {"gat_layer", kSection, "(x, edges, w, a_src, a_dst, heads = 1, slope = 0.2)",
       "Graph attention: x w of each node and its neighbours, weighted by softmax of their scores.",
       call_gat_layer},
      {"sage_layer", kSection, "(x, edges, w_self, w_neigh, aggregate = \"mean\", bias = none)",
       "GraphSAGE: x w_self + (the \"mean\", \"max\" or \"sum\" of the neighbours) w_neigh + bias.",
       call_sage_layer},
  };
  return rows;
}

}  // namespace tl::lang
