// Facts that are not there, for learning from what is: each given fact with its head or its tail
// exchanged for another entity, and never one that is known.
#include <array>
#include <unordered_set>

#include "lang/builtins/knowledge.h"
#include "lang/builtins/library.h"
#include "lang/convert.h"
#include "tl/ops/copy.h"

namespace tl::lang {

namespace {

// (head, relation, tail); pairs have relation 0.
using Fact = std::array<std::int64_t, 3>;
constexpr std::size_t kHead = 0;
constexpr std::size_t kTail = 2;

struct FactHash {
  std::size_t operator()(const Fact& fact) const noexcept {
    std::uint64_t hash = 0;
    for (const std::int64_t id : fact) {
      hash = (hash ^ static_cast<std::uint64_t>(id)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};
using Facts = std::unordered_set<Fact, FactHash>;

// The same numbers for one seed on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  // From 0 to `end`, not included, each as likely.
  std::int64_t below(std::int64_t end) {
    const auto range = static_cast<std::uint64_t>(end);
    const std::uint64_t fair = ~std::uint64_t{0} - ~std::uint64_t{0} % range;  // a multiple of it
    std::uint64_t x = next();
    while (x >= fair) x = next();
    return static_cast<std::int64_t>(x % range);
  }

 private:
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = state_;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }

  std::uint64_t state_;
};

// Rows of an integer matrix with 3 columns, or with 2: heads and tails.
struct FactTable {
  std::vector<Fact> facts;
  std::int64_t columns = 3;
};

FactTable read_facts(const Context& context, const Args& args, std::size_t i,
                     std::int64_t entities) {
  if (!is_tensor_like(args[i])) args.bad(i, "a tensor of shape [n, 3] or [n, 2]");
  const tl::Tensor given = index_tensor(context, join(args.name(), "()"), args[i]);
  const bool none = given.empty();
  if (!none && (given.rank() != 2 || given.dim(1) < 2 || given.dim(1) > 3)) {
    throw type_error(args.name(), "() expects facts of shape [n, 3] or [n, 2] for '",
                     args.builtin().parameters[i].name, "', got ", bracketed(given.shape()));
  }
  FactTable table;
  if (given.rank() == 2 && given.dim(1) == 2) table.columns = 2;
  const auto ids = to_dtype(to(given, Device::cpu()), DType::I64).to_vector<std::int64_t>();
  const auto columns = static_cast<std::size_t>(table.columns);
  for (std::size_t at = 0; at < ids.size(); at += columns) {
    const Fact fact{ids[at], columns == 3 ? ids[at + 1] : 0, ids[at + columns - 1]};
    for (const std::int64_t id : {fact[kHead], fact[kTail]}) {
      if (id >= 0 && id < entities) continue;
      throw RuntimeError(join("Index ", id, " out of bounds for length ", entities));
    }
    table.facts.push_back(fact);
  }
  return table;
}

class Corruptor {
 public:
  Corruptor(Facts known, std::int64_t entities, std::vector<std::size_t> sides, Draws draws)
      : known_(std::move(known)), entities_(entities), sides_(std::move(sides)), draws_(draws) {}

  // Nothing where every other entity makes a known fact.
  std::optional<Fact> corrupted(const Fact& fact) {
    constexpr int kTries = 64;
    for (int i = 0; i < kTries; ++i) {
      Fact other = fact;
      const auto side = draws_.below(static_cast<std::int64_t>(sides_.size()));
      other[sides_[static_cast<std::size_t>(side)]] = draws_.below(entities_);
      if (!known_.contains(other)) return other;
    }
    return one_of_few(fact);
  }

 private:
  // Where guessing fails, all that are left are looked for.
  std::optional<Fact> one_of_few(const Fact& fact) {
    std::vector<Fact> left;
    for (const std::size_t side : sides_) {
      Fact other = fact;
      for (other[side] = 0; other[side] < entities_; ++other[side]) {
        if (!known_.contains(other)) left.push_back(other);
      }
    }
    if (left.empty()) return std::nullopt;
    return left[static_cast<std::size_t>(draws_.below(static_cast<std::int64_t>(left.size())))];
  }

  Facts known_;  // with the facts that are exchanged, so none comes out as it went in
  std::int64_t entities_;
  std::vector<std::size_t> sides_;
  Draws draws_;
};

std::vector<std::size_t> sides_named(const Args& args, std::size_t i) {
  const std::string& text = args.string(i);
  if (text == "both") return {kHead, kTail};
  if (text == "head") return {kHead};
  if (text == "tail") return {kTail};
  args.bad_value(i, "\"both\", \"head\" or \"tail\"");
}

void add_known(const Context& context, const Args& args, std::size_t i, std::int64_t entities,
               const FactTable& given, Facts& known) {
  const FactTable more = read_facts(context, args, i, entities);
  if (!more.facts.empty() && more.columns != given.columns) {
    throw type_error(args.name(), "() expects facts of ", given.columns, " columns for '",
                     args.builtin().parameters[i].name, "', as for '",
                     args.builtin().parameters[0].name, "', got ", more.columns);
  }
  known.insert(more.facts.begin(), more.facts.end());
}

std::string fact_text(const Fact& fact, std::int64_t columns) {
  return columns == 2 ? join("(", fact[kHead], ", ", fact[kTail], ")")
                      : join("(", fact[kHead], ", ", fact[1], ", ", fact[kTail], ")");
}

Value call_negative_samples(Context& context, Args& args) {
  const std::int64_t entities = args.integer(1);
  if (entities < 1) args.bad_value(1, "a number of entities from 1");
  const std::int64_t count = args.integer(2);
  if (count < 1) args.bad_value(2, "a count from 1");
  const std::vector<std::size_t> sides = sides_named(args, 5);
  const FactTable given = read_facts(context, args, 0, entities);
  const auto rows = static_cast<std::int64_t>(given.facts.size());
  if (rows > 0 && count > kMostElements / (3 * rows)) {
    throw invalid_operation("negative_samples(): ", count, " samples for each of ", rows,
                            " facts are too many");
  }
  Facts known(given.facts.begin(), given.facts.end());
  if (args.has(4)) add_known(context, args, 4, entities, given, known);

  const std::uint64_t seed =
      args.has(3) ? static_cast<std::uint64_t>(args.integer(3)) : next_seed(context.device);
  Corruptor corruptor(std::move(known), entities, sides, Draws(seed));
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(rows * count * given.columns));
  for (const Fact& fact : given.facts) {
    context.check_interrupt();
    for (std::int64_t k = 0; k < count; ++k) {
      const auto other = corruptor.corrupted(fact);
      if (!other) {
        throw invalid_operation("negative_samples(): every change of the fact ",
                                fact_text(fact, given.columns), " gives a known one");
      }
      out.push_back((*other)[kHead]);
      if (given.columns == 3) out.push_back((*other)[1]);
      out.push_back((*other)[kTail]);
    }
  }
  const Device device = args[0].is(Kind::Tensor) ? args[0].tensor().device() : context.device.get();
  return tl::Tensor::from(out, {rows * count, given.columns}, device);
}

}  // namespace

BuiltinRows negative_sample_builtins() {
  static const Builtin rows[] = {
      {"negative_samples", "knowledge",
       "(triples, n_entities, count = 1, seed = none, known = none, corrupt = \"both\")",
       "Each fact `count` times with another head or tail, never one that is known.",
       call_negative_samples},
  };
  return rows;
}

}  // namespace tl::lang
