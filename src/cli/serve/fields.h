// The fields of a request's JSON, read with errors that name the field, in the shape that OpenAI's
// clients know.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tl::cli::serve {

using Json = nlohmann::ordered_json;

// Becomes {"error": {"message", "type", "param", "code"}} with its status.
struct ApiError : std::runtime_error {
  ApiError(int http_status, const std::string& message, std::string field = {},
           std::string name = {})
      : std::runtime_error(message),
        status(http_status),
        param(std::move(field)),
        code(std::move(name)) {}
  int status;
  std::string param, code;
};

std::string error_body(int status, std::string_view message, std::string_view param = {},
                       std::string_view code = {});

// An object, not nested deeper than any real one. Throws ApiError with 400.
Json parse_object(std::string_view text);

// Nothing where the field is missing or null; ApiError where it is something else.
std::optional<double> get_number(const Json& object, const char* name, double least, double most);
std::optional<std::int64_t> get_integer(const Json& object, const char* name, std::int64_t least,
                                        std::int64_t most);
std::optional<bool> get_bool(const Json& object, const char* name);
std::optional<std::string> get_string(const Json& object, const char* name);
bool has(const Json& object, const char* name);  // and it is not null

std::string to_text(const Json& json);  // on one line; what is no UTF-8 is replaced

}  // namespace tl::cli::serve
