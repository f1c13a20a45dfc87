#include "logic/stratify.h"

#include <algorithm>
#include <deque>

namespace tl::logic {

namespace {

constexpr std::uint32_t kUnseen = 0xFFFFFFFF;

struct Edge {
  RelationId to = 0;
  bool negative = false;
  std::size_t rule = 0;
  std::int64_t literal = -1;
};
using Graph = std::vector<std::vector<Edge>>;  // of each relation: what it depends on

Graph dependencies(const std::vector<const Rule*>& rules, std::size_t count) {
  Graph graph(count);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    if (rules[r] == nullptr) continue;
    const bool aggregates = rules[r]->aggregates();
    for (std::size_t i = 0; i < rules[r]->body.size(); ++i) {
      const Literal& l = rules[r]->body[i];
      if (l.kind == Literal::Kind::Constraint) continue;
      const bool negative = aggregates || l.kind == Literal::Kind::Negated;
      graph[rules[r]->relation].push_back({l.relation, negative, r, static_cast<std::int64_t>(i)});
    }
  }
  return graph;
}

// Tarjan's components, with a stack of its own: what depends on nothing comes out first.
class Components {
 public:
  explicit Components(const Graph& graph)
      : component(graph.size(), kUnseen),
        graph_(graph),
        low_(graph.size(), kUnseen),
        order_(graph.size(), kUnseen) {
    for (RelationId r = 0; r < graph.size(); ++r) {
      if (order_[r] == kUnseen) visit(r);
    }
  }

  std::vector<std::vector<RelationId>> groups;
  std::vector<std::uint32_t> component;

 private:
  struct Frame {
    RelationId relation;
    std::size_t edge = 0;
  };

  void open(RelationId r) {
    low_[r] = order_[r] = clock_++;
    waiting_.push_back(r);
    frames_.push_back({r});
  }

  void visit(RelationId root) {
    open(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const RelationId r = frame.relation;
      if (frame.edge < graph_[r].size()) {
        const RelationId to = graph_[r][frame.edge++].to;
        if (order_[to] == kUnseen) {
          open(to);
        } else if (component[to] == kUnseen) {
          low_[r] = std::min(low_[r], order_[to]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) {
        RelationId& parent = frames_.back().relation;
        low_[parent] = std::min(low_[parent], low_[r]);
      }
      if (low_[r] == order_[r]) close(r);
    }
  }

  void close(RelationId root) {
    std::vector<RelationId> group;
    RelationId r = 0;
    do {
      r = waiting_.back();
      waiting_.pop_back();
      component[r] = static_cast<std::uint32_t>(groups.size());
      group.push_back(r);
    } while (r != root);
    std::sort(group.begin(), group.end());
    groups.push_back(std::move(group));
  }

  const Graph& graph_;
  std::vector<std::uint32_t> low_, order_;
  std::vector<RelationId> waiting_;
  std::vector<Frame> frames_;
  std::uint32_t clock_ = 0;
};

// The way back from `from` to `to`, both in one component, shortest first.
std::vector<Edge> way(const Graph& graph, const Components& components, RelationId from,
                      RelationId to) {
  std::vector<Edge> came(graph.size());
  std::vector<bool> seen(graph.size());
  std::vector<RelationId> before(graph.size());
  std::deque<RelationId> queue = {from};
  seen[from] = true;
  while (!queue.empty() && from != to) {
    const RelationId r = queue.front();
    queue.pop_front();
    for (const Edge& e : graph[r]) {
      if (seen[e.to] || components.component[e.to] != components.component[from]) continue;
      seen[e.to] = true;
      came[e.to] = e;
      before[e.to] = r;
      queue.push_back(e.to);
    }
    if (seen[to]) break;
  }
  std::vector<Edge> out;
  for (RelationId r = to; r != from; r = before[r]) out.push_back(came[r]);
  std::reverse(out.begin(), out.end());
  return out;
}

void check_cycles(const Graph& graph, const Components& components,
                  const std::vector<const Rule*>& rules,
                  const std::function<std::string(RelationId)>& name) {
  for (RelationId r = 0; r < graph.size(); ++r) {
    for (const Edge& e : graph[r]) {
      if (!e.negative || components.component[r] != components.component[e.to]) continue;
      const bool aggregates = rules[e.rule]->aggregates();
      std::string cycle = join(name(r), aggregates ? " <- aggregate of " : " <- not ", name(e.to));
      for (const Edge& step : way(graph, components, e.to, r)) {
        cycle += join(step.negative ? " <- not " : " <- ", name(step.to));
      }
      throw LogicError(LogicError::What::Unstratified, static_cast<std::int64_t>(e.rule), "'",
                       name(r), "' depends on ", aggregates ? "an aggregate" : "the negation",
                       " of itself: ", cycle)
          .at(e.literal);
    }
  }
}

}  // namespace

std::vector<Stratum> stratify(const std::vector<const Rule*>& rules, std::size_t relation_count,
                              const std::function<std::string(RelationId)>& name) {
  const Graph graph = dependencies(rules, relation_count);
  const Components components(graph);
  check_cycles(graph, components, rules, name);
  std::vector<Stratum> all(components.groups.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i] == nullptr) continue;
    all[components.component[rules[i]->relation]].rules.push_back(i);
  }
  std::vector<Stratum> out;
  for (std::size_t g = 0; g < all.size(); ++g) {
    if (all[g].rules.empty()) continue;
    all[g].relations = components.groups[g];
    for (const RelationId r : all[g].relations) {
      for (const Edge& e : graph[r]) all[g].recursive |= components.component[e.to] == g;
    }
    out.push_back(std::move(all[g]));
  }
  return out;
}

}  // namespace tl::logic
