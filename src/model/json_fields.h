// JSON files of strangers: objects whose values are asked for by key and type. What is missing or
// of another type throws BadFile with the file and the key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tl::saved {

using Json = nlohmann::json;

// Throws BadFile when it cannot be read, is no JSON or is larger than any such file has reason to
// be.
Json read_json(const std::string& path);

// An object in a file. A key whose value is null is one that is not there, as the libraries that
// write these files mean it.
class Fields {
 public:
  // `where` is the file, and the way to the object in it: "config.json: rope_scaling". Throws when
  // the value is no object. The JSON must stay where it is.
  Fields(std::string where, const Json& object);

  const std::string& where() const noexcept { return where_; }
  const Json* find(std::string_view key) const;  // nullptr when it is not there
  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::optional<Fields> object(std::string_view key) const;  // throws when it is something else

  std::optional<std::uint32_t> whole_if(std::string_view key) const;
  std::uint32_t whole(std::string_view key) const;
  std::optional<double> number_if(std::string_view key) const;
  double number(std::string_view key) const;
  std::optional<bool> flag_if(std::string_view key) const;
  std::optional<std::string> text_if(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;  // none when it is not there

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const;
  [[noreturn]] void missing(std::string_view key) const;

 private:
  [[noreturn]] void wrong(std::string_view key, const Json& value, std::string_view wanted) const;

  std::string where_;
  const Json* object_;
};

// A value in a message, cut where it is long.
std::string shown(const Json& value);

}  // namespace tl::saved

#include "tl/base/error.h"

namespace tl::saved {

template <class... Parts>
void Fields::fail(const Parts&... parts) const {
  throw Error(ErrorKind::BadFile, where_, parts...);
}

}  // namespace tl::saved
