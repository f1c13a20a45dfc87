// Which token comes next, and texts from a model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <ostream>
#include <utility>

#include "lang/builtins/library.h"
#include "lang/builtins/model_objects.h"
#include "lang/operators.h"
#include "tl/model/engine.h"
#include "tl/model/sampler.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/reduce.h"
#include "tl/ops/scan.h"
#include "tl/ops/softmax.h"
#include "tl/ops/sort.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::lang {

namespace {

constexpr double kGreedy = 1e-4;  // temperatures up to here take the largest logit
constexpr double kNever = -std::numeric_limits<double>::infinity();

SamplingOptions plain_sampling() {
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  return options;
}

// The last row of a matrix; a vector is one.
tl::Tensor last_row(const Context& context, const Args& args, std::size_t i) {
  const tl::Tensor all = args.tensor(context, i, DType::F32);
  if (all.rank() == 0 || all.empty()) args.bad(i, "logits of shape [V] or [s, V]");
  const std::int64_t size = all.dim(-1);
  const tl::Tensor rows = reshape(all, {-1, size});
  return contiguous(rows.get(rows.dim(0) - 1));
}

// What TL_DEBUG_SAMPLING asks for: the ten likeliest tokens and the one that was drawn.
void tell_draw(const tl::Tensor& logits, std::int64_t token) {
  const auto [values, places] = topk(logits, std::min<std::int64_t>(logits.dim(0), 10));
  const std::vector<std::uint32_t> ids = places.to_vector<std::uint32_t>();
  const std::vector<float> numbers = values.to_vector<float>();
  const std::vector<float> chances = softmax(logits).to_vector<float>();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::cerr << fmt::format("[SAMPLING] token {}: logit {:.4f}, probability {:.6f}\n", ids[i],
                             numbers[i], chances[ids[i]]);
  }
  std::cerr << "[SAMPLING] chosen: " << token << '\n';
}

std::int64_t told(const tl::Tensor& logits, std::int64_t token) {
  if (std::getenv("TL_DEBUG_SAMPLING") != nullptr) tell_draw(logits, token);
  return token;
}

std::int64_t sampled(const tl::Tensor& logits, const SamplingOptions& options) {
  Sampler sampler(options, logits.dim(0), logits.device());
  return sampler.sample(logits).item<std::uint32_t>();
}

std::int64_t draw(const tl::Tensor& logits, const SamplingOptions& options) {
  return told(logits, sampled(logits, options));
}

std::int64_t draw_with(const Context& context, const tl::Tensor& logits, SamplingOptions options) {
  options.seed = next_seed(context.device);
  return draw(logits, options);
}

double temperature_argument(const Args& args, std::size_t i) {
  const double temperature = args.real(i);
  if (!(temperature >= 0) || std::isinf(temperature)) args.bad_value(i, "a temperature from 0");
  return temperature <= kGreedy ? 0 : temperature;
}

Value call_temperature_sample(Context& context, Args& args) {
  SamplingOptions options = plain_sampling();
  options.temperature = temperature_argument(args, 1);
  const tl::Tensor logits = last_row(context, args, 0);
  if (options.temperature > 0) return draw_with(context, logits, options);
  // The last of equal ones, as in the language's first version; sample_greedy() takes the first.
  const std::int64_t from_end = sampled(contiguous(flip(logits, {0})), options);
  return told(logits, logits.dim(0) - 1 - from_end);
}

Value call_sample_greedy(Context& context, Args& args) {
  SamplingOptions options = plain_sampling();
  options.temperature = 0;
  return draw(last_row(context, args, 0), options);
}

Value call_sample(Context& context, Args& args) {
  const tl::Tensor probabilities = last_row(context, args, 0);
  const auto sum = static_cast<double>(sum_all(probabilities).item<float>());
  const auto least = static_cast<double>(min_all(probabilities).item<float>());
  if (!(std::abs(sum - 1) <= 0.01) || !(least >= 0)) {
    throw invalid_operation("sample() expects probabilities that sum to 1, got a sum of ", sum,
                            " and a least one of ", least);
  }
  return draw_with(context, log(probabilities), plain_sampling());
}

