#include "lang/logic_forward.h"

#include <algorithm>
#include <map>

#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"

namespace tl::lang {

namespace {

using logic::Expression;
using logic::RelationId;
using Op = Expression::Op;

constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of a tensor; beyond it is sparse
constexpr int kMostRounds = 100000;
constexpr std::size_t kMostLetters = 52;

// A rule as an equation of einsum: its atoms, and one-hot vectors for constants.
struct Sum {
  std::string inputs;
  std::string output;
  std::vector<RelationId> relations;
  std::vector<std::pair<const EntitySet*, std::int64_t>> chosen;  // one-hot operands
  std::vector<const EntitySet*> equal;                            // identity operands
};

class SumMaker {
 public:
  SumMaker(const Knowledge& knowledge, const logic::Database& db, const logic::Rule& rule)
      : k_(knowledge),
        db_(db),
        rule_(rule),
        letters_(rule.variables.size(), 0),
        domains_(rule.variables.size(), nullptr) {}

  // Nothing for a rule that is no sum of products.
  std::optional<Sum> make() {
    if (rule_.aggregates()) return {};
    std::string chosen;
    for (const logic::Literal& l : rule_.body) {
      if (l.kind != logic::Literal::Kind::Atom) return {};
      std::string atom;
      for (std::size_t c = 0; c < l.arguments.size(); ++c) {
        const char letter = argument(l.arguments[c], db_.columns(l.relation)[c], chosen);
        if (letter == 0) return {};
        atom += letter;
      }
      sum_.inputs += (sum_.inputs.empty() ? "" : ",") + atom;
      sum_.relations.push_back(l.relation);
    }
    std::string equal;
    for (std::size_t c = 0; c < rule_.head.size(); ++c) {
      char letter = argument(rule_.head[c].value, db_.columns(rule_.relation)[c], chosen);
      if (letter == 0) return {};
      if (sum_.output.find(letter) != std::string::npos) {  // R(x, x): the diagonal
        const char other = fresh();
        equal += tl::join(",", letter, other);
        sum_.equal.push_back(k_.domain(db_.columns(rule_.relation)[c]));
        letter = other;
      }
      sum_.output += letter;
    }
    sum_.inputs += chosen + equal;
    if (next_ > kMostLetters || rule_.body.empty()) return {};
    return std::move(sum_);
  }

 private:
  char fresh() {
    const std::size_t at = next_++;
    if (at >= kMostLetters) return 'z';
    return static_cast<char>(at < 26 ? 'a' + at : 'A' + (at - 26));
  }

  char argument(const Expression& e, const logic::ColumnType& column, std::string& chosen) {
    const EntitySet* domain = k_.domain(column);
    if (domain == nullptr) return 0;
    if (e.op == Op::Any) return fresh();
    if (e.op == Op::Value) {
      const auto* name = std::get_if<std::string>(&db_.symbols()[e.constant]);
      const std::int64_t at = name != nullptr ? domain->place(*name) : -1;
      if (at < 0) return 0;
      const char letter = fresh();
      chosen += tl::join(",", letter);
      sum_.chosen.emplace_back(domain, at);
      return letter;
    }
    if (e.op != Op::Variable) return 0;
    char& letter = letters_[e.variable];
    if (letter == 0) {
      letter = fresh();
      domains_[e.variable] = domain;
    }
    return domains_[e.variable] == domain ? letter : '\0';
  }

  const Knowledge& k_;
  const logic::Database& db_;
  const logic::Rule& rule_;
  std::vector<char> letters_;
  std::vector<const EntitySet*> domains_;
  std::size_t next_ = 0;
  Sum sum_;
};

class Forward {
 public:
  Forward(Context& context, RelationId relation)
      : context_(context), k_(knowledge_of(context)), db_(k_.database(context)) {
    collect(relation);
  }

  bool possible() const noexcept { return possible_; }

  tl::Tensor fixed_point(RelationId wanted) {
    start();
    // What was learned is there or not: then rounds only add, and the same sum is the same tensors.
    for (auto& [relation, tensor] : tensors_) tensor = stepped(tensor);
    facts_ = tensors_;
    double before = total();
    for (int round = 0; round < kMostRounds; ++round) {
      context_.count_work();
      apply(true);
      const double now = total();
      if (now == before) return tensors_.at(wanted);
      before = now;
    }
    throw RuntimeError(tl::join("rules of '", db_.name(wanted), "' have no fixed point after ",
                                kMostRounds, " rounds"));
  }

