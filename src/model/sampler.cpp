#include "tl/model/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "model/cpu/sampler.h"
#include "model/gpu/sampler.h"
#include "tl/base/error.h"
#include "tl/ops/copy.h"
#include "tl/runtime/label.h"

namespace tl {

namespace {

using kernels::SampleRow;
using kernels::SampleState;

template <class T>
void expect(bool holds, std::string_view field, const T& value, std::string_view must) {
  if (!holds) {
    throw Error(ErrorKind::BadArgument, "sampling", field, " is ", value, ", and must be ", must);
  }
}

// A probability in [0, 1] of 2^64.
std::uint64_t fraction_of(double p) {
  return p >= 1 ? std::numeric_limits<std::uint64_t>::max()
                : static_cast<std::uint64_t>(std::ldexp(p, 64));
}

bool is_penalised(const SamplingOptions& options) {
  return options.penalty_window != 0 &&
         (options.repetition_penalty != 1 || options.presence_penalty != 0 ||
          options.frequency_penalty != 0);
}

kernels::SampleOptions for_kernels(const SamplingOptions& options, std::int64_t vocabulary) {
  kernels::SampleOptions out = {};
  out.seed = options.seed;
  out.top_p = options.top_p < 1 ? fraction_of(options.top_p) : 0;
  out.typical_p = options.typical_p < 1 ? fraction_of(options.typical_p) : 0;
  if (options.min_p > 0) {
    out.least = sampling::share(fraction_of(options.min_p), sampling::mass_at(0.0F));
  }
  out.greedy = options.is_greedy() ? 1 : 0;
  out.inverse_temperature =
      options.is_greedy() ? 0.0F : static_cast<float>(1 / options.temperature);
  out.repetition = static_cast<float>(options.repetition_penalty);
  out.presence = static_cast<float>(options.presence_penalty);
  out.frequency = static_cast<float>(options.frequency_penalty);
  out.top_k = options.top_k < vocabulary ? static_cast<std::uint32_t>(options.top_k) : 0;
  out.penalised = is_penalised(options) ? 1 : 0;
  out.window = options.penalty_window < 0 ? 0 : static_cast<std::uint32_t>(options.penalty_window);
  return out;
}

}  // namespace

void SamplingOptions::check() const {
  constexpr double kMostNumber = std::numeric_limits<float>::max();
  const auto is_number = [](double x) { return std::abs(x) <= kMostNumber; };  // not NaN either
  expect(temperature >= 0 && is_number(temperature), "temperature", temperature,
         "a number of 0 or more");
  expect(top_k >= 0, "top_k", top_k, "0 or more");
  expect(top_p > 0 && top_p <= 1, "top_p", top_p, "above 0 and at most 1");
  expect(min_p >= 0 && min_p <= 1, "min_p", min_p, "from 0 to 1");
  expect(typical_p > 0 && typical_p <= 1, "typical_p", typical_p, "above 0 and at most 1");
  // An f32 has it, and its inverse too.
  expect(repetition_penalty >= std::numeric_limits<float>::min() && is_number(repetition_penalty),
         "repetition_penalty", repetition_penalty, "a number above 0");
  expect(is_number(presence_penalty), "presence_penalty", presence_penalty, "a number");
  expect(is_number(frequency_penalty), "frequency_penalty", frequency_penalty, "a number");
  expect(penalty_window >= -1 && penalty_window <= kMostWindow, "penalty_window", penalty_window,
         "-1 for all, or from 0 to 16777216");
  std::unordered_set<TokenId> seen;
  for (const auto& [token, bias] : logit_bias) {
    expect(token >= 0, "logit_bias", join("for token ", token), "for a token of 0 or more");
    expect(!std::isnan(bias), "logit_bias", join(bias, " for token ", token), "a number");
    expect(seen.insert(token).second, "logit_bias", join("there twice for token ", token),
           "there once");
  }
}

Sampler::Sampler(SamplingOptions options, std::int64_t vocabulary, const Device& device)
    : options_(std::move(options)), vocabulary_(vocabulary) {
  options_.check();
  expect(vocabulary >= 1 && vocabulary <= kMostTokens, "vocabulary", vocabulary,
         "from 1 to 4194304");
  static_assert(kMostTokens == std::int64_t{1} << kernels::kSampleIdBits);
  for (const auto& [token, bias] : options_.logit_bias) {
    expect(token < vocabulary, "logit_bias", join("for token ", token),
           join("for a token of the ", vocabulary));
  }
  const LabelScope label("sampler");
  if (!options_.logit_bias.empty()) {
    std::vector<float> all(static_cast<std::size_t>(vocabulary), 0.0F);
    for (const auto& [token, bias] : options_.logit_bias) {
      all[static_cast<std::size_t>(token)] = bias;
    }
    bias_ = RawMemory(device, all.size() * sizeof(float));
    bias_.upload(0, all.data(), bias_.bytes());
  }
  state_ = fresh_state(device);
}

RawMemory Sampler::fresh_state(const Device& device) const {
  const LabelScope label("sampler");
  SampleState state = {};
  state.options = for_kernels(options_, vocabulary_);
  const std::uint64_t words = state.options.penalised != 0
                                  ? static_cast<std::uint64_t>(vocabulary_) + state.options.window
                                  : 0;
  std::vector<std::byte> bytes(sizeof(state) + words * sizeof(std::uint32_t));
  std::memcpy(bytes.data(), &state, sizeof(state));
  RawMemory memory(device, bytes.size());
  memory.upload(0, bytes.data(), bytes.size());
  return memory;
}

void Sampler::accept(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (token < 0 || token >= vocabulary_) {
      throw Error(ErrorKind::InvalidIndex, "sampling", "token ", token,
                  " is not in the vocabulary of ", vocabulary_);
    }
  }
  if (!is_penalised(options_)) return;
  if (options_.penalty_window >= 0) {
    tokens =
        tokens.last(std::min(tokens.size(), static_cast<std::size_t>(options_.penalty_window)));
  }
  if (tokens.empty()) return;
  const std::vector<std::uint32_t> ids(tokens.begin(), tokens.end());
  const Device device = state_.device();
  const LabelScope label("sampler");
  if (device.is_cpu()) {
    auto* state = reinterpret_cast<SampleState*>(state_.mutable_data(device.stream()));
    cpu::accept(state, vocabulary_, ids);
    return;
  }
  const Tensor there = Tensor::from(ids, device);
  auto* state = reinterpret_cast<SampleState*>(state_.mutable_data(device.stream()));
  gpu::accept(state, vocabulary_, there);
}

