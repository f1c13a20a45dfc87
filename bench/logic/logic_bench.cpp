// One logic program over the edges of a CSV file, its tuples to a file:
//
//   logic_bench closure|same_generation|negation EDGES OUT
//
// bench/logic/compare.py runs it beside other engines.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

#include "tl/logic/database.h"

namespace {

using namespace tl::logic;

Literal atom(RelationId relation, std::initializer_list<std::uint32_t> variables,
             Literal::Kind kind = Literal::Kind::Atom) {
  Literal l;
  l.kind = kind;
  l.relation = relation;
  for (const std::uint32_t v : variables) l.arguments.push_back(Expression::of_variable(v));
  return l;
}

void add_rule(Database& db, RelationId head, std::initializer_list<std::uint32_t> variables,
              std::vector<Literal> body) {
  Rule rule;
  rule.relation = head;
  for (const std::uint32_t v : variables) {
    rule.head.push_back({Expression::of_variable(v), Aggregate::None});
  }
  rule.body = std::move(body);
  rule.variables = {"x", "y", "z", "w"};
  db.add_rule(std::move(rule));
}

// Variables: 0 is x, 1 is y, 2 is z, 3 is w.
RelationId program(Database& db, const std::string& name, RelationId edge) {
  const RelationId result = db.declare("result", {{}, {}});
  if (name == "same_generation") {
    add_rule(db, result, {0, 1}, {atom(edge, {2, 0}), atom(edge, {2, 1})});
    add_rule(db, result, {0, 1}, {atom(edge, {2, 0}), atom(result, {2, 3}), atom(edge, {3, 1})});
    return result;
  }
  const RelationId path = name == "negation" ? db.declare("path", {{}, {}}) : result;
  add_rule(db, path, {0, 1}, {atom(edge, {0, 1})});
  add_rule(db, path, {0, 2}, {atom(path, {0, 1}), atom(edge, {1, 2})});
  if (name == "negation") {
    const RelationId node = db.declare("node", {{}});
    add_rule(db, node, {0}, {atom(edge, {0, 1})});
    add_rule(db, node, {1}, {atom(edge, {0, 1})});
    add_rule(db, result, {0, 1},
             {atom(node, {0}), atom(node, {1}), atom(path, {0, 1}, Literal::Kind::Negated)});
  }
  return result;
}

void write(const Database& db, const Table& tuples, const char* path) {
  std::string text;
  for (std::size_t i = 0; i < tuples.size(); ++i) {
    const auto tuple = tuples.tuple(i);
    text += to_text(db.symbols()[tuple[0]]) + "," + to_text(db.symbols()[tuple[1]]) + "\n";
  }
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "logic_bench closure|same_generation|negation EDGES OUT\n";
    return 2;
  }
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  Database db;
  const RelationId edge = db.declare("edge", {{}, {}});
  db.load_csv(edge, argv[2]);
  const RelationId result = program(db, argv[1], edge);
  const auto loaded = Clock::now();
  const Table& tuples = db.tuples(result);
  const auto done = Clock::now();
  write(db, tuples, argv[3]);
  const auto ms = [](auto span) { return std::chrono::duration<double, std::milli>(span).count(); };
  std::printf("%zu tuples, load %.1f ms, evaluate %.1f ms\n", tuples.size(), ms(loaded - start),
              ms(done - loaded));
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