  // Rounds after which rules without recursion give nothing new.
  std::int64_t depth() const noexcept { return static_cast<std::int64_t>(order_.size()); }

  tl::Tensor rounds(RelationId wanted, std::int64_t count) {
    start();
    for (std::int64_t round = 0; round < count; ++round) {
      context_.count_work();
      apply(false);
    }
    return tensors_.at(wanted);
  }

 private:
  // The relation and all that its rules need.
  void collect(RelationId relation) {
    if (std::find(order_.begin(), order_.end(), relation) != order_.end()) return;
    order_.push_back(relation);
    for (const logic::ColumnType& column : db_.columns(relation)) {
      if (k_.domain(column) == nullptr) possible_ = false;
    }
    if (!possible_ || !fits(relation)) {
      possible_ = false;
      return;
    }
    for (std::size_t r = 0; r < db_.rule_count() && possible_; ++r) {
      const logic::Rule& rule = db_.rule(r);
      if (rule.relation != relation) continue;
      auto sum = SumMaker(k_, db_, rule).make();
      if (!sum) {
        possible_ = false;
        return;
      }
      for (const RelationId used : sum->relations) collect(used);
      sums_[relation].push_back(std::move(*sum));
    }
  }

  bool fits(RelationId relation) const {
    std::int64_t count = 1;
    for (const std::int64_t size : k_.shape(relation)) {
      count *= size;
      if (count > kMostElements) return false;
    }
    return true;
  }

  void start() {
    tensors_.clear();
    for (const RelationId r : order_) tensors_.emplace(r, k_.weights(context_, r));
    facts_ = tensors_;
  }

  static tl::Tensor stepped(const tl::Tensor& x) { return to_dtype(gt(x, 0), DType::F32); }

  void apply(bool with_step) {
    std::map<RelationId, tl::Tensor> next = tensors_;
    for (const auto& [relation, sums] : sums_) {
      tl::Tensor value = facts_.at(relation);
      for (const Sum& sum : sums) value = add(value, product(sum));
      next.at(relation) = with_step ? stepped(value) : value;
    }
    tensors_ = std::move(next);
  }

  tl::Tensor product(const Sum& sum) const {
    std::vector<tl::Tensor> operands;
    for (const RelationId r : sum.relations) operands.push_back(tensors_.at(r));
    for (const auto& [domain, at] : sum.chosen) {
      std::vector<float> values(domain->size());
      values[static_cast<std::size_t>(at)] = 1;
      operands.push_back(tl::Tensor::from(values, context_.device));
    }
    for (const EntitySet* domain : sum.equal) {
      operands.push_back(
          eye(static_cast<std::int64_t>(domain->size()), DType::F32, context_.device));
    }
    return einsum(tl::join(sum.inputs, "->", sum.output), operands);
  }

  double total() const {
    double out = 0;
    for (const auto& [relation, sums] : sums_) {
      out += sum_all(to_dtype(tensors_.at(relation), DType::F64)).item().real();
    }
    return out;
  }

