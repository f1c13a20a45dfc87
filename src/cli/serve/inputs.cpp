// /v1/embeddings, /tokenize and /detokenize: texts and tokens, without an answer.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/serve/service.h"
#include "tl/base/text.h"

namespace tl::cli::serve {

namespace {

constexpr std::size_t kMostInputs = 2048;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j)
      out += j <= count ? kDigits[group >> (18 - 6 * j) & 63U] : '=';
  }
  return out;
}

Json embedding_json(const std::vector<float>& numbers, bool is_base64) {
  static_assert(std::endian::native == std::endian::little);  // what clients read
  if (!is_base64) return numbers;
  return base64({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
}

// A token may be a part of a character: then its bytes are given as numbers.
Json piece_json(std::string_view piece) {
  if (first_invalid_utf8(piece) == piece.size()) return piece;
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

bool is_token(const Json& json) { return json.is_number_integer(); }

}  // namespace

std::vector<TokenId> Service::tokens_of(const Json& list, const char* field) const {
  std::vector<TokenId> out;
  for (const Json& each : list) {
    const std::int64_t id = is_token(each) ? each.get<std::int64_t>() : -1;
    if (id < 0 || std::cmp_greater_equal(id, scheduler_.tokenizer().size())) {
      throw ApiError(
          400, fmt::format("'{}' has {}, which is no token of this model", field, to_text(each)),
          field);
    }
    out.push_back(static_cast<TokenId>(id));
  }
  return out;
}

// A text, a list of texts, tokens, or a list of such.
std::vector<std::vector<TokenId>> Service::inputs_of(const Json& body, const char* field) const {
  if (!has(body, field)) throw ApiError(400, fmt::format("'{}' is missing", field), field);
  const Json& input = body.at(field);
  std::vector<std::vector<TokenId>> out;
  const auto add = [&](const Json& each) {
    if (each.is_string())
      return out.push_back(scheduler_.tokenizer().encode(each.get_ref<const std::string&>()));
    if (each.is_array()) return out.push_back(tokens_of(each, field));
    throw ApiError(
        400, fmt::format("'{}' must be a text, a list of texts, or lists of tokens", field), field);
  };
  if (!input.is_array() || (!input.empty() && is_token(input.front()))) {
    add(input);
    return out;
  }
  if (input.empty() || input.size() > kMostInputs) {
    throw ApiError(400, fmt::format("'{}' must have 1 to {} elements", field, kMostInputs), field);
  }
  for (const Json& each : input) add(each);
  return out;
}

HttpReply Service::embeddings(const HttpRequest& request) {
  const Json body = parse_object(request.body);
  check_model(body);
  const std::string format = get_string(body, "encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    throw ApiError(400, "'encoding_format' must be float or base64", "encoding_format");
  }
  const std::int64_t width = scheduler_.decoder().config().width;
  if (get_integer(body, "dimensions", 1, INT32_MAX).value_or(width) != width) {
    throw ApiError(
        400, fmt::format("'dimensions' must be {}: the model's embeddings cannot be cut", width),
        "dimensions");
  }
  const std::vector<std::vector<TokenId>> inputs = inputs_of(body, "input");
  for (const std::vector<TokenId>& input : inputs) check_prompt(input, "input");
  Json data = Json::array();
  std::int64_t tokens = 0;
  for (const std::vector<TokenId>& input : inputs) {
    TicketRef ticket = scheduler_.embed(input);
    if (!ticket) throw busy();
    std::string none;
    const Outcome outcome = wait_for(request, std::move(ticket), none);
    tokens += outcome.statistics.prompt_tokens;
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", embedding_json(outcome.embedding, format == "base64")}});
  }
  HttpReply reply;
  reply.body = to_text({{"object", "list"},
                        {"data", std::move(data)},
                        {"model", options_.model_id},
                        {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
  return reply;
}

HttpReply Service::tokenize(const HttpRequest& request) {
  const Json body = parse_object(request.body);
  const Tokenizer& tokenizer = scheduler_.tokenizer();
  std::vector<TokenId> tokens;
  if (has(body, "messages")) {
    tokens = chat_tokens(body);
  } else {
    const char* const field = has(body, "prompt") ? "prompt" : "content";
    const std::optional<std::string> text = get_string(body, field);
    if (!text) throw ApiError(400, "'content' or 'messages' is needed", "content");
    tokens =
        tokenizer.encode(*text, {.add_special = get_bool(body, "add_special").value_or(false),
                                 .parse_special = get_bool(body, "parse_special").value_or(false)});
  }
  Json list = tokens;
  if (get_bool(body, "with_pieces").value_or(false)) {
    list = Json::array();
    for (const TokenId id : tokens)
      list.push_back({{"id", id}, {"piece", piece_json(tokenizer.piece(id))}});
  }
  HttpReply reply;
  reply.body = to_text({{"tokens", std::move(list)},
                        {"count", tokens.size()},
                        {"max_model_len", scheduler_.decoder().context()}});
  return reply;
}

HttpReply Service::detokenize(const HttpRequest& request) {
  const Json body = parse_object(request.body);
  if (!has(body, "tokens") || !body.at("tokens").is_array()) {
    throw ApiError(400, "'tokens' must be a list of tokens", "tokens");
  }
  const std::vector<TokenId> tokens = tokens_of(body.at("tokens"), "tokens");
  HttpReply reply;
  reply.body =
      to_text({{"content", scheduler_.tokenizer().decode(
                               tokens, {.special = get_bool(body, "special").value_or(false)})}});
  return reply;
}

}  // namespace tl::cli::serve
