#include "cli/serve/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tl::cli::serve {

namespace {

constexpr int kDeepest = 64;

// Before the parser: everything that handles JSON later does so by recursion.
bool is_deep(std::string_view text) {
  int depth = 0;
  bool is_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_string) {
      if (c == '\\') ++i;
      if (c == '"') is_string = false;
    } else if (c == '"') {
      is_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

[[noreturn]] void refuse_field(const char* name, const std::string& message) {
  throw ApiError(400, fmt::format("'{}' {}", name, message), name);
}

std::string_view type_of(int status) {
  switch (status) {
    case 401:
    case 403:
      return "authentication_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

std::string error_body(int status, std::string_view message, std::string_view param,
                       std::string_view code) {
  const auto text_or_null = [](std::string_view text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return to_text({{"error",
                   {{"message", message},
                    {"type", type_of(status)},
                    {"param", text_or_null(param)},
                    {"code", text_or_null(code)}}}});
}

Json parse_object(std::string_view text) {
  if (is_deep(text))
    throw ApiError(400, fmt::format("the JSON is nested deeper than {} levels", kDeepest));
  try {
    Json json = Json::parse(text);
    if (!json.is_object()) throw ApiError(400, "the body must be a JSON object");
    return json;
  } catch (const Json::exception& error) {
    throw ApiError(400, fmt::format("the body is not JSON: {}", error.what()));
  }
}

bool has(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && !at->is_null();
}

std::optional<double> get_number(const Json& object, const char* name, double least, double most) {
  if (!has(object, name)) return {};
  const Json& value = object.at(name);
  if (!value.is_number()) refuse_field(name, "must be a number");
  const auto number = value.get<double>();
  if (!(number >= least && number <= most)) {
    refuse_field(name, fmt::format("must be from {} to {}, not {}", least, most, number));
  }
  return number;
}

std::optional<std::int64_t> get_integer(const Json& object, const char* name, std::int64_t least,
                                        std::int64_t most) {
  if (!has(object, name)) return {};
  const Json& value = object.at(name);
  // 5.0 is what some clients make of 5.
  const double real = value.is_number() ? value.get<double>() : NAN;
  if (std::isnan(real) || real != std::floor(real)) refuse_field(name, "must be a whole number");
  if (real < static_cast<double>(least) || real > static_cast<double>(most)) {
    refuse_field(name, fmt::format("must be from {} to {}", least, most));
  }
  return value.is_number_float() ? static_cast<std::int64_t>(real) : value.get<std::int64_t>();
}

std::optional<bool> get_bool(const Json& object, const char* name) {
  if (!has(object, name)) return {};
  if (!object.at(name).is_boolean()) refuse_field(name, "must be true or false");
  return object.at(name).get<bool>();
}

std::optional<std::string> get_string(const Json& object, const char* name) {
  if (!has(object, name)) return {};
  if (!object.at(name).is_string()) refuse_field(name, "must be a string");
  return object.at(name).get<std::string>();
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tl::cli::serve
