// Reads source text into a tree. Goes on after a mistake, so that one run tells of several.
#pragma once

#include <vector>

#include "lang/ast.h"
#include "lang/diagnostic.h"

namespace tl::lang {

// What is wrong is added to `diagnostics`; the tree then holds what could be read.
ast::Program parse_program(const Sources& sources, std::uint32_t source,
                           std::vector<Diagnostic>& diagnostics);

// An input at the prompt: declarations and statements in any order. The statements become `main`.
// `incomplete` is set when nothing is wrong but that the text ends too soon, inside a block, a
// bracket, a string or an expression, so that more lines should be read; there are no diagnostics
// then.
ast::Program parse_input(const Sources& sources, std::uint32_t source,
                         std::vector<Diagnostic>& diagnostics, bool& incomplete);

}  // namespace tl::lang
