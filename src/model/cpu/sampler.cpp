#include "model/cpu/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "ops/cpu/loops.h"
#include "tl/base/error.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

using kernels::SampleRow;
using kernels::SampleState;
using sampling::Bits32;
using sampling::Bits64;

constexpr std::int64_t kNone = -1;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

struct Candidate {
  Bits32 key;
  Bits32 id;
  Bits64 mass;
};
using Candidates = std::vector<Candidate>;  // in the order of their ids

// ---- logits

// The row's own where nothing is added to them.
std::span<const float> adjusted(const SampleRow& row, std::span<const float> logits,
                                std::vector<float>& changed) {
  const kernels::SampleOptions& options = row.state->options;
  if (row.bias == nullptr && options.penalised == 0) return logits;
  changed.assign(logits.begin(), logits.end());
  if (row.bias != nullptr) {
    for (std::size_t i = 0; i < changed.size(); ++i) changed[i] += row.bias[i];
  }
  if (options.penalised != 0) {
    const Bits32* counts = kernels::sample_counts(row.state);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (counts[i] != 0) changed[i] = sampling::penalised(options, changed[i], counts[i]);
    }
  }
  return changed;
}

// The largest of up to this many numbers: NaN is passed over.
constexpr std::size_t kPiece = 64;
float largest(std::span<const float> x) {
  constexpr std::size_t kLanes = 16;  // as many chains of comparisons as fill vector registers
  std::array<float, kLanes> best{};
  best.fill(kLowest);
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) best[k] = x[i + k] > best[k] ? x[i + k] : best[k];
  }
  for (; i < x.size(); ++i) best[0] = x[i] > best[0] ? x[i] : best[0];
  return *std::max_element(best.begin(), best.end());
}
std::vector<float> largest_of_pieces(std::span<const float> x) {
  std::vector<float> best;
  best.reserve(x.size() / kPiece + 1);
  for (std::size_t i = 0; i < x.size(); i += kPiece) {
    best.push_back(largest(x.subspan(i, std::min(kPiece, x.size() - i))));
  }
  return best;
}

// All that can be chosen; where only the k largest are wanted, not many more. Below the k-th of
// what the pieces have there is none of them.
Candidates collect(std::span<const float> x, std::vector<float> best_of_pieces, Bits32 top_k) {
  float least = kLowest;
  Candidates candidates;
  if (top_k != 0 && top_k <= best_of_pieces.size()) {
    const auto at = best_of_pieces.begin() + (top_k - 1);
    std::nth_element(best_of_pieces.begin(), at, best_of_pieces.end(), std::greater<>());
    least = *at;
  } else {
    candidates.reserve(x.size());
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] >= least && x[i] > kLowest) {
      candidates.push_back({sampling::key_of(x[i]), static_cast<Bits32>(i), 1});
    }
  }
  return candidates;
}

// ---- masses

struct Sums {
  Bits64 mass = 0;
  Bits64 weighted_depth = 0;
};

// Gives candidates their mass where depths are multiplied by `factor`.
Sums weigh(Candidates& candidates, Bits32 top, float factor) {
  static const UnaryLoop exponentials = unary_loop(UnaryOp::Exp, DType::F32);
  constexpr std::size_t kMany = 512;
  alignas(64) std::array<float, kMany> depth{}, minus{}, e{};
  const float no_parameter = 0.0F;
  Sums sums;
  for (std::size_t first = 0; first < candidates.size(); first += kMany) {
    const std::span part =
        std::span(candidates).subspan(first, std::min(kMany, candidates.size() - first));
    for (std::size_t i = 0; i < part.size(); ++i) {
      depth[i] = sampling::depth_of(part[i].key, top) * factor;
      minus[i] = -depth[i];
    }
    exponentials(minus.data(), e.data(), static_cast<std::int64_t>(part.size()), &no_parameter);
    for (std::size_t i = 0; i < part.size(); ++i) {
      part[i].mass = sampling::mass_of(e[i]);
      sums.mass += part[i].mass;
      sums.weighted_depth += sampling::weighted_depth_of(e[i], depth[i]);
    }
  }
  return sums;
}

// ---- cuts

// The order in which candidates are cut.
struct Order {
  Bits32 top = 0;       // depths are counted from here
  bool is_odd = false;  // by the distance from the mean, else by depth
  float mean = 0.0F;

  float depth(const Candidate& c) const { return sampling::depth_of(c.key, top); }
  unsigned bin(const Candidate& c) const {
    return sampling::bin_at(is_odd ? std::abs(depth(c) - mean) : depth(c));
  }
  Bits64 code(const Candidate& c) const {
    return sampling::code_of(is_odd ? sampling::oddness(depth(c), mean) : ~c.key, c.id);
  }
};

