// What the tests of sampling share: logits, and the distribution that a token should have, computed
// plainly in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tl/model/sampler.h"

namespace tl::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Nothing is cut, nothing is weighed.
inline SamplingOptions plain(double temperature = 1) {
  SamplingOptions options;
  options.temperature = temperature;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  return options;
}
inline SamplingOptions greedy() { return plain(0); }

// Like those of a model: a few far above many.
inline std::vector<float> random_logits(std::int64_t count, unsigned seed, float spread = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(static_cast<std::size_t>(count));
  for (float& x : logits) x = normal(random);
  return logits;
}

namespace detail {

struct Entry {
  std::size_t id;
  double logit;
  double p;
};

inline void normalise(std::vector<Entry>& entries, double temperature) {
  double top = -std::numeric_limits<double>::infinity();
  for (const Entry& e : entries) top = std::max(top, e.logit);
  double sum = 0;
  for (Entry& e : entries) {
    e.p = e.logit == top ? 1 : std::exp((e.logit - top) / temperature);
    sum += e.p;
  }
  for (Entry& e : entries) e.p /= sum;
}

// The first so many, sorted, that have p together.
inline void keep_mass(std::vector<Entry>& entries, double p) {
  double sum = 0;
  std::size_t kept = 0;
  while (kept < entries.size() && (kept == 0 || sum < p)) sum += entries[kept++].p;
  entries.resize(kept);
}

inline void sort_by_logit(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.logit > b.logit; });
}

}  // namespace detail

// The probability of each token when `last` are the tokens in the window.
inline std::vector<double> distribution(const std::vector<float>& logits,
                                        const SamplingOptions& options,
                                        const std::vector<TokenId>& last = {}) {
  std::vector<double> x(logits.begin(), logits.end());
  for (const auto& [token, bias] : options.logit_bias) {
    x[static_cast<std::size_t>(token)] += static_cast<double>(bias);
  }
  for (std::size_t id = 0; id < x.size(); ++id) {
    const auto count = std::count(last.begin(), last.end(), static_cast<TokenId>(id));
    if (count == 0) continue;
    x[id] = x[id] > 0 ? x[id] / options.repetition_penalty : x[id] * options.repetition_penalty;
    x[id] -= static_cast<double>(count) * options.frequency_penalty + options.presence_penalty;
  }
  std::vector<detail::Entry> entries;
  for (std::size_t id = 0; id < x.size(); ++id) {
    if (x[id] > -std::numeric_limits<double>::infinity()) entries.push_back({id, x[id], 0});
  }
  detail::sort_by_logit(entries);
  if (options.top_k > 0 && static_cast<std::size_t>(options.top_k) < entries.size()) {
    entries.resize(static_cast<std::size_t>(options.top_k));
  }
  if (options.typical_p < 1) {
    detail::normalise(entries, 1);
    double entropy = 0;
    for (const auto& e : entries) entropy -= e.p > 0 ? e.p * std::log(e.p) : 0;
    std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
      return std::abs(-std::log(a.p) - entropy) < std::abs(-std::log(b.p) - entropy);
    });
    detail::keep_mass(entries, options.typical_p);
    detail::sort_by_logit(entries);
  }
  if (options.top_p < 1) {
    detail::normalise(entries, 1);
    detail::keep_mass(entries, options.top_p);
  }
  if (options.min_p > 0) {
    detail::normalise(entries, 1);
    const double least = options.min_p * entries.front().p;
    std::erase_if(entries, [&](const auto& e) { return e.p < least; });
  }
  detail::normalise(entries, options.temperature);
  std::vector<double> p(x.size(), 0.0);
  for (const auto& e : entries) p[e.id] = e.p;
  return p;
}

struct Named {
  const char* name;
  SamplingOptions options;
};

// Every option alone and together.
inline std::vector<Named> option_sets() {
  std::vector<Named> sets;
  const auto add = [&](const char* name, double temperature, auto&& change) {
    sets.push_back({name, plain(temperature)});
    change(sets.back().options);
  };
  add("plain", 1, [](SamplingOptions&) {});
  add("cold", 0.4, [](SamplingOptions&) {});
  add("hot", 3, [](SamplingOptions&) {});
  add("top_k", 1, [](SamplingOptions& o) { o.top_k = 7; });
  add("top_k 1", 1, [](SamplingOptions& o) { o.top_k = 1; });
  add("top_k large", 1, [](SamplingOptions& o) { o.top_k = 700; });
  add("top_p", 1, [](SamplingOptions& o) { o.top_p = 0.8; });
  add("top_p small", 1, [](SamplingOptions& o) { o.top_p = 1e-9; });
  add("min_p", 1, [](SamplingOptions& o) { o.min_p = 0.1; });
  add("typical_p", 1, [](SamplingOptions& o) { o.typical_p = 0.5; });
  add("typical_p, top_p, min_p", 0.9, [](SamplingOptions& o) {
    o.typical_p = 0.9;
    o.top_p = 0.8;
    o.min_p = 0.01;
  });
  add("top_k, typical_p", 1.3, [](SamplingOptions& o) {
    o.top_k = 20;
    o.typical_p = 0.7;
  });
  add("bias", 1, [](SamplingOptions& o) { o.logit_bias = {{0, 5.0F}, {1, -kInf}}; });
  sets.push_back({"defaults", SamplingOptions()});
  add("all", 0.7, [](SamplingOptions& o) {
    o.top_k = 25;
    o.top_p = 0.9;
    o.min_p = 0.02;
    o.typical_p = 0.95;
    o.repetition_penalty = 1.3;
    o.presence_penalty = 0.2;
    o.frequency_penalty = 0.1;
    o.penalty_window = 3;
    o.logit_bias = {{0, 2.0F}};
  });
  return sets;
}

}  // namespace tl::test
