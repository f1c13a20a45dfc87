#include "model/cpu/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tl/base/error.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

using kernels::SampleRow;
using kernels::SampleState;
using sampling::Bits32;
using sampling::Bits64;

constexpr std::int64_t kNone = -1;

struct Candidate {
  Bits32 key;
  Bits32 id;
};
using Candidates = std::vector<Candidate>;

Bits32 key_at(const SampleRow& row, const Bits32* counts, const float* logits, std::int64_t id) {
  float x = logits[id];
  if (row.bias != nullptr) x += row.bias[id];
  if (counts != nullptr) x = sampling::penalised(row.state->options, x, counts[id]);
  return sampling::key_of(x);
}

// An order of candidates, by which they are cut.
struct Order {
  Bits32 top;   // depths are counted from here
  bool is_odd;  // by the distance from the mean, else by depth
  float mean = 0.0F;

  float depth(const Candidate& c) const { return sampling::depth_of(c.key, top); }
  unsigned bin(const Candidate& c) const {
    return sampling::bin_at(is_odd ? std::abs(depth(c) - mean) : depth(c));
  }
  Bits64 code(const Candidate& c) const {
    return sampling::code_of(is_odd ? sampling::oddness(depth(c), mean) : ~c.key, c.id);
  }
};

// Keeps candidates in this order up to the one at which the sum of masses reaches target_of(sum of
// all). They stay in the order of their ids: masses are added up in bins, and only what is in the
// bin where the sum is reached has to be sorted.
template <class Mass, class Target>
void cut(Candidates& candidates, const Order& order, Mass&& mass_of, Target&& target_of) {
  std::vector<Bits64> bins(sampling::kBins, 0);
  for (const Candidate& c : candidates) bins[order.bin(c)] += mass_of(c);
  Bits64 rest = target_of(std::accumulate(bins.begin(), bins.end(), Bits64{0}));
  unsigned last_bin = 0;
  while (bins[last_bin] < rest) rest -= bins[last_bin++];
  struct Part {
    Bits64 code, mass;
  };
  std::vector<Part> parts;
  for (const Candidate& c : candidates) {
    if (order.bin(c) == last_bin) parts.push_back({order.code(c), mass_of(c)});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.code < b.code; });
  auto last = parts.begin();
  for (; last->mass < rest; ++last) rest -= last->mass;
  std::erase_if(candidates, [&](const Candidate& c) {
    const unsigned bin = order.bin(c);
    return bin > last_bin || (bin == last_bin && order.code(c) > last->code);
  });
}

// The order of the cuts and what each does are in docs/sampling.md.
std::int64_t pick(const SampleRow& row, const float* logits, std::int64_t vocabulary) {
  const SampleState& state = *row.state;
  const kernels::SampleOptions& options = state.options;
  const Bits32* counts = options.penalised != 0 ? kernels::sample_counts(row.state) : nullptr;
  Bits32 top = 0;
  std::int64_t best = kNone;
  Candidates candidates;
  if (options.greedy == 0) candidates.reserve(static_cast<std::size_t>(vocabulary));
  for (std::int64_t id = 0; id < vocabulary; ++id) {
    const Bits32 key = key_at(row, counts, logits, id);
    if (key > top) {
      top = key;
      best = id;
    }
    if (options.greedy == 0 && key != 0) candidates.push_back({key, static_cast<Bits32>(id)});
  }
  if (options.greedy != 0 || best == kNone) return best;

  Order order = {top, false};
  const auto mass = [&](const Candidate& c) { return sampling::mass_at(order.depth(c)); };
  if (options.top_k != 0 && options.top_k < candidates.size()) {
    cut(
        candidates, order, [](const Candidate&) { return Bits64{1}; },
        [&](Bits64) { return Bits64{options.top_k}; });
  }
  if (options.typical_p != 0) {
    Bits64 total = 0, weighted = 0;
    for (const Candidate& c : candidates) {
      total += mass(c);
      weighted += sampling::weighted_depth_at(order.depth(c));
    }
    cut(candidates, {top, true, sampling::mean_depth(weighted, total)}, mass,
        [&](Bits64 all) { return sampling::share(options.typical_p, all); });
    order.top = 0;  // the largest may have gone
    for (const Candidate& c : candidates) order.top = std::max(order.top, c.key);
  }
  if (options.top_p != 0) {
    cut(candidates, order, mass, [&](Bits64 all) { return sampling::share(options.top_p, all); });
  }
  if (options.least != 0) {
    std::erase_if(candidates, [&](const Candidate& c) { return mass(c) < options.least; });
  }
  const auto drawn_mass = [&](const Candidate& c) {
    return sampling::mass_at(order.depth(c) * options.inverse_temperature);
  };
  Bits64 total = 0;
  for (const Candidate& c : candidates) total += drawn_mass(c);
  Bits64 rest = sampling::draw(options.seed, state.step, total);
  for (const Candidate& c : candidates) {
    const Bits64 here = drawn_mass(c);
    if (rest <= here) return c.id;
    rest -= here;
  }
  return best;  // never: the masses are at least what was drawn
}

}  // namespace

void sample(std::span<const SampleRow> rows, const float* logits, std::int64_t vocabulary,
            std::uint32_t* out) {
  ThreadPool::shared().parallel_for(
      0, static_cast<std::int64_t>(rows.size()), 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t r = first; r < last; ++r) {
          const std::int64_t token =
              pick(rows[static_cast<std::size_t>(r)], logits + r * vocabulary, vocabulary);
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
