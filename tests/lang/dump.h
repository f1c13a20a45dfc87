// Trees as text, for tests: (+ a (* b c)). Places are left out.
#pragma once

#include <string>

#include "lang/ast.h"

namespace tl::lang {

std::string dump(const ast::Expr& expr);
std::string dump(const ast::Type& type);
std::string dump(const ast::Pattern& pattern);
std::string dump(const ast::Block& block);  // statements, one space between them
std::string dump(const ast::Statement& statement);
std::string dump(const ast::Declaration& declaration);
std::string dump(const ast::Program& program);  // one item per line

}  // namespace tl::lang
