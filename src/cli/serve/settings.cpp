// What a request for text asks for: its prompt, its sampling and its end.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/serve/service.h"
#include "tl/base/error.h"

namespace tl::cli::serve {

namespace {

constexpr std::size_t kMostStops = 16;
constexpr std::size_t kMostBiases = 1024;

void refuse_unless(bool is_good, const char* field, const std::string& message) {
  if (!is_good)
    throw ApiError(400, fmt::format("'{}' {}", field, message), field, "unsupported_parameter");
}

// What the API has and this server has not: said, not ignored, where it would change the answer.
void refuse_unsupported(const Json& body) {
  for (const char* field : {"tools", "functions"}) {
    refuse_unless(!has(body, field) || body.at(field).empty(), field,
                  "is not supported: the model cannot call tools here");
  }
  refuse_unless(get_integer(body, "n", 1, 128).value_or(1) == 1, "n",
                "must be 1: there is one answer for a request");
  refuse_unless(get_integer(body, "best_of", 1, 128).value_or(1) == 1, "best_of", "must be 1");
  if (has(body, "logprobs")) {
    refuse_unless(body.at("logprobs") == Json(false), "logprobs", "is not supported");
  }
  refuse_unless(!get_bool(body, "echo").value_or(false), "echo", "is not supported");
  refuse_unless(get_string(body, "suffix").value_or("").empty(), "suffix", "is not supported");
  if (has(body, "response_format")) {
    const Json& format = body.at("response_format");
    const bool is_text =
        format.is_object() && format.contains("type") && format.at("type") == "text";
    refuse_unless(is_text, "response_format", "must be {\"type\": \"text\"}");
  }
}

std::vector<std::string> stops_of(const Json& body) {
  std::vector<std::string> out;
  if (!has(body, "stop")) return out;
  const Json& stop = body.at("stop");
  const auto add = [&](const Json& each) {
    if (!each.is_string() || each.get_ref<const std::string&>().empty()) {
      throw ApiError(400, "'stop' must be a text or a list of texts, none of them empty", "stop");
    }
    out.push_back(each.get<std::string>());
  };
  if (!stop.is_array()) {
    add(stop);
    return out;
  }
  if (stop.size() > kMostStops)
    throw ApiError(400, fmt::format("'stop' has more than {} texts", kMostStops), "stop");
  for (const Json& each : stop) add(each);
  return out;
}

std::vector<std::pair<TokenId, float>> biases_of(const Json& body) {
  std::vector<std::pair<TokenId, float>> out;
  if (!has(body, "logit_bias")) return out;
  const Json& map = body.at("logit_bias");
  if (!map.is_object() || map.size() > kMostBiases) {
    throw ApiError(400,
                   fmt::format("'logit_bias' must be an object of at most {} tokens", kMostBiases),
                   "logit_bias");
  }
  for (const auto& [key, value] : map.items()) {
    TokenId id = 0;
    const char* const end = key.data() + key.size();
    const auto [last, error] = std::from_chars(key.data(), end, id);
    const double bias = value.is_number() ? value.get<double>() : 1e9;
    if (error != std::errc() || last != end || !(bias >= -100 && bias <= 100)) {
      throw ApiError(400, "'logit_bias' must give token ids numbers from -100 to 100",
                     "logit_bias");
    }
    out.emplace_back(id, static_cast<float>(bias));
  }
  return out;
}

std::string content_of(const Json& message) {
  const char* const field = "messages";
  if (!has(message, "content"))
    throw ApiError(400, "a message of 'messages' has no 'content'", field);
  const Json& content = message.at("content");
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  if (!content.is_array())
    throw ApiError(400, "'messages': the 'content' must be a text or a list of parts", field);
  for (const Json& part : content) {
    const bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                         part.contains("text") && part.at("text").is_string();
    if (!is_text)
      throw ApiError(400, "'messages' may only have parts of type 'text'", field,
                     "unsupported_parameter");
    out += part.at("text").get<std::string>();
  }
  return out;
}

ChatMessage message_of(const Json& message) {
  if (!message.is_object()) throw ApiError(400, "'messages' must be a list of objects", "messages");
  std::string role = get_string(message, "role").value_or("");
  if (role == "developer") role = "system";  // the name that OpenAI gave it later
  if (role != "system" && role != "user" && role != "assistant") {
    throw ApiError(
        400,
        fmt::format("'messages' has the role '{}': system, developer, user and assistant are known",
                    role),
        "messages");
  }
  return {std::move(role), content_of(message)};
}

}  // namespace

void Service::check_model(const Json& body) const {
  const std::string name = get_string(body, "model").value_or(options_.model_id);
  if (name == options_.model_id || name == "default") return;
  throw ApiError(404,
                 fmt::format("there is no model '{}'; '{}' is the one that is served", name,
                             options_.model_id),
                 "model", "model_not_found");
}

void Service::check_prompt(const std::vector<TokenId>& prompt, const char* field) const {
  if (prompt.empty()) throw ApiError(400, fmt::format("'{}' is empty", field), field);
  const std::int64_t context = scheduler_.decoder().context();
  if (std::cmp_greater(prompt.size(), context)) {
    throw ApiError(
        400,
        fmt::format("'{}' has {} tokens, and the context holds {}", field, prompt.size(), context),
        field, "context_length_exceeded");
  }
}

std::vector<TokenId> Service::chat_tokens(const Json& body) const {
  if (!template_) {
    throw ApiError(
        400,
        "the model has no chat template; start the server with --template, or use /v1/completions");
  }
  if (!has(body, "messages") || !body.at("messages").is_array() || body.at("messages").empty()) {
    throw ApiError(400, "'messages' must be a list with at least one message", "messages");
  }
  ChatInput input;
  input.set_tokens(scheduler_.tokenizer());
  for (const Json& each : body.at("messages")) input.messages.push_back(message_of(each));
  try {
    return scheduler_.tokenizer().encode_prompt(template_->render(input));
  } catch (const Error& error) {  // templates refuse what their model was not trained for, such as
                                  // two users in a row
    throw ApiError(400, error.what(), "messages");
  }
}

GenerationRequest Service::generation(const Json& body, std::vector<TokenId> prompt,
                                      std::int64_t usual) const {
  refuse_unsupported(body);
  GenerationRequest out = options_.text.request(scheduler_.tokenizer());
  SamplingOptions& sampling = out.sampling;
  const auto number = [&](const char* name, double& to, double least, double most) {
    to = get_number(body, name, least, most).value_or(to);
  };
  number("temperature", sampling.temperature, 0, 100);
  number("top_p", sampling.top_p, 0, 1);
  number("min_p", sampling.min_p, 0, 1);
  number("typical_p", sampling.typical_p, 0, 1);
  number("presence_penalty", sampling.presence_penalty, -2, 2);
  number("frequency_penalty", sampling.frequency_penalty, -2, 2);
  number("repetition_penalty", sampling.repetition_penalty, 0.01, 100);
  sampling.top_k =
      std::max<std::int64_t>(0, get_integer(body, "top_k", -1, 1 << 30).value_or(sampling.top_k));
  if (const auto seed = get_integer(body, "seed", INT64_MIN, INT64_MAX))
    sampling.seed = static_cast<std::uint64_t>(*seed);
  if (has(body, "stop")) out.stop = stops_of(body);
  if (has(body, "logit_bias")) sampling.logit_bias = biases_of(body);
  out.ignore_end_tokens = get_bool(body, "ignore_eos").value_or(out.ignore_end_tokens);
  try {
    sampling.check();
    for (const auto& [id, bias] : sampling.logit_bias) scheduler_.tokenizer().kind(id);
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }

  const std::int64_t limit = options_.text.max_tokens;
  const char* const field =
      has(body, "max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  const std::optional<std::int64_t> asked = get_integer(body, field, 1, INT32_MAX);
  if (asked && limit >= 0 && *asked > limit) {
    throw ApiError(
        400,
        fmt::format("'{}' is {}, and an answer here has at most {} tokens", field, *asked, limit),
        field);
  }
  out.max_tokens = asked.value_or(usual >= 0 && (limit < 0 || usual < limit) ? usual : limit);
  out.prompt = std::move(prompt);
  return out;
}

}  // namespace tl::cli::serve
