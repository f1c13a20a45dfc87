// Programs in one style, behind `tl fmt`.
//
// Tokens and lines stay as they are written; what changes is the space between them: indentation by
// four, one space or none between tokens, at most one empty line, a line for each statement of a
// block that has several. Semicolons go where nothing depends on them. Comments stay. The result
// means the same and formatting it again changes nothing.
#pragma once

#include <string>
#include <vector>

#include "lang/diagnostic.h"

namespace tl::lang {

// A program with mistakes is not formatted: they are added to `diagnostics` and the text comes back
// as it was.
std::string format(const Sources& sources, std::uint32_t source,
                   std::vector<Diagnostic>& diagnostics);

}  // namespace tl::lang
