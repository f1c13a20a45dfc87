#include "lang/logic_forward.h"

#include <algorithm>
#include <map>
#include <set>

#include "lang/rule_sums.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"

namespace tl::lang {

namespace {

using logic::RelationId;

constexpr int kMostRounds = 100000;

class Forward {
 public:
  // `learned`: of a relation with an embedding that alone counts; else its facts and rules do.
  Forward(Context& context, RelationId relation, bool learned)
      : context_(context), k_(knowledge_of(context)), db_(k_.database(context)), learned_(learned) {
    collect(relation);
  }

  bool possible() const noexcept { return possible_; }
  bool large() const noexcept { return large_; }  // some relation cannot be dense

  // With a step, until nothing changes; for rules without large relations.
  tl::Tensor fixed_point(RelationId wanted) {
    start();
    // What was learned is there or not: then rounds only add, and the same sum is the same tensors.
    for (auto& [relation, value] : values_) value = stepped(std::get<tl::Tensor>(value));
    facts_ = values_;
    double before = total();
    for (int round = 0; round < kMostRounds; ++round) {
      context_.count_work();
      apply(true);
      const double now = total();
      if (now == before) return std::get<tl::Tensor>(values_.at(wanted));
      before = now;
    }
    throw RuntimeError(tl::join("rules of '", db_.name(wanted), "' have no fixed point after ",
                                kMostRounds, " rounds"));
  }

  // Rounds after which rules without recursion give nothing new; more for recursion.
  std::int64_t depth() const {
    const auto needed = static_cast<std::int64_t>(order_.size());
    return is_recursive() ? std::max(needed, kRecursion) : needed;
  }

  const AnyTensor& rounds(RelationId wanted, std::int64_t count) {
    start();
    for (std::int64_t round = 0; round < count; ++round) {
      context_.count_work();
      apply(false);
    }
    return values_.at(wanted);
  }

  // What a query asks for after so many rounds. Of the last round nothing else is computed.
  tl::Tensor score(const RuleSum& query, std::int64_t count) {
    const RelationId wanted = query.relations[0];
    if (!is_used(wanted)) left_out_ = wanted;
    rounds(wanted, std::max<std::int64_t>(count - 1, 0));
    const auto value_of = [&](RelationId r) { return values_.at(r); };
    tl::Tensor out =
        contract(context_, factors_of(context_, query, [&](RelationId r) { return facts_.at(r); }),
                 query.output);
    const auto rules = sums_.find(wanted);
    if (count == 0 || rules == sums_.end()) return out;
    for (const RuleSum& rule : rules->second) {
      const RuleSum asked = asked_of_rule(query, rule);
      out = add(out, contract(context_, factors_of(context_, asked, value_of), asked.output));
    }
    return out;
  }

 private:
  // The relation and all that its rules need.
  void collect(RelationId relation) {
    if (std::find(order_.begin(), order_.end(), relation) != order_.end()) return;
    order_.push_back(relation);
    for (const logic::ColumnType& column : db_.columns(relation)) {
      if (k_.domain(column) == nullptr) possible_ = false;
    }
    if (!possible_) return;
    large_ |= k_.is_large(relation);
    if (learned_ && k_.is_soft(relation)) return;
    for (std::size_t r = 0; r < db_.rule_count() && possible_; ++r) {
      const logic::Rule& rule = db_.rule(r);
      if (rule.relation != relation) continue;
      auto sum = sum_of_rule(k_, db_, rule);
      if (!sum) {
        possible_ = false;
        return;
      }
      for (const RelationId used : sum->relations) collect(used);
      sums_[relation].push_back(std::move(*sum));
    }
  }

  bool is_recursive() const {
    return std::any_of(sums_.begin(), sums_.end(), [&](const auto& entry) {
      std::set<RelationId> seen;
      return reaches(entry.first, entry.first, seen);
    });
  }
  bool reaches(RelationId from, RelationId to, std::set<RelationId>& seen) const {
    const auto rules = sums_.find(from);
    if (rules == sums_.end() || !seen.insert(from).second) return false;
    for (const RuleSum& sum : rules->second) {
      for (const RelationId used : sum.relations) {
        if (used == to || reaches(used, to, seen)) return true;
      }
    }
    return false;
  }

  // Does some rule ask for it?
  bool is_used(RelationId relation) const {
    return std::any_of(sums_.begin(), sums_.end(), [&](const auto& entry) {
      return std::any_of(entry.second.begin(), entry.second.end(), [&](const RuleSum& sum) {
        return std::find(sum.relations.begin(), sum.relations.end(), relation) !=
               sum.relations.end();
      });
    });
  }

