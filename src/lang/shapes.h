// Shapes that can be told without running the program, and what is wrong about them.
#pragma once

#include <span>
#include <vector>

#include "lang/ast.h"
#include "lang/diagnostic.h"

namespace tl::lang {

// Adds what is sure to go wrong: an error where the statement is sure to run (main's own
// statements, in order), a warning where it may not. Says nothing about what it cannot tell.
void check_shapes(std::span<const ast::Program* const> programs,
                  std::vector<Diagnostic>& diagnostics);

}  // namespace tl::lang
