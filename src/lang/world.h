// Everything a program has declared: what the compiler looks names up in and the interpreter keeps
// alive. At the prompt it grows from input to input.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lang/bytecode.h"
#include "lang/logic_program.h"
#include "lang/source.h"

namespace tl::lang {

struct World {
  Sources sources;
  std::map<std::string, std::uint32_t, std::less<>> globals;  // slots
  std::map<std::string, const Function*, std::less<>> functions;
  std::map<std::string, std::shared_ptr<StructType>, std::less<>> structs;
  std::set<std::string, std::less<>>
      top_level;  // globals declared outside main: tensors, constants
  std::set<std::string, std::less<>> constants;  // of them, those that may not be assigned
  std::set<std::string, std::less<>> learnable;  // globals declared so
  bool differentiates = false;  // does the program ask for gradients outside learn?
  // Names of methods that change their receiver, of whatever struct.
  std::set<std::string, std::less<>> changing_methods;
  std::shared_ptr<LogicProgram> logic = new_logic_program();
  // Names that tensor equations define, and what computes them.
  std::map<std::string, const Function*, std::less<>> equations;
  std::vector<std::unique_ptr<Function>> owned;

  std::uint32_t global(const std::string& name) {
    return globals.emplace(name, static_cast<std::uint32_t>(globals.size())).first->second;
  }
};

}  // namespace tl::lang