Tensor Sampler::sample(const Tensor& logits) {
  Sampler* self = this;
  return sample(std::span<Sampler* const>(&self, 1),
                logits.rank() == 1 ? logits.unsqueeze(0) : logits);
}

Tensor Sampler::sample(std::span<Sampler* const> samplers, const Tensor& logits) {
  const auto rows = static_cast<std::int64_t>(samplers.size());
  if (logits.rank() != 2 || logits.shape()[0] != rows) {
    throw Error(ErrorKind::ShapeMismatch, "sample", "logits of ", rows,
                " samplers must have as many rows, and have shape ", logits.shape());
  }
  std::vector<const Sampler*> sorted(samplers.begin(), samplers.end());
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw Error(ErrorKind::BadArgument, "sample", "a sampler is there twice");
  }
  bool greedy = true;
  for (const Sampler* sampler : samplers) {
    if (sampler == nullptr) throw Error(ErrorKind::BadArgument, "sample", "a sampler is null");
    if (logits.shape()[1] != sampler->vocabulary_) {
      throw Error(ErrorKind::ShapeMismatch, "sample", "the sampler's vocabulary has ",
                  sampler->vocabulary_, " tokens, and the logits have shape ", logits.shape());
    }
    if (logits.location() != sampler->state_.location()) {
      throw Error(ErrorKind::WrongDevice, "sample", "the sampler is on ",
                  sampler->state_.location(), ", the logits are on ", logits.location());
    }
    greedy = greedy && sampler->options_.is_greedy();
  }
  if (logits.dtype() != DType::F32) {
    throw Error(ErrorKind::Unsupported, "sample", "logits must be f32, and are ", logits.dtype());
  }
  const Device device = logits.device();
  const Stream& stream = device.stream();
  Tensor out = Tensor::uninitialized({rows}, DType::U32, device);
  if (rows == 0) return out;
  const Tensor from = contiguous(logits);
  const LabelScope label("sampler");
  std::vector<SampleRow> given;
  given.reserve(samplers.size());
  for (Sampler* sampler : samplers) {
    const RawMemory& bias = sampler->bias_;
    given.push_back(
        {reinterpret_cast<SampleState*>(sampler->state_.mutable_data(stream)),
         bias.bytes() == 0 ? nullptr : reinterpret_cast<const float*>(bias.data(stream))});
  }
  if (device.is_cpu()) {
    cpu::sample(given, from.read<float>(stream), from.shape()[1], out.write<std::uint32_t>(stream));
  } else {
    gpu::sample(given, greedy, from, out);
  }
  return out;
}

void Sampler::reset() { state_ = fresh_state(state_.device()); }

}  // namespace tl
