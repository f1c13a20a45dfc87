// Edges and what goes along them. Ops only, and of Tensor's own views none that a feature passes
// through: what has a gradient keeps it.
#include <limits>

#include "lang/builtins/graph.h"
#include "lang/builtins/library.h"
#include "lang/builtins/operands.h"
#include "lang/convert.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"
#include "tl/ops/sort.h"
#include "tl/ops/where.h"

namespace tl::lang {

namespace {

[[noreturn]] void no_graph(const Args& args, std::size_t place, const Shape& shape,
                           std::int64_t nodes) {
  throw RuntimeError(join("Tensor error: Shape mismatch: ", args.name(), "() expects edges [2, m] ",
                          "or a matrix [", nodes, ", ", nodes, "] for '",
                          args.builtin().parameters[place].name, "', got ", bracketed(shape)));
}

// Lists are read as integers where they hold no fraction, so that [[0, 1], [1, 0]] are two edges.
tl::Tensor graph_tensor(const Context& context, const Args& args, std::size_t place) {
  const Value& value = args[place];
  if (!value.is_tensor() && !is_list_like(value)) args.bad(place, "edges or a matrix");
  if (value.is_tensor() || is_pieces(value)) return args.tensor(context, place);
  const DType dtype = has_floats(value) ? DType::F32 : DType::I64;
  if (auto list = list_tensor(value, dtype)) return *std::move(list);
  return args.tensor(context, place);  // says what is wrong with it
}

}  // namespace

Graph read_graph(const Context& context, const Args& args, std::size_t place, const tl::Tensor& x) {
  const tl::Tensor given = graph_tensor(context, args, place);
  Graph graph;
  graph.nodes = x.dim(0);
  if (given.rank() != 2) no_graph(args, place, given.shape(), graph.nodes);
  const bool square = given.dim(0) == graph.nodes && given.dim(1) == graph.nodes;
  const bool pairs = given.dim(0) == 2;
  if (square && !(pairs && is_int(given.dtype()))) {
    graph.adjacency = to(to_dtype(given, x.dtype()), x.device());
    return graph;
  }
  if (!pairs) no_graph(args, place, given.shape(), graph.nodes);
  const tl::Tensor ids = index_tensor(context, join(args.name(), "()"), given);
  check_ids(ids, graph.nodes);
  const tl::Tensor there = to(ids, x.device());
  graph.from = there.get(0);
  graph.to = there.get(1);
  return graph;
}

Graph with_edges(const Graph& graph) {
  if (!graph.is_dense()) return graph;
  const tl::Tensor places = nonzero(*graph.adjacency);  // (edges, 2): row, column
  Graph out;
  out.nodes = graph.nodes;
  out.from = contiguous(places.get_on_dim(1, 1));
  out.to = contiguous(places.get_on_dim(1, 0));
  return out;
}

Graph with_own_loops(const Graph& graph) {
  // The largest index stands for nothing: such an edge picks zeros and adds to no node.
  const Scalar nothing = graph.from.dtype() == DType::I64
                             ? std::numeric_limits<std::int64_t>::max()
                             : std::int64_t{std::numeric_limits<std::int32_t>::max()};
  const tl::Tensor loop = eq(graph.from, graph.to);
  const tl::Tensor nodes = arange(graph.nodes, graph.from.dtype(), graph.from.device());
  Graph out;
  out.nodes = graph.nodes;
  out.from = cat({masked_fill(graph.from, loop, nothing), nodes}, 0);
  out.to = cat({masked_fill(graph.to, loop, nothing), nodes}, 0);
  return out;
}

Aggregate aggregate_named(const Args& args, std::size_t i) {
  const std::string& text = args.string(i);
  if (text == "sum") return Aggregate::Sum;
  if (text == "mean") return Aggregate::Mean;
  if (text == "max") return Aggregate::Max;
  args.bad_value(i, R"("sum", "mean" or "max")");
}

tl::Tensor sum_at_nodes(const Graph& graph, const tl::Tensor& messages) {
  Shape shape = messages.shape();
  shape[0] = graph.nodes;
  const auto none = tl::Tensor::zeros(shape, messages.dtype(), messages.device());
  return index_add(none, 0, graph.to, messages);
}

// Edges are sorted by their message in each column, and each writes its number to its node: the
// last to write is the largest. What is then picked by these numbers has the gradient it should.
tl::Tensor max_at_nodes(const Graph& graph, const tl::Tensor& messages) {
  const Shape shape{graph.nodes, messages.dim(1)};
  if (messages.empty()) return tl::Tensor::zeros(shape, messages.dtype(), messages.device());
  constexpr std::int64_t kNothing = std::numeric_limits<std::uint32_t>::max();
  const tl::Tensor order = argsort(messages, 0);  // (edges, d), u32
  const tl::Tensor nodes = reshape(graph.to, {graph.to.dim(0), 1}).broadcast_as(messages.shape());
  const tl::Tensor none = full(shape, kNothing, DType::U32, messages.device());
  const tl::Tensor largest = scatter(none, 0, gather(nodes, 0, order), order);
  return gather(messages, 0, largest);
}

namespace {

tl::Tensor at_edges(const Graph& graph, const tl::Tensor& x,
                    const std::optional<tl::Tensor>& weights) {
  const tl::Tensor messages = index_select(x, 0, graph.from);
  return weights ? mul(messages, reshape(*weights, {weights->dim(0), 1})) : messages;
}

// How many edges lead to each node, at least 1; (nodes, 1).
tl::Tensor degrees(const Graph& graph, const tl::Tensor& x) {
  if (graph.is_dense()) {
    return to_dtype(maximum(count_nonzero(*graph.adjacency, {1}, /*keepdim=*/true), 1), x.dtype());
  }
  const tl::Tensor each = ones({graph.to.dim(0)}, x.dtype(), x.device());
  return reshape(maximum(sum_at_nodes(graph, each), 1), {graph.nodes, 1});
}

}  // namespace

tl::Tensor aggregated(const Graph& graph, const tl::Tensor& x,
                      const std::optional<tl::Tensor>& weights, Aggregate aggregate) {
  if (aggregate == Aggregate::Max) {
    if (!graph.is_dense()) return max_at_nodes(graph, at_edges(graph, x, weights));
    const Graph edges = with_edges(graph);
    const tl::Tensor places = add(mul(edges.to, graph.nodes), edges.from);
    return max_at_nodes(edges, at_edges(edges, x, take(*graph.adjacency, places)));
  }
  const tl::Tensor sums = graph.is_dense() ? matmul(*graph.adjacency, x)
                                           : sum_at_nodes(graph, at_edges(graph, x, weights));
  return aggregate == Aggregate::Sum ? sums : div(sums, degrees(graph, x));
}

}  // namespace tl::lang
