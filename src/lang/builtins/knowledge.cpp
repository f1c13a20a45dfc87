// Knowledge graphs: how likely a fact (head, relation, tail) is by the embeddings of its parts, and
// what a model of them is judged by.
//
// Scores are sums over the last dimension, so one call takes vectors, rows of them, or one of them
// against all rows of a table. Everything up to the losses is made of ops alone: no value is read
// on the way.
#include "lang/builtins/knowledge.h"
#include "lang/builtins/library.h"
#include "lang/builtins/operands.h"
#include "lang/builtins/tensors.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/loss.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"

namespace tl::lang {

namespace {

// ---- scores

// One score for vectors, one per row for rows; numbers are scores already.
Value scored(const Operands& operands, tl::Tensor x) {
  if (!operands.are_numbers() && x.rank() == 0) x = reshape(x, {1});
  return operands.result(std::move(x));
}

// The sum over the last dimension. That of a vector keeps its place, so that the score has one
// element that can be asked for.
tl::Tensor total(const tl::Tensor& x) {
  return x.rank() == 0 ? x : sum(x, {-1}, /*keepdim=*/x.rank() == 1);
}

// The norm that the text names: 1 or 2.
int norm_named(const Args& args, std::size_t i) {
  const std::string& text = args.string(i);
  if (text == "L1" || text == "l1") return 1;
  if (text == "L2" || text == "l2") return 2;
  args.bad_value(i, "\"L1\" or \"L2\"");
}

// -|h + r - t|, as a difference: a perfect fit scores 0 and not -0.
Value call_transe(Context& context, Args& args) {
  const int p = norm_named(args, 3);
  const Operands x(context, args, {0, 1, 2});
  x.common_shape(/*vectors=*/true);
  const tl::Tensor distance = sub(add(x[0], x[1]), x[2]);
  if (p == 1 || distance.rank() == 0) return scored(x, sub(0, total(abs(distance))));
  return scored(x, sub(0, norm(distance, {-1}, 2, /*keepdim=*/distance.rank() == 1)));
}

Value call_distmult(Context& context, Args& args) {
  const Operands x(context, args, {0, 1, 2});
  x.common_shape(/*vectors=*/true);
  return scored(x, total(mul(mul(x[0], x[1]), x[2])));
}

// The real part of h r conj(t): h r is computed first, which is small where t is a table.
Value call_complex(Context& context, Args& args) {
  const Operands x(context, args, {0, 1, 2, 3, 4, 5});
  x.common_shape(/*vectors=*/true);
  const tl::Tensor real = sub(mul(x[0], x[2]), mul(x[1], x[3]));
  const tl::Tensor imaginary = add(mul(x[0], x[3]), mul(x[1], x[2]));
  return scored(x, total(add(mul(real, x[4]), mul(imaginary, x[5]))));
}

// ---- losses

Value call_margin_ranking_loss(Context& context, Args& args) {
  if (!is_plain_number(args[2])) {
    const Operands x(context, args, {0, 1, 2});
    x.common_shape(/*vectors=*/false);
    return relu(add(sub(x[1], x[0]), x[2]));
  }
  const Operands x(context, args, {0, 1});
  x.common_shape(/*vectors=*/false);
  return x.result(relu(add(sub(x[1], x[0]), args.real(2))));
}

tl::Tensor reduced(const Args& args, std::size_t i, const tl::Tensor& losses) {
  const std::string& reduction = args.string(i);
  if (reduction == "none") return losses;
  if (reduction == "sum") return sum_all(losses);
  if (reduction == "mean") return mean_all(losses);
  args.bad_value(i, "\"mean\", \"sum\" or \"none\"");
}

// A number as the target says that x is a score: the loss of sigmoid(x), each logarithm at least
// -100. Beside a tensor of targets x is a tensor of probabilities, as in the op of this name.
Value call_binary_cross_entropy(Context& context, Args& args) {
  if (!is_plain_number(args[1])) {
    const Operands x(context, args, {0, 1});
    return binary_cross_entropy(x[0], x[1], args.string(2));
  }
  const double target = args.real(1);
  if (!(target >= 0 && target <= 1)) args.bad_value(1, "a target from 0 to 1");
  constexpr double kMost = 100;
  const Operands x(context, args, {0});
  // -log(sigmoid(x)) is softplus(-x), and -log(1 - sigmoid(x)) is softplus(x).
  const tl::Tensor yes = minimum(softplus(neg(x[0])), kMost);
  const tl::Tensor no = minimum(softplus(x[0]), kMost);
  return x.result(reduced(args, 2, add(mul(yes, target), mul(no, 1 - target))));
}

// ---- judging

// The numbers in a list or tensor of ranks, each above 0; nothing for one number.
std::optional<std::vector<double>> rank_list(const Context& context, const Args& args,
                                             std::size_t i) {
  if (real_in(args[i])) return std::nullopt;
  if (!is_tensor_like(args[i])) args.bad(i, "a rank or a list of ranks");
  std::vector<double> ranks = list_of_reals(args.tensor(context, i));
  if (ranks.empty()) args.bad_value(i, "at least one rank");
  for (const double rank : ranks) {
    if (!(rank > 0)) args.bad_value(i, "ranks above 0");
  }
  return ranks;
}

double mean_of(const std::vector<double>& numbers) {
  double total = 0;
  for (const double number : numbers) total += number;
  return total / static_cast<double>(numbers.size());
}

Value call_compute_rank(Context& /*context*/, Args& args) {
  if (!real_in(args[0])) args.bad(0, "a score");
  const std::int64_t better = args.integer(1);
  if (better < 0) args.bad_value(1, "a count from 0");
  return better + 1;
}

// In single precision, as the language defines it.
double reciprocal(double rank) { return 1.0F / static_cast<float>(rank); }

Value call_compute_mrr(Context& context, Args& args) {
  if (auto ranks = rank_list(context, args, 0)) {
    for (double& rank : *ranks) rank = reciprocal(rank);
    return mean_of(*ranks);
  }
  const double rank = args.real(0);
  if (!(rank > 0)) args.bad_value(0, "a rank above 0");
  return reciprocal(rank);
}

Value call_compute_hits_at_k(Context& context, Args& args) {
  const double k = args.real(1);
  const auto is_hit = [&](double rank) { return rank > 0 && rank <= k; };
  if (auto ranks = rank_list(context, args, 0)) {
    for (double& rank : *ranks) rank = is_hit(rank) ? 1 : 0;
    return mean_of(*ranks);
  }
  return is_hit(args.real(0)) ? 1 : 0;
}

Value call_compute_mean_rank(Context& context, Args& args) {
  if (!args.has(1)) {
    const auto ranks = rank_list(context, args, 0);
    if (!ranks) args.bad(1, "a count");
    return mean_of(*ranks);
  }
  const double count = args.real(1);
  if (!(count > 0)) args.bad_value(1, "a count above 0");
  return args.real(0) / count;
}

// How many of those with the same score stand before one.
enum class Ties : std::uint8_t { Average, Best, Worst };

Ties ties_named(const Args& args, std::size_t i) {
  const std::string& text = args.string(i);
  if (text == "average") return Ties::Average;
  if (text == "best") return Ties::Best;
  if (text == "worst") return Ties::Worst;
  args.bad_value(i, "\"average\", \"best\" or \"worst\"");
}

// The index for each row of scores (rows, n), or one for all: (rows or 1, 1).
tl::Tensor column_of(const Context& context, const Args& args, const tl::Tensor& scores) {
  const tl::Tensor ids = checked_ids(context, args, 1, scores.dim(1), scores.device());
  if (ids.rank() <= 1 && (ids.count() == 1 || ids.dim(0) == scores.dim(0))) {
    return reshape(ids, {-1, 1});
  }
  throw RuntimeError(join("Tensor error: Shape mismatch: rank_of(): scores ",
                          bracketed(args.tensor(context, 0).shape()), ", index ",
                          bracketed(ids.shape()), "; there is one index for each row"));
}

// Scores that are not to be counted: true there, (rows, n).
tl::Tensor skipped(const Context& context, const Args& args, const tl::Tensor& scores,
                   const Shape& given) {
  const tl::Tensor skip = to(mask_tensor(context, "rank_of()", args[3]), scores.device());
  if (skip.shape() == given) return reshape(skip, scores.shape());
  throw RuntimeError(join("Tensor error: Shape mismatch: rank_of(): scores ", bracketed(given),
                          ", skip ", bracketed(skip.shape()), "; they need one shape"));
}

// 1 + how many others are better + a share of the equals. A score that is NaN is behind all others.
Value call_rank_of(Context& context, Args& args) {
  const Ties ties = ties_named(args, 2);
  if (!is_tensor_like(args[0])) args.bad(0, "a tensor");
  const tl::Tensor given = number_tensor(context, args, 0);
  if (given.rank() < 1 || given.rank() > 2 || given.empty()) {
    throw type_error("rank_of() expects scores of shape [n] or [rows, n] for 'scores', got ",
                     bracketed(given.shape()));
  }
  const tl::Tensor scores = reshape(given, {-1, given.dim(-1)});
  const tl::Tensor column = column_of(context, args, scores);
  const tl::Tensor own = take_along(scores, 1, column);  // (rows, 1)
  tl::Tensor others = logical_not(one_hot(reshape(column, {-1}), scores.dim(1), DType::U8));
  if (args.has(3)) {
    others = logical_and(others, logical_not(skipped(context, args, scores, given.shape())));
  }
  tl::Tensor better = gt(scores, own);
  if (is_float(scores.dtype())) better = logical_or(better, isnan(own));
  const auto counted = [&](const tl::Tensor& is) {
    return count_nonzero(logical_and(is, others), {1});
  };
  tl::Tensor rank = add(counted(better), 1);
  const tl::Tensor level = counted(eq(scores, own));
  if (ties == Ties::Worst) rank = add(rank, level);
  if (ties == Ties::Average) {
    rank = add(to_dtype(rank, DType::F32), div(to_dtype(level, DType::F32), 2));
  }
  if (given.rank() == 1) return from_tensor_item(rank);
  return rank;
}

constexpr std::string_view kSection = "knowledge";
constexpr std::string_view kThree = "(h, r, t)";
constexpr std::string_view kThreeAndNorm = "(h, r, t, norm = \"L2\")";
constexpr std::string_view kSix = "(h_re, h_im, r_re, r_im, t_re, t_im)";

}  // namespace

BuiltinRows knowledge_builtins() {
  static const Builtin rows[] = {
      {"transe_score", kSection, kThreeAndNorm,
       "-|h + r - t| by the norm \"L2\" or \"L1\": a score, or one for each row.", call_transe},
      {"distmult_score", kSection, kThree, "The sum of h * r * t: a score, or one for each row.",
       call_distmult},
      {"complex_score", kSection, kSix,
       "The real part of the sum of h * r * conj(t): a score, or one for each row.", call_complex},
      {"predict_tail_transe", kSection, kThreeAndNorm,
       "transe_score of tails: with a table of entities for t, a score for each.", call_transe},
      {"predict_head_transe", kSection, kThreeAndNorm,
       "transe_score of heads: with a table of entities for h, a score for each.", call_transe},
      {"predict_tail_distmult", kSection, kThree,
       "distmult_score of tails: with a table of entities for t, a score for each.", call_distmult},
      {"predict_head_distmult", kSection, kThree,
       "distmult_score of heads: with a table of entities for h, a score for each.", call_distmult},
      {"predict_tail_complex", kSection, kSix,
       "complex_score of tails: with tables of entities for t, a score for each.", call_complex},
      {"predict_head_complex", kSection, kSix,
       "complex_score of heads: with tables of entities for h, a score for each.", call_complex},
      {"margin_ranking_loss", kSection, "(pos, neg, margin = 1.0)",
       "max(0, margin + neg - pos), for each pair of scores.", call_margin_ranking_loss},
      {"binary_cross_entropy", kSection, "(x, target, reduction = \"mean\")",
       "-(y log(p) + (1 - y) log(1 - p)): p is sigmoid(x) for a number as target, x for a tensor.",
       call_binary_cross_entropy},
      {"compute_rank", kSection, "(score, better)",
       "The rank of a score that so many others are better than: better + 1.", call_compute_rank},
      {"compute_mrr", kSection, "(rank)", "1 / rank, or the mean of that over a list of ranks.",
       call_compute_mrr},
      {"compute_hits_at_k", kSection, "(rank, k)",
       "1 where the rank is at most k, else 0; the share of those in a list of ranks.",
       call_compute_hits_at_k},
      {"compute_mean_rank", kSection, "(sum, count = none)",
       "sum / count, or the mean of a list of ranks.", call_compute_mean_rank},
      {"rank_of", kSection, "(scores, index, ties = \"average\", skip = none)",
       "The rank, from 1, of the score at that index; of rows, for each its own.", call_rank_of},
  };
  static const std::vector<Builtin> all_rows = joined({rows, negative_sample_builtins()});
  return all_rows;
}

}  // namespace tl::lang
