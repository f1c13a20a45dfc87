#include "tl/logic/symbols.h"

#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "tl/base/error.h"

namespace tl::logic {

namespace {

std::string real_text(double value) {
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::digits10);
  out << value;
  std::string text = std::move(out).str();
  // 2 is an integer; 2.0 is not.
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string to_text(const Constant& constant) {
  if (const auto* text = std::get_if<std::string>(&constant)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&constant)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&constant)) return real_text(*real);
  return std::get<bool>(constant) ? "true" : "false";
}

std::string_view kind_name(const Constant& constant) {
  constexpr std::string_view kNames[] = {"string", "int", "float", "bool"};
  return kNames[constant.index()];
}

bool is_number(const Constant& constant) noexcept {
  return std::holds_alternative<std::int64_t>(constant) || std::holds_alternative<double>(constant);
}

double number(const Constant& constant) noexcept {
  if (const auto* integer = std::get_if<std::int64_t>(&constant)) {
    return static_cast<double>(*integer);
  }
  const auto* real = std::get_if<double>(&constant);
  return real != nullptr ? *real : 0;
}

int compare(const Constant& a, const Constant& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : (y < x ? 1 : 0); };
  if (std::holds_alternative<std::int64_t>(a) && std::holds_alternative<std::int64_t>(b)) {
    return order(std::get<std::int64_t>(a), std::get<std::int64_t>(b));
  }
  if (is_number(a) && is_number(b)) return order(number(a), number(b));
  if (std::holds_alternative<std::string>(a) && std::holds_alternative<std::string>(b)) {
    return order(std::get<std::string>(a), std::get<std::string>(b));
  }
  throw Error(ErrorKind::BadArgument, "logic", "cannot order ", kind_name(a), " ", to_text(a),
              " and ", kind_name(b), " ", to_text(b));
}

Id Symbols::add(Constant constant) {
  if (constants_.size() >= kNoId) {
    throw Error(ErrorKind::Overflow, "logic", "more than ", kNoId, " different constants");
  }
  constants_.push_back(std::move(constant));
  return static_cast<Id>(constants_.size() - 1);
}

Id Symbols::text(std::string_view name) {
  if (const Id known = find_text(name); known != kNoId) return known;
  const Id id = add(std::string(name));
  texts_.emplace(std::get<std::string>(constants_.back()), id);
  return id;
}

Id Symbols::find_text(std::string_view name) const {
  const auto found = texts_.find(name);
  return found == texts_.end() ? kNoId : found->second;
}

Id Symbols::integer(std::int64_t value) {
  const auto [at, is_new] = integers_.try_emplace(value, kNoId);
  if (is_new) at->second = add(value);
  return at->second;
}

Id Symbols::real(double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  if (value == 0) value = 0;
  const auto [at, is_new] = reals_.try_emplace(std::bit_cast<std::uint64_t>(value), kNoId);
  if (is_new) at->second = add(value);
  return at->second;
}

Id Symbols::boolean(bool value) {
  Id& id = booleans_[value ? 1 : 0];
  if (id == kNoId) id = add(value);
  return id;
}

Id Symbols::intern(const Constant& constant) {
  if (const auto* name = std::get_if<std::string>(&constant)) return text(*name);
  if (const auto* value = std::get_if<std::int64_t>(&constant)) return integer(*value);
  if (const auto* value = std::get_if<double>(&constant)) return real(*value);
  return boolean(std::get<bool>(constant));
}

}  // namespace tl::logic
