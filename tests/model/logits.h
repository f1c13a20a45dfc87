// What the tests of decoders share: logits as rows of numbers, and how far apart they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "tl/model/decoder.h"
#include "tl/ops/join.h"

namespace tl::test {

struct Apart {
  double most = 0;
  double rms = 0;
};

// A NaN makes both infinite.
inline Apart apart(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return {INFINITY, INFINITY};
  Apart out;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    if (std::isnan(d)) return {INFINITY, INFINITY};
    out.most = std::max(out.most, d);
    out.rms += d * d;
  }
  out.rms = std::sqrt(out.rms / static_cast<double>(a.size()));
  return out;
}

// Logits of all tokens, in passes of so many tokens; what is left comes in a last one.
inline std::vector<float> logits_of(const Decoder& decoder, const std::vector<TokenId>& tokens,
                                    std::size_t pass, KvCache& cache) {
  std::vector<Tensor> rows;
  for (std::size_t at = 0; at < tokens.size(); at += pass) {
    const auto part = std::span(tokens).subspan(at, std::min(pass, tokens.size() - at));
    rows.push_back(decoder.forward(part, cache, LogitRows::All));
  }
  return cat(rows, 0).to_vector<float>();
}
inline std::vector<float> logits_of(const Decoder& decoder, const std::vector<TokenId>& tokens,
                                    std::size_t pass = 512) {
  KvCache cache = decoder.new_cache();
  return logits_of(decoder, tokens, pass, cache);
}

}  // namespace tl::test
