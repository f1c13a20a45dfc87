// Texts: UTF-8, counted in characters (lang/utf8.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lang/builtin.h"
#include "lang/value.h"

namespace tl::lang {

std::int64_t count_characters(std::string_view text) noexcept;
// `count` characters from the one at `start`, or as many as there are; nothing beyond the end.
std::string substring(std::string_view text, std::int64_t start, std::int64_t count);
// The place, in characters, of the first `part` from a place on; -1 when there is none.
std::int64_t find_text(std::string_view text, std::string_view part, std::int64_t from);

std::vector<std::string> split_lines(std::string_view text);  // without their ends

// split(text, separator, most): a list of texts. For the row `split`, whose other half is tensors.
// No separator (Missing): at white space, and no empty parts.
Value split_text(const Args& args);

// "{} {0} {name} {:.3f} {:>8} {{ }}" with values; names are looked up in those that are maps.
// Throws for a place without a value and a form that the value has not.
std::string format_text(std::string_view form, std::span<const Value> values);
// The text of a value in the form that stands after the colon: ".3f", ">8".
std::string formatted(const Value& value, std::string_view form);

}  // namespace tl::lang
