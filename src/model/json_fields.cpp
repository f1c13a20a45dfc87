#include "model/json_fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "tl/base/mapped_file.h"

namespace tl::saved {

namespace {

constexpr std::uint64_t kMostBytes = 512ull << 20;  // the largest tokenizers have about 40 MB

bool fits_float(double number) {
  return std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max());
}

}  // namespace

Json read_json(const std::string& path) {
  const MappedFile file(path);
  if (file.size() > kMostBytes) {
    throw Error(ErrorKind::BadFile, path, "has ", file.size(), " bytes, and ", kMostBytes,
                " are the most that are read");
  }
  const char* begin = reinterpret_cast<const char*>(file.bytes().data());
  try {
    return Json::parse(begin, begin + file.size());
  } catch (const Json::parse_error& error) {
    throw Error(ErrorKind::BadFile, path, "is no JSON near byte ", error.byte);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::BadFile, path, "is no JSON that can be read: ", error.what());
  }
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return join("an array of ", value.size());
  constexpr std::size_t kMost = 60;
  std::string text = value.dump();
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

Fields::Fields(std::string where, const Json& object) : where_(std::move(where)), object_(&object) {
  if (!object.is_object()) fail("is ", shown(object), ", not an object");
}

const Json* Fields::find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void Fields::missing(std::string_view key) const { fail("there is no key '", key, "'"); }

void Fields::wrong(std::string_view key, const Json& value, std::string_view wanted) const {
  fail("key '", key, "' is ", shown(value), ", not ", wanted);
}

std::optional<Fields> Fields::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return Fields(join(where_, ": ", key), *value);
}

std::optional<std::uint32_t> Fields::whole_if(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  // Some writers have 4096.0 for 4096.
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (number >= 0 && number <= static_cast<double>(kMost) && std::floor(number) == number) {
      return static_cast<std::uint32_t>(number);
    }
  } else if (value->is_number_unsigned() && value->get<std::uint64_t>() <= kMost) {
    return value->get<std::uint32_t>();
  }
  wrong(key, *value, "a whole number of 32 bits");
}

std::uint32_t Fields::whole(std::string_view key) const {
  const auto value = whole_if(key);
  if (!value) missing(key);
  return *value;
}

std::optional<double> Fields::number_if(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong(key, *value, "a number");
  const double number = value->get<double>();
  if (!fits_float(number)) wrong(key, *value, "a number that F32 holds");
  return number;
}

double Fields::number(std::string_view key) const {
  const auto value = number_if(key);
  if (!value) missing(key);
  return *value;
}

std::optional<bool> Fields::flag_if(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> Fields::text_if(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong(key, *value, "a text");
  return value->get<std::string>();
}

std::vector<double> Fields::numbers(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) wrong(key, *value, "a list of numbers");
  std::vector<double> numbers;
  for (const Json& item : *value) {
    if (!item.is_number() || !fits_float(item.get<double>())) {
      wrong(key, item, "a list of numbers");
    }
    numbers.push_back(item.get<double>());
  }
  return numbers;
}

}  // namespace tl::saved