// Keeps candidates in this order up to the one at which the sum of masses reaches `target`, which
// is not more than the sum of all. Masses are added up in bins, and only what is in the bin where
// the sum is reached has to be sorted.
void cut(Candidates& candidates, const Order& order, Bits64 target) {
  std::vector<Bits64> bins(sampling::kBins, 0);
  for (const Candidate& c : candidates) bins[order.bin(c)] += c.mass;
  unsigned last_bin = 0;
  while (bins[last_bin] < target) target -= bins[last_bin++];
  struct Part {
    Bits64 code, mass;
  };
  std::vector<Part> parts;
  for (const Candidate& c : candidates) {
    if (order.bin(c) == last_bin) parts.push_back({order.code(c), c.mass});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.code < b.code; });
  auto last = parts.begin();
  for (; last->mass < target; ++last) target -= last->mass;
  std::erase_if(candidates, [&](const Candidate& c) {
    const unsigned bin = order.bin(c);
    return bin > last_bin || (bin == last_bin && order.code(c) > last->code);
  });
}

// What each step does, and why in this order, is in docs/sampling.md.
std::int64_t pick(const SampleRow& row, std::span<const float> logits) {
  const SampleState& state = *row.state;
  const kernels::SampleOptions& options = state.options;
  std::vector<float> changed;
  const std::span<const float> x = adjusted(row, logits, changed);
  std::vector<float> best_of_pieces = largest_of_pieces(x);
  const float best = largest(best_of_pieces);
  if (best == kLowest) return kNone;
  if (options.greedy != 0) return std::find(x.begin(), x.end(), best) - x.begin();

  Candidates candidates = collect(x, std::move(best_of_pieces), options.top_k);
  Bits32 top = sampling::key_of(best);
  if (options.top_k != 0 && options.top_k < candidates.size()) {
    cut(candidates, {.top = top}, options.top_k);
  }
  if (options.typical_p != 0) {
    const Sums sums = weigh(candidates, top, 1.0F);
    cut(candidates, {top, true, sampling::mean_depth(sums.weighted_depth, sums.mass)},
        sampling::share(options.typical_p, sums.mass));
    top = 0;  // it may have gone
    for (const Candidate& c : candidates) top = std::max(top, c.key);
  }
  if (options.top_p != 0 || options.least != 0) {
    const Bits64 total = weigh(candidates, top, 1.0F).mass;
    if (options.top_p != 0) cut(candidates, {.top = top}, sampling::share(options.top_p, total));
    std::erase_if(candidates, [&](const Candidate& c) { return c.mass < options.least; });
  }
  const Bits64 total = weigh(candidates, top, options.inverse_temperature).mass;
  Bits64 rest = sampling::draw(options.seed, state.step, total);
  const Candidate* chosen = candidates.data();
  for (; chosen->mass < rest; ++chosen) rest -= chosen->mass;
  return chosen->id;
}

}  // namespace

void sample(std::span<const SampleRow> rows, const float* logits, std::int64_t vocabulary,
            std::uint32_t* out) {
  const auto size = static_cast<std::size_t>(vocabulary);
  ThreadPool::shared().parallel_for(
      0, static_cast<std::int64_t>(rows.size()), 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t r = first; r < last; ++r) {
          const std::int64_t token =
              pick(rows[static_cast<std::size_t>(r)], {logits + r * vocabulary, size});
          if (token == kNone) {
            throw Error(ErrorKind::InvalidIndex, "sample", "no logit of row ", r,
                        " is a number above -infinity");
          }
          out[r] = static_cast<std::uint32_t>(token);
        }
      });
  for (std::size_t r = 0; r < rows.size(); ++r) {
    SampleState* state = rows[r].state;
    ++state->step;
    if (state->options.penalised != 0) accept(state, vocabulary, {out + r, 1});
  }
}

void accept(SampleState* state, std::int64_t vocabulary, std::span<const std::uint32_t> tokens) {
  Bits32* counts = kernels::sample_counts(state);
  Bits32* ring = counts + vocabulary;
  const Bits32 window = state->options.window;
  for (const std::uint32_t token : tokens) {
    if (window != 0) {
      if (state->kept == window) {
        --counts[ring[state->next]];
      } else {
        ++state->kept;
      }
      ring[state->next] = token;
      state->next = state->next + 1 == window ? 0 : state->next + 1;
    }
    ++counts[token];
  }
}

}  // namespace tl::cpu