Value call_temperature(Context& context, Args& args) {
  const double temperature = args.real(1);
  if (!(temperature > 0) || std::isinf(temperature)) args.bad_value(1, "a temperature above 0");
  return div(args.tensor(context, 0), temperature);
}

// ---- logits of which some become -infinity

tl::Tensor logits_argument(const Context& context, const Args& args) {
  const tl::Tensor logits = args.tensor(context, 0);
  if (logits.rank() == 0 || logits.empty()) args.bad(0, "logits of shape [V] or [s, V]");
  return logits;
}

tl::Tensor keep_top_k(const tl::Tensor& logits, std::int64_t k) {
  const auto [values, places] = topk(logits, k);
  return scatter(full_like(logits, kNever), -1, places, values);
}

std::int64_t count_argument(const Args& args, std::size_t i, std::int64_t most) {
  const std::int64_t k = args.integer(i);
  if (k < 1 || k > most) args.bad_value(i, tl::join("from 1 to ", most, " of the logits"));
  return k;
}

Value call_top_k(Context& context, Args& args) {
  const tl::Tensor logits = logits_argument(context, args);
  return keep_top_k(logits, count_argument(args, 1, logits.dim(-1)));
}

Value call_top_p(Context& context, Args& args) {
  const tl::Tensor logits = logits_argument(context, args);
  const double share = args.real(1);
  if (!(share >= 0 && share <= 1)) args.bad_value(1, "a probability from 0 to 1");
  const auto [values, places] = sort(logits, -1, true);
  const tl::Tensor chances = softmax(to_dtype(values, DType::F32));
  // What all that come before have together; the likeliest one stays in any case.
  const tl::Tensor before = sub(cumsum(chances, -1), chances);
  const tl::Tensor stays = lt(before, std::max(share, 1e-9));
  const tl::Tensor kept = where(stays, values, full_like(values, kNever));
  return scatter(full_like(logits, kNever), -1, places, kept);
}

Value call_top_p_sample(Context& context, Args& args) {
  SamplingOptions options = plain_sampling();
  options.top_p = args.real(1);
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    args.bad_value(1, "a probability above 0 and at most 1");
  }
  return draw_with(context, last_row(context, args, 0), options);
}

Value call_sample_top_k(Context& context, Args& args) {
  const tl::Tensor logits = last_row(context, args, 0);
  SamplingOptions options = plain_sampling();
  options.top_k = count_argument(args, 1, logits.dim(0));
  options.temperature = temperature_argument(args, 2);
  return draw_with(context, logits, options);
}

Value call_print_top_k(Context& context, Args& args) {
  const tl::Tensor logits = last_row(context, args, 0);
  const auto [values, places] = topk(logits, count_argument(args, 1, logits.dim(0)));
  const std::vector<float> numbers = values.to_vector<float>();
  const std::vector<std::uint32_t> ids = places.to_vector<std::uint32_t>();
  *context.out << "      Top " << numbers.size() << " logits:\n";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    *context.out << fmt::format("        [{:>5}] = {}\n", ids[i],
                                text(Value(static_cast<double>(numbers[i]))));
  }
  return 0;
}

// ---- texts

// generate(model, prompt, ...) and generate(model, tokenizer, prompt, ...).
struct GenerateArguments {
  const Tokenizer* tokenizer = nullptr;
  std::string prompt;
  std::int64_t most = 100;
  double temperature = 0.7;
  Value callback;
};

// In the order of the signature: model, tokenizer, prompt, max, temp, callback. Without a tokenizer
// what is given by place lies one place earlier.
GenerateArguments read_generate(const Args& args) {
  GenerateArguments out;
  const bool shifted = args.has(1) && args[1].is(Kind::String);
  const bool by_place = shifted && args.has(2);  // the number of tokens in the prompt's place
  out.tokenizer = &tokenizer_argument(args, args.has(1) && !shifted ? 1 : 0);
  out.prompt = args.string(shifted ? 1 : 2);
  const std::size_t most = by_place ? 2 : 3;
  if (args.has(most)) out.most = args.integer(most);
  const auto is_number = [&](std::size_t i) { return args.has(i) && !args[i].is(Kind::Function); };
  if (by_place && is_number(3)) out.temperature = temperature_argument(args, 3);
  if (is_number(4)) out.temperature = temperature_argument(args, 4);
  for (std::size_t i = 3; i <= 5; ++i) {
    if (args.has(i) && args[i].is(Kind::Function)) out.callback = args[i];
  }
  if (args.has(5) && !args[5].is(Kind::Function)) args.bad(5, "a function");
  if (out.most < 0)
    throw type_error("generate() expects a number of tokens from 0, got ", out.most);
  return out;
}

