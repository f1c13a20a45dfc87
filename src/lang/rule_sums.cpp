#include "lang/rule_sums.h"

#include <map>

#include "tl/ops/create.h"

namespace tl::lang {

namespace {

using logic::Expression;
using SumOp = Expression::Op;

constexpr std::size_t kMostLetters = 51;  // one is left for the rows of joined places

class Letters {
 public:
  char fresh() {
    const std::size_t at = next_++;
    if (at >= kMostLetters) return 'z';
    return static_cast<char>(at < 26 ? 'a' + at : 'A' + (at - 26));
  }
  bool too_many() const noexcept { return next_ > kMostLetters; }

 private:
  std::size_t next_ = 0;
};

class SumMaker {
 public:
  SumMaker(const Knowledge& knowledge, const logic::Database& db, const logic::Rule& rule)
      : k_(knowledge),
        db_(db),
        rule_(rule),
        variables_(rule.variables.size(), 0),
        domains_(rule.variables.size(), nullptr) {}

  std::optional<RuleSum> make() {
    if (rule_.aggregates() || rule_.body.empty()) return {};
    for (const logic::Literal& l : rule_.body) {
      if (l.kind != logic::Literal::Kind::Atom) return {};
      std::string atom;
      for (std::size_t c = 0; c < l.arguments.size(); ++c) {
        const char letter = argument(l.arguments[c], db_.columns(l.relation)[c]);
        if (letter == 0) return {};
        atom += letter;
      }
      sum_.relations.push_back(l.relation);
      sum_.letters.push_back(std::move(atom));
    }
    for (std::size_t c = 0; c < rule_.head.size(); ++c) {
      const logic::ColumnType& column = db_.columns(rule_.relation)[c];
      char letter = argument(rule_.head[c].value, column);
      if (letter == 0) return {};
      if (sum_.output.find(letter) != std::string::npos) {  // R(x, x): the diagonal
        const char other = letters_.fresh();
        sum_.equal.push_back({letter, other, k_.domain(column)});
        letter = other;
      }
      sum_.output += letter;
    }
    if (letters_.too_many()) return {};
    return std::move(sum_);
  }

 private:
  char argument(const Expression& e, const logic::ColumnType& column) {
    const EntitySet* domain = k_.domain(column);
    if (domain == nullptr) return 0;
    if (e.op == SumOp::Any) return letters_.fresh();
    if (e.op == SumOp::Value) {
      const auto* name = std::get_if<std::string>(&db_.symbols()[e.constant]);
      const std::int64_t at = name != nullptr ? domain->place(*name) : -1;
      if (at < 0) return 0;
      const char letter = letters_.fresh();
      sum_.chosen.push_back({letter, domain, at});
      return letter;
    }
    if (e.op != SumOp::Variable) return 0;
    char& letter = variables_[e.variable];
    if (letter == 0) {
      letter = letters_.fresh();
      domains_[e.variable] = domain;
    }
    return domains_[e.variable] == domain ? letter : '\0';
  }

  const Knowledge& k_;
  const logic::Database& db_;
  const logic::Rule& rule_;
  std::vector<char> variables_;
  std::vector<const EntitySet*> domains_;
  Letters letters_;
  RuleSum sum_;
};

}  // namespace

std::optional<RuleSum> sum_of_rule(const Knowledge& knowledge, const logic::Database& db,
                                   const logic::Rule& rule) {
  return SumMaker(knowledge, db, rule).make();
}

std::optional<RuleSum> sum_of_query(const Knowledge& k, const LogicSite& site,
                                    std::span<const Value> values, bool open) {
  if (!site.where.empty()) return {};
  const auto& columns = k.program().checked.columns(site.relation);
  RuleSum sum;
  Letters letters;
  std::map<std::string, std::pair<char, const EntitySet*>> variables;
  std::string atom;
  for (std::size_t i = 0; i < site.arguments.size(); ++i) {
    const LogicTerm& term = site.arguments[i];
    const EntitySet* domain = k.domain(columns[i]);
    if (domain == nullptr) return {};
    sum.domains.push_back(domain);
    const auto constant = [&](const std::string& name) {
      sum.chosen.push_back({letters.fresh(), domain, k.place(columns[i], name)});
      atom += sum.chosen.back().letter;
    };
    const auto* text = std::get_if<std::string>(&term.constant);
    if (!open && term.kind == LogicTerm::Kind::Value) {
      if (!values[term.slot].is(Kind::String)) return {};
      constant(values[term.slot].string());
    } else if (term.kind == LogicTerm::Kind::Any) {
      atom += letters.fresh();
    } else if (!term.name.empty() &&
               (open || (term.kind == LogicTerm::Kind::Name && domain->place(term.name) < 0))) {
      const auto [at, is_new] = variables.try_emplace(term.name, '\0', domain);
      if (is_new) at->second.first = letters.fresh();
      if (at->second.second != domain) return {};
      if (is_new) sum.output += at->second.first;
      atom += at->second.first;
    } else if (!term.name.empty()) {
      constant(term.name);
    } else if (term.kind == LogicTerm::Kind::Constant && text != nullptr) {
      constant(*text);
    } else {
      return {};
    }
  }
  if (letters.too_many()) return {};
  sum.relations.push_back(site.relation);
  sum.letters.push_back(std::move(atom));
  return sum;
}

RuleSum asked_of_rule(const RuleSum& query, RuleSum rule) {
  const std::string& asked = query.letters[0];
  std::map<char, char> first;  // letters of the query, and those of the rule that they are
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const char letter = rule.output[i];
    const auto [at, is_new] = first.try_emplace(asked[i], letter);
    if (!is_new) rule.equal.push_back({at->second, letter, query.domains[i]});
  }
  for (const RuleSum::Chosen& c : query.chosen) {
    rule.chosen.push_back({first.at(c.letter), c.domain, c.place});
  }
  rule.output.clear();
  for (const char letter : query.output) rule.output += first.at(letter);
  return rule;
}

SparseTensor one_hot_sparse(Context& context, std::int64_t size, std::int64_t place) {
  return {{size}, {place}, ones({1}, DType::F32, context.device)};
}

SparseTensor identity_sparse(Context& context, std::int64_t size) {
  SparseTensor out{{size, size}, {}, ones({size}, DType::F32, context.device)};
  for (std::int64_t i = 0; i < size; ++i) out.places.insert(out.places.end(), {i, i});
  return out;
}

}  // namespace tl::lang
