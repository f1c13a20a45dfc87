// What several files of builtins share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lang/builtin.h"
#include "lang/value.h"

namespace tl::lang {

// A place among `length`: negative ones count from the end. Throws "Index I out of bounds for
// length L".
std::size_t place_among(std::int64_t index, std::size_t length);

// Of a list that a function makes without anyone having made it element by element.
inline constexpr std::int64_t kMostElements = 100'000'000;

// Everything that going through the value gives.
std::vector<Value> elements(Context& context, const Value& value);

inline Value list_of(std::vector<Value> values) { return make<ListObject>(std::move(values)); }
Value list_of_texts(std::span<const std::string> texts);

// "; did you mean 'x'?" where one of the words is near, else nothing.
std::string did_you_mean(std::string_view typed, std::span<const std::string> words);

// Token ids: Tokens, a list or vector of integers, one integer, or a tensor of them.
std::vector<std::int32_t> token_ids(const Args& args, std::size_t i);
std::int32_t token_id(std::string_view who, const Value& value);

// "[2, 3]"
std::string bracketed(const Dims& shape);

// The result of another builtin for these arguments; its defaults are filled in.
Value call_builtin(Context& context, std::string_view name, std::span<const Value> arguments);

// A number that the device's seed decides, another one at each call.
std::uint64_t next_seed(const Device& device);

// The rows of several files as one.
std::vector<Builtin> joined(std::initializer_list<BuiltinRows> parts);

}  // namespace tl::lang