Value call_generate(Context& context, Args& args) {
  const ModelData& model = model_argument(args, 0);
  const GenerateArguments given = read_generate(args);
  GenerationRequest request;
  request.prompt = given.tokenizer->encode_prompt(given.prompt);
  if (request.prompt.empty()) throw invalid_operation("generate(): the prompt is empty");
  if (given.most == 0) return "";
  request.max_tokens = given.most;
  request.sampling = plain_sampling();
  request.sampling.temperature = given.temperature;
  if (args.has(6)) request.sampling.top_k = args.integer(6);
  if (args.has(7)) request.sampling.top_p = args.real(7);
  if (args.has(8)) request.sampling.min_p = args.real(8);
  request.sampling.seed =
      args.has(9) ? static_cast<std::uint64_t>(args.integer(9)) : next_seed(context.device);
  if (args.has(10)) {
    if (args[10].is(Kind::String)) {
      request.stop.push_back(args.string(10));
    } else {
      for (const Value& each : elements(context, args[10])) request.stop.push_back(text(each));
    }
  }
  request.on_text = [&](std::string_view piece) {
    if (!given.callback.is(Kind::Function)) return true;
    const Value argument{piece};
    const Value goes_on = context.call(given.callback, std::span(&argument, 1));
    return !goes_on.is(Kind::Bool) || goes_on.boolean();
  };
  Engine engine(model.decoder(), *given.tokenizer, {.sequences = 1, .step_tokens = 0});
  engine.submit(std::move(request));
  while (engine.step()) context.check_interrupt();
  const std::vector<GenerationResult> results = engine.run();
  const GenerationResult& result = results.front();
  if (result.error) std::rethrow_exception(result.error);
  return result.text;
}

}  // namespace

BuiltinRows sampling_builtins() {
  static const Builtin rows[] = {
      {"temperature_sample", "sampling", "(logits, temperature)",
       "A token drawn from softmax(logits / temperature); for 0 the likeliest, the last of equals.",
       call_temperature_sample},
      {"sample_temperature", "sampling", "(logits, temperature)",
       "A token drawn from softmax(logits / temperature); for 0 the likeliest, the last of equals.",
       call_temperature_sample},
      {"sample_greedy", "sampling", "(logits)", "The likeliest token.", call_sample_greedy},
      {"sample_top_k", "sampling", "(logits, k, temperature = 1.0)",
       "A token drawn from the k likeliest.", call_sample_top_k},
      {"sample", "sampling", "(probabilities)", "A token drawn by probabilities that sum to 1.",
       call_sample},
      {"temperature", "sampling", "(logits, temperature)", "Logits divided by a temperature.",
       call_temperature},
      {"top_k", "sampling", "(logits, k)",
       "Logits of which all but the k largest of a row are -infinity.", call_top_k},
      {"top_p", "sampling", "(logits, p)",
       "Logits of which the fewest stay that have the probability p together; others are "
       "-infinity.",
       call_top_p},
      {"top_p_sample", "sampling", "(logits, p)",
       "A token drawn from the fewest that have the probability p together.", call_top_p_sample},
      {"print_top_k", "sampling", "(logits, k)", "Shows the k largest logits.", call_print_top_k},
      {"generate", "sampling",
       "(model, tokenizer = none, prompt = none, max = none, temp = none, callback = none, top_k = "
       "none, top_p = none, min_p = none, seed = none, stop = none)",
       "The text a model writes after a prompt, of at most 100 tokens at a temperature of 0.7 "
       "unless others are given; the callback gets it as it comes and ends it by giving false.",
       call_generate},
  };
  return rows;
}

}  // namespace tl::lang
