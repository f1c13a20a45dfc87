// Graphs as programs give them to layers, and what goes along their edges.
#pragma once

#include <optional>
#include <string_view>

#include "lang/builtin.h"

namespace tl::lang {

// A graph of `nodes` nodes: edges from[e] -> to[e], or a dense matrix whose element (i, j) is the
// weight of the edge from j to i. The matrix has the dtype of the features, and both its device.
struct Graph {
  std::int64_t nodes = 0;
  std::optional<tl::Tensor> adjacency;  // (nodes, nodes)
  tl::Tensor from, to;                  // (edges); where there is no matrix

  bool is_dense() const noexcept { return adjacency.has_value(); }
};

// The argument `place` beside features x (nodes, ...). Integers of shape [2, m] are edges and a
// matrix [nodes, nodes] is dense; where it could be both, for two nodes, floats are a matrix.
Graph read_graph(const Context& context, const Args& args, std::size_t place, const tl::Tensor& x);
// The same with edges in any case: those where the matrix is not 0. Waits for the device.
Graph with_edges(const Graph& graph);
// Its edges without loops, and one loop for each node after them.
Graph with_own_loops(const Graph& graph);

enum class Aggregate : std::uint8_t { Sum, Mean, Max };
Aggregate aggregate_named(const Args& args, std::size_t i);

// For each node the sum, mean or largest (element by element) of x[from] * weight over the edges
// to it; 0 for a node that none leads to. x (nodes, d); weights (edges), of a graph of edges.
tl::Tensor aggregated(const Graph& graph, const tl::Tensor& x,
                      const std::optional<tl::Tensor>& weights, Aggregate aggregate);
// The sum for each node of what each edge brings: messages (edges, ...).
tl::Tensor sum_at_nodes(const Graph& graph, const tl::Tensor& messages);
tl::Tensor max_at_nodes(const Graph& graph, const tl::Tensor& messages);  // (edges, d)

BuiltinRows graph_layer_builtins();  // part of graph_builtins()

}  // namespace tl::lang