  Context& context_;
  Knowledge& k_;
  logic::Database& db_;
  bool possible_ = true;
  std::vector<RelationId> order_;
  std::map<RelationId, std::vector<Sum>> sums_;
  std::map<RelationId, tl::Tensor> tensors_;
  std::map<RelationId, tl::Tensor> facts_;
};

// Names of the arguments by the number of the first that has the same; -1 for a constant.
struct Pattern {
  std::vector<int> same;
  std::vector<std::int64_t> chosen;
};

// The indices of an element, in `at`.
std::span<const std::int64_t> places_of(std::int64_t element, const Shape& shape,
                                        std::span<std::int64_t> at) {
  for (std::size_t c = at.size(); c-- > 0;) {
    at[c] = element % shape[static_cast<int>(c)];
    element /= shape[static_cast<int>(c)];
  }
  return at;
}

bool fits(const Pattern& pattern, std::span<const std::int64_t> at) {
  for (std::size_t c = 0; c < at.size(); ++c) {
    const bool here = pattern.same[c] < 0 ? at[c] == pattern.chosen[c]
                                          : at[c] == at[static_cast<std::size_t>(pattern.same[c])];
    if (!here) return false;
  }
  return true;
}

// `open`: every name is a variable, an entity's too.
// `values` are those of the program's variables.
std::optional<Pattern> pattern_of(const Knowledge& k, const LogicSite& site,
                                  std::span<const Value> values, bool open) {
  Pattern out;
  const auto& columns = k.program().checked.columns(site.relation);
  std::map<std::string, int> first;
  if (!site.where.empty()) return {};
  for (std::size_t i = 0; i < site.arguments.size(); ++i) {
    const LogicTerm& term = site.arguments[i];
    const EntitySet& domain = *k.domain(columns[i]);
    const auto variable = [&](int same) {
      out.same.push_back(same);
      out.chosen.push_back(-1);
    };
    const auto constant = [&](const std::string& name) {
      out.same.push_back(-1);
      out.chosen.push_back(domain.place(name));
    };
    const auto* text = std::get_if<std::string>(&term.constant);
    if (!open && term.kind == LogicTerm::Kind::Value) {
      if (!values[term.slot].is(Kind::String)) return {};
      constant(values[term.slot].string());
    } else if (term.kind == LogicTerm::Kind::Any) {
      variable(static_cast<int>(i));
    } else if (!term.name.empty() && (open || domain.place(term.name) < 0)) {
      variable(first.emplace(term.name, static_cast<int>(i)).first->second);
    } else if (!term.name.empty()) {
      constant(term.name);
    } else if (term.kind == LogicTerm::Kind::Constant && text != nullptr) {
      constant(*text);
    } else {
      return {};
    }
  }
  return out;
}

// 1 where the pattern fits. The elements of one constant, or of equal names, lie on a line.
tl::Tensor matching(const Shape& shape, const Pattern& pattern, const Device& device) {
  std::vector<float> values(static_cast<std::size_t>(element_count("query", shape)), 1);
  std::vector<std::int64_t> at(pattern.same.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = fits(pattern, places_of(static_cast<std::int64_t>(i), shape, at)) ? 1.0F : 0.0F;
  }
  return tl::Tensor::from(values, shape, device);
}

std::size_t count_matches(const tl::Tensor& tensor, const Pattern& pattern) {
  const std::vector<float> values = tensor.to_vector<float>();
  const Shape& shape = tensor.shape();
  std::vector<std::int64_t> at(pattern.same.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0)) continue;
    count += fits(pattern, places_of(static_cast<std::int64_t>(i), shape, at)) ? 1 : 0;
  }
  return count;
}

}  // namespace

bool has_tensor_rules(Context& context, RelationId relation) {
  return Forward(context, relation).possible();
}

tl::Tensor forward_tensor(Context& context, RelationId relation,
                          std::optional<std::int64_t> rounds) {
  Forward forward(context, relation);
  if (!forward.possible()) {
    throw RuntimeError(tl::join(
        "rules of '", knowledge_of(context).program().checked.name(relation),
        "' cannot be sums over tensors: they need entities alone, without negation, comparisons "
        "or aggregates, and tensors of at most ",
        kMostElements, " elements"));
  }
  return rounds ? forward.rounds(relation, *rounds) : forward.fixed_point(relation);
}

tl::Tensor query_score(Context& context, const LogicSite& site, std::span<const Value> values) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  const tl::Tensor rules =
      forward_tensor(context, site.relation, Forward(context, site.relation).depth());
  const auto pattern = pattern_of(k, site, values, false);
  if (!pattern) {
    throw RuntimeError(tl::join("a gradient of ", site.text,
                                " needs entities and variables alone, without 'where'"));
  }
  return sum_all(mul(rules, matching(rules.shape(), *pattern, rules.device())));
}

std::size_t forward_solutions(Context& context, const LogicSite& site,
                              std::span<const Value> values) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  Forward forward(context, site.relation);
  if (forward.possible()) {
    if (const auto pattern = pattern_of(k, site, values, true)) {
      return count_matches(forward.fixed_point(site.relation), *pattern);
    }
  }
  return k.ask_open(context, site, values).count;
}

}  // namespace tl::lang
