// From the tree to instructions: names become registers and globals, calls get their functions.
// What cannot be resolved is reported here, before anything runs.
#pragma once

#include <string>
#include <vector>

#include "lang/ast.h"
#include "lang/diagnostic.h"
#include "lang/world.h"

namespace tl::lang {

struct CompiledProgram {
  const Function* declarations = nullptr;  // values of top-level tensors and constants
  const Function* main = nullptr;          // may be missing
  std::vector<std::pair<std::string, const Function*>> tests;
  std::vector<std::pair<std::string, const Function*>> benches;
};

struct CompileOptions {
  bool at_prompt = false;             // functions may be declared again; main gives its last value
  bool undeclared_relations = false;  // unknown names in facts, rules and queries are relations
};

// Programs that import one another come with the imported first; only the last one's blocks count.
CompiledProgram compile(World& world, std::span<const ast::Program* const> programs,
                        const CompileOptions& options, std::vector<Diagnostic>& diagnostics);

// The name in `words` that `typed` may stand for: "did you mean 'x'?", or empty.
std::string suggestion(std::string_view typed, const std::vector<std::string_view>& words);

}  // namespace tl::lang