  AnyTensor beginning(RelationId relation) {
    if (learned_ || !k_.is_soft(relation)) return k_.weights(context_, relation);
    return k_.facts_tensor(context_, relation);
  }

  void start() {
    values_.clear();
    for (const RelationId r : order_) values_.emplace(r, beginning(r));
    facts_ = values_;
  }

  static tl::Tensor stepped(const tl::Tensor& x) { return to_dtype(gt(x, 0), DType::F32); }

  void apply(bool with_step) {
    std::map<RelationId, AnyTensor> next = values_;
    for (const auto& [relation, sums] : sums_) {
      if (relation == left_out_) continue;
      AnyTensor value = facts_.at(relation);
      for (const RuleSum& sum : sums) value = plus(value, sum);
      if (with_step) value = stepped(std::get<tl::Tensor>(value));
      next.at(relation) = std::move(value);
    }
    values_ = std::move(next);
  }

  AnyTensor plus(const AnyTensor& value, const RuleSum& sum) const {
    const std::vector<Factor> factors =
        factors_of(context_, sum, [&](RelationId r) { return values_.at(r); });
    if (const auto* dense = std::get_if<tl::Tensor>(&value)) {
      return add(*dense, contract(context_, factors, sum.output));
    }
    return add_sparse(context_, std::get<SparseTensor>(value),
                      contract_sparse(context_, factors, sum.output));
  }

  double total() const {
    double out = 0;
    for (const auto& [relation, sums] : sums_) {
      const auto& x = std::get<tl::Tensor>(values_.at(relation));
      out += sum_all(to_dtype(x, DType::F64)).item().real();
    }
    return out;
  }

  Context& context_;
  Knowledge& k_;
  logic::Database& db_;
  bool learned_;
  bool possible_ = true;
  bool large_ = false;
  std::optional<RelationId> left_out_;  // asked for in the last round alone
  std::vector<RelationId> order_;
  std::map<RelationId, std::vector<RuleSum>> sums_;
  std::map<RelationId, AnyTensor> values_;
  std::map<RelationId, AnyTensor> facts_;
};

[[noreturn]] void throw_no_sums(Context& context, RelationId relation) {
  throw RuntimeError(tl::join(
      "rules of '", knowledge_of(context).program().checked.name(relation),
      "' cannot be sums over tensors: they need entities alone, without negation, comparisons "
      "or aggregates"));
}

std::size_t count_above_zero(const tl::Tensor& x) {
  return static_cast<std::size_t>(count_nonzero_all(gt(x, 0)).item().integer());
}

}  // namespace

tl::Tensor forward_tensor(Context& context, RelationId relation,
                          std::optional<std::int64_t> rounds) {
  Knowledge& k = knowledge_of(context);
  Forward forward(context, relation, rounds.has_value());
  if (!forward.possible()) throw_no_sums(context, relation);
  if (k.is_large(relation)) {
    throw RuntimeError(tl::join(
        "the tensor of relation '", k.program().checked.name(relation), "' would have shape ",
        k.shape(relation), ", more than ", kMostDense, " elements; query_score(",
        k.program().checked.name(relation), "(...)) gives those that a query asks for"));
  }
  if (!rounds) {
    // The joins of the engine give the same facts, and keep only what is there.
    return forward.large() ? k.tensor(context, relation) : forward.fixed_point(relation);
  }
  return std::get<tl::Tensor>(forward.rounds(relation, *rounds));
}

tl::Tensor query_score(Context& context, const LogicSite& site, std::span<const Value> values,
                       std::optional<std::int64_t> depth) {
  Knowledge& k = knowledge_of(context);
  Forward forward(context, site.relation, true);
  if (!forward.possible()) throw_no_sums(context, site.relation);
  const auto sum = sum_of_query(k, site, values, false);
  if (!sum) {
    throw RuntimeError(tl::join("the score of ", site.text,
                                " needs entities and variables alone, without 'where'"));
  }
  return forward.score(*sum, depth.value_or(forward.depth()));
}

std::size_t forward_solutions(Context& context, const LogicSite& site,
                              std::span<const Value> values) {
  Knowledge& k = knowledge_of(context);
  Forward forward(context, site.relation, false);
  if (forward.possible() && !forward.large()) {
    if (const auto sum = sum_of_query(k, site, values, true)) {
      AnyTensor whole = forward.fixed_point(site.relation);
      return count_above_zero(contract(
          context, factors_of(context, *sum, [&](RelationId) { return whole; }), sum->output));
    }
  }
  return k.ask_open(context, site, values).count;
}

}  // namespace tl::lang
