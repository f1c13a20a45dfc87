#include "cli/sampling_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tl/model/tokenizer.h"

namespace tl::cli {

namespace {

// "ID=VALUE", e.g. "13=-2.5".
std::pair<TokenId, float> parse_bias(const std::string& text) {
  const std::size_t equals = text.find('=');
  TokenId id = 0;
  float value = 0;
  const char* const end = text.data() + text.size();
  if (equals != std::string::npos) {
    const char* const middle = text.data() + equals;
    const auto [id_end, id_error] = std::from_chars(text.data(), middle, id);
    const auto [value_end, value_error] = std::from_chars(middle + 1, end, value);
    if (id_error == std::errc() && value_error == std::errc() && id_end == middle &&
        value_end == end && id >= 0) {
      return {id, value};
    }
  }
  throw CLI::ValidationError("--logit-bias", "'" + text + "' is not ID=VALUE, such as 13=-2.5");
}

}  // namespace

void add_text_options(CLI::App& command, const std::shared_ptr<TextOptions>& options) {
  TextOptions& to = *options;
  SamplingOptions& sampling = to.sampling;
  command.add_option("-n,--max-tokens", to.max_tokens, "of an answer; -1 for no limit")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 40))
      ->capture_default_str();
  const auto number = [&](const char* name, auto& value, const char* help, double least,
                          double most) {
    command.add_option(name, value, help)
        ->type_name("X")
        ->check(CLI::Range(least, most))
        ->capture_default_str();
  };
  constexpr double kAny = 1e6;
  number("-t,--temperature", sampling.temperature, "0 takes the most likely token", 0, kAny);
  command.add_flag_callback(
      "--greedy", [options] { options->sampling.temperature = 0; }, "the same as --temperature 0");
  command.add_option("--top-k", sampling.top_k, "choose among so many; 0 for all")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  number("--top-p", sampling.top_p, "the fewest tokens that have this probability; 1 for all", 0,
         1);
  number("--min-p", sampling.min_p, "tokens of at least this part of the best one's", 0, 1);
  number("--typical-p", sampling.typical_p, "those of typical information; 1 for all", 0, 1);
  number("--repetition-penalty", sampling.repetition_penalty,
         "for tokens that came before; 1: none", 1e-6, kAny);
  number("--presence-penalty", sampling.presence_penalty, "taken off what came before", -kAny,
         kAny);
  number("--frequency-penalty", sampling.frequency_penalty, "the same, for each time it came",
         -kAny, kAny);
  command
      .add_option("--penalty-window", sampling.penalty_window,
                  "tokens that the penalties look at; -1 for all")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command
      .add_option_function<std::vector<std::string>>(
          "--logit-bias",
          [options](const std::vector<std::string>& list) {
            for (const std::string& each : list) {
              options->sampling.logit_bias.push_back(parse_bias(each));
            }
          },
          "added to a token's logit; may come several times")
      ->type_name("ID=VALUE");
  command.add_option("--seed", to.seed, "the same seed gives the same answer; else a new one")
      ->type_name("N");
  command.add_option("--stop", to.stop, "a text that ends an answer; may come several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_flag("--ignore-end", to.ignore_end, "go on after the tokens that end a text");
  command
      .add_option_function<std::string>(
          "--context-policy",
          [options](const std::string& text) {
            options->context = text == "shift" ? ContextPolicy::Shift : ContextPolicy::Stop;
          },
          "when the context is full: stop, or shift and forget half of what is oldest")
      ->check(CLI::IsMember(std::set<std::string>{"stop", "shift"}))
      ->default_str("stop");
  command.add_option("--keep", to.keep, "tokens that a shift never forgets; else the first one")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace tl::cli
