// What print and the assertions do, for the interpreter too.
#pragma once

#include <span>
#include <string>

#include "lang/builtin.h"
#include "lang/value.h"

namespace tl::lang {

// The line that print(values...) writes, without its end (docs/language.md, "Printing").
std::string print_text(std::span<const Value> values);
void print(Context& context, std::span<const Value> values);

}  // namespace tl::lang
