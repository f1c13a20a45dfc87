// Entities, relations, rules and embeddings on their way from the tree to a LogicProgram.
#pragma once

#include <span>

#include "lang/compiler.h"
#include "lang/logic_program.h"

namespace tl::lang {

// A name that nothing declares, as a relation of so many arguments of any kind; nothing when that
// is not asked for, or when the name is a function's.
std::optional<logic::RelationId> declare_undeclared(Compilation& c, const std::string& name,
                                                    std::size_t arguments);

// All of them in the programs; what is wrong is reported with its place.
void declare_logic(Compilation& compilation, std::span<const ast::Program* const> programs);

// Arithmetic, comparison or connective; nothing for what rules cannot compute.
std::optional<logic::Expression::Op> logic_operation(ast::BinaryOp op);
std::vector<std::string_view> relation_names(const LogicProgram& program);
// Reports a name that is no entity of the column's type. False then.
bool check_entity(Compilation& compilation, const std::string& name,
                  const logic::ColumnType& column, const Span& span);
// Reports a constant of the wrong kind. False then.
bool check_kind(Compilation& compilation, std::string_view relation, std::size_t column,
                const logic::ColumnType& type, const logic::Constant& constant, const Span& span);

}  // namespace tl::lang
